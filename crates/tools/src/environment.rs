//! Environment variables of commands: which look like credentials, and which are ordinary.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use shell::is_ordinary_variable;

/// Parts of the names of variables that hold secrets.
const SECRET: &str = "KEY KEYS APIKEY TOKEN TOKENS SECRET SECRETS PASSWORD PASSWD PASS PASSPHRASE CREDENTIAL CREDENTIALS AUTH COOKIE PAT";

/// Secrets that no command needs.
const PROVIDERS: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"];

/// Variables that keep programs from prompting, paging and colouring.
const QUIET: [(&str, &str); 6] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// Variables that keep git from writing.
const LOOKING: [(&str, &str); 4] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "diff.autoRefreshIndex"),
    ("GIT_CONFIG_VALUE_0", "false"),
];

/// Environment variables of commands, besides those of this program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Variables from settings.
    pub given: BTreeMap<String, String>,
    /// Names of variables that hold keys: they are withheld from every command, whoever sets them.
    pub hidden: BTreeSet<String>,
    /// Handling of variables that look like credentials.
    pub credentials: Credentials,
    /// Variables that one program was given by name. It gets them whatever they look like.
    pub named: BTreeMap<String, String>,
}

/// Handling of variables that look like credentials. Commands that run unasked never get them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Commands get them, except for the model's keys.
    #[default]
    Given,
    /// Commands do not get them.
    Withheld,
}

/// Selection of variables for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variables {
    /// All of ours, including the model's keys: it is one of our own programs.
    Own,
    /// All of ours that the settings allow.
    Inherited,
    /// Ordinary ones such as paths and locale, and no others.
    Ordinary,
}

impl Environment {
    /// All variables of a program; `inherited` are ours.
    pub(crate) fn variables(
        &self,
        which: Variables,
        inherited: impl Iterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<OsString, OsString> {
        let given = self.given.iter().map(|(name, value)| (name.into(), value.into()));
        let quiet = QUIET.iter().map(|(name, value)| (name.into(), value.into()));
        let mut all: BTreeMap<OsString, OsString> = inherited.chain(given).chain(quiet).collect();
        let kept = |name: &OsStr| {
            PROVIDERS.iter().any(|known| name == OsStr::new(known))
                || self.hidden.iter().any(|known| name == OsStr::new(known))
        };
        match which {
            Variables::Own => {}
            Variables::Inherited => {
                let withheld = self.credentials == Credentials::Withheld;
                all.retain(|name, value| !(kept(name) || withheld && looks_secret(name, value)));
            }
            Variables::Ordinary => {
                // With this one `cd` goes elsewhere than it says.
                let ordinary = |name: &OsStr| name != "CDPATH" && name.to_str().is_some_and(is_ordinary_variable);
                all.retain(|name, value| ordinary(name) && !kept(name) && !looks_secret(name, value));
                all.extend(QUIET.iter().chain(&LOOKING).map(|(name, value)| (name.into(), value.into())));
            }
        }
        all.extend(self.named.iter().map(|(name, value)| (name.into(), value.into())));
        all
    }
}

/// Returns whether a variable looks like a secret.
pub(crate) fn looks_secret(name: &OsStr, value: &OsStr) -> bool {
    let (name, value) = (name.to_string_lossy().to_uppercase(), value.to_string_lossy());
    let by_name =
        name.split(|letter: char| !letter.is_alphanumeric()).any(|part| SECRET.split(' ').any(|known| known == part));
    // An address with a password in it.
    let by_value = value.split("://").skip(1).any(|rest| {
        let host = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        host.rsplit_once('@').is_some_and(|(who, _)| who.contains(':'))
    });
    by_name || by_value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_look_like_secrets_are_known() {
        let secret = |name: &str, value: &str| looks_secret(OsStr::new(name), OsStr::new(value));
        for name in
            ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "npm_config__auth", "DB_PASSWORD", "SSH_AUTH_SOCK", "GH_PAT"]
        {
            assert!(secret(name, "x"), "{name}");
        }
        for name in ["PATH", "HOME", "KEYBOARD", "LANG", "PWD", "MONKEY", "CARGO_HOME"] {
            assert!(!secret(name, "x"), "{name}");
        }
        assert!(secret("DATABASE_URL", "postgres://me:word@host/db"));
        assert!(!secret("MIRROR", "https://host:8080/a@b:c"));
    }

    /// SEC-3: a command that runs unasked gets ordinary variables, and none that may hold a key.
    #[test]
    fn those_who_look_get_ordinary_variables_alone() {
        let ours = [
            ("HOME", "/h"),
            ("PATH", "/bin"),
            ("MINE", "x"),
            ("GH_TOKEN", "x"),
            ("ANTHROPIC_API_KEY", "x"),
            ("TOKEN_DIR", "x"),
        ];
        let ours = || ours.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment =
            Environment { given: [("SET_BY_SETTINGS".into(), "x".into())].into(), ..Environment::default() };
        let names = |environment: &Environment, which| {
            let all = environment.variables(which, ours());
            all.into_keys()
                .filter_map(|name| name.into_string().ok())
                .filter(|name| !name.contains("GIT"))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&environment, Variables::Ordinary), ["EDITOR", "HOME", "PAGER", "PATH", "TERM"]);
        let all = names(&environment, Variables::Inherited);
        assert!(
            all.iter().any(|name| name == "GH_TOKEN") && all.iter().any(|name| name == "SET_BY_SETTINGS"),
            "{all:?}"
        );
        assert!(!all.iter().any(|name| name == "ANTHROPIC_API_KEY"), "{all:?}");
        let withheld = Environment { credentials: Credentials::Withheld, ..environment };
        assert!(!names(&withheld, Variables::Inherited).iter().any(|name| name == "GH_TOKEN"));
        assert!(names(&withheld, Variables::Own).iter().any(|name| name == "ANTHROPIC_API_KEY"));
    }
}
