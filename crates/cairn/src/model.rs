//! Chooses the model and its server.
//!
//! In this order: a provider entry in the settings that the model's name begins with (`local/qwen3`), a key for
//! Anthropic, a key or an address for an OpenAI-compatible server, a local server on one of the usual ports.

use std::sync::Arc;

use provider::anthropic::{self, Anthropic, Auth};
use provider::openai::{self, OpenAi, QUICK, USUAL};
use provider::{Model, Retry};
use settings::{Provider, ProviderKind, Settings, keys};
use transcript::models;
use transcript::window::provider_name;

use crate::program_paths::ProgramPaths;
use crate::{env, stored_key};

/// The kind of model when nobody names one and the key is Anthropic's.
const DEFAULT_KIND: &str = "sonnet";
/// The kind of model for side questions when the key is Anthropic's.
const SMALL_KIND: &str = "haiku";
/// Address of OpenAI itself.
const OPENAI_URL: &str = "https://api.openai.com/v1";

/// No way to reach a model.
#[derive(Debug, thiserror::Error)]
#[error("no model to talk to: neither {} nor {} is set, and no local server answers", env::API_KEY.name, env::OPENAI_KEY.name)]
pub(crate) struct NoModel;

impl NoModel {
    /// The hint.
    pub(crate) fn hint(&self) -> String {
        format!(
            "cairn login stores an Anthropic key for every session\n\
             export {}=… or {}=… gives one to this shell\n\
             ollama serve or llama-server is found by itself; cairn demo needs neither",
            env::API_KEY.name,
            env::OPENAI_KEY.name
        )
    }
}

/// A model that was chosen.
pub(crate) struct ChosenModel {
    /// The client.
    pub(crate) model: Arc<dyn Model>,
    /// The name as the user gave it, for the window and the log.
    pub(crate) full_name: String,
    /// The name the server knows.
    pub(crate) name: String,
    /// Its window, where the server or the settings say.
    pub(crate) window: Option<u64>,
    /// A note for the user.
    pub(crate) note: Option<String>,
    /// The model for side questions, where the environment names one or the server has a known one.
    small: Option<String>,
}

impl ChosenModel {
    /// The model that is asked which memories matter: a small one of the same server, if one is known or named.
    pub(crate) fn selector(&self, settings: &Settings) -> Option<String> {
        let asked = settings.recall != Some(false);
        settings.selector_model.clone().or_else(|| self.small_name(settings)).filter(|_| asked)
    }

    /// The model for questions outside the conversation, if there is a smaller one.
    pub(crate) fn small_name(&self, settings: &Settings) -> Option<String> {
        settings.small_model.clone().or_else(|| self.small.clone())
    }
}

/// Sources of the model's name. Only the user chooses the server: a resumed session and the project's settings choose
/// only among its models.
struct ModelWishes {
    /// The organisation's or the user's.
    own: Option<String>,
    /// A resumed session's.
    known: Option<String>,
    /// The project's.
    project: Option<String>,
}

impl ModelWishes {
    fn of(asked: Option<&str>, known: Option<&str>, settings: &Settings) -> Self {
        let is_managed = settings.is_managed(&keys::MODEL);
        let (mut project, mut own) = (None, None);
        if let Some(chosen) = &settings.model {
            if chosen.source.is_below_project() {
                (project, own) = (Some(chosen.name.clone()), chosen.own.clone());
            } else {
                own = Some(chosen.name.clone());
            }
        }
        let asked = asked.filter(|_| !is_managed).map(str::to_owned);
        let is_asked = asked.is_some() || is_managed;
        let known = known.map(str::to_owned).filter(|_| !is_asked);
        Self { own: asked.or(own).or_else(|| env::MODEL.get()), known, project: project.filter(|_| !is_asked) }
    }

    /// The name for a server that has those models; of the project's only what could be one of them.
    fn name(self, could_be: impl Fn(&str) -> bool) -> Option<String> {
        self.known.or(self.project.filter(|name| could_be(name))).or(self.own)
    }
}

