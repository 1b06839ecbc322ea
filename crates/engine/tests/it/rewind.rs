use session::rewind::RewindExtent;
use session::{Fork, Session, World};
use transcript::Block;
use transcript::window::Window;

use crate::stage::{Stage, say};

/// A model that writes a file, reads it, and edits it.
const AUTHOR: &str = r#"
    [[rule]]
    when = { user = "create", missing = "Created" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/new.txt", content = "new\n" } }]
    [[rule]]
    when = { user = "edit", missing = "old" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/old.txt" } }]
    [[rule]]
    when = { user = "edit", missing = "Edited" }
    call = [{ tool = "Edit", input = { file_path = "{{ project }}/old.txt", old_string = "old", new_string = "young" } }]
    [[rule]]
    say = "Done."
"#;

const WIDE: Window = Window { size: 200_000, effective: 180_000 };

async fn worked() -> (Stage, engine::Agent) {
    let stage = Stage::new(AUTHOR).await;
    std::fs::write(stage.project().join("old.txt"), "old\n").unwrap();
    let mut agent = stage.agent(None);
    say(&mut agent, "create it").await;
    say(&mut agent, "edit it").await;
    assert_eq!(files(&stage), (Some("young\n".to_owned()), Some("new\n".to_owned())));
    (stage, agent)
}

/// The file that was there, and the one that was not.
fn files(stage: &Stage) -> (Option<String>, Option<String>) {
    let read = |name: &str| std::fs::read_to_string(stage.project().join(name)).ok();
    (read("old.txt"), read("new.txt"))
}

fn visible(agent: &engine::Agent) -> Vec<String> {
    agent.session().points().into_iter().rev().map(|point| point.text).collect()
}

fn before() -> (Option<String>, Option<String>) {
    (Some("old\n".to_owned()), None)
}

fn after() -> (Option<String>, Option<String>) {
    (Some("young\n".to_owned()), Some("new\n".to_owned()))
}

/// LOG-14: before Write and Edit change a file its content is kept; one can go back to any message of the user.
#[tokio::test]
async fn going_back_brings_back_the_files_as_they_were_at_any_message() {
    let (stage, mut agent) = worked().await;
    let points = agent.session().points();
    assert_eq!(visible(&agent), ["create it", "edit it"]);
    assert_eq!(points.iter().map(|point| point.files).collect::<Vec<_>>(), [1, 2]);
    let rewound = agent.session_mut().rewind(&points[0].line, RewindExtent::Files).unwrap();
    assert_eq!((rewound.files.len(), rewound.failed.len(), rewound.commit), (1, 0, None));
    assert_eq!(files(&stage), (Some("old\n".to_owned()), Some("new\n".to_owned())));
    agent.session_mut().rewind(&points[1].line, RewindExtent::Files).unwrap();
    assert_eq!(files(&stage), before());
    assert_eq!(visible(&agent), ["create it", "edit it"], "the conversation stays");
}

/// LOG-14: the conversation alone goes back, and the model sees nothing of what was taken back.
#[tokio::test]
async fn going_back_takes_the_conversation_alone() {
    let (stage, mut agent) = worked().await;
    let line = agent.session().points()[0].line.clone();
    agent.session_mut().rewind(&line, RewindExtent::Conversation).unwrap();
    assert_eq!((visible(&agent), files(&stage)), (vec!["create it".to_owned()], after()));
    say(&mut agent, "hello").await;
    let sent = stage.simulator.requests().pop().unwrap().to_string();
    assert!(sent.contains("create it") && !sent.contains("edit it"), "{sent}");
}

/// LOG-14: going back can itself be undone, files and conversation, also after the session was closed.
#[tokio::test]
async fn going_back_is_undone_with_its_files() {
    let (stage, mut agent) = worked().await;
    let whole: Vec<Vec<Block>> =
        agent.session().log().view().messages().into_iter().map(|message| message.blocks).collect();
    let first = agent.session().points().pop().unwrap().line;
    agent.session_mut().rewind(&first, RewindExtent::Both).unwrap();
    assert_eq!((visible(&agent).len(), files(&stage)), (0, before()));
    let id = agent.session().id().to_owned();
    drop(agent);
    let mut agent = stage.agent(Some(&id));
    let undone = agent.session_mut().undo_rewind(&WIDE).unwrap().unwrap();
    assert_eq!((undone.files.len(), undone.failed.len(), files(&stage)), (2, 0, after()));
    let again: Vec<Vec<Block>> =
        agent.session().log().view().messages().into_iter().map(|message| message.blocks).collect();
    assert_eq!(again, whole);
    assert!(agent.session_mut().undo_rewind(&WIDE).unwrap().is_none(), "there is no other");
}

/// LOG-14: several are undone one after the other, and what was done in between goes out of sight.
#[tokio::test]
async fn undoing_returns_to_where_going_back_began_whatever_came_since() {
    let (stage, mut agent) = worked().await;
    let points = agent.session().points();
    agent.session_mut().rewind(&points[1].line, RewindExtent::Both).unwrap();
    say(&mut agent, "create it anew").await;
    assert_eq!(
        (visible(&agent), files(&stage)),
        (vec!["create it anew".to_owned()], (Some("old\n".into()), Some("new\n".into())))
    );
    let line = agent.session().points()[0].line.clone();
    agent.session_mut().rewind(&line, RewindExtent::Both).unwrap();
    assert_eq!((visible(&agent).len(), files(&stage)), (0, before()));
    agent.session_mut().undo_rewind(&WIDE).unwrap().unwrap();
    assert_eq!((visible(&agent).len(), files(&stage).1), (1, Some("new\n".to_owned())));
    agent.session_mut().undo_rewind(&WIDE).unwrap().unwrap();
    assert_eq!((visible(&agent), files(&stage)), (vec!["create it".to_owned(), "edit it".to_owned()], after()));
    say(&mut agent, "hello").await;
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

/// LOG-14: what would not fit the window stays hidden, and the files stay with it.
#[tokio::test]
async fn undoing_is_refused_where_the_window_is_too_small() {
    let (stage, mut agent) = worked().await;
    let first = agent.session().points().pop().unwrap().line;
    agent.session_mut().rewind(&first, RewindExtent::Both).unwrap();
    say(&mut agent, "something new").await;
    let narrow = Window { size: 10, effective: 10 };
    assert!(matches!(agent.session_mut().undo_rewind(&narrow), Err(session::Error::WouldNotFit { .. })));
    assert_eq!((visible(&agent), files(&stage)), (vec!["something new".to_owned()], before()));
    assert!(agent.session_mut().undo_rewind(&WIDE).unwrap().is_some());
    assert_eq!(files(&stage), after());
}

/// LOG-14: a file that could not be kept is named, and the others go back all the same.
#[tokio::test]
async fn a_file_that_cannot_go_back_is_named() {
    let (stage, mut agent) = worked().await;
    let first = agent.session().points().pop().unwrap().line;
    let kept = agent.session().path().with_extension("").join("file-history");
    std::fs::remove_dir_all(kept).unwrap();
    let rewound = agent.session_mut().rewind(&first, RewindExtent::Files).unwrap();
    assert_eq!((rewound.files.len(), rewound.failed.len()), (1, 1));
    assert!(rewound.failed[0].0.ends_with("old.txt"));
    assert_eq!(files(&stage), (Some("young\n".to_owned()), None));
}

/// LOG-14: a copy of a session can bring files back too, also when the original is gone.
#[tokio::test]
async fn a_copied_session_brings_files_back() {
    let (stage, agent) = worked().await;
    let path = agent.session().path().to_owned();
    agent.close().await;
    let (mut copy, _) = Session::resume_file(&stage.home(), &stage.project(), &path, Fork::Yes, World::real()).unwrap();
    std::fs::remove_dir_all(path.with_extension("")).unwrap();
    let first = copy.points().pop().unwrap();
    let rewound = copy.rewind(&first.line, RewindExtent::Both).unwrap();
    assert_eq!((rewound.files.len(), rewound.failed), (2, vec![]));
    assert_eq!(files(&stage), before());
    copy.undo_rewind(&WIDE).unwrap().unwrap();
    assert_eq!(files(&stage), after());
}

/// LOG-14: what is said after going back follows the line before what was taken back, as other programs write it; what
/// was taken back can still be had again, here and after a resume.
#[tokio::test]
async fn what_is_said_after_going_back_follows_what_was_before() {
    let (stage, mut agent) = worked().await;
    let first = agent.session().points().remove(0).line;
    let before = agent.session().log().lines().iter().find(|line| line.id.as_ref() == Some(&first)).unwrap();
    let before = before.parent.clone();
    agent.session_mut().rewind(&first, RewindExtent::Conversation).unwrap();
    say(&mut agent, "something else").await;
    let said = agent.session().points().remove(0).line;
    let followed = agent.session().log().lines().iter().find(|line| line.id.as_ref() == Some(&said)).unwrap();
    assert_eq!(followed.parent, before);
    let id = agent.session().id().to_owned();
    agent.close().await;
    let mut agent = stage.agent(Some(&id));
    assert_eq!(visible(&agent), ["create it", "something else"]);
    agent.session_mut().undo_rewind(&WIDE).unwrap().unwrap();
    assert_eq!(visible(&agent), ["create it", "edit it"]);
    say(&mut agent, "and on").await;
    agent.close().await;
    assert_eq!(visible(&stage.agent(Some(&id))), ["create it", "edit it", "and on"]);
}

/// LOG-14: going back to the very beginning leaves a session, and what was in it can be had again.
#[tokio::test]
async fn going_back_to_the_beginning_is_no_empty_session() {
    let (stage, mut agent) = worked().await;
    let first = agent.session().points().pop().unwrap().line;
    agent.session_mut().rewind(&first, RewindExtent::Conversation).unwrap();
    assert!(visible(&agent).is_empty() && !agent.session().log().is_empty());
    say(&mut agent, "anew").await;
    let id = agent.session().id().to_owned();
    agent.close().await;
    let mut agent = stage.agent(Some(&id));
    assert_eq!(visible(&agent), ["anew"]);
    agent.session_mut().undo_rewind(&WIDE).unwrap().unwrap();
    assert_eq!(visible(&agent), ["create it", "edit it"]);
}

/// A model that looks into a folder with instructions of its own, and can be asked for a summary.
const LOOKS: &str = r#"
    [[rule]]
    when = { visible = "about to leave the window" }
    say = "<summary>Notes were read.</summary>"
    [[rule]]
    when = { user = "look", missing = "note text" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/sub/note.txt" } }]
    [[rule]]
    say = "Done."
"#;

/// An agent with instructions, a folder with its own, and a memory.
async fn knowing() -> (Stage, engine::Agent) {
    let stage = Stage::new(LOOKS).await;
    std::fs::write(stage.project().join("CLAUDE.md"), "Use tabs.").unwrap();
    std::fs::create_dir(stage.project().join("sub")).unwrap();
    std::fs::write(stage.project().join("sub/CLAUDE.md"), "In sub, use spaces.").unwrap();
    std::fs::write(stage.project().join("sub/note.txt"), "note text\n").unwrap();
    stage.remember("deploys.md", "Deploys to production need two approvals", "Since March two people sign off.");
    let agent = stage.knowing_agent(None, false).await;
    (stage, agent)
}

fn sent(stage: &Stage) -> String {
    stage.simulator.requests().pop().unwrap()["messages"].to_string()
}

/// LOG-14, INSTR-3, RECALL-5: what came with a branch that was taken back comes again when it is needed again: memories
/// and the instructions of a folder.
#[tokio::test]
async fn what_came_with_words_taken_back_comes_again() {
    let (stage, mut agent) = knowing().await;
    say(&mut agent, "hello there").await;
    let questions = ["what is needed to deploy to production?", "look at the note"];
    for question in questions {
        say(&mut agent, question).await;
    }
    for part in ["In sub, use spaces.", "two people sign off"] {
        assert!(sent(&stage).contains(part), "{part}");
    }
    let line = agent.session().points()[1].line.clone();
    agent.session_mut().rewind(&line, RewindExtent::Conversation).unwrap();
    say(&mut agent, "thanks for that").await;
    assert!(!sent(&stage).contains("In sub, use spaces.") && sent(&stage).contains("Use tabs."));
    for question in questions {
        say(&mut agent, question).await;
    }
    for part in ["In sub, use spaces.", "two people sign off"] {
        assert_eq!(sent(&stage).matches(part).count(), 1, "{part}");
    }
}

/// LOG-14, COMPACT-4: instructions that came again behind a compaction are there after going back into what it kept, and
/// to what it covers.
#[tokio::test]
async fn instructions_are_there_wherever_one_goes_back_to() {
    let (stage, mut agent) = knowing().await;
    for text in ["one thing", "another thing", "a third thing"] {
        say(&mut agent, text).await;
    }
    let points = agent.session().points();
    let part = engine::context::CompactionReach::UpTo(points[1].line.clone());
    agent.compact(None, part, &Default::default()).await.unwrap().unwrap();
    assert_eq!(agent.session().points().len(), 3, "one can go back to what is covered, too");
    for (line, there, gone) in
        [(&points[0].line, "another thing", "a third thing"), (&points[1].line, "Notes were read.", "another thing")]
    {
        agent.session_mut().rewind(line, RewindExtent::Conversation).unwrap();
        say(&mut agent, "and now?").await;
        let request = sent(&stage);
        assert!(request.contains("Use tabs.") && request.contains(there), "{request}");
        assert!(!request.contains(gone), "{request}");
    }
    agent.session_mut().rewind(&points[2].line, RewindExtent::Conversation).unwrap();
    say(&mut agent, "from the start").await;
    let request = sent(&stage);
    assert!(request.contains("Use tabs.") && !request.contains("Notes were read.") && !request.contains("one thing"));
}

/// NOTES-5, LOG-14: notes do not tell of what was taken back: after going back they are written anew.
#[tokio::test]
async fn notes_forget_what_was_taken_back() {
    let script = r##"
        [[rule]]
        name = "notes"
        when = { visible = ["Bring the session notes up to date[^<]*They are in (?P<path>[^,]+),", "(?s).*The stone is (?P<stone>\\w+)"] }
        call = [{ tool = "Edit", input = { file_path = "{{ path }}", old_string = "what comes next_\n", new_string = "what comes next_\nNoted: {{ stone }}.\n" } }]
        [[rule]]
        say = "I listen."
    "##;
    let mut stage = Stage::new(script).await;
    stage.layers.notes_share = None;
    let mut agent = stage.agent(None);
    let said = |stone: &str| format!("The stone is {stone} {}", "and heavy ".repeat(4_500));
    say(&mut agent, &said("granite")).await;
    agent.settled().await.unwrap();
    let notes = |agent: &engine::Agent| std::fs::read_to_string(agent.notes_path()).unwrap();
    assert!(notes(&agent).contains("Noted: granite."), "{}", notes(&agent));
    let point = agent.session().points()[0].line.clone();
    agent.session_mut().rewind(&point, session::rewind::RewindExtent::Conversation).unwrap();
    say(&mut agent, &said("slate")).await;
    agent.settled().await.unwrap();
    say(&mut agent, &said("slate")).await;
    agent.settled().await.unwrap();
    let text = notes(&agent);
    assert!(text.contains("Noted: slate.") && !text.contains("granite"), "{text}");
}
