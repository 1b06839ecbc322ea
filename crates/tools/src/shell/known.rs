//! Programs that only look, with the options that keep them so.
//!
//! The table says what is allowed; nothing is forbidden by name. What is not in it is unknown, or known to write: a list
//! beside it that serves the reasons alone.

use super::options::Others::{self, Harmful, Harmless};
use Operands::{Listing, NoPath, OnePath, Paths, PatternThenPaths};

/// What the operands of a program are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Files that are read.
    Paths,
    /// Files or directories that are listed; without any, the working directory.
    Listing,
    /// Text.
    NoPath,
    /// At most one file that is read: a second would be written.
    OnePath,
    /// A pattern, unless an option gives it, and then files.
    PatternThenPaths,
}

/// A program that only looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) names: &'static str,
    pub(super) operands: Operands,
    pub(super) others: Others,
    pub(super) short: &'static str,
    pub(super) long: &'static str,
}

const fn known(
    names: &'static str,
    operands: Operands,
    others: Others,
    short: &'static str,
    long: &'static str,
) -> Known {
    Known { names, operands, others, short, long }
}

const GREP: &str = "extended-regexp fixed-strings basic-regexp perl-regexp regexp= file@ ignore-case no-ignore-case \
    word-regexp line-regexp null-data no-messages invert-match version help max-count= byte-offset line-number \
    line-buffered with-filename no-filename label= only-matching quiet silent binary-files= text directories= devices= \
    recursive dereference-recursive include= exclude= exclude-from@ exclude-dir= files-without-match \
    files-with-matches count initial-tab null before-context= after-context= context= color? colour? binary \
    group-separator= no-group-separator";

const RG: &str = "regexp= file@ ignore-case smart-case case-sensitive word-regexp line-regexp fixed-strings invert-match \
    count count-matches files-with-matches files-without-match files line-number no-line-number with-filename no-filename \
    heading no-heading glob= iglob= type= type-not= type-list after-context= before-context= context= max-count= \
    max-depth= max-filesize= hidden no-ignore no-ignore-vcs no-ignore-parent no-ignore-global no-ignore-dot follow text \
    null only-matching replace= multiline multiline-dotall pcre2 json stats sort= sortr= color= colors= column vimgrep \
    quiet no-messages trim unrestricted passthru pretty no-config engine= encoding= max-columns= \
    max-columns-preview threads= crlf block-buffered line-buffered debug trace version help byte-offset \
    glob-case-insensitive type-add= type-clear= one-file-system auto-hybrid-regex path-separator= context-separator= no-unicode mmap no-mmap";

