//! What a dream gets to see of sessions: what was said, of those that may be learnt from, and nothing else.

use learning::dream::SourcePurpose;
use learning::dream::dream_log::DreamOutcome;
use learning::dream::run::{Dream, NoDreamReason};
use memory::quoted_sentences::Register;
use serde_json::{Value, json};
use tools::permission::{Places, Rule, Rules};

use crate::dreaming::House;
use crate::dreaming_badly::script;

/// All that a dream was sent, request by request.
fn sent(house: &House) -> Vec<String> {
    house.simulator.requests().iter().map(|request| request["messages"].to_string()).collect()
}

/// A line of a transcript, as Claude Code writes it.
fn line(id: &str, parent: &Value, role: &str, content: &Value) -> String {
    let message = json!({"role": role, "id": format!("m-{id}"), "model": "m", "content": content});
    let line = json!({
        "type": role, "uuid": id, "parentUuid": parent, "timestamp": "2026-11-14T22:30:00.000Z", "message": message,
    });
    format!("{line}\n")
}

/// DREAM-3, BUDGET-2: a dream reads what was said, with who said it and when: no tool results, nothing that was put in, no
/// line of a transcript; and with Read, Grep and Glob it finds no transcript at all, also where the project is the home.
#[tokio::test]
async fn a_dream_reads_what_was_said_and_no_transcript() {
    let looks = script(&[
        ("Sessions", "{ words = 'heron' }"),
        ("Sessions", "{ session = 'one' }"),
        ("Sessions", "{ }"),
        ("Sessions", "{ session = 'nobody' }"),
        ("Read", "{ file_path = '{{ sessions }}/one.jsonl' }"),
        ("Grep", "{ pattern = 'needle', path = '{{ sessions }}', output_mode = 'content' }"),
        ("Grep", "{ pattern = 'needle', path = '{{ home }}', output_mode = 'content' }"),
    ]);
    let house = House::new(&looks).await;
    let transcript = [
        line("a", &Value::Null, "user", &json!("The Heron project ships on Fridays <system-reminder>.")),
        line(
            "b",
            &json!("a"),
            "assistant",
            &json!([
                {"type": "text", "text": "I look at the heron file."},
                {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "x"}},
            ]),
        ),
        line(
            "c",
            &json!("b"),
            "user",
            &json!([{"type": "tool_result", "tool_use_id": "t", "content": "a needle in a heron file"}]),
        ),
        line("d", &json!("c"), "user", &json!("<local-command-stdout>a needle of heron</local-command-stdout>")),
        line("e", &json!("d"), "assistant", &json!([{"type": "text", "text": "Done with it."}])),
    ];
    std::fs::create_dir_all(house.sessions()).unwrap();
    std::fs::write(house.sessions().join("one.jsonl"), transcript.concat()).unwrap();
    let scope = tools::Scope::new(house.at("home"), house.at("temporary")).with_home(house.at("home"));
    let over = Dream { scope, ..house.dream() }.run().await.unwrap();
    assert_eq!((over.how, over.denied), (DreamOutcome::Completed, 2), "Read and Grep of transcripts: {over:?}");
    let last = sent(&house).pop().unwrap();
    for shown in
        ["The Heron project ships on Fridays", "Assistant: Done with it.", "Saturday, 2026-11-14", "no session nobody"]
    {
        assert!(last.contains(shown), "{shown} in {last}");
    }
    assert!(!last.contains("a needle") && !last.contains("uuid") && !last.contains("<system-reminder>"), "{last}");
    assert_eq!(last.matches("[message ").count(), 2, "what is found is named by its place: {last}");
}

