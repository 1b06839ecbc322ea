//! A small OpenID Connect issuer: it publishes itself, signs id tokens, and knows the code flow and the device flow.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::{Form, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

/// Its key, and the id token it hands out next.
#[derive(Clone)]
pub(crate) struct Office {
    pub(crate) address: String,
    public: Vec<u8>,
    private: Vec<u8>,
    /// The claims of the next id token.
    pub(crate) next: Arc<Mutex<Value>>,
    /// How often the device flow was asked before somebody signed in.
    asked: Arc<AtomicU32>,
    /// How often what it publishes was read.
    read: Arc<AtomicU32>,
    second: i64,
}

impl Office {
    /// One whose clock says this second.
    pub(crate) async fn open(second: i64) -> Self {
        let random = ring::rand::SystemRandom::new();
        let private = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let private = private.as_ref().to_vec();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &private, &random).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let public = pair.public_key().as_ref().to_vec();
        let (next, asked, read) = (Arc::default(), Arc::default(), Arc::default());
        let office = Self { address, public, private, next, asked, read, second };
        *office.next.lock().unwrap() = office.claims("grace@example.org");
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(published))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .route("/device", post(device))
            .with_state(office.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        office
    }

    pub(crate) fn claims(&self, email: &str) -> Value {
        // `exp` is compared with the machine's clock, everything else with the test's.
        json!({"iss": self.address, "aud": "cairn", "sub": "7", "iat": self.second, "exp": 4_000_000_000_u64,
            "email": email, "email_verified": true, "preferred_username": "grace"})
    }

    pub(crate) fn signed(&self, claims: &Value) -> String {
        let random = ring::rand::SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &self.private, &random).unwrap();
        id_token("ES256", claims, |text| pair.sign(&random, text).unwrap().as_ref().to_vec())
    }

    /// Its public key.
    #[allow(dead_code, reason = "not every suite asks")]
    pub(crate) fn public(&self) -> &[u8] {
        &self.public
    }

    /// How often the device flow was asked.
    #[allow(dead_code, reason = "not every suite asks")]
    pub(crate) fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }

    /// How often what it publishes was read.
    #[allow(dead_code, reason = "not every suite asks")]
    pub(crate) fn read(&self) -> u32 {
        self.read.load(Ordering::SeqCst)
    }
}

/// An id token that is signed so.
pub(crate) fn id_token(algorithm: &str, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&json!({"typ": "JWT", "alg": algorithm})), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(text.as_bytes()));
    format!("{text}.{signature}")
}

async fn published(State(office): State<Office>) -> Json<Value> {
    office.read.fetch_add(1, Ordering::SeqCst);
    let at = |path: &str| format!("{}{path}", office.address);
    Json(json!({"issuer": office.address, "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
        "jwks_uri": at("/keys"), "device_authorization_endpoint": at("/device")}))
}

async fn keys(State(office): State<Office>) -> Json<Value> {
    office.read.fetch_add(1, Ordering::SeqCst);
    let part = |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(&office.public[range]);
    Json(
        json!({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "x": part(1..33), "y": part(33..65)}]}),
    )
}

type Fields = Form<Vec<(String, String)>>;

async fn device(State(office): State<Office>, Form(form): Fields) -> Json<Value> {
    assert!(form.contains(&("client_id".to_owned(), "cairn".to_owned())), "{form:?}");
    Json(
        json!({"device_code": "d", "user_code": "WDJB-MJHT", "verification_uri": format!("{}/activate", office.address),
        "interval": 0, "expires_in": 60}),
    )
}

async fn token(State(office): State<Office>, Form(form): Fields) -> Json<Value> {
    let has = |name: &str| form.iter().any(|(key, value)| key == name && !value.is_empty());
    let by_device = has("device_code");
    assert!(by_device || has("code") && has("code_verifier") && has("redirect_uri"), "{form:?}");
    assert!(has("client_id"));
    // Somebody signs in at the second time of asking.
    if by_device && office.asked.fetch_add(1, Ordering::SeqCst) == 0 {
        return Json(json!({"error": "authorization_pending"}));
    }
    Json(json!({"id_token": office.signed(&office.next.lock().unwrap())}))
}
