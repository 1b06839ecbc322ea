//! The tokens of a login at work: fetched from their store, renewed when they run out, and sent to their server alone.
//!
//! rmcp does discovery and renewal. Both happen only when a token has to be renewed: a server that works without a login
//! causes no request elsewhere. What rmcp would log about tokens goes nowhere.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use rmcp::transport::auth::{AuthorizationMetadata, OAuthClientConfig};
use rmcp::transport::{AuthError, AuthorizationManager, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use serde_json::Value;
use tokio::sync::Mutex;
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;
use url::Url;

use crate::endpoint::HttpEndpoint;
use crate::origin;
use crate::token_files::{LoginClient, TokenStore, Tokens};

/// The most bytes of an authorization server's metadata.
const LARGEST_METADATA: usize = 256 << 10;

/// Tokens of one server, ready for its requests.
pub(crate) struct Authorization {
    manager: Mutex<AuthorizationManager>,
    store: Arc<dyn TokenStore>,
    client: LoginClient,
}

impl Authorization {
    /// That of an endpoint, if there was a login.
    pub(crate) async fn new(endpoint: &HttpEndpoint) -> Result<Option<Arc<Self>>, String> {
        let Some(store) = endpoint.tokens.clone() else { return Ok(None) };
        if !store.load()?.is_some_and(|tokens| tokens.has_login()) {
            return Ok(None);
        }
        let manager = manager(&endpoint.url, store.clone()).await.map_err(|error| error.to_string())?;
        Ok(Some(Arc::new(Self { manager: Mutex::new(manager), store, client: endpoint.client.clone() })))
    }

    /// A token for the next request, renewed if it is about to run out; none if only a login could give one.
    pub(crate) async fn token(&self) -> Result<Option<String>, AuthError> {
        let mut manager = self.manager.lock().await;
        let token = manager.get_access_token().with_subscriber(NoSubscriber::new()).await;
        let token = match token {
            // It has to be renewed, and nothing is known yet about where.
            Err(AuthError::InternalError(_)) => {
                if !self.discover(&mut manager).await? {
                    return Ok(None);
                }
                manager.get_access_token().with_subscriber(NoSubscriber::new()).await
            }
            token => token,
        };
        given(token)
    }

    /// Another token in place of one that the server rejected.
    pub(crate) async fn renewed(&self, rejected: &str) -> Result<Option<String>, AuthError> {
        let mut manager = self.manager.lock().await;
        let known = self.store.load().map_err(AuthError::CredentialStoreError)?;
        let known =
            known.and_then(|tokens| tokens.credentials["token_response"]["access_token"].as_str().map(str::to_owned));
        match known {
            None => return Ok(None),
            // Another call, or another process, has renewed it.
            Some(known) if known != rejected => return Ok(Some(known)),
            Some(_) => {}
        }
        if !self.discover(&mut manager).await? {
            return Ok(None);
        }
        let renewed = manager.refresh_token().with_subscriber(NoSubscriber::new()).await;
        match renewed {
            Ok(_) => given(manager.get_access_token().with_subscriber(NoSubscriber::new()).await),
            Err(error) => given(Err(error)),
        }
    }

    /// Finds the authorization server. False if the tokens are not its own.
    async fn discover(&self, manager: &mut AuthorizationManager) -> Result<bool, AuthError> {
        discover(manager, &self.client, None).with_subscriber(NoSubscriber::new()).await?;
        if !manager.initialize_from_store().with_subscriber(NoSubscriber::new()).await? {
            return Ok(false);
        }
        let tokens = self.store.load().map_err(AuthError::CredentialStoreError)?.unwrap_or_default();
        if let (Some(secret), Some(id)) = (&tokens.client_secret, tokens.credentials["client_id"].as_str()) {
            // The address is that of a callback, of which a renewal makes no use.
            manager
                .configure_client(OAuthClientConfig::new(id, "http://localhost/callback").with_client_secret(secret))?;
        }
        Ok(true)
    }
}

fn given(token: Result<String, AuthError>) -> Result<Option<String>, AuthError> {
    match token {
        Ok(token) => Ok(Some(token)),
        Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A manager for a server that keeps what it gets in the store.
pub(crate) async fn manager(url: &str, store: Arc<dyn TokenStore>) -> Result<AuthorizationManager, AuthError> {
    let _ = rustls::crypto::ring::default_provider().install_default(); // it may be so already
    // A server within a company has its authorization server there too. rmcp keeps all others from private addresses.
    let mut manager = match is_private(url).await {
        true => AuthorizationManager::new_allowing_private_addresses(url).await?,
        false => AuthorizationManager::new(url).await?,
    };
    manager.set_credential_store(Credentials(store));
    Ok(manager)
}

async fn is_private(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let (Some(host), port) = (url.host_str(), url.port_or_known_default().unwrap_or(443)) else { return false };
    let Ok(mut addresses) = tokio::net::lookup_host((host.trim_matches(['[', ']']), port)).await else { return false };
    addresses.any(|address| match address.ip() {
        IpAddr::V4(address) => address.is_private(),
        IpAddr::V6(address) => address.is_unique_local(),
    })
}

/// Finds the authorization server: by a definition's own address, or from what the server says.
pub(crate) async fn discover(
    manager: &mut AuthorizationManager,
    client: &LoginClient,
    challenge: Option<&str>,
) -> Result<AuthorizationMetadata, AuthError> {
    let metadata = match &client.metadata_url {
        Some(url) => fetch_metadata(url).await?,
        None => manager.resolve_metadata_from_challenge(challenge).await?.metadata,
    };
    check_endpoints(&metadata)?;
    manager.set_metadata(metadata.clone());
    Ok(metadata)
}

/// Codes and tokens travel encrypted, or not over a network at all.
fn check_endpoints(metadata: &AuthorizationMetadata) -> Result<(), AuthError> {
    let endpoints = [Some(&metadata.authorization_endpoint), Some(&metadata.token_endpoint)];
    for endpoint in endpoints.into_iter().chain([metadata.registration_endpoint.as_ref()]).flatten() {
        let url = Url::parse(endpoint)?;
        if url.scheme() != "https" && !(url.scheme() == "http" && origin::is_loopback(&url)) {
            return Err(AuthError::MetadataError(format!("the endpoint {endpoint} is not encrypted")));
        }
    }
    Ok(())
}

async fn fetch_metadata(url: &str) -> Result<AuthorizationMetadata, AuthError> {
    let failed = |text: String| AuthError::MetadataError(format!("the metadata that the definition names: {text}"));
    let parsed = Url::parse(url).map_err(|error| failed(error.to_string()))?;
    let client = origin::client(&parsed).map_err(failed)?;
    let mut response = client.get(parsed).send().await.map_err(|_| failed("it cannot be reached".to_owned()))?;
    if !response.status().is_success() {
        return Err(failed(format!("HTTP {}", response.status())));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| failed("it broke off".to_owned()))? {
        body.extend_from_slice(&chunk);
        if body.len() > LARGEST_METADATA {
            return Err(failed("it is too large".to_owned()));
        }
    }
    serde_json::from_slice(&body).map_err(|error| failed(error.to_string()))
}

/// Our store as rmcp sees it.
struct Credentials(Arc<dyn TokenStore>);

#[async_trait]
impl CredentialStore for Credentials {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let tokens = self.0.load().map_err(AuthError::CredentialStoreError)?;
        let damaged = |_| AuthError::CredentialStoreError("the tokens are damaged: log in again".to_owned());
        let credentials = tokens.filter(Tokens::has_login).map(|tokens| tokens.credentials);
        credentials.map(serde_json::from_value).transpose().map_err(damaged)
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let known = self.0.load().map_err(AuthError::CredentialStoreError)?.unwrap_or_default();
        let unwritable = |_| AuthError::CredentialStoreError("the tokens cannot be written as JSON".to_owned());
        let credentials = serde_json::to_value(credentials).map_err(unwritable)?;
        self.0.save(&Tokens { credentials, ..known }).map_err(AuthError::CredentialStoreError)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let known = self.0.load().map_err(AuthError::CredentialStoreError)?.unwrap_or_default();
        // What the server asked for still counts.
        let empty = Tokens { credentials: Value::Null, client_secret: None, ..known };
        self.0.save(&empty).map_err(AuthError::CredentialStoreError)
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let store = self.0.clone();
        let locked = tokio::task::spawn_blocking(move || store.lock()).await;
        let locked = locked.map_err(|_| AuthError::CredentialStoreError("the lock on the tokens failed".to_owned()))?;
        Ok(Some(CredentialRefreshGuard::new(locked.map_err(AuthError::CredentialStoreError)?)))
    }
}
