//! The environment variables that a trusted project may set.
//!
//! Variables make programs load code, find other programs, choose servers and look for keys, and nobody knows all of
//! their names. So little is allowed. A name of one word belongs to the system, the shell or an old tool (`MAKEFILES`,
//! `GLOBIGNORE`, `HOSTALIASES`): only those listed here pass. A project's own name has a prefix (`SHOP_GREETING`) that
//! is not the prefix of a known tool, and no word in it is about programs, places, servers or keys. A value is plain
//! words, not a path, an option, an address or code.

/// The longest name.
const NAME_LENGTH: usize = 64;
/// The longest value.
const VALUE_LENGTH: usize = 1_000;

/// Names that are allowed although a rule below refuses them.
const FINE: [&str; 13] = [
    "CARGO_TERM_COLOR",
    "CI",
    "DEBUG",
    "ENVIRONMENT",
    "LANG",
    "NODE_ENV",
    "PORT",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "REGION",
    "STAGE",
    "TZ",
    "VERBOSE",
];

/// Words in a name that are about programs, places, servers or keys.
const WORDS: &str = include_str!("variables/words.txt");

/// Prefixes of variables that control well-known tools.
const TOOLS: &str = include_str!("variables/tools.txt");

/// Beginnings that no word may have, as in `PYTHONSTARTUP`, `GOFLAGS`, `LESSOPEN` and `PERL5OPT`.
const BEGINNINGS: &[&str] = &[
    "BASH", "CLAUDE", "DYLD", "GIT", "JAVA", "LESS", "LUA", "MANPAGER", "NODE", "NPM", "OPENSSL", "PERL", "PG", "PHP",
    "PYTHON", "RUBY", "SSL", "SUDO", "VIM", "ZSH",
];

/// Endings that no word may have, as in `LDFLAGS`, `MANPATH`, `WGETRC` and `GOPROXY`.
const ENDINGS: &[&str] = &[
    "CONFIG", "DIR", "FILE", "FLAGS", "HOME", "INIT", "KEY", "OPEN", "OPT", "OPTIONS", "OPTS", "PATH", "PROXY", "RC",
    "ROOT", "RSH", "SECRET", "TOKEN", "URL",
];

