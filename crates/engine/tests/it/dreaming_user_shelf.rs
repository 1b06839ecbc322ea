//! Dreams and the user's memories that hold in every project: known, and left as they are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use learning::dream::dream_log::DreamOutcome;
use learning::dream::rehearsal::RehearsedChanges;
use memory::store::IndexUpkeep;
use session::Home;

use crate::dreaming::{House, memory};
use crate::dreaming_badly::script;

const TABS: &str = "The user indents with tabs, everywhere and always.";

fn write(path: &str, content: &str) -> String {
    format!("{{ file_path = {}, content = {} }}", toml::Value::from(path), toml::Value::from(content))
}

fn remove(path: &str, by: &str, reason: &str) -> String {
    let value = |text: &str| toml::Value::from(text);
    format!("{{ file_path = {}, replaced_by = {}, reason = {} }}", value(path), value(by), value(reason))
}

/// Saves a memory on the user's shelf.
fn remember_user(house: &House, file: &str, description: &str, body: &str) {
    let head = "type: user\nmetadata:\n  agent: extract\n";
    let text = format!("---\nname: {file}\ndescription: {description}\n{head}---\n\n{body}\n");
    house.put(&format!("home/.claude/memory/{file}"), &text);
}

/// What lies on the user's shelf.
fn shelf(house: &House) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut outside = house.outside();
    outside.retain(|path, _| path.starts_with(house.at("home/.claude/memory")));
    outside
}

/// What a dream was told first.
fn task(house: &House) -> String {
    house.simulator.requests()[0]["messages"].to_string()
}

/// SHELF-3: a dream is told what the user's shelf says, apart from the project's memories, and can read there.
#[tokio::test]
async fn a_dream_is_told_what_the_user_wants_in_every_project() {
    let reads =
        script(&[("Grep", "{ pattern = 'bus factor', path = '{{ home }}/.claude/memory', output_mode = 'content' }")]);
    let house = House::new(&reads).await;
    house.remember("deploys.md", "who signs off deploys", "Deploys need two approvals.", 20);
    remember_user(&house, "tabs.md", "how the user indents", TABS);
    remember_user(
        &house,
        "long.md",
        "what the user reads",
        &format!("{}\nA bus factor of one.", "Reads a lot. ".repeat(500)),
    );
    let over = house.dream().run().await.unwrap();
    assert_eq!((over.how, over.denied), (DreamOutcome::Completed, 0), "{over:?}");
    let task = task(&house);
    let (project, user) = task.split_once("# What holds in every project").unwrap();
    assert!(project.contains("deploys.md") && !project.contains("how the user indents"), "{project}");
    for told in ["/.claude/memory/tabs.md", "how the user indents", TABS, "what the user reads"] {
        assert!(user.contains(told), "{told} in {user}");
    }
    assert!(!user.contains("bus factor"), "what is large is only listed");
    let last = house.simulator.requests().last().unwrap()["messages"].to_string();
    assert!(last.contains("A bus factor of one"), "and can be searched: {last}");
}

/// SHELF-3: without such memories nothing is told of them, and no folder is made for them.
#[tokio::test]
async fn a_dream_makes_no_user_shelf() {
    let house = House::new(&script(&[])).await;
    house.remember("deploys.md", "who signs off deploys", "Deploys need two approvals.", 20);
    house.dream().run().await.unwrap();
    assert!(!task(&house).contains("every project"), "{}", task(&house));
    assert!(!house.at("home/.claude/memory").exists());
}

/// SHELF-2, SHELF-3: what the user's shelf says is not saved in the project again; nothing is written there, neither what a
/// dream learnt of the user nor what is a project's.
#[tokio::test]
async fn a_dream_neither_repeats_nor_changes_what_the_user_wants_in_every_project() {
    let (tabs, user) = (memory("tabs.md", "how the user indents", TABS), "type: user");
    let about = |body: &str| memory("a.md", "about the user", body).replace("type: project", user);
    let tries = script(&[
        ("Write", &write("{{ memory }}/tabs.md", &tabs)),
        ("Write", &write("{{ memory }}/tabs-again.md", &tabs.replace("everywhere and", " everywhere\nand "))),
        ("Write", &write("{{ home }}/.claude/memory/heron.md", &memory("h", "heron", "The Heron ships on Fridays."))),
        ("Write", &write("{{ home }}/.claude/memory/tabs.md", &tabs.replace("tabs", "spaces"))),
        ("Edit", "{ file_path = '{{ home }}/.claude/memory/tabs.md', old_string = 'tabs', new_string = 'spaces' }"),
        ("Remove", "{ file_path = '{{ home }}/.claude/memory/tabs.md', reason = 'It is over.' }"),
        ("Write", &write("{{ memory }}/night.md", &about("The user works at night."))),
    ]);
    let house = House::new(&tries).await;
    house.remember("deploys.md", "who signs off deploys", "Deploys need two approvals.", 20);
    remember_user(&house, "tabs.md", "how the user indents", TABS);
    let before = shelf(&house);
    let over = house.dream().run().await.unwrap();
    assert_eq!((over.how, over.denied), (DreamOutcome::Completed, 6), "{over:?}");
    assert_eq!((over.saved, shelf(&house)), (vec!["night.md".to_owned()], before));
    let last = house.simulator.requests().last().unwrap()["messages"].to_string();
    let known = format!("{} says the same", house.at("home/.claude/memory/tabs.md").display());
    assert_eq!(last.matches(&known).count(), 2, "{last}");
}

