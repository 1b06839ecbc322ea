//! Signing in with an account from elsewhere, against a small issuer of the test's own.

use std::sync::{Arc, Mutex};

use axum::extract::{Form, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use team::serve::Issuer;

use super::house::{House, NOW, send};

/// An issuer: its key, and the id token it hands out next.
#[derive(Clone)]
struct Office {
    address: String,
    public: Vec<u8>,
    private: Vec<u8>,
    claims: Arc<Mutex<Value>>,
}

impl Office {
    async fn open() -> Self {
        let random = ring::rand::SystemRandom::new();
        let private = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let private = private.as_ref().to_vec();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &private, &random).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let public = pair.public_key().as_ref().to_vec();
        let office = Self { address, public, private, claims: Arc::default() };
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(published))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .with_state(office.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        office
    }

    fn claims(&self, email: &str) -> Value {
        let second = NOW / 1000;
        // `exp` is compared with the machine's clock, everything else with the test's.
        json!({"iss": self.address, "aud": "cairn", "sub": "7", "iat": second, "exp": 4_000_000_000_u64,
            "email": email, "email_verified": true, "preferred_username": "grace"})
    }

    fn signed(&self, claims: &Value) -> String {
        encode(&Header::new(Algorithm::ES256), claims, &EncodingKey::from_ec_der(&self.private)).unwrap()
    }

    fn issuer(&self) -> Issuer {
        let domain = Some("example.org".to_owned());
        Issuer { address: self.address.clone(), client: "cairn".to_owned(), secret: None, domain }
    }
}

async fn published(State(office): State<Office>) -> Json<Value> {
    let at = |path: &str| format!("{}{path}", office.address);
    Json(json!({"issuer": office.address, "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
        "jwks_uri": at("/keys"), "device_authorization_endpoint": at("/device")}))
}

async fn keys(State(office): State<Office>) -> Json<Value> {
    let part = |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(&office.public[range]);
    Json(
        json!({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "x": part(1..33), "y": part(33..65)}]}),
    )
}

async fn token(State(office): State<Office>, Form(form): Form<Vec<(String, String)>>) -> Json<Value> {
    let has = |name: &str| form.iter().any(|(key, value)| key == name && !value.is_empty());
    assert!(has("code") && has("code_verifier") && has("redirect_uri") && has("client_id"));
    Json(json!({"id_token": office.signed(&office.claims.lock().unwrap())}))
}

async fn house(office: &Office) -> House {
    let issuer = office.issuer();
    House::with(|options| options.issuer = Some(issuer)).await
}

/// TEAM-8: the command line hands in an id token and gets a token of ours; who is not of the domain gets none.
#[tokio::test]
async fn an_id_token_is_exchanged_for_ours() {
    let office = Office::open().await;
    let house = house(&office).await;
    let hand_in = async |id_token: String| {
        let address = format!("{}/api/team/sign-in", house.address());
        send("POST", &address, "", None, Some(json!({"id_token": id_token, "label": "laptop"}))).await
    };
    let (status, _, told) = send("GET", &format!("{}/api/team/issuer", house.address()), "", None, None).await;
    assert_eq!((status, &told["client"]), (200, &json!("cairn")));
    let (status, _, answer) = hand_in(office.signed(&office.claims("grace@example.org"))).await;
    assert_eq!(status, 200, "{answer}");
    let token = answer["token"].as_str().unwrap();
    let (_, _, me) = send("GET", &format!("{}/api/team/me", house.address()), token, None, None).await;
    assert_eq!(me["name"], "grace");
    assert_eq!(super::house::call(&house, "GET", "", token, None, None).await.0, 403, "a new member has no rights");
    let (_, _, again) = hand_in(office.signed(&office.claims("grace@example.org"))).await;
    assert_eq!(again["name"], "grace", "the same subject is the same member");

    let mut wrong = Vec::new();
    let changed = |name: &str, value: Value| {
        let mut claims = office.claims("grace@example.org");
        claims[name] = value;
        office.signed(&claims)
    };
    wrong.push(("another audience", changed("aud", json!("other"))));
    wrong.push(("another issuer", changed("iss", json!("http://evil"))));
    wrong.push(("it is over", changed("exp", json!(1))));
    wrong.push(("it is old", changed("iat", json!(NOW / 1000 - 601))));
    let mut stranger = office.claims("eve@example.org.evil.com");
    stranger["sub"] = json!("8");
    wrong.push(("another domain", office.signed(&stranger)));
    stranger["email"] = json!("eve@example.org");
    stranger["email_verified"] = json!(false);
    wrong.push(("an address nobody verified", office.signed(&stranger)));
    let other = Office::open().await;
    wrong.push(("another key", other.signed(&office.claims("grace@example.org"))));
    let unsigned = format!(
        "{}.{}.",
        URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#),
        URL_SAFE_NO_PAD.encode(office.claims("a@example.org").to_string())
    );
    wrong.push(("no signature", unsigned));
    let shared = encode(
        &Header::new(Algorithm::HS256),
        &office.claims("a@example.org"),
        &EncodingKey::from_secret(&office.public),
    )
    .unwrap();
    wrong.push(("a shared secret", shared));
    for (why, id_token) in wrong {
        let status = hand_in(id_token).await.0;
        assert!(status == 401 || status == 403, "{why}: {status}");
    }
    house.close().await;
}

/// TEAM-8: the page's sign-in comes back to a visit, only with the state it went out with.
#[tokio::test]
async fn the_page_signs_in_by_code() {
    let office = Office::open().await;
    let house = house(&office).await;
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let begun = http.get(format!("{}/sign-in/issuer", house.address())).send().await.unwrap();
    let cookie = begun.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let away = reqwest::Url::parse(begun.headers()["location"].to_str().unwrap()).unwrap();
    let asked = |name: &str| away.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
    assert_eq!((asked("code_challenge_method"), asked("response_type")), ("S256".to_owned(), "code".to_owned()));
    let mut claims = office.claims("grace@example.org");
    claims["nonce"] = json!(asked("nonce"));
    *office.claims.lock().unwrap() = claims;
    let back = async |state: &str, cookie: &str| {
        let address = format!("{}/sign-in/back?code=abc&state={state}", house.address());
        http.get(address).header("cookie", cookie).send().await.unwrap()
    };
    assert_eq!(back("forged", &cookie).await.status(), 400);
    assert_eq!(back(&asked("state"), "").await.status(), 400, "another browser");
    let done = back(&asked("state"), &cookie).await;
    assert_eq!(done.status(), 303);
    let visit = done.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let page = http.get(house.address()).header("cookie", visit).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("grace"), "{page}");
    office.claims.lock().unwrap()["nonce"] = json!("of another sign-in");
    assert_eq!(back(&asked("state"), &cookie).await.status(), 401);
    house.close().await;
}
