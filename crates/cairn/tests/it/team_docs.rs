//! `docs/team.md`, step by step: every command it shows is run, and every unit is checked and its command run.
//!
//! What stands for a place of the reader's own (an address, a port, a code) is filled in; a command that nobody here knows
//! how to run fails the test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::databases::Postgres;
use crate::office::Office;
use crate::skipped::skipped;
use crate::stage::{Ran, bare, run};
use crate::team::{Checkout, Server};

fn page() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join("docs/team.md")).unwrap()
}

/// The blocks of a kind below a heading, up to the next of the same rank.
fn blocks(heading: &str, kind: &str) -> Vec<String> {
    let page = page();
    let rank = heading.split(' ').next().unwrap();
    let section = page.split(&format!("\n{heading}\n")).nth(1).unwrap();
    let section = section.split(&format!("\n{rank} ")).next().unwrap();
    section.split(&format!("```{kind}\n")).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// The commands of a section, a continued line as one.
fn commands(heading: &str) -> Vec<String> {
    let text = blocks(heading, "console").join("\n").replace("\\\n", " ");
    text.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect()
}

/// A command's words, with places filled in.
fn words(command: &str, places: &[(&str, &str)]) -> Vec<String> {
    let filled = places.iter().fold(command.to_owned(), |text, (name, value)| text.replace(name, value));
    filled.split_whitespace().map(str::to_owned).collect()
}

fn cairn(directory: &Path, config: &Path, words: &[String]) -> Command {
    assert_eq!(words[0], "cairn", "nobody runs {words:?}");
    let mut command = bare(directory, config);
    command.args(&words[1..]);
    command
}

fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// TEAM-8: the five minutes on one machine, as they are written.
#[test]
fn the_five_minutes_are_as_written() {
    let root = tempfile::tempdir().unwrap();
    let port = free();
    let mut server: Option<Server> = None;
    let mut invited = String::new();
    let ada = Checkout::new(root.path(), "ada", "git@github.com:acme/rocket.git");
    let grace = Checkout::new(root.path(), "grace", "https://github.com/acme/rocket");
    let (directory, config) = (ada.home.join("project"), ada.home.join(".claude"));
    let all = commands("## In five minutes, on one machine");
    for command in &all {
        let invitation = server.as_ref().map(|server| server.invitation.clone()).unwrap_or_default();
        let words = words(command, &[("8737", &port), ("CODE", &invitation)]);
        let mut ready = cairn(&directory, &config, &words);
        if words[..3] == ["cairn", "team", "serve"] {
            // The port is the reader's; here it is one that is free.
            server = Some(Server::of(ready.args(["--listen", &format!("127.0.0.1:{port}")])));
            assert_eq!(server.as_ref().unwrap().address, format!("http://127.0.0.1:{port}"), "as the page says");
            continue;
        }
        let ran = run(&mut ready);
        assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
        if command.contains("join") {
            ada.write("deploy.md", "two approvals\n");
        }
        if command.contains("invite") {
            invited = ran.stdout;
        }
    }
    assert_eq!(all.len(), 4, "{all:?}");
    // What was printed for the colleague works as it stands.
    let words = words(invited.trim(), &[("NAME", "Grace")]);
    let joined = run(&mut cairn(&grace.home.join("project"), &grace.home.join(".claude"), &words));
    assert_eq!(joined.code, Some(0), "{joined:?}");
    assert_eq!(grace.team(&["pull"]).code, Some(0));
    assert_eq!(grace.read("deploy.md").as_deref(), Some("two approvals\n"));
    for named in ["status", "diff"] {
        assert_eq!(grace.team(&[named]).code, Some(0), "{named}");
    }
    assert!(grace.team(&["log", "deploy.md"]).stdout.contains("version 1"));
    assert_eq!(grace.team(&["restore", "deploy.md", "1"]).code, Some(0));
    assert!(grace.team(&["token"]).stdout.starts_with("cairn_team_"));
    assert_eq!(server.unwrap().stop(), Some(0));
}

/// What an HTTP address answers.
fn answers(address: &str) -> u16 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let http = team::client::http().no_proxy().build().unwrap();
    runtime.block_on(async { http.get(address).send().await.map_or(0, |response| response.status().as_u16()) })
}

