//! The page, as a browser without scripts sees it.

use team::protocol::EntryWrite;
use team::store::{Level, RepositoryLimits};

use super::house::{House, NOW, repository};

/// A browser: it keeps its cookie, and follows nothing by itself.
struct Browser {
    http: reqwest::Client,
    address: String,
    cookie: String,
}

impl Browser {
    fn at(house: &House) -> Self {
        let http = team::client::http().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { http, address: house.address(), cookie: String::new() }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let request = self.http.get(format!("{}{path}", self.address)).header("cookie", &self.cookie);
        let response = request.send().await.unwrap();
        let policy =
            response.headers().get("content-security-policy").map(|policy| policy.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        assert!(status == 303 || policy.is_some_and(|policy| policy.starts_with("default-src 'none'")));
        (status, response.text().await.unwrap())
    }

    async fn post(&mut self, path: &str, form: &[(&str, &str)]) -> u16 {
        let body = form.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
        let request = self.http.post(format!("{}{path}", self.address)).header("cookie", &self.cookie);
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
        let response = request.send().await.unwrap();
        if let Some(cookie) = response.headers().get("set-cookie") {
            let cookie = cookie.to_str().unwrap();
            assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"));
            self.cookie = cookie.split(';').next().unwrap().to_owned();
        }
        response.status().as_u16()
    }

    /// What the forms of this visit carry.
    async fn form(&self) -> String {
        let page = self.get("/").await.1;
        page.split("name=\"form\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    }
}

async fn furnished() -> (House, String) {
    let house = House::open().await;
    let token = house.token("Grace", Level::Write).await;
    let grace = house.store.members().named("Grace").await.unwrap();
    for text in ["<script>alert(1)</script>\nfirst", "<img src=x onerror=alert(2)>\nsecond"] {
        let write =
            EntryWrite { entries: [("a.md".parse().unwrap(), text.to_owned())].into(), ..EntryWrite::default() };
        house
            .store
            .entries()
            .write(&repository(), &grace, &write, None, &RepositoryLimits::default(), NOW)
            .await
            .unwrap();
    }
    (house, token)
}

/// TEAM-8: signed in, a member sees its repositories, entries and their history with what changed; signed out, nothing.
#[tokio::test]
async fn a_member_looks_around() {
    let (house, token) = furnished().await;
    let mut browser = Browser::at(&house);
    assert!(browser.get("/").await.1.contains("Sign in"));
    assert_eq!(browser.get("/repository?repo=acme/rocket").await.0, 303);
    assert_eq!(browser.post("/sign-in", &[("token", "wrong")]).await, 401);
    assert_eq!(browser.post("/sign-in", &[("token", &token)]).await, 303);
    assert!(browser.get("/").await.1.contains("acme/rocket") || browser.get("/").await.1.contains("acme&#x2f;rocket"));
    let page = browser.get("/repository?repo=acme/rocket").await.1;
    assert!(page.contains("a.md") && page.contains("class=\"level\">write"), "{page}");
    let page = browser.get("/entry?repo=acme/rocket&key=a.md").await.1;
    assert!(page.contains("Version 2") && page.contains("class=\"in\"") && page.contains("class=\"out\""), "{page}");
    let form = browser.form().await;
    assert_eq!(browser.post("/sign-out", &[("form", &form)]).await, 303);
    assert!(browser.get("/").await.1.contains("Sign in"));
    house.close().await;
}

/// TEAM-8: texts of others are shown as text, never as a part of the page.
#[tokio::test]
async fn scripts_in_entries_are_text() {
    let (house, token) = furnished().await;
    let mut browser = Browser::at(&house);
    browser.post("/sign-in", &[("token", &token)]).await;
    let page = browser.get("/entry?repo=acme/rocket&key=a.md").await.1;
    assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
    assert!(page.contains("&lt;script&gt;"));
    let told = browser.get("/entry?repo=acme/rocket&key=%3Cb%3E").await;
    assert!(told.0 == 400 && !told.1.contains("<b>"), "{}", told.1);
    house.close().await;
}

/// TEAM-8: an old text comes back by a form of ours; a form from elsewhere does nothing.
#[tokio::test]
async fn only_our_own_forms_count() {
    let (house, token) = furnished().await;
    let mut browser = Browser::at(&house);
    browser.post("/sign-in", &[("token", &token)]).await;
    let form = browser.form().await;
    let wanted = |form| [("form", form), ("repo", "acme%2Frocket"), ("key", "a.md"), ("version", "1")];
    assert_eq!(browser.post("/restore", &wanted("forged")).await, 403);
    assert_eq!(browser.post("/restore", &wanted(&form)).await, 303);
    let history = house.store.history().versions(&repository(), &"a.md".parse().unwrap()).await.unwrap();
    assert_eq!(history.len(), 3);
    assert!(history[0].text.as_ref().unwrap().ends_with("first"));
    let reader = house.token("Rita", Level::Read).await;
    let mut other = Browser::at(&house);
    other.post("/sign-in", &[("token", &reader)]).await;
    let form = other.form().await;
    assert_eq!(other.post("/restore", &wanted(&form)).await, 403, "who may only read brings nothing back");
    house.close().await;
}
