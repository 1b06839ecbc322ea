//! Deterministic ids and signatures: the same seed and the same request give the same reply, byte for byte.

use blake3::{Hash, Hasher};

/// Letters alone: all weigh the same when tokens are counted, so that no count depends on which id it was.
const ALPHABET: &[u8; 52] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// As long as the provider's ids after their prefix.
const ID_CHARS: usize = 22;
/// Characters of a call's id that tell of thinking; more than chance would hit.
const MARK_CHARS: usize = 6;

/// Names things after the seed and a request.
#[derive(Debug, Clone)]
pub(crate) struct Ids {
    key: [u8; 32],
    request: Hash,
}

impl Ids {
    pub(crate) fn new(seed: u64, body: &[u8]) -> Self {
        let key = blake3::derive_key("cairn simulator ids", &seed.to_le_bytes());
        Self { key, request: blake3::keyed_hash(&key, body) }
    }

    pub(crate) fn message(&self) -> String {
        format!("msg_01{}", self.name("message", 0))
    }

    /// The id of a call. Whether the model thought before it can be told from the id, by who knows the key.
    pub(crate) fn tool_use(&self, index: usize, after_thinking: bool) -> String {
        let mut id = format!("toolu_01{}", self.name("tool_use", index));
        if after_thinking {
            id.truncate(id.len() - MARK_CHARS);
            id.push_str(&self.mark(&id));
        }
        id
    }

    /// True if a call came from here and the model thought before it.
    pub(crate) fn was_thought_about(&self, id: &str) -> bool {
        let split = id.len().checked_sub(MARK_CHARS).and_then(|at| id.split_at_checked(at));
        split.is_some_and(|(name, mark)| mark == self.mark(name))
    }

    fn mark(&self, name: &str) -> String {
        let mut hasher = Hasher::new_keyed(&self.key);
        hasher.update(b"after thinking");
        hasher.update(name.as_bytes());
        letters(&hasher, MARK_CHARS)
    }

    /// Proves that a thinking block was written here: whoever changes its text cannot sign it again.
    pub(crate) fn signature(&self, thinking: &str) -> String {
        let mut hasher = Hasher::new_keyed(&self.key);
        hasher.update(b"thinking");
        hasher.update(thinking.as_bytes());
        format!("Eu{}", letters(&hasher, 86))
    }

    fn name(&self, kind: &str, index: usize) -> String {
        let mut hasher = Hasher::new_keyed(&self.key);
        hasher.update(self.request.as_bytes());
        hasher.update(kind.as_bytes());
        hasher.update(&index.to_le_bytes());
        letters(&hasher, ID_CHARS)
    }
}

/// The id of the `number`th request that a server with this seed received.
pub(crate) fn request_id(seed: u64, number: u64) -> String {
    let mut hasher = Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(&number.to_le_bytes());
    format!("req_01{}", letters(&hasher, ID_CHARS))
}

fn letters(hasher: &Hasher, count: usize) -> String {
    let mut bytes = vec![0; count];
    hasher.finalize_xof().fill(&mut bytes);
    bytes.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}
