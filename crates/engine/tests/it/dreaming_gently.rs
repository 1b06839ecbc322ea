//! What dreams leave alone, and what they say of what they removed.

use learning::dream::dream_log::{DreamLog, DreamOutcome};
use learning::dream::run::Dream;
use learning::saver::Removal;

use crate::dreaming::{House, memory};
use crate::dreaming_badly::script;

/// DREAM-3: what the user wrote by hand, edited since or pinned is neither changed nor removed by a dream, and may be built on;
/// what agents wrote is.
#[tokio::test]
async fn what_is_the_users_is_left_alone() {
    let content = toml::Value::from(memory("x", "y", "The dream's own words."));
    let write = |file: &str| format!("{{ file_path = '{{{{ memory }}}}/{file}', content = {content} }}");
    let edit =
        |file: &str| format!("{{ file_path = '{{{{ memory }}}}/{file}', old_string = 'Text', new_string = 'Gone' }}");
    let remove = |file: &str| format!("{{ file_path = '{{{{ memory }}}}/{file}', reason = 'It is over.' }}");
    let mut calls: Vec<(&str, String)> = Vec::new();
    for file in ["hand.md", "pinned.md", "edited.md"] {
        calls.extend([("Write", write(file)), ("Edit", edit(file)), ("Remove", remove(file))]);
    }
    calls.extend([("Remove", remove("agents.md")), ("Write", write("new.md")), ("Remove", remove("new.md"))]);
    let calls: Vec<(&str, &str)> = calls.iter().map(|(tool, input)| (*tool, input.as_str())).collect();
    let house = House::new(&script(&calls)).await;
    house.remember("agents.md", "an agent's", "Text of an agent.", 3);
    house.remember("edited.md", "edited", "Text of an agent that is edited.", 3);
    let agents = memory("pinned.md", "pinned", "Text that is pinned.");
    house.put("home/.claude/projects/p/memory/pinned.md", &agents.replacen("type:", "pinned: true\ntype:", 1));
    let hand = "---\nname: Hand\ndescription: by hand\ntype: project\n---\n\nText by hand.\n";
    house.put("home/.claude/projects/p/memory/hand.md", hand);
    let changes = house.site().changes();
    let head = memory::changes::RunHead {
        agent: "extract".into(),
        session: None,
        model: None,
        at: "2026-11-10T12:00:00Z".into(),
        directory: house.memory(),
    };
    let mut run = changes.begin("20261110-120000-extract", head).unwrap();
    let after = Some(memory("edited.md", "edited", "As the agent had left it."));
    run.keep(&memory::changes::KeptChange { path: "edited.md".into(), before: None, after, line: None }).unwrap();
    run.end().unwrap();

    let before = house.memories();
    let over = house.dream().run().await.unwrap();
    assert_eq!((over.how, over.denied), (DreamOutcome::Completed, 9), "{over:?}");
    assert_eq!(over.removed, ["agents.md", "new.md"]);
    let mut after = house.memories();
    after.insert(house.memory().join("agents.md"), before[&house.memory().join("agents.md")].clone());
    after.insert(house.memory().join("MEMORY.md"), before[&house.memory().join("MEMORY.md")].clone());
    assert_eq!(after, before);
    let last = house.simulator.requests().pop().unwrap()["messages"].to_string();
    for why in ["the user wrote it by hand", "the user pinned it", "the user has edited it"] {
        assert_eq!(last.matches(why).count(), 3, "{why}: {last}");
    }
}

/// TOMB-1: a dream is told what the user removed, and refused when it saves it again.
#[tokio::test]
async fn what_the_user_removed_stays_removed() {
    let text = memory("Birds", "which birds", "The birds of the project are herons and owls.");
    let content = toml::Value::from(text.clone());
    let write = format!("{{ file_path = '{{{{ memory }}}}/other.md', content = {content} }}");
    let house = House::new(&script(&[("Write", &write)])).await;
    house.remember("a.md", "something", "Text.", 1);
    house.site().changes().tombstones().plant("birds.md", &text, Some("2026-11-14T10:00:00Z".into())).unwrap();
    let over = house.dream().run().await.unwrap();
    assert_eq!((over.saved.len(), over.denied), (0, 1), "{over:?}");
    let told = house.simulator.requests()[0]["messages"].to_string();
    assert!(told.contains("- birds (birds.md, on 2026-11-14)"), "{told}");
}

/// DREAM-3: a model with a small window is shown less, and asked for shorter replies.
#[tokio::test]
async fn what_a_dream_is_shown_fits_into_its_window() {
    for (window, most) in [(32_768, 32_768), (200_000, 200_000)] {
        let read = "{ file_path = '{{ memory }}/large.md' }";
        let house = House::new(&script(&[("Read", read), ("Read", read), ("Read", read), ("Read", read)])).await;
        house.remember("large.md", "a large one", &"many words on a line\n".repeat(1_500), 3);
        for n in 0..300 {
            let (about, body) = (format!("about the thing number {n}, at some length"), "word ".repeat(100));
            house.remember(&format!("m{n}.md"), &about, &format!("{body}{n}"), n % 30);
            house.session(&format!("s-{n}"), &"said in a session ".repeat(40), n % 30);
        }
        let over = Dream { window, ..house.dream() }.run().await.unwrap();
        assert_eq!(over.how, DreamOutcome::Completed, "{over:?}");
        let last = house.simulator.requests().pop().unwrap();
        let tokens = last.to_string().len() as u64 / 4 + last["max_tokens"].as_u64().unwrap();
        assert!(tokens < most, "{tokens} of {window}");
        assert!(tokens > most / 4, "and it is used: {tokens} of {window}");
    }
}

