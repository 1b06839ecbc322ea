//! Paths in JSON, byte for byte: a name need not be UTF-8.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    paths.iter().map(|path| path.as_os_str()).collect::<Vec<&OsStr>>().serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    Ok(Vec::<OsString>::deserialize(deserializer)?.into_iter().map(PathBuf::from).collect())
}

/// An optional path.
pub(crate) mod maybe {
    use super::{Deserialize, Deserializer, OsStr, OsString, PathBuf, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(crate) fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_ref().map(|path| path.as_os_str() as &OsStr).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<OsString>::deserialize(from)?.map(PathBuf::from))
    }
}

/// A single path.
pub(crate) mod one {
    use std::path::Path;

    use super::{Deserialize, Deserializer, OsString, PathBuf, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(from).map(PathBuf::from)
    }
}
