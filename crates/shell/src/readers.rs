//! Programs that only read, by name.
//!
//! Commands that run because of this list are confined by the kernel: they cannot write, connect or read what is
//! hidden. So nobody has to understand the programs of awk and sed or the options of git. The list only spares people
//! commands that would fail in there: a program that is not in it, or that is known to change something, is asked
//! about.

use crate::field::Field;
use crate::finding::{CommandFinding, FilesRead};

/// Programs that only read, with any arguments.
const READERS: &str = "cat tac head tail wc nl cut paste comm join fold fmt expand unexpand rev column pr tr strings od hexdump hd xxd \
    base64 base32 md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum shasum cmp diff diff3 sdiff colordiff iconv \
    ls dir vdir tree eza exa lsd stat du df file readlink realpath basename dirname getfacl lsattr pathchk namei \
    grep egrep fgrep zgrep rg ag ack fd fdfind locate seq expr factor numfmt bc sleep yes \
    zcat gzcat bzcat xzcat zstdcat readelf nm objdump size ldd pahole c++filt addr2line \
    pwd whoami logname arch nproc tty users id groups who w last uname uptime free ps pgrep pstree vmstat iostat lscpu lsblk lsusb \
    lspci lsmod getconf locale cal ncal which whereis type ss netstat journalctl dmesg nvidia-smi lsb_release lsof getent tput \
    less more most man bat batcat glow cloc tokei scc yq dasel gron xmllint tidy jq awk gawk mawk nawk dpkg-query rpmquery \
    echo printf true false : test [ cd exit return break continue wait local shift let mapfile readarray read unset export declare \
    typeset readonly set shopt getopts jobs umask ulimit times help history compgen hash xargs time nice nohup timeout gtimeout stdbuf \
    ionice builtin command";

/// Those of them that read no file, with any arguments.
const TEXT: &str = "echo printf true false : seq expr sleep yes basename dirname pwd whoami id uname exit return break continue wait local shift \
    let read unset export declare typeset readonly set shopt type which";

/// Programs that print the user's environment.
const PRIVATE: &[(&str, &str)] = &[("env", "the environment"), ("printenv", "the environment")];

/// Programs that only read unless a word begins like this.
const UNLESS: &[(&str, &str)] = &[
    ("sort", "-o --o"),
    ("shuf", "-o --o"),
    ("tree", "-o"),
    ("iconv", "-o --o"),
    ("xxd", "-r"),
    ("yq", "-i --in"),
    ("date", "-s --s"),
    ("file", "-C --compile"),
    ("dmesg", "-c -C --c -D -E"),
    ("journalctl", "--vacuum --rotate --flush"),
    ("fd", "-x -X --exec"),
    ("fdfind", "-x -X --exec"),
    ("printf", "-v"),
];

/// Programs that only read with one of these words.
const ONLY: &[(&str, &str)] = &[
    ("tar", "-t tf -tf tvf -tvf tzf -tzf -tvzf --list"),
    ("unzip", "-l -v -Z1"),
    ("gzip", "-l -lv --list -dc -cd"),
    ("gunzip", "-c --stdout -l --list"),
    ("bunzip2", "-c --stdout"),
    ("unxz", "-c --stdout"),
    ("xz", "-l --list -dc"),
    ("zstd", "-l --list -dc"),
    ("openssl", "-noout"),
    ("top", "-b -bn1"),
    ("ip", "a addr address r route l link n neigh rule -s -br"),
    ("dpkg", "-l -L -s -S --list"),
    ("rpm", "-q -qa -qi -ql"),
    ("apt", "list show policy"),
];

/// Words with which a program of subcommands changes something.
const CHANGING: &str = "add del delete change replace set flush exec save restore append";

