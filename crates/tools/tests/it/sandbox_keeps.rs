//! What a command in the sandbox cannot lose: whatever was there before is there after, or was changed by the command.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;
use tools::sandbox::Confinement;

use super::place::Place;
use super::sandbox::{Confined, program};
use crate::skipped::skipped_on_this_machine;

/// The guarded paths that a command made, relative to the project.
async fn made(confined: &Confined, command: &str) -> (Vec<PathBuf>, String) {
    let output = confined.place.call("Bash", json!({"command": command})).await;
    let relative = |path: &Path| path.strip_prefix(confined.root()).unwrap().to_owned();
    let mut made: Vec<PathBuf> = output.made.iter().map(|made| relative(&made.path)).collect();
    made.sort();
    (made, output.text())
}

/// A place with a repository in a repository, and other guarded things in folders.
fn furnish(place: &Place) {
    for name in
        [".git/config", "sub/.git/config", "sub/.git/hooks/x", "packages/a/.vscode/tasks.json", "packages/a/.envrc"]
    {
        place.write(name, format!("{name} as it was\n"));
    }
    place.write("sub/file", "plain\n");
}

/// SANDBOX-2: a repository whose parent is renamed, moved or exchanged was not made, and stays read-only.
#[tokio::test]
async fn what_was_moved_was_not_made() {
    let Some(confined) = Confined::new().await else { return };
    furnish(&confined.place);
    symlink("../../sub/file", confined.place.path("packages/a/.mcp.json")).unwrap();
    let command = "mv packages/a packages/b && mv sub sub2 && mkdir -p deep/er && mv sub2 deep/er/sub3 && \
        mv packages deep/ && ! echo bad > deep/er/sub3/.git/hooks/x && ! rm -rf deep/packages/b/.vscode && echo done";
    let (made, said) = made(&confined, command).await;
    assert!(said.contains("done"), "{said}");
    // It leads nowhere from there, which is another thing than what it was.
    assert_eq!(made, [Path::new("deep/packages/b/.mcp.json")], "{said}");
    for (name, before) in [
        ("deep/er/sub3/.git/hooks/x", "sub/.git/hooks/x"),
        ("deep/er/sub3/.git/config", "sub/.git/config"),
        ("deep/packages/b/.vscode/tasks.json", "packages/a/.vscode/tasks.json"),
        ("deep/packages/b/.envrc", "packages/a/.envrc"),
    ] {
        assert_eq!(confined.place.content(name), format!("{before} as it was\n"));
    }
}

/// SANDBOX-2: what only now has a guarded name is told about, also when it was there before under another one, and also
/// when it is what a link leads to; the link itself cannot be replaced.
#[tokio::test]
async fn what_became_guarded_is_told_about() {
    let Some(confined) = Confined::new().await else { return };
    let place = &confined.place;
    furnish(place);
    place.write("fixtures/repository/hooks/pre-commit", "evil\n");
    place.write("real/repository/config", "as it was\n");
    std::fs::create_dir_all(place.path("linked")).unwrap();
    symlink("../real/repository", place.path("linked/.git")).unwrap();
    symlink("hooks", place.path(".husky")).unwrap();
    let (found, said) = made(&confined, "mv fixtures/repository fixtures/.git").await;
    assert_eq!(found, [Path::new("fixtures/.git")], "{said}");
    let (found, said) = made(&confined, "! echo bad > real/repository/config && touch linked/x").await;
    assert_eq!(found, Vec::<PathBuf>::new(), "{said}");
    let (found, said) =
        made(&confined, "rm -f linked/.git .husky; ln -sfn other linked/.git; mv linked renamed; mv renamed linked")
            .await;
    assert_eq!(found, Vec::<PathBuf>::new(), "{said}");
    assert_eq!(std::fs::read_link(place.path("linked/.git")).unwrap(), Path::new("../real/repository"), "{said}");
    let (found, said) = made(&confined, "mv real moved && mkdir -p real/repository/hooks hooks && echo done").await;
    assert!(said.contains("done"), "{said}");
    assert_eq!(found, [".husky", "linked/.git"].map(Path::new), "{said}");
    assert_eq!(place.content("moved/repository/config"), "as it was\n");
}

