//! Git: the subcommands that only look, with the options that keep them so.
//!
//! What git's configuration makes it run is not seen here: whoever asks looks at the repository as well. An unknown
//! subcommand may be an alias.

use super::field::{Field, is_revision};
use super::finding::{Finding, How, Touch};
use super::options::{Given, Options, Order, Others};

/// What a subcommand shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// Names, dates, states.
    Names,
    /// What is in files.
    Contents,
    /// Contents if an option asks for them (`-p`).
    ContentsIfAsked,
}

/// When operands do not change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operands {
    Any,
    /// Only beside one of these options.
    With(&'static [&'static str]),
    /// At most this many.
    AtMost(usize),
    /// The first is one of these; none is allowed where the list begins with the empty word.
    First(&'static [&'static str]),
}

struct Subcommand {
    names: &'static str,
    shows: Shows,
    operands: Operands,
    short: &'static str,
    long: &'static [&'static str],
}

const fn sub(
    names: &'static str,
    shows: Shows,
    operands: Operands,
    short: &'static str,
    long: &'static [&'static str],
) -> Subcommand {
    Subcommand { names, shows, operands, short, long }
}

const DIFF: &str = "patch no-patch unified= raw patch-with-raw indent-heuristic no-indent-heuristic minimal patience histogram \
    diff-algorithm= anchored= stat? numstat shortstat dirstat? cumulative summary patch-with-stat compact-summary name-only \
    name-status submodule? color? no-color color-moved? color-moved-ws= word-diff? word-diff-regex= color-words? \
    no-renames rename-empty no-rename-empty check ws-error-highlight= full-index binary abbrev? break-rewrites? find-renames? \
    find-copies? find-copies-harder irreversible-delete diff-filter= pickaxe-all pickaxe-regex find-object= \
    skip-to= rotate-to= relative? no-relative text ignore-cr-at-eol ignore-space-at-eol ignore-space-change \
    ignore-all-space ignore-blank-lines ignore-matching-lines= inter-hunk-context= function-context exit-code quiet \
    no-ext-diff no-textconv ignore-submodules? src-prefix= dst-prefix= no-prefix default-prefix line-prefix= \
    ita-invisible-in-index cached staged merge-base base ours theirs stat-width= stat-count= stat-name-width= no-index";
const DIFF_SHORT: &str = "puU:szB?M?C?DRl:S:G:abwWI:qtrvc#X?";
const LOG: &str = "follow no-decorate decorate? decorate-refs= decorate-refs-exclude= source mailmap no-mailmap use-mailmap log-size max-count= \
    skip= since= after= until= before= since-as-filter= author= committer= grep-reflog= grep= all-match invert-grep \
    regexp-ignore-case basic-regexp extended-regexp fixed-strings perl-regexp remove-empty merges no-merges min-parents= \
    max-parents= no-min-parents no-max-parents first-parent exclude-first-parent-only not all branches? tags? remotes? glob= \
    exclude= exclude-hidden= reflog alternate-refs ignore-missing boundary cherry-mark cherry-pick left-only right-only \
    cherry walk-reflogs merge simplify-by-decoration show-pulls full-history dense sparse simplify-merges ancestry-path? \
    date-order author-date-order topo-order reverse no-walk? do-walk pretty? format= abbrev-commit no-abbrev-commit oneline \
    encoding= expand-tabs? no-expand-tabs notes? no-notes relative-date date= parents children left-right graph \
    no-graph show-linear-break? count no-commit-id diff-merges= no-diff-merges combined-all-paths cc root full-diff \
    objects no-object-names disk-usage? timestamp header quiet";
const REFS: &str = "sort= format= contains? no-contains? merged? no-merged? points-at= column? no-column color? count= ignore-case \
    omit-empty abbrev? no-abbrev";

