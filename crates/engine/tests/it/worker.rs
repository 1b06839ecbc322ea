//! A worker: a model that does one numbered step after another, each with a result of some size.
//!
//! It looks only at what is visible. A step whose trace is lost is done again, and the marks it leaves on disk show it.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The model's rules: so many steps, then it is done. The summariser and who writes the notes say how far the work is.
pub fn script(steps: u32) -> String {
    format!(
        r##"
        [[rule]]
        name = "summary"
        when = {{ visible = ["about to leave the window", "(?s).*\\./work (?P<n>\\d+)"] }}
        say = "<analysis>The steps one by one.</analysis><summary>1. Request: do all steps. 8. Current work: ./work {{{{ n }}}} is done. 9. Next step: the one after it.</summary>"
        output_tokens = 900

        [[rule]]
        name = "notes written"
        when = {{ visible = "Bring the session notes up to date", result = "Edited|has to stay|not found" }}
        say = "done"

        [[rule]]
        name = "notes"
        when = {{ visible = ["Bring the session notes up to date[^<]*They are in (?P<path>[^,]+),", "(?s).*command\":\"\\./work (?P<n>\\d+)", "(?s)# Current State\n(?P<hint>_[^\n]*_\n)(?P<old>[^#]*?)\n# Task"] }}
        call = [{{ tool = "Edit", input = {{ file_path = "{{{{ path }}}}", old_string = "{{{{ hint }}}}{{{{ old }}}}\n# Task", new_string = "{{{{ hint }}}}./work {{{{ n }}}} is done; the next one follows.\n\n# Task" }} }}]
        output_tokens = 400

        [[rule]]
        name = "done"
        when = {{ visible = "work {steps}\\b" }}
        say = "All {steps} steps are done."

        [[rule]]
        name = "step"
        when = {{ visible = "(?s).*\\./work (?P<n>\\d+)" }}
        call = [{{ tool = "Bash", input = {{ command = "./work {{{{ n|int + 1 }}}}" }} }}]

        [[rule]]
        name = "first step"
        call = [{{ tool = "Bash", input = {{ command = "./work 1" }} }}]
        "##
    )
}

/// Puts the worker's tool into a folder: each step leaves a mark and prints so many bytes.
pub fn equip(folder: &Path, bytes: usize) {
    let mut text = String::new();
    let mut line = 0;
    while text.len() < bytes {
        let _ = writeln!(text, "the parser reads line {line} of the module and finds nothing of note in its body");
        line += 1;
    }
    text.truncate(bytes);
    std::fs::write(folder.join("output.txt"), text).unwrap();
    let tool = "#!/bin/sh\necho \"$1\" >> done.txt\necho \"work $1\"\ncat output.txt\n";
    std::fs::write(folder.join("work"), tool).unwrap();
    std::fs::set_permissions(folder.join("work"), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The steps that were done, in order.
pub fn done(folder: &Path) -> Vec<u32> {
    let marks = std::fs::read_to_string(folder.join("done.txt")).unwrap_or_default();
    marks.lines().map(|line| line.parse().unwrap()).collect()
}
