//! The keys of vim: normal mode with counts, motions, operators and text objects of words.
//!
//! In insert mode the usual keys count, but for Esc. What vim has beyond one text (registers, marks, macros, visual mode) is left
//! out: Ctrl-G opens the prompt in the user's own editor.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Editor, EditorStep};

/// The largest count: a prompt has fewer lines and letters.
const MOST: usize = 9_999;

/// State of the keys of vim.
#[derive(Debug, Clone, Default)]
pub(super) struct VimKeys {
    is_normal: bool,
    /// Digits typed before an operator or a motion.
    count: usize,
    pending: Pending,
    /// The last search in a line, for `;` and `,`.
    search: Option<(char, char)>,
    /// True if what was taken out last was whole lines.
    has_lines: bool,
}

/// What was typed of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    Nothing,
    /// `d`, `c` or `y`: a motion follows.
    Operator(char),
    /// `f`, `F`, `t` or `T`, perhaps behind an operator: a letter follows.
    Search(Option<char>, char),
    /// `i` or `a` behind an operator: `w` follows.
    Object(char, char),
    /// `g`, perhaps behind an operator: `g` follows.
    Go(Option<char>),
    /// `r`: a letter follows.
    Replace,
}

/// The end of a motion, and how much of the text an operator takes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Motion {
    to: usize,
    extent: Extent,
}

/// The part of the text that a motion means to an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Up to the end of the motion.
    Before,
    /// With the letter at its end.
    Through,
    /// Whole lines.
    Lines,
}

impl Editor {
    /// Turns the keys of vim on or off.
    pub(crate) fn set_vim(&mut self, is_on: bool) {
        if is_on != self.vim.is_some() {
            self.vim = is_on.then(VimKeys::default);
        }
    }

    /// A new text begins in insert mode.
    pub(super) fn set_vim_to_insert(&mut self) {
        if let Some(vim) = &mut self.vim {
            vim.is_normal = false;
        }
    }

