//! What the user removed: it is learnt again when the user says it again, and not because anybody else does.

use memory::changes::{RunHead, USER};
use memory::quoted_sentences::Register;
use memory::store::{IndexUpkeep, Store};

use crate::learning::{TASK, learning_requests, settled};
use crate::stage::{Stage, say};

/// Saves when deploys are, with the sentence as the user's own, whoever said it.
const QUOTES: &str = r##"
    [[rule]]
    when = { visible = "Beside the conversation, write down", result = "Saved|not saved" }
    say = "Done."
    [[rule]]
    when = { visible = ["Beside the conversation, write down", "The directory is `(?P<dir>[^`]+)`", "We deploy on Mondays"] }
    call = [{ tool = "Write", input = { file_path = "{{ dir }}/deploys.md", content = "---\nname: Deploys\ndescription: When this project is deployed\ntype: project\n---\n\nThe project is deployed on Mondays.\n\n> \"We deploy on Mondays\", 2026-11-16\n" } }]
    [[rule]]
    when = { visible = "Beside the conversation, write down" }
    say = "Nothing to save."
    [[rule]]
    when = { user = "calendar" }
    say = "We deploy on Mondays."
    [[rule]]
    when = { user = "notes", missing = "Mondays" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/notes.txt" } }]
    [[rule]]
    say = "Good."
"##;

/// Removes a memory as the user's own command does.
fn forget(stage: &Stage, path: &str, at: jiff::Timestamp) {
    let changes = stage.home().changes(&stage.memories());
    let head =
        RunHead { agent: USER.into(), session: None, model: None, at: at.to_string(), directory: stage.memories() };
    let mut run = changes.recorder("forget".into(), head);
    let text = std::fs::read_to_string(stage.memories().join(path)).unwrap();
    let store = Store::open(stage.memories(), IndexUpkeep::Kept).unwrap();
    store.keeping(move |change| run.keep(change)).remove(path).unwrap();
    changes.tombstones().plant(path, &text, Some(at.to_string())).unwrap();
}

/// Takes back what was learnt last.
fn take_back(stage: &Stage, path: &str, at: jiff::Timestamp) {
    let changes = stage.home().changes(&stage.memories());
    let run = changes.runs().remove(0).id;
    changes.undo(&run, Some(path), &Store::open(stage.memories(), IndexUpkeep::Kept).unwrap(), at).unwrap();
}

/// TOMB-1, ORIGIN-1: after the user removed a memory or took it back, what the user says anew is learnt, with the new sentence;
/// what only the model says, a file says, or was said before the removal, is not, whatever a model saves as the user's words.
#[tokio::test]
async fn what_was_removed_is_learnt_again_only_from_the_user() {
    let said = [
        ("We deploy on Mondays.", true),
        ("By the way: from now on we deploy on Mondays again.", true),
        ("What does the calendar say?", false),
        ("What do the notes say?", false),
        ("Hello again.", false),
    ];
    let removals = [forget as fn(&Stage, &str, jiff::Timestamp), take_back];
    for (remove, (anew, is_learnt)) in removals.into_iter().flat_map(|remove| said.map(|said| (remove, said))) {
        let stage = Stage::new(QUOTES).await;
        std::fs::write(stage.project().join("notes.txt"), "We deploy on Mondays.\n").unwrap();
        let file = stage.memories().join("deploys.md");
        let mut agent = stage.learning_agent(None).await;
        say(&mut agent, "We deploy on Mondays.").await;
        settled(&mut agent).await;
        assert!(std::fs::read_to_string(&file).unwrap().contains("We deploy on Mondays"));
        stage.wait(3_600);
        remove(&stage, "deploys.md", agent.session().world().now());
        stage.wait(3_600);
        let before = learning_requests(&stage).len();
        say(&mut agent, anew).await;
        settled(&mut agent).await;
        let requests = stage.simulator.requests();
        let sent: Vec<String> =
            learning_requests(&stage)[before..].iter().map(|at| requests[*at].to_string()).collect();
        let last = sent.last().unwrap();
        assert!(last.contains(TASK) && last.contains(anew), "{anew}: {last}");
        assert_eq!(file.exists(), is_learnt, "{anew}: {last}");
        let refused = "the user removed deploys.md, which says the same, and does not want it back";
        assert_eq!(last.contains(refused), !is_learnt, "{anew}: {last}");
        let changes = stage.home().changes(&stage.memories());
        if is_learnt {
            let memory = memory::Memory::read(&files::Root::open(stage.memories()).unwrap(), "deploys.md").unwrap();
            let quotations = Register::in_folder(changes.folder()).read();
            let spoken = quotations.of(&memory.body).unwrap();
            assert!(anew.contains(spoken.sentence.trim_end_matches('.')), "{anew}: {spoken:?}");
            let removed = changes.tombstones().all().pop().unwrap().at.unwrap().parse().unwrap();
            assert!(spoken.time() > Some(removed), "{anew}: {spoken:?}");
        }
    }
}
