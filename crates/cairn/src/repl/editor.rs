//! A text being written: several lines, a cursor, and the keys people's fingers know.
//!
//! It knows nothing of the terminal: keys come in, rows come out.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use super::width::width;
use crate::styled_text::{Span, TextStyle, clean};

/// The text and the cursor, a byte position at a character's border.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Editor {
    text: String,
    cursor: usize,
    killed: String,
}

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditorStep {
    /// The text or the cursor changed.
    Edited,
    /// The text is to be sent.
    Submit,
    /// There is no line above: what came before is wanted.
    Older,
    /// There is no line below.
    Newer,
    /// The key means nothing here.
    Nothing,
}

impl Editor {
    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor.
    pub(crate) fn before(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Puts another text there, the cursor at its end.
    pub(crate) fn set(&mut self, text: &str) {
        self.text = text.replace("\r\n", "\n").replace('\r', "\n");
        self.cursor = self.text.len();
    }

    /// Takes the text away.
    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Puts text in at the cursor.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    /// Replaces the last `len` bytes before the cursor.
    pub(crate) fn replace_before(&mut self, len: usize, with: &str) {
        let start = self.cursor.saturating_sub(len);
        self.text.replace_range(start..self.cursor, with);
        self.cursor = start + with.len();
    }

    /// Does what a key means.
    pub(crate) fn key(&mut self, key: KeyEvent) -> EditorStep {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
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
            KeyCode::Char('w') if control => self.kill(self.word_left(), self.cursor),
            KeyCode::Char('u') if control => self.kill(self.line_start(), self.cursor),
            KeyCode::Char('k') if control => self.kill(self.cursor, self.line_end()),
            KeyCode::Char('y') if control => self.insert(&self.killed.clone()),
            KeyCode::Char('p') if control => return self.up(),
            KeyCode::Char('n') if control => return self.down(),
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
            KeyCode::Up => return self.up(),
            KeyCode::Down => return self.down(),
            _ => return EditorStep::Nothing,
        }
        EditorStep::Edited
    }

    fn left(&self) -> usize {
        self.before().grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        self.text[self.cursor..].graphemes(true).next().map_or(self.cursor, |next| self.cursor + next.len())
    }

    fn word_left(&self) -> usize {
        let word = self.before().unicode_word_indices().next_back();
        word.map_or(0, |(at, _)| at)
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

    fn up(&mut self) -> EditorStep {
        let start = self.line_start();
        let Some(above) = start.checked_sub(1) else { return EditorStep::Older };
        let above_start = self.text[..above].rfind('\n').map_or(0, |at| at + 1);
        self.cursor = self.at_column(above_start, above, width(&self.text[start..self.cursor]));
        EditorStep::Edited
    }

    fn down(&mut self) -> EditorStep {
        let end = self.line_end();
        if end == self.text.len() {
            return EditorStep::Newer;
        }
        let column = width(&self.text[self.line_start()..self.cursor]);
        let below_end = self.text[end + 1..].find('\n').map_or(self.text.len(), |at| end + 1 + at);
        self.cursor = self.at_column(end + 1, below_end, column);
        EditorStep::Edited
    }

    fn at_column(&self, start: usize, end: usize, column: usize) -> usize {
        let mut used = 0;
        for (at, part) in self.text[start..end].grapheme_indices(true) {
            if used >= column {
                return start + at;
            }
            used += width(part);
        }
        end
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn kill(&mut self, from: usize, to: usize) {
        self.killed = self.text[from..to].to_owned();
        self.remove(from, to);
    }

    /// The text as rows after a prompt, and where the cursor stands in them.
    pub(crate) fn rows(&self, prompt: &Span, columns: usize) -> (Vec<Vec<Span>>, (usize, usize)) {
        let lead = width(prompt.text());
        let room = columns.saturating_sub(lead).max(4);
        let mut rows: Vec<Vec<Span>> = Vec::new();
        let mut cursor = (0, lead);
        let mut at = 0;
        for line in self.text.split('\n') {
            let mut row = String::new();
            let mut used = 0;
            let start =
                |rows: &[Vec<Span>]| if rows.is_empty() { prompt.clone() } else { Span::plain(&" ".repeat(lead)) };
            for (offset, part) in line.grapheme_indices(true) {
                let shown = clean(part);
                let wide = width(&shown);
                if used + wide > room {
                    let lead = start(&rows);
                    rows.push(vec![lead, Span::plain(&std::mem::take(&mut row))]);
                    used = 0;
                }
                if at + offset == self.cursor {
                    cursor = (rows.len(), lead + used);
                }
                row.push_str(&shown);
                used += wide;
            }
            if at + line.len() == self.cursor {
                // After a full row the cursor stands where the next character will.
                if used >= room {
                    let lead = start(&rows);
                    rows.push(vec![lead, Span::plain(&std::mem::take(&mut row))]);
                    used = 0;
                }
                cursor = (rows.len(), lead + used);
            }
            let lead = start(&rows);
            rows.push(vec![lead, Span::plain(&row)]);
            at += line.len() + 1;
        }
        (rows, cursor)
    }
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
    let more = |count: usize, way: &str| vec![Span::new(&format!("  {way} {count} more rows"), TextStyle::DIM)];
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
        assert_eq!(shown, ["> 日本語", "   abc", "  x"]);
        assert_eq!(cursor, (2, 3));
    }
}
