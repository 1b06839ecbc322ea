//! What proves whose a letter is: a signature with a key that only the sender's process has, and the lead's that made it.
//!
//! A teammate is given a key of its own when it is started, by a pipe that is empty afterwards, and the half by which it knows
//! the lead. Whoever can write to a mailbox, a command of another teammate perhaps, can say anything there, but not in the name
//! of somebody whose letters are known: no order, approval or answer in the lead's, no plan or question in a teammate's.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use ring::rand::{self, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use zeroize::Zeroizing;

use super::message::Message;

/// The sender's half. It is nowhere but in memory, and ends with the team.
pub struct Seal {
    pair: Ed25519KeyPair,
    seed: Zeroizing<[u8; 32]>,
}

/// The half by which others know its letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealKey(Vec<u8>);

/// Whose letters are known, and by what. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SealKeys(Arc<Mutex<BTreeMap<String, SealKey>>>);

impl SealKeys {
    /// From now on only that is somebody's which is sealed with this.
    pub fn insert(&self, name: &str, key: SealKey) {
        self.0.lock().insert(name.to_ascii_lowercase(), key);
    }

    /// Whether somebody to whom a letter is can take it for its sender's. Of one who is not known that cannot be told, and
    /// upper case is no other name.
    pub(super) fn believes(&self, message: &Message, to: &str, seal: &str) -> bool {
        let known = self.0.lock();
        known.get(&message.from.to_ascii_lowercase()).is_none_or(|key| key.knows(message, to, seal))
    }
}

impl Seal {
    /// A new one; none where the system gives no random numbers.
    pub fn new() -> Option<Self> {
        Self::of_seed(rand::generate(&SystemRandom::new()).ok()?.expose())
    }

    /// The one that another process was given, by its text.
    pub fn of_secret(text: &str) -> Option<Self> {
        Self::of_seed(bytes(text)?.try_into().ok()?)
    }

    fn of_seed(seed: [u8; 32]) -> Option<Self> {
        Some(Self { pair: Ed25519KeyPair::from_seed_unchecked(&seed).ok()?, seed: seed.into() })
    }

    /// Its text, for the process whose it is and nobody else.
    pub fn secret(&self) -> String {
        hex(self.seed.as_ref())
    }

    /// By what others know it.
    pub fn key(&self) -> SealKey {
        SealKey(self.pair.public_key().as_ref().to_vec())
    }

    /// What stands below a letter to somebody.
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
    /// From its text.
    pub fn parse(text: &str) -> Option<Self> {
        bytes(text).filter(|key| key.len() == 32).map(Self)
    }

    /// Whether a letter to somebody was sealed with the other half.
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
