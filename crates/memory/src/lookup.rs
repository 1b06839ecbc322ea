//! Lookup of a memory by a typed name, the same everywhere.

use files::Root;

use crate::entry::Memory;
use crate::error::Error;
use crate::scan;

/// All memories below a directory, newest first.
pub fn all(root: &Root) -> Result<Vec<Memory>, Error> {
    let mut all: Vec<Memory> = scan::paths(root)?.iter().filter_map(|path| Memory::read(root, path).ok()).collect();
    all.sort_by(|one, other| other.dated.cmp(&one.dated).then_with(|| one.path.cmp(&other.path)));
    Ok(all)
}

/// The memories that a name can mean: those with that name, else those whose name begins with it, else those that
/// contain it.
pub fn find(all: &[Memory], name: &str) -> Vec<usize> {
    let wanted = name.to_lowercase();
    let names = |memory: &Memory| {
        let path = memory.path.to_lowercase();
        [memory.name.to_lowercase(), path.trim_end_matches(".md").to_owned(), path]
    };
    let fitting = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
        (0..all.len()).filter(|&at| names(&all[at]).iter().any(|name| fits(name))).collect()
    };
    let ways: [&dyn Fn(&str) -> bool; 3] =
        [&|name| name == wanted, &|name| name.starts_with(&wanted), &|name| name.contains(&wanted)];
    ways.iter().map(|way| fitting(way)).find(|found| !found.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_the_nearest_memories() {
        let memory =
            |path: &str, name: &str| Memory::parse(path, format!("---\nname: {name}\n---\ntext\n").as_bytes(), None, 0);
        let all = [memory("deploy.md", "Deploys"), memory("deploy_old.md", "Old ways"), memory("team/x.md", "Tests")];
        for (name, found) in [
            ("deploys", vec![0]),
            ("deploy", vec![0]),
            ("deploy_old.md", vec![1]),
            ("depl", vec![0, 1]),
            ("team/x", vec![2]),
            ("ways", vec![1]),
            ("nothing", vec![]),
        ] {
            assert_eq!(find(&all, name), found, "{name}");
        }
    }
}
