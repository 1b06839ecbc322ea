use std::net::Ipv4Addr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// A server that answers by path, and the heads of what it was asked.
struct TestServer {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl TestServer {
    /// An endless answer repeats what it says.
    async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((HERE, 0)).await.unwrap();
        let (port, heads) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
        let (heard, answer) = (heads.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (heard, answer) = (heard.clone(), answer.clone());
                tokio::spawn(async move {
                    let mut head = vec![0; 4_096];
                    let read = stream.read(&mut head).await.unwrap_or_default();
                    let head = String::from_utf8_lossy(&head[..read]).into_owned();
                    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    heard.lock().unwrap().push(head);
                    let _ = stream.write_all(&answer(&path)).await;
                    if path == "/endless" {
                        while stream.write_all(&[b'x'; 65_536]).await.is_ok() {}
                    }
                    if path == "/silent" {
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        Self { port, heads }
    }

    fn url(&self, path: &str) -> PageUrl {
        PageUrl::parse(&format!("http://site.test:{}{path}", self.port)).unwrap()
    }

    fn asked(&self) -> usize {
        self.heads.lock().unwrap().len()
    }
}

fn answer(head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n{body}").into_bytes()
}

fn to(location: &str) -> Vec<u8> {
    answer(&format!("302 Found\r\nLocation: {location}"), "")
}

/// Every name has these addresses, one after the other; the last stays. This machine's first address may be contacted.
fn fetch(addresses: &[&[IpAddr]]) -> (PageFetch, Arc<AtomicUsize>) {
    let (addresses, looked): (Vec<Vec<IpAddr>>, _) =
        (addresses.iter().map(|one| one.to_vec()).collect(), Arc::new(AtomicUsize::new(0)));
    let count = looked.clone();
    let look_up = move |_: String, _: u16| -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let at = count.fetch_add(1, Ordering::SeqCst).min(addresses.len() - 1);
        let found = addresses[at].clone();
        Box::pin(async move { Ok(found) })
    };
    let limits = FetchLimits {
        bytes: 200_000,
        characters: 1_000,
        connect: Duration::from_secs(5),
        whole: Duration::from_secs(20),
    };
    let may_contact = |_: &PageUrl, address: IpAddr| address == HERE;
    (PageFetch { limits, look_up: Arc::new(look_up), may_contact: Arc::new(may_contact) }, looked)
}

async fn text(fetch: &PageFetch, url: &PageUrl) -> WebPage {
    match fetch.fetch(url).await.unwrap() {
        FetchedPage::Page(page) => page,
        FetchedPage::Moved { to } => panic!("moved to {to}"),
    }
}

/// WEB-1: a page is read as Markdown, other text as it is, and what is no text is refused.
#[tokio::test]
async fn a_page_is_fetched_as_text() {
    let server = TestServer::start(|path| match path {
        "/html" => answer("200 OK\r\nContent-Type: text/html; charset=iso-8859-1", "<h1>Title</h1>"),
        "/json" => answer("200 OK\r\nContent-Type: application/json", "{\"a\": \"<b>\"}"),
        "/none" => answer("200 OK", "<!DOCTYPE html><p>para"),
        "/pdf" => answer("200 OK\r\nContent-Type: application/pdf", "%PDF"),
        "/br" => answer("200 OK\r\nContent-Type: text/html\r\nContent-Encoding: br", "xx"),
        _ => answer("404 Not Found", "no"),
    })
    .await;
    let (fetch, _) = fetch(&[&[HERE]]);
    let page = text(&fetch, &server.url("/html")).await;
    assert_eq!((page.text.as_str(), page.is_cut), ("# Title", false));
    assert_eq!(text(&fetch, &server.url("/json")).await.text, "{\"a\": \"<b>\"}");
    assert_eq!(text(&fetch, &server.url("/none")).await.text, "para");
    for (path, why) in [("/pdf", "application/pdf"), ("/br", "packed as br"), ("/gone", "the status 404")] {
        let error = fetch.fetch(&server.url(path)).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let heads = server.heads.lock().unwrap().join("\n").to_ascii_lowercase();
    assert!(
        heads.contains("host: site.test:") && !heads.contains("cookie") && !heads.contains("authorization"),
        "{heads}"
    );
}

/// WEB-1: redirects on the same host are followed, others are returned, and none leads to what may not be fetched.
#[tokio::test]
async fn redirects_are_followed_on_the_same_host_alone() {
    let server = TestServer::start(|path| match path {
        "/one" => to("/two"),
        "/two" => answer("200 OK\r\nContent-Type: text/plain", "here"),
        "/round" => to("/round"),
        "/away" => to("https://elsewhere.test/x"),
        "/port" => to("http://site.test:1/x"),
        "/file" => to("file:///etc/passwd"),
        "/meta" => to("http://169.254.169.254/latest/meta-data"),
        "/mapped" => to("http://[::ffff:127.0.0.1]/"),
        _ => answer("302 Found", ""),
    })
    .await;
    let (fetch, _) = fetch(&[&[HERE]]);
    let page = text(&fetch, &server.url("/one")).await;
    assert_eq!((page.text.as_str(), page.url), ("here", server.url("/two").to_string()));
    for (path, moved) in [("/away", "https://elsewhere.test/x"), ("/port", "http://site.test:1/x")] {
        assert_eq!(fetch.fetch(&server.url(path)).await.unwrap(), FetchedPage::Moved { to: moved.to_owned() });
    }
    for (path, why) in [
        ("/round", "redirects more than 10 times"),
        ("/file", "only http and https can be fetched, not file"),
        ("/meta", "169.254.169.254, which is not a public address"),
        ("/mapped", "not a public address"),
        ("/nowhere", "the status 302"),
    ] {
        let error = fetch.fetch(&server.url(path)).await.unwrap_err().to_string();
        assert!(error.contains(why), "{path}: {error}");
    }
}

/// WEB-1: every address of a name is judged, at each request anew, and none but the judged ones is contacted.
#[tokio::test]
async fn a_name_that_turns_private_is_not_contacted() {
    let server = TestServer::start(|path| if path == "/one" { to("/two") } else { answer("200 OK", "inside") }).await;
    for addresses in [&[OTHER][..], &[HERE, OTHER]] {
        let (fetch, _) = fetch(&[addresses]);
        let error = fetch.fetch(&server.url("/two")).await.unwrap_err();
        assert!(matches!(error, FetchError::Private { address: OTHER, .. }), "{error}");
    }
    assert_eq!(server.asked(), 0);
    // A name that leads elsewhere when it is looked up again is looked up once for each request.
    let (fetch, looked) = fetch(&[&[HERE], &[OTHER]]);
    assert_eq!(text(&fetch, &server.url("/two")).await.text, "inside");
    assert_eq!(looked.load(Ordering::SeqCst), 1);
    assert!(matches!(fetch.fetch(&server.url("/two")).await, Err(FetchError::Private { .. })));
    let (fetch, looked) = super::tests::fetch(&[&[HERE], &[OTHER]]);
    let error = fetch.fetch(&server.url("/one")).await.unwrap_err();
    assert!(matches!(error, FetchError::Private { address: OTHER, .. }), "{error}");
    assert_eq!((looked.load(Ordering::SeqCst), server.asked()), (2, 2));
    let (fetch, _) = super::tests::fetch(&[&[]]);
    assert!(fetch.fetch(&server.url("/two")).await.unwrap_err().to_string().contains("its name has no address"));
}

/// WEB-1: addresses that stand for themselves are judged, too.
#[tokio::test]
async fn private_addresses_are_refused_unless_they_are_named() {
    let server = TestServer::start(|_| answer("200 OK\r\nContent-Type: text/plain", "inside")).await;
    let usual = PageFetch::new(vec![]);
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "2130706433",
        "0x7f.1",
        "0177.0.0.01",
        "127.1",
        "0",
        "[::ffff:7f00:1]",
        "[::7f00:1]",
    ] {
        let url = PageUrl::parse(&format!("http://{host}:{}/", server.port)).unwrap();
        let error = usual.fetch(&url).await.unwrap_err();
        assert!(matches!(error, FetchError::Private { .. }), "{host}: {error}");
    }
    assert_eq!(server.asked(), 0);
    for (named, is_let_in) in
        [("127.0.0.1", true), (&format!("127.0.0.1:{}", server.port), true), ("127.0.0.1:1", false)]
    {
        let url = PageUrl::parse(&format!("http://127.0.0.1:{}/", server.port)).unwrap();
        assert_eq!(PageFetch::new(vec![named.to_owned()]).fetch(&url).await.is_ok(), is_let_in, "{named}");
    }
}

/// WEB-1: a small body that unpacks to a large one is unpacked up to the limit.
#[tokio::test]
async fn a_packed_bomb_is_cut() {
    let server = TestServer::start(|_| {
        let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        for _ in 0..20 {
            std::io::Write::write_all(&mut bomb, &[b'a'; 1_000_000]).unwrap();
        }
        let mut bytes = answer("200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip", "");
        bytes.extend(bomb.finish().unwrap());
        bytes
    })
    .await;
    let (fetch, _) = fetch(&[&[HERE]]);
    let page = text(&fetch, &server.url("/bomb")).await;
    assert_eq!((page.text.len(), page.is_cut), (1_000, true));
}

/// WEB-1: an endless body is cut, and a silent server is left.
#[tokio::test]
async fn a_body_without_end_is_cut() {
    let server = TestServer::start(|path| match path {
        "/silent" => b"HTTP/1.1 200 OK\r\n".to_vec(),
        _ => answer("200 OK\r\nContent-Type: text/plain", ""),
    })
    .await;
    let (fetch, _) = fetch(&[&[HERE]]);
    let page = text(&fetch, &server.url("/endless")).await;
    assert_eq!((page.text.len(), page.is_cut), (1_000, true));
    let hasty = fetch.with_limits(FetchLimits { whole: Duration::from_millis(200), ..FetchLimits::default() });
    assert!(matches!(hasty.fetch(&server.url("/silent")).await, Err(FetchError::Late(_))));
}
