//! What proves that a letter is the lead's: a signature with a key that only the lead's process has.
//!
//! A teammate is given the other half when it is started. Whoever can write to its mailbox, a command of another teammate
//! perhaps, can say anything there, but not in the lead's name: no order, no approval, no answer.

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use super::message::Message;

/// The lead's half. It is nowhere but in memory, and ends with the lead.
#[derive(Debug)]
pub struct Seal(Ed25519KeyPair);

/// The half by which others know the lead's letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeadKey(Vec<u8>);

impl Seal {
    /// A new one; none where the system gives no random numbers.
    pub fn new() -> Option<Self> {
        Ed25519KeyPair::generate().ok().map(Self)
    }

    /// By what others know it.
    pub fn key(&self) -> LeadKey {
        LeadKey(self.0.public_key().as_ref().to_vec())
    }

    /// What stands below a letter to somebody.
    pub(super) fn of(&self, message: &Message, to: &str) -> String {
        hex(self.0.sign(&signed(message, to)).as_ref())
    }
}

impl LeadKey {
    /// From its text.
    pub fn parse(text: &str) -> Option<Self> {
        bytes(text).filter(|key| key.len() == 32).map(Self)
    }

    /// Whether a letter to somebody is the lead's.
    pub(super) fn knows(&self, message: &Message, to: &str, seal: &str) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, &self.0);
        bytes(seal).is_some_and(|seal| key.verify(&signed(message, to), &seal).is_ok())
    }
}

impl std::fmt::Display for LeadKey {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&hex(&self.0))
    }
}

/// All that a letter says and to whom, each part by its hash: no part can run into the next.
fn signed(message: &Message, to: &str) -> Vec<u8> {
    let summary = message.summary.as_deref().unwrap_or_default();
    let parts = [to, &message.id, &message.from, &message.text, &message.timestamp, summary];
    parts.iter().flat_map(|part| *blake3::hash(part.as_bytes()).as_bytes()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let fine = digits.len() <= 128 && digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if fine { digits.chunks(2).map(pair).collect() } else { None }
}
