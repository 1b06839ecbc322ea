//! The file system as a confined command sees it.
//!
//! A second view of the whole tree is made, all of it read-only. Hidden paths are covered by something empty, and
//! visible or writable paths are mounted back over it, each at its own path. Then the view becomes the root, and the
//! original tree is detached. No process in a namespace below this one can unmount a part of it.

use std::io;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root};
use rustix::fs::{AtFlags, Mode};

use super::mounts::Mounts;
use super::namespaces::{failed, write};
use super::pinned::{PinnedPath, is_below};
use super::view_layers::{Layer, layers};
use crate::confinement::{Base, Confinement};

/// Directories in which the view may be assembled: any that holds nothing of what is mounted into it.
const STAGES: [&str; 8] = ["/mnt", "/media", "/srv", "/opt", "/boot", "/var", "/usr", "/etc"];

/// Devices for every command.
const DEVICES: [&str; 4] = ["null", "zero", "random", "urandom"];

/// Further devices for commands that do more than read.
const MORE_DEVICES: [&str; 2] = ["full", "tty"];

/// Symlinks to a process's open files.
const OPEN: [(&str, &str); 5] = [
    ("dev/fd", "/proc/self/fd"),
    ("dev/stdin", "/proc/self/fd/0"),
    ("dev/stdout", "/proc/self/fd/1"),
    ("dev/stderr", "/proc/self/fd/2"),
    ("dev/ptmx", "pts/ptmx"),
];

/// Mount flags everywhere: no setuid programs and no devices.
const TAME: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);

/// The same, and read-only.
const READ_ONLY: MsFlags = TAME.union(MsFlags::MS_RDONLY);

/// Makes the view and enters it.
pub(super) fn enter(confinement: &Confinement, guarded: &[PathBuf]) -> io::Result<()> {
    let nothing: Option<&str> = None;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)
        .map_err(|error| failed("mounts of its own", error))?;
    let layers = layers(confinement, guarded);
    let stage = stage(&layers)?;
    let view = match confinement.base {
        Base::Everything => MountView::of_everything(&stage, &layers)?,
        Base::System => {
            forbid_namespaces("/proc")?;
            MountView::of_nothing(&stage, &layers)?
        }
    };
    if confinement.base == Base::System {
        view.show_devices(&DEVICES).map_err(|error| failed("/dev", error))?;
        // What is shown of it has its limits from the beginning. Where this cannot be had, each part gets them by itself.
        let limits = PinnedPath::at(Path::new("/"))?.limits()? | READ_ONLY;
        let _ = mount(nothing, "/", nothing, MsFlags::MS_REMOUNT | MsFlags::MS_BIND | limits, nothing);
    }
    for (index, (path, layer)) in layers.iter().enumerate() {
        let put = view.put(path, layer, &layers[index + 1..]);
        put.map_err(|error| failed(&path.display().to_string(), error))?;
    }
    view.close(&layers)?;
    match confinement.base {
        Base::Everything => {
            view.devices().map_err(|error| failed("/dev", error))?;
            view.processes().map_err(|error| failed("a /proc of its own", error))?;
        }
        Base::System => view.limit(Path::new("/"), READ_ONLY)?,
    }
    chdir(&view.at)?;
    pivot_root(".", ".").map_err(|error| failed("a root of its own", error))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(|error| failed("the root as it was", error))?;
    chdir("/")?;
    Ok(())
}

/// A directory that contains nothing of what is mounted into the view.
fn stage(layers: &[(PathBuf, Layer)]) -> io::Result<PathBuf> {
    let free = |stage: &&&str| {
        let holds = |(place, layer): &(PathBuf, Layer)| {
            layer.source(place).is_some_and(|source| is_below(source, Path::new(stage)))
        };
        Path::new(stage).canonicalize().is_ok_and(|real| real == Path::new(stage)) && !layers.iter().any(holds)
    };
    STAGES
        .iter()
        .find(free)
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other("no place to build the view of the file system"))
}

struct MountView {
    at: PathBuf,
    root: PinnedPath,
    /// Original mount flags of the writable paths.
    writable: Vec<(PathBuf, MsFlags)>,
    nothing: EmptyStandIn,
}

/// Original mount flags of the writable paths of these layers.
fn limits_of_writable(layers: &[(PathBuf, Layer)]) -> io::Result<Vec<(PathBuf, MsFlags)>> {
    let sources = layers.iter().filter_map(|(_, layer)| match layer {
        Layer::Writable(source) => Some(source),
        _ => None,
    });
    sources.map(|source| Ok((source.clone(), PinnedPath::at(source)?.limits()?))).collect()
}