const TABLE: &[Subcommand] = &[
    sub(
        "status",
        Shows::Names,
        Operands::Any,
        "sbvu?z",
        &[
            "short branch show-stash porcelain? long verbose untracked-files? ignore-submodules? ignored? column? no-column ahead-behind no-ahead-behind renames no-renames find-renames?",
        ],
    ),
    sub(
        "log whatchanged",
        Shows::ContentsIfAsked,
        Operands::Any,
        "puU:szB?M?C?DRl:S:G:abwWI:qtrvc#n:L:gimEFPk",
        &[DIFF, LOG],
    ),
    sub("show", Shows::Contents, Operands::Any, "puU:szB?M?C?DRl:S:G:abwWI:qtrvc#n:L:gimEFPk", &[DIFF, LOG]),
    sub("diff", Shows::Contents, Operands::Any, DIFF_SHORT, &[DIFF]),
    sub(
        "diff-tree diff-index diff-files",
        Shows::Contents,
        Operands::Any,
        "puU:szB?M?C?DRl:S:G:abwWI:qtrvcm0123",
        &[DIFF, LOG, "stdin"],
    ),
    sub(
        "range-diff cherry",
        Shows::Contents,
        Operands::Any,
        "vs",
        &[DIFF, "creation-factor= no-dual-color left-only right-only"],
    ),
    sub(
        "blame annotate",
        Shows::Contents,
        Operands::Any,
        "bclL:stfnpewCM",
        &[
            "root show-stats show-name show-number porcelain line-porcelain show-email date= abbrev= ignore-rev= color-lines color-by-age first-parent since= reverse",
        ],
    ),
    sub(
        "grep",
        Shows::Contents,
        Operands::Any,
        "aIirwvhHEGPFnlLzcopW#e:A:B:C:qm:",
        &[
            "cached no-index untracked no-exclude-standard exclude-standard recurse-submodules text ignore-case word-regexp invert-match full-name extended-regexp basic-regexp perl-regexp fixed-strings line-number column files-with-matches name-only files-without-match null only-matching count color? no-color break heading show-function function-context context= after-context= before-context= max-count= threads= and or not all-match quiet max-depth= recursive no-recursive",
        ],
    ),
    sub("shortlog", Shows::Names, Operands::Any, "nsec#", &["numbered summary email committer group= format=", LOG]),
    sub("rev-list", Shows::Names, Operands::Any, "n:#gimEFP", &[LOG, "use-bitmap-index in-commit-order unpacked"]),
    sub(
        "rev-parse",
        Shows::Names,
        Operands::Any,
        "q",
        &[
            "verify quiet sq short? abbrev-ref? symbolic symbolic-full-name all branches? tags? remotes? glob= exclude= disambiguate= show-toplevel show-cdup show-prefix git-dir absolute-git-dir git-common-dir is-inside-git-dir is-inside-work-tree is-bare-repository is-shallow-repository show-superproject-working-tree shared-index-path show-object-format? local-env-vars git-path= revs-only no-revs flags no-flags default= prefix= not path-format= show-ref-format end-of-options",
        ],
    ),
    sub(
        "ls-files",
        Shows::Names,
        Operands::Any,
        "cdmoiskutvfzx:X@",
        &[
            "cached deleted modified others ignored stage killed unmerged directory no-empty-directory eol deduplicate exclude= exclude-from@ exclude-per-directory= exclude-standard error-unmatch with-tree= full-name recurse-submodules abbrev? format=",
        ],
    ),
    sub(
        "ls-tree",
        Shows::Names,
        Operands::Any,
        "drtlz",
        &["long name-only name-status object-only full-name full-tree abbrev? format="],
    ),
    sub(
        "cat-file",
        Shows::Contents,
        Operands::Any,
        "ptse",
        &["batch? batch-check? batch-all-objects buffer unordered allow-unknown-type follow-symlinks"],
    ),
    sub(
        "describe",
        Shows::Names,
        Operands::Any,
        "",
        &[
            "all tags contains abbrev= candidates= exact-match debug long match= exclude= always first-parent dirty? broken?",
        ],
    ),
    sub("merge-base", Shows::Names, Operands::Any, "a", &["all octopus independent is-ancestor fork-point"]),
    sub("name-rev", Shows::Names, Operands::Any, "", &["tags refs= exclude= all name-only no-undefined always"]),
    sub(
        "show-ref",
        Shows::Names,
        Operands::Any,
        "dqs",
        &["head heads tags branches dereference hash? verify exists abbrev? quiet"],
    ),
    sub("for-each-ref", Shows::Names, Operands::Any, "", &[REFS, "shell perl python tcl exclude= stdin"]),
    sub(
        "branch",
        Shows::Names,
        Operands::With(&["list", "contains", "no-contains", "merged", "no-merged", "points-at", "show-current"]),
        "arvlqi",
        &[REFS, "all remotes verbose list show-current quiet no-color"],
    ),
    sub(
        "tag",
        Shows::Names,
        Operands::With(&["list", "l", "contains", "no-contains", "merged", "no-merged", "points-at", "n"]),
        "ln?i",
        &[REFS, "list no-color"],
    ),
    sub(
        "reflog",
        Shows::ContentsIfAsked,
        Operands::First(&["", "show", "list", "exists"]),
        "puU:szn:#gimEFP",
        &[DIFF, LOG],
    ),
    sub(
        "stash",
        Shows::Contents,
        Operands::First(&["list", "show"]),
        "puU:szn:#",
        &[DIFF, LOG, "include-untracked only-untracked"],
    ),
    sub("remote", Shows::Names, Operands::First(&["", "get-url"]), "v", &["verbose push all"]),
    sub("worktree", Shows::Names, Operands::First(&["list"]), "vz", &["porcelain verbose expire="]),
    sub("symbolic-ref", Shows::Names, Operands::AtMost(1), "q", &["quiet short no-recurse"]),
    sub(
        "config",
        Shows::Names,
        Operands::AtMost(1),
        "lz",
        &[
            "get= get-all= get-regexp= get-urlmatch= list show-origin show-scope name-only null global system local worktree includes no-includes type= bool int path default=",
        ],
    ),
    sub("check-ignore", Shows::Names, Operands::Any, "qvnz", &["quiet verbose stdin non-matching no-index"]),
    sub("check-attr", Shows::Names, Operands::Any, "az", &["all stdin cached source="]),
    sub("count-objects", Shows::Names, Operands::AtMost(0), "vH", &["verbose human-readable"]),
    sub("version", Shows::Names, Operands::AtMost(0), "", &["build-options"]),
];