/// Chooses by what was asked for (a flag), what a resumed session used, the settings and the environment. What is managed
/// is stronger than all of them.
pub(crate) async fn choose(
    requested: Option<&str>,
    known: Option<&str>,
    settings: &Settings,
) -> anyhow::Result<ChosenModel> {
    let wanted = ModelWishes::of(requested, known, settings);
    if let Some(name) = &wanted.own
        && let Some((entry, model)) = of_settings(name, settings)
    {
        return from_entry(entry, &model, name);
    }
    let key = env::API_KEY.get().map(|key| Auth::ApiKey(key.into()));
    let token = || env::AUTH_TOKEN.get().map(|token| Auth::AuthToken(token.into()));
    // A variable for another server is the user's word for now; what was stored is for when there is none.
    let is_elsewhere = env::OPENAI_KEY.get().is_some() || env::OPENAI_BASE.get().is_some();
    let stored = || {
        let place = ProgramPaths::from_env().ok().filter(|_| !is_elsewhere)?;
        stored_key::read(place.home.path()).map(|key| Auth::ApiKey(key.into()))
    };
    if let Some(auth) = key.or_else(token).or_else(stored) {
        let base = env::BASE_URL.get().unwrap_or_else(|| anthropic::BASE_URL.to_owned());
        let name = wanted.name(|name| is_alias(name) || name.starts_with("claude-"));
        let full_name = resolve_alias(&name.unwrap_or_else(|| DEFAULT_KIND.to_owned()));
        let name = provider_name(&full_name).to_owned();
        return Ok(ChosenModel {
            model: anthropic(base, auth)?,
            full_name,
            name,
            window: None,
            note: None,
            small: small(models::newest_of(SMALL_KIND)),
        });
    }
    let (openai_key, openai_base) = (env::OPENAI_KEY.get(), env::OPENAI_BASE.get());
    if openai_key.is_some() || openai_base.is_some() {
        let base = openai_base.unwrap_or_else(|| OPENAI_URL.to_owned());
        let name = wanted.name(|name| !is_alias(name));
        let name = name.ok_or_else(|| anyhow::anyhow!("which model? name one with --model, for {base}"))?;
        let model = openai(base, openai_key)?;
        return Ok(ChosenModel { model, full_name: name.clone(), name, window: None, note: None, small: small(None) });
    }
    local(wanted.name(|name| !is_alias(name))).await
}

/// A server on this machine, on one of the ports such servers use.
async fn local(wanted: Option<String>) -> anyhow::Result<ChosenModel> {
    let wanted_local = env::NO_LOCAL.flag() != Some(true);
    let found = if wanted_local { openai::discover(&USUAL, QUICK).await } else { Vec::new() };
    let has = |server: &openai::DiscoveredServer| wanted.as_ref().is_none_or(|name| server.models.contains(name));
    let server = found.iter().find(|server| !server.models.is_empty() && has(server));
    let server = server.or_else(|| found.iter().find(|server| !server.models.is_empty())).ok_or(NoModel)?;
    // A name that is not there (a resumed session's, say) gives way to one that is.
    let name = wanted.filter(|name| server.models.contains(name)).or_else(|| server.models.first().cloned());
    let name = name.ok_or(NoModel)?;
    let note = format!("no key is set; talking to {name} at {}", server.base_url);
    let model = openai(server.base_url.clone(), None)?;
    Ok(ChosenModel {
        model,
        full_name: name.clone(),
        name,
        window: server.window,
        note: Some(note),
        small: small(None),
    })
}

/// The provider entry a name begins with, and the rest of the name. No entry takes the place of a short name.
fn of_settings<'a>(name: &str, settings: &'a Settings) -> Option<(&'a Provider, String)> {
    if is_alias(name) {
        return None;
    }
    if let Some(entry) = settings.providers.get(name) {
        return Some((entry, entry.model.clone()?));
    }
    let (first, rest) = name.split_once('/')?;
    settings.providers.get(first).map(|entry| (entry, rest.to_owned()))
}

