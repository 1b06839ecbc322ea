//! The end of a login: the browser comes back to this machine with a code.
//!
//! The listener is on loopback only, answers one path, and shows nothing that it was sent.

/// A port on loopback that waits for the browser.
#[derive(Debug)]
pub struct CallbackListener {
    listener: tokio::net::TcpListener,
    port: u16,
}

/// The address that the browser was sent back to, with the code. Never in Debug.
#[derive(Clone, PartialEq, Eq)]
pub struct Callback {
    pub(crate) url: String,
}
