//! A build without the feature `server`.

use crate::stage::{bare, run};

/// TEAM-8: who asks a build for the server that it is without is told how to get it, and its help still lists it.
#[test]
fn a_build_without_the_server_says_how_to_get_it() {
    let root = tempfile::tempdir().unwrap();
    for words in [&["serve"][..], &["backup", "all.jsonl"], &["restore-backup", "all.jsonl"]] {
        let ran = run(bare(root.path(), root.path()).arg("team").args(words));
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("error: this build does not include the team server\n"), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: ") && ran.stderr.contains("--features server"), "{}", ran.stderr);
    }
    let help = run(bare(root.path(), root.path()).args(["team", "--help"])).stdout;
    assert!(help.contains("serve ") && help.contains("restore-backup"), "{help}");
}
