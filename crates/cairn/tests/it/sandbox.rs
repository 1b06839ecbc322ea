//! The sandbox from outside: by setting and by command, unasked where it holds, and what it lets be made.

use tools::sandbox::SandboxStatus;

use crate::skipped::skipped_on_this_machine;
use crate::stage::{Ran, Stage, piped, run};
use crate::terminal::{ENTER, ESC, Terminal};

/// A model that runs what it is told to, and says what came of it.
const RUNNER: &str = r#"
    [[rule]]
    name = "tell"
    when = { result = "(?s)(?P<what>.+)" }
    say = "{{ what }}"
    [[rule]]
    name = "outside"
    when = { user = "(?s)outside: (?P<what>[^\n]+)" }
    call = [{ tool = "Bash", input = { command = "{{ what }}", dangerouslyDisableSandbox = true } }]
    [[rule]]
    name = "run"
    when = { user = "(?s)run: (?P<what>[^\n]+)" }
    call = [{ tool = "Bash", input = { command = "{{ what }}" } }]
"#;

/// A stage with a sandbox by the user's settings, or none where the system has none.
fn stage(sandbox: &str) -> Option<Stage> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let standing = runtime.block_on(SandboxStatus::find_out(Some(env!("CARGO_BIN_EXE_cairn").as_ref())));
    if standing != SandboxStatus::Wholly {
        skipped_on_this_machine(&format!("there is no sandbox here: {standing:?}"));
        return None;
    }
    let stage = Stage::new(RUNNER);
    std::fs::create_dir_all(stage.config()).unwrap();
    std::fs::write(stage.config().join("settings.json"), sandbox).unwrap();
    Some(stage)
}

fn said(stage: &Stage, message: &str) -> Ran {
    run(stage.cairn().args(["-p", message]))
}