/// Stand-in for hidden paths: nothing in it can be read or changed.
struct EmptyStandIn {
    directory: PinnedPath,
    file: PinnedPath,
}

impl EmptyStandIn {
    /// Makes one at a path that something else is mounted over.
    fn at(place: &Path) -> io::Result<Self> {
        memory(place, "mode=0755,size=64k", MsFlags::MS_NOEXEC)?;
        let (at, nothing) = (PinnedPath::at(place)?, None::<&str>);
        let (directory, file) = (at.directory(Path::new("directory"))?, at.file(Path::new("file"))?);
        rustix::fs::chmodat(&at, "file", Mode::empty(), AtFlags::empty())?;
        let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | READ_ONLY | MsFlags::MS_NOEXEC;
        mount(nothing, &at.path(), nothing, flags, nothing)?;
        Ok(Self { directory, file })
    }
}

impl MountView {
    /// A view of the whole tree, read-only.
    fn of_everything(stage: &Path, layers: &[(PathBuf, Layer)]) -> io::Result<Self> {
        let writable = limits_of_writable(layers)?;
        bind(Path::new("/"), stage)?;
        let nothing = EmptyStandIn::at(&stage.join("dev"))?; // which the view gets another of
        let view = Self { at: stage.to_owned(), root: PinnedPath::at(stage)?, writable, nothing };
        view.limit_all(Path::new("/"), READ_ONLY)?;
        Ok(view)
    }

    /// A view of an empty directory.
    fn of_nothing(stage: &Path, layers: &[(PathBuf, Layer)]) -> io::Result<Self> {
        let writable = limits_of_writable(layers)?;
        let nothing = EmptyStandIn::at(stage)?;
        memory(stage, "mode=0755,size=1m", MsFlags::empty())?;
        Ok(Self { at: stage.to_owned(), root: PinnedPath::at(stage)?, writable, nothing })
    }

    /// Hides a path.
    fn hide(&self, path: &Path, later: &[(PathBuf, Layer)]) -> io::Result<()> {
        let place = place_in_view(path)?;
        if !path.is_dir() {
            return bind(&self.nothing.file.path(), &self.root.file(place)?.path());
        }
        let directory = self.root.directory(place)?;
        if later.iter().any(|(below, _)| is_below(below, path)) {
            return memory(&directory.path(), "mode=0755", MsFlags::MS_NOEXEC);
        }
        bind(&self.nothing.directory.path(), &directory.path())
    }

    /// Mounts a layer at its path. `later` are the layers after it, some of which may be below it.
    fn put(&self, path: &Path, layer: &Layer, later: &[(PathBuf, Layer)]) -> io::Result<()> {
        let place = place_in_view(path)?;
        match layer {
            Layer::Hidden => self.hide(path, later),
            Layer::Empty => memory(&self.root.directory(place)?.path(), "mode=1777", MsFlags::empty()),
            Layer::Link(target) => self.root.link(place, target),
            Layer::Held => {
                let link = self.root.link_itself(place)?;
                bind(&link.path(), &link.path())
            }
            Layer::ReadOnly => self.put_back(path, path, READ_ONLY),
            Layer::Writable(source) => self.put_back(source, path, TAME),
        }
    }