/// SANDBOX-2: a folder that was made unreadable hides nothing from the next look, and opens nothing to the next command.
#[tokio::test]
async fn an_unreadable_folder_loses_and_opens_nothing() {
    let Some(confined) = Confined::new().await else { return };
    let place = &confined.place;
    furnish(place);
    for mode in ["311", "000", "444", "111", "333"] {
        for folder in [".", "sub", "packages/a"] {
            if folder == "." && ["000", "444"].contains(&mode) {
                continue; // nothing could be started there
            }
            confined.done(&format!("chmod {mode} {folder}")).await;
            let writes = format!(
                "cd {}; chmod 755 {folder}; echo bad > sub/.git/hooks/x; echo bad > .git/config; echo bad > packages/a/.envrc; \
                 touch sub/.git/hooks/y; chmod {mode} {folder}; echo done",
                confined.root().display()
            );
            let (made, said) = made(&confined, &writes).await;
            assert!(said.contains("done"), "{said}");
            assert_eq!(made, Vec::<PathBuf>::new(), "{mode} {folder}: {said}");
            let open = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
            open(&place.path(folder));
            for name in [".git/config", "sub/.git/hooks/x", "packages/a/.envrc", "packages/a/.vscode/tasks.json"] {
                assert_eq!(place.content(name), format!("{name} as it was\n"), "{mode} {folder}");
            }
            assert!(!place.path("sub/.git/hooks/y").exists(), "{mode} {folder}");
        }
    }
    // What is made in one is seen all the same.
    let (made, said) = made(&confined, "mkdir -p shut/in/.husky && chmod 000 shut/in shut").await;
    assert_eq!(made, [Path::new("shut/in/.husky")], "{said}");
}

