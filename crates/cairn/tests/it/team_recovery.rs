//! Team memory when programs are killed, servers move and folders cannot be seen: nobody's newer text is lost by it.

use std::path::Path;
use std::process::Command;

use crate::stage::{Ran, bare, run};
use crate::team::{Checkout, Server};

const REMOTE: &str = "git@github.com:acme/rocket.git";

/// Two members of one server, the first its admin.
fn two(root: &Path) -> (Server, Checkout, Checkout) {
    let server = Server::start(&root.join("server"));
    let (ada, bob) = (Checkout::new(root, "ada", REMOTE), Checkout::new(root, "bob", REMOTE));
    ada.team(&["join", &server.address, "--invitation", &server.invitation, "--name", "Ada"]);
    let invited = ada.team(&["invite"]).stdout;
    let code = invited.split("--invitation ").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(bob.team(&["join", &server.address, "--invitation", code, "--name", "Bob"]).code, Some(0));
    (server, ada, bob)
}

/// The program, under a limit of the shell's.
fn limited(checkout: &Checkout, limit: &str, args: &[&str]) -> Ran {
    let mut bounded = Command::new("bash");
    let program = bare(&checkout.home.join("project"), &checkout.home.join(".claude"));
    bounded.current_dir(checkout.home.join("project")).env_clear();
    bounded.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    bounded.arg("-c").arg(format!("ulimit {limit}; exec \"$0\" team \"$@\"")).arg(program.get_program()).args(args);
    run(&mut bounded)
}

/// TEAM-9: a pull that the system kills in the middle makes no edits of what it took: the newer texts of others stay.
#[test]
fn a_pull_that_is_killed_overwrites_nobody() {
    let root = tempfile::tempdir().unwrap();
    let (server, ada, bob) = two(root.path());
    let names: Vec<String> = (0..8).map(|number| format!("a{number}.md")).collect();
    for name in &names {
        ada.write(name, "one\n");
    }
    ada.write("long.md", &"words ".repeat(30_000));
    ada.team(&["push"]);
    // A file that is longer than the limit ends the process; those before it in order are there by then.
    let killed = limited(&bob, "-f 100", &["pull"]);
    assert_eq!(killed.code, None, "{killed:?}");
    assert!(bob.read("a0.md").is_some() && bob.read("long.md").is_none());
    for name in &names {
        ada.write(name, "two\n");
    }
    ada.team(&["push"]);
    let pushed = bob.team(&["push"]);
    assert!(!pushed.stdout.contains("sent") && !pushed.stderr.contains("both sides"), "{pushed:?}");
    ada.team(&["pull"]);
    for name in &names {
        assert_eq!((ada.read(name).unwrap(), bob.read(name).unwrap()), ("two\n".to_owned(), "two\n".to_owned()));
    }
    assert_eq!(server.stop(), Some(0));
}

/// TEAM-9: a server that moved to another address is the same team: who was behind takes, and overwrites nobody.
#[test]
fn who_was_behind_when_the_server_moved_overwrites_nobody() {
    let root = tempfile::tempdir().unwrap();
    let (server, ada, bob) = two(root.path());
    ada.write("a.md", "one\n");
    ada.team(&["push"]);
    bob.team(&["pull"]);
    ada.write("a.md", "two\n");
    ada.team(&["push"]);
    let token = bob.team(&["token"]).stdout;
    assert_eq!(server.stop(), Some(0));
    let home = root.path().join("server");
    let mut command = bare(&home, &home.join(".claude"));
    let server = Server::again(command.args(["team", "serve", "--listen", "127.0.0.1:0"]));
    assert_eq!(bob.team(&["join", &format!("{}/", server.address), "--token", token.trim()]).code, Some(0));
    let pushed = bob.team(&["push"]);
    assert!(pushed.stdout.contains("took     a.md") && !pushed.stdout.contains("sent"), "{pushed:?}");
    assert_eq!(bob.read("a.md").unwrap(), "two\n");
    assert_eq!(server.stop(), Some(0));
}

/// TEAM-9: with too few files that may be open at once, what cannot be listed is not planned to be deleted.
#[test]
fn too_many_open_files_delete_nothing() {
    let root = tempfile::tempdir().unwrap();
    let (server, ada, _bob) = two(root.path());
    for folder in ["x", "x/y", "x/y/z"] {
        std::fs::create_dir_all(ada.folder().join(folder)).unwrap();
        ada.write(&format!("{folder}/a.md"), "one\n");
    }
    ada.write("b.md", "one\n");
    ada.team(&["push"]);
    let answers =
        (8..32).map(|most| limited(&ada, &format!("-n {most}"), &["status"])).filter(|ran| ran.code == Some(0));
    let answers: Vec<Ran> = answers.collect();
    assert!(!answers.is_empty() && answers.iter().all(|ran| !ran.stdout.contains("to delete")), "{answers:?}");
    assert_eq!(server.stop(), Some(0));
}

/// TEAM-9: half a folder is not deleted for all unless it is said to be meant; it can be brought back.
#[test]
fn many_missing_files_are_asked_about() {
    let root = tempfile::tempdir().unwrap();
    let (server, ada, bob) = two(root.path());
    for number in 0..10 {
        ada.write(&format!("{number}.md"), "one\n");
    }
    ada.team(&["push"]);
    bob.team(&["pull"]);
    let remove = || (0..5).for_each(|number| std::fs::remove_file(bob.folder().join(format!("{number}.md"))).unwrap());
    remove();
    let pushed = bob.team(&["push"]);
    assert!(!pushed.stdout.contains("deleted") && pushed.stderr.contains("5 files are missing"), "{pushed:?}");
    assert!(bob.team(&["status"]).stdout.contains("missing     0.md"));
    assert!(bob.team(&["pull", "--missing"]).stdout.contains("took     4.md"));
    remove();
    assert!(bob.team(&["push", "--delete"]).stdout.contains("deleted  4.md"));
    assert_eq!(server.stop(), Some(0));
}
