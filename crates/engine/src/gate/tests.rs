//! The gate alone: no model is asked, and nothing runs.

use std::sync::Mutex;

use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{BoxStream, StreamExt, empty};
use provider::Model;
use serde_json::json;
use session::{Home, World};
use settings::permission::{Approver, PermissionAnswer, Question};
use settings::{BasePaths, rules};
use tools::Runs;
use transcript::Request;

use super::*;
use crate::agent::Parts;

/// A model that is never called.
struct SilentModel;

impl Model for SilentModel {
    fn stream(&self, _: Request) -> BoxStream<'static, provider::Event> {
        empty().boxed()
    }

    fn count_tokens(&self, _: Request) -> BoxFuture<'static, Result<u64, provider::Error>> {
        Box::pin(ready(Ok(0)))
    }
}

/// An approver that always gives this answer, and counts the questions.
struct FixedApprover(PermissionAnswer, Mutex<usize>);

impl Approver for FixedApprover {
    fn ask(&self, _: Question) -> BoxFuture<'_, PermissionAnswer> {
        *self.1.lock().unwrap() += 1;
        Box::pin(ready(self.0.clone()))
    }
}

/// Runs the same command twice; returns which calls were allowed, and the number of questions.
async fn twice(denied: &[&str], answer: PermissionAnswer) -> ([bool; 2], usize) {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::create(&Home::at(folder.path().join("home")), folder.path(), None, World::real()).unwrap();
    let mut parts = Parts::new(Arc::new(SilentModel), "silent");
    let denied: Vec<String> = denied.iter().map(|&text| text.to_owned()).collect();
    parts.consent.policy.rules.deny = rules(&denied, &BasePaths { directory: folder.path(), home: None }).unwrap();
    let approver = Arc::new(FixedApprover(answer, Mutex::default()));
    parts.consent.approver = approver.clone();
    let scope = parts.work.scope(&session, &parts.consent.policy);
    let mut gate = Gate::new(parts.consent.clone());
    let site = GateSite {
        session: &session,
        scope: &scope,
        talk: &parts.talk,
        work: &parts.work,
        lineage: &parts.lineage,
        out: &parts.out,
    };
    let mut runs = [false; 2];
    for runs in &mut runs {
        let input = json!({"command": "touch made"});
        let mut call = ModelCall { id: "1".into(), tool: "Bash".into(), input, runs: Runs::Alone, invalid: None };
        *runs = matches!(gate.decide(&site, &mut call, &CancellationToken::new()).await, Ruling::Run(..));
    }
    let asked = *approver.1.lock().unwrap();
    (runs, asked)
}

/// PERM-1: a call that no rule covers is asked about each time; "always" saves the next question; a deny rule saves the
/// first.
#[tokio::test]
async fn each_has_its_say_in_its_turn() {
    let always = |text: &str| {
        let place = std::env::temp_dir();
        PermissionAnswer::Always(rules(&[text.to_owned()], &BasePaths { directory: &place, home: None }).unwrap())
    };
    assert_eq!(twice(&[], PermissionAnswer::Deny { why: "no".into() }).await, ([false, false], 2));
    assert_eq!(twice(&[], PermissionAnswer::Allow).await, ([true, true], 2));
    assert_eq!(twice(&[], always("Bash(touch made)")).await, ([true, true], 1));
    assert_eq!(twice(&["Bash(touch:*)"], PermissionAnswer::Allow).await, ([false, false], 0));
}
