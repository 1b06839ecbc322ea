//! The real binary in a real pseudo-terminal: keys go in, a screen comes out.
//!
//! Nothing here sleeps. A test says what the screen should show, and output is read until it does; what never comes is
//! a failure that shows the screen as it was. The terminal is never asked anything by the program, so nothing is
//! answered here either.

use std::io::{Read, Write};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::stage::Stage;
pub use crate::terminal_screen::Screen;
use crate::terminal_screen::{named, reflowed};

/// How long anything may take before the test fails. It is never waited for when all is well.
const PATIENCE: Duration = Duration::from_secs(20);
/// The end of a drawing: what the screen shows then is meant to be seen.
const DRAWN: &[u8] = b"\x1b[?2026l";
/// Rows above the screen that are kept.
const SCROLLBACK: usize = 20_000;

/// Sizes at which habits are tried: a usual window, and a small one.
pub const SIZES: [(u16, u16); 2] = [(80, 24), (40, 15)];

pub const ENTER: &str = "\r";
pub const ESC: &str = "\x1b";
pub const TAB: &str = "\t";
pub const UP: &str = "\x1b[A";
pub const DOWN: &str = "\x1b[B";
pub const RIGHT: &str = "\x1b[C";
pub const LEFT: &str = "\x1b[D";
pub const ALT_ENTER: &str = "\x1b\r";

/// A letter with Ctrl.
pub fn ctrl(letter: char) -> String {
    char::from(letter as u8 & 0x1f).to_string()
}

/// What happens to long rows when the window becomes narrower.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reflow {
    /// They are wrapped anew, as most terminals do.
    Yes,
    /// They are cut, as xterm does.
    No,
}

/// A terminal with the program in it. Dropped, it takes the program with it.
pub struct Terminal {
    emulator: vt100::Parser,
    output: Receiver<Vec<u8>>,
    keys: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    /// Everything the program wrote.
    pub written: Vec<u8>,
    /// Whether the program draws, or only prints lines.
    draws: bool,
    /// What was drawn before the window had its present size does not count.
    stale: usize,
    /// How long anything may take.
    patience: Duration,
}

impl Terminal {
    /// Starts the program on a stage, in a window of 80 columns and 24 lines, and waits for its prompt.
    pub fn start(stage: &Stage) -> Self {
        Self::start_with(stage, &[])
    }

    /// The same, with arguments.
    pub fn start_with(stage: &Stage, args: &[&str]) -> Self {
        Self::start_in(stage, args, 80, 24)
    }

    /// The same, in a window of another size.
    pub fn start_in(stage: &Stage, args: &[&str], columns: u16, lines: u16) -> Self {
        let mut terminal = Self::open(stage.cairn().args(args).env("TERM", "xterm-256color"), columns, lines);
        terminal.until("a prompt", |screen| screen.has_prompt());
        terminal
    }

    /// Starts a command in a window of this size.
    pub fn open(command: &Command, columns: u16, lines: u16) -> Self {
        Self::open_saying(command, (columns, lines), (columns, lines))
    }

    /// Starts a command in a window that does not say its size.
    pub fn open_unsized(command: &Command) -> Self {
        Self::open_saying(command, (80, 24), (0, 0))
    }

