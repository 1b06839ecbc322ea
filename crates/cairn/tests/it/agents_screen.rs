//! Agents on the screen: who runs in the background, looking, stopping, bringing to the front, and hearing of an end.

use crate::stage::Stage;
use crate::terminal::{DOWN, ESC, Reflow, SIZES, Terminal, ctrl};

/// An agent in the background that waits for a file, and a command that counts.
const BACKGROUND: &str = r#"
    [[rule]]
    when = { user = "^Watch it", tool = "Bash" }
    say = "The file is there."
    [[rule]]
    when = { user = "^Watch it" }
    call = [{ tool = "Bash", input = { command = "touch {{ project }}/watched; until [ -e {{ project }}/there ]; do sleep 0.05; done; echo it is there" } }]
    [[rule]]
    when = { user = "(?s)task-notification.*The file is there" }
    say = "The agent says that the file is there."
    [[rule]]
    when = { user = "^send", tool = "Agent" }
    say = "It is out."
    [[rule]]
    when = { user = "^send" }
    call = [{ tool = "Agent", input = { description = "watch the file", prompt = "Watch it.", subagent_type = "general-purpose", run_in_background = true } }]
    [[rule]]
    when = { user = "^count", tool = "Bash" }
    say = "It counts."
    [[rule]]
    when = { user = "^count" }
    call = [{ tool = "Bash", input = { command = "echo first; until [ -e {{ project }}/more ]; do sleep 0.05; done; echo second; until [ -e {{ project }}/end ]; do sleep 0.05; done; echo third", run_in_background = true } }]
"#;

fn open(stage: &Stage) -> Terminal {
    Terminal::start_with(stage, &["--permission-mode", "bypassPermissions"])
}

/// AGENT-2: an agent in the background stands in `/tasks` and in the status line; its end begins a turn by itself, in which
/// the model reads the report.
#[test]
fn an_agent_in_the_background_is_listed_and_its_end_is_heard() {
    let stage = Stage::new(BACKGROUND);
    let mut terminal = open(&stage);
    terminal.say("send");
    terminal.rests("It is out.");
    terminal.keys("/tasks\r");
    let screen = terminal
        .until("the list", |screen| screen.contains("running") && screen.contains("general-purpose: watch the file"));
    let row = screen.rows.iter().find(|row| row.contains("general-purpose: watch")).unwrap().clone();
    let id = row.split_whitespace().next().unwrap().to_owned();
    while !stage.project().join("watched").exists() {
        std::thread::yield_now();
    }
    terminal.keys(&format!("/tasks {id}\r"));
    terminal.until("what it does", |screen| screen.contains("1 calls, 1 requests") && screen.contains("transcript"));
    stage.write("there", "");
    terminal.rests("The agent says that the file is there.");
    terminal.shows("general-purpose has ended: watch the file");
    terminal.keys(&format!("/tasks {id}\r"));
    terminal.until("what came of it", |screen| screen.contains("done") && screen.contains("<agent-report"));
    terminal.leave();
}

/// AGENT-2: one that runs is stopped by its id, and the conversation hears of it.
#[test]
fn an_agent_is_stopped_by_its_id() {
    let stage = Stage::new(BACKGROUND);
    let mut terminal = open(&stage);
    terminal.say("send");
    terminal.rests("It is out.");
    terminal.keys("/tasks\r");
    let screen = terminal.until("the list", |screen| screen.contains("general-purpose: watch the file"));
    let row = screen.rows.iter().find(|row| row.contains("general-purpose: watch")).unwrap().clone();
    let id = row.split_whitespace().next().unwrap().to_owned();
    terminal.keys(&format!("/tasks stop {id}\r"));
    terminal.shows("general-purpose has ended: watch the file");
    let heard = |stage: &Stage| {
        stage.simulator.requests().iter().any(|request| request.to_string().contains("<status>stopped</status>"))
    };
    while !heard(&stage) {
        std::thread::yield_now();
    }
    terminal.keys(&ctrl('c'));
}

