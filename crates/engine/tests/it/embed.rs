//! The example in `examples/embed.rs`, as somebody who copies it would run it.

use std::path::PathBuf;
use std::process::Command;

use crate::stage::Stage;

/// Cargo builds examples with the tests, beside them.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(|deps| deps.parent()).unwrap().join("examples/embed")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_streams_an_answer_and_uses_tools() {
    let stage = Stage::new(
        r#"
        [[rule]]
        when = { user = "what is here", missing = "alpha" }
        say = "I look."
        call = [{ tool = "Read", input = { file_path = "{{ project }}/a.txt" } }]

        [[rule]]
        when = { result = "alpha" }
        say = "A file that says alpha."
        "#,
    )
    .await;
    std::fs::write(stage.project().join("a.txt"), "alpha\n").unwrap();
    let mut command = Command::new(example());
    command.arg("what is here?").current_dir(stage.project()).env_clear();
    command.env("ANTHROPIC_API_KEY", "k").env("ANTHROPIC_BASE_URL", stage.simulator.url());
    command.env("TMPDIR", stage.home().path());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with("I look.\n[Read {"), "{said}");
    assert!(said.contains("A file that says alpha.\n\nEnded(Answered) after 2 requests: "), "{said}");
    let file = said.trim().rsplit(": ").next().unwrap();
    assert!(std::fs::read_to_string(file).unwrap().contains("A file that says alpha."), "{file}");
}