/// SHELF-3, DREAM-5: a memory of the project that only says what the user's shelf says goes in favour of that one, and comes
/// back with the rest of the dream.
#[tokio::test]
async fn a_dream_removes_what_the_user_shelf_says_already() {
    let tidies = script(&[
        ("Remove", &remove("{{ memory }}/indent.md", "{{ home }}/.claude/memory/tabs.md", "It holds everywhere.")),
        ("Remove", &remove("{{ memory }}/deploys.md", "{{ home }}/.claude/memory/gone.md", "It holds everywhere.")),
        ("Remove", &remove("{{ memory }}/deploys.md", "{{ home }}/.claude/settings.json", "It holds everywhere.")),
    ]);
    let house = House::new(&tidies).await;
    house.remember("indent.md", "how to indent", TABS, 20);
    house.remember("deploys.md", "who signs off deploys", "Deploys need two approvals.", 20);
    remember_user(&house, "tabs.md", "how the user indents", TABS);
    let over = house.dream().run().await.unwrap();
    assert_eq!((over.removed.as_slice(), over.denied), (["indent.md".to_owned()].as_slice(), 2), "{over:?}");
    let by = over.removals[0].replaced_by.clone().unwrap();
    assert_eq!(PathBuf::from(by), house.at("home/.claude/memory/tabs.md"));
    assert_eq!(house.undo().len(), 1);
    assert!(house.read("indent.md").contains(TABS));
}

/// SHELF-3, DREAM-5: the same is rehearsed and then carried out.
#[tokio::test]
async fn a_rehearsed_dream_knows_the_user_shelf_too() {
    let by = "{{ home }}/.claude/memory/tabs.md";
    let call = remove("{{ dir }}/indent.md", by, "It holds everywhere.");
    let removes = format!(
        "[[rule]]\ntimes = 1\nwhen = {{ visible = 'The memories lie in `(?P<dir>[^`]+)`' }}\n\
         call = [{{ tool = 'Remove', input = {call} }}]\n[[rule]]\nsay = 'Done.'\n"
    );
    let house = House::new(&removes).await;
    house.remember("indent.md", "how to indent", TABS, 20);
    remember_user(&house, "tabs.md", "how the user indents", TABS);
    let (over, changes) = house.dream().rehearse().await.unwrap();
    assert_eq!((over.denied, changes.len()), (0, 1), "{over:?}");
    assert!(task(&house).contains("# What holds in every project") && house.memory().join("indent.md").exists());
    let plan = RehearsedChanges::of(&house.site()).unwrap();
    let done = plan.apply(&house.site(), IndexUpkeep::Kept).unwrap();
    assert_eq!(done.removed, ["indent.md"]);
    assert!(!house.memory().join("indent.md").exists());
}

/// TOMB-1: what the user removed from their shelf is told, and does not come back by way of a project.
#[tokio::test]
async fn a_dream_does_not_bring_back_what_was_removed_from_the_user_shelf() {
    let again = memory("indenting.md", "indentation", TABS);
    let house = House::new(&script(&[("Write", &write("{{ memory }}/indenting.md", &again))])).await;
    house.remember("deploys.md", "who signs off deploys", "Deploys need two approvals.", 20);
    let user = house.at("home/.claude/memory");
    std::fs::create_dir_all(&user).unwrap();
    let changes = Home::at(house.at("home/.claude")).changes(&user);
    changes
        .tombstones()
        .plant("tabs.md", &memory("tabs.md", "how the user indents", TABS), Some("2026-11-14T10:00:00Z".into()))
        .unwrap();
    let over = house.dream().run().await.unwrap();
    assert_eq!((over.denied, over.saved.len()), (1, 0), "{over:?}");
    assert!(!house.memory().join("indenting.md").exists());
    let told = task(&house);
    let (_, forgotten) = told.split_once("# What the user removed").unwrap();
    assert!(forgotten.contains("tabs.md"), "{told}");
}
