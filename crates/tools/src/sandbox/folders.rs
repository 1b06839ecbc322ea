//! Folders with tools in a home directory: what compilers, interpreters and package managers need, and no credentials.

use std::path::{Path, PathBuf};

/// Programs and what they are made of. What else lies in the same places (`.cargo/credentials.toml`, `.npmrc`,
/// `.m2/settings.xml`, `.gradle/gradle.properties`) may hold keys, and is not named.
const FOLDERS: [&str; 52] = [
    ".asdf",
    ".bun/bin",
    ".bun/install",
    ".cabal/bin",
    ".cabal/packages",
    ".cabal/store",
    ".cargo/bin",
    ".cargo/env",
    ".cargo/git",
    ".cargo/registry",
    ".composer/vendor",
    ".deno/bin",
    ".dotnet",
    ".elan",
    ".fnm",
    ".gem",
    ".ghcup",
    ".goenv",
    ".gradle/caches",
    ".gradle/wrapper",
    ".jenv",
    ".julia/packages",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pnpm",
    ".local/share/uv",
    ".local/state/nix/profiles",
    ".m2/repository",
    ".nix-defexpr",
    ".nix-profile",
    ".nodenv",
    ".npm/_cacache",
    ".npm-global",
    ".nvm",
    ".opam",
    ".phpenv",
    ".pub-cache",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sdkman/candidates",
    ".stack/programs",
    ".swiftly",
    ".volta",
    ".yarn/bin",
    "go/bin",
    "go/pkg",
];

/// Where cargo is told about linkers and mirrors, and could be told a token.
const CARGO: [&str; 2] = [".cargo/config.toml", ".cargo/config"];

/// The largest configuration of cargo that is looked through.
const CONFIG: u64 = 64 * 1024;

/// The folders with tools that there are in a home.
pub fn tool_folders(home: &Path) -> Vec<PathBuf> {
    let cargo = CARGO.iter().map(|name| home.join(name)).filter(|path| !holds_a_token(path));
    FOLDERS.iter().map(|name| home.join(name)).chain(cargo).filter(|path| path.exists()).collect()
}

fn holds_a_token(path: &Path) -> bool {
    files::read(path, CONFIG).map_or(true, |file| String::from_utf8_lossy(&file.bytes).contains("token"))
}
