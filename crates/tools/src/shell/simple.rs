//! One simple command, by the name of the program: what the table says, and the few that need more than a table.

use super::awk::awk;
use super::field::{Field, Source};
use super::finding::{Finding, How, Touch};
use super::known::{self, Known, Operands};
use super::options::{Given, Options, Order, Others};
use super::sed::sed;

/// Where programs lie that are what their name says.
const PLACES: [&str; 6] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/"];

/// The name of a program without where it lies, if it lies where programs do.
pub(super) fn bare_name(name: &str) -> Option<&str> {
    if !name.contains('/') {
        return Some(name);
    }
    PLACES.iter().find_map(|place| name.strip_prefix(place)).filter(|rest| !rest.contains('/'))
}

/// Looks at a command that runs no other.
pub(super) fn simple(name: &str, arguments: &[Field]) -> Finding {
    let texts: Option<Vec<&str>> = arguments.iter().map(Field::text).collect();
    if let Some(["--version" | "-V" | "-version"] | ["-v" | "version"]) = texts.as_deref()
        && known::VERSIONED.split_whitespace().any(|known| known == name)
        && (texts.as_deref() != Some(&["-v"][..]) || matches!(name, "node" | "npm" | "perl" | "php" | "ruby" | "nginx"))
        && (texts.as_deref() != Some(&["version"][..])
            || matches!(name, "docker" | "podman" | "terraform" | "helm" | "openssl" | "zig"))
    {
        return Finding::read_only(format!("{name} prints its version"));
    }
    match name {
        "sed" | "gsed" => sed(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => awk(arguments),
        "jq" => jq(arguments),
        "printenv" => listed(name, arguments).showing("the environment"),
        "ps" if arguments.iter().any(shows_environments) => {
            listed(name, arguments).showing("the environment of processes")
        }
        "test" => test(arguments),
        "[" => match arguments.split_last() {
            Some((last, arguments)) if last.text() == Some("]") => test(arguments),
            _ => Finding::unknown("a test that is not closed"),
        },
        "echo" | "true" | "false" | ":" => Finding::read_only(format!("{name} only prints")),
        "printf" => match arguments.first() {
            Some(first)
                if first
                    .text()
                    .is_some_and(|text| !text.starts_with('-') || text == "--" || text.starts_with("-%")) =>
            {
                Finding::read_only("printf prints text")
            }
            _ => Finding::unknown("printf with a first argument that may be an option"),
        },
        "tar" | "unzip" | "gzip" | "xz" | "zstd" if lists_archive(name, arguments) => {
            let mut finding = Finding::read_only(format!("{name} lists what is packed"));
            let archives = if matches!(name, "tar" | "unzip") { &arguments[1..2] } else { &arguments[1..] };
            touch(&mut finding, archives, How::Contents);
            finding
        }
        // In batch mode nobody can give it orders.
        "top" if arguments.iter().any(|field| field.text().is_some_and(|text| text.starts_with("-b"))) => {
            no_operands(name, arguments, "bn:d:p:u:Hco:w:i", "")
        }
        "date" => date(arguments),
        "hostname" => {
            no_operands(name, arguments, "fsiIdA", "fqdn long short ip-address all-ip-addresses domain all-fqdns")
        }
        "umask" => no_operands(name, arguments, "S", ""),
        "ulimit" => no_operands(name, arguments, "aHS", ""),
        "jobs" => no_operands(name, arguments, "lp", ""),
        "set" => set(arguments),
        _ => listed(name, arguments),
    }
}

/// What the table says of it.
fn listed(name: &str, arguments: &[Field]) -> Finding {
    match known::find(name) {
        Some(known) => table(name, known, arguments),
        None => unlisted(name, arguments),
    }
}

fn unlisted(name: &str, arguments: &[Field]) -> Finding {
    if let Some(reason) = known::reason(known::WRITERS, name) {
        return Finding::writes(format!("{name} {reason}"));
    }
    let reason = known::reason(known::OTHERS, name);
    let verb = arguments
        .first()
        .and_then(Field::text)
        .filter(|verb| known::VERBS.split_whitespace().any(|known| known == *verb));
    if let (Some(_), Some(verb)) = (reason, verb) {
        return Finding::writes(format!("{name} {verb} changes something"));
    }
    match reason {
        Some(reason) => Finding::unknown(format!("{name} {reason}")),
        None => Finding::unknown(format!("{name} is not among the commands known to only look")),
    }
}

fn table(name: &str, known: &Known, arguments: &[Field]) -> Finding {
    let options = Options { short: known.short, long: known.long, others: known.others, order: Order::Mixed };
    let given = match options.read(arguments) {
        Ok(given) => given,
        Err(why) => return Finding { verdict: written(name, arguments), ..Finding::unknown(format!("{name}: {why}")) },
    };
    let mut finding = Finding::read_only(format!("{name} only looks"));
    finding.touches.extend(given.paths.iter().map(|path| Touch::read(path.clone(), How::Contents)));
    let operands = given.operands.as_slice();
    // These read more arguments from a file behind an `@`.
    let more = |field: &Field| field.beginning().is_empty() || field.beginning().starts_with('@');
    if matches!(name, "strings" | "nm" | "objdump" | "readelf" | "size") && operands.iter().any(more) {
        return Finding::unknown(format!("{name} may take its options from a file"));
    }
    let here = Field::Known(".".into());
    match known.operands {
        Operands::NoPath => {}
        Operands::Paths => {
            let how = if name == "diff" && given.has(&["r", "recursive"]) { How::Followed } else { How::Contents };
            touch(&mut finding, operands, how);
        }
        Operands::OnePath => {
            let mut values = given.options.iter().filter_map(|(_, value)| value.as_ref());
            let many = operands.len() > 1
                || values.any(|value| !value.is_one())
                || operands.iter().any(|field| !field.is_one());
            if many {
                return Finding::writes(format!("{name} writes to its second operand"));
            }
            touch(&mut finding, operands, How::Contents);
        }
        Operands::Listing => {
            let how = if follows(name, &given) { How::Followed } else { How::Names };
            touch(&mut finding, operands, how);
            if operands.is_empty() {
                touch(&mut finding, std::slice::from_ref(&here), how);
            }
        }
        Operands::PatternThenPaths => {
            let given_pattern = given.has(&["e", "regexp", "f", "file", "files", "type-list"])
                && !matches!(name, "fd" | "fdfind" | "ag");
            let paths = if given_pattern { operands } else { operands.get(1..).unwrap_or_default() };
            let recurses = name != "grep" && name != "egrep" && name != "fgrep";
            let how = match () {
                () if follows(name, &given) => How::Followed,
                () if matches!(name, "fd" | "fdfind") || given.has(&["files"]) => How::Names,
                () if recurses || given.has(&["r", "recursive"]) => How::Tree,
                () => How::Contents,
            };
            touch(&mut finding, paths, how);
            if paths.is_empty() && (recurses || how != How::Contents) {
                touch(&mut finding, std::slice::from_ref(&here), how);
            }
        }
    }
    flow(name, &given, &mut finding);
    finding
}

/// Whether it goes where the links lead that it meets on its way. Each program has a letter of its own for that.
fn follows(name: &str, given: &Given) -> bool {
    match name {
        "ls" | "dir" | "vdir" | "du" => given.has(&["L", "dereference"]),
        "tree" => given.has(&["l"]),
        "fd" | "fdfind" | "rg" => given.has(&["L", "follow"]),
        "ag" => given.has(&["f"]),
        "grep" | "egrep" | "fgrep" => given.has(&["R", "dereference-recursive"]),
        _ => false,
    }
}

/// What a command that is refused for an option would surely do.
fn written(name: &str, arguments: &[Field]) -> super::Verdict {
    let writes = |field: &Field| {
        let text = field.beginning();
        match name {
            "sort" | "shuf" => text.starts_with("--output") || (text.starts_with("-o") && !text.starts_with("--")),
            "tree" => text == "-o",
            "iconv" => text == "-o" || text.starts_with("--output"),
            "xxd" => text == "-r",
            _ => false,
        }
    };
    if arguments.iter().any(writes) { super::Verdict::Writes } else { super::Verdict::Unknown }
}

fn touch(finding: &mut Finding, paths: &[Field], how: How) {
    finding.touches.extend(paths.iter().map(|path| Touch::read(path.clone(), how)));
}

/// What a command prints, for those whose output names files, passes lines on, or is a number.
fn flow(name: &str, given: &Given, finding: &mut Finding) {
    let only = |allowed: &[&str]| given.options.iter().all(|(option, _)| allowed.contains(&option.as_str()));
    let places = || match given.operands.as_slice() {
        [] => vec![Field::Known(".".into())],
        operands => operands.iter().cloned().chain([Field::Known(".".into())]).collect(),
    };
    let paths = || match given.operands.get(1..) {
        None | Some([]) => vec![Field::Known(".".into())],
        Some(paths) => paths.to_vec(),
    };
    match name {
        "ls" if only(&["a", "A", "1", "t", "r", "S", "d", "c", "u", "U", "v", "X"]) => finding.lists = Some(places()),
        "fd" | "fdfind" if !given.has(&["l", "list-details"]) => finding.lists = Some(paths()),
        "rg" if given.has(&["files", "l", "files-with-matches"]) => finding.lists = Some(places()),
        "grep" | "egrep" | "fgrep" if given.has(&["l", "files-with-matches", "L", "files-without-match"]) => {
            finding.lists = Some(paths());
        }
        "grep" | "egrep" | "fgrep" if given.operands.len() < 2 => {
            finding.passes = only(&["i", "v", "E", "F", "e", "w", "x", "P", "m"]) && given.paths.is_empty();
            finding.counts = given.has(&["c", "count"]);
        }
        "head" | "tail" | "sort" | "tac" | "cat" if given.operands.is_empty() => {
            finding.passes = given.paths.is_empty() && (name != "cat" || given.options.is_empty());
        }
        "uniq" if given.operands.is_empty() && given.options.is_empty() => finding.passes = true,
        "wc" if given.operands.is_empty() && given.options.len() == 1 && given.paths.is_empty() => {
            finding.counts = true;
        }
        "nproc" => finding.counts = true,
        _ => {}
    }
}

fn no_operands(name: &str, arguments: &[Field], short: &str, long: &str) -> Finding {
    match (Options { short, long, others: Others::Harmful, order: Order::Mixed }).read(arguments) {
        Ok(given) if given.operands.is_empty() => Finding::read_only(format!("{name} only shows")),
        Ok(_) => Finding::writes(format!("{name} with an operand sets it")),
        Err(why) => Finding::unknown(format!("{name}: {why}")),
    }
}

fn date(arguments: &[Field]) -> Finding {
    const OPTIONS: Options<'static> = Options {
        short: "ud:RI?r@f@j",
        long: "utc universal date= rfc-email rfc-3339= iso-8601? reference@ file@ resolution debug help version",
        others: Others::Harmful,
        order: Order::Mixed,
    };
    if arguments.iter().any(|field| field.beginning().starts_with("-s") || field.beginning().starts_with("--set")) {
        return Finding::writes("date -s sets the clock");
    }
    match OPTIONS.read(arguments) {
        Ok(given) if given.operands.iter().all(|field| field.beginning().starts_with('+')) => {
            let mut finding = Finding::read_only("date only shows");
            finding.counts = matches!(given.operands.as_slice(), [Field::Known(format)] if format == "+%s");
            touch(&mut finding, &given.paths, How::Names);
            finding
        }
        Ok(_) => Finding::writes("date with an operand sets the clock"),
        Err(why) => Finding::unknown(format!("date: {why}")),
    }
}

