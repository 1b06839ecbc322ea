//! Scope of tools: their directories, the files they have seen, and cancellation.
//!
//! A scope is a handle: clones share the working directory and the files seen, so that a later call knows of an earlier
//! one. A subagent gets a [`Scope::fork`], which starts with the same knowledge and is independent from then on.
//! Background commands belong to the scope they were started in, and end with its last handle.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use files::Stamp;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::confinement::Confinement;
use crate::environment::{Environment, Variables};
use crate::jobs::Jobs;
use crate::permission::{ReadOnlyView, Rights, Wall};
use crate::process::ShellContext;
use crate::sandbox::{self, Sandbox};
use crate::subject::Subject;

/// Returns whether a file may be shown, by its name and its real path. Given by the engine, from the deny rules.
type Readable = dyn Fn(&Path, &Path) -> bool + Send + Sync;

/// Scope in which tools run.
#[derive(Clone)]
pub struct Scope {
    places: Arc<Bounds>,
    memory: Arc<Mutex<ScopeState>>,
    jobs: Arc<Jobs>,
    cancel: CancellationToken,
    judged: Option<Arc<(PathBuf, PathBuf)>>,
    call: Option<Arc<str>>,
    rights: Rights,
    caller: Option<Arc<dyn Any + Send + Sync>>,
}

#[derive(Clone, Default)]
struct Bounds {
    project: PathBuf,
    extra: Vec<PathBuf>,
    temporary: PathBuf,
    scratchpad: Option<PathBuf>,
    home: Option<PathBuf>,
    private: Vec<PathBuf>,
    environment: Environment,
    guard: Option<PathBuf>,
    readable: Option<Arc<Readable>>,
}

#[derive(Clone)]
struct ScopeState {
    directory: PathBuf,
    seen: HashMap<PathBuf, Stamp>,
    sandbox: Option<Arc<Sandbox>>,
    wall: Option<Result<(), String>>,
}

impl Scope {
    /// A scope in `project`, with a directory for temporary files of this session. Both paths are absolute.
    pub fn new(project: impl AsRef<Path>, temporary: impl AsRef<Path>) -> Self {
        let project = real(project.as_ref());
        let memory = ScopeState { directory: project.clone(), seen: HashMap::new(), sandbox: None, wall: None };
        let temporary = temporary.as_ref().to_owned();
        Self {
            places: Arc::new(Bounds { project, temporary, ..Bounds::default() }),
            memory: Arc::new(Mutex::new(memory)),
            jobs: Arc::new(Jobs::default()),
            cancel: CancellationToken::new(),
            judged: None,
            call: None,
            rights: Rights::Full,
            caller: None,
        }
    }

    /// Adds working directories.
    #[must_use]
    pub fn with_directories(self, extra: impl IntoIterator<Item = PathBuf>) -> Self {
        let extra = extra.into_iter().map(|path| real(&path)).collect();
        self.with_places(|places| places.extra = extra)
    }

    /// Sets the scratchpad, which commands in a sandbox may write to.
    #[must_use]
    pub fn with_scratchpad(self, folder: impl Into<Option<PathBuf>>) -> Self {
        self.with_places(|places| places.scratchpad = folder.into())
    }

    /// Sets the directory for `~`.
    #[must_use]
    pub fn with_home(self, home: impl Into<Option<PathBuf>>) -> Self {
        self.with_places(|places| places.home = home.into())
    }

    /// Sets the paths hidden from read-only commands, even inside a working directory.
    #[must_use]
    pub fn with_private(self, paths: Vec<PathBuf>) -> Self {
        self.with_places(|places| places.private = paths)
    }

    /// Sets the environment of commands.
    #[must_use]
    pub fn with_environment(self, environment: Environment) -> Self {
        self.with_places(|places| places.environment = environment)
    }

    /// Sets the [guard](crate::guard) program. Without one, only the process group of a command is controlled.
    #[must_use]
    pub fn with_guard(self, guard: impl Into<Option<PathBuf>>) -> Self {
        self.with_places(|places| places.guard = guard.into())
    }

    /// Hides files from Grep and Glob, which read more than the path they are given.
    #[must_use]
    pub fn with_readable(self, readable: Arc<Readable>) -> Self {
        self.with_places(|places| places.readable = Some(readable))
    }

