//! Positions of code and comments in Markdown.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

/// Positions of code and raw HTML in a text.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// Code spans and code blocks.
    pub(crate) code: Vec<Range<usize>>,
    /// HTML comments.
    pub(crate) comments: Vec<Range<usize>>,
}

/// Finds them.
pub(crate) fn regions(text: &str) -> Regions {
    let mut regions = Regions::default();
    // Most texts have neither, and then the parser has nothing to tell.
    if !text.contains(['`', '~', '<', '\t']) && !text.contains("    ") {
        return regions;
    }
    for (event, range) in Parser::new_ext(text, Options::empty()).into_offset_iter() {
        match event {
            Event::Code(_) | Event::Start(Tag::CodeBlock(_)) => regions.code.push(range),
            Event::InlineHtml(_) | Event::Start(Tag::HtmlBlock) => comments_in(text, range, &mut regions.comments),
            _ => {}
        }
    }
    regions
}

fn comments_in(text: &str, range: Range<usize>, found: &mut Vec<Range<usize>>) {
    let mut at = range.start;
    while let Some(open) = text[at..range.end].find("<!--") {
        let open = at + open;
        let Some(close) = text[open + 4..range.end].find("-->") else { break };
        at = open + 4 + close + 3;
        found.push(open..at);
    }
}

/// The text without HTML comments; those in code stay. A line with nothing else on it goes too.
pub(crate) fn without_comments(text: &str) -> String {
    if !text.contains("<!--") {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut kept = 0;
    for comment in regions(text).comments {
        if comment.start < kept {
            continue;
        }
        out.push_str(&text[kept..comment.start]);
        kept = comment.end;
        let alone = out.is_empty() || out.ends_with('\n');
        if alone && let Some(rest) = text[kept..].strip_prefix("\r\n").or_else(|| text[kept..].strip_prefix('\n')) {
            kept = text.len() - rest.len();
        }
    }
    out.push_str(&text[kept..]);
    out
}