fn from_entry(entry: &Provider, model: &str, full_name: &str) -> anyhow::Result<ChosenModel> {
    let key = entry.key_env.as_deref().and_then(env::named);
    let client = match entry.kind {
        ProviderKind::OpenAi => openai(entry.base_url.clone(), key)?,
        ProviderKind::Anthropic => {
            let auth = Auth::ApiKey(key.unwrap_or_else(|| "none".to_owned()).into());
            anthropic(entry.base_url.clone(), auth)?
        }
    };
    let (full_name, name) = (full_name.to_owned(), model.to_owned());
    Ok(ChosenModel { model: client, full_name, name, window: entry.window, note: None, small: small(None) })
}

fn anthropic(base: String, auth: Auth) -> anyhow::Result<Arc<dyn Model>> {
    let config = anthropic::Config { retry: retry()?, ..anthropic::Config::new(base, auth) };
    Ok(Arc::new(Anthropic::new(config)?))
}

fn openai(base: String, key: Option<String>) -> anyhow::Result<Arc<dyn Model>> {
    let config = openai::Config { retry: retry()?, ..openai::Config::new(base, key.map(Into::into)) };
    Ok(Arc::new(OpenAi::new(config)?))
}

/// The model for side questions: what the environment names, else what the server is known to have.
fn small(known: Option<&str>) -> Option<String> {
    env::SMALL_MODEL.get().or(known.map(str::to_owned))
}

fn retry() -> anyhow::Result<Retry> {
    let usual = Retry::default();
    let attempts =
        env::MAX_RETRIES.number()?.map(|retries| u32::try_from(retries).unwrap_or(u32::MAX).saturating_add(1));
    Ok(Retry { attempts: attempts.unwrap_or(usual.attempts), ..usual })
}

fn is_alias(name: &str) -> bool {
    resolve_alias(name) != name
}

fn resolve_alias(name: &str) -> String {
    let (short, suffix) = name.strip_suffix("[1m]").map_or((name, ""), |short| (short, "[1m]"));
    let full = models::newest_of(if short == "default" { DEFAULT_KIND } else { short }).unwrap_or(short);
    format!("{full}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use settings::{NamedModel, SettingsSource};

    fn settings(name: &str, source: SettingsSource, own: Option<&str>) -> Settings {
        let model = Some(NamedModel { name: name.to_owned(), source, own: own.map(str::to_owned) });
        let entry: Provider = serde_json::from_str(r#"{"baseUrl": "http://mine", "model": "m"}"#).unwrap();
        let providers = [("work".to_owned(), entry.clone()), ("sonnet".to_owned(), entry)].into();
        Settings { model, providers, ..Settings::default() }
    }

    /// TRUST-3: the server is the user's choice, whatever a project or a transcript names.
    #[test]
    fn a_project_or_a_resumed_session_names_no_server() {
        let settings = settings("work/evil", SettingsSource::Project, Some("mine"));
        for known in [None, Some("work/x"), Some("work")] {
            let wanted = ModelWishes::of(None, known, &settings);
            assert_eq!(wanted.own.as_deref(), Some("mine"), "which decides about the server");
        }
        let wanted = ModelWishes::of(Some("work/x"), Some("known"), &settings);
        assert_eq!(wanted.name(|_| true).as_deref(), Some("work/x"), "a flag is the user's word");
    }

    #[test]
    fn an_entry_does_not_take_the_place_of_a_short_name() {
        let settings = settings("sonnet", SettingsSource::User, None);
        assert!(of_settings("sonnet", &settings).is_none() && of_settings("sonnet[1m]", &settings).is_none());
        assert!(of_settings("work", &settings).is_some() && of_settings("work/x", &settings).is_some());
    }

    #[test]
    fn a_projects_model_picks_among_those_of_the_server() {
        let settings = settings("opus", SettingsSource::Local, Some("mine"));
        let name = |could_be: fn(&str) -> bool| ModelWishes::of(None, None, &settings).name(could_be);
        assert_eq!(name(is_alias).as_deref(), Some("opus"));
        assert_eq!(name(|name| !is_alias(name)).as_deref(), Some("mine"));
    }
}
