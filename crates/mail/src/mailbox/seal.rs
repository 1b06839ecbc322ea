//! Seals: signatures that prove the sender of a letter, with a key that only the sender's process and the lead that
//! made it have.
//!
//! A teammate is given its own key and the lead's public key when it is started, through a pipe that is empty
//! afterwards. Whoever can write to a mailbox, a command of another teammate perhaps, can write anything there, but not
//! in the name of somebody whose key is known: no order, approval or answer in the lead's, no plan or question in a
//! teammate's.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use ring::rand::{self, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use zeroize::Zeroizing;

use super::message::Message;

/// The sender's private key. It exists only in memory, and ends with the team.
pub struct Seal {
    pair: Ed25519KeyPair,
    seed: Zeroizing<[u8; 32]>,
}

/// The public key, with which others verify the sender's letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealKey(Vec<u8>);

/// Public keys by name. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct SealKeys(Arc<Mutex<BTreeMap<String, SealKey>>>);

impl SealKeys {
    /// Sets the public key for a name: from then on its letters count only if sealed with it.
    pub fn insert(&self, name: &str, key: SealKey) {
        self.0.lock().insert(name.to_ascii_lowercase(), key);
    }

    /// True if a letter may be taken for its sender's. A sender without a known key is always believed. Upper case
    /// makes no other name.
    pub(super) fn believes(&self, message: &Message, to: &str, seal: &str) -> bool {
        let known = self.0.lock();
        known.get(&message.from.to_ascii_lowercase()).is_none_or(|key| key.knows(message, to, seal))
    }
}

impl Seal {
    /// A new key; none if the system gives no random numbers.
    pub fn new() -> Option<Self> {
        Self::of_seed(rand::generate(&SystemRandom::new()).ok()?.expose())
    }

    /// The key that another process made, from its text.
    pub fn of_secret(text: &str) -> Option<Self> {
        Self::of_seed(bytes(text)?.try_into().ok()?)
    }

    fn of_seed(seed: [u8; 32]) -> Option<Self> {
        Some(Self { pair: Ed25519KeyPair::from_seed_unchecked(&seed).ok()?, seed: seed.into() })
    }

    /// Its text, only for the process it belongs to.
    pub fn secret(&self) -> String {
        hex(self.seed.as_ref())
    }

    /// Its public key.
    pub fn key(&self) -> SealKey {
        SealKey(self.pair.public_key().as_ref().to_vec())
    }

    /// The seal of a letter to somebody.
    pub(super) fn of(&self, message: &Message, to: &str) -> String {
        hex(self.pair.sign(&signed(message, to)).as_ref())
    }
}

// The secret half is for nobody's eyes.
impl std::fmt::Debug for Seal {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Seal({})", self.key())
    }
}

impl SealKey {
    /// Reads it from its text.
    pub fn parse(text: &str) -> Option<Self> {
        bytes(text).filter(|key| key.len() == 32).map(Self)
    }

    /// True if a letter to somebody was sealed with the private key.
    fn knows(&self, message: &Message, to: &str, seal: &str) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, &self.0);
        bytes(seal).is_some_and(|seal| key.verify(&signed(message, to), &seal).is_ok())
    }
}

impl std::fmt::Display for SealKey {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&hex(&self.0))
    }
}

/// The bytes that are signed: hashes of all parts of a letter and of its recipient, so that no part can run into the
/// next.
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
