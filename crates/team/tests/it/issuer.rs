//! Signing in with an account from elsewhere, against a small issuer of the test's own.

use serde_json::{Value, json};
use team::serve::Issuer;

use super::house::{House, NOW, send};
use super::office::{Office, id_token};

async fn house(office: &Office) -> House {
    let domain = Some("example.org".to_owned());
    let issuer = Issuer { address: office.address.clone(), client: "cairn".to_owned(), secret: None, domain };
    House::with(|options| options.issuer = Some(issuer)).await
}

/// TEAM-8: the command line hands in an id token and gets a token of ours; who is not of the domain gets none.
#[tokio::test]
async fn an_id_token_is_exchanged_for_ours() {
    let office = Office::open(NOW / 1000).await;
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
    let once = office.signed(&office.claims("grace@example.org"));
    let (_, _, again) = hand_in(once.clone()).await;
    assert_eq!(again["name"], "grace", "the same subject is the same member");
    assert_eq!(hand_in(once.clone()).await.0, 401, "one that was read on its way counts no second time");
    assert_eq!(hand_in(once[..once.len() - 4].to_owned()).await.0, 401, "cut");

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
    let other = Office::open(NOW / 1000).await;
    wrong.push(("another key", other.signed(&office.claims("grace@example.org"))));
    wrong.push(("no signature", id_token("none", &office.claims("a@example.org"), |_| Vec::new())));
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, office.public());
    let sign = |text: &[u8]| ring::hmac::sign(&secret, text).as_ref().to_vec();
    let shared = id_token("HS256", &office.claims("a@example.org"), sign);
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
    let office = Office::open(NOW / 1000).await;
    let house = house(&office).await;
    let http = team::client::http().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let begun = http.get(format!("{}/sign-in/issuer", house.address())).send().await.unwrap();
    let cookie = begun.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let away = reqwest::Url::parse(begun.headers()["location"].to_str().unwrap()).unwrap();
    let asked = |name: &str| away.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
    assert_eq!((asked("code_challenge_method"), asked("response_type")), ("S256".to_owned(), "code".to_owned()));
    let mut claims = office.claims("grace@example.org");
    claims["nonce"] = json!(asked("nonce"));
    *office.next.lock().unwrap() = claims;
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
    office.next.lock().unwrap()["nonce"] = json!("of another sign-in");
    assert_eq!(back(&asked("state"), &cookie).await.status(), 401);
    house.close().await;
}
