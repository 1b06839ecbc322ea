//! Changing one key of one file. Nothing is written that would not be read again as it was meant.

use std::path::PathBuf;

use serde_json::Value;
use settings::keys::{self, Kind, MaySet, SettingKey};
use settings::trust::{self, TrustFault};
use settings::{Json, LoadedSettings, nearest, rules, variables};

use crate::exit::Code;
use crate::out::talk;
use crate::program_paths::ProgramPaths;

/// The largest settings file that is changed.
const SETTINGS_LIMIT: u64 = 1_000_000;

/// Sets a key.
pub(super) fn set(place: &ProgramPaths, key: &str, value: &str, local: bool) -> anyhow::Result<Code> {
    let target = Target::named(key)?;
    let value = target.read(value)?;
    if local {
        target.admit(&value)?;
    }
    if let "permissions.allow" | "permissions.ask" | "permissions.deny" = target.key.name {
        let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        for rule in texts {
            rules(&[rule.to_owned()], &place.base_paths()).map_err(session::Error::from)?;
        }
    }
    let path = target.change(place, local, |json, names| Ok(Some(json.with(names, &value)?)))?;
    talk!("{} is set in {}.", target.spelled(), path.display());
    Ok(Code::Success)
}

/// Takes a key out.
pub(super) fn unset(place: &ProgramPaths, key: &str, local: bool) -> anyhow::Result<Code> {
    let target = Target::named(key)?;
    let mut found = false;
    let path = target.change(place, local, |json, names| {
        let mut text = json.without(names);
        if let Some(older) = target.key.older {
            let older: Vec<&str> = older.split('.').collect();
            let now = Json::parse(text.as_deref().unwrap_or(json.text()).as_bytes()).ok();
            text = now.and_then(|json| json.without(&older)).or(text);
        }
        found = text.is_some();
        Ok(text)
    })?;
    if found {
        talk!("{} is no longer set in {}.", target.spelled(), path.display());
        return Ok(Code::Success);
    }
    talk!("{} was not set in {}.", target.spelled(), path.display());
    Ok(Code::Failure)
}

/// A key, or an entry of one that is an object.
struct Target {
    key: &'static SettingKey,
    entry: Option<String>,
}

impl Target {
    fn named(name: &str) -> anyhow::Result<Self> {
        if let Some(key) = SettingKey::named(name) {
            return Ok(Self { key, entry: None });
        }
        let holds = |key: &&SettingKey| matches!(key.kind, Kind::Variables | Kind::Counts | Kind::Entries(_));
        let entry = keys::KEYS.iter().filter(holds).find_map(|key| {
            let entry = name.strip_prefix(key.name)?.strip_prefix('.').filter(|entry| !entry.is_empty())?;
            Some(Self { key, entry: Some(entry.to_owned()) })
        });
        entry.ok_or_else(|| {
            let hint = nearest(name).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            anyhow::anyhow!("Cairn has no setting {name}{hint}")
        })
    }

    fn spelled(&self) -> String {
        match &self.entry {
            Some(entry) => format!("{}.{entry}", self.key.name),
            None => self.key.name.to_owned(),
        }
    }

    /// The type of its value.
    fn kind(&self) -> Kind {
        match (self.key.kind, &self.entry) {
            (Kind::Variables, Some(_)) => Kind::Text,
            (Kind::Counts, Some(_)) => Kind::Count,
            (Kind::Entries(entry), Some(_)) => Kind::Entry(entry),
            (kind, _) => kind,
        }
    }

    /// A value as it was typed: JSON, or text where text is meant.
    fn read(&self, typed: &str) -> anyhow::Result<Value> {
        let kind = self.kind();
        let as_text = Value::from(typed);
        let json = serde_json::from_str(typed).ok().filter(|value| kind.fits(value));
        json.or_else(|| kind.fits(&as_text).then_some(as_text)).ok_or_else(|| {
            anyhow::anyhow!("{} should be {}, as JSON; this is not: {typed}", self.spelled(), kind.words())
        })
    }

    /// Refuses what would not count from a file below the project.
    fn admit(&self, value: &Value) -> anyhow::Result<()> {
        let key = self.key;
        let refused = |why: &str| anyhow::anyhow!("{} has no effect there: {why}; use --user", self.spelled());
        if key.reach == MaySet::Own {
            return Err(refused("only your own settings may set this"));
        }
        if key.name == keys::MODE.name && value == "bypassPermissions" {
            return Err(refused("a project's settings cannot stop Cairn from asking you"));
        }
        if key.name == keys::ENV.name {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let entries: Vec<(String, String)> = match (&self.entry, value) {
                (Some(name), value) => vec![(name.clone(), text(value))],
                (None, value) => {
                    value.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect()
                }
            };
            for (name, value) in entries {
                if let Some(why) = variables::refusal(&name, &value) {
                    return Err(refused(why));
                }
            }
        }
        Ok(())
    }

    /// Changes the file and says which. What the user puts into the local file, the user trusts.
    fn change(
        &self,
        place: &ProgramPaths,
        local: bool,
        edit: impl FnOnce(&Json, &[&str]) -> anyhow::Result<Option<String>>,
    ) -> anyhow::Result<PathBuf> {
        let files = place.settings_files(None)?;
        let path = if local { files.local.clone() } else { files.user.clone() };
        let (text, stamp) = match files::read(&path, SETTINGS_LIMIT) {
            Ok(file) => (file.bytes, Some(file.stamp)),
            Err(files::Error::NotFound { .. }) => (b"{}\n".to_vec(), None),
            Err(error) => return Err(error.into()),
        };
        let json = Json::parse(&text).map_err(|not| {
            anyhow::anyhow!("{}:{}:{}: not JSON: {}; fix it first", path.display(), not.line, not.column, not.why)
        })?;
        let names: Vec<&str> = self.key.name.split('.').chain(self.entry.as_deref()).collect();
        let Some(text) = edit(&json, &names)? else { return Ok(path) };
        anyhow::ensure!(Json::parse(text.as_bytes()).is_ok(), "{} would no longer be JSON", path.display());
        let mut trust = place.trust();
        let before = trust::claims(&LoadedSettings::read(&files), trust.site());
        match stamp {
            Some(stamp) => files::replace_unchanged(&path, text.as_bytes(), &stamp)?,
            None => files::create_new(&path, text.as_bytes())?,
        };
        let mut new = trust::claims(&LoadedSettings::read(&files), trust.site());
        new.retain(|claim| !before.iter().any(|known| known.fingerprint == claim.fingerprint));
        if local && !new.is_empty() {
            match trust.remember(&new) {
                Ok(()) | Err(TrustFault::Never) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(path)
    }
}