    /// The mode that vim is in, if its keys count.
    pub(crate) fn vim_mode(&self) -> Option<&'static str> {
        self.vim.as_ref().map(|vim| if vim.is_normal { "NORMAL" } else { "INSERT" })
    }

    /// True if Esc is vim's own: it leaves insert mode, or drops what was typed of a command.
    pub(crate) fn vim_takes_escape(&self) -> bool {
        self.vim.as_ref().is_some_and(|vim| !vim.is_normal || vim.pending != Pending::Nothing || vim.count > 0)
    }

    /// True if letters are commands.
    pub(crate) fn is_vim_normal(&self) -> bool {
        self.vim.as_ref().is_some_and(|vim| vim.is_normal)
    }

    /// Does what a key means to vim; nothing if it means what it always does.
    pub(super) fn vim_key(&mut self, key: KeyEvent) -> Option<EditorStep> {
        let vim = self.vim.as_mut()?;
        if key.code == KeyCode::Esc {
            let was_insert = !std::mem::replace(&mut vim.is_normal, true);
            (vim.count, vim.pending) = (0, Pending::Nothing);
            self.is_typing = false;
            if was_insert && self.cursor > self.line_start() {
                self.cursor = self.left();
            }
            return Some(EditorStep::Edited);
        }
        if !vim.is_normal {
            return None;
        }
        match key.code {
            KeyCode::Char(letter) if key.modifiers.difference(KeyModifiers::SHIFT).is_empty() => {
                Some(self.command(letter))
            }
            // Whoever waits for a letter does not get one.
            _ => {
                (vim.count, vim.pending) = (0, Pending::Nothing);
                match key.code {
                    KeyCode::Backspace => {
                        self.cursor = self.left();
                        Some(EditorStep::Edited)
                    }
                    _ => None,
                }
            }
        }
    }

    fn command(&mut self, letter: char) -> EditorStep {
        let Some(vim) = self.vim.as_mut() else { return EditorStep::Nothing };
        let pending = std::mem::take(&mut vim.pending);
        if let ('0'..='9', Pending::Nothing | Pending::Operator(_)) = (letter, pending)
            && (letter != '0' || vim.count > 0)
        {
            let digit = letter.to_digit(10).unwrap_or_default() as usize;
            (vim.count, vim.pending) = ((vim.count * 10 + digit).min(MOST), pending);
            return EditorStep::Edited;
        }
        let count = vim.count;
        if !matches!(letter, 'j' | 'k') {
            self.goal = None;
        }
        match (pending, letter) {
            (Pending::Nothing, 'd' | 'c' | 'y') => vim.pending = Pending::Operator(letter),
            (Pending::Nothing, 'f' | 'F' | 't' | 'T') => vim.pending = Pending::Search(None, letter),
            (Pending::Operator(operator), 'f' | 'F' | 't' | 'T') => {
                vim.pending = Pending::Search(Some(operator), letter);
            }
            (Pending::Operator(operator), 'i' | 'a') => vim.pending = Pending::Object(operator, letter),
            (Pending::Nothing, 'g') => vim.pending = Pending::Go(None),
            (Pending::Operator(operator), 'g') => vim.pending = Pending::Go(Some(operator)),
            (Pending::Nothing, 'r') => vim.pending = Pending::Replace,
            (pending, letter) => {
                vim.count = 0;
                return self.finish(pending, letter, count);
            }
        }
        EditorStep::Edited
    }

    /// The last letter of a command.
    fn finish(&mut self, pending: Pending, letter: char, count: usize) -> EditorStep {
        let times = count.max(1);
        match pending {
            Pending::Replace => self.replace_letter(letter),
            Pending::Operator(operator) if operator == letter => {
                let last = self.lines_on(self.cursor, times - 1);
                self.operate(operator, Motion { to: last, extent: Extent::Lines });
            }
            Pending::Object(operator, which) => {
                if letter == 'w' {
                    let (from, to) = self.word_object(which == 'a');
                    self.take_out(operator, from, to, false);
                }
            }
            Pending::Search(operator, way) => {
                if let Some(vim) = &mut self.vim {
                    vim.search = Some((way, letter));
                }
                self.search(operator, way, letter, times);
            }
            Pending::Go(operator) => {
                let motion = (letter == 'g').then_some(Motion { to: 0, extent: Extent::Lines });
                self.go(operator, motion);
            }
            Pending::Operator(operator) => {
                // `cw` changes a word and leaves the blank behind it.
                let letter = if operator == 'c' && letter == 'w' && self.is_on_word() { 'e' } else { letter };
                let mut motion = self.motion(letter, times, count);
                // The last word of a line is taken without the line's end.
                if let Some(motion) = motion.as_mut().filter(|_| matches!(letter, 'w' | 'W')) {
                    motion.to = motion.to.min(self.line_end());
                }
                self.go(Some(operator), motion);
            }
            Pending::Nothing => return self.single(letter, times, count),
        }
        EditorStep::Edited
    }

    /// A command of one letter.
    fn single(&mut self, letter: char, times: usize, count: usize) -> EditorStep {
        match letter {
            'i' => self.begin_insert(self.cursor),
            'a' => self.begin_insert(if self.cursor < self.line_end() { self.right() } else { self.cursor }),
            'I' => self.begin_insert(self.first_letter()),
            'A' => self.begin_insert(self.line_end()),
            'o' => {
                self.remember();
                self.cursor = self.line_end();
                self.insert("\n");
                self.begin_insert(self.cursor);
            }
            'O' => {
                self.remember();
                let start = self.line_start();
                self.cursor = start;
                self.insert("\n");
                self.begin_insert(start);
            }
            'x' => {
                let to = (0..times).fold(self.cursor, |at, _| self.next_letter(at).min(self.line_end()));
                self.take_out('d', self.cursor, to, false);
            }
            'X' => {
                let from = (0..times).fold(self.cursor, |at, _| self.letter_before(at).max(self.line_start()));
                self.take_out('d', from, self.cursor, false);
            }
            's' => {
                let to = (0..times).fold(self.cursor, |at, _| self.next_letter(at).min(self.line_end()));
                self.take_out('c', self.cursor, to, false);
            }
            'S' => return self.finish(Pending::Operator('c'), 'c', count),
            'D' => self.take_out('d', self.cursor, self.line_end(), false),
            'C' => self.take_out('c', self.cursor, self.line_end(), false),
            'Y' => return self.finish(Pending::Operator('y'), 'y', count),
            'p' | 'P' => self.put(letter == 'p'),
            'u' => return self.go_back(),
            'J' => self.join_lines(),
            '~' => self.change_case(),
            ';' | ',' => {
                if let Some((way, target)) = self.vim.as_ref().and_then(|vim| vim.search) {
                    let swapped = if way.is_uppercase() { way.to_ascii_lowercase() } else { way.to_ascii_uppercase() };
                    self.search(None, if letter == ';' { way } else { swapped }, target, times);
                }
            }
            // By rows as they are seen; beyond the first and the last is the history.
            'j' | 'k' => {
                let by = if letter == 'j' { 1 } else { -1 };
                for _ in 0..times {
                    let goal = self.goal;
                    let step = self.step(goal, by);
                    if step != EditorStep::Edited {
                        return step;
                    }
                }
            }
            _ => {
                let motion = self.motion(letter, times, count);
                self.go(None, motion);
            }
        }
        EditorStep::Edited
    }

    /// The motion of a letter.
    fn motion(&self, letter: char, times: usize, count: usize) -> Option<Motion> {
        let before = |to| Some(Motion { to, extent: Extent::Before });
        let repeat = |step: &dyn Fn(usize) -> usize| (0..times).fold(self.cursor, |at, _| step(at));
        match letter {
            'h' => before(repeat(&|at| self.letter_before(at).max(self.line_start()))),
            'l' | ' ' => before(repeat(&|at| self.next_letter(at).min(self.line_end()))),
            'w' => before(repeat(&|at| self.word_start_after(at, false))),
            'W' => before(repeat(&|at| self.word_start_after(at, true))),
            'b' => before(repeat(&|at| self.word_start_before(at, false))),
            'B' => before(repeat(&|at| self.word_start_before(at, true))),
            'e' => Some(Motion { to: repeat(&|at| self.word_end_after(at, false)), extent: Extent::Through }),
            'E' => Some(Motion { to: repeat(&|at| self.word_end_after(at, true)), extent: Extent::Through }),
            '0' => before(self.line_start()),
            '^' => before(self.first_letter()),
            '$' => before(self.line_end()),
            'j' => Some(Motion { to: self.lines_on(self.cursor, times), extent: Extent::Lines }),
            'k' => Some(Motion { to: self.lines_back(self.cursor, times), extent: Extent::Lines }),
            'G' if count == 0 => Some(Motion { to: self.text.len(), extent: Extent::Lines }),
            'G' => Some(Motion { to: self.lines_on(0, count - 1), extent: Extent::Lines }),
            _ => None,
        }
    }

    fn go(&mut self, operator: Option<char>, motion: Option<Motion>) {
        match (operator, motion) {
            (Some(operator), Some(motion)) => self.operate(operator, motion),
            (None, Some(Motion { to, .. })) => {
                self.cursor = to;
                self.stay_on_letters();
            }
            (_, None) => {}
        }
    }

    fn operate(&mut self, operator: char, motion: Motion) {
        let (mut from, mut to) = (self.cursor.min(motion.to), self.cursor.max(motion.to));
        match motion.extent {
            Extent::Before => {}
            Extent::Through => to = self.next_letter(to),
            Extent::Lines => {
                from = self.text[..from].rfind('\n').map_or(0, |at| at + 1);
                to = self.text[to..].find('\n').map_or(self.text.len(), |at| to + at);
                return self.take_out(operator, from, to, true);
            }
        }
        self.take_out(operator, from, to, false);
    }

    /// Takes a part of the text: away, to be written anew, or as a copy.
    fn take_out(&mut self, operator: char, from: usize, to: usize, lines: bool) {
        self.remember();
        self.killed = self.text[from..to].to_owned();
        if let Some(vim) = &mut self.vim {
            vim.has_lines = lines;
        }
        match (operator, lines) {
            ('y', _) => self.cursor = if lines { self.cursor } else { from },
            ('c', _) => {
                self.text.replace_range(from..to, "");
                self.begin_insert(from);
            }
            (_, true) => {
                // The line goes with its end; the last one with that of the line before.
                let (from, to) = match (to < self.text.len(), from > 0) {
                    (true, _) => (from, to + 1),
                    (false, true) => (from - 1, to),
                    (false, false) => (from, to),
                };
                self.text.replace_range(from..to, "");
                self.cursor = from.min(self.text.len());
                self.cursor = self.line_start();
            }
            _ => {
                self.text.replace_range(from..to, "");
                self.cursor = from;
            }
        }
        if operator != 'c' {
            self.stay_on_letters();
        }
    }

    fn put(&mut self, behind: bool) {
        self.remember();
        let text = self.killed.clone();
        if self.vim.as_ref().is_some_and(|vim| vim.has_lines) {
            let at = if behind { self.line_end() } else { self.line_start() };
            let (at, text) = if behind { (at, format!("\n{text}")) } else { (at, format!("{text}\n")) };
            self.text.insert_str(at, &text);
            self.cursor = at + usize::from(behind);
        } else {
            if behind && self.cursor < self.line_end() {
                self.cursor = self.right();
            }
            self.insert(&text);
            self.cursor = self.left();
        }
    }

    fn begin_insert(&mut self, at: usize) {
        self.remember();
        self.cursor = at;
        self.set_vim_to_insert();
    }

    fn replace_letter(&mut self, letter: char) {
        let to = self.next_letter(self.cursor).min(self.line_end());
        if to > self.cursor {
            self.remember();
            self.text.replace_range(self.cursor..to, letter.encode_utf8(&mut [0; 4]));
        }
    }

    fn change_case(&mut self) {
        let to = self.next_letter(self.cursor).min(self.line_end());
        let letter = &self.text[self.cursor..to];
        let upper = letter.to_uppercase();
        let changed = if upper == letter { letter.to_lowercase() } else { upper };
        self.remember();
        self.text.replace_range(self.cursor..to, &changed);
        self.cursor += changed.len();
        self.stay_on_letters();
    }

    fn join_lines(&mut self) {
        let end = self.line_end();
        if end < self.text.len() {
            self.remember();
            let next = end + 1 + self.text[end + 1..].len() - self.text[end + 1..].trim_start_matches(' ').len();
            self.text.replace_range(end..next, " ");
            self.cursor = end;
        }
    }

    /// To a letter in the line: `f` and `t` forwards, `F` and `T` backwards.
    fn search(&mut self, operator: Option<char>, way: char, target: char, times: usize) {
        let mut at = self.cursor;
        for _ in 0..times {
            let found = if way.is_lowercase() {
                let from = self.next_letter(at).min(self.line_end());
                self.text[from..self.line_end()].find(target).map(|found| from + found)
            } else {
                self.text[self.line_start()..at].rfind(target).map(|found| self.line_start() + found)
            };
            let Some(found) = found else { return };
            at = found;
        }
        let motion = match way {
            'f' => Motion { to: at, extent: Extent::Through },
            't' => Motion { to: self.letter_before(at), extent: Extent::Through },
            'F' => Motion { to: at, extent: Extent::Before },
            _ => Motion { to: self.next_letter(at), extent: Extent::Before },
        };
        self.go(operator, Some(motion));
    }

    /// In normal mode the cursor stands on a letter, never behind the last one of a line.
    fn stay_on_letters(&mut self) {
        self.cursor = self.cursor.min(self.text.len());
        if self.is_vim_normal() && self.cursor == self.line_end() && self.cursor > self.line_start() {
            self.cursor = self.left();
        }
    }

    fn first_letter(&self) -> usize {
        let (start, end) = (self.line_start(), self.line_end());
        self.text[start..end].find(|c: char| !c.is_whitespace()).map_or(start, |at| start + at)
    }

    /// A place in the line that is so many lines below, or in the last one.
    fn lines_on(&self, from: usize, lines: usize) -> usize {
        (0..lines).fold(from, |at, _| self.text[at..].find('\n').map_or(self.text.len(), |end| at + end + 1))
    }

    fn lines_back(&self, from: usize, lines: usize) -> usize {
        (0..lines).fold(from, |at, _| {
            let start = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
            start.saturating_sub(1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text after keys in normal mode, `|` before the cursor; `<` is Esc. It begins where the `|` is.
    fn after(text: &str, keys: &str) -> String {
        let at = text.find('|').unwrap();
        let mut editor = Editor::default();
        editor.set_vim(true);
        editor.insert(&text.replace('|', ""));
        editor.cursor = at;
        if let Some(vim) = &mut editor.vim {
            vim.is_normal = true;
        }
        for letter in keys.chars() {
            let code = if letter == '<' { KeyCode::Esc } else { KeyCode::Char(letter) };
            editor.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        let mut text = editor.text().to_owned();
        text.insert(editor.cursor, '|');
        text
    }

    #[test]
    fn motions_move_as_in_vim() {
        for (before, keys, expected) in [
            ("|one two-three", "w", "one |two-three"),
            ("|one two-three", "www", "one two-|three"),
            ("|one two-three", "2W", "one two-thre|e"),
            ("one two|", "b", "one |two"),
            ("|one two", "e", "on|e two"),
            ("|one two", "$", "one tw|o"),
            ("  one| two", "^", "  |one two"),
            ("  one| two", "0", "|  one two"),
            ("a\nb\n|c", "gg", "|a\nb\nc"),
            ("|a\nb\nc", "G", "a\nb\n|c"),
            ("|a\nbb\nc", "2G", "a\n|bb\nc"),
            ("|a, b, c", "2f,", "a, b|, c"),
            ("|a, b, c", "f,;", "a, b|, c"),
            ("|a, b, c", "t,", "|a, b, c"),
            ("a, b, |c", "F,", "a, b|, c"),
            ("|ab", "3l", "a|b"),
            ("日本|語", "h", "日|本語"),
        ] {
            assert_eq!(after(before, keys), expected, "{keys} in {before:?}");
        }
    }

    #[test]
    fn operators_take_motions_words_and_lines() {
        for (before, keys, expected) in [
            ("|one two three", "dw", "|two three"),
            ("|one two three", "2dw", "|three"),
            ("one two |three", "dw", "one two| "),
            ("one two |three", "db", "one |three"),
            ("one |two three", "d$", "one| "),
            ("one |two three", "D", "one| "),
            ("one |two three", "cwx<", "one |x three"),
            ("one t|wo three", "ciwx<", "one |x three"),
            ("one t|wo three", "daw", "one |three"),
            ("a\n|b\nc", "dd", "a\n|c"),
            ("a\nb\n|c", "dd", "a\n|b"),
            ("|a\nb\nc", "2dd", "|c"),
            ("|a\nb\nc", "dj", "|c"),
            ("a\n|b\nc", "dG", "|a"),
            ("|a\nb", "ddp", "b\n|a"),
            ("|a\nb", "yyp", "a\n|a\nb"),
            ("|one two", "dwP", "one| two"),
            ("|one", "xp", "n|oe"),
            ("a(|b, c)", "dt)", "a(|)"),
            ("a(b, |c)", "ccnew<", "ne|w"),
            ("|abc", "rx", "|xbc"),
            ("|abc", "~~", "AB|c"),
            ("|a\n  b", "J", "a| b"),
            ("|one two", "dwu", "|one two"),
            ("a|b", "ox<", "ab\n|x"),
            ("a|b", "Ox<", "|x\nab"),
            ("|日本語", "x", "|本語"),
            ("|ab", "Ac<", "ab|c"),
        ] {
            assert_eq!(after(before, keys), expected, "{keys} in {before:?}");
        }
    }

    #[test]
    fn no_keys_break_a_text() {
        let keys = "dwcbyeiwaxXDCppPuJ~fatTrgGjk0$^;,2345dd<cc<yyoO<";
        let mut state = 7_u32;
        for text in ["|", "|a", "x\n\n|é日\n", "one |two (three)\n  four"] {
            for _ in 0..300 {
                let mut typed = String::new();
                for _ in 0..12 {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    typed.push(keys.as_bytes()[(state >> 16) as usize % keys.len()] as char);
                }
                after(text, &typed);
            }
        }
    }
}