/// Whether an archive on this machine is listed, and nothing else. A colon would name another machine.
fn lists_archive(name: &str, arguments: &[Field]) -> bool {
    let texts: Option<Vec<&str>> = arguments.iter().map(Field::text).collect();
    let Some([flags, archive, rest @ ..]) = texts.as_deref() else { return false };
    let letters = flags.strip_prefix('-').unwrap_or(flags);
    let lists = match name {
        "tar" => {
            letters.contains('t') && letters.ends_with('f') && letters.chars().all(|letter| "tvzjJf".contains(letter))
        }
        "unzip" => matches!(*flags, "-l" | "-v" | "-Z1"),
        _ => matches!(*flags, "-l" | "-lv" | "--list"),
    };
    lists && !archive.contains(':') && !archive.starts_with('-') && rest.iter().all(|member| !member.starts_with('-'))
}

/// The shell's own `set`, where it only makes the shell stricter.
/// Whether an operand of `ps`, an old-style option without a dash, asks for environments.
fn shows_environments(argument: &Field) -> bool {
    let text = argument.beginning();
    !text.starts_with('-') && (text.contains('e') || argument.text().is_none())
}

fn set(arguments: &[Field]) -> Finding {
    if arguments.is_empty() {
        return Finding::read_only("set shows all variables").showing("all variables");
    }
    for argument in arguments.iter().map(Field::text) {
        let harmless = match argument {
            Some("pipefail" | "errexit" | "nounset" | "xtrace") => true,
            Some(flags) => {
                let letters = flags.strip_prefix(['-', '+']);
                letters
                    .is_some_and(|letters| !letters.is_empty() && letters.chars().all(|letter| "euxo".contains(letter)))
            }
            None => false,
        };
        if !harmless {
            return Finding::unknown("set changes the shell for what follows");
        }
    }
    Finding::read_only("set makes the shell stricter")
}

