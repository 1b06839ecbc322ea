//! What a confined command sees at which path, as a list: what is put over a read-only tree, and in which order.

use std::path::{Path, PathBuf};

use super::pinned::{lies_in, resolved};
use crate::confinement::{Base, Confinement, Network};

/// Where sockets of the system lie.
const RUN: [&str; 2] = ["/run", "/var/run"];

/// Where others than the session leave things.
const SCRATCH: &str = "/var/tmp";

/// The temporary folder.
const TEMPORARY: &str = "/tmp";

/// Folders of the system: programs and what they need, and the state of the machine. What a link at one of these places
/// leads to is shown where it lies.
const SYSTEM: &str = "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix /gnu /snap /proc /sys/block /sys/bus /sys/class \
    /sys/dev /sys/devices /var/lib/dpkg /var/lib/rpm /var/lib/pacman /var/lib/apt /var/cache/apt /var/cache/man /run/utmp \
    /run/current-system /run/log/journal /var/log/journal";

/// How names of hosts are resolved, which may be written below `/run`.
const RESOLVER: &str = "/etc/resolv.conf";

/// What is at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Layer {
    /// Nothing.
    Hidden,
    /// Nothing yet, and it may be written to.
    Empty,
    /// What is there outside, not to be changed.
    ReadOnly,
    /// What is at this path outside, to be changed.
    Writable(PathBuf),
    /// A link to what is shown elsewhere.
    Link(PathBuf),
    /// A link that is there outside, not to be replaced.
    Held,
}

impl Layer {
    /// What is shown at a place, if anything of what is outside is.
    pub(super) fn source<'a>(&'a self, place: &'a Path) -> Option<&'a Path> {
        match self {
            Self::ReadOnly => Some(place),
            Self::Writable(source) => Some(source),
            Self::Hidden | Self::Empty | Self::Link(_) | Self::Held => None,
        }
    }
}

/// The layers, each at a path without links, deeper ones later. Of those at the same place the last one counts.
pub(super) fn layers(confinement: &Confinement, guarded: &[PathBuf]) -> Vec<(PathBuf, Layer)> {
    let mut layers: Vec<(PathBuf, Layer)> = Vec::new();
    let writable = &confinement.writable;
    let real = |path: &Path| resolved(path, writable);
    let mut put = |path: &Path, layer: Layer| layers.extend(real(path).map(|path| (path, layer)));
    let mut links = Vec::new();
    match confinement.base {
        Base::Everything => {
            RUN.iter().for_each(|path| put(Path::new(path), Layer::Hidden));
            put(Path::new(SCRATCH), Layer::Empty);
            confinement.private().for_each(|path| put(path, Layer::Hidden));
        }
        Base::System => {
            for path in SYSTEM.split_whitespace().map(Path::new) {
                match path.read_link() {
                    Ok(target) => links.push((path.to_owned(), Layer::Link(target))),
                    Err(_) => put(path, Layer::ReadOnly),
                }
            }
            // Of what is not shown, nothing has to be hidden.
            let shown = |path: &&PathBuf| SYSTEM.split_whitespace().any(|folder| lies_in(path, Path::new(folder)));
            confinement.private().filter(shown).for_each(|path| put(path, Layer::Hidden));
        }
    }
    let temporary = confinement.temporary.as_deref().and_then(real);
    put(Path::new(TEMPORARY), temporary.map_or(Layer::Empty, Layer::Writable));
    confinement.hidden.iter().for_each(|path| put(path, Layer::Hidden));
    for path in shown_by_itself(confinement) {
        put(path, Layer::ReadOnly);
        if let (Ok(target), Some(place)) = (path.read_link(), place_of(path)) {
            links.push((place, Layer::Link(target)));
        }
    }
    if confinement.network == Network::All {
        put(Path::new(RESOLVER), Layer::ReadOnly);
    }
    for path in writable {
        if real(path).as_ref() == Some(path) {
            put(path, Layer::Writable(path.clone()));
        }
    }
    guarded.iter().chain(&confinement.read_only).for_each(|path| put(path, Layer::ReadOnly));
    confinement.denied.iter().for_each(|path| put(path, Layer::Hidden));
    let is_held = |path: &&PathBuf| path.is_symlink() && place_of(path).as_ref() == Some(path);
    layers.extend(guarded.iter().filter(is_held).map(|path| (path.clone(), Layer::Held)));
    layers.extend(links);
    layers.sort_by_key(|(path, _)| path.components().count());
    needed(layers)
}

/// What has to be put back: what lies in a working directory, or in a folder that is put back, is seen with it.
fn shown_by_itself(confinement: &Confinement) -> Vec<&PathBuf> {
    let Confinement { readable, writable, hidden, .. } = confinement;
    let seen_with = |path: &Path, folder: &PathBuf| {
        let between = |hidden: &PathBuf| hidden != folder && hidden.starts_with(folder) && path.starts_with(hidden);
        path != folder && path.starts_with(folder) && !hidden.iter().any(between)
    };
    let works_in = |path: &Path| writable.iter().any(|directory| path.starts_with(directory));
    // What a link leads to may lie elsewhere.
    let named = |path: &Path| !path.is_symlink() && readable.iter().any(|folder| seen_with(path, folder));
    readable.iter().filter(|path| !works_in(path) && !named(path)).collect()
}

/// Without what is hidden in what is hidden, and what is shown in what is shown: each costs a mount.
fn needed(layers: Vec<(PathBuf, Layer)>) -> Vec<(PathBuf, Layer)> {
    let mut needed: Vec<(PathBuf, Layer)> = Vec::new();
    for (path, layer) in layers {
        let around = needed.iter().rev().find(|(around, _)| lies_in(&path, around)).map(|(_, layer)| layer);
        let again = matches!(layer, Layer::Hidden | Layer::ReadOnly) && around == Some(&layer);
        if !again {
            needed.push((path, layer));
        }
    }
    needed
}

/// Where an entry itself lies, though it be a link.
fn place_of(path: &Path) -> Option<PathBuf> {
    Some(resolved(path.parent()?, &[])?.join(path.file_name()?))
}