/// The table.
#[rustfmt::skip]
pub(super) const TABLE: &[Known] = &[
    // Text, file by file.
    known("cat", Paths, Harmless, "AbeEnstTuvl",
        "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version"),
    known("tac", Paths, Harmless, "brs:", "before regex separator= help version"),
    known("head", Paths, Harmless, "#c:n:qvz", "bytes= lines= quiet silent verbose zero-terminated help version"),
    known("tail", Paths, Harmless, "#c:n:qvzfFs:r",
        "bytes= lines= quiet silent verbose zero-terminated follow? retry pid= sleep-interval= \
        max-unchanged-stats= help version"),
    known("wc", Paths, Harmless, "clmwL", "bytes chars lines words max-line-length files0-from@ total= help version"),
    known("nl", Paths, Harmless, "b:d:f:h:i:l:n:ps:v:w:",
        "body-numbering= header-numbering= footer-numbering= line-increment= number-format= number-separator= \
        starting-line-number= number-width= help version"),
    known("cut", Paths, Harmless, "b:c:d:f:nsz",
        "bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated help \
        version"),
    known("paste", Paths, Harmless, "d:sz", "delimiters= serial zero-terminated help version"),
    known("comm", Paths, Harmless, "123z#",
        "check-order nocheck-order output-delimiter= total zero-terminated help version"),
    known("join", Paths, Harmless, "a:e:ij:1:2:o:t:v:z",
        "ignore-case check-order nocheck-order header zero-terminated help version"),
    known("fold", Paths, Harmless, "bcsw:#", "bytes characters spaces width= help version"),
    known("fmt", Paths, Harmless, "cp:stuw:g:#",
        "crown-margin prefix= split-only tagged-paragraph uniform-spacing width= goal= help version"),
    known("expand unexpand", Paths, Harmless, "ait:#", "initial all first-only tabs= help version"),
    known("rev", Paths, Harmless, "0", "zero help version"),
    known("column", Paths, Harmless, "tc:s:o:nexN:H:R:T:W:O:JdlL",
        "table separator= output-separator= table-columns= table-hide= table-right= fillrows columns= json \
        keep-empty-lines help version"),
    known("pr", Paths, Harmless, "#acdD:e?Fh:i?Jl:mn?N:o:rs?S?tTvw:W:",
        "columns= across double-space header= length= merge number-lines? omit-header width= help version"),
    known("sort", Paths, Harmful, "bdfgiMhnRrVcCmsuzk:t:S:",
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort \
        human-numeric-sort numeric-sort random-sort reverse sort= version-sort check? merge key= field-separator= \
        stable unique zero-terminated buffer-size= parallel= debug batch-size= help version"),
    known("uniq", OnePath, Harmless, "cdDf:is:uzw:",
        "count repeated all-repeated? skip-fields= group? ignore-case skip-chars= unique zero-terminated \
        check-chars= help version"),
    known("shuf", Paths, Harmful, "ei:n:rz", "echo input-range= head-count= repeat zero-terminated help version"),
    known("tr", NoPath, Harmless, "cCdst", "complement delete squeeze-repeats truncate-set1 help version"),
    known("strings", Paths, Harmful, "afn:t:e:dw#",
        "all print-file-name bytes= radix= encoding= include-all-whitespace help version"),
    known("od", Paths, Harmless, "A:j:N:S:t:vw?abcdfilosx",
        "address-radix= skip-bytes= read-bytes= strings? format= output-duplicates width? endian= help version"),
    known("hexdump hd", Paths, Harmless, "bcCdn:os:vxe:f@", "canonical length= skip= no-squeezing help version"),
    known("xxd", OnePath, Harmful, "abc:Cdeg:il:o:ps:u", "help version"),
    known("base64 base32", Paths, Harmful, "diw:D", "decode ignore-garbage wrap= help version"),
    known("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum shasum", Paths, Harmless, "bctza:wrsl:0",
        "binary check tag text zero ignore-missing quiet status strict warn algorithm= length= raw untagged debug \
        help version"),
    known("cmp", Paths, Harmless, "bi:ln:s", "print-bytes ignore-initial= verbose bytes= quiet silent help version"),
    known("diff", Paths, Harmless, "abBcC:dD:eE?fF:hHiI:nNpqrsS:tTuU:wx:X@yW:Z0123456789",
        "normal brief report-identical-files context? unified? ed rcs side-by-side width= left-column \
        suppress-common-lines show-c-function show-function-line= label= expand-tabs initial-tab tabsize= \
        suppress-blank-empty recursive no-dereference new-file unidirectional-new-file ignore-file-name-case \
        exclude= exclude-from@ starting-file= from-file@ to-file@ ignore-case ignore-tab-expansion \
        ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= text \
        strip-trailing-cr minimal horizon-lines= speed-large-files color? palette= help version"),
    known("iconv", Paths, Harmful, "f:t:cls", "from-code= to-code= list silent help version"),
    // Files and directories.
    known("ls dir vdir", Listing, Harmless, "aAbBcCdDfFgGhHiI:klLmnNopqQrRsStT:uUvw:xXZ1eO",
        "all almost-all author escape block-size= ignore-backups color? directory dired classify? file-type \
        format= full-time group-directories-first no-group human-readable si dereference dereference-command-line \
        dereference-command-line-symlink-to-dir hide= hyperlink? indicator-style= inode ignore= kibibytes literal \
        hide-control-chars show-control-chars quote-name quoting-style= reverse recursive size sort= time= \
        time-style= tabsize= width= context zero numeric-uid-gid help version"),
    known("tree", Listing, Harmful, "adlfxL:P:I:NQqpsughDFiACSnvtcUrJXh",
        "all dirsfirst filesfirst noreport nolinks du prune ignore-case matchdirs filelimit= timefmt= sort= \
        gitignore inodes device si help version charset= fromfile"),
    known("eza exa", Listing, Harmless, "1aAlGxRTFrsdDfL:I:ghHimSt:uUbBnZo",
        "all long grid oneline recurse tree classify? icons? color? colour? level= ignore-glob= git git-ignore \
        group-directories-first sort= reverse header binary bytes no-permissions no-user no-time no-filesize \
        time-style= only-dirs only-files octal-permissions version help"),
    known("stat", Listing, Harmless, "Lfc:tF:nxr",
        "dereference file-system format= printf= terse cached= help version"),
    known("du", Listing, Harmless, "0aAbB:cd:DhHkLlmPsSt:xX@",
        "null all apparent-size block-size= bytes total dereference-args max-depth= files0-from@ human-readable \
        inodes count-links dereference no-dereference separate-dirs si summarize threshold= time? time-style= \
        exclude-from@ exclude= one-file-system help version"),
    known("df", Listing, Harmless, "aB:hHiklPt:Tvx:",
        "all block-size= human-readable si inodes local output? portability total type= print-type exclude-type= \
        sync no-sync help version"),
    known("file", Paths, Harmful, "bikLhINnrsv0F:e:",
        "brief mime mime-type mime-encoding dereference no-dereference extension keep-going raw special-files \
        separator= exclude= print0 version help"),
    known("readlink realpath", Listing, Harmless, "efmnqsvzLP",
        "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero strip \
        no-symlinks logical physical relative-to@ relative-base@ help version"),
    known("basename", NoPath, Harmless, "as:z", "multiple suffix= zero help version"),
    known("dirname", NoPath, Harmless, "z", "zero help version"),
    known("getfacl lsattr", Listing, Harmful, "aRdp", ""),
    known("pathchk", NoPath, Harmless, "pP", "portability"),
    // Searching.
    known("grep egrep fgrep", PatternThenPaths, Harmless, "#EFGPe:f@iyvwxcLlm:noqsbHhTzZA:B:C:aUuIrRd:D:V", GREP),
    known("rg", PatternThenPaths, Harmful, "e:f@isSwxFvclLnNHIg:t:T:A:B:C:m:d:j:M:ouUPp.0aqr:E:bV", RG),
    known("ag", PatternThenPaths, Harmful, "A?B?C?acfFgG:HilLm:noQrsStuUvwz0",
        "ackmate after? before? break nobreak count color nocolor column filename nofilename group nogroup \
        heading noheading line-numbers numbers nonumbers files-with-matches files-without-matches only-matching \
        print-long-lines passthrough silent stats stats-only all-types depth= file-search-regex= hidden ignore= \
        ignore-case literal max-count= case-sensitive smart-case search-binary all-text unrestricted \
        skip-vcs-ignores invert-match word-regexp"),
    known("fd fdfind", PatternThenPaths, Harmful, "HIusigFaLp0e:t:d:E:c:lqS:1",
        "hidden no-ignore no-ignore-vcs unrestricted case-sensitive ignore-case glob regex fixed-strings \
        absolute-path list-details follow full-path print0 max-depth= min-depth= exact-depth= exclude= prune \
        type= extension= size= changed-within= changed-before= owner= color= max-results= quiet show-errors \
        strip-cwd-prefix? and= one-file-system version help"),
    // Text without files.
    known("seq", NoPath, Harmless, "f:s:w#", "format= separator= equal-width help version"),
    known("expr", NoPath, Harmless, "", "help version"),
    known("factor numfmt", NoPath, Harmless, "d:z",
        "from= to= field= format= padding= round= suffix= header? delimiter= grouping invalid= from-unit= \
        to-unit="),
    known("sleep", NoPath, Harmless, "", "help version"),
    known("yes", NoPath, Harmless, "", ""),
    known("exit return break continue wait", NoPath, Harmless, "", ""),
    known("zcat gzcat bzcat xzcat zstdcat", Paths, Harmful, "", ""),
    known("readelf", Paths, Harmful, "ahlSsdrnVWegtAIuwx:p:", "all file-header headers sections symbols dynamic wide notes relocs"),
    known("nm", Paths, Harmful, "aABCDglnopPrsSuvW", "demangle dynamic extern-only undefined-only numeric-sort print-size"),
    known("objdump", Paths, Harmful, "afphxdDstTrRCSlwj:M:", "disassemble syms headers section= demangle no-show-raw-insn wide"),
    known("size", Paths, Harmful, "ABdoxt", "format= totals"),
    // The machine.
    known("pwd", NoPath, Harmless, "LP", "logical physical help version"),
    known("whoami logname arch nproc tty users", NoPath, Harmless, "as", "all ignore= silent quiet help version"),
    known("id groups", NoPath, Harmless, "agGnruzZ", "context group groups name real user zero help version"),
    known("who w", NoPath, Harmless, "abdHlmpqrstTuwhfio",
        "all boot count heading users short no-header help version"),
    known("uname", NoPath, Harmless, "asnrvmpio",
        "all kernel-name nodename kernel-release kernel-version machine processor hardware-platform \
        operating-system help version"),
    known("uptime", NoPath, Harmless, "ps", "pretty since help version"),
    known("free", NoPath, Harmless, "bkmghltwvs:c:", "bytes kilo mega giga human total wide si lohi help version"),
    known("ps", NoPath, Harmless, "aAdeflFjlLmNTcHnrwxyMZo:O:p:C:u:U:g:G:t:s:q:vhS",
        "all forest headers no-headers sort= format= pid= ppid= user= group= cols= columns= width= context \
        deselect info version help"),
    known("pgrep", NoPath, Harmful, "acdfgGilnoPstuUvxd:g:P:u:t:",
        "full list-name list-full newest oldest count exact ignore-case parent= euid= delimiter="),
    known("printenv", NoPath, Harmless, "0", "null help version"),
    known("lscpu lsblk lsusb lspci lsmod", NoPath, Harmful, "abdeflJmnpPSttOo:v", "all json help version"),
    known("getconf locale", NoPath, Harmful, "akm", "all-locales category-name keyword-name charmaps"),
    known("cal ncal", NoPath, Harmless, "13ymjsnA:B:hw", "one three year monday sunday help version"),
    known("which", NoPath, Harmful, "as", "all version help"),
    known("whereis", NoPath, Harmful, "bmsul", ""),
    known("type", NoPath, Harmless, "afptP", ""),
    known("ss", NoPath, Harmful, "Hnaloempistuxdw460",
        "no-header numeric all listening options extended memory processes info summary tcp udp unix raw \
        ipv4 ipv6"),
    known("netstat", NoPath, Harmful, "tulnpaersgiW",
        "tcp udp listening numeric programs all route statistics groups interfaces wide"),
    known("journalctl", NoPath, Harmful, "u:n:fbkp:xero:aqS:U:t:", "unit= lines= follow boot? dmesg priority= since= until= output= no-pager grep= user"),
    known("dmesg", NoPath, Harmful, "TtxkuSl:f:dew", "ctime notime decode kernel userspace level= facility= human nopager"),
    known("nvidia-smi", NoPath, Harmful, "L", "query-gpu= query-compute-apps= format= list-gpus"),
    known("lsb_release", NoPath, Harmful, "aidrcs", "all id description release codename short"),
    known("lsof", NoPath, Harmful, "i?Pnp:u:tac:", ""),
];

/// What is known to change something, and what: for the reason alone.
pub(super) const WRITERS: &[(&str, &str)] = &[
    ("rm rmdir unlink shred wipe trash", "removes files"),
    ("mv rename", "moves files"),
    ("cp install rsync scp ditto", "copies files"),
    ("ln link mkdir mkfifo mknod mktemp touch truncate fallocate split csplit dd tee sponge", "writes files"),
    ("chmod chown chgrp chattr setfacl chcon umount mount", "changes files or what may be done with them"),
    ("kill pkill killall killall5 reboot shutdown halt poweroff", "stops processes"),
    ("tar zip unzip bsdtar gzip gunzip bzip2 bunzip2 xz unxz zstd 7z cpio ar", "packs or unpacks files"),
    ("patch ed ex vi vim nvim nano emacs", "edits files"),
    ("useradd userdel usermod passwd groupadd chsh crontab at batch", "changes the system"),
    ("apt apt-get dnf yum pacman brew snap apk dpkg rpm", "changes what is installed"),
    ("sysctl modprobe insmod systemctl service iptables", "changes the system"),
];

/// Words behind a program's name that say that it changes something.
pub(super) const VERBS: &str = "install uninstall add remove rm update upgrade publish init create new build compile clean fix fmt format \
    apply delete destroy push pull commit deploy start stop restart kill prune set link unlink import vendor sync ci i";

/// Why others are not known to be harmless.
pub(super) const OTHERS: &[(&str, &str)] = &[
    ("bash sh zsh dash ksh fish csh tcsh busybox", "starts a shell"),
    (
        "python python2 python3 perl ruby node nodejs php lua java osascript Rscript",
        "runs a program that is not looked into",
    ),
    (
        "pip pip3 gem npm npx yarn pnpm bun deno cargo rustc rustup make cmake ninja gradle mvn go bundle composer poetry uv",
        "may run what the project says, or write what it makes",
    ),
    ("docker podman kubectl helm terraform aws gcloud az", "reaches what runs elsewhere"),
    ("curl wget nc ncat netcat socat ssh sftp ftp telnet dig nslookup host ping http https gh", "reaches the network"),
    ("less more most man info view pg bat batcat", "can run other programs"),
    ("sudo su doas pkexec chroot unshare nsenter", "runs with other rights"),
    (
        "eval source . exec trap alias unalias export declare typeset readonly local set shopt enable hash unset let mapfile readarray getopts bind complete",
        "changes the shell for what follows",
    ),
    ("top htop watch screen tmux script expect", "runs until it is stopped, or runs others"),
];

/// Programs that print their version when they are asked for nothing else, whatever lies in the directory.
pub(super) const VERSIONED: &str = "python python2 python3 pip pip3 node nodejs npm ruby gem perl php lua java javac gcc g++ cc c++ \
    clang clang++ ld make cmake ninja docker podman kubectl terraform helm git gh bash sh zsh tar zip gzip curl wget ssh openssl \
    sqlite3 psql mysql nginx rsync jq yq rg fd tmux vim nvim systemctl ffmpeg pandoc protoc uv ruff mypy zig deno bun";

/// The entry of a program.
pub(super) fn find(name: &str) -> Option<&'static Known> {
    TABLE.iter().find(|known| known.names.split(' ').any(|known| known == name))
}

/// What is said of a program that is not in the table.
pub(super) fn reason(list: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    list.iter().find(|(names, _)| names.split(' ').any(|known| known == name)).map(|(_, reason)| *reason)
}
