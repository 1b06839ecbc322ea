//! The page in a real browser, in `./test full`: with the keyboard alone, narrow and wide, light and dark.
//!
//! Chromium is driven by the distribution's chromedriver, in its own protocol. Pictures of every page are left below
//! `target/team-page` for whoever wants to look. Where either program is missing this is left out, and said.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use base64::Engine;
use serde_json::{Value, json};
use team::protocol::EntryWrite;
use team::store::{Level, RepositoryLimits};

use super::house::{House, NOW, repository, secret};
use crate::skipped::{is_full, skipped};

/// Keys as the protocol names them.
const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const SHIFT: &str = "\u{e008}";

/// What a page says of itself: whether it fits, whether what has the focus shows it, and the worst contrast of its text.
const LOOK: &str = r#"
const luminance = (colour) => {
  const part = (value) => { value /= 255; return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
  const [r, g, b] = colour.match(/[\d.]+/g).map(Number);
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const ground = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (!/, 0\)$/.test(colour) && colour !== 'transparent') return colour;
  }
  return 'rgb(255, 255, 255)';
};
let worst = 21, where = '';
for (const element of document.querySelectorAll('body *')) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!own || !element.offsetParent) continue;
  const [one, other] = [luminance(getComputedStyle(element).color), luminance(ground(element))];
  const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (contrast < worst) { worst = contrast; where = element.outerHTML.slice(0, 200); }
}
const small = [...document.querySelectorAll('button, .button, input')].filter((element) =>
  element.offsetParent && element.getBoundingClientRect().height < 24).map((element) => element.outerHTML);
return {
  fits: document.documentElement.scrollWidth <= window.innerWidth, width: window.innerWidth, worst, where, small,
  headings: document.querySelectorAll('h1').length, scripts: document.scripts.length, pwned: window.pwned === true,
  unnamed: [...document.querySelectorAll('input:not([type=hidden])')].filter((input) => !input.labels.length).length,
};
"#;

/// A browser and its driver.
struct Browser {
    driver: Child,
    http: reqwest::Client,
    session: String,
    _profile: tempfile::TempDir,
}

impl Browser {
    async fn start() -> Option<Self> {
        let found = |name: &str| {
            std::env::split_paths(&std::env::var_os("PATH")?).map(|path| path.join(name)).find(|path| path.exists())
        };
        let (Some(chromium), Some(program)) = (found("chromium"), found("chromedriver")) else {
            skipped("chromium and chromedriver are not installed");
            return None;
        };
        let mut driver =
            Command::new(program).arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port =
            lines.find_map(|line| line.unwrap().split("started successfully on port ").nth(1).map(str::to_owned));
        let port = port.unwrap().trim_end_matches('.').to_owned();
        // What it says later goes nowhere, but must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = tempfile::tempdir().unwrap();
        let args = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-sync",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-dev-shm-usage",
            &format!("--user-data-dir={}", profile.path().display()),
        ];
        let options = json!({"binary": chromium, "args": args});
        let wanted = json!({"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}});
        let http = team::client::http().no_proxy().build().unwrap();
        let mut browser = Self { driver, http, session: format!("http://127.0.0.1:{port}/session"), _profile: profile };
        let made = browser.post("", &wanted).await;
        browser.session =
            format!("{}/{}", browser.session, made["sessionId"].as_str().unwrap_or_else(|| panic!("{made}")));
        Some(browser)
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self.http.post(format!("{}{path}", self.session)).json(body).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        assert!(answer["value"]["error"].is_null(), "{path}: {answer}");
        answer["value"].clone()
    }

    async fn open(&self, address: &str) {
        self.post("/url", &json!({"url": address})).await;
    }

    /// Presses keys one after the other, as one types.
    async fn keys(&self, keys: &str) {
        let each = |key: char| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})];
        let actions: Vec<Value> = keys.chars().flat_map(each).collect();
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]})).await;
    }

    async fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []})).await
    }

    /// Tabs until what has the focus reads so, and sees that the focus shows.
    async fn tab_to(&self, text: &str) {
        for _ in 0..60 {
            self.keys(TAB).await;
            let at = self.run("const at = document.activeElement, look = getComputedStyle(at); return [at.textContent.trim() || at.name || '', look.outlineStyle, look.outlineWidth];").await;
            if at[0].as_str().unwrap() == text {
                assert!(at[1] != "none" && at[2] != "0px", "the focus on {text} does not show: {at}");
                return;
            }
        }
        panic!("{text} cannot be reached by Tab");
    }

    /// Presses Enter, and waits for a page with this heading.
    async fn enter(&self, heading: &str) {
        self.keys(ENTER).await;
        self.shows(heading).await;
    }

    async fn shows(&self, heading: &str) {
        let mut last = Value::Null;
        for _ in 0..600 {
            last = self
                .run("return document.readyState === 'complete' && (document.querySelector('h1') || {}).textContent;")
                .await;
            if last.as_str() == Some(heading) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        panic!("no page with {heading:?}, but {last}");
    }

    async fn size(&self, width: u32) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500});
        self.post("/goog/cdp/execute", &json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics})).await;
    }

    async fn colours(&self, scheme: &str) {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.post("/goog/cdp/execute", &json!({"cmd": "Emulation.setEmulatedMedia", "params": media})).await;
    }

    async fn picture(&self, file: &Path) {
        let answer = self.http.get(format!("{}/screenshot", self.session)).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        let bytes = base64::engine::general_purpose::STANDARD.decode(answer["value"].as_str().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends the browser when it is asked to end.
        let _ = Command::new("kill").args(["-TERM", &self.driver.id().to_string()]).status();
        let _ = self.driver.wait();
    }
}

