//! Commands that may only look, on the kernel that is there: ways around the wall, one by one, and what must go on working.

use std::path::Path;

use serde_json::json;
use tools::permission::{ConfinementLevel, Decision, Mode, ReadOnlyView, Rights, Rules, Situation, decide};
use tools::sandbox::SandboxExit;
use tools::{Access, PRINTED_NOTHING, Scope, Subject, ToolCall, run_all, standard};

use super::looked::{Stage, outside, tells_a_secret};
use super::place::{guard, is_running};
use super::sandbox::program;

/// Lets a Python script be tried: `call` is a call of the system by number, `said` what came of it.
const PYTHON: &str = "
import ctypes, fcntl, os, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
guard = int(os.environ['GUARD'])
def call(*words):
    return libc.syscall(*[ctypes.c_long(word) if isinstance(word, int) else word for word in words])
def tried(what):
    try:
        print('tried', what())
    except BaseException as error:
        print('tried', error)
";

impl Stage {
    /// Runs a Python script whose parent's parent is the guard, and checks that it changed nothing outside.
    async fn python(&mut self, script: &str) -> Option<String> {
        program("python3")?;
        let before = self.picture();
        std::fs::create_dir_all(self.scope.temporary()).unwrap();
        std::fs::write(self.scope.temporary().join("try.py"), format!("{PYTHON}{script}")).unwrap();
        let path = self.scope.temporary().join("try.py");
        let said = self.look(&format!("export GUARD=$PPID; /usr/bin/env python3 {}", path.display())).await;
        assert!(said.contains("tried"), "{said}");
        self.check(&before, script);
        Some(said)
    }
}

/// SEC-3: a pair of sockets is no way to a socket with a name.
#[tokio::test]
async fn a_pair_of_sockets_sends_nothing_outside() {
    let Some(mut stage) = Stage::new().await else { return };
    stage
        .python(
            "
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    for address in ('datagram', 'stream', '\\0' + os.environ['ABSTRACT'] + '-datagram'):
        def send():
            one, other = socket.socketpair(socket.AF_UNIX, kind)
            return one.sendto(b'hello', address)
        def connect():
            one, other = socket.socketpair(socket.AF_UNIX, kind)
            one.connect(address)
            return one.send(b'hello')
        tried(send)
        tried(connect)
",
        )
        .await;
}