    fn open_saying(command: &Command, (columns, lines): (u16, u16), said: (u16, u16)) -> Self {
        let size = PtySize { rows: said.1, cols: said.0, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut builder = CommandBuilder::new(command.get_program());
        builder.args(command.get_args());
        builder.env_clear();
        let mut draws = false;
        for (name, value) in command.get_envs() {
            builder.env(name, value.unwrap_or_default());
            draws |= name == "TERM" && value.is_some_and(|value| value != "dumb");
        }
        draws &= !command.get_args().any(|argument| argument == "--plain");
        builder.cwd(command.get_current_dir().unwrap());
        let child = pair.slave.spawn_command(builder).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            // Reading fails when the program has gone.
            while let Ok(count) = reader.read(&mut buffer) {
                if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let keys = pair.master.take_writer().unwrap();
        let emulator = vt100::Parser::new(lines, columns, SCROLLBACK);
        Self {
            emulator,
            output,
            keys,
            master: pair.master,
            child,
            written: Vec::new(),
            draws,
            stale: 0,
            patience: PATIENCE,
        }
    }

    /// With more patience, for a model that is slow.
    pub fn patient(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Presses keys.
    pub fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Types a line and sends it.
    #[track_caller]
    pub fn say(&mut self, line: &str) {
        self.types(line);
        self.keys(ENTER);
    }

    /// Types, and waits until it stands in the prompt.
    #[track_caller]
    pub fn types(&mut self, text: &str) -> Screen {
        self.keys(text);
        self.until("what was typed", |screen| screen.typed().ends_with(text.trim_end()))
    }

    /// Waits until this, and nothing else, stands in the prompt.
    #[track_caller]
    pub fn holds(&mut self, text: &str) -> Screen {
        self.until(&format!("a prompt with {text:?}"), |screen| screen.typed() == text)
    }

    /// Pastes, as terminals do that were asked to mark it.
    pub fn paste(&mut self, text: &str) {
        self.keys(&format!("\x1b[200~{}\x1b[201~", text.replace('\n', "\r")));
    }

    /// Reads until the screen is as it should be.
    #[track_caller]
    pub fn until(&mut self, what: &str, fits: impl Fn(&Screen) -> bool) -> Screen {
        let deadline = Instant::now() + self.patience;
        loop {
            while let Ok(bytes) = self.output.try_recv() {
                self.take(&bytes);
            }
            let screen = self.screen();
            let drawn = self.written.len() > self.stale && self.written.ends_with(DRAWN);
            if (!self.draws || drawn) && fits(&screen) {
                return screen;
            }
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Timeout) => panic!("{what} never came; the screen:\n{}", screen.text()),
                Err(RecvTimeoutError::Disconnected) => {
                    assert!(fits(&screen), "{what} did not come before the end; the screen:\n{}", screen.text());
                    return screen;
                }
            }
        }
    }

    /// Reads until the screen is as it should be, drawn or printed.
    #[track_caller]
    pub fn comes(&mut self, what: &str, fits: impl Fn(&Screen) -> bool) -> Screen {
        let draws = std::mem::replace(&mut self.draws, false);
        let screen = self.until(what, fits);
        self.draws = draws;
        screen
    }

    /// Reads until a text is on the screen.
    #[track_caller]
    pub fn shows(&mut self, text: &str) -> Screen {
        self.until(text, |screen| screen.contains(text))
    }

    /// Reads until a text is on the screen and nothing is under way.
    #[track_caller]
    pub fn rests(&mut self, text: &str) -> Screen {
        self.until(text, |screen| screen.contains(text) && !screen.is_working() && screen.has_prompt())
    }

    /// The screen as it is.
    pub fn screen(&self) -> Screen {
        let screen = self.emulator.screen();
        let columns = screen.size().1;
        let rows = screen.rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
        Screen { rows, cursor: screen.cursor_position() }
    }

    /// Everything that was printed, also what has scrolled away.
    pub fn everything(&mut self) -> String {
        let columns = self.emulator.screen().size().1;
        self.emulator.screen_mut().set_scrollback(usize::MAX);
        let most = self.emulator.screen().scrollback();
        let mut text = String::new();
        for at in (1..=most).rev() {
            self.emulator.screen_mut().set_scrollback(at);
            let row = self.emulator.screen().rows(0, columns).next().unwrap_or_default();
            text.push_str(row.trim_end());
            text.push('\n');
        }
        self.emulator.screen_mut().set_scrollback(0);
        named(&text) + &self.screen().text()
    }

    /// Reads what the program writes without looking at it, until a text comes.
    pub fn skip_to(&mut self, text: &str, mut seen: impl FnMut(&[u8])) {
        let deadline = Instant::now() + 4 * PATIENCE;
        let mut tail = Vec::new();
        while !String::from_utf8_lossy(&tail).contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.output.recv_timeout(left) else {
                self.take(&tail);
                panic!("{text} never came; the screen:\n{}", self.screen().text());
            };
            seen(&bytes);
            tail.drain(..tail.len().saturating_sub(8_192));
            tail.extend_from_slice(&bytes);
        }
        self.take(&tail);
    }

    /// Gives the window another size.
    pub fn resize(&mut self, columns: u16, lines: u16, reflow: Reflow) {
        while let Ok(bytes) = self.output.try_recv() {
            self.take(&bytes);
        }
        // What is drawn for the old size while the new one is being set looks bad in any terminal. So a program that
        // draws by the clock is let to, and then there is time until it does so again.
        let mut drawn = !self.screen().is_working();
        while !drawn {
            let bytes = self.output.recv_timeout(PATIENCE).unwrap();
            self.take(&bytes);
            drawn = self.written.ends_with(DRAWN);
        }
        if reflow == Reflow::Yes {
            self.emulator = reflowed(self.emulator.screen(), columns, lines, SCROLLBACK);
        } else {
            self.emulator.screen_mut().set_size(lines, columns);
        }
        let size = PtySize { rows: lines, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.stale = self.written.len();
        self.master.resize(size).unwrap();
    }

    /// Waits for the end of the program and returns its code.
    pub fn ended(&mut self) -> u32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().unwrap().exit_code(),
                Err(RecvTimeoutError::Timeout) => panic!("it did not end; the screen:\n{}", self.screen().text()),
            }
        }
    }

    /// Leaves with Ctrl-D, without waiting for what goes on in the background then.
    pub fn leaves_at_once(&mut self) -> u32 {
        self.keys(&ctrl('d'));
        let deadline = Instant::now() + PATIENCE;
        let mut pressed = false;
        loop {
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().unwrap().exit_code(),
                Err(RecvTimeoutError::Timeout) => panic!("it did not end; the screen:\n{}", self.screen().text()),
            }
            if !pressed && self.screen().contains("any key leaves") {
                pressed = true;
                let _ = self.keys.write_all(b"x"); // it may have ended meanwhile
            }
        }
    }

    /// Leaves with Ctrl-D.
    pub fn leave(mut self) {
        self.keys(&ctrl('d'));
        assert_eq!(self.ended(), 0);
    }

    /// The program's process.
    pub fn process(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Whether lines are put together by the terminal, and typed characters echoed: not so in raw mode.
    pub fn is_cooked(&self) -> bool {
        let flags = format!("{:?}", self.master.get_termios().unwrap().local_flags);
        flags.contains("ICANON") && flags.contains("ECHO")
    }

    /// What the program set in the terminal.
    pub fn emulated(&self) -> &vt100::Screen {
        self.emulator.screen()
    }

    fn take(&mut self, bytes: &[u8]) {
        self.emulator.process(bytes);
        self.written.extend_from_slice(bytes);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