/// Programs known to change something, with the text for the reason.
const WRITERS: &[(&str, &str)] = &[
    ("rm rmdir unlink shred wipe trash", "removes files"),
    ("mv rename", "moves files"),
    ("cp install rsync scp ditto", "copies files"),
    ("ln link mkdir mkfifo mknod mktemp touch truncate fallocate split csplit dd tee sponge", "writes files"),
    ("chmod chown chgrp chattr setfacl chcon umount mount", "changes files or their permissions"),
    ("kill pkill killall killall5 reboot shutdown halt poweroff", "stops processes"),
    ("tar zip unzip bsdtar gzip gunzip bzip2 bunzip2 xz unxz zstd 7z cpio ar", "packs or unpacks files"),
    ("patch ed ex vi vim nvim nano emacs", "edits files"),
    ("useradd userdel usermod passwd groupadd chsh at batch", "changes the system"),
    ("apt apt-get dnf yum pacman brew snap apk dpkg rpm", "changes what is installed"),
    ("sysctl modprobe insmod iptables", "changes the system"),
];

/// Reasons for other programs that do not run unasked.
const OTHERS: &[(&str, &str)] = &[
    ("bash sh zsh dash ksh fish csh tcsh busybox", "starts a shell"),
    (
        "python python2 python3 perl ruby node nodejs php lua java osascript Rscript",
        "runs a program whose effect is unknown",
    ),
    (
        "pip pip3 gem npm npx yarn pnpm bun deno cargo rustc rustup make cmake ninja gradle mvn go bundle composer poetry uv",
        "may run the project's scripts, or write files",
    ),
    ("docker podman kubectl helm terraform aws gcloud az", "controls other systems"),
    ("curl wget nc ncat netcat socat ssh sftp ftp telnet dig nslookup host ping http https gh", "reaches the network"),
    ("systemctl service crontab", "queries or changes the system"),
    ("sudo su doas pkexec chroot unshare nsenter", "runs with other privileges"),
    ("eval source . exec trap alias unalias enable bind complete", "changes the shell for later commands"),
    ("top htop watch screen tmux script expect", "runs until it is stopped, or runs other commands"),
];

/// Subcommands of git that only read, with any arguments.
const GIT: &str = "status log whatchanged show diff diff-tree diff-index diff-files range-diff cherry blame annotate grep shortlog \
    rev-list rev-parse ls-files ls-tree cat-file describe merge-base name-rev show-ref for-each-ref show-branch check-ignore \
    check-attr check-mailmap count-objects var version help fsck verify-pack diff-pairs last-modified";

/// Subcommands of git that only read if their first operand is one of these; the empty one stands for none.
const GIT_FIRST: &[(&str, &str, &str)] = &[
    ("remote", " show get-url", "-v --verbose"),
    ("stash", "list show", ""),
    ("worktree", "list", ""),
    ("submodule", " status summary", ""),
    ("reflog", " show list exists", ""),
    ("notes", " list show", ""),
    ("config", "get list", "--get --get-all --get-regexp --list -l"),
    ("bisect", "log view", ""),
    ("archive", " ", "-l --list"),
    ("symbolic-ref", "HEAD refs/remotes/origin/HEAD", ""),
    ("bundle", "verify list-heads", ""),
    ("lfs", "ls-files env status version", ""),
];

/// Options with which `git branch` and `git tag` list.
const GIT_LISTS: &str =
    "--list -l --contains --no-contains --merged --no-merged --points-at --show-current --format --sort";

/// Options with which they change something.
const GIT_CHANGES: &str = "-d -D -m -M -c -C -f -u -s --delete --move --copy --force --set-upstream-to --unset-upstream --edit-description --annotate --sign";

/// True if a program is only asked for its version or its help.
pub(crate) fn is_version_query(arguments: &[Field]) -> bool {
    const ASKS: &str = "--version -version version --help -h help -V --client";
    let asks = |field: &Field| field.text().is_some_and(|text| ASKS.split(' ').any(|known| known == text));
    !arguments.is_empty() && arguments.len() <= 2 && arguments.iter().all(asks)
}

