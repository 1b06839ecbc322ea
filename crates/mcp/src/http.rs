//! Requests to a server over HTTP.
//!
//! Headers and tokens go to the address of the definition alone: a redirect is followed only within the same origin, and
//! only where the request is repeated as it is. Bodies are bounded. Texts of errors have no address and no header in them.

mod events;
mod headers;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::stream::BoxStream;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Error as EventError, Sse};

use crate::authorization::Authorization;
use crate::origin;
use headers::{SESSION, challenged, has_type, header_map, protocol_headers, quoted, redirected};

pub(crate) use headers::scope_of;

/// The most bytes of an error page that are read.
const ERROR_PAGE: usize = 64 << 10;
const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

/// Failure of a request on its way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HttpFault {
    /// The server cannot be reached: it may come back.
    #[error("{0}")]
    Unreachable(String),
    /// The connection broke, or the answer is none.
    #[error("{0}")]
    Broken(String),
    /// More bytes than the limit.
    #[error("the answer is larger than this client takes")]
    TooLarge,
}

impl HttpFault {
    /// The failure without the address, which may have a secret in it.
    pub(crate) fn of(error: &reqwest::Error) -> Self {
        let mut deepest: &dyn std::error::Error = error;
        while let Some(source) = deepest.source() {
            deepest = source;
        }
        // The outermost text has the address in it.
        let text = if std::ptr::eq(deepest as *const _ as *const (), error as *const _ as *const ()) {
            "the request failed".to_owned()
        } else {
            deepest.to_string()
        };
        match error.is_connect() || error.is_timeout() {
            true => Self::Unreachable(text),
            false => Self::Broken(text),
        }
    }
}

type Failure = StreamableHttpError<HttpFault>;

/// The client of one server.
#[derive(Clone)]
pub(crate) struct HttpClient {
    client: reqwest::Client,
    headers: HeaderMap,
    most: usize,
    authorization: Option<Arc<Authorization>>,
}

impl HttpClient {
    /// A client with the headers of every request; `most` bounds an answer.
    pub(crate) fn new(url: &str, headers: &BTreeMap<String, String>, most: usize) -> Result<Self, String> {
        let url = Url::parse(url).map_err(|error| format!("the address is not valid: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err("the address must begin with http:// or https://".to_owned());
        }
        Ok(Self { client: origin::client(&url)?, headers: header_map(headers)?, most, authorization: None })
    }

    /// The same with tokens of a login, unless the definition has an authorization of its own.
    pub(crate) fn with_authorization(mut self, authorization: Option<Arc<Authorization>>) -> Self {
        self.authorization = authorization.filter(|_| !self.headers.contains_key(AUTHORIZATION));
        self
    }

    fn with_headers(&self, request: RequestBuilder, token: Option<&str>, more: HeaderMap) -> RequestBuilder {
        let mut headers = self.headers.clone();
        if let Some(mut token) = token.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok()) {
            token.set_sensitive(true);
            headers.insert(AUTHORIZATION, token);
        }
        headers.extend(more);
        request.headers(headers)
    }

    /// Sends a request with its headers and a token. One that the server rejects is renewed once.
    async fn send(
        &self,
        request: &(dyn Fn() -> RequestBuilder + Sync),
        headers: HeaderMap,
    ) -> Result<Response, Failure> {
        let Some(authorization) = &self.authorization else { return self.send_as(request(), None, headers).await };
        let token = authorization.token().await?;
        let sent = self.send_as(request(), token.as_deref(), headers.clone()).await;
        let (Err(StreamableHttpError::AuthRequired(_)), Some(token)) = (&sent, &token) else { return sent };
        match authorization.renewed(token).await? {
            Some(new) => self.send_as(request(), Some(&new), headers).await,
            None => sent,
        }
    }

    async fn send_as(
        &self,
        request: RequestBuilder,
        token: Option<&str>,
        headers: HeaderMap,
    ) -> Result<Response, Failure> {
        let sent = self.with_headers(request, token, headers).send().await;
        let response = sent.map_err(|error| StreamableHttpError::Client(HttpFault::of(&error)))?;
        challenged(&response).map_or(Ok(response), Err)
    }

    /// A body of at most `most` bytes.
    async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        let failed = |error: reqwest::Error| StreamableHttpError::Client(HttpFault::of(&error));
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > most {
                return Err(StreamableHttpError::Client(HttpFault::TooLarge));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    async fn refused(
        response: Response,
        message: &ClientJsonRpcMessage,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let (status, is_json) = (response.status(), has_type(&response, JSON));
        if status.is_redirection() {
            return Err(redirected(&response));
        }
        let body = Self::body(response, ERROR_PAGE).await.unwrap_or_default();
        let error = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) if is_json => Some(error),
            _ => None,
        };
        let is_auth = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        // A server of before the probe existed refuses it in many ways; the error decides what it speaks.
        if let ClientJsonRpcMessage::Request(request) = message
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
            && status.is_client_error()
            && !is_auth
            && !has_session
        {
            let invalid = || ErrorData::invalid_request(format!("HTTP {status}"), None);
            let error = error.map_or_else(invalid, |error| error.error);
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
        if let Some(error) = error.filter(|_| !is_auth) {
            return Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None));
        }
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            return Err(HttpStatusError::new(status.as_u16(), None).into());
        }
        Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}{}", quoted(&body)))))
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpFault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let has_session = session_id.is_some();
        let headers = protocol_headers(session_id.as_deref(), None, custom_headers);
        let body = bytes::Bytes::from(serde_json::to_vec(&message)?);
        let request = || {
            let request = self.client.post(uri.as_ref()).header(ACCEPT, format!("{EVENT_STREAM}, {JSON}"));
            request.header(CONTENT_TYPE, JSON).body(body.clone())
        };
        let response = self.send(&request, headers).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return Self::refused(response, &message, has_session).await;
        }
        let session = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if has_type(&response, EVENT_STREAM) {
            return Ok(StreamableHttpPostResponse::Sse(events::events(response, self.most), session));
        }
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        let is_json = has_type(&response, JSON);
        let kind =
            response.headers().get(CONTENT_TYPE).map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
        let body = Self::body(response, self.most).await?;
        if !wants_answer {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !is_json {
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        match serde_json::from_slice(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            Err(_) => Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!(
                "no message of the protocol{}",
                quoted(&body)
            )))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let headers = protocol_headers(Some(session_id.as_ref()), None, custom_headers);
        match self.send(&|| self.client.delete(uri.as_ref()), headers).await?.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportDeleteSession),
            _ => Ok(()),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, EventError>>, Failure> {
        let headers = protocol_headers(session_id.as_deref(), last_event_id.as_deref(), custom_headers);
        let request = || self.client.get(uri.as_ref()).header(ACCEPT, EVENT_STREAM);
        let response = self.send(&request, headers).await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(redirected(&response));
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            return Err(HttpStatusError::new(status.as_u16(), None).into());
        }
        if !has_type(&response, EVENT_STREAM) {
            return Err(StreamableHttpError::UnexpectedContentType(None));
        }
        Ok(events::events(response, self.most))
    }
}
