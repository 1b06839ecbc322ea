//! Keys: to the open question, the open list, the menu, or the prompt, in this order. What is being typed is never taken
//! for an answer.

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::time::Instant;
use transcript::Block;

use super::Repl;
use super::complete::complete;
use super::editor::EditorStep;
use super::picker::{Picker, PickerStep};
use super::question::QuestionStep;
use super::terminal_owner::TerminalOwner;
use crate::prompt_blocks::blocks_of;

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
            Input::Paste(text) if self.picker.is_none() => {
                if let Some(asking) = self.asking.front_mut() {
                    asking.leave();
                }
                self.editor.insert(&text);
                self.typed();
                self.look_for_menu();
            }
            _ => {} // what is drawn next has the window's size
        }
        Ok(())
    }

    async fn key(&mut self, key: KeyEvent) -> anyhow::Result<()> {
        self.talk.view.hint = None;
        let armed = std::mem::take(&mut self.armed);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
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
            KeyCode::Esc if !self.menu.1.is_empty() => self.menu.1.clear(),
            KeyCode::Esc if self.working.is_some() => self.stop(),
            KeyCode::Esc
                if self.editor.text().is_empty()
                    && self.talk.session.background.interrupt_teammates(&mut self.talk.view) => {}
            KeyCode::Char('d') if control && self.editor.text().is_empty() => self.leave(),
            KeyCode::Char('o') if control => self.talk.view.expand(&self.talk.place),
            KeyCode::Char('s') if control => {
                self.talk.learnt();
                self.follow();
            }
            KeyCode::Char('g') if control => self.outside = Some(TerminalOwner::Prompt),
            KeyCode::Char('r') if control => {
                let part = self.editor.text().to_owned();
                match self.history.search(&part) {
                    Some(entry) => self.editor.set(&entry),
                    None => self.talk.view.hint = Some("nothing older in the history contains this".into()),
                }
            }
            KeyCode::Tab if !self.menu.1.is_empty() => self.accept_candidate(),
            KeyCode::Up if !self.menu.1.is_empty() => self.menu_at = self.menu_at.saturating_sub(1),
            KeyCode::Down if !self.menu.1.is_empty() => {
                self.menu_at = (self.menu_at + 1).min(self.menu.1.len() - 1);
            }
            KeyCode::Enter if self.menu_differs() => self.accept_candidate(),
            _ => return self.edit(key).await,
        }
        Ok(())
    }

    async fn edit(&mut self, key: KeyEvent) -> anyhow::Result<()> {
        self.typed();
        match self.editor.key(key) {
            EditorStep::Submit => {
                let text = self.editor.take();
                self.menu.1.clear();
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
        let agents = self.talk.session.background.agents.as_ref().map(|agents| agents.registry());
        self.menu = complete(self.editor.before(), &self.talk.place.directory, agents.as_deref());
        if let Some(typed) = self.editor.before().strip_prefix('/').filter(|typed| !typed.contains([' ', '\n'])) {
            self.menu.0 = typed.len() + 1;
            self.menu.1.extend(self.talk.session.skills_like(typed));
        }
        self.menu_at = 0;
    }

    /// True if Enter should take the chosen candidate rather than send: a command that is not spelled out yet.
    fn menu_differs(&self) -> bool {
        let chosen = self.menu.1.get(self.menu_at);
        self.editor.text().starts_with('/') && chosen.is_some_and(|chosen| !self.editor.text().ends_with(&chosen.text))
    }

    fn accept_candidate(&mut self) {
        let (len, candidates) = std::mem::take(&mut self.menu);
        if let Some(candidate) = candidates.get(self.menu_at) {
            let end = if candidate.text.ends_with('/') { "" } else { " " };
            self.editor.replace_before(len, &format!("{}{end}", candidate.text));
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
            self.menu.1.clear();
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
            working.doing = "stopping".into();
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
            self.start(blocks_of(&words, &self.talk.place.directory));
        }
        if self.talk.requests.leaving {
            self.leave();
        }
    }

    /// Handles what was typed: a command, a shell escape, or a message for the model.
    pub(super) async fn submit(&mut self, text: &str) -> anyhow::Result<()> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Ok(());
        }
        self.history.add(trimmed, &self.talk.session.status.session, session::World::real().now());
        if let Some(command) = self.talk.session.command_in(trimmed) {
            self.talk.command(command).await?;
            if let Some((question, reply)) = self.talk.requests.taken.take() {
                self.typed_at = None; // what was typed is what asks for it
                self.asked(question, reply);
            }
            self.follow();
            return Ok(());
        }
        match (&self.working, trimmed.strip_prefix('!')) {
            (Some(_), Some(_)) => self.talk.view.hint = Some("a command can be run when the turn is over".into()),
            (None, Some(command)) => self.start_shell(command.trim()),
            (Some(_), None) => self.talk.session.inbox.push(blocks_of(trimmed, &self.talk.place.directory)),
            (None, None) => self.start(blocks_of(trimmed, &self.talk.place.directory)),
        }
        Ok(())
    }
}