/// AGENT-2: a command in front is followed: what it prints is shown as it comes, and its end is told.
#[test]
fn a_command_in_front_is_followed() {
    let stage = Stage::new(BACKGROUND);
    let mut terminal = open(&stage);
    terminal.say("count");
    terminal.rests("It counts.");
    terminal.keys("/tasks\r");
    let screen = terminal.until("the list", |screen| {
        screen.rows.iter().any(|row| row.contains("running") && row.contains("echo first"))
    });
    let row = screen.rows.iter().find(|row| row.contains("running") && row.contains("echo first")).unwrap().clone();
    let id = row.split_whitespace().next().unwrap().to_owned();
    terminal.keys(&format!("/tasks front {id}\r"));
    let is_row = |screen: &crate::terminal::Screen, text: &str| screen.rows.iter().any(|row| row.trim() == text);
    terminal.until("what was printed before", |screen| is_row(screen, "first"));
    stage.write("more", "");
    terminal.until("what is printed now", |screen| is_row(screen, "second"));
    stage.write("end", "");
    terminal.until("its end", |screen| is_row(screen, "third") && screen.contains(&format!("{id}: done")));
    terminal.leave();
}

/// AGENT-1: `/agents` names those there are, whose they are, and shows one whole.
#[test]
fn the_agents_there_are_can_be_looked_at() {
    let stage = Stage::new(BACKGROUND);
    let mut terminal = open(&stage);
    terminal.keys("/agents\r");
    terminal.until("the list", |screen| screen.contains("Explore") && screen.contains("(built-in)"));
    terminal.keys("/agents Plan\r");
    terminal.until("one of them", |screen| screen.contains("prompt"));
    terminal.leave();
}

/// AGENT-1: `/agents` says which of them a rule denies.
#[test]
fn agents_that_a_rule_denies_are_marked() {
    let stage = Stage::new(BACKGROUND);
    let mut command = stage.cairn();
    let command = command.args(["--disallowedTools", "Agent(Explore)"]).env("TERM", "xterm-256color");
    let mut terminal = Terminal::open(command, 160, 30);
    terminal.until("a prompt", |screen| screen.has_prompt());
    let marked = |screen: &crate::terminal::Screen| {
        let denied: Vec<&String> = screen.rows.iter().filter(|row| row.contains("(built-in, denied)")).collect();
        let others = screen.rows.iter().filter(|row| row.ends_with("(built-in)")).count();
        denied.len() == 1 && denied[0].starts_with("Explore ") && others == 4
    };
    terminal.keys("/agents\r");
    terminal.until("the list", marked);
    terminal.keys("/agents Explore\r");
    terminal.until("one of them", |screen| screen.rows.iter().any(|row| row.trim() == "source   built-in, denied"));
    terminal.leave();
}

/// AGENT-1: a session that has no agents says in `/agents` why, and when it has them.
#[test]
fn a_session_without_agents_says_why() {
    for (first, flags, why) in [
        (Some("--tools=Read"), &["--continue"][..], "this session began without agents"),
        (None, &["--disallowedTools", "Agent"], "a rule denies the tool Agent"),
        (None, &["--tools", "Read"], "no agents can be started here: the session was started bare"),
    ] {
        let stage = Stage::new("[[rule]]\nsay = 'Yes.'");
        if let Some(first) = first {
            assert!(stage.cairn().args(["-p", "hello", first]).output().unwrap().status.success());
        }
        let mut terminal = Terminal::start_with(&stage, flags);
        terminal.keys("/agents\r");
        terminal.shows(why);
        terminal.leave();
    }
}

