//! Every rule finds a text made from its own expression, at its keyword as in the whole text.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::*;

/// Numbers that are the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound.max(1)
    }
}

/// Appends a text that an expression matches, except for its surroundings.
fn example(hir: &Hir, numbers: &mut Numbers, out: &mut Vec<u8>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.extend(&*literal.0),
        HirKind::Class(class) => {
            let bytes: Vec<u8> = match class {
                Class::Bytes(class) => class.iter().flat_map(|range| range.start()..=range.end()).collect(),
                Class::Unicode(class) => class
                    .iter()
                    .flat_map(|range| range.start()..=range.end())
                    .filter_map(|c| u8::try_from(c).ok())
                    .collect(),
            };
            let plain: Vec<u8> = bytes.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
            let from = if plain.is_empty() { &bytes } else { &plain };
            out.push(from[numbers.below(from.len())]);
        }
        HirKind::Repetition(repeated) => {
            let most = repeated.max.unwrap_or(repeated.min + 8).min(repeated.min + 8);
            let times = repeated.min as usize + numbers.below((most - repeated.min) as usize + 1);
            (0..times).for_each(|_| example(&repeated.sub, numbers, out));
        }
        HirKind::Capture(capture) => example(&capture.sub, numbers, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| example(part, numbers, out)),
        HirKind::Alternation(ways) => example(&ways[numbers.below(ways.len())], numbers, out),
    }
}

/// Parses an expression.
fn parsed(pattern: &str) -> Hir {
    regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern).unwrap()
}

/// A path that a rule is about.
fn path_for(id: &str) -> &'static str {
    match id {
        "freemius-secret-key" => "app/config.php",
        "hashicorp-tf-password" => "infra/main.tf",
        "kubernetes-secret-yaml" => "deploy/secret.yaml",
        "nuget-config-password" => "nuget.config",
        "pkcs12-file" => "keys/site.p12",
        _ => "notes.md",
    }
}

/// TEAM-6: all rules of the file, and so far more than forty families.
#[test]
fn every_rule_finds_a_text_made_from_its_own_expression() {
    let mut numbers = Numbers(7);
    let mut silent = Vec::new();
    for kind in &SHIPPED.rules {
        let rule = &kind.rule;
        let Some(pattern) = rule.pattern() else { continue };
        let hir = parsed(&pattern);
        let keyword = rule.keywords.first().cloned().unwrap_or_default();
        // Some matches are too regular, or look like what is allowed: one of many will do.
        let found = (0..60).any(|_| {
            let mut text = format!("A note about {keyword}.\n\n").into_bytes();
            example(&hir, &mut numbers, &mut text);
            text.extend(b"\nand more.\n");
            scan(&text, path_for(&rule.id), Remarks::Ignored).iter().any(|finding| finding.rule == rule.id)
        });
        if !found {
            silent.push(rule.id.as_str());
        }
    }
    assert!(SHIPPED.rules.len() > 200 && silent.is_empty(), "{silent:?}");
}

/// TEAM-6: trying a rule only at its keyword, with wider surroundings, finds what searching the whole text with the
/// original rule finds, and more only where the surroundings differ.
#[test]
fn a_rule_tried_at_its_keyword_finds_what_a_search_of_the_whole_text_finds() {
    let mut numbers = Numbers(11);
    for (number, kind) in SHIPPED.rules.iter().enumerate() {
        let Some(pattern) = kind.rule.pattern() else { continue };
        let hir = parsed(&pattern);
        for _ in 0..4 {
            let mut text = format!("{}: key token api secret ", kind.rule.keywords.join(" ")).into_bytes();
            for _ in 0..3 {
                example(&hir, &mut numbers, &mut text);
                text.extend([b" ", b"\n", b"x"][numbers.below(3)].iter());
            }
            let search = || Search::new(&SHIPPED, &text, path_for(&kind.rule.id), Remarks::Ignored);
            let (mut pinned, mut whole) = (search(), search());
            pinned.run();
            let (mut from, regex) = (0, kind.rule.regex().unwrap());
            while let Some(groups) = regex.captures_at(&text, from) {
                let all = groups.get(0).unwrap();
                from = all.end().max(from + 1);
                whole.weigh(number, &groups, (0, all.start()), Reading::Written);
            }
            let secrets = |found: &[PossibleSecret<'_>]| -> Vec<Vec<u8>> {
                found.iter().filter(|found| found.rule == number).map(|found| found.secret.to_vec()).collect()
            };
            let shown = String::from_utf8_lossy(&text).into_owned();
            let (pinned, whole) = (secrets(&pinned.found), secrets(&whole.found));
            if kind.rule.wide_pattern().as_ref() == Some(&pattern) {
                assert_eq!(pinned, whole, "{}: {shown}", kind.rule.id);
            }
            assert!(whole.iter().all(|one| pinned.contains(one)), "{}: {pinned:?} {whole:?} {shown}", kind.rule.id);
        }
    }
}

#[test]
fn the_rules_are_the_ones_that_were_pinned() {
    use sha2::{Digest, Sha256};
    let hash =
        Sha256::digest(secret_rules::FILE.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hash, include_str!("gitleaks.sha256").trim());
}

#[test]
fn randomness_is_counted_in_bits_a_character() {
    assert_eq!(entropy(b"aaaa"), 0.0);
    assert!((entropy(b"abcd") - 2.0).abs() < 1e-9);
    assert!((entropy("abcä".as_bytes()) - 4.0 * 0.2 * 5f64.log2()).abs() < 1e-9);
    assert_eq!(entropy(b""), 0.0);
}

/// TEAM-6: a text made to slow the scan down does not: four times the text is four times the work.
#[test]
fn a_hostile_text_is_scanned_in_linear_time() {
    let dash = "-----";
    for unit in [
        format!("{dash}BEGIN PRIVATE KEY{dash}"),
        "key=".to_owned(),
        "api_key_token_".to_owned(),
        "\u{fffd}".to_owned(),
    ] {
        let tried = |length: usize| {
            let text = unit.repeat(length / unit.len());
            let mut search = Search::new(&SHIPPED, text.as_bytes(), "", Remarks::Ignored);
            search.run();
            search.tried
        };
        // The windows of the last keywords are cut short, which counts more in the shorter text.
        let (short, long) = (tried(100_000), tried(400_000));
        assert!(long <= 5 * short, "{unit:?}: {short} for 100 KB, {long} for 400 KB");
    }
}
