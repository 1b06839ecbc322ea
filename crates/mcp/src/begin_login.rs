//! A login: where to, as which client, and the code that comes of it.
//!
//! The caller opens the browser and shows the address. A login is for the server's own address: tokens are stored for it
//! and go nowhere else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientJsonRpcMessage, ClientRequest, DiscoverRequest, DiscoverRequestParams, Implementation,
    NumberOrString, ProtocolVersion, RequestMetaObject,
};
use rmcp::transport::auth::{AuthorizationCallback, AuthorizationMetadata, OAuthClientConfig};
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpError};
use rmcp::transport::{AuthError, AuthorizationManager};
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;
use url::Url;

use crate::authorization::{discover, manager};
use crate::callback::{Callback, CallbackListener};
use crate::endpoint::HttpEndpoint;
use crate::error::Error;
use crate::http::HttpClient;
use crate::names::cut;
use crate::token_files::{TokenStore, Tokens};

/// Name under which this program registers.
const CLIENT_NAME: &str = "Cairn";
/// The most bytes of the server's words in an error.
const LONGEST_WORDS: usize = 500;
/// The most bytes of the answer to a question that is asked for its refusal.
const ANSWER: usize = 64 << 10;
/// Scope for tokens that can be renewed.
const OFFLINE: &str = "offline_access";

/// A login that waits for the user's consent in a browser.
pub struct Login {
    server: String,
    manager: AuthorizationManager,
    store: Arc<dyn TokenStore>,
    client_secret: Option<String>,
    url: String,
    state: String,
}

impl Login {
    /// Finds the authorization server, registers if need be, and makes the address for the browser. `challenge` is what the
    /// server said when it wanted the login, if it was asked already; `redirect_uri` is that of a [`CallbackListener`].
    pub async fn begin(
        server: &str,
        endpoint: &HttpEndpoint,
        challenge: Option<String>,
        redirect_uri: &str,
    ) -> Result<Self, Error> {
        let failed = |message: String| login_failed(server, &message);
        let Some(store) = endpoint.tokens.clone() else {
            return Err(failed("there is no place for its tokens".to_owned()));
        };
        let prepared = async {
            let challenge = match challenge {
                Some(challenge) => Some(challenge),
                None => challenge_of(endpoint).await,
            };
            let known = store.load().map_err(AuthError::CredentialStoreError)?.unwrap_or_default();
            let mut manager = manager(&endpoint.url, store.clone()).await?;
            let metadata = discover(&mut manager, &endpoint.client, challenge.as_deref()).await?;
            let scopes = scopes(&manager, endpoint, &known, &metadata).await;
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let config = register(&mut manager, endpoint, &metadata, redirect_uri, &scopes).await?;
            let client_secret = config.client_secret.clone();
            manager.configure_client(config)?;
            let url = manager.get_authorization_url(&scopes).await?;
            Ok((manager, client_secret, url))
        };
        let (manager, client_secret, url) = prepared
            .with_subscriber(NoSubscriber::new())
            .await
            .map_err(|error: AuthError| failed(short(&error.to_string())))?;
        let parsed = Url::parse(&url).map_err(|_| failed("it names no address for the browser".to_owned()))?;
        // The page is for a browser: no file, no program.
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(failed("its address for the browser is not that of a web page".to_owned()));
        }
        let state = parsed.query_pairs().find(|(name, _)| name == "state").map(|(_, state)| state.into_owned());
        let state = state.unwrap_or_default();
        Ok(Self { server: server.to_owned(), manager, store, client_secret, url, state })
    }

    /// The address for the browser.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits for the browser to come back. The caller bounds the time.
    pub async fn callback(&self, listener: &CallbackListener) -> Callback {
        listener.wait(&self.state).await
    }

    /// Exchanges the code for tokens and keeps them.
    pub async fn finish(self, callback: &Callback) -> Result<(), Error> {
        let failed = |message: String| login_failed(&self.server, &message);
        if let Some(error) = callback.value("error") {
            let words = callback.value("error_description").unwrap_or_default();
            return Err(failed(format!("{error} {words}")));
        }
        let callback = AuthorizationCallback::from_redirect_url(callback.address())
            .map_err(|_| failed("the browser came back without a code".to_owned()))?;
        if callback.csrf_token != self.state {
            return Err(failed("the browser came back with the code of another login".to_owned()));
        }
        let exchange = self.manager.exchange_code_for_token_with_issuer(
            &callback.code,
            &callback.csrf_token,
            callback.issuer.as_deref(),
        );
        exchange.with_subscriber(NoSubscriber::new()).await.map_err(|error| failed(message_of(&error)))?;
        let unkept = |message| Error::Tokens { server: self.server.clone(), message };
        let tokens = self.store.load().map_err(unkept)?.unwrap_or_default();
        let tokens = Tokens { client_secret: self.client_secret.clone(), wanted_scopes: Vec::new(), ..tokens };
        self.store.save(&tokens).map_err(unkept)
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("server", &self.server).finish_non_exhaustive()
    }
}