/// Variables that may be set for one call with `-c`.
const HARMLESS_SETTINGS: [&str; 7] =
    ["color.ui", "core.quotepath", "core.abbrev", "log.date", "diff.renames", "color.status", "color.diff"];

/// Looks at the arguments of git.
pub(super) fn git(arguments: &[Field]) -> Finding {
    let mut rest = arguments;
    let mut directory = None;
    loop {
        match rest.first().and_then(Field::text) {
            Some("-C") => {
                let Some(path) = rest.get(1) else { return Finding::unknown("git -C lacks a directory") };
                if !path.is_one() {
                    return Finding::unknown("git -C with what may be several words");
                }
                if directory.is_some() {
                    return Finding::unknown("git changes the directory twice");
                }
                directory = Some(path.clone());
                rest = &rest[2..];
            }
            Some("-c") => {
                let setting = rest.get(1).and_then(Field::text).and_then(|text| text.split_once('='));
                let Some((key, _)) = setting else { return Finding::unknown("git -c sets something") };
                if !HARMLESS_SETTINGS.contains(&key.to_ascii_lowercase().as_str()) {
                    return Finding::unknown(format!("git -c sets {key}, which may run a program"));
                }
                rest = &rest[2..];
            }
            Some("--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" | "--no-replace-objects") => {
                rest = &rest[1..];
            }
            Some("--version" | "-v") if rest.len() == 1 => return Finding::read_only("git prints its version"),
            Some(option) if option.starts_with('-') => {
                return Finding::unknown(format!("git with {option} may run something else"));
            }
            Some(_) => break,
            None if rest.is_empty() => return Finding::read_only("git prints its help"),
            None => return Finding::unknown("which git command it is, is not known"),
        }
    }
    let (Some(name), arguments) = (rest[0].text(), &rest[1..]) else {
        return Finding::unknown("which git command it is, is not known");
    };
    let mut finding = subcommand(name, arguments);
    finding.repository = true;
    if let Some(directory) = directory {
        finding.directory = Some(directory.clone());
        finding.touches.push(Touch::read(directory, How::Names));
    }
    finding
}

