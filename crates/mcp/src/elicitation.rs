//! Questions that a server asks the user in the middle of a call.
//!
//! The caller supplies the way to the user. Without one, every question is declined; none is ever answered here.

pub(crate) mod form;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

/// The way to the user.
pub trait Elicitation: Send + Sync {
    /// Asks. Dropping the future withdraws the question.
    fn ask(&self, request: ElicitationRequest) -> BoxFuture<'static, ElicitationAnswer>;
}

/// A server's question. All of it is the server's text.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationRequest {
    /// Values for a form.
    Form {
        /// Name of the server, from its definition.
        server: String,
        /// Its message.
        message: String,
        /// Schema of the form: an object with flat properties.
        schema: Value,
    },
    /// A visit to a page, where the server asks by itself. The address has to be shown whole before it is opened.
    Url {
        /// Name of the server, from its definition.
        server: String,
        /// Its message.
        message: String,
        /// Address of the page.
        url: String,
    },
}

impl ElicitationRequest {
    /// Name of the server, from its definition.
    pub fn server(&self) -> &str {
        match self {
            Self::Form { server, .. } | Self::Url { server, .. } => server,
        }
    }

    /// Its message.
    pub fn message(&self) -> &str {
        match self {
            Self::Form { message, .. } | Self::Url { message, .. } => message,
        }
    }
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    /// Agreed; values for a form, nothing for a page. Defaults of the schema fill what is missing.
    Accept(Map<String, Value>),
    /// Refused.
    Decline,
    /// Went away without an answer.
    Cancel,
}
