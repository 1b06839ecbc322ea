//! The user's words as blocks: text, and the pictures it names.
//!
//! Text is often pasted, and may be anybody's. So a picture is sent along only if it lies in the working directory, links
//! followed; another one the model can ask for, and then the user is asked.

use std::path::Path;

use transcript::Block;

/// The largest picture that is sent along.
const PICTURE_LIMIT: u64 = 3_750_000;

/// Text, with every picture it names by path (after `@`, or as an absolute path, as terminals paste them) before it.
pub(crate) fn blocks_of(text: &str, directory: &Path) -> Vec<Block> {
    let mut blocks = pictures(text, directory);
    blocks.push(Block::text(text));
    blocks
}

/// The pictures a text names.
pub(crate) fn pictures(text: &str, directory: &Path) -> Vec<Block> {
    words(text).filter_map(|word| picture(&word, directory)).collect()
}

/// Words that could be paths; quoted ones are taken whole.
fn words(text: &str) -> impl Iterator<Item = String> {
    let quoted = text.split(['\'', '"']).skip(1).step_by(2).map(str::to_owned);
    let plain = text.split_whitespace().map(|word| word.trim_matches(['\'', '"']).to_owned());
    let mut words: Vec<String> = quoted.chain(plain).collect();
    words.dedup();
    words.into_iter()
}

fn picture(word: &str, directory: &Path) -> Option<Block> {
    let path = word.strip_prefix('@').or_else(|| word.starts_with('/').then_some(word))?;
    let extension = Path::new(path).extension()?.to_str()?.to_lowercase();
    if !["png", "jpg", "jpeg", "gif", "webp"].contains(&extension.as_str()) {
        return None;
    }
    let real = files::real(directory.join(path)).ok().filter(|real| real.starts_with(directory))?;
    let file = files::exact::read(real, PICTURE_LIMIT).ok()?;
    let kind = tools::picture(&file.bytes)?;
    use base64::Engine;
    Some(Block::image(kind, &base64::engine::general_purpose::STANDARD.encode(&file.bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use transcript::block::Kind;

    /// TRUST-5: a picture from outside the working directory is not sent because a text names it.
    #[test]
    fn pictures_from_elsewhere_are_not_sent_along() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let project = base.join("project");
        files::replace(base.join("mine.png"), b"\x89PNG\r\n\x1a\n0000").unwrap();
        files::replace(project.join("theirs.png"), b"\x89PNG\r\n\x1a\n0000").unwrap();
        std::os::unix::fs::symlink(base.join("mine.png"), project.join("link.png")).unwrap();
        let text = format!("@link.png @../mine.png {0}/mine.png '{0}/mine.png'", base.display());
        assert_eq!(pictures(&text, &project), []);
        assert_eq!(pictures("@theirs.png", &project).len(), 1);
    }

    #[test]
    fn pictures_that_are_named_are_sent_along() {
        let root = tempfile::tempdir().unwrap();
        files::replace(root.path().join("a b.png"), b"\x89PNG\r\n\x1a\n0000").unwrap();
        files::replace(root.path().join("c.png"), b"not a picture").unwrap();
        let named = format!("what is '{}/a b.png' and @c.png and @missing.png?", root.path().display());
        let blocks = blocks_of(&named, root.path());
        assert_eq!(blocks.iter().map(Block::kind).collect::<Vec<_>>(), [&Kind::Image, &Kind::Text]);
    }
}