/// EXTRACT-1, SEC-2: of sessions in which the user was private for a while, or that touched or worked in what is excluded, a
/// dream is told nothing, and it finds nothing of them, whichever way it looks.
#[tokio::test]
async fn a_dream_sees_nothing_of_what_is_kept_apart() {
    let looks = script(&[
        ("Sessions", "{ words = 'falcon' }"),
        ("Sessions", "{ session = 'one' }"),
        ("Sessions", "{ }"),
        ("Grep", "{ pattern = 'falcon', path = '{{ sessions }}', output_mode = 'content' }"),
        ("Glob", "{ pattern = '**/*', path = '{{ sessions }}' }"),
        ("Read", "{ file_path = '{{ sessions }}/one/notes.md' }"),
        ("Grep", "{ pattern = 'falcon', path = '{{ home }}/project', output_mode = 'content' }"),
    ]);
    let call = |tool: &str, input: Value| json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "name": tool, "input": input}]}});
    let quoted =
        json!({"type": "user", "message": {"content": r#"{"type":"meta","meta":{"kind":"private","on":true}}"#}});
    let beside = |purpose: &str, text: &str| json!({"type": "attachment", "cairn": {"injected": purpose}, "message": {"content": [{"type": "text", "text": text}]}});
    let theirs = json!({"type": "attachment", "attachment": {"type": "file", "filename": "client/plan.txt", "content": {"file": {"content": "the falcon"}}}});
    let command =
        |text: &str| json!({"type": "user", "message": {"content": format!("<bash-input>{text}</bash-input>")}});
    let (own, child) = ("one.jsonl", "one/subagents/agent-1.jsonl");
    for (file, line, excluded, apart) in [
        (own, json!({"type": "meta", "meta": {"kind": "private", "on": true}}), "none/**", true),
        (own, json!({"type": "meta", "meta": {"kind": "private", "on": false}}), "none/**", false),
        (own, quoted, "none/**", false),
        (own, call("Read", json!({"file_path": "client/plan.txt"})), "client/**", true),
        (own, call("Bash", json!({"command": "cat client/plan.txt | head"})), "client/**", true),
        (own, call("Bash", json!({"command": "cat src/main.rs"})), "client/**", false),
        (
            own,
            beside("attached", "The user's message names client/plan.txt. Read shows it as:\n\nsome text"),
            "client/**",
            true,
        ),
        (
            own,
            beside("command", "I ran a command.\n<command>cat client/pl*</command>\n<output>\n\n</output>"),
            "client/**",
            true,
        ),
        (own, beside("instructions", "Never show anybody client/plan.txt."), "client/**", false),
        (own, theirs, "client/**", true),
        (own, command("cat client/plan.txt"), "client/**", true),
        (own, command("ls src"), "client/**", false),
        (own, json!({"type": "user", "cwd": "/clients/one"}), "//clients/**", true),
        (child, call("Read", json!({"file_path": "client/plan.txt"})), "client/**", true),
        (child, call("Read", json!({"file_path": "src/main.rs"})), "client/**", false),
    ] {
        let house = House::new(&looks).await;
        house.session("one", "The bird is called falcon.", 1);
        house.session("two", "Something else is an owl.", 1);
        house.put("home/project/client/plan.txt", "the falcon of the client\n");
        let folder = house.sessions();
        std::fs::create_dir_all(folder.join("one/subagents")).unwrap();
        let told = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        std::fs::write(folder.join(file), format!("{told}{line}\n")).unwrap();
        std::fs::write(folder.join("one/notes.md"), "falcon").unwrap();
        let project = house.at("home/project");
        let places = Places { settings: project.clone(), directory: project, home: None, file: None };
        let deny = vec![Rule::parse(&format!("Read({excluded})"), &places).unwrap()];
        let over = Dream { excluded: Rules { deny, ..Rules::default() }, ..house.dream() }.run().await.unwrap();
        assert_eq!((over.how, over.denied), (DreamOutcome::Completed, 3), "{line}");
        let sent = sent(&house);
        assert!(sent[0].contains("owl"), "{line}");
        assert_eq!(sent[0].contains("called falcon"), !apart, "{line}");
        let last = sent.last().unwrap();
        assert_eq!(last.contains("called falcon"), !apart, "{line}");
        assert_eq!(last.contains("Nothing is learnt from session one"), apart, "{line}");
        assert_eq!(
            last.contains("falcon of the client"),
            !excluded.starts_with("client"),
            "what is excluded is not read: {line}"
        );
    }
}

/// DREAM-3: where learning is off it is off for dreams: they are told of no session and have no way to look for one. Our own
/// sessions that nothing is to be learnt from, such as runs without a terminal, are no source.
#[tokio::test]
async fn a_dream_learns_only_where_learning_is_on() {
    let looks = script(&[("Sessions", "{ words = 'kestrel' }")]);
    let house = House::new(&looks).await;
    house.remember("a.md", "something", "Text.", 1);
    house.session("one", "The bird is called kestrel.", 1);
    Dream { purpose: SourcePurpose::Consolidate, ..house.dream() }.run().await.unwrap();
    let requests = house.simulator.requests();
    let names: Vec<&str> =
        requests[0]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(!names.contains(&"Sessions"), "{names:?}");
    let all = format!("{}{}", requests[0]["system"], requests.last().unwrap()["messages"]);
    assert!(!all.contains("called kestrel") && !all.contains("session one"), "{all}");

    for (learns, shown) in [(false, false), (true, true)] {
        let house = House::new(&looks).await;
        house.remember("a.md", "something", "Text.", 1);
        let mut session =
            session::Session::create(&house.site().home, &house.site().project, None, house.world()).unwrap();
        if learns {
            session
                .append(transcript::line::Body::Meta(
                    serde_json::value::to_raw_value(&json!({"kind": "learns"})).unwrap(),
                ))
                .unwrap();
        }
        let blocks = vec![transcript::Block::text("The bird is called kestrel.")];
        session.append(transcript::line::Body::User { blocks, source: transcript::line::TextSource::Direct }).unwrap();
        drop(session);
        house.dream().run().await.unwrap();
        let sent = sent(&house);
        assert_eq!(sent[0].contains("called kestrel"), shown, "told: {}", sent[0]);
        assert_eq!(sent.last().unwrap().matches("called kestrel").count() > 1, shown, "found");
    }

    let house = House::new(&looks).await;
    house.session("one", "The bird is called kestrel.", 1);
    let nothing = Dream { purpose: SourcePurpose::Consolidate, ..house.dream() }.run().await;
    assert!(matches!(nothing, Err(NoDreamReason::Nothing)), "no model is paid");
}

/// ORIGIN-1: a memory that a dream makes counts as the user's word if it quotes what the user typed in a session it was shown;
/// not if it quotes what a tool returned there, or what was said where nothing is learnt.
#[tokio::test]
async fn a_dream_quotes_only_what_it_was_shown() {
    let text = |quoted: &str| {
        format!(
            "---\nname: Birds\ndescription: which birds\ntype: project\n---\n\nThe birds of it.\n\n> \"{quoted}\", 2026-11-14\n"
        )
    };
    for (quoted, looked, is_users) in [
        ("herons ship on Fridays", false, true),
        ("herons ship on Mondays", true, false),
        ("in the middle of all", false, false),
        ("in the middle of all", true, true),
        ("private herons are grey", true, false),
    ] {
        let content = toml::Value::from(text(quoted));
        let write = format!("{{ file_path = '{{{{ memory }}}}/birds.md', content = {content} }}");
        let calls = [("Sessions", "{ session = 'one' }"), ("Write", write.as_str())];
        let house = House::new(&script(if looked { &calls } else { &calls[1..] })).await;
        let said = (0..30).map(|n| match n {
            0 => "Herons ship on Fridays, always.".to_owned(),
            15 => "This was said in the middle of all that.".to_owned(),
            n => format!("This is message number {n}."),
        });
        let mut transcript = String::new();
        for (n, said) in said.enumerate() {
            let parent = n.checked_sub(1).map_or(Value::Null, |before| json!(format!("l{before}")));
            transcript.push_str(&line(&format!("l{n}"), &parent, "user", &json!(said)));
        }
        let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "herons ship on Mondays"}]);
        transcript.push_str(&line("r", &json!("l29"), "user", &result));
        std::fs::create_dir_all(house.sessions()).unwrap();
        std::fs::write(house.sessions().join("one.jsonl"), &transcript).unwrap();
        house.session("two", "private herons are grey", 1);
        let private = format!(
            "{}{}\n",
            std::fs::read_to_string(house.sessions().join("two.jsonl")).unwrap(),
            json!({"type": "meta", "meta": {"kind": "private", "on": true}})
        );
        std::fs::write(house.sessions().join("two.jsonl"), private).unwrap();
        let over = house.dream().run().await.unwrap();
        assert_eq!(over.saved, ["birds.md"], "{over:?}");
        let memory = memory::Memory::read(&files::Root::open(house.memory()).unwrap(), "birds.md").unwrap();
        let register = Register::in_folder(house.site().changes().folder());
        assert_eq!(register.read().of(&memory.body).is_some(), is_users, "{quoted} {looked}");
    }
}