async fn furnished() -> (House, String) {
    let house = House::open().await;
    let token = house.token("Grace Hopper", Level::Admin).await;
    house.token("Rita", Level::Read).await;
    let grace = house.store.members().named("Grace Hopper").await.unwrap();
    let texts = [
        (
            "deploy.md",
            "---\nname: Deploys\ntype: project\n---\nDeploying takes two approvals.\n\n**Why:** the outage of March.\n",
        ),
        (
            "deploy.md",
            "---\nname: Deploys\ntype: project\n---\nDeploying takes three approvals.\n\n**Why:** the outage of March.\n**How to apply:** ask in #deploys.\n",
        ),
        (
            "hostile.md",
            "<script>window.pwned = true</script><img src=x onerror=\"window.pwned = true\">\n</pre><h1>not a heading</h1>\n",
        ),
        ("MEMORY.md", "- [Deploys](deploy.md): how many approvals\n"),
        (
            "a-folder/with-a-very-long-name-that-no-narrow-window-can-hold-on-one-line-without-breaking-it-somewhere.md",
            "long\n",
        ),
    ];
    for (at, (key, text)) in texts.into_iter().enumerate() {
        let write = EntryWrite { entries: [(key.parse().unwrap(), text.to_owned())].into(), ..EntryWrite::default() };
        house
            .store
            .entries()
            .write(&repository(), &grace, &write, None, &RepositoryLimits::default(), NOW + at as i64 * 3_600_000)
            .await
            .unwrap();
    }
    let refused = json!({"entries": {"keys.md": secret()}});
    assert_eq!(super::house::call(&house, "PUT", "", &token, None, Some(refused)).await.0, 400);
    (house, token)
}

/// TEAM-8: the page can be used with the keyboard alone, fits a narrow window and a wide one, and can be read in light and
/// dark; what others wrote is text.
#[tokio::test]
async fn the_page_is_good_in_a_browser() {
    if !is_full() {
        return skipped("./test full runs it");
    }
    let Some(browser) = Browser::start().await else { return };
    let (house, token) = furnished().await;
    browser.size(1280).await;
    browser.open(&house.address()).await;
    browser.shows("Sign in").await;
    browser.keys(&token).await;
    browser.enter("Repositories").await;
    browser.tab_to("acme/rocket").await;
    browser.enter("acme/rocket").await;
    browser.tab_to("deploy.md").await;
    browser.enter("deploy.md").await;
    browser.tab_to("Bring version 1 back").await;
    browser.enter("deploy.md").await;
    let history = house.store.history().versions(&repository(), &"deploy.md".parse().unwrap()).await.unwrap();
    assert_eq!(history.len(), 3, "a key press brought it back");
    // Backwards, too.
    browser
        .post(
            "/actions",
            &json!({"actions": [{"type": "key", "id": "keys", "actions": [
        {"type": "keyDown", "value": SHIFT}, {"type": "keyDown", "value": TAB}, {"type": "keyUp", "value": TAB},
        {"type": "keyUp", "value": SHIFT}]}]}),
        )
        .await;

    let pictures: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/team-page");
    std::fs::create_dir_all(&pictures).unwrap();
    let pages = [
        ("repositories", "/".to_owned()),
        ("repository", "/repository?repo=acme%2Frocket".to_owned()),
        ("entry", "/entry?repo=acme%2Frocket&key=deploy.md".to_owned()),
        ("hostile", "/entry?repo=acme%2Frocket&key=hostile.md".to_owned()),
        ("wrong", "/entry?repo=acme%2Frocket&key=none.md".to_owned()),
    ];
    let mut looked = 0;
    for (name, path) in pages.iter().chain(&[("sign-in", "/sign-out".to_owned())]) {
        if *name == "sign-in" {
            browser.open(&house.address()).await;
            browser.tab_to("Sign out").await;
            browser.enter("Sign in").await;
        }
        for scheme in ["light", "dark"] {
            for width in [360, 1280] {
                browser.colours(scheme).await;
                browser.size(width).await;
                let path = if *name == "sign-in" { "/" } else { path };
                browser.open(&format!("{}{path}", house.address())).await;
                let look = browser.run(LOOK).await;
                let of = format!("{name}, {scheme}, {width}");
                assert_eq!(look["width"], width, "{of}");
                assert!(look["fits"] == true, "{of} is wider than the window");
                assert!(look["worst"].as_f64().unwrap() >= 4.5, "{of}: {} in {}", look["worst"], look["where"]);
                assert!(look["headings"] == 1 && look["unnamed"] == 0 && look["small"] == json!([]), "{of}: {look}");
                assert!(look["scripts"] == 0 && look["pwned"] == false, "{of}: {look}");
                browser.picture(&pictures.join(format!("{name}-{scheme}-{width}.png"))).await;
                looked += 1;
            }
        }
    }
    assert_eq!(looked, 24);
    drop(browser);
    house.close().await;
}
