//! What counts once: id tokens of an issuer, remembered by their hash for as long as they could count.

use sha2::{Digest, Sha256};

use super::{Store, Time};
use crate::error::Error;

impl Store {
    /// Says whether a token is handed in for the first time, and remembers it until its time is over.
    pub async fn use_once(&self, token: &str, until: Time, now: Time) -> Result<bool, Error> {
        let digest = Sha256::digest(token.as_bytes());
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut transaction = self.database.begin().await?;
        transaction.run("DELETE FROM used WHERE until < $1", vec![now.into()]).await?;
        let fresh = "INSERT INTO used (hash, until) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING";
        let is_first = transaction.run(fresh, vec![hash.into(), until.into()]).await? == 1;
        transaction.commit().await?;
        Ok(is_first)
    }
}