/// Agents that write, wait in front, or are twenty.
const SEVERAL: &str = r#"
    [[rule]]
    when = { user = "^Write it", tool = "Write" }
    say = "It is written."
    [[rule]]
    when = { user = "^Write it" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/note.txt", content = "green\n" } }]
    [[rule]]
    when = { user = "^Watch it", tool = "Bash" }
    say = "The file is there."
    [[rule]]
    when = { user = "^Watch it" }
    call = [{ tool = "Bash", input = { command = "until [ -e {{ project }}/there ]; do sleep 0.05; done; echo it is there" } }]
    [[rule]]
    when = { user = "task-notification" }
    say = "I heard of it."
    [[rule]]
    when = { tool = "Agent" }
    say = "They are out."
    [[rule]]
    when = { user = "^write" }
    call = [{ tool = "Agent", input = { description = "write it down", prompt = "Write it.", subagent_type = "general-purpose", run_in_background = true } }]
    [[rule]]
    when = { user = "^both" }
    call = [
        { tool = "Agent", input = { description = "watch from behind", prompt = "Watch it.", subagent_type = "general-purpose", run_in_background = true } },
        { tool = "Agent", input = { description = "watch in front", prompt = "Watch it.", subagent_type = "general-purpose" } },
    ]
    [[rule]]
    when = { user = "^many" }
    call = [MANY]
"#;

fn several() -> Stage {
    let one = |number: usize| {
        format!(
            r#"{{ tool = "Agent", input = {{ description = "watch the file number {number}", prompt = "Watch it.",
            subagent_type = "general-purpose", run_in_background = true }} }}"#
        )
    };
    Stage::new(&SEVERAL.replace("MANY", &(1..=20).map(one).collect::<Vec<_>>().join(", ")))
}

/// In a window of sixty columns.
fn narrow(stage: &Stage) -> Terminal {
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm-256color"), 60, 24);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal
}

/// AGENT-2: a question of an agent in the background comes up by itself once nothing else is under way, under its name; the
/// conversation goes on meanwhile. What the agent cost stands in `/cost`.
#[test]
fn a_question_in_the_background_comes_up_when_nothing_else_is_under_way() {
    for (columns, lines) in SIZES {
        let stage = several();
        let mut terminal = Terminal::start_in(&stage, &[], columns, lines);
        terminal.say("write");
        terminal.until("the question, under its name", |screen| {
            let text = screen.rows.iter().map(|row| row.trim()).collect::<Vec<_>>().join(" ");
            let named = text.contains("Write wants to create note.txt") && text.contains("the agent general-purpose");
            named && screen.contains("Esc says no") && (lines == 15 || screen.contains("They are out."))
        });
        assert!(!stage.project().join("note.txt").exists());
        terminal.keys("y");
        terminal.rests("I heard of it.");
        assert_eq!(std::fs::read_to_string(stage.project().join("note.txt")).unwrap(), "green\n");
        assert!(!terminal.screen().contains("an agent asks"), "it is answered");
        terminal.keys("/cost\r");
        terminal.until("what it cost", |screen| screen.contains("general-purpose 1×"));
        terminal.leave();
    }
}