fn login_failed(server: &str, message: &str) -> Error {
    let clean: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Error::Login { server: server.to_owned(), message: cut(clean.trim(), LONGEST_WORDS).into_owned() }
}

/// The first and the last line of an error that lists all its causes.
fn short(text: &str) -> String {
    let mut lines =
        text.lines().map(|line| line.trim().trim_start_matches("Caused by: ")).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    lines.next_back().map_or_else(|| first.to_owned(), |last| format!("{first}: {last}"))
}

/// An error of an exchange without the answer that it may quote.
fn message_of(error: &AuthError) -> String {
    match error {
        AuthError::TokenExchangeFailed(_) => "the code was not exchanged for a token".to_owned(),
        other => other.to_string(),
    }
}

/// Challenge of the server to a request without a token.
async fn challenge_of(endpoint: &HttpEndpoint) -> Option<String> {
    let client = HttpClient::new(&endpoint.url, &BTreeMap::new(), ANSWER).ok()?;
    let identity = Implementation::new("cairn", env!("CARGO_PKG_VERSION"));
    let meta = RequestMetaObject::with_client_context(ProtocolVersion::LATEST, identity, ClientCapabilities::default());
    let mut request = DiscoverRequest::new(DiscoverRequestParams {});
    request.extensions.insert(meta);
    let message = ClientJsonRpcMessage::request(ClientRequest::DiscoverRequest(request), NumberOrString::Number(0));
    let headers = [("mcp-protocol-version", ProtocolVersion::LATEST.as_str()), ("mcp-method", "server/discover")];
    let headers = headers.into_iter().filter_map(|(name, value)| {
        Some((reqwest::header::HeaderName::from_static(name), reqwest::header::HeaderValue::from_str(value).ok()?))
    });
    match client.post_message(endpoint.url.as_str().into(), message, None, None, headers.collect()).await {
        Err(StreamableHttpError::AuthRequired(error)) => {
            Some(error.www_authenticate_header).filter(|it| !it.is_empty())
        }
        _ => None,
    }
}

/// Scopes to ask for: those of the definition, or those the server names, with those it asked for since the last login.
async fn scopes(
    manager: &AuthorizationManager,
    endpoint: &HttpEndpoint,
    known: &Tokens,
    metadata: &AuthorizationMetadata,
) -> Vec<String> {
    let mut scopes = match endpoint.client.scopes.is_empty() {
        true => manager.select_initial_scopes(&[]).await,
        false => endpoint.client.scopes.clone(),
    };
    if !known.wanted_scopes.is_empty() {
        let granted = known.credentials["granted_scopes"].as_array().into_iter().flatten();
        scopes.extend(granted.filter_map(|scope| scope.as_str().map(str::to_owned)));
        scopes.extend(known.wanted_scopes.iter().cloned());
    }
    let offers_renewal =
        metadata.scopes_supported.as_ref().is_some_and(|supported| supported.iter().any(|scope| scope == OFFLINE));
    if offers_renewal && !scopes.is_empty() {
        scopes.push(OFFLINE.to_owned());
    }
    let mut seen = std::collections::BTreeSet::new();
    scopes.retain(|scope| seen.insert(scope.clone()));
    scopes
}

/// The client for this login: registered beforehand, by its document, or now.
async fn register(
    manager: &mut AuthorizationManager,
    endpoint: &HttpEndpoint,
    metadata: &AuthorizationMetadata,
    redirect_uri: &str,
    scopes: &[&str],
) -> Result<OAuthClientConfig, AuthError> {
    let client = &endpoint.client;
    let owned = || scopes.iter().map(|scope| (*scope).to_owned()).collect();
    if let Some(id) = &client.id {
        let config = OAuthClientConfig::new(id, redirect_uri).with_scopes(owned());
        return Ok(match &client.secret {
            Some(secret) => config.with_client_secret(secret),
            None => config,
        });
    }
    let takes_documents = metadata.additional_fields.get("client_id_metadata_document_supported");
    if let Some(document) = client.document_url.as_ref().filter(|_| takes_documents.is_some_and(|takes| *takes == true))
    {
        return Ok(OAuthClientConfig::new(document, redirect_uri).with_scopes(owned()));
    }
    manager.register_client(CLIENT_NAME, redirect_uri, scopes).await
}