/// SEC-3: through netlink the kernel is asked, and nobody else.
#[tokio::test]
async fn netlink_reaches_the_kernel_alone() {
    let Some(stage) = Stage::new().await else { return };
    if program("python3").is_none() {
        return;
    }
    let said = stage
        .look(
            "python3 -c '
import socket
for protocol in range(32):
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        print(\"opened\", protocol)
    except OSError as error:
        pass
'",
        )
        .await;
    // Routes and interfaces, and what `ss` asks for.
    assert!(
        said.starts_with("opened 0") && said.lines().all(|line| ["opened 0", "opened 4"].contains(&line)),
        "{said}"
    );
}

/// SEC-3: nobody outside is made to wait longer by a command that looks.
#[tokio::test]
async fn priorities_outside_stay_as_they_are() {
    let Some(mut stage) = Stage::new().await else { return };
    stage
        .python(
            "
for which in range(4):
    for who in (0, os.getuid(), guard, int(os.environ['VICTIM']), os.getppid()):
        tried(lambda: call(141, which, who, 9))
        tried(lambda: call(251, which, who, (2 << 13) | 6))
",
        )
        .await;
    let victim = stage.victim.id();
    let (io, own) = (outside(Path::new("/"), &format!("ionice -p {victim}")), stage.look("ionice -p $$").await);
    assert!(io.starts_with("none"), "{io}");
    assert!(own.starts_with("none"), "{own}");
    assert_eq!(stage.look("echo $(($(nice -n 3 nice) - $(nice)))").await, "3", "its own priority may be lowered");
}

/// SEC-3: the devices that every command is given are everybody's, and stay as they are.
#[tokio::test]
async fn devices_stay_as_they_are() {
    let Some(mut stage) = Stage::new().await else { return };
    let before = stage.picture();
    let said = stage
        .look("for d in /dev/null /dev/zero /dev/full; do chmod 600 $d; touch $d; touch -d @1 $d; chown 1 $d; done; echo x > /dev/null && echo written; head -c 3 /dev/zero | wc -c")
        .await;
    // Put back before anything is claimed: others need them.
    outside(Path::new("/"), "for d in null zero full; do [ $(stat -c %a /dev/$d) = 666 ] || chmod 666 /dev/$d; done");
    assert!(said.ends_with("written\n3"), "{said}");
    stage.check(&before, "chmod and touch of devices");
}

/// SEC-3: a command does not stop its guard, and leaves nobody behind.
#[tokio::test]
async fn a_guard_is_not_stopped_by_its_command() {
    let Some(mut stage) = Stage::new().await else { return };
    for (index, way) in [
        "kill -9 $PPID; kill -9 -$PPID; kill -STOP $PPID",
        "for s in $(seq 1 64); do kill -$s $PPID; done",
        "for p in $PPID $VICTIM $TEST; do kill -9 $p; kill -STOP $p; kill -9 -$p; done",
        // Whoever asks to be traced is, by its parent.
        "exec perl -e 'syscall(101, 0, 0, 0, 0); kill STOP => $$; fork; sleep 60'",
        "python3 -c 'import os; os.kill(os.getppid(), 9)' & python3 -c 'import os; os.killpg(int(os.environ[\"GUARD\"]), 9)'",
    ]
    .iter()
    .enumerate()
    {
        let before = stage.picture();
        let sleep = format!("sleep 97.00{index}");
        let own = super::place::marked(&sleep);
        let command = format!("{}; export GUARD=$PPID; setsid {own} & {way}; echo end", stage.variables());
        let output = stage.look_for(&command, 10_000).await;
        assert!(!output.text().contains("was lost"), "{way}: {}", output.text());
        assert!(!is_running(&sleep), "{way}");
        stage.check(&before, way);
    }
}

/// SEC-3: nor by way of a descriptor.
#[tokio::test]
async fn a_guard_is_not_stopped_through_a_descriptor() {
    let Some(mut stage) = Stage::new().await else { return };
    for way in [
        // A directory of /proc stands for a process.
        "tried(lambda: call(424, os.open(f'/proc/{guard}', os.O_RDONLY | os.O_DIRECTORY), 9, 0, 0))",
        "tried(lambda: call(424, os.pidfd_open(guard), 9, 0, 0))",
        // Whoever owns a descriptor hears of it by a signal.
        "
def owned(target):
    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, target)
    fcntl.fcntl(reader, 10, 9)
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(writer, b'x')
for target in (guard, -guard, int(os.environ['VICTIM'])):
    tried(lambda: owned(target))
",
        "
def owned():
    reader, writer = os.pipe()
    fcntl.fcntl(reader, 15, struct.pack('ii', 1, guard))
    fcntl.fcntl(reader, 10, 9)
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(writer, b'x')
tried(owned)
",
        "
def owned(request):
    one, other = socket.socketpair()
    fcntl.ioctl(one, request, struct.pack('i', guard))
    fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    other.send(b'x')
tried(lambda: owned(0x8901))
tried(lambda: owned(0x8902))
",
    ] {
        if let Some(said) = stage.python(way).await {
            assert!(!said.contains("was lost"), "{way}: {said}");
        }
    }
}