/// `jq` neither writes nor runs anything. Any of its operands may be a file: some options take two values.
fn jq(arguments: &[Field]) -> Finding {
    const OPTIONS: Options<'static> = Options {
        short: "rcesnRSaCMjhVf@L@",
        long: "arg= argjson= slurpfile= rawfile= args jsonargs tab indent= raw-output raw-output0 join-output compact-output null-input \
            slurp raw-input exit-status sort-keys ascii-output color-output monochrome-output unbuffered stream stream-errors seq \
            from-file@ library-path@ help version",
        others: Others::Harmless,
        order: Order::Mixed,
    };
    match OPTIONS.read(arguments) {
        Ok(given) => {
            // `env`, `$ENV`, and programs from files, which may hold either.
            let shows = |field: &Field| {
                field
                    .text()
                    .is_none_or(|text| ["env", "ENV", "import", "include"].iter().any(|word| text.contains(word)))
            };
            let mut finding = Finding::read_only("jq only prints");
            if given.operands.first().is_some_and(shows) || !given.paths.is_empty() {
                finding = finding.showing("what its program picks, perhaps the environment");
            }
            touch(&mut finding, &given.paths, How::Contents);
            touch(&mut finding, &given.operands, How::Contents);
            finding
        }
        Err(why) => Finding::unknown(format!("jq: {why}")),
    }
}

