//! A text being written: several lines, a cursor, and the keys people's fingers know.
//!
//! It knows nothing of the terminal: keys come in, rows come out. A long paste stands in it as a placeholder, which is one
//! character to the cursor and the whole text to whoever takes it.

mod vim;
mod vim_words;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use super::pasted::PastedTexts;
use super::text_layout::{TextLayout, VisualRow};
use super::width::width;
use crate::event_text::count;
use crate::styled_text::{Span, TextStyle, clean};
use vim::VimKeys;

/// States that can be gone back to.
const UNDONE: usize = 200;

/// The text and the cursor, a byte position at a character's border.
#[derive(Debug, Clone, Default)]
pub(crate) struct Editor {
    text: String,
    cursor: usize,
    killed: String,
    pasted: PastedTexts,
    /// Earlier texts and cursors, the newest last.
    undo: Vec<(String, usize)>,
    /// True while letters are typed one after the other: they are undone together.
    is_typing: bool,
    /// Columns of a row, as it was drawn last.
    room: usize,
    /// The column that the cursor keeps while it moves over shorter rows.
    goal: Option<usize>,
    /// The keys of vim, if they are wanted.
    vim: Option<VimKeys>,
}

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditorStep {
    /// The text or the cursor changed.
    Edited,
    /// The text is to be sent.
    Submit,
    /// There is no row above: what came before is wanted.
    Older,
    /// There is no row below.
    Newer,
    /// The key means nothing here.
    Nothing,
}

impl Editor {
    /// The text as it stands there, with placeholders.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text with what was pasted into it.
    pub(crate) fn whole(&self) -> String {
        self.pasted.filled_in(&self.text)
    }