/// An agent in the background that sends out two at once, each of which asks.
const TWO_ASK: &str = r#"
    [[rule]]
    when = { user = "^Write (one|two)", tool = "Write" }
    say = "It is written."
    [[rule]]
    when = { user = "^Write (?P<which>one|two)" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/{{ which }}.txt", content = "green" } }]
    [[rule]]
    when = { user = "^Lead", tool = "Agent" }
    say = "Both are written."
    [[rule]]
    when = { user = "^Lead" }
    call = [
        { tool = "Agent", input = { description = "write one", prompt = "Write one.", subagent_type = "general-purpose" } },
        { tool = "Agent", input = { description = "write two", prompt = "Write two.", subagent_type = "general-purpose" } },
    ]
    [[rule]]
    when = { user = "task-notification" }
    say = "I heard of it."
    [[rule]]
    when = { tool = "Agent" }
    say = "It is out."
    [[rule]]
    call = [{ tool = "Agent", input = { description = "lead", prompt = "Lead.", subagent_type = "general-purpose", run_in_background = true } }]
"#;

/// AGENT-2: questions of two agents below one in the background wait one after the other; none is lost, or answered by nobody.
#[test]
fn questions_of_two_agents_below_one_wait_in_a_row() {
    let stage = Stage::new(TWO_ASK);
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm-256color"), 100, 30);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("go");
    for count in 1..=2 {
        terminal.until("a question", |screen| {
            screen.contains("Esc says no")
                && screen.count("Write wants to create") == count
                && screen.contains("It is out.")
        });
        terminal.keys("y");
    }
    terminal.rests("I heard of it.");
    for name in ["one.txt", "two.txt"] {
        assert_eq!(std::fs::read_to_string(stage.project().join(name)).unwrap(), "green", "{name}");
    }
    terminal.leave();
}

/// AGENT-2: twenty agents at once have their place on a narrow screen, and a twenty-first is refused; the end of each is told.
#[test]
fn twenty_agents_fit_a_narrow_screen() {
    let stage = several();
    let mut terminal = narrow(&stage);
    terminal.say("many");
    terminal.until("that all are out", |screen| {
        screen.contains("They are out.") && screen.contains("20 in the background") && !screen.is_working()
    });
    terminal.say("both");
    terminal.until("that no more can be", |screen| screen.contains("20 agents are running") && !screen.is_working());
    terminal.keys("/tasks\r");
    terminal
        .until("the end of the list", |screen| screen.rows.iter().filter(|row| row.contains("running")).count() > 5);
    let listed = terminal.everything();
    let rows = listed.lines().filter(|row| row.contains("running") && row.contains("general-purpose: watch")).count();
    assert_eq!(rows, 20, "{listed}");
    stage.write("there", "");
    terminal.until("nobody is out", |screen| {
        screen.contains("I heard of it.") && !screen.contains("in the background") && !screen.is_working()
    });
    let told = terminal.everything();
    let ends = told.lines().filter(|row| row.contains("general-purpose has ended: watch the file")).count();
    assert_eq!(ends, 20, "{told}");
    terminal.leave();
}

/// AGENT-2: Esc stops the turn and all agents, in front and in the background.
#[test]
fn esc_stops_a_turn_with_its_agents() {
    let stage = several();
    let mut terminal = open(&stage);
    terminal.say("both");
    terminal.until("both at work", |screen| {
        screen.contains("1 in the background") && screen.contains("general-purpose: Bash")
    });
    terminal.keys(ESC);
    terminal.until("the end of both", |screen| {
        screen.contains("stopped") && screen.contains("has ended: watch from behind") && !screen.is_working()
    });
    terminal.keys("/tasks\r");
    terminal.until("both in the list", |screen| {
        let is = |what: &str| screen.rows.iter().any(|row| row.contains("stopped") && row.contains(what));
        is("watch from behind") && is("watch in front")
    });
    terminal.leave();
}

/// AGENT-2: in plain lines too, a question in the background is told of and answered when it is looked at, and the end of an
/// agent begins a turn by itself.
#[test]
fn plain_lines_tell_of_agents_in_the_background() {
    let stage = several();
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "dumb"), 80, 24);
    terminal.shows(">");
    terminal.keys("write\r");
    let screen = terminal.shows("general-purpose asks something: /tasks ");
    let row = screen.rows.iter().find(|row| row.contains("asks something")).unwrap();
    let id = row.split_whitespace().last().unwrap().to_owned();
    terminal.until("a prompt", |screen| {
        screen.contains("They are out.") && screen.rows.iter().any(|row| row.trim() == ">")
    });
    terminal.keys(&format!("/tasks {id}\r"));
    terminal.shows("the agent general-purpose asks");
    terminal.keys("y\r");
    terminal.shows("general-purpose has ended: write it down");
    terminal.shows("I heard of it.");
    assert_eq!(std::fs::read_to_string(stage.project().join("note.txt")).unwrap(), "green\n");
    terminal.keys("/exit\r");
    assert_eq!(terminal.ended(), 0);
}