/// TEAM-8: the company's steps on a PostgreSQL of the test's own: two servers, an issuer, backup and restore.
#[test]
fn the_steps_for_a_company_are_as_written() {
    let Some(postgres) = Postgres::start() else { return };
    let root = tempfile::tempdir().unwrap();
    let socket = postgres.folder().display().to_string();
    let database = format!("postgres://cairn@localhost/cairn?host={socket}");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let second = jiff::Timestamp::now().as_second();
    let office = runtime.block_on(Office::open(second));
    let restored = root.path().join("restored.db").display().to_string();
    let places = [
        ("postgres://cairn@db.internal/cairn", database.as_str()),
        ("0.0.0.0:8737", "127.0.0.1:0"),
        // Nobody here has that name; the address is where members would reach the balancer.
        ("--address https://team.example.org", ""),
        ("https://login.example.org", &office.address),
        ("/var/lib/cairn/team.db", &restored),
    ];
    let (home, config) = (root.path().join("server"), root.path().join("server/.claude"));
    std::fs::create_dir_all(&home).unwrap();
    let ada = Checkout::new(root.path(), "ada", "git@git.example.org:acme/rocket.git");
    let grace = Checkout::new(root.path(), "grace", "ssh://git@git.example.org/acme/rocket");
    let mut servers: Vec<Server> = Vec::new();
    let all = commands("## For a company");
    for command in &all {
        let words = words(command, &places);
        match words[..] {
            _ if words[0] == "createdb" => {
                let made = Command::new("createdb").args(["-h", &socket, "-U", "cairn"]).args(&words[1..]).status();
                assert!(made.unwrap().success());
            }
            _ if command.contains("--oidc-issuer") => {
                let mut command = cairn(&home, &config, &words);
                command.args(["--listen", "127.0.0.1:0"]).env("CAIRN_TEAM_DATABASE", &database);
                let server = Server::again(&mut command);
                sign_in(&server, &ada, &grace, &office);
                servers.push(server);
            }
            _ if command.contains("team serve") => {
                servers.push(Server::of(&mut cairn(&home, &config, &words)));
                let code = servers[0].invitation.clone();
                let joined = ada.team(&["join", &servers[0].address, "--invitation", &code, "--name", "Ada"]);
                assert_eq!(joined.code, Some(0), "{joined:?}");
                servers.push(Server::again(&mut cairn(&home, &config, &words)));
                ada.write("deploy.md", "two approvals\n");
                assert_eq!(ada.team(&["push"]).code, Some(0));
                for server in &servers {
                    for path in ["/health", "/ready", "/metrics"] {
                        assert_eq!(answers(&format!("{}{path}", server.address)), 200, "{path}");
                    }
                }
            }
            _ => {
                let ran = run(&mut cairn(&home, &config, &words));
                assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
            }
        }
    }
    assert_eq!(all.len(), 5, "{all:?}");
    // The restored one has everything.
    let moved =
        Server::again(bare(&home, &config).args(["team", "serve", "--listen", "127.0.0.1:0", "--database", &restored]));
    let token = ada.team(&["token"]).stdout;
    let back = Checkout::new(root.path(), "back", "git@git.example.org:acme/rocket.git");
    assert_eq!(back.team(&["join", &moved.address, "--token", token.trim()]).code, Some(0));
    assert_eq!(back.team(&["pull"]).code, Some(0));
    assert_eq!(back.read("deploy.md").as_deref(), Some("two approvals\n"));
    for server in servers.into_iter().chain([moved]) {
        assert_eq!(server.stop(), Some(0), "SIGTERM is an end like any other");
    }
}

/// Somebody joins by the code typed at the issuer's page, and gets rights from an admin.
fn sign_in(server: &Server, ada: &Checkout, grace: &Checkout, office: &Office) {
    let joined: Ran = grace.team(&["join", &server.address]);
    assert_eq!(joined.code, Some(0), "{joined:?}");
    assert!(joined.stderr.contains("WDJB-MJHT") && joined.stdout.contains("grace"), "{joined:?}");
    assert_eq!(office.asked(), 2, "it waited until somebody had signed in");
    assert_eq!(grace.team(&["pull"]).code, Some(3), "a new member has no rights yet");
    assert_eq!(ada.team(&["grant", "grace", "write"]).code, Some(0));
    assert_eq!(grace.team(&["pull"]).code, Some(0));
    assert_eq!(grace.read("deploy.md").as_deref(), Some("two approvals\n"));
}

