//! Keys: the time from a key to its echo while a reply streams into a session of a million tokens, and the time until a long
//! paste is in the prompt.
//!
//! The echo is wall time on a pseudo-terminal, as the user waits for it; a machine that does other things meanwhile says less than
//! it could. A paste goes through the terminal in hundreds of pieces, each of which then waits for its turn, so what counts there is
//! the time that the program works, where the system tells it.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::json;
use simulator::{Clock, Options, Script, Simulator};

use crate::prose::Prose;
use crate::table::{Row, Unit};

/// In milliseconds, from a key to its echo.
const ECHO: f64 = 1.0;
/// In milliseconds, for a paste.
const PASTE: f64 = 50.0;
/// Letters that are typed, and pastes.
const LETTERS: usize = 100;
const PASTES: usize = 9;
/// Lines of a paste.
const LINES: usize = 20_000;
/// Bytes of the session: a million tokens.
const SESSION_BYTES: usize = 3_800_000;
/// Time between two keys: that of a fast typist, and out of step with the drawing.
const BETWEEN: Duration = Duration::from_millis(47);
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Its id.
const SESSION: &str = "00000000-0000-4000-8000-000000000000";
/// 48 bytes every 60 ms are 200 tokens a second, for 15 seconds: longer than the keys take.
const MODEL: &str = "
    [[fault]]
    slow_ms_per_event = 60
    times = 9
    [[rule]]
    say = \"begins\"
    say_bytes = 12000
";

/// The medians of both, idle and while a reply streams.
pub(crate) fn measure(place: &Path) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let options = Options { clock: Clock::Real, ..Options::default() };
    let simulator = runtime.block_on(Simulator::start(Script::parse(MODEL)?, options))?;
    let home = tempfile::tempdir()?;
    let mut terminal = Terminal::start(&place.join("release/cairn"), home.path(), &simulator.url())?;
    terminal.until("context left")?;
    let idle = terminal.echoes()?;
    terminal.press("\x15go")?;
    terminal.until("go")?;
    terminal.press("\r")?;
    terminal.until("begins")?;
    let streaming = terminal.echoes()?;
    terminal.press("\x15\x1b")?;
    terminal.until("stopped")?;
    let (mut pastes, mut waits) = (Vec::with_capacity(PASTES), Vec::with_capacity(PASTES));
    for number in 0..PASTES {
        let text: String = (0..LINES).fold(String::new(), |mut text, line| {
            let _ = write!(text, "line {line} of paste {number}\r");
            text
        });
        let (start, before) = (Instant::now(), terminal.worked());
        terminal.press(&format!("\x1b[200~{text}\x1b[201~"))?;
        terminal.until("20000 lines")?;
        let took = start.elapsed().as_secs_f64() * 1e3;
        waits.push(took);
        pastes.push(before.zip(terminal.worked()).map_or(took, |(before, after)| after - before));
        terminal.press("\x15x")?;
        terminal.until("x")?;
        terminal.press("\x15")?;
    }
    Ok(vec![
        Row::figure(format!("key to echo, idle, median of {LETTERS}"), format!("{:.2} ms", median(idle))),
        Row::at_most("key to echo, a reply streams into 1M tokens", Unit::Milliseconds, median(streaming), ECHO),
        Row::at_most(
            format!("a paste of {LINES} lines, median of {PASTES}"),
            Unit::Milliseconds,
            median(pastes),
            PASTE,
        ),
        Row::figure("  until it is in the prompt", format!("{:.0} ms", median(waits))),
    ])
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The program on a pseudo-terminal.
struct Terminal {
    keys: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    /// Printed since the last key.
    seen: Vec<u8>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
}