/// Classifies a command that runs no other, or whose inner command is classified separately.
pub(crate) fn judge(name: &str, arguments: &[Field]) -> CommandFinding {
    let looks = || CommandFinding::confined(format!("{name} only reads"));
    let begins = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        arguments.iter().any(|field| words.iter().any(|word| field.beginning().starts_with(word)))
    };
    let has = |words: &str| {
        arguments.iter().filter_map(Field::text).any(|text| words.split_whitespace().any(|word| word == text))
    };
    let operands = arguments.iter().filter(|field| !field.is_option()).count();
    if is_version_query(arguments) {
        return CommandFinding::confined(format!("{name} prints its version or its help"));
    }
    if let Some((_, what)) = PRIVATE.iter().find(|(known, _)| *known == name) {
        return looks().showing(*what);
    }
    if let Some((_, words)) = UNLESS.iter().find(|(known, _)| *known == name) {
        let sets = name == "date"
            && arguments
                .iter()
                .any(|field| !field.is_option() && !field.beginning().starts_with('+') && !has("-d -r -f --date"));
        if begins(words) || sets {
            return CommandFinding::writes(format!("{name} may write or run something with these options"));
        }
        if name != "printf" {
            return looks();
        }
    }
    if let Some((_, words)) = ONLY.iter().find(|(known, _)| *known == name)
        && has(words)
        && !has(CHANGING)
    {
        return looks();
    }
    match name {
        "git" => git(arguments),
        "find" | "gfind" => find(arguments),
        "sed" | "gsed" if begins("--in-place") || arguments.iter().any(edits_in_place) => {
            CommandFinding::writes("sed -i edits files in place")
        }
        "sed" | "gsed" => looks(),
        "uniq" if operands > 1 && !begins("-f -s -w") => CommandFinding::writes("uniq writes to its second operand"),
        "uniq" => looks(),
        "hostname" | "ifconfig" | "alias" if operands == 0 => looks(),
        "hostname" => CommandFinding::writes("hostname with an operand sets it"),
        "python" | "python3" if has("json.tool") && arguments.first().and_then(Field::text) == Some("-m") => looks(),
        "node" | "npm" | "perl" | "php" | "ruby" | "nginx" if arguments.len() == 1 && has("-v") => looks(),
        "set" | "declare" | "typeset" | "export" | "readonly" if arguments.is_empty() || has("-p") => {
            looks().showing("all variables")
        }
        "ps" if arguments.iter().any(|field| !field.is_option() && field.beginning().contains('e')) => {
            looks().showing("the environment of processes")
        }
        "jq" if ["env", "ENV"].iter().any(|word| arguments.iter().any(|field| field.beginning().contains(word))) => {
            looks().showing("what its program selects, perhaps the environment")
        }
        _ if TEXT.split_whitespace().any(|known| known == name) => {
            CommandFinding { reads: FilesRead::Nothing, ..looks() }
        }
        _ if READERS.split_whitespace().any(|known| known == name) => looks(),
        _ => unlisted(name),
    }
}

fn unlisted(name: &str) -> CommandFinding {
    let reason = |list: &'static [(&str, &'static str)]| {
        list.iter().find(|(names, _)| names.split(' ').any(|known| known == name)).map(|(_, reason)| *reason)
    };
    match (reason(WRITERS), reason(OTHERS)) {
        (Some(reason), _) => CommandFinding::writes(format!("{name} {reason}")),
        (None, Some(reason)) => CommandFinding::unknown(format!("{name} {reason}")),
        (None, None) => CommandFinding::unknown(format!("{name} is not known to only read")),
    }
}

/// `-i`, alone or in a cluster before a script or a file is named in it.
fn edits_in_place(field: &Field) -> bool {
    let letters = field.beginning().strip_prefix('-').filter(|text| !text.starts_with('-')).unwrap_or_default();
    letters.split(['e', 'f', 'l']).next().is_some_and(|letters| letters.contains('i'))
}