/// `test` and `[`. A value that is not known may stand where it can only be a value; `-v` evaluates what it is given.
fn test(arguments: &[Field]) -> Finding {
    const UNARY: &str = "-a -b -c -d -e -f -g -h -k -n -o -p -r -s -t -u -w -x -z -G -L -N -O -S";
    const BINARY: &str = "= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef";
    let is = |field: Option<&Field>, list: &str| {
        field.and_then(Field::text).is_some_and(|text| list.split(' ').any(|known| known == text))
    };
    let mut finding = Finding::read_only("a test only looks");
    for (at, field) in arguments.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| arguments.get(before));
        match field.text() {
            Some("-v" | "-R") => return Finding::unknown("a test that evaluates a name"),
            Some(_) => {}
            None => {
                let one = !matches!(
                    field,
                    Field::Unknown {
                        count: super::field::Count::Any,
                        source: Source::Anywhere | Source::Listing(_) | Source::Commit,
                        ..
                    }
                );
                let held = arguments.len() == 1
                    || is(before, UNARY)
                    || is(before, BINARY)
                    || is(arguments.get(at + 1), BINARY);
                if !one || !held {
                    return Finding::unknown("a test with a part that is not known");
                }
            }
        }
        if is(before, UNARY) && !is(before, "-n -z -o -t")
            || is(before, "-nt -ot -ef")
            || is(arguments.get(at + 1), "-nt -ot -ef")
        {
            finding.touches.push(Touch::read(field.clone(), How::Names));
        }
    }
    finding
}
