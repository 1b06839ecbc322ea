//! A server of the user's choice that runs alongside a session and talks through its standard input and output.
//!
//! It runs below the guard, so that nothing of it outlives the session. It gets no variable that looks like a credential,
//! except those that its entry names. Nothing here knows what is said: the socket goes to the caller.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::capture::Capture;
use crate::environment::{Credentials, Environment, Variables};
use crate::process::{self, ShellContext, ShellEnd, exit_code};

/// The time a server may run: as long as the session.
const NO_LIMIT: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// Time until the end of a program is noticed, once its socket has closed.
const UNTIL_ENDED: Duration = Duration::from_secs(1);

/// A server to start.
#[derive(Debug, Clone)]
pub struct ServerProgram<'a> {
    /// Its name and its arguments.
    pub words: Vec<String>,
    /// Its working directory.
    pub directory: &'a Path,
    /// The variables that its entry names.
    pub variables: BTreeMap<String, String>,
    /// Environment variables of all commands.
    pub environment: &'a Environment,
    /// The [guard](crate::guard) program, if there is one.
    pub guard: Option<&'a Path>,
}

/// A running server. Dropping it ends the server and everything it started.
pub struct ServerProcess {
    errors: Arc<Mutex<Capture>>,
    ended: watch::Receiver<Option<String>>,
    watch: JoinHandle<String>,
    stop: DropGuard,
}

impl ServerProgram<'_> {
    /// Starts it. Returns the process and our end of the socket; the error says why it did not start.
    pub fn start(self) -> Result<(ServerProcess, UnixStream), String> {
        let mut environment = Environment { credentials: Credentials::Withheld, ..self.environment.clone() };
        environment.named = self.variables;
        let ground = ShellContext {
            directory: self.directory,
            environment: &environment,
            guard: self.guard,
            confinement: None,
            variables: Variables::Inherited,
        };
        let (process, socket) = process::start_live(self.words, ground).map_err(|trouble| trouble.why())?;
        let (errors, cancel) = (Arc::new(Mutex::new(Capture::default())), CancellationToken::new());
        let (kept, stopped) = (errors.clone(), cancel.clone());
        let (told, ended_words) = watch::channel(None);
        let watch = tokio::spawn(async move {
            let ended = process.watch(NO_LIMIT, &stopped, |bytes| kept.lock().push(bytes)).await;
            let words = match ended.map(|ended| ended.end) {
                Ok(ShellEnd::Exited(status)) => match exit_code(status) {
                    Some(code) => format!("it ended with exit code {code}"),
                    None => "it ended".to_owned(),
                },
                Ok(ShellEnd::TimedOut | ShellEnd::Cancelled) => "it was stopped".to_owned(),
                Err(trouble) => trouble.to_string(),
            };
            told.send_replace(Some(words.clone()));
            words
        });
        Ok((ServerProcess { errors, ended: ended_words, watch, stop: cancel.drop_guard() }, socket))
    }
}

impl ServerProcess {
    /// Its last words, for when its socket has closed: the beginning and the end of what it has printed to its standard error,
    /// or else how it ended.
    pub fn last_words(&self) -> Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync> {
        let (errors, ended) = (self.errors.clone(), self.ended.clone());
        Arc::new(move || {
            let (errors, mut ended) = (errors.clone(), ended.clone());
            Box::pin(async move {
                // The socket may close before the end is noticed.
                let _ = tokio::time::timeout(UNTIL_ENDED, ended.wait_for(Option::is_some)).await;
                let printed = errors.lock().text();
                let how = ended.borrow().clone().unwrap_or_default();
                if printed.trim().is_empty() { how } else { printed }
            })
        })
    }

    /// Returns whether it still runs.
    pub fn is_running(&self) -> bool {
        !self.watch.is_finished()
    }

    /// Ends it, and waits until nothing of it is left. Returns how it ended.
    pub async fn end(self) -> String {
        drop(self.stop);
        self.watch.await.unwrap_or_else(|error| error.to_string())
    }
}