    /// The same scope with another cancellation token: one for each turn.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// The same scope for one judged call: its path keeps leading where it led then, whatever happens to symlinks
    /// since.
    #[must_use]
    pub fn for_call(mut self, subject: &Subject) -> Self {
        self.judged = match subject {
            Subject::Path { named, real } => Some(Arc::new((named.clone(), real.clone()))),
            Subject::Command(_) | Subject::Name(_) | Subject::Whole => None,
        };
        self
    }

    /// The same scope for the calls of one reply, with data that the session hands to its own tools.
    #[must_use]
    pub fn with_caller<T: Any + Send + Sync>(mut self, caller: Arc<T>) -> Self {
        self.caller = Some(caller);
        self
    }

    /// The data that the session handed over, if it has this type.
    pub fn caller<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.caller.clone()?.downcast().ok()
    }

    /// The same scope for a call with this id and these rights.
    #[must_use]
    pub(crate) fn called(mut self, id: Option<String>, rights: Rights) -> Self {
        self.call = id.map(Arc::from);
        self.rights = rights;
        self
    }

    /// Rights of the running call.
    pub(crate) fn rights(&self) -> &Rights {
        &self.rights
    }

    /// Id of the running call.
    pub fn call(&self) -> Option<&str> {
        self.call.as_deref()
    }

    /// A scope that starts with the same knowledge and shares nothing from then on.
    #[must_use]
    pub fn fork(&self) -> Self {
        let memory = self.memory.lock().clone();
        Self {
            places: self.places.clone(),
            memory: Arc::new(Mutex::new(memory)),
            jobs: Arc::new(self.jobs.fork()),
            cancel: self.cancel.child_token(),
            judged: None,
            call: None,
            rights: Rights::Full,
            caller: None,
        }
    }

    fn with_places(mut self, change: impl FnOnce(&mut Bounds)) -> Self {
        change(Arc::make_mut(&mut self.places));
        self
    }

    /// The cancellation token of its tools.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// The background commands. A clone of this keeps them running.
    pub fn jobs(&self) -> &Arc<Jobs> {
        &self.jobs
    }

    /// Environment of commands.
    pub fn environment(&self) -> &Environment {
        &self.places.environment
    }

    /// The guard program.
    pub fn guard(&self) -> Option<&Path> {
        self.places.guard.as_deref()
    }

    /// The sandbox of commands, if there is one.
    pub fn sandbox(&self) -> Option<Arc<Sandbox>> {
        self.memory.lock().sandbox.clone()
    }

    /// Turns the sandbox for commands on or off from now on.
    pub fn set_sandbox(&self, sandbox: Option<Arc<Sandbox>>) {
        self.memory.lock().sandbox = sandbox;
    }

    /// Finds out whether the kernel can confine commands to reading, if that is unknown.
    pub async fn find_wall(&self) {
        let known = self.memory.lock().wall.is_some();
        if !known {
            let found = self.try_wall().await;
            self.memory.lock().wall = Some(found);
        }
    }

    async fn try_wall(&self) -> Result<(), String> {
        let Some(guard) = self.guard().filter(|_| cfg!(target_os = "linux")) else {
            return Err("the guard program is missing".to_owned());
        };
        let (directory, confinement) = (self.project(), self.read_only_confinement(&ReadOnlyView::default(), None));
        let (environment, variables) = (self.environment(), Variables::Ordinary);
        let context =
            ShellContext { directory, environment, guard: Some(guard), confinement: Some(&confinement), variables };
        sandbox::trial(context).await
    }

    /// Confinement of a read-only command. `temporary` is its private `/tmp`; if `None`, that is memory.
    pub(crate) fn read_only_confinement(&self, looking: &ReadOnlyView, temporary: Option<PathBuf>) -> Confinement {
        let mut readable = self.directories();
        readable.extend(looking.readable.iter().cloned());
        readable.extend(std::iter::once(self.temporary()).chain(self.scratchpad()).map(Path::to_owned));
        Confinement {
            hidden: self.private().to_vec(),
            denied: looking.hidden.clone(),
            temporary,
            ..Confinement::read_only(readable, Vec::new(), self.home())
        }
    }

    /// Ability of the kernel to confine commands to reading, as far as known.
    pub fn wall(&self) -> Wall {
        if matches!(self.memory.lock().wall, Some(Ok(()))) { Wall::Whole } else { Wall::None }
    }

    /// Reason why the kernel cannot confine commands to reading, if it cannot.
    pub fn no_wall(&self) -> Option<String> {
        self.memory.lock().wall.clone().and_then(Result::err)
    }

    /// The project's directory.
    pub fn project(&self) -> &Path {
        &self.places.project
    }

    /// The directory for `~`.
    pub fn home(&self) -> Option<&Path> {
        self.places.home.as_deref()
    }

    /// Paths hidden from read-only commands.
    pub fn private(&self) -> &[PathBuf] {
        &self.places.private
    }

    /// Directory for temporary files of this session.
    pub fn temporary(&self) -> &Path {
        &self.places.temporary
    }

    /// The scratchpad, if there is one.
    pub fn scratchpad(&self) -> Option<&Path> {
        self.places.scratchpad.as_deref()
    }

    /// The working directories with symlinks resolved: the project and the extra ones.
    pub fn directories(&self) -> Vec<PathBuf> {
        std::iter::once(&self.places.project).chain(&self.places.extra).cloned().collect()
    }

    /// The current working directory: Bash changes it, and relative paths start from it.
    pub fn directory(&self) -> PathBuf {
        self.memory.lock().directory.clone()
    }

    /// Changes the working directory.
    pub fn set_directory(&self, directory: PathBuf) {
        self.memory.lock().directory = directory;
    }

    /// Makes a model's path absolute: resolves `~` and relative paths, and `.` and `..` by name.
    pub fn absolute(&self, path: &str) -> PathBuf {
        let path = match (path.strip_prefix('~'), &self.places.home) {
            (Some(""), Some(home)) => home.clone(),
            (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => self.directory().join(path),
        };
        let mut absolute = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => drop(absolute.pop()),
                part => absolute.push(part),
            }
        }
        absolute
    }

    /// Makes a model's path absolute, and resolves symlinks: as it was judged, or as it is now.
    pub fn place(&self, path: &str) -> (PathBuf, PathBuf) {
        self.judged.as_deref().cloned().unwrap_or_else(|| {
            let named = self.absolute(path);
            let leads = real(&named);
            (named, leads)
        })
    }

    /// Subject for permission rules of a model's path.
    pub fn subject(&self, path: &str) -> Subject {
        let (named, real) = self.place(path);
        Subject::Path { named, real }
    }

    /// A path for display: relative to the working directory if it is below it.
    pub fn shown(&self, path: &Path) -> String {
        let memory = self.memory.lock();
        let path = path.strip_prefix(&memory.directory).unwrap_or(path);
        if path.as_os_str().is_empty() { ".".to_owned() } else { path.display().to_string() }
    }

    /// Returns whether Grep and Glob may show a file, by its name and its real path.
    pub fn may_show(&self, named: &Path, real: &Path) -> bool {
        self.places.readable.as_ref().is_none_or(|readable| readable(named, real))
    }

    /// Fingerprint of a file when it was last read or written here.
    pub fn seen(&self, path: &Path) -> Option<Stamp> {
        self.memory.lock().seen.get(&real(path)).copied()
    }

    /// Files that were read or written here and are another now, or gone, with what they were; in the order of their names.
    pub fn changed_files(&self) -> Vec<(PathBuf, Stamp)> {
        let seen = self.memory.lock().seen.clone();
        let mut changed: Vec<_> = seen.into_iter().filter(|(path, stamp)| !files::is_unchanged(path, stamp)).collect();
        changed.sort_by(|(one, _), (other, _)| one.cmp(other));
        changed
    }

    /// Records the fingerprint of a file that was read or written.
    pub fn note(&self, path: &Path, stamp: Stamp) {
        self.memory.lock().seen.insert(real(path), stamp);
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("project", &self.places.project).finish_non_exhaustive()
    }
}

fn real(path: &Path) -> PathBuf {
    files::real(path).unwrap_or_else(|_| path.to_owned())
}