/// SANDBOX-2: a folder that nobody of us may list is read-only as a whole, whatever else may be done in it.
#[tokio::test]
async fn a_folder_that_cannot_be_listed_is_read_only() {
    if !rustix::process::geteuid().is_root() {
        return skipped_on_this_machine("only root can give a folder to somebody else");
    }
    const SOMEBODY: u32 = 4242;
    let Some(confined) = Confined::new().await else { return };
    let place = &confined.place;
    let mode = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let theirs = |name: &str, bits| {
        std::os::unix::fs::chown(place.path(name), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        mode(&place.path(name), bits);
    };
    place.write("drop/unknown/.git/hooks/x", "as it was\n");
    place.write("shown/inside/.git/hooks/x", "as it was\n");
    for name in ["drop/unknown/.git/hooks/x", "drop/unknown/.git/hooks", "drop/unknown/.git", "drop/unknown"] {
        theirs(name, 0o777);
    }
    theirs("drop", 0o733);
    theirs("shown", 0o744);
    let command = "echo bad > drop/unknown/.git/hooks/x; touch drop/new drop/unknown/new; mkdir -p drop/.git; touch here; \
        mv drop elsewhere; true";
    let (made, said) = made(&confined, command).await;
    assert_eq!(made, Vec::<PathBuf>::new(), "{said}");
    assert!(place.path("here").exists());
    assert_eq!(place.content("drop/unknown/.git/hooks/x"), "as it was\n");
    assert_eq!(place.content("shown/inside/.git/hooks/x"), "as it was\n");
    assert!(!place.path("drop/new").exists() && !place.path("drop/unknown/new").exists(), "{said}");
}

/// SANDBOX-2: what lies so deep that no path leads there is held with what is above it.
#[tokio::test]
async fn what_is_too_deep_for_a_path_is_told_about_and_then_held() {
    let Some(confined) = Confined::new().await else { return };
    let name = "d".repeat(200);
    let dig = format!(
        "for i in $(seq 25); do mkdir {name} 2>/dev/null; cd {name} || exit; done; mkdir -p .git && echo made > .git/x"
    );
    let (found, said) = made(&confined, &dig).await;
    assert_eq!(found.len(), 1, "{said}");
    assert!(found[0].components().count() > 15 && !found[0].ends_with(".git"), "{found:?}");
    let (found, said) = made(&confined, &dig.replace("echo made", "echo bad")).await;
    assert!(said.contains("Read-only file system"), "{said}");
    assert_eq!(found, Vec::<PathBuf>::new());
}

/// SANDBOX-2: no program is made that runs as its group either.
#[tokio::test]
async fn no_program_is_made_that_runs_as_its_group() {
    let Some(confined) = Confined::new().await else { return };
    confined.place.write("tool", "#!/bin/sh\n");
    for command in ["chmod g+s tool", "chmod 2755 tool", "chmod u+s tool", "install -m 2755 tool other"] {
        let said = confined.failed(command).await;
        assert!(said.contains("not permitted"), "{command}: {said}");
    }
    assert_eq!(std::fs::metadata(confined.place.path("tool")).unwrap().permissions().mode() & 0o7000, 0);
    confined.done("chmod 1755 tool && mkdir -p folder && chmod 755 tool").await;
}

/// SANDBOX-2: of what only root may read, root's commands see nothing; what is named or worked in, they do.
#[tokio::test]
async fn what_only_root_may_read_is_hidden_from_its_commands() {
    if !rustix::process::geteuid().is_root() {
        return skipped_on_this_machine("only root has what only root may read");
    }
    let find = "find /etc /var /opt /srv /boot /usr/local -xdev -type f -user root ! -perm -004 2>/dev/null";
    let output = std::process::Command::new("sh").args(["-c", find]).output().unwrap();
    let secrets = String::from_utf8(output.stdout).unwrap();
    assert!(secrets.contains("/etc/shadow"), "{secrets}");
    let with_own = |confinement: Confinement| Confinement { readable: vec!["/etc/shadow".into()], ..confinement };
    for (named, shadow) in [(false, 0), (true, 1)] {
        let confined = if named { Confined::with(with_own).await } else { Confined::new().await };
        let Some(confined) = confined else { return };
        confined.place.write(".env", "own\n");
        std::fs::set_permissions(confined.place.path(".env"), std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(confined.done("cat .env").await, "own");
        let read: Vec<String> =
            secrets.lines().map(|path| format!("cat '{path}' >/dev/null 2>&1 && echo '{path}'")).collect();
        let said = confined.done(&format!("{}; echo end; cat /etc/passwd > /dev/null", read.join("; "))).await;
        let (read, _) = said.split_once("end").unwrap();
        assert_eq!(read.lines().count(), shadow, "{read}");
    }
}

/// SANDBOX-2: a command moves the session's directory within the working directories, and nowhere else.
#[tokio::test]
async fn a_confined_command_moves_the_directory_only_where_it_works() {
    let Some(confined) = Confined::new().await else { return };
    let place = &confined.place;
    place.write("sub/file", "");
    symlink("/etc", place.path("link")).unwrap();
    confined.done("cd sub").await;
    assert_eq!(place.scope.directory(), place.path("sub"));
    let link = place.path("link");
    for command in ["cd /usr", "cd /tmp", &forged("/etc"), &forged("/root"), &forged(link.to_str().unwrap())] {
        let said = confined.done(command).await;
        assert_eq!(place.scope.directory(), place.path("sub"), "{command}");
        assert!(said.contains(&format!("the next command starts in {} again", place.path("sub").display())), "{said}");
    }
}

/// A command that reports a directory in which it never was.
fn forged(path: &str) -> String {
    format!("file=$(trap -p EXIT | grep -o '/tmp/.directory-[0-9-]*'); trap \"echo {path} > $file\" EXIT")
}

/// SANDBOX-2: with the whole network open, sockets with a path or a name, and those to the machine below, stay shut.
#[tokio::test]
async fn an_open_network_opens_no_sockets_of_this_computer() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    use tools::sandbox::{Network, Sockets};
    let Some(python) = program("python3") else { return };
    for (sockets, opens) in [(Sockets::None, "no"), (Sockets::All, "yes")] {
        let all = |confinement| Confinement { network: Network::All, sockets, ..confinement };
        let Some(confined) = Confined::with(all).await else { return };
        let name = format!("cairn-open-{}-{opens}", std::process::id());
        let _by_path = UnixListener::bind(confined.place.path("socket")).unwrap();
        let _by_name = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let script = format!(
            "import socket\n\
             def opens(what):\n    try: what(); return 'yes'\n    except OSError: return 'no'\n\
             print(opens(lambda: socket.socket(socket.AF_UNIX).connect('socket')), \
             opens(lambda: socket.socket(socket.AF_UNIX).connect('\\0{name}')), \
             opens(lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)), \
             opens(lambda: socket.socket(socket.AF_INET)))\n"
        );
        confined.place.write("try.py", script);
        assert_eq!(confined.done(&format!("{python} try.py")).await, format!("{opens} {opens} no yes"));
    }
}