/// DREAM-5: the book says of what was removed why, and what took its place.
#[tokio::test]
async fn the_book_says_why_something_was_removed() {
    let house = House::new(include_str!("dreaming.toml")).await;
    house.remember("deploys.md", "who signs off deploys", "Deploys need two approvals.", 20);
    house.remember("deploy-rule.md", "the rule for deploys", "Two people sign off a deploy; say so in #ops.", 10);
    house.remember("release.md", "when the release is", "The release is next Thursday.", 6);
    house.remember("packages.md", "which package manager", "We use npm.", 30);
    house.session("s-1", "We moved from npm to pnpm last week, remember that.", 1);
    house.dream().run().await.unwrap();
    let book: DreamLog = house.site().dream_log();
    let removals = book.dreams().remove(0).over.unwrap().removals;
    let (path, reason) = ("deploy-rule.md".to_owned(), "Both say who signs off.".to_owned());
    assert_eq!(removals, [Removal { path, replaced_by: Some("deploys.md".into()), reason }]);
}

/// A merge by its name, its calls, and whether all stays as it was.
type MergeAttempt = (&'static str, Vec<(&'static str, String)>, bool);

/// DREAM-3: a memory that was removed in favour of a change is put back when that change is refused, whichever of the two
/// came first and whoever refused; the model hears of it, and can do both again.
#[tokio::test]
async fn a_refused_change_loses_no_memory_that_was_removed_for_it() {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let both = "Deploys need two approvals. Whoever deploys says so in the channel of operations.";
    let good = quoted(&memory("Deploys", "who signs off deploys", both));
    let bad = quoted(both); // it has no frontmatter
    let write = |file: &str, text: &str| format!("{{ file_path = '{file}', content = {text} }}");
    let (deploys, outside) = ("{{ memory }}/deploys.md", "{{ home }}/project/deploys.md");
    let replaced =
        format!("{{ file_path = '{{{{ memory }}}}/said.md', replaced_by = '{deploys}', reason = 'Merged.' }}");
    let removed = "{ file_path = '{{ memory }}/said.md', reason = 'Merged.' }".to_owned();
    let cases: [MergeAttempt; 5] = [
        ("replaced", vec![("Remove", replaced.clone()), ("Write", write(deploys, &bad))], true),
        ("only said again", vec![("Remove", removed.clone()), ("Write", write("{{ memory }}/new.md", &bad))], true),
        ("outside", vec![("Remove", removed.clone()), ("Write", write(outside, &good))], true),
        (
            "without a name",
            vec![("Write", write(deploys, &bad)), ("Remove", removed), ("Write", write(deploys, &bad))],
            true,
        ),
        (
            "done again",
            vec![
                ("Remove", replaced.clone()),
                ("Write", write(deploys, &bad)),
                ("Write", write(deploys, &good)),
                ("Remove", replaced),
            ],
            false,
        ),
    ];
    for (name, calls, stays) in cases {
        let calls: Vec<(&str, &str)> = calls.iter().map(|(tool, input)| (*tool, input.as_str())).collect();
        let house = House::new(&script(&calls)).await;
        house.remember("deploys.md", "who signs off deploys", "Deploys need two approvals.", 20);
        house.remember(
            "said.md",
            "where deploys are said",
            "Whoever deploys says so in the channel of operations.",
            10,
        );
        let before = house.memories();
        let over = house.dream().run().await.unwrap();
        assert_eq!(over.how, DreamOutcome::Completed, "{name}: {over:?}");
        let after = house.memories();
        if stays {
            let file =
                |tree: &std::collections::BTreeMap<_, _>, file: &str| tree.get(&house.memory().join(file)).cloned();
            for memory in ["deploys.md", "said.md"] {
                assert_eq!(file(&after, memory), file(&before, memory), "{name}: {memory}");
            }
            let index = house.read("MEMORY.md");
            assert!(index.contains("- [said.md](said.md) — where deploys are said"), "{name}: {index}");
            assert!(over.removed.is_empty() && over.removals.is_empty(), "{name}: {over:?}");
        } else {
            assert_eq!(over.removed, ["said.md"], "{name}");
            assert!(house.read("deploys.md").contains(both), "{name}");
        }
        let last = house.simulator.requests().pop().unwrap()["messages"].to_string();
        assert!(!calls[0].0.contains("Remove") || last.contains("said.md was put back"), "{name}: {last}");
    }
}
