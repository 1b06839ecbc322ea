//! A terminal's screen as a test sees it, and as a snapshot shows it.

use regex::Regex;

/// What is seen.
#[derive(Debug)]
pub struct Screen {
    /// The rows of the window.
    pub rows: Vec<String>,
    /// Row and column of the cursor.
    pub cursor: (u16, u16),
}

impl Screen {
    pub fn contains(&self, text: &str) -> bool {
        self.rows.iter().any(|row| row.contains(text))
    }

    /// Whether the prompt is there: one row with its mark at or above the cursor, a status line below, then nothing.
    pub fn has_prompt(&self) -> bool {
        let at = usize::from(self.cursor.0);
        let Some(first) = self.rows[..=at].iter().rposition(|row| row.starts_with('›')) else { return false };
        let below: Vec<&String> =
            self.rows[at + 1..].iter().skip_while(|row| row.starts_with("  ") || row.starts_with("› ")).collect();
        let after = below.iter().skip(1).all(|row| row.is_empty());
        self.rows[first + 1..=at].iter().all(|row| row.starts_with("  ") || row.is_empty())
            && below.first().is_some_and(|row| !row.is_empty() && !row.starts_with('›'))
            && after
    }

    /// How often a text stands on the screen.
    pub fn count(&self, text: &str) -> usize {
        self.rows.iter().map(|row| row.matches(text).count()).sum()
    }

    /// What stands in the prompt, without its mark.
    pub fn typed(&self) -> String {
        let at = usize::from(self.cursor.0);
        let first = self.rows[..=at].iter().rposition(|row| row.starts_with('›')).unwrap_or(at);
        let rows = self.rows[first..].iter().enumerate().take_while(|(n, row)| *n == 0 || row.starts_with("  "));
        rows.map(|(_, row)| row.chars().skip(2).collect::<String>())
            .collect::<Vec<_>>()
            .join("\n")
            .trim_end()
            .to_owned()
    }

    /// Whether something is under way.
    pub fn is_working(&self) -> bool {
        self.rows.iter().any(|row| spins(row))
    }

    /// The window as text, for snapshots: what differs from run to run is named, the row that spins is left out, the
    /// cursor is `▏`.
    pub fn text(&self) -> String {
        let mut rows = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let mut row = row.clone();
            if at == usize::from(self.cursor.0) {
                row = with_cursor(&row, self.cursor.1.into());
            }
            if !spins(&row) {
                rows.push(row);
            }
        }
        named(rows.join("\n").trim_end())
    }
}

fn spins(row: &str) -> bool {
    row.starts_with(['⠋', '⠙', '⠸', '⠴', '⠦', '⠇'])
}

fn with_cursor(row: &str, column: usize) -> String {
    let mut used = 0;
    let mut out = String::new();
    let mut placed = false;
    for c in row.chars() {
        if used >= column && !placed {
            out.push('▏');
            placed = true;
        }
        out.push(c);
        used += vt100_width(c);
    }
    if !placed {
        out.push_str(&" ".repeat(column.saturating_sub(used)));
        out.push('▏');
    }
    out
}

/// Wide characters take two columns.
fn vt100_width(c: char) -> usize {
    match u32::from(c) {
        0x200d | 0xfe0f | 0x0300..=0x036f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff00..=0xff60 => 2,
        0x1f300..=0x1f64f | 0x1f680..=0x1f6ff | 0x1f900..=0x1f9ff => 2,
        _ => 1,
    }
}

/// Ids, costs and figures that depend on the machine get names.
pub fn named(text: &str) -> String {
    let names = [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<session>"),
        (r"\$\d+\.\d+", "$$N"),
        (r"\d+ % context", "N % context"),
        (r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}", "<time>          "),
        (r"\b01[0-9a-f]{6}-[0-9a-f]{4}\b", "<id>         "),
        (r"\b01[0-9a-f]{6}\b", "<id>"),
    ];
    let text = text.replace(env!("CARGO_PKG_VERSION"), "<version>");
    names.iter().fold(text, |text, (pattern, name)| Regex::new(pattern).unwrap().replace_all(&text, *name).into_owned())
}

/// Counts of tokens get a name that is as long as they are, where they change with every word of a prompt.
pub fn figures(text: &str) -> String {
    let number = Regex::new(r"\d[\d,]*\d\d\b").unwrap();
    number.replace_all(text, |found: &regex::Captures<'_>| "N".repeat(found[0].len())).into_owned()
}

/// A screen of another size with the same lines, those that were wrapped put together and wrapped anew.
pub fn reflowed(screen: &vt100::Screen, columns: u16, lines: u16, scrollback: usize) -> vt100::Parser {
    let (rows, old_columns) = screen.size();
    let cursor = screen.cursor_position();
    let mut texts: Vec<String> = vec![String::new()];
    let mut place = (0, 0);
    for row in 0..rows {
        if row == cursor.0 {
            let before = texts.last().unwrap().chars().map(vt100_width).sum::<usize>();
            place = (texts.len() - 1, before + usize::from(cursor.1));
        }
        let text = screen.rows(0, old_columns).nth(row.into()).unwrap();
        texts.last_mut().unwrap().push_str(if screen.row_wrapped(row) { &text } else { text.trim_end() });
        if !screen.row_wrapped(row) {
            texts.push(String::new());
        }
    }
    let used = texts.iter().rposition(|text| !text.is_empty()).unwrap_or(0).max(place.0);
    let mut parser = vt100::Parser::new(lines, columns, scrollback);
    parser.process(texts[..=used].join("\r\n").as_bytes());
    // Up from the end to the line the cursor was in, then along it.
    let height = |text: &String| text.chars().map(vt100_width).sum::<usize>().div_ceil(columns.into()).max(1);
    let below: usize = texts[place.0..=used].iter().map(height).sum();
    let inside = place.1 / usize::from(columns);
    let up = below.saturating_sub(1 + inside);
    if up > 0 {
        parser.process(format!("\x1b[{up}A").as_bytes());
    }
    parser.process(format!("\x1b[{}G", place.1 % usize::from(columns) + 1).as_bytes());
    if screen.bracketed_paste() {
        parser.process(b"\x1b[?2004h");
    }
    parser
}
