//! Keys: to the open question, the open list, the menu, or the prompt, in this order. What is being typed is never taken
//! for an answer.

use std::path::Path;

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::time::Instant;
use transcript::Block;

use super::Repl;
use super::complete::{Completion, CompletionSources, complete, file_letters, word_start};
use super::editor::EditorStep;
use super::file_search::SearchOutcome;
use super::pager::PagerStep;
use super::picker::{Picker, PickerEntry, PickerStep};
use super::question::QuestionStep;
use super::resume_and_rewind::ListPurpose;
use super::terminal_owner::TerminalOwner;
use super::{clipboard, new_memory, slash};
use crate::styled_text::one_line;

/// The most characters of earlier input in a list.
const HISTORY_LABEL: usize = 200;

impl Repl {
    /// Something was typed or pasted, or the window has another size.
    pub(super) async fn input(&mut self, input: Input) -> anyhow::Result<()> {
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => {
                // Somebody is there; and what was done may be something to show.
                self.idle_at = None;
                self.key(key).await?;
                self.line.set(self.talk.session.signals.status_line.clone());
                if matches!(key.code, KeyCode::Enter | KeyCode::BackTab) {
                    self.line.want();
                }
            }
            Input::Paste(text) if self.picker.is_none() && self.talk.view.pager.is_none() => {
                if let Some(asking) = self.asking.front_mut() {
                    asking.leave();
                }
                if self.editor.paste(&text) {
                    self.talk.view.hint = Some("Tab shows what was pasted, to be edited".into());
                }
                self.typed();
                self.look_for_menu();
            }
            _ => {} // what is drawn next has the window's size
        }
        Ok(())
    }

    async fn key(&mut self, key: KeyEvent) -> anyhow::Result<()> {
        self.talk.view.hint = None;
        let (armed, escaped) = (std::mem::take(&mut self.armed), std::mem::take(&mut self.escaped));
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_suspending = matches!(key.code, KeyCode::Char('z') if control);
        if let Some(pager) = self.talk.view.pager.as_mut().filter(|_| !is_suspending) {
            if pager.key(key) == PagerStep::Closed {
                self.talk.view.pager = None;
            }
            return Ok(());
        }
        // These mean the same whatever is open.
        match key.code {
            KeyCode::BackTab => {
                self.talk.next_mode();
                return Ok(());
            }
            KeyCode::Char('z') if control => {
                self.outside = Some(TerminalOwner::Shell);
                return Ok(());
            }
            _ => {}
        }
        if let Some(asking) = self.asking.front_mut() {
            match asking.key(key) {
                QuestionStep::Not => return Ok(()),
                QuestionStep::NotMeant => {} // it is for the message that is being typed
                answered => {
                    self.answered(&answered);
                    return Ok(());
                }
            }
        }
        if let Some(picker) = &mut self.picker {
            match picker.key(key) {
                PickerStep::Open => {}
                PickerStep::Closed => (self.picker, self.talk.requests.choices) = (None, None),
                PickerStep::Chosen(at) => {
                    self.talk.chosen(at).await?;
                    self.follow();
                }
            }
            return Ok(());
        }
        match key.code {
            KeyCode::Char('c') if control => self.interrupt(armed),
            KeyCode::Esc if self.menu.is_open() => {
                self.menu.close();
                self.files.rest();
            }
            // With nothing written there is nothing for vim to do.
            KeyCode::Esc
                if self.editor.vim_takes_escape() && !(self.working.is_some() && self.editor.text().is_empty()) =>
            {
                return self.edit(key).await;
            }
            KeyCode::Esc if self.working.is_some() => self.stop(),
            KeyCode::Esc
                if self.editor.text().is_empty()
                    && self.talk.session.background.interrupt_teammates(&mut self.talk.view) => {}
            KeyCode::Char('d') if control && self.editor.text().is_empty() => self.leave(),
            KeyCode::Char('o') if control => self.talk.expand(),
            KeyCode::Char('s') if control => {
                self.talk.learnt();
                self.follow();
            }
            KeyCode::Char('b') if control && self.working.is_some() && self.editor.before().is_empty() => {
                self.talk.session.background.send_to_background(&mut self.talk.view);
            }
            KeyCode::Char('g') if control => self.outside = Some(TerminalOwner::Prompt),
            KeyCode::Char('r') if control => self.search_history(),
            KeyCode::Char('t') if key.modifiers.contains(KeyModifiers::ALT) && self.working.is_none() => {
                let wish = if self.talk.thinks { "off" } else { "on" };
                self.talk.command(&format!("think {wish}")).await?;
            }
            KeyCode::Char('l') if control => self.screen.wipe()?,
            KeyCode::Char('v') if control => self.paste_picture().await,
            KeyCode::Char('t') if control => self.tasks_hidden = !self.tasks_hidden,
            KeyCode::Char('?') if self.editor.text().is_empty() => self.talk.view.show_keys(),
            KeyCode::Esc if self.working.is_none() => return self.escape_idle(escaped).await,
            KeyCode::Tab if self.awaits_files() => self.files.takes_first = true,
            KeyCode::Tab if self.menu.is_open() => self.accept(self.menu.first().cloned()),
            KeyCode::Up | KeyCode::Down if self.menu.is_open() => self.menu.step(key.code == KeyCode::Down),
            KeyCode::Char('p' | 'n') if control && self.menu.is_open() => {
                self.menu.step(key.code == KeyCode::Char('n'));
            }
            KeyCode::Tab if self.editor.open_pasted() => {}
            KeyCode::Enter if key.modifiers.is_empty() && self.menu_differs() => {
                let chosen = self.menu.chosen().cloned();
                let runs = chosen.as_ref().is_some_and(|chosen| slash::runs_alone(&chosen.text));
                self.accept(chosen);
                if runs {
                    return self.edit(key).await;
                }
            }
            _ => return self.edit(key).await,
        }
        Ok(())
    }

    /// Puts the picture of the clipboard into the prompt.
    async fn paste_picture(&mut self) {
        match clipboard::picture(&self.talk.session.background.folder).await {
            Ok(path) => {
                // A name with blanks in it is one in quotes.
                let name = path.display().to_string();
                self.editor.paste_picture(&if name.contains(' ') { format!("\"{name}\"") } else { name });
                self.typed();
            }
            Err(why) => self.talk.view.hint = Some(format!("{why:#}")),
        }
    }

    /// Earlier input in a list, searched by typing on.
    fn search_history(&mut self) {
        let entries = self.history.newest_first();
        if entries.is_empty() {
            self.talk.view.hint = Some("there is no earlier input".into());
            return;
        }
        let label = |entry: &String| PickerEntry { label: one_line(entry, HISTORY_LABEL), about: String::new() };
        let list = entries.iter().map(label).collect();
        self.talk.requests.choose("Which earlier input?", list, ListPurpose::History(entries));
        let typed = self.editor.text().to_owned();
        self.follow();
        self.picker = self.picker.take().map(|picker| picker.searching(&typed));
    }

    /// Esc where nothing is under way: twice it goes back in the conversation, or clears what is being written.
    async fn escape_idle(&mut self, escaped: bool) -> anyhow::Result<()> {
        let is_empty = self.editor.text().is_empty();
        if escaped && is_empty {
            self.talk.command("rewind").await?;
            self.follow();
        } else if escaped {
            self.editor.take();
        } else {
            self.escaped = true;
            let what = if is_empty { "rewinds" } else { "clears the prompt" };
            self.talk.view.hint = Some(format!("Esc again {what}"));
        }
        Ok(())
    }

    async fn edit(&mut self, key: KeyEvent) -> anyhow::Result<()> {
        self.typed();
        match self.editor.key(key) {
            EditorStep::Submit => {
                let shown = self.editor.text().trim().to_owned();
                let text = self.editor.take();
                self.menu.close();
                if text.trim() != shown {
                    self.talk.view.said_as = Some((text.trim().to_owned(), shown));
                }
                return self.submit(&text).await;
            }
            EditorStep::Older if self.editor.text().is_empty() && self.take_back() => {}
            EditorStep::Older => {
                if let Some(entry) = self.history.older(self.editor.text()) {
                    self.editor.set(&entry);
                }
            }
            EditorStep::Newer => {
                if let Some(entry) = self.history.newer() {
                    self.editor.set(&entry);
                }
            }
            EditorStep::Edited | EditorStep::Nothing => self.look_for_menu(),
        }
        Ok(())
    }

    /// A key was pressed for the message.
    fn typed(&mut self) {
        self.typed_at = Some(Instant::now());
    }

    fn look_for_menu(&mut self) {
        let before = self.editor.before().to_owned();
        let files = match file_letters(&before) {
            Some("") => {
                // The files are listed while the first letters are typed; until then, those of the top are offered.
                drop(self.files.find(""));
                None
            }
            Some(letters) => match self.files.find(letters) {
                Some(found) => Some(found),
                // What fitted until now fits less with every letter.
                None => return self.menu.narrow(before.len() - word_start(&before), &format!("@{letters}")),
            },
            None => {
                self.files.rest();
                None
            }
        };
        let agents = self.talk.session.background.agents.as_ref().map(|agents| agents.registry());
        let sources = CompletionSources {
            directory: &self.talk.place.directory,
            home: self.talk.session.scope.home().map(Path::to_owned),
            agents: agents.as_deref(),
            skills: self.talk.session.skill_completions(),
            resources: self.talk.session.resource_completions(),
            tasks: self.talk.session.background.completions(),
        };
        self.menu = complete(&before, sources, files);
    }

    /// True if files are still looked for that fit the word before the cursor.
    fn awaits_files(&self) -> bool {
        let letters = file_letters(self.editor.before()).filter(|letters| !letters.is_empty());
        letters.is_some_and(|letters| self.files.is_wanted(letters) && !self.files.has_found(letters))
    }

    /// Files were found: they are offered, unless something else is being written by now.
    pub(super) fn found_files(&mut self, found: Option<SearchOutcome>) {
        if self.files.ended(found)
            && file_letters(self.editor.before())
                .is_some_and(|letters| !letters.is_empty() && self.files.is_wanted(letters))
        {
            let takes_first = self.files.takes_first;
            self.look_for_menu();
            if takes_first {
                self.accept(self.menu.first().cloned());
            }
        }
    }

    /// True if Enter takes the chosen candidate rather than sends: it is not spelled out yet.
    fn menu_differs(&self) -> bool {
        self.menu.chosen().is_some_and(|chosen| !self.editor.before().ends_with(&chosen.text))
    }

    fn accept(&mut self, candidate: Option<Completion>) {
        if let Some(candidate) = candidate {
            let end = if candidate.text.ends_with('/') { "" } else { " " };
            self.editor.replace_before(self.menu.replaces, &format!("{}{end}", candidate.text));
            self.look_for_menu();
        }
    }

    /// The newest queued message goes back into the editor.
    fn take_back(&mut self) -> bool {
        let Some(said) = self.talk.session.inbox.take_back() else { return false };
        self.editor.set(&said.iter().find_map(Block::as_text).unwrap_or_default());
        true
    }

    fn interrupt(&mut self, armed: bool) {
        if self.working.is_some() {
            self.hurried = armed;
            if armed { self.leave() } else { self.stop() }
        } else if !self.editor.text().is_empty() {
            self.editor.take();
            self.menu.close();
        } else if armed {
            self.hurried = true;
            self.leave();
        } else {
            self.armed = true;
            self.talk.view.hint = Some("Ctrl-C again leaves".into());
        }
    }

    /// Stops the turn.
    pub(super) fn stop(&mut self) {
        if let Some(working) = &mut self.working {
            working.cancel.cancel();
            working.activity.does("stopping");
            self.armed = true;
            self.talk.view.hint = Some("stopping; Ctrl-C again leaves".into());
        }
    }

    /// Leaves, and stops what is under way.
    pub(super) fn leave(&mut self) {
        if let Some(working) = &self.working {
            working.cancel.cancel();
        }
        self.talk.requests.leaving = true;
    }

    /// Shows what a command left to show: a list, or something in the prompt.
    fn follow(&mut self) {
        self.picker = self.talk.requests.choices.as_ref().map(|open| Picker::new(&open.title, open.list.clone()));
        if let Some(text) = self.talk.requests.prompt.take() {
            self.editor.set(&text);
        }
        if let Some(path) = self.talk.requests.editing.take() {
            self.outside = Some(TerminalOwner::File(path));
        }
        self.start_compaction();
        if let Some(words) = self.talk.requests.saying.take() {
            // The command stands there already.
            self.talk.view.said_as = Some((words.clone(), String::new()));
            self.start(vec![Block::text(&words)]);
        }
        if self.talk.requests.leaving {
            self.leave();
        }
    }

    /// Opens the list of sessions to continue.
    pub(super) async fn choose_session(&mut self) -> anyhow::Result<()> {
        self.talk.resume("").await?;
        self.follow();
        Ok(())
    }

    /// Runs the commands that waited for the end of the turn, once nothing is being typed: a list that one of them opens
    /// would take the keys, and Enter.
    pub(super) async fn run_queued(&mut self) -> anyhow::Result<()> {
        while self.is_idle() && self.editor.text().is_empty() {
            let Some(line) = self.queued.pop_front() else { break };
            self.run_line(&line).await?;
        }
        Ok(())
    }

    /// Handles what was typed: a command, a shell escape, or a message for the model.
    pub(super) async fn submit(&mut self, text: &str) -> anyhow::Result<()> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Ok(());
        }
        self.history.add(trimmed, &self.talk.session.status.session, session::World::real().now());
        if self.working.is_none() && !self.queued.is_empty() {
            self.queued.push_back(trimmed.to_owned());
            return Ok(());
        }
        self.run_line(trimmed).await
    }

    async fn run_line(&mut self, trimmed: &str) -> anyhow::Result<()> {
        if let Some(command) = self.talk.session.command_in(trimmed) {
            if self.working.is_some() && self.talk.has_to_wait(command) {
                self.queued.push_back(trimmed.to_owned());
                return Ok(());
            }
            self.talk.command(command).await?;
            if let Some((question, reply)) = self.talk.requests.taken.take() {
                self.typed_at = None; // what was typed is what asks for it
                self.asked(question, reply);
            }
            self.follow();
            return Ok(());
        }
        if let Some(fact) = new_memory::fact_in(trimmed) {
            new_memory::save(&mut self.talk, fact);
            return Ok(());
        }
        match (&self.working, trimmed.strip_prefix('!')) {
            (Some(_), Some(_)) => self.queued.push_back(trimmed.to_owned()),
            (None, Some(command)) => self.start_shell(command.trim()),
            (Some(_), None) => self.talk.session.inbox.push(vec![Block::text(trimmed)]),
            (None, None) => self.start(vec![Block::text(trimmed)]),
        }
        Ok(())
    }
}
