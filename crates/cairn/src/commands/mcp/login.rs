//! Logging in to a server and out of it.

use std::time::Duration;

use anyhow::Context;
use engine::servers::http_endpoint;
use mcp::{Callback, CallbackListener, HttpEndpoint, Login, ServerTransport};
use settings::servers::ServerApproval;

use crate::browser;
use crate::exit::Code;
use crate::out::{show, talk};
use crate::program_paths::ProgramPaths;
use crate::server_setup;
use crate::trusted_settings::{self, RunTrust};

/// Time for the user to log in.
const PATIENCE: Duration = Duration::from_secs(600);

/// Logs in to a server.
pub(super) async fn login(place: &ProgramPaths, name: &str, no_browser: bool) -> anyhow::Result<Code> {
    let (endpoint, port) = endpoint(place, name)?;
    let listener = CallbackListener::bind(port).await.map_err(anyhow::Error::msg)?;
    let login = Login::begin(name, &endpoint, None, &listener.redirect_uri()).await?;
    talk!("Log in to {name} at this address:");
    show!("{}", login.url());
    let callback = if no_browser {
        talk!("Then paste the address that the browser ends up at, even if it shows an error there:");
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|_| line)
        });
        Callback::from_address(&line.await??).map_err(anyhow::Error::msg)?
    } else {
        browser::open(login.url());
        talk!("Waiting for the browser…");
        let waiting = tokio::time::timeout(PATIENCE, login.callback(&listener)).await;
        waiting.context("nobody logged in within ten minutes; with --no-browser you can paste the address instead")?
    };
    login.finish(&callback).await?;
    talk!("You are logged in to {name}.");
    Ok(Code::Success)
}

/// Forgets a login.
pub(super) fn logout(place: &ProgramPaths, name: &str) -> anyhow::Result<Code> {
    let (endpoint, _) = endpoint(place, name)?;
    let Some(tokens) = endpoint.tokens else { return Ok(Code::Failure) };
    let had = tokens.load().map_err(anyhow::Error::msg)?.is_some_and(|tokens| tokens.has_login());
    tokens.clear().map_err(anyhow::Error::msg)?;
    talk!(
        "{}",
        if had { format!("The login to {name} is forgotten.") } else { format!("There was no login to {name}.") }
    );
    Ok(if had { Code::Success } else { Code::Failure })
}

/// The address of a server, and the port that its client was registered with.
fn endpoint(place: &ProgramPaths, name: &str) -> anyhow::Result<(HttpEndpoint, Option<u16>)> {
    let server = super::named(place, name)?;
    anyhow::ensure!(
        !matches!(server.approval, ServerApproval::Needed(_)),
        "{name} comes from {}, which you do not trust yet: a session in a terminal asks",
        server.place
    );
    let port = match &server.definition.transport {
        ServerTransport::Http(http) => http.oauth.callback_port,
        ServerTransport::Stdio(_) => anyhow::bail!("{name} is a program; only servers with an address have a login"),
    };
    let judged = trusted_settings::judge(place, None, RunTrust::No)?;
    let environment = engine::configuration::environment(&judged.settings);
    let surroundings = server_setup::surroundings(place, Vec::new(), environment, std::collections::BTreeMap::new());
    let endpoint = http_endpoint(&server, &surroundings).context("it has no address")?;
    Ok((endpoint, port))
}
