//! Tool folders in a home directory: the needs of compilers, interpreters and package managers, and no credentials.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Programs and their files. Other files in the same places (`.cargo/credentials.toml`, `.npmrc`, `.gem/credentials`,
/// `.pub-cache/credentials.json`, `.local/share/uv/credentials`, `.m2/settings.xml`, `.gradle/gradle.properties`) may
/// hold keys, and are not listed.
const FOLDERS: &str = ".arkade/bin .asdf .asdfrc .bun/bin .bun/install .cabal/bin .cabal/packages .cabal/store .cargo/bin .cargo/env \
    .cargo/git .cargo/registry .composer/vendor .default-gems .default-npm-packages .default-python-packages \
    .deno/bin .dotnet/dotnet .dotnet/host .dotnet/packs .dotnet/sdk .dotnet/shared .dotnet/store .dotnet/templates \
    .dotnet/tools .elan .fnm .gem/gems .gem/ruby .ghcup .goenv .gradle/caches .gradle/wrapper .jbang/bin \
    .jbang/cache .jenv .julia/artifacts .julia/compiled .julia/packages .juliaup .krew/bin .krew/store .linuxbrew \
    .local/bin .local/go .local/lib .local/pipx .local/share/cargo/bin .local/share/fnm .local/share/gem \
    .local/share/mise .local/share/nvm .local/share/pipx .local/share/pnpm .local/share/pyenv .local/share/rtx \
    .local/share/rustup .local/share/uv/python .local/share/uv/tools .local/share/virtualenvs \
    .local/state/nix/profiles .luarocks/bin .luarocks/lib .luarocks/share .m2/repository .m2/wrapper .mix/archives \
    .mix/elixir .nimble/bin .nimble/pkgs2 .nix-defexpr .nix-profile .node-version .nodebrew .nodenv .npm-global/bin \
    .npm-global/lib .npm-packages/bin .npm-packages/lib .npm/_cacache .npm/_npx .nvm .nvmrc .opam .phpenv .pixi/bin \
    .pixi/envs .plenv .proto/bin .proto/shims .proto/tools .pub-cache/bin .pub-cache/git .pub-cache/global_packages \
    .pub-cache/hosted .pyenv .python-version .rbenv .ruby-version .rustup .rvm .rye/py .rye/shims .rye/tools \
    .sdkman/bin .sdkman/candidates .sdkman/etc .sdkman/libexec .sdkman/src .sdkman/var .stack/programs .swiftly \
    .tfenv .tool-versions .virtualenvs .volta .yarn/berry .yarn/bin .zig anaconda3 go/bin go/pkg mambaforge \
    micromamba miniconda3 miniforge3 sdk";

/// Configuration files of programs, which might hold a key.
const CONFIGURED: [&str; 3] = [".cargo/config.toml", ".cargo/config", ".config/mise/config.toml"];

/// Largest configuration that is searched, in bytes.
const CONFIG: u64 = 64 * 1024;

/// Words that indicate a key.
const KEYS: [&str; 6] = ["token", "secret", "password", "passwd", "[env", "_key"];

/// The existing tool folders of a home.
pub fn tool_folders(home: &Path) -> Vec<PathBuf> {
    folders_in(home, |_| true)
}

/// The tool folders whose first path component is wanted.
fn folders_in(home: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let is_wanted = |name: &&str| name.split('/').next().is_some_and(&wanted);
    let configured = CONFIGURED.iter().copied().filter(is_wanted).map(|name| home.join(name));
    let folders = FOLDERS.split_whitespace().filter(is_wanted).map(|name| home.join(name));
    folders.chain(configured.filter(|path| !may_hold_a_key(path))).filter(|path| path.exists()).collect()
}

/// Further folders that programs in these folders need: a stand-in (`~/.pyenv/shims/python3`, `~/.cargo/bin/cargo`)
/// finds the real program elsewhere.
pub(crate) fn folders_behind<'a>(folders: impl Iterator<Item = &'a PathBuf>) -> BTreeSet<PathBuf> {
    let place = |folder: &'a PathBuf| {
        let root = folder.ancestors().find(|above| above.file_name().is_some_and(is_root))?;
        Some((root.parent()?, root.file_name()?.to_str()?))
    };
    let places: BTreeSet<(&Path, &str)> = folders.filter_map(place).collect();
    let beside = |(home, root): (&Path, &str)| {
        let others = if root == ".cargo" { ".rustup" } else { root };
        folders_in(home, |name| name == root || name == others)
    };
    places.into_iter().flat_map(beside).collect()
}

/// Returns whether one of the names begins with this component. It is called for every command, so it searches the list
/// as one text.
fn is_root(name: &OsStr) -> bool {
    let Some(name) = name.to_str().filter(|name| !name.is_empty()) else { return false };
    FOLDERS.match_indices(name).any(|(at, _)| {
        let (before, after) = (&FOLDERS[..at], &FOLDERS[at + name.len()..]);
        (before.is_empty() || before.ends_with(' ')) && (after.is_empty() || after.starts_with([' ', '/']))
    })
}

fn may_hold_a_key(path: &Path) -> bool {
    files::read(path, CONFIG).map_or(true, |file| {
        let text = String::from_utf8_lossy(&file.bytes).to_lowercase();
        KEYS.iter().any(|word| text.contains(word))
    })
}