/// SANDBOX-1: in a sandbox that holds, commands run unasked; without one, the same is asked about.
#[test]
fn a_confined_command_runs_unasked_and_sees_no_key() {
    let Some(stage) = stage(r#"{"sandbox": {"enabled": true}}"#) else { return };
    std::fs::write(stage.config().join("credentials"), "a key\n").unwrap();
    let ran = said(&stage, "run: echo made > file && cat file && cat ~/config/credentials; touch /etc/x");
    assert!(ran.stdout.contains("made\n") && !ran.stdout.contains("a key"), "{ran:?}");
    assert!(ran.stdout.contains("this ran in a sandbox"), "{ran:?}");
    assert!(stage.project().join("file").exists());
    // To run outside takes a yes, and so does what settings leave out.
    let ran = said(&stage, "outside: echo made > file2");
    assert!(ran.stdout.contains("needs permission") && ran.stdout.contains("outside of the sandbox"), "{ran:?}");
    let excluded = r#"{"sandbox": {"enabled": true, "excludedCommands": ["touch"]}}"#;
    std::fs::write(stage.config().join("settings.json"), excluded).unwrap();
    assert!(said(&stage, "run: touch file3").stdout.contains("needs permission"));
    assert!(said(&stage, "run: mkdir here && echo made").stdout.contains("made"));
    std::fs::write(stage.config().join("settings.json"), "{}").unwrap();
    assert!(said(&stage, "run: mkdir there && echo made").stdout.contains("needs permission"));
    // Where settings open more than was meant, it is asked as before.
    for sandbox in [
        r#"{"sandbox": {"enabled": true, "autoAllowBashIfSandboxed": false}}"#,
        r#"{"sandbox": {"enabled": true, "network": {"allowedDomains": ["example.com"]}}}"#,
    ] {
        std::fs::write(stage.config().join("settings.json"), sandbox).unwrap();
        assert!(said(&stage, "run: mkdir there && echo made").stdout.contains("needs permission"), "{sandbox}");
    }
}

/// SANDBOX-2, TRUST-6: a guarded path that a command makes is moved away where nobody lets it stay, and kept with all that
/// was moved into it; the model and the user are told where.
#[test]
fn a_guarded_path_that_nobody_wants_is_moved_away_and_kept() {
    let Some(stage) = stage(r#"{"sandbox": {"enabled": true}}"#) else { return };
    std::fs::create_dir(stage.project().join("src")).unwrap();
    std::fs::write(stage.project().join("src/work"), "mine\n").unwrap();
    let ran = said(
        &stage,
        "run: mkdir -p a/.husky && echo evil > a/.husky/pre-commit && mv src a/.husky/ && chmod 000 a && ln -s /etc .vscode && echo done",
    );
    assert!(ran.stdout.starts_with("done\n"), "{ran:?}");
    let folder = |name: &str| {
        let told = format!("{name}, which was moved to ");
        assert!(ran.stderr.contains(&told), "{ran:?}");
        let (_, rest) = ran.stdout.split_once(&told).unwrap_or_else(|| panic!("{ran:?}"));
        std::path::PathBuf::from(rest.split_once(": ").unwrap().0)
    };
    let (hooks, link) = (folder("a/.husky"), folder(".vscode"));
    assert!(hooks.starts_with(stage.config()) && hooks.ends_with("kept/kept-1.husky"), "{hooks:?}");
    assert_eq!(std::fs::read_to_string(hooks.join("pre-commit")).unwrap(), "evil\n");
    assert_eq!(std::fs::read_to_string(hooks.join("src/work")).unwrap(), "mine\n");
    assert_eq!(std::fs::read_link(link).unwrap(), std::path::Path::new("/etc"));
    let left = std::fs::read_dir(stage.project().join("a")).unwrap().count();
    assert!(left == 0 && !stage.project().join(".vscode").is_symlink() && std::path::Path::new("/etc/passwd").exists());
    let ran = run(stage.cairn().args(["-p", "run: mkdir .husky", "--permission-mode", "bypassPermissions"]));
    assert!(ran.stdout.contains("which may stay") && stage.project().join(".husky").exists(), "{ran:?}");
}

/// SANDBOX-1, TRUST-6: in a terminal the user is asked about a guarded path that a command made: it stays, or is moved
/// away, and the model is told which.
#[test]
fn a_guarded_path_that_was_made_is_asked_about() {
    let Some(stage) = stage(r#"{"sandbox": {"enabled": true}}"#) else { return };
    let hook = stage.project().join(".husky");
    let mut terminal = Terminal::start(&stage);
    for (answer, told) in [("n", "which was moved to"), ("y", "which may stay")] {
        terminal.say("run: mkdir .husky && echo echo hello > .husky/pre-commit");
        let asked = terminal.until("the question", |screen| screen.contains("yes, once")).text();
        let asked = asked.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(asked.contains(".husky") && asked.contains("a command made it in the sandbox"), "{asked}");
        assert!(asked.contains("if you say no, it is moved away and kept"), "{asked}");
        assert!(asked.contains("pre-commit:") && asked.contains("+ echo hello"), "it can be read: {asked}");
        assert!(!asked.contains("always") && !asked.contains("accept edits"), "it is asked each time: {asked}");
        assert!(hook.exists(), "nothing is moved before the answer");
        terminal.keys(answer);
        if answer == "n" {
            terminal.shows("no, because");
            terminal.keys(ENTER);
        }
        terminal.rests(told);
        assert_eq!(hook.join("pre-commit").exists(), answer == "y");
        assert!(stage.simulator.requests().pop().unwrap().to_string().contains(told), "the model is told");
    }
    // A turn that is stopped at the question lets nothing stay.
    terminal.say("run: mkdir .vscode");
    terminal.until("the question", |screen| screen.contains("yes, once"));
    terminal.keys(ESC);
    terminal.until("a prompt", |screen| screen.has_prompt() && !screen.is_working() && !screen.contains("yes, once"));
    assert!(!stage.project().join(".vscode").exists());
    terminal.leave();
}

/// SANDBOX-1: `/sandbox` says what holds, and turns it on and off.
#[test]
fn the_sandbox_is_shown_and_turned_on_and_off() {
    let Some(stage) = stage("{}") else { return };
    let text =
        piped(&stage, &[], "/sandbox\n/sandbox on\nrun: touch here; touch /etc/x\n/clear\n/sandbox\n/sandbox off\n");
    assert!(text.contains("the sandbox is off"), "{text}");
    assert!(text.contains("+ network: only a loopback of its own"), "{text}");
    assert!(text.contains("commands run in the sandbox\n"), "{text}");
    assert!(text.contains("Read-only file system"), "{text}");
    assert!(text.contains("the sandbox is on: commands run in it"), "it is kept in a new session: {text}");
    assert!(text.contains("commands run outside the sandbox"), "{text}");
}

/// The key of a configured server is no command's, and the variables of the settings are.
#[test]
fn keys_of_servers_leave_the_environment_and_settings_add_to_it() {
    let stage = Stage::new(RUNNER);
    std::fs::create_dir_all(stage.config()).unwrap();
    let settings = r#"{
        "env": {"OURS": "from settings"},
        "providers": {"own": {"baseUrl": "http://127.0.0.1:1/v1", "keyEnv": "OWN_SERVER", "model": "m"}}
    }"#;
    std::fs::write(stage.config().join("settings.json"), settings).unwrap();
    let command = "run: echo [$OWN_SERVER] [$ANTHROPIC_API_KEY] [$OURS]";
    let ran = run(stage.cairn().env("OWN_SERVER", "secret").args(["-p", command, "--allowedTools", "Bash"]));
    assert_eq!(ran.stdout, "[] [] [from settings]\n", "{ran:?}");
}

/// SANDBOX-2: a repository that was renamed, or that lies in a folder without rights, is the user's, and stays.
#[test]
fn a_repository_is_never_taken_for_made() {
    let Some(stage) = stage(r#"{"sandbox": {"enabled": true}}"#) else { return };
    for folder in [".git", "sub/.git", "packages/a/.vscode"] {
        std::fs::create_dir_all(stage.project().join(folder)).unwrap();
        std::fs::write(stage.project().join(folder).join("config"), "mine\n").unwrap();
    }
    for command in ["mv packages/a packages/b && mv sub sub2 && echo done", "chmod 311 . && echo done", "echo done"] {
        let ran = said(&stage, &format!("run: {command}"));
        assert_eq!(ran.stdout, "done\n", "{command}: {ran:?}");
    }
    for folder in [".git", "sub2/.git", "packages/b/.vscode"] {
        assert_eq!(std::fs::read_to_string(stage.project().join(folder).join("config")).unwrap(), "mine\n");
    }
}

/// SEC-3: a variable that looks like a credential is given to commands that the user allows, unless a setting says no, and
/// to none that runs unasked.
#[test]
fn credentials_are_for_commands_that_were_allowed() {
    let Some(stage) = stage("{}") else { return };
    let says = |command: &str, allowed: &[&str]| {
        let message = format!("run: {command}");
        let mut cairn = stage.cairn();
        run(cairn.env("SHOP_TOKEN", "secret").env("SHOP", "open").args(["-p", &message]).args(allowed)).stdout
    };
    let (show, allowed) = ("echo [$SHOP_TOKEN] [$SHOP] > file; cat file", ["--allowedTools", "Bash"]);
    assert_eq!(says(show, &allowed), "[secret] [open]\n");
    assert_eq!(says("awk 'BEGIN { print length(ENVIRON[\"SHOP_TOKEN\"]) }'", &[]), "0\n", "unasked it has none");
    std::fs::write(stage.config().join("settings.json"), r#"{"commandCredentials": false}"#).unwrap();
    assert_eq!(says(show, &allowed), "[] [open]\n");
}

/// SEC-3, TOOL-2: in a linked worktree git finds its repository from behind the wall, and what a rule denies is hidden there.
#[test]
fn a_linked_worktree_is_looked_at_unasked_without_what_is_denied() {
    let Some(stage) = stage(r#"{"permissions": {"deny": ["Read(./secret.txt)"]}}"#) else { return };
    stage.write("secret.txt", "a key\n");
    stage.write("names.txt", "secret.txt\nnames.txt\n");
    for arguments in
        [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "one"], &["worktree", "add", "-q", "../linked"]]
    {
        crate::agents::git(&stage.project(), arguments);
    }
    let linked = stage.project().parent().unwrap().join("linked");
    let says = |command: &str| run(stage.cairn().current_dir(&linked).args(["-p", &format!("run: {command}")])).stdout;
    let status = says("git status");
    assert!(status.contains("On branch linked") && !status.contains("not a git repository"), "{status}");
    let shown = says("xargs cat < names.txt");
    assert!(shown.contains("names.txt\n") && !shown.contains("a key"), "{shown}");
}
