//! Signatures of id tokens, checked by ring: the crate that reads the tokens brings no cryptography of its own.

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtVerifier};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey,
};
use signature::Verifier;

/// Accepted algorithms. Never a shared secret, never none.
pub(super) const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512, Algorithm::ES256, Algorithm::EdDSA];

/// Provider that only verifies: nothing is signed here, and no key is made.
static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: |algorithm, key| Ok(Box::new(Signature { algorithm: *algorithm, key: key.clone() })),
    jwk_utils: JwkUtils::new_unimplemented(),
};

/// Makes ring the verifier of tokens.
pub(super) fn check_with_ring() {
    let _ = RING.install_default(); // it may be so already
}

struct Signature {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for Signature {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for Signature {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let checked = match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                let key = RsaPublicKeyComponents { n, e };
                match self.algorithm {
                    Algorithm::RS256 => key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature),
                    Algorithm::RS384 => key.verify(&RSA_PKCS1_2048_8192_SHA384, message, signature),
                    Algorithm::RS512 => key.verify(&RSA_PKCS1_2048_8192_SHA512, message, signature),
                    _ => Err(ring::error::Unspecified),
                }
            }
            DecodingKeyKind::SecretOrDer(key) => match self.algorithm {
                Algorithm::ES256 => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(message, signature),
                Algorithm::EdDSA => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
                _ => Err(ring::error::Unspecified),
            },
        };
        checked.map_err(|_| signature::Error::new())
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ring::signature::{Ed25519KeyPair, KeyPair};

    use super::*;

    /// The signed text.
    const TEXT: &[u8] = b"header.claims";
    /// An RSA modulus, and signatures by its private key with SHA-256, SHA-384 and SHA-512, made by OpenSSL.
    const RSA: &str = include_str!("signature_rsa.txt");

    fn holds(algorithm: Algorithm, key: &DecodingKey, text: &[u8], signature: &[u8]) -> bool {
        (RING.verifier_factory)(&algorithm, key).unwrap().verify(text, &signature.to_vec()).is_ok()
    }

    /// TEAM-8: a signature counts for its text, its key and its algorithm alone.
    #[test]
    fn a_signature_counts_for_its_text_key_and_algorithm() {
        let lines: Vec<&str> = RSA.lines().collect();
        let rsa = DecodingKey::from_rsa_components(lines[0], "AQAB").unwrap();
        let rsa_made = lines[1..].iter().map(|line| URL_SAFE_NO_PAD.decode(line).unwrap());
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let edwards = DecodingKey::from_ed_der(pair.public_key().as_ref());
        let mut made: Vec<(Algorithm, &DecodingKey, Vec<u8>)> =
            ALGORITHMS.into_iter().zip(rsa_made).map(|(algorithm, signature)| (algorithm, &rsa, signature)).collect();
        made.push((Algorithm::EdDSA, &edwards, pair.sign(TEXT).as_ref().to_vec()));
        assert_eq!(made.len(), 4);
        for (algorithm, key, signature) in made {
            assert!(!holds(algorithm, key, b"another text", &signature), "{algorithm:?}");
            assert!(!holds(algorithm, key, TEXT, &signature[1..]), "{algorithm:?}, cut");
            for other in [&rsa, &edwards] {
                for claimed in [Algorithm::HS256, Algorithm::PS256].into_iter().chain(ALGORITHMS) {
                    let is_right = claimed == algorithm && std::ptr::eq(key, other);
                    assert_eq!(holds(claimed, other, TEXT, &signature), is_right, "{algorithm:?} as {claimed:?}");
                }
            }
        }
    }
}