/// An agent that looks, says what it does when it is asked, waits for a file, and writes one.
const LOOKS: &str = r#"
    [[rule]]
    name = "label"
    when = { user = "In three to five words" }
    say = "Waiting for the green light there"
    [[rule]]
    when = { user = "^Watch it", tool = "Write" }
    say = "It is written."
    [[rule]]
    when = { user = "^Watch it", visible = "it is there" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/note.txt", content = "green\n" } }]
    [[rule]]
    when = { user = "^Watch it", missing = "looks first" }
    call = [{ tool = "Bash", input = { command = "echo looks first" } }]
    [[rule]]
    when = { user = "^Watch it" }
    call = [{ tool = "Bash", input = { command = "touch {{ project }}/watched; until [ -e {{ project }}/there ]; do sleep 0.05; done; echo it is there" } }]
    [[rule]]
    when = { user = "task-notification" }
    say = "I heard of it."
    [[rule]]
    when = { tool = "Agent" }
    say = "It is out."
    [[rule]]
    when = { user = "^send" }
    call = [{ tool = "Agent", input = { description = "watch the file", prompt = "Watch it.", subagent_type = "general-purpose", run_in_background = true } }]
"#;

/// The id of the agent in the list of `/tasks`.
fn listed(terminal: &mut Terminal) -> String {
    terminal.keys("/tasks\r");
    let screen = terminal.until("the list", |screen| screen.contains("general-purpose: watch the file"));
    let row = screen.rows.iter().find(|row| row.contains("general-purpose: watch the file")).unwrap();
    row.split_whitespace().next().unwrap().to_owned()
}

/// AGENT-4: what an agent in the background is doing stands in the status line, in five words at most, in `/tasks`, and where it
/// is looked at, and `/cost` has what it cost so far. In a narrow window the words give way, and that it runs is still said. It is gone with the agent.
#[test]
fn the_label_of_an_agent_stands_on_the_screen() {
    let stage = Stage::new(LOOKS);
    let flags = ["--permission-mode", "bypassPermissions", "--settings", r#"{"labelSeconds": 1}"#];
    let mut command = stage.cairn();
    let mut terminal = Terminal::open(command.args(flags).env("TERM", "xterm-256color"), 120, 30);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("send");
    terminal.until("what it does", |screen| {
        screen.contains("1 in the background: Waiting for the green light") && !screen.is_working()
    });
    assert!(!terminal.screen().contains("green light there"), "five words are enough");
    let id = listed(&mut terminal);
    terminal.shows("general-purpose: watch the file (Waiting for the green light)");
    terminal.keys(&format!("/tasks {id}\r"));
    terminal.until("looked at", |screen| {
        screen.rows.iter().any(|row| row.contains("running") && row.ends_with("Waiting for the green light"))
    });
    terminal.keys("/cost\r");
    terminal.until("what it has cost so far", |screen| {
        screen
            .rows
            .iter()
            .any(|row| row.starts_with("at work") && row.contains("general-purpose $") && row.ends_with("so far"))
    });
    terminal.resize(62, 30, Reflow::Yes);
    terminal.until("a short line", |screen| {
        screen.rows.iter().any(|row| row.contains("1 in the background") && !row.contains("Waiting"))
    });
    terminal.resize(120, 30, Reflow::Yes);
    stage.write("there", "");
    terminal.until("its end", |screen| {
        screen.contains("I heard of it.") && !screen.contains("1 in the background") && !screen.is_working()
    });
    terminal.leave();
}

/// AGENT-2: what an agent in front does is shown as it goes on, what it asks is asked at once, and it leaves the front with its
/// end.
#[test]
fn an_agent_in_front_is_followed_and_asks_at_once() {
    let stage = Stage::new(LOOKS);
    let mut terminal = Terminal::start_with(&stage, &["--allowedTools", "Bash"]);
    terminal.say("send");
    terminal.rests("It is out.");
    let id = listed(&mut terminal);
    while !stage.project().join("watched").exists() {
        std::thread::yield_now();
    }
    terminal.keys(&format!("/tasks front {id}\r"));
    terminal.shows("its work is shown as it happens");
    stage.write("there", "");
    terminal.until("its question, without being looked for", |screen| {
        screen.contains("Write wants to create note.txt") && screen.contains("the agent general-purpose asks")
    });
    assert!(!terminal.screen().contains("asks something: /tasks"), "it does not wait to be looked at");
    terminal.keys(DOWN); // it came while something was typed
    terminal.until("that it can be answered", |screen| screen.contains("Esc says no"));
    terminal.keys("y");
    terminal.until("its end", |screen| {
        let followed = screen.contains("general-purpose: Write note.txt");
        let ended = screen.contains("general-purpose has ended: watch the file");
        followed && ended && screen.contains("I heard of it.") && !screen.is_working()
    });
    assert_eq!(std::fs::read_to_string(stage.project().join("note.txt")).unwrap(), "green\n");
    terminal.leave();
}

/// AGENT-1: the colour of a definition is that of the agent's type where the agent has a row; without colours it has none.
#[test]
fn an_agent_has_the_colour_of_its_definition() {
    let stage = Stage::new(&several_script("painter"));
    let definition = "---\nname: painter\ndescription: Paints.\ncolor: purple\n---\nYou paint.";
    std::fs::create_dir_all(stage.config().join("agents")).unwrap();
    std::fs::write(stage.config().join("agents/painter.md"), definition).unwrap();
    for (no_color, expected) in [("", vt100::Color::Idx(5)), ("1", vt100::Color::Default)] {
        let _ = std::fs::remove_file(stage.project().join("there"));
        let mut command = stage.cairn();
        command.args(["--permission-mode", "bypassPermissions"]).env("TERM", "xterm-256color");
        if !no_color.is_empty() {
            command.env("NO_COLOR", no_color);
        }
        let mut terminal = Terminal::open(&command, 80, 24);
        terminal.until("a prompt", |screen| screen.has_prompt());
        terminal.say("paint");
        terminal.until("both rows", |screen| screen.count("    painter: ") == 2);
        assert_eq!(colours_of(&terminal, "painter"), [expected, expected]);
        stage.write("there", "");
        terminal.rests("Both have painted.");
        terminal.keys("/tasks\r");
        terminal.until("the list", |screen| screen.count("painter: paint ") == 2);
        assert_eq!(colours_of(&terminal, "painter: paint "), [expected, expected]);
        terminal.leave();
    }
}

/// A model that sends out two agents of this type at once, which wait for a file.
fn several_script(kind: &str) -> String {
    let one = |number: usize| {
        format!(
            r#"{{ tool = "Agent", input = {{ description = "paint {number}", prompt = "Watch it.", subagent_type = "{kind}" }} }}"#
        )
    };
    let wait = "until [ -e {{ project }}/there ]; do sleep 0.05; done";
    format!(
        r#"
        [[rule]]
        when = {{ user = "^Watch it", tool = "Bash" }}
        say = "Done."
        [[rule]]
        when = {{ user = "^Watch it" }}
        call = [{{ tool = "Bash", input = {{ command = "{wait}" }} }}]
        [[rule]]
        when = {{ tool = "Agent" }}
        say = "Both have painted."
        [[rule]]
        call = [{}, {}]
        "#,
        one(1),
        one(2)
    )
}

/// The colours of the first letters of this text, wherever a row of the screen has it.
fn colours_of(terminal: &Terminal, text: &str) -> Vec<vt100::Color> {
    let screen = terminal.emulated();
    let (_, columns) = screen.size();
    let rows = screen.rows(0, columns).enumerate();
    let found = rows.filter_map(|(row, line)| Some((row, line.find(text)?)));
    let cell = |(row, column): (usize, usize)| screen.cell(u16::try_from(row).unwrap(), u16::try_from(column).unwrap());
    found.filter_map(cell).map(vt100::Cell::fgcolor).collect()
}