/// TEAM-8: the units are what systemd takes, and their commands run.
#[test]
fn the_units_are_good_and_their_commands_run() {
    let Some(mut postgres) = Postgres::start() else { return };
    let root = tempfile::tempdir().unwrap();
    let units = blocks("## For a company", "ini");
    let page = page();
    let names: Vec<&str> =
        page.split("/etc/systemd/system/").skip(1).map(|rest| rest.split('`').next().unwrap()).collect();
    assert_eq!((units.len(), names.len()), (3, 3), "{names:?}");
    let mut files: Vec<PathBuf> = Vec::new();
    for (name, unit) in names.iter().zip(&units) {
        let file = root.path().join(name.replace("@.", "@8737."));
        std::fs::write(&file, unit.replace("/usr/local/bin/cairn", env!("CARGO_BIN_EXE_cairn"))).unwrap();
        files.push(file);
    }
    match Command::new("systemd-analyze").arg("verify").args(&files).output() {
        Ok(told) => {
            assert!(told.status.success() && told.stderr.is_empty(), "{}", String::from_utf8_lossy(&told.stderr));
        }
        Err(_) => skipped("systemd-analyze is not installed"),
    }
    let database = postgres.database();
    let home = root.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    let run_of = |unit: &str, port: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/")).unwrap();
        let backup = root.path().join("team.jsonl").display().to_string();
        let places = [("%i", port), ("0.0.0.0", "127.0.0.1"), ("/var/lib/cairn-team-backup/team.jsonl", &backup)];
        let mut command = cairn(&home, &home.join(".claude"), &words(line, &places));
        command.env("CAIRN_TEAM_DATABASE", &database);
        command
    };
    let (one, other) = (free(), free());
    let first = Server::of(&mut run_of(&units[0], &one));
    let second = Server::of(&mut run_of(&units[0], &other));
    for server in [&first, &second] {
        assert_eq!(answers(&format!("{}/ready", server.address)), 200);
    }
    let backup = run(&mut run_of(&units[1], ""));
    assert_eq!(backup.code, Some(0), "{backup:?}");
    assert!(std::fs::read_to_string(root.path().join("team.jsonl")).unwrap().contains("cairn team backup"));
    assert_eq!((first.stop(), second.stop()), (Some(0), Some(0)));
}

/// TEAM-8: with a certificate the server speaks TLS and nothing else; a client takes it where the certificate is trusted,
/// and nowhere else.
#[test]
fn a_server_with_a_certificate_speaks_tls() {
    let root = tempfile::tempdir().unwrap();
    if Command::new("openssl").arg("version").output().is_err() {
        return skipped("openssl is not installed");
    }
    let file = |name: &str| root.path().join(name).display().to_string();
    let make = |name: &str, more: &[&str]| {
        let (certificate, key) = (file(&format!("{name}.pem")), file(&format!("{name}.key")));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
            .args(["-out", &certificate, "-keyout", &key])
            .args(more)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        (PathBuf::from(certificate), PathBuf::from(key))
    };
    let (trusted, _) = make("ca", &["-subj", "/CN=a test's own", "-addext", "basicConstraints=critical,CA:TRUE"]);
    let of_ca = ["-CA", &file("ca.pem"), "-CAkey", &file("ca.key"), "-subj", "/CN=localhost"];
    let named = ["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"];
    let (certificate, key) = make("cert", &[&of_ca[..], &named[..]].concat());
    let home = root.path().join("server");
    std::fs::create_dir_all(&home).unwrap();
    let mut command = bare(&home, &home.join(".claude"));
    command.args(["team", "serve", "--listen", "127.0.0.1:0", "--tls-cert"]).arg(&certificate);
    let server = Server::of(command.arg("--tls-key").arg(&key));
    let address = server.address.replace("127.0.0.1", "localhost");
    assert!(address.starts_with("https://"), "{address}");
    let ada = Checkout::new(root.path(), "ada", "git@github.com:acme/rocket.git");
    let join = |address: &str, trusted: Option<&Path>| {
        let mut command = bare(&ada.home.join("project"), &ada.home.join(".claude"));
        command.args(["team", "join", address, "--invitation", &server.invitation, "--name", "Ada"]);
        command.envs(trusted.map(|file| ("SSL_CERT_FILE", file)));
        run(&mut command)
    };
    assert_ne!(join(&address, None).code, Some(0), "nobody vouches for it");
    assert_ne!(join(&address.replace("https", "http"), None).code, Some(0), "it does not speak in the open");
    let joined = join(&address, Some(&trusted));
    assert_eq!(joined.code, Some(0), "{joined:?}");
    let broken = bare(&home, &home.join(".claude"))
        .args(["team", "serve", "--listen", "127.0.0.1:0", "--tls-cert"])
        .arg(&key)
        .arg("--tls-key")
        .arg(&key)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&broken.stderr).contains("no certificate in it"), "{broken:?}");
    assert_eq!(server.stop(), Some(0));
}
