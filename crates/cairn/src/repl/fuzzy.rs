//! Fuzzy matching: all letters of what was typed, in this order, and how well they sit.
//!
//! Letters next to one another and at the beginnings of words count more, and so does the last part of a path. It sorts;
//! it knows nothing of files or commands.

/// Points for a letter that follows the one before it.
const NEXT: i32 = 8;
/// Points for a letter at the beginning of a word.
const WORD: i32 = 10;
/// Points for a letter in the last part of a path.
const LAST_PART: i32 = 3;
/// Points for a match from the very first letter.
const FIRST: i32 = 12;
/// A point outweighs so many letters that do not match.
const LENGTH: i32 = 4;

/// Score of a text for what was typed; none if it does not. Upper case matters only where it was typed.
pub(super) fn score(typed: &str, text: &str) -> Option<i32> {
    if typed.is_empty() {
        return Some(0);
    }
    let exact = typed.chars().any(char::is_uppercase);
    let fold = |c: char| if exact { c } else { c.to_ascii_lowercase() };
    let letters: Vec<char> = text.chars().collect();
    let typed: Vec<char> = typed.chars().collect();
    // Where the match ends first, and from there back to where it begins last: the shortest one that ends there.
    let mut end = 0;
    for &wanted in &typed {
        end += 1 + letters[end..].iter().position(|&c| fold(c) == fold(wanted))?;
    }
    // One that ends later may sit in the last part of the path.
    let inside = &letters[..letters.len().saturating_sub(1)];
    let last_part = inside.iter().rposition(|&c| c == '/').map_or(0, |at| at + 1);
    let ends = [Some(end), last_end(&typed, &letters, last_part, fold)];
    let best = ends.into_iter().flatten().map(|end| points(&typed, &letters, end, last_part, fold)).max()?;
    Some(best * LENGTH - i32::try_from(letters.len().saturating_sub(typed.len())).unwrap_or(i32::MAX / 2))
}

/// The end of the match in the last part alone, if there is one.
fn last_end(typed: &[char], letters: &[char], from: usize, fold: impl Fn(char) -> char) -> Option<usize> {
    let mut end = from;
    for &wanted in typed {
        end += 1 + letters[end..].iter().position(|&c| fold(c) == fold(wanted))?;
    }
    Some(end)
}

fn points(typed: &[char], letters: &[char], end: usize, last_part: usize, fold: impl Fn(char) -> char) -> i32 {
    let (mut at, mut points, mut after) = (end, 0, usize::MAX);
    for &wanted in typed.iter().rev() {
        while at > 0 && fold(letters[at - 1]) != fold(wanted) {
            at -= 1;
        }
        at = at.saturating_sub(1);
        let begins = at == 0 || !letters[at - 1].is_alphanumeric() || is_hump(letters, at);
        points += i32::from(begins) * WORD + i32::from(at + 1 == after) * NEXT + i32::from(at >= last_part) * LAST_PART;
        after = at;
    }
    points + i32::from(after == 0 || after == last_part) * FIRST
}

fn is_hump(letters: &[char], at: usize) -> bool {
    letters[at].is_uppercase() && letters[at - 1].is_lowercase()
}

/// The texts that fit, the best first; of those that fit equally the earlier one.
pub(super) fn best<T>(typed: &str, all: impl IntoIterator<Item = T>, text: impl Fn(&T) -> &str, most: usize) -> Vec<T> {
    let mut fits: Vec<(i32, usize, T)> = Vec::new();
    for (at, one) in all.into_iter().enumerate() {
        if let Some(points) = score(typed, text(&one)) {
            fits.push((-points, at, one));
        }
    }
    let order = |one: &(i32, usize, T), other: &(i32, usize, T)| (one.0, one.1).cmp(&(other.0, other.1));
    if fits.len() > most {
        fits.select_nth_unstable_by(most, order);
        fits.truncate(most);
    }
    fits.sort_unstable_by(order);
    fits.into_iter().map(|(_, _, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(typed: &str, all: &[&'static str]) -> Vec<&'static str> {
        best(typed, all.iter().copied(), |one| *one, 10)
    }

    #[test]
    fn the_letters_are_found_in_order_and_the_best_comes_first() {
        let files = [
            "src/config.rs",
            "src/deep/nested/configuration_parser.rs",
            "docs/of/nothing.md",
            "con/f/x.txt",
            "README.md",
        ];
        assert_eq!(sorted("conf", &files)[..2], ["src/config.rs", "src/deep/nested/configuration_parser.rs"]);
        assert_eq!(sorted("cpars", &files)[0], "src/deep/nested/configuration_parser.rs");
        assert_eq!(sorted("deep/conf", &files), ["src/deep/nested/configuration_parser.rs"]);
        assert_eq!(sorted("readme", &files), ["README.md"]);
        assert_eq!(sorted("README", &files), ["README.md"]);
        assert_eq!(sorted("Readme", &files), Vec::<&str>::new(), "upper case is meant");
        assert_eq!(sorted("zzz", &files), Vec::<&str>::new());
        assert_eq!(sorted("", &files).len(), files.len());
    }

    #[test]
    fn commands_that_begin_so_come_before_those_that_contain_it() {
        assert_eq!(sorted("re", &["private", "resume", "rewind", "cost"]), ["resume", "rewind", "private"]);
        assert_eq!(sorted("mode", &["model", "mode", "compact"]), ["mode", "model"]);
        assert_eq!(sorted("日本", &["ä日本語.md", "x"]), ["ä日本語.md"]);
    }
}