fn subcommand(name: &str, arguments: &[Field]) -> Finding {
    let Some(known) = TABLE.iter().find(|known| known.names.split(' ').any(|known| known == name)) else {
        return unlisted(name);
    };
    let long = known.long.join(" ");
    let given = match read(known.short, &long, arguments) {
        Ok(given) => given,
        Err(why) => return Finding::unknown(format!("git {name}: {why}")),
    };
    // `edit`, `unset` and their like are words without a dot.
    let plain = |field: &Field| field.text().is_some_and(|text| text.contains('.') || text == "list");
    if name == "config" && !given.operands.iter().all(plain) {
        return Finding::unknown("git config may change something");
    }
    if let Some(why) = writes(known, name, &given) {
        return Finding::writes(why);
    }
    let signed = |field: &Field| field.text().is_none_or(|text| text.contains("%G") || text.contains("%(signature"));
    if given.values(&["format", "pretty"]).any(signed) {
        return Finding::unknown(format!("git {name} with a format that may call gpg"));
    }
    let everything = given.has(&["list", "l", "get-regexp", "get-urlmatch"]) || given.operands.is_empty();
    let of_user = name == "config" && !given.has(&["local", "worktree"]) && everything;
    let mut finding = Finding::read_only(format!("git {name} only shows"));
    if of_user {
        finding = finding.showing("your own configuration of git");
    }
    let summary = [
        "stat",
        "shortstat",
        "numstat",
        "name-only",
        "name-status",
        "summary",
        "dirstat",
        "no-patch",
        "s",
        "quiet",
        "l",
        "files-with-matches",
        "c",
        "count",
        "compact-summary",
    ];
    let asked = [
        "p",
        "u",
        "patch",
        "U",
        "unified",
        "S",
        "G",
        "L",
        "c",
        "cc",
        "full-diff",
        "word-diff",
        "color-words",
        "W",
        "function-context",
    ];
    let contents = match known.shows {
        Shows::Names => false,
        Shows::Contents => !given.has(&summary) || given.has(&["patch", "p"]),
        Shows::ContentsIfAsked => given.has(&asked),
    };
    let mut operands = given.operands.iter();
    // The pattern of a search is no path.
    if name == "grep" && !given.has(&["e"]) {
        operands.next();
    }
    let mut some = false;
    for operand in operands {
        some = true;
        let how = if contents { How::Contents } else { How::Names };
        if let Some((_, path)) = operand.text().and_then(|text| text.split_once(':'))
            && !path.is_empty()
        {
            finding.touches.push(Touch::read(Field::Known(path.to_owned()), how));
        }
        finding.touches.push(Touch::read(operand.clone(), how));
    }
    finding.touches.extend(given.paths.iter().map(|path| Touch::read(path.clone(), How::Contents)));
    if contents && (!some || name != "blame") {
        // A revision shows whatever it changed.
        finding.touches.push(Touch::read(Field::Known(".".into()), How::Tree));
    }
    if matches!(name, "ls-files" | "diff" | "grep" | "show")
        && (name == "ls-files" || given.has(&["name-only", "l", "files-with-matches"]))
    {
        finding.lists = Some(vec![Field::Known(".".into())]);
    }
    finding.commits = prints_commits(name, &given);
    finding
}

/// Whether ids of commits are printed, and nothing else: no name that a repository chose, which may begin with a dash.
fn prints_commits(name: &str, given: &Given) -> bool {
    const WALK: [&str; 19] = [
        "n",
        "max-count",
        "skip",
        "first-parent",
        "reverse",
        "merges",
        "no-merges",
        "all",
        "since",
        "until",
        "after",
        "before",
        "author",
        "grep",
        "topo-order",
        "date-order",
        "follow",
        "no-patch",
        "s",
    ];
    let only = |allowed: &[&str]| {
        let number = |option: &str| option.bytes().all(|byte| byte.is_ascii_digit());
        given.options.iter().all(|(option, _)| allowed.contains(&option.as_str()) || number(option))
    };
    let ids = |field: &Field| {
        let format = field.text().map(|text| text.trim_start_matches("tformat:").trim_start_matches("format:"));
        matches!(format, Some("%H" | "%h" | "%P" | "%T"))
    };
    match name {
        "merge-base" => true,
        // What is no revision is printed as it was written.
        "rev-parse" => {
            let plain = |field: &Field| field.text().is_some_and(|text| !text.is_empty() && is_revision(text));
            only(&["verify", "short", "quiet", "q"]) && given.operands.iter().all(plain)
        }
        "rev-list" => only(&WALK),
        "log" => {
            let formats: Vec<&Field> = given.values(&["format", "pretty"]).collect();
            !formats.is_empty() && formats.into_iter().all(ids) && only(&[&WALK[..], &["format", "pretty"]].concat())
        }
        _ => false,
    }
}

/// Reads options; those of git may not be told from their values where a field is not known.
fn read(short: &'static str, long: &str, arguments: &[Field]) -> Result<Given, String> {
    // The list is put together here, so it does not live for ever.
    Options { short, long, others: Others::Harmful, order: Order::Mixed }.read(arguments)
}

/// Whether the operands make it change something.
fn writes(known: &Subcommand, name: &str, given: &Given) -> Option<String> {
    let changes = match known.operands {
        Operands::Any => false,
        Operands::With(options) => !given.operands.is_empty() && !given.has(options),
        Operands::AtMost(most) => given.operands.len() > most,
        Operands::First(words) => match given.operands.first() {
            None => !words[0].is_empty(),
            Some(first) => !first.text().is_some_and(|first| !first.is_empty() && words.contains(&first)),
        },
    };
    changes.then(|| format!("git {name} with these operands changes the repository, or may"))
}

fn unlisted(name: &str) -> Finding {
    const CHANGES: &str = "add am apply bisect checkout cherry-pick clean clone commit fetch gc init merge mv notes pull push \
        rebase reset restore revert rm switch submodule update-index update-ref prune repack replace filter-branch \
        sparse-checkout maintenance hash-object write-tree commit-tree mktag pack-refs";
    if CHANGES.split_whitespace().any(|known| known == name) {
        return Finding::writes(format!("git {name} changes the repository"));
    }
    Finding::unknown(format!("git {name} may be an alias, or run something"))
}
