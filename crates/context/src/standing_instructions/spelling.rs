//! One spelling for whatever is written in several.

/// A sentence without what it quotes, unless it is nothing but a quotation. Code that is quoted becomes one word.
pub(super) fn without_quotations(sentence: &str) -> String {
    const MARKS: [(char, char, &str); 6] =
        [('`', '`', "code"), ('"', '"', ""), ('“', '”', ""), ('„', '“', ""), ('«', '»', ""), ('「', '」', "")];
    let mut rest = sentence;
    let mut text = String::new();
    while let Some(at) = rest.find(|c| MARKS.iter().any(|(open, ..)| *open == c)) {
        let open = rest[at..].chars().next().unwrap_or_default();
        let (before, after) = (&rest[..at], &rest[at + open.len_utf8()..]);
        let closed = MARKS.iter().filter(|mark| mark.0 == open).find_map(|mark| Some((mark, after.find(mark.1)?)));
        let Some(((_, close, instead), end)) = closed else { break };
        text.push_str(before);
        text.push_str(instead);
        rest = &after[end + close.len_utf8()..];
    }
    text.push_str(rest);
    match text.split_whitespace().filter(|word| *word != "code").any(|word| word.contains(char::is_alphabetic)) {
        true => text,
        false => sentence.to_owned(),
    }
}

/// A sentence in lower case with one spelling for each negation, one blank around each word, and a comma for each pause.
pub(super) fn one_spelling(sentence: &str) -> String {
    let mut text = String::from(" ");
    let lower = sentence.to_lowercase().replace(['’', '`'], "'");
    let mut chars = lower.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ',' | ':' | ';' | '(' | ')' | '–' | '—' | '!' | '¿' | '¡' | '、' | '，' => text.push_str(" , "),
            c if c.is_alphanumeric() || "'-_".contains(c) => text.push(c),
            // A dot in a name is a part of it.
            '.' if chars.peek().is_some_and(|next| next.is_alphanumeric()) => text.push(c),
            _ => text.push(' '),
        }
    }
    text.push(' ');
    let words = text.split_whitespace().map(|word| word.trim_matches(['\'', '_', '.']));
    let words: Vec<&str> = words.filter(|word| !word.trim_matches('-').is_empty()).collect();
    let mut text = format!(" {} ", words.join(" "));
    for (from, to) in [
        (" do not ", " don't "),
        (" dont ", " don't "),
        (" cant ", " can't "),
        (" wont ", " won't "),
        (" isnt ", " isn't "),
        (" arent ", " aren't "),
        (" shouldnt ", " shouldn't "),
        (" mustnt ", " mustn't "),
        (" cannot ", " can't "),
        (" can not ", " can't "),
        (" are not to ", " aren't to "),
        (" is not to be ", " not to be "),
        (" pls ", " please "),
        (" plz ", " please "),
        (" alwyas ", " always "),
        (" allways ", " always "),
        (" alway ", " always "),
        (" nver ", " never "),
        (" nevr ", " never "),
        (" neevr ", " never "),
        (" u ", " you "),
    ] {
        text = text.replace(from, to);
    }
    // What "but" begins here is a clause of its own, unlike "nobody but me".
    for next in ["don't", "never", "always", "only", "not", "no", "leave", "keep", "ask", "make", "please", "you", "we"]
    {
        text = text.replace(&format!(" but {next} "), &format!(" , but {next} "));
    }
    text
}