impl Terminal {
    fn start(program: &Path, home: &Path, url: &str) -> Result<Self> {
        let project = home.join("project");
        std::fs::create_dir(&project)?;
        let project = std::fs::canonicalize(project)?;
        let folder = project.display().to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let folder = home.join("config/projects").join(folder);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("{SESSION}.jsonl")), session(&project))?;
        let mut command = CommandBuilder::new(std::fs::canonicalize(program)?);
        command.args(["--resume", SESSION]);
        command.cwd(&project);
        command.env_clear();
        let path = std::env::var("PATH")?;
        for (name, value) in [
            ("PATH", path.as_str()),
            ("HOME", &home.display().to_string()),
            ("CLAUDE_CONFIG_DIR", &home.join("config").display().to_string()),
            ("TERM", "xterm-256color"),
            ("ANTHROPIC_API_KEY", "sk-none"),
            ("ANTHROPIC_BASE_URL", url),
            ("DISABLE_AUTO_COMPACT", "1"),
        ] {
            command.env(name, value);
        }
        let pair = native_pty_system().openpty(PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 })?;
        let child = pair.slave.spawn_command(command)?;
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader()?;
        let (sender, output) = channel();
        let keys = pair.master.take_writer()?;
        std::thread::spawn(move || {
            let _master = pair.master; // open for as long as there is something to read
            let mut buffer = vec![0; 65_536];
            while let Ok(count) = reader.read(&mut buffer) {
                if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Ok(Self { keys, output, seen: Vec::new(), child })
    }

    /// Presses keys; what was printed until now is forgotten.
    fn press(&mut self, keys: &str) -> Result<()> {
        while self.output.try_recv().is_ok() {}
        self.seen.clear();
        self.keys.write_all(keys.as_bytes())?;
        Ok(self.keys.flush()?)
    }

    fn until(&mut self, text: &str) -> Result<()> {
        while !self.seen.windows(text.len()).any(|seen| seen == text.as_bytes()) {
            let Ok(bytes) = self.output.recv_timeout(PATIENCE) else {
                bail!("{text:?} never came: {}", String::from_utf8_lossy(&self.seen));
            };
            self.seen.extend_from_slice(&bytes);
        }
        Ok(())
    }

    /// Milliseconds that the program has worked so far, in all its threads.
    fn worked(&self) -> Option<f64> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.process_id()?)).ok()?;
        let nanoseconds = tasks.flatten().filter_map(|task| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<f64>().ok()
        });
        Some(nanoseconds.sum::<f64>() / 1e6)
    }

    /// Types letters, and gives the milliseconds until each is seen.
    fn echoes(&mut self) -> Result<Vec<f64>> {
        let (mut typed, mut times) = (String::new(), Vec::with_capacity(LETTERS));
        for letter in ('a'..='j').cycle().take(LETTERS) {
            if typed.len() == 10 {
                self.press("\x15")?;
                typed.clear();
            }
            std::thread::sleep(BETWEEN);
            typed.push(letter);
            let start = Instant::now();
            self.press(&letter.to_string())?;
            self.until(&typed)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        Ok(times)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

/// A session that fills a window of a million tokens.
fn session(project: &Path) -> String {
    let (mut prose, mut lines, mut parent) = (Prose::default(), String::new(), json!(null));
    let mut number = 0;
    while lines.len() < SESSION_BYTES {
        for role in ["user", "assistant"] {
            number += 1;
            let id = format!("00000000-0000-4000-8000-{number:012}");
            let text = prose.words(14_000);
            let mut message = json!({"role": role, "content": text});
            if role == "assistant" {
                message = json!({
                    "id": format!("msg_{number}"), "type": "message", "role": role, "model": "claude-sonnet-5",
                    "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
                    "usage": {"input_tokens": 1, "output_tokens": 1},
                });
            }
            let line = json!({
                "parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": project, "sessionId": SESSION,
                "version": "2.1.0", "type": role, "message": message, "uuid": id,
                "timestamp": "2026-01-01T00:00:00.000Z",
            });
            let _ = writeln!(lines, "{line}");
            parent = json!(id);
        }
    }
    lines
}