    /// Shows an outside path at a path of the view.
    fn put_back(&self, source: &Path, path: &Path, limits: MsFlags) -> io::Result<()> {
        let pinned = PinnedPath::at(source)?;
        let place = below_root(path);
        let place = if pinned.is_directory()? { self.root.directory(place)? } else { self.root.file(place)? };
        let known = self.writable.iter().find(|(writable, _)| writable == source);
        let has = known.map_or_else(|| pinned.limits(), |(_, has)| Ok(*has))?;
        match bind_alone(&pinned.path(), &place.path()) {
            Ok(()) if limits == READ_ONLY && has.contains(READ_ONLY) => Ok(()),
            Ok(()) => self.limit(path, has | limits),
            // Something is mounted below it, and the kernel shows nobody what that covers.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                bind(&pinned.path(), &place.path())?;
                self.limit(path, has | limits)?;
                self.limit_all(path, limits)
            }
            Err(error) => Err(error),
        }
    }

    /// Makes covered paths read-only, once everything visible in them is mounted.
    fn close(&self, layers: &[(PathBuf, Layer)]) -> io::Result<()> {
        for (index, (path, layer)) in layers.iter().enumerate() {
            let later = &layers[index + 1..];
            let has_below = later.iter().any(|(below, _)| is_below(below, path));
            let shown = |(later, layer): &(PathBuf, Layer)| later == path && *layer != Layer::Hidden;
            if *layer == Layer::Hidden && path.is_dir() && has_below && !later.iter().any(shown) {
                self.limit(path, READ_ONLY | MsFlags::MS_NOEXEC)?;
            }
        }
        Ok(())
    }

    /// Sets the mount flags of a path.
    fn limit(&self, path: &Path, limits: MsFlags) -> io::Result<()> {
        let nothing: Option<&str> = None;
        let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | limits;
        let pinned = self.root.below(below_root(path))?;
        mount(nothing, &pinned.path(), nothing, flags, nothing)
            .map_err(|error| failed(&path.display().to_string(), error))
    }

    /// Sets mount flags of a path and of everything mounted below it.
    fn limit_all(&self, path: &Path, limits: MsFlags) -> io::Result<()> {
        let (mounts, place) = (Mounts::read()?, self.at.join(below_root(path)));
        self.limit(path, self.root.below(below_root(path))?.limits()? | limits)?;
        for (below, has) in mounts.below(&place) {
            let inside = below.strip_prefix(&self.at).unwrap_or(below);
            // What we cannot get at, a command cannot either.
            if self.root.below(inside).is_ok() {
                self.limit(&Path::new("/").join(inside), has | limits)?;
            }
        }
        Ok(())
    }

    /// A `/dev` without anybody's devices.
    fn devices(&self) -> io::Result<()> {
        let limits = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
        memory(&self.root.directory(Path::new("dev"))?.path(), "mode=0755", limits)?;
        self.show_devices(&DEVICES)?;
        self.show_devices(&MORE_DEVICES)?;
        let terminals = self.root.directory(Path::new("dev/pts"))?;
        let options = "newinstance,ptmxmode=0666,mode=620";
        // Without it there are no terminals, which few commands want.
        let _ = mount(Some("devpts"), &terminals.path(), Some("devpts"), limits, Some(options));
        memory(&self.root.directory(Path::new("dev/shm"))?.path(), "mode=1777", MsFlags::empty())?;
        self.limit(Path::new("/dev"), limits | MsFlags::MS_RDONLY)
    }

    fn show_devices(&self, names: &[&str]) -> io::Result<()> {
        for name in names {
            let path = Path::new("/dev").join(name);
            let Ok(device) = PinnedPath::at(&path) else { continue };
            bind(&device.path(), &self.root.file(below_root(&path))?.path())?;
            // It can be written to all the same: what cannot be changed are its mode and its dates.
            let limits = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY;
            self.limit(&path, device.limits()? | limits)?;
        }
        for (name, target) in OPEN {
            self.root.link(Path::new(name), Path::new(target))?;
        }
        Ok(())
    }

    /// A `/proc` of the processes in here.
    fn processes(&self) -> io::Result<()> {
        let limits = TAME | MsFlags::MS_NOEXEC;
        let nothing: Option<&str> = None;
        mount(Some("proc"), &self.root.below(Path::new("proc"))?.path(), Some("proc"), limits, nothing)?;
        forbid_namespaces(&format!("{}/proc", self.at.display()))?;
        self.limit(Path::new("/proc"), limits | MsFlags::MS_RDONLY)
    }
}

/// Forbids further user namespaces, through a `/proc` that is not read-only yet: the confinement would hold, but nobody
/// needs what the kernel permits in them.
fn forbid_namespaces(proc: &str) -> io::Result<()> {
    write(&format!("{proc}/sys/user/max_user_namespaces"), "0")
}

/// Path below the view's root.
fn place_in_view(path: &Path) -> io::Result<&Path> {
    let place = below_root(path);
    if place.as_os_str().is_empty() {
        return Err(io::Error::other("the whole tree cannot be a working directory of a sandbox"));
    }
    Ok(place)
}

fn below_root(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn bind(source: &Path, place: &Path) -> io::Result<()> {
    let nothing: Option<&str> = None;
    // With all that is mounted below: parts cannot be had, or they would show what they cover.
    mount(Some(source), place, nothing, MsFlags::MS_BIND | MsFlags::MS_REC, nothing).map_err(io::Error::from)
}

/// Binds a path without the mounts below it.
fn bind_alone(source: &Path, place: &Path) -> io::Result<()> {
    let nothing: Option<&str> = None;
    mount(Some(source), place, nothing, MsFlags::MS_BIND, nothing).map_err(io::Error::from)
}

/// Mounts memory as a directory.
fn memory(place: &Path, options: &str, limits: MsFlags) -> io::Result<()> {
    mount(Some("tmpfs"), place, Some("tmpfs"), TAME | limits, Some(options)).map_err(io::Error::from)
}