/// SEC-3: what a command makes of its own temporary folder harms nobody who cleans up after it.
#[tokio::test]
async fn traps_in_the_temporary_folder_catch_nobody() {
    let Some(mut stage) = Stage::new().await else { return };
    let before = stage.picture();
    for trap in [
        "ln -s $OUT /tmp/a; ln -s $H/.ssh /tmp/b; ln -s / /tmp/c; ln -s $P /tmp/d",
        "mkdir -p /tmp/deep/er; ln -s $OUT/file /tmp/deep/er/file; chmod 0 /tmp/deep",
        "for f in /tmp/.directory-*; do rm -f $f; done; trap '' EXIT",
        // The file in which the shell leaves its directory: a pipe, a link, a directory.
        "f=$(trap -p EXIT | grep -o '/tmp/[^ ]*directory[-0-9]*'); trap - EXIT; mkfifo $f",
        "f=$(trap -p EXIT | grep -o '/tmp/[^ ]*directory[-0-9]*'); trap - EXIT; ln -s $H/.ssh/id_rsa $f",
        "f=$(trap -p EXIT | grep -o '/tmp/[^ ]*directory[-0-9]*'); trap - EXIT; mkdir $f",
    ] {
        let said = stage.look(trap).await;
        assert!(!tells_a_secret(&said), "{said}");
        stage.check(&before, trap);
        assert_eq!(stage.scope.directory(), stage.project, "{trap}");
    }
}

/// SEC-3: a limit of time holds, and so do those that commands set themselves.
#[tokio::test]
async fn time_limits_hold_behind_the_wall() {
    let Some(stage) = Stage::new().await else { return };
    let started = std::time::Instant::now();
    let said = stage.look_for("timeout 1 sleep 5; echo $?", 30_000).await.text();
    assert_eq!(said, "124");
    let said = stage.look_for("trap '' TERM; setsid sleep 60 & sleep 60", 500).await.text();
    assert!(said.starts_with("Timed out after 500 ms"), "{said}");
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    assert_eq!(stage.running(), Vec::<String>::new());
}

/// SEC-3: moving about works, inside the working directories.
#[tokio::test]
async fn a_command_that_looks_moves_the_working_directory() {
    let Some(stage) = Stage::new().await else { return };
    stage.look("cd sub").await;
    assert_eq!(stage.scope.directory(), stage.project.join("sub"));
    assert_eq!(stage.look("pwd; cat file").await, format!("{}\nas it was\nx 1", stage.project.join("sub").display()));
    stage.look("cd ..; cd /usr").await;
    assert_eq!(stage.scope.directory(), stage.project.join("sub"), "its word counts for these alone");
}

/// SEC-3: who asks about the machine is told the truth.
#[tokio::test]
async fn processes_and_ports_outside_are_seen() {
    let Some(stage) = Stage::new().await else { return };
    let victim = stage.victim.id().to_string();
    let said = stage.look("ps aux").await;
    assert!(said.lines().any(|line| line.split_whitespace().nth(1) == Some(&victim)), "{said}");
    for command in ["echo $(printf ':%04X' $TCP); cat /proc/net/tcp", "echo :$TCP; ss -tln"] {
        if command.contains("ss ") && program("ss").is_none() {
            continue;
        }
        let said = stage.look(command).await;
        let (port, rest) = said.split_once('\n').unwrap();
        assert!(rest.lines().any(|line| line.contains(&format!("{port} "))), "{port} in {rest}");
    }
}

/// SEC-3: git shows the same in a clone, in a worktree and in a folder of either, and writes nothing down.
#[tokio::test]
async fn git_shows_the_same_behind_the_wall() {
    let Some(mut stage) = Stage::new().await else { return };
    let root = stage.project.join("clone");
    outside(
        &stage.project,
        "git init -q clone && cd clone && mkdir folder && seq 9 > folder/a && echo b > b && git add -A && git commit -qm one && \
         seq 5 > folder/a && git commit -qam two && git worktree add -q ../tree && echo c >> b && echo d > d && git add d && \
         seq 4 > folder/a && echo e > ../tree/e && seq 3 > ../tree/folder/a",
    );
    for place in [root.clone(), root.join("folder"), stage.project.join("tree"), stage.project.join("tree/folder")] {
        for command in [
            "git status",
            "git status --short",
            "git diff",
            "git diff --cached",
            "git log -p",
            "git log --oneline --stat",
            "git show",
            "git blame -s folder/a || git blame -s a",
            "git grep -n 3",
            "git branch -a",
            "git worktree list",
            "git ls-files -s",
            "git describe --always",
        ] {
            let script = format!("cd {} && {{ {command}; }} 2>&1 || echo failed", place.display());
            let expected = outside(&place, &format!("export GIT_OPTIONAL_LOCKS=0; {script}"));
            let before = stage.picture();
            let said = stage.look(&script).await;
            let expected = if expected.is_empty() { PRINTED_NOTHING } else { expected.trim_end_matches('\n') };
            assert_eq!(said, expected, "{command} in {}", place.display());
            stage.check(&before, command);
        }
    }
}