fn find(arguments: &[Field]) -> CommandFinding {
    const WRITES: [&str; 5] = ["-delete", "-fprint", "-fprint0", "-fprintf", "-fls"];
    match arguments.iter().find(|field| WRITES.contains(&field.beginning())) {
        Some(field) if field.beginning() == "-delete" => CommandFinding::writes("find -delete removes files"),
        Some(field) => CommandFinding::writes(format!("find {} writes to a file", field.beginning())),
        None => CommandFinding::confined("find only lists"),
    }
}

/// The commands that find runs for each file.
pub(crate) fn find_runs(arguments: &[Field]) -> Vec<Vec<Field>> {
    let mut found = Vec::new();
    let mut rest = arguments.iter();
    while let Some(field) = rest.next() {
        if matches!(field.text(), Some("-exec" | "-execdir" | "-ok" | "-okdir")) {
            let ends = |field: &&Field| !matches!(field.text(), Some(";" | "+"));
            let command = rest.by_ref().take_while(ends).map(|field| match field.text() {
                Some(text) if text.contains("{}") => Field::unknown(),
                _ => field.clone(),
            });
            found.push(command.collect::<Vec<_>>());
        }
    }
    found.retain(|command| !command.is_empty());
    found
}

fn git(arguments: &[Field]) -> CommandFinding {
    let mut rest = arguments;
    while let Some(field) = rest.first().filter(|field| field.is_option()) {
        let takes_word = matches!(field.text(), Some("-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace"));
        if field.text() == Some("-c") && rest.get(1).is_some_and(|field| field.beginning().starts_with("alias.")) {
            return CommandFinding::unknown("git -c defines a command");
        }
        rest = rest.get(1 + usize::from(takes_word)..).unwrap_or_default();
    }
    let Some(field) = rest.first() else { return CommandFinding::confined("git prints its help") };
    let Some(name) = field.text() else { return CommandFinding::unknown("the git command is not known") };
    let looks = || CommandFinding::confined(format!("git {name} only reads"));
    let arguments = &rest[1..];
    let has = |words: &str| {
        arguments.iter().any(|field| {
            let option = field.beginning().split('=').next().unwrap_or_default();
            words.split_whitespace().any(|word| word == option)
        })
    };
    let first = arguments.iter().find(|field| !field.is_option()).map_or("", Field::beginning);
    let changes = || CommandFinding::writes(format!("git {name} may change the repository with these arguments"));
    if has("--output -O --open-files-in-pager") {
        return CommandFinding::writes(format!("git {name} may write or run something with these options"));
    }
    if GIT.split_whitespace().any(|known| known == name) {
        return looks();
    }
    let operands = arguments.iter().filter(|field| !field.is_option()).count();
    if name == "config" && operands == 1 && first.contains('.') && arguments.len() == 1 {
        return looks();
    }
    if matches!(name, "remote" | "symbolic-ref") && operands > 1 && first != "get-url" {
        return changes();
    }
    if matches!(name, "branch" | "tag") {
        return if has(GIT_CHANGES) || !first.is_empty() && !has(GIT_LISTS) { changes() } else { looks() };
    }
    if let Some((_, words, options)) = GIT_FIRST.iter().find(|(known, ..)| *known == name) {
        let lists_all = name == "config" && (has("--list -l --get-regexp") || first == "list");
        return match has(options) || words.split(' ').any(|word| word == first) {
            true if lists_all && !has("--local") => looks().showing("your own configuration of git"),
            true => looks(),
            false => changes(),
        };
    }
    const CHANGES: &str = "add am apply bisect checkout cherry-pick clean clone commit fetch gc init merge mv notes pull push \
        rebase reset restore revert rm switch submodule update-index update-ref prune repack replace filter-branch \
        sparse-checkout maintenance hash-object write-tree commit-tree mktag pack-refs";
    match CHANGES.split_whitespace().any(|known| known == name) {
        true => CommandFinding::writes(format!("git {name} changes the repository")),
        false => CommandFinding::unknown(format!("git {name} may be an alias, or run something")),
    }
}