    /// The text before the cursor.
    pub(crate) fn before(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Puts another text there, the cursor at its end.
    pub(crate) fn set(&mut self, text: &str) {
        self.remember();
        self.text = with_newlines(text);
        self.cursor = self.text.len();
    }

    /// Takes the text away, and what was pasted into it.
    pub(crate) fn take(&mut self) -> String {
        let whole = self.whole();
        self.remember();
        self.set_vim_to_insert();
        self.cursor = 0;
        self.text.clear();
        whole
    }

    /// Puts text in at the cursor.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = with_newlines(text);
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    /// Puts pasted text in at the cursor: a long one as a placeholder. Says whether it is one.
    pub(crate) fn paste(&mut self, text: &str) -> bool {
        self.remember();
        let text = with_newlines(text);
        let placeholder = self.pasted.collapsed(&text);
        self.insert(placeholder.as_deref().unwrap_or(&text));
        placeholder.is_some()
    }

    /// Puts a picture in at the cursor, by a placeholder.
    pub(crate) fn paste_picture(&mut self, path: &str) {
        self.remember();
        let placeholder = self.pasted.picture(path);
        self.insert(&placeholder);
    }

    /// Puts a text in place of the placeholder before the cursor, to be edited. Says whether there was one.
    pub(crate) fn open_pasted(&mut self) -> bool {
        let Some((placeholder, text)) = self.pasted.at_end_of(self.before()) else { return false };
        let (len, text) = (placeholder.len(), text.to_owned());
        self.remember();
        self.replace_before(len, &text);
        true
    }

    /// Replaces the last `len` bytes before the cursor.
    pub(crate) fn replace_before(&mut self, len: usize, with: &str) {
        self.remember();
        let start = self.cursor.saturating_sub(len);
        self.text.replace_range(start..self.cursor, with);
        self.cursor = start + with.len();
    }

    /// Does what a key means.
    pub(crate) fn key(&mut self, key: KeyEvent) -> EditorStep {
        if let Some(step) = self.vim_key(key) {
            return step;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let goal = self.goal.take();
        let typed = matches!(key.code, KeyCode::Char(_)) && !control && !alt;
        let was_typing = std::mem::replace(&mut self.is_typing, typed);
        match key.code {
            // Ctrl-_ comes under several names, as the terminal has it.
            KeyCode::Char('_' | '-' | '/' | '7') if control => return self.go_back(),
            KeyCode::Up | KeyCode::Down => {}
            KeyCode::Char('p' | 'n') if control => {}
            _ if typed && was_typing => {}
            _ => self.remember(),
        }
        match key.code {
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => self.insert("\n"),
            KeyCode::Enter if self.before().ends_with('\\') && self.cursor == self.text.len() => {
                self.replace_before(1, "\n");
            }
            KeyCode::Enter => return EditorStep::Submit,
            KeyCode::Char('j') if control => self.insert("\n"),
            KeyCode::Char('a') if control => self.cursor = self.line_start(),
            KeyCode::Char('e') if control => self.cursor = self.line_end(),
            KeyCode::Char('b') if control => self.cursor = self.left(),
            KeyCode::Char('f') if control => self.cursor = self.right(),
            KeyCode::Char('b') if alt => self.cursor = self.word_left(),
            KeyCode::Char('f') if alt => self.cursor = self.word_right(),
            KeyCode::Char('d') if alt => self.kill(self.cursor, self.word_right()),
            KeyCode::Char('d') if control => self.remove(self.cursor, self.right()),
            KeyCode::Char('h') if control => self.remove(self.left(), self.cursor),
            KeyCode::Char('w') if control => self.kill(self.blank_left(), self.cursor),
            KeyCode::Char('u') if control => self.kill(self.line_start(), self.cursor),
            KeyCode::Char('k') if control => self.kill(self.cursor, self.line_end()),
            KeyCode::Char('y') if control => self.insert(&self.killed.clone()),
            KeyCode::Char('p') if control => return self.step(goal, -1),
            KeyCode::Char('n') if control => return self.step(goal, 1),
            KeyCode::Char(_) if control => return EditorStep::Nothing,
            KeyCode::Char(c) if !alt => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if alt || control => self.kill(self.word_left(), self.cursor),
            KeyCode::Backspace => self.remove(self.left(), self.cursor),
            KeyCode::Delete => self.remove(self.cursor, self.right()),
            KeyCode::Left if alt || control => self.cursor = self.word_left(),
            KeyCode::Right if alt || control => self.cursor = self.word_right(),
            KeyCode::Left => self.cursor = self.left(),
            KeyCode::Right => self.cursor = self.right(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            KeyCode::Up => return self.step(goal, -1),
            KeyCode::Down => return self.step(goal, 1),
            _ => return EditorStep::Nothing,
        }
        EditorStep::Edited
    }

    /// Keeps the text as it is, to come back to.
    fn remember(&mut self) {
        if self.undo.last().is_some_and(|(text, _)| *text == self.text) {
            return;
        }
        self.undo.push((self.text.clone(), self.cursor));
        if self.undo.len() > UNDONE {
            self.undo.remove(0);
        }
    }

    /// Back to the text before the last change.
    fn go_back(&mut self) -> EditorStep {
        self.is_typing = false;
        while let Some((text, cursor)) = self.undo.pop() {
            if text != self.text {
                (self.text, self.cursor) = (text, cursor);
                return EditorStep::Edited;
            }
        }
        EditorStep::Nothing
    }

    fn left(&self) -> usize {
        if let Some((placeholder, _)) = self.pasted.at_end_of(self.before()) {
            return self.cursor - placeholder.len();
        }
        self.before().grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        let after = &self.text[self.cursor..];
        if let Some(placeholder) = self.pasted.at_start_of(after) {
            return self.cursor + placeholder.len();
        }
        after.graphemes(true).next().map_or(self.cursor, |next| self.cursor + next.len())
    }

    fn word_left(&self) -> usize {
        if let Some((placeholder, _)) = self.pasted.at_end_of(self.before()) {
            return self.cursor - placeholder.len();
        }
        let word = self.before().unicode_word_indices().next_back();
        word.map_or(0, |(at, _)| at)
    }

    /// The beginning of what stands between blanks, as Ctrl-W takes it in shells.
    fn blank_left(&self) -> usize {
        let before = self.before();
        let word = before.trim_end();
        if let Some((placeholder, _)) = self.pasted.at_end_of(word) {
            return word.len() - placeholder.len();
        }
        word.rfind(char::is_whitespace).map_or(0, |at| at + word[at..].chars().next().map_or(1, char::len_utf8))
    }

    fn word_right(&self) -> usize {
        let word = self.text[self.cursor..].unicode_word_indices().next();
        word.map_or(self.text.len(), |(at, word)| self.cursor + at + word.len())
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn layout(&self) -> TextLayout<'_> {
        TextLayout::new(&self.text, if self.room == 0 { usize::MAX } else { self.room })
    }

    /// One row up or down, as the rows are seen.
    fn step(&mut self, goal: Option<usize>, by: isize) -> EditorStep {
        let layout = self.layout();
        let (row, column) = layout.place_of(self.cursor);
        let column = goal.unwrap_or(column);
        let Some(row) = row.checked_add_signed(by).filter(|row| *row < layout.rows().len()) else {
            return if by < 0 { EditorStep::Older } else { EditorStep::Newer };
        };
        self.cursor = layout.at(row, column);
        self.goal = Some(column);
        EditorStep::Edited
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn kill(&mut self, from: usize, to: usize) {
        self.killed = self.text[from..to].to_owned();
        self.remove(from, to);
    }

    /// Columns there are for rows behind a prompt.
    pub(crate) fn set_columns(&mut self, prompt: usize, columns: usize) {
        self.room = columns.saturating_sub(prompt).max(LEAST_ROOM);
    }

    /// The text as rows after a prompt, and where the cursor is in them.
    pub(crate) fn rows(&self, prompt: &Span, columns: usize) -> (Vec<Vec<Span>>, (usize, usize)) {
        let lead = width(prompt.text());
        let layout = TextLayout::new(&self.text, columns.saturating_sub(lead).max(LEAST_ROOM));
        let (row, column) = layout.place_of(self.cursor);
        let span = |(at, VisualRow { start, end }): (usize, &VisualRow)| {
            let lead = if at == 0 { prompt.clone() } else { Span::plain(&" ".repeat(lead)) };
            let row = &self.text[*start..*end];
            // A blank that hangs over the edge is not drawn.
            let goes_on = layout.rows().get(at + 1).is_some_and(|next| next.start == *end);
            vec![lead, Span::plain(&clean(if goes_on { row.trim_end_matches(' ') } else { row }))]
        };
        (layout.rows().iter().enumerate().map(span).collect(), (row, lead + column))
    }
}

/// The least columns of a row.
const LEAST_ROOM: usize = 4;

fn with_newlines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// As many rows as there is room for, around the one with the cursor; what is left out is counted.
pub(crate) fn window(
    mut rows: Vec<Vec<Span>>,
    cursor: (usize, usize),
    room: usize,
) -> (Vec<Vec<Span>>, (usize, usize)) {
    let room = room.max(3);
    if rows.len() <= room {
        return (rows, cursor);
    }
    let inside = room - 2;
    let first = cursor.0.saturating_sub(inside - 1).min(rows.len() - inside);
    let after = rows.len() - inside - first;
    let more = |rows: usize, way: &str| {
        vec![Span::new(&format!("  {way} {}", count(rows, "more row", "more rows")), TextStyle::DIM)]
    };
    let mut shown: Vec<Vec<Span>> = rows.drain(first..first + inside).collect();
    let mut at = cursor.0 - first;
    if first > 0 {
        shown.insert(0, more(first, "↑"));
        at += 1;
    }
    if after > 0 {
        shown.push(more(after, "↓"));
    }
    (shown, (at, cursor.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_seen_around_the_cursor() {
        let text: Vec<String> = (1..=20).map(|n| format!("line {n}")).collect();
        let mut editor = typed(&text.join("\n"));
        let shown = |editor: &Editor| {
            let (rows, cursor) = editor.rows(&Span::plain("> "), 20);
            let (rows, cursor) = window(rows, cursor, 5);
            let rows: Vec<String> = rows.iter().map(|row| row.iter().map(|span| span.text()).collect()).collect();
            (rows, cursor)
        };
        assert_eq!(
            shown(&editor),
            (vec!["  ↑ 17 more rows".into(), "  line 18".into(), "  line 19".into(), "  line 20".into()], (3, 9))
        );
        for _ in 0..19 {
            press(&mut editor, KeyCode::Up, KeyModifiers::NONE);
        }
        assert_eq!(
            shown(&editor),
            (vec!["> line 1".into(), "  line 2".into(), "  line 3".into(), "  ↓ 17 more rows".into()], (0, 8))
        );
    }

    fn press(editor: &mut Editor, code: KeyCode, modifiers: KeyModifiers) -> EditorStep {
        editor.key(KeyEvent::new(code, modifiers))
    }

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn whole_characters_are_moved_over_and_removed() {
        let mut editor = typed("a👩‍👩‍👧é");
        press(&mut editor, KeyCode::Left, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!((editor.text(), editor.before()), ("aé", "a"));
    }

    #[test]
    fn words_and_lines_are_killed_and_come_back() {
        let mut editor = typed("one two three");
        press(&mut editor, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(editor.text(), "one two ");
        press(&mut editor, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(editor.text(), "");
        press(&mut editor, KeyCode::Char('y'), KeyModifiers::CONTROL);
        assert_eq!(editor.text(), "one two ");
    }

    #[test]
    fn enter_sends_unless_a_line_goes_on() {
        let mut editor = typed("one\\");
        assert_eq!(press(&mut editor, KeyCode::Enter, KeyModifiers::NONE), EditorStep::Edited);
        press(&mut editor, KeyCode::Char('2'), KeyModifiers::NONE);
        press(&mut editor, KeyCode::Enter, KeyModifiers::ALT);
        assert_eq!(editor.text(), "one\n2\n");
        assert_eq!(press(&mut editor, KeyCode::Enter, KeyModifiers::NONE), EditorStep::Submit);
        assert_eq!(press(&mut editor, KeyCode::Up, KeyModifiers::NONE), EditorStep::Edited);
        assert_eq!(press(&mut editor, KeyCode::Up, KeyModifiers::NONE), EditorStep::Edited);
        assert_eq!(press(&mut editor, KeyCode::Up, KeyModifiers::NONE), EditorStep::Older);
    }

    #[test]
    fn the_cursor_is_where_the_text_is() {
        let editor = typed("日本語 abc\nx");
        let (rows, cursor) = editor.rows(&Span::plain("> "), 8);
        let shown: Vec<String> = rows.iter().map(|row| row.iter().map(|span| span.text()).collect()).collect();
        assert_eq!(shown, ["> 日本語", "  abc", "  x"]);
        assert_eq!(cursor, (2, 3));
    }
}
