//! `find`: its expression, by a list of what is known to only look. What it runs with `-exec` is given back.

use super::field::Field;
use super::finding::{Finding, How, Touch};

/// Tests and actions without a value.
const PLAIN: &str = "-daystart -depth -d -follow -mount -xdev -noleaf -ignore_readdir_race -noignore_readdir_race -warn -nowarn -empty \
    -executable -readable -writable -false -true -nogroup -nouser -print -print0 -prune -quit -ls -a -and -o -or -not ! ( ) , -x -X -E -s";

/// Those with a value that is text.
const VALUE: &str = "-maxdepth -mindepth -regextype -amin -atime -cmin -ctime -mmin -mtime -fstype -gid -group -ilname -iname \
    -inum -ipath -iregex -iwholename -links -lname -name -path -perm -regex -size -type -uid -used -user -wholename -xtype -printf \
    -context";

/// Those with a value that is a file, which is looked at.
const FILE: &str = "-anewer -cnewer -newer -samefile -newermt -newerat -newerct -newermm -neweraa -newercc";

/// Actions that write, and those that run something.
const WRITES: &str = "-delete -fprint -fprint0 -fprintf -fls";
const RUNS: &str = "-exec -execdir -ok -okdir -files0-from";

/// Whether one of the words that a word becomes may be an action. A pattern becomes names that fit it.
fn may_act(field: &Field) -> bool {
    let Field::Glob(pattern) = field else { return true };
    let (first, last) = (field.beginning(), pattern.rsplit(['*', '?', ']', '\\']).next().unwrap_or_default());
    WRITES
        .split_whitespace()
        .chain(RUNS.split_whitespace())
        .any(|action| action.starts_with(first) && action.ends_with(last))
}

/// Looks at the arguments of find, and gives what it runs for each file.
pub(super) fn find(arguments: &[Field]) -> (Finding, Vec<Vec<Field>>) {
    let mut finding = Finding::read_only("find only lists");
    let mut runs = Vec::new();
    let mut rest = arguments.iter().peekable();
    let mut starts = Vec::new();
    let mut prints = true;
    // Where links are followed, it lists what they lead to.
    let mut how = How::Names;
    while let Some(field) = rest.peek() {
        match field.text() {
            Some(option @ ("-H" | "-L" | "-P")) => {
                how = if option == "-L" { How::Followed } else { How::Names };
                rest.next();
            }
            Some(text) if text.starts_with('-') || matches!(text, "!" | "(" | ")" | ",") => break,
            Some(_) => starts.extend(rest.next().cloned()),
            None if field.may_be_option() => {
                return (Finding::unknown("find with an argument that may be an action"), runs);
            }
            None => starts.extend(rest.next().cloned()),
        }
    }
    if starts.is_empty() {
        starts.push(Field::Known(".".into()));
    }
    while let Some(field) = rest.next() {
        let Some(text) = field.text() else {
            return (Finding::unknown("find with an argument that may be an action"), runs);
        };
        let is = |list: &str| list.split_whitespace().any(|known| known == text);
        if is(PLAIN) {
            prints &= text != "-ls";
            if text == "-follow" {
                how = How::Followed;
            }
        } else if is(VALUE) || is(FILE) {
            let Some(value) = rest.next() else {
                return (Finding::unknown("find with a test that lacks its value"), runs);
            };
            if !value.is_one() && may_act(value) {
                return (
                    Finding::unknown("find with a value that may be several words, and one of them an action"),
                    runs,
                );
            }
            prints &= text != "-printf";
            if is(FILE) && !text.ends_with('t') {
                finding.touches.push(Touch::read(value.clone(), How::Names));
            }
        } else if matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir") {
            let mut command: Vec<Field> = Vec::new();
            for field in rest.by_ref() {
                let ends = match field.text() {
                    Some(";") => true,
                    Some("+") => command.last().and_then(Field::text) == Some("{}"),
                    _ => false,
                };
                if ends {
                    // With a plus it is given several files at once.
                    command.extend((field.text() == Some("+")).then(|| Field::Known("{}".into())));
                    break;
                }
                command.push(field.clone());
            }
            if text != "-exec" && finding.verdict == super::Verdict::ReadOnly {
                finding = Finding::unknown(format!("find {text} runs a command where the files are, or asks"));
            }
            prints = false;
            runs.push(command);
        } else if WRITES.split_whitespace().any(|known| known == text) {
            let reason = if text == "-delete" { "find -delete removes files" } else { "find writes to a file" };
            finding = Finding::writes(format!("{reason} ({text})"));
        } else if finding.verdict == super::Verdict::ReadOnly {
            finding = Finding::unknown(format!("find with {text}, which is not known to be harmless"));
        }
    }
    finding.touches.extend(starts.iter().map(|start| Touch::read(start.clone(), how)));
    finding.lists = prints.then_some(starts);
    (finding, runs)
}