/// The reason why a project's file may not set a variable; none if it may.
pub fn refusal(name: &str, value: &str) -> Option<&'static str> {
    let mut letters = name.bytes();
    let plain = letters.next().is_some_and(|first| first.is_ascii_uppercase())
        && letters.all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == b'_')
        && name.len() <= NAME_LENGTH;
    if !plain {
        return Some("its name may only have capital letters, digits and underscores");
    }
    let mut words = name.split('_').filter(|word| !word.is_empty());
    let steers = |word: &str| {
        WORDS.lines().any(|known| known == word)
            || BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
            || ENDINGS.iter().any(|ending| word.ends_with(ending))
    };
    if !FINE.contains(&name) {
        let of_tool = words.clone().next().is_some_and(|first| TOOLS.lines().any(|tool| tool == first));
        if of_tool || words.clone().any(steers) {
            return Some("variables of this name can load code, redirect traffic or hold a key");
        }
        if words.nth(1).is_none() {
            return Some("a one-word name may belong to the system; use a prefix such as MYAPP_");
        }
    }
    let word = |letter: char| letter.is_alphanumeric() || " _.,:=+@%*-".contains(letter);
    if value.len() > VALUE_LENGTH || value.starts_with('-') || !value.chars().all(word) || value.contains("..") {
        return Some("its value contains more than plain words");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TRUST-3: variables that load code, redirect traffic or hold keys are never a project's to set.
    #[test]
    fn variables_that_steer_programs_are_refused() {
        let names = "PATH LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES GIT_SSH_COMMAND GIT_DIR GIT_EXTERNAL_DIFF \
            NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PERL5OPT PERL5LIB \
            RUBYOPT RUBYLIB BASH_ENV ENV IFS SHELL SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND HTTP_PROXY HTTPS_PROXY ALL_PROXY \
            NO_PROXY ANTHROPIC_BASE_URL ANTHROPIC_API_KEY ANTHROPIC_MODEL CLAUDE_CONFIG_DIR CLAUDE_CODE_SIMPLE CAIRN_NO_LOCAL_SERVER \
            OPENAI_BASE_URL AWS_PROFILE AWS_SECRET_ACCESS_KEY MY_TOKEN MY_SECRET DB_PASSWORD EDITOR VISUAL PAGER BROWSER \
            JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS CLASSPATH MAVEN_OPTS GRADLE_OPTS RUSTC_WRAPPER RUSTC RUSTFLAGS CARGO_HOME \
            CARGO_BUILD_RUSTC_WRAPPER CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER GOFLAGS GOPROXY GOPATH CC CXX LD AR CFLAGS LDFLAGS \
            MAKEFLAGS DOCKER_HOST KUBECONFIG SSH_AUTH_SOCK SSH_ASKPASS SSL_CERT_FILE OPENSSL_CONF CURL_HOME CURL_CA_BUNDLE \
            REQUESTS_CA_BUNDLE WGETRC HOME XDG_CONFIG_HOME TMPDIR TMP TEMP VIMINIT LESSOPEN LESS MANPAGER LUA_INIT PHPRC PHP_INI_SCAN_DIR \
            DOTNET_STARTUP_HOOKS CORECLR_PROFILER ERL_FLAGS R_PROFILE_USER INPUTRC HISTFILE CDPATH TERMINFO GCONV_PATH LOCPATH \
            PIP_INDEX_URL UV_INDEX NPM_CONFIG_REGISTRY YARN_REGISTRY GEM_HOME BUNDLE_GEMFILE SUDO_ASKPASS PKG_CONFIG_PATH \
            LIBRARY_PATH CPATH C_INCLUDE_PATH TF_CLI_CONFIG_FILE GNUPGHOME PGPASSFILE PGHOST VIRTUAL_ENV ZDOTDIR DATABASE_URL \
            _JAVA_OPTIONS npm_config_registry http_proxy MALLOC_CHECK_ A-B A=B MAKEFILES RSYNC_RSH CVS_RSH HOSTALIASES LOCALDOMAIN \
            GLOBIGNORE EXECIGNORE R_ENVIRON R_ENVIRON_USER MISE_ENV RES_OPTIONS TIMEFORMAT MAILCHECK FIGNORE TAPE FOO FOO_ OPTIND";
        for name in names.split_whitespace().chain(["", "A B", "Ä", "A\nB"]) {
            assert!(refusal(name, "x").is_some(), "{name}");
        }
    }

    #[test]
    fn values_that_are_more_than_words_are_refused() {
        for value in [
            "/tmp/x.so",
            "./x",
            "a\\b",
            "--require",
            "$(id)",
            "`id`",
            "() { :; }; id",
            "http://x",
            "a\nb",
            "..",
            "a|b",
            "~",
        ] {
            assert!(refusal("SHOP_GREETING", value).is_some(), "{value:?}");
        }
        assert!(refusal("SHOP_GREETING", &"x".repeat(VALUE_LENGTH + 1)).is_some());
    }

    #[test]
    fn everyday_variables_are_fine() {
        for (name, value) in [
            ("APP_FOO", "bar"),
            ("SHOP_GREETING", "hello world"),
            ("RUST_LOG", "debug,hyper=warn"),
            ("RUST_BACKTRACE", "1"),
            ("CI", "true"),
            ("NODE_ENV", "test"),
            ("DEBUG", "app:*"),
            ("TZ", "UTC"),
            ("RAILS_ENV", "development"),
            ("LOG_LEVEL", "info"),
            ("PORT", "8080"),
            ("NO_COLOR", ""),
            ("FORCE_COLOR", "0"),
            ("MY_FEATURE_2", "on"),
            ("CARGO_TERM_COLOR", "never"),
        ] {
            assert_eq!(refusal(name, value), None, "{name}={value}");
        }
    }
}
