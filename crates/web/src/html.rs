//! HTML as Markdown.
//!
//! A page decides how deep its elements lie within one another, and converting them is recursive. So a page that is too deep
//! becomes plain text: one whose tags nest too deep before it is parsed, since parsing takes time for each level, and one whose
//! tree is too deep before it is walked.

use std::rc::Rc;

use htmd::element_handler::{HandlerResult, Handlers};
use htmd::{Element, HtmlToMarkdown, Node};

/// The deepest tags that are parsed.
const PARSED: usize = 1_000;
/// The deepest tree that is walked. Pages have some dozens of levels.
const WALKED: usize = 200;
/// Elements whose content is no text for a reader.
const NO_TEXT: [&str; 8] = ["script", "style", "noscript", "iframe", "svg", "canvas", "template", "object"];
/// Elements without content.
const VOID: [&str; 14] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];
/// Elements that one of the same name ends.
const ENDED_BY_THE_NEXT: [&str; 9] = ["p", "li", "dt", "dd", "td", "th", "tr", "option", "tbody"];

/// A page as Markdown; as plain text if it is too deep.
pub fn markdown_of(html: &str) -> String {
    if nesting(html) > PARSED {
        return without_tags(html);
    }
    let image = |_: &dyn Handlers, image: Element<'_>| -> Option<HandlerResult> {
        let about = image.attrs.iter().find(|attribute| &*attribute.name.local == "alt")?;
        Some(about.value.to_string().into())
    };
    let converter = HtmlToMarkdown::builder().skip_tags(NO_TEXT.to_vec()).add_handler(vec!["img"], image).build();
    let Ok(tree) = converter.html_to_tree(html) else { return without_tags(html) };
    match depth(&tree) > WALKED {
        true => without_tags(html),
        false => converter.tree_to_markdown(&tree),
    }
}

/// The depth of a tree.
fn depth(tree: &Rc<Node>) -> usize {
    let (mut deepest, mut open) = (0, vec![(tree.clone(), 1)]);
    while let Some((node, depth)) = open.pop() {
        deepest = deepest.max(depth);
        open.extend(node.children.borrow().iter().map(|child| (child.clone(), depth + 1)));
    }
    deepest
}

/// The most tags that are open at once, or one more than is parsed. A tag counts as closed only by its own end right there, so
/// that no parser has more open.
fn nesting(html: &str) -> usize {
    let (mut open, mut most): (Vec<String>, usize) = (Vec::new(), 0);
    for tag in tags(html) {
        let (is_end, tag) = tag.strip_prefix('/').map_or((false, tag), |tag| (true, tag));
        let name = tag.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default().to_ascii_lowercase();
        let is_last = open.last() == Some(&name);
        if is_end {
            open.truncate(open.len() - usize::from(is_last));
        } else if !(VOID.contains(&name.as_str()) || is_last && ENDED_BY_THE_NEXT.contains(&name.as_str())) {
            open.push(name);
        }
        most = most.max(open.len());
        if most > PARSED {
            break;
        }
    }
    most
}

/// The tags of a page: what stands between the brackets.
fn tags(html: &str) -> impl Iterator<Item = &str> {
    html.split('<')
        .skip(1)
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/'))
        .map(|rest| rest.split('>').next().unwrap_or_default())
}

/// The text without tags, and without what no reader sees.
fn without_tags(html: &str) -> String {
    let (mut out, mut hidden) = (String::new(), None::<&str>);
    let mut parts = html.split('<');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (tag, text) = part.split_once('>').unwrap_or((part, ""));
        let name =
            tag.trim_start_matches('/').split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
        match hidden {
            Some(element) if tag.starts_with('/') && name.eq_ignore_ascii_case(element) => hidden = None,
            Some(_) => continue,
            None => {
                hidden =
                    NO_TEXT.into_iter().find(|element| !tag.starts_with('/') && name.eq_ignore_ascii_case(element));
            }
        }
        if hidden.is_none() {
            out.push(' ');
            out.push_str(text);
        }
    }
    let lines = out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// WEB-1: a page is read as Markdown, without scripts.
    #[test]
    fn a_page_is_markdown() {
        let html = "<html><head><title>T</title><style>x{}</style></head><body><h1>Title</h1><p>A <b>bold</b> <a \
                    href=\"/x\">link</a>.<script>alert(1)</script><img src='data:AAAA' alt='A cat'><ul><li>one<li>two</ul>\
                    <table><tr><th>a</th></tr><tr><td>1</td></tr></table><pre><code>x = 1</code></pre></body></html>";
        let text = markdown_of(html);
        for part in ["# Title", "A **bold** [link](/x).", "A cat", "one", "two", "| 1", "x = 1"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("alert") && !text.contains("AAAA") && !text.contains("x{}"), "{text}");
    }

    /// WEB-1: however deep a page is, it is read, and in time.
    #[test]
    fn a_page_of_any_depth_is_read() {
        for (open, times) in [
            ("<div>", 100_000),
            ("<div>", 600),
            ("<b><p></b>", 100_000),
            ("<table><tr><td></div>", 100_000),
            ("<a></x>", 100_000),
            ("<svg><g>", 20_000),
            ("<p><b>", 100_000),
            ("<li>", 100_000),
            ("<template>", 100_000),
            ("<font><table>", 400),
        ] {
            let text = markdown_of(&format!("{}deep inside", open.repeat(times)));
            assert!(
                text.contains("deep inside") || open.contains("svg") || open.contains("template"),
                "{open}: {:.80}",
                text
            );
        }
    }

    proptest! {
        /// WEB-1: any text is some page.
        #[test]
        fn any_text_is_a_page(html in r#"(<(/)?(div|p|b|table|td|svg|math|select|option|template|script|a|li|!--|br)( x="y")?/?>|[a-z<>&;" -]){0,80}"#) {
            markdown_of(&html);
            without_tags(&html);
        }
    }
}