/// SEC-3: from a part of a repository, and from a worktree whose repository lies elsewhere, git sees all that it needs, with the
/// rights that were decided on; what lies beside the repository stays hidden.
#[tokio::test]
async fn git_sees_its_repository_from_a_part_of_it() {
    let Some(stage) = Stage::new().await else { return };
    outside(
        &stage.sibling,
        "git init -q clone && cd clone && mkdir folder && seq 9 > folder/a && echo b > b && git add -A && git commit -qm one && \
         seq 5 > folder/a && git commit -qam two && git worktree add -q ../tree && echo c >> b && seq 4 > folder/a && \
         seq 3 > ../tree/folder/a",
    );
    for name in ["clone", "clone/folder", "tree", "tree/folder"] {
        let place = stage.sibling.join(name);
        let scope = Scope::new(&place, stage.scope.temporary()).with_guard(guard()).with_home(stage.home.clone());
        scope.find_wall().await;
        let directories = scope.directories();
        let rules = Rules::default();
        let situation = Situation {
            mode: Mode::Default,
            rules: &rules,
            directories: &directories,
            directory: &place,
            home: Some(&stage.home),
            confined: ConfinementLevel::No,
            wall: scope.wall(),
            leaves: SandboxExit::No,
        };
        for command in ["git status", "git diff", "git log -p", "git diff; cat ../../secret ../secret"] {
            let subject = Subject::Command(command.to_owned());
            let rights = match decide(&situation, Access::Changes, "Bash", &subject) {
                Decision::Allow(rights) => rights,
                // Asked about, as it should be; a model that is believed gets the rights of the others.
                _ => Rights::ReadOnly(ReadOnlyView {
                    readable: vec![stage.sibling.join("clone")],
                    ..ReadOnlyView::default()
                }),
            };
            assert!(matches!(rights, Rights::ReadOnly(_)), "{command} in {name}: {rights:?}");
            let call = ToolCall { rights, ..ToolCall::new("Bash", json!({"command": command})) };
            let said = run_all(vec![call], &standard(), &scope, |_, _| {}).await.remove(0).text();
            assert!(!tells_a_secret(&said), "{said}");
            if !command.contains("secret") {
                let expected = outside(&place, &format!("export GIT_OPTIONAL_LOCKS=0; {command}"));
                assert_eq!(said, expected.trim_end_matches('\n'), "{command} in {name}");
            }
        }
    }
}

/// SEC-3: what only root can read is not shown to root either.
#[tokio::test]
async fn passwords_and_keys_of_the_machine_are_not_shown() {
    let Some(stage) = Stage::new().await else { return };
    let said = stage.look("for f in /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/ssh/ssh_host_*_key; do cat $f && echo shown $f; done 2>/dev/null; echo end").await;
    assert_eq!(said, "end");
}

/// SEC-3: no key in an environment is shown, whoever's it is.
#[tokio::test]
async fn a_secret_in_the_environment_stays_outside() {
    let Some(stage) = Stage::new().await else { return };
    let said = stage
        .look("env; export -p; set; cat /proc/self/environ; cat /proc/$PPID/environ; cat /proc/$TEST/environ")
        .await;
    assert!(said.contains("HOME="), "{said}");
    assert!(!tells_a_secret(&said), "{said}");
}
