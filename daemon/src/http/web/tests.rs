#![expect(clippy::unwrap_used, reason = "tests")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use reqwest::dns::{Name, Resolve, Resolving};

use super::{Clients, Page, Public, Reach, Request, WebError, fetch};
use crate::config::web::Allowed;
use crate::http::scripted::{Server, Step};

fn request(url: &str) -> Request {
    let (within, limit) = (Duration::from_secs(10), 1 << 16);
    Request { method: Method::GET, url: url.into(), headers: Vec::new(), body: None, within, limit }
}

fn allowed(list: &[&str]) -> Vec<Allowed> {
    list.iter().map(|one| one.parse().unwrap()).collect()
}

/// A resolver that gives each answer once, the last for ever.
struct Scripted(Vec<Vec<SocketAddr>>, AtomicUsize);

impl Scripted {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let one = |answer: &&[&str]| answer.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 0)).collect();
        Arc::new(Self(answers.iter().map(one).collect(), AtomicUsize::new(0)))
    }
}

impl Resolve for Scripted {
    fn resolve(&self, _: Name) -> Resolving {
        let at = self.1.fetch_add(1, Ordering::Relaxed).min(self.0.len() - 1);
        let answer = self.0[at].clone();
        Box::pin(async move { Ok(Box::new(answer.into_iter()) as _) })
    }
}

#[tokio::test]
async fn what_is_not_public_is_never_asked() {
    let mut server = Server::answering("200 OK", "secret").await;
    let port = server.url.rsplit_once(':').unwrap().1.to_owned();
    let hosts = "127.0.0.1 localhost LOCALHOST localhost. a.localhost 2130706433 0x7f000001 0x7f.0.0.1 0177.0.0.1 017700000001 \
                 127.1 127.0.1 127.0.0.1. 0 0.0.0.0 [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [0:0:0:0:0:0:0:1] \
                 [2002:7f00:1::] [64:ff9b::7f00:1] [fe80::1%25eth0] [fe80::1] [fd00:ec2::254] 169.254.169.254 100.100.100.200 \
                 metadata metadata.google.internal METADATA.google.internal. 10.0.0.1 192.168.1.1 172.16.0.1 user@127.0.0.1 \
                 user:pw@127.0.0.1 example.com@127.0.0.1 １２７.０.０.１ ①②⑦.0.0.1 127。0。0。1 %31%32%37.0.0.1 printer.local";
    for host in hosts.split_whitespace() {
        let error = fetch(Reach::Web(&[], None), request(&format!("http://{host}:{port}/"))).await.unwrap_err();
        assert!(matches!(error, WebError::Refused(_) | WebError::Bad(_)), "{host}: {error}");
    }
    for url in [
        "file:///etc/passwd",
        "gopher://127.0.0.1:25/_x",
        "ftp://127.0.0.1/",
        "unix:///run/nanod/nanod.sock",
        "data:,x",
        "javascript:1",
        "",
        "127.0.0.1",
        "//127.0.0.1/",
        "http://",
        "http:///",
        "http://[::1",
        "http://a b/",
        "http://1.1.1.1:x/",
        "view-source:http://127.0.0.1/",
        "blob:http://127.0.0.1/x",
        "http://user@example.com/",
        "http://:pw@example.com/",
    ] {
        let error = fetch(Reach::Web(&[], None), request(url)).await.unwrap_err();
        assert!(matches!(error, WebError::Refused(_) | WebError::Bad(_)), "{url}: {error}");
    }
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn what_a_person_allowed_is_reached_and_no_more() {
    let server = Server::answering("200 OK", "page").await;
    let port = server.url.rsplit_once(':').unwrap().1.to_owned();
    let other = if port == "1024" { "1025" } else { "1024" };
    for (allow, host, expected) in [
        (format!("127.0.0.1:{port}"), "127.0.0.1", true),
        ("127.0.0.1".into(), "127.0.0.1", true),
        ("127.0.0.0/8".into(), "127.0.0.1", true),
        ("127.0.0.0/8".into(), "0x7f.1", true),
        ("0.0.0.0/0".into(), "127.0.0.1", true),
        ("localhost".into(), "LOCALHOST", true),
        ("LocalHost.".into(), "localhost", true),
        (format!("127.0.0.1:{other}"), "127.0.0.1", false),
        ("127.0.0.0/8".into(), "localhost", false),
        ("localhost".into(), "127.0.0.1", false),
        ("localhost".into(), "a.localhost", false),
        ("127.0.0.2/32".into(), "127.0.0.1", false),
        ("127.0.0.0/8".into(), "[::ffff:127.0.0.1]", false),
        ("::/0".into(), "127.0.0.1", false),
    ] {
        let list = allowed(&[&allow]);
        let got = fetch(Reach::Web(&list, None), request(&format!("http://{host}:{port}/"))).await;
        assert_eq!(got.map(|page| page.body).is_ok_and(|body| body == b"page"), expected, "{allow} {host}");
    }
}

#[tokio::test]
async fn names_are_judged_by_all_that_they_lead_to() {
    let mut server = Server::answering("200 OK", "secret").await;
    let port = server.url.rsplit_once(':').unwrap().1.to_owned();
    let url = format!("http://rebound.example:{port}/");
    for answers in [
        &[&["127.0.0.1"][..]][..],
        &[&["1.1.1.1", "127.0.0.1"]],
        &[&["127.0.0.1", "1.1.1.1"]],
        &[&["::ffff:127.0.0.1"]],
        &[&["64:ff9b::7f00:1"]],
        &[&["169.254.169.254"]],
        &[&["0.0.0.0"]],
        &[&["10.0.0.1", "fd00::1"]],
    ] {
        let clients = Clients::new(Scripted::new(answers)).unwrap();
        let error = clients.follow(Reach::Web(&[], None), request(&url)).await.unwrap_err();
        assert!(matches!(&error, WebError::Refused(why) if why.contains("rebound.example")), "{answers:?}: {error}");
    }
    assert_eq!(server.requests(), Vec::<String>::new());
    // Whoever listed the name means it wherever it leads.
    let clients = Clients::new(Scripted::new(&[&["127.0.0.1"]])).unwrap();
    let list = allowed(&["rebound.example"]);
    assert_eq!(clients.follow(Reach::Web(&list, None), request(&url)).await.unwrap().body, b"secret");
}

#[tokio::test]
async fn a_name_is_looked_up_once_for_each_connection() {
    let script = Scripted::new(&[&["1.1.1.1", "2606:4700::1"], &["127.0.0.1"]]);
    let public = Public(script.clone());
    let first: Vec<SocketAddr> = public.resolve("a.example".parse().unwrap()).await.unwrap().collect();
    assert_eq!((first.len(), script.1.load(Ordering::Relaxed)), (2, 1));
    assert!(public.resolve("a.example".parse().unwrap()).await.is_err(), "the second answer is another place");
}

async fn redirecting(to: &str, status: u16) -> Server {
    Server::answering(&format!("{status} Elsewhere\r\nlocation: {to}"), "").await
}

#[tokio::test]
async fn redirects_are_checked_anew() {
    let mut inner = Server::answering("200 OK", "inner").await;
    for status in [301, 302, 303, 307, 308] {
        for to in [
            inner.url.as_str(),
            "http://169.254.169.254/latest/",
            "http://localhost/",
            "file:///etc/passwd",
            "//[::1]/",
        ] {
            let outer = redirecting(to, status).await;
            let list = allowed(&[outer.url.strip_prefix("http://").unwrap()]);
            let error = fetch(Reach::Web(&list, None), request(&outer.url)).await.unwrap_err();
            assert!(matches!(error, WebError::Refused(_) | WebError::Bad(_)), "{status} {to}: {error}");
        }
    }
    assert_eq!(inner.requests(), Vec::<String>::new());
    let outer = redirecting(&inner.url, 302).await;
    let list = allowed(&["127.0.0.1"]);
    let page: Page = fetch(Reach::Web(&list, None), request(&outer.url)).await.unwrap();
    assert_eq!((page.body.as_slice(), page.url), (b"inner".as_slice(), format!("{}/", inner.url)));
    // A person's own server may lie anywhere, and leads nowhere else.
    let server = outer.url.parse().unwrap();
    let error = fetch(Reach::Server(&server), request(&outer.url)).await.unwrap_err();
    assert!(matches!(error, WebError::Refused(_)), "{error}");
    let hosts = allowed(&[outer.url.strip_prefix("http://").unwrap()]);
    let error = fetch(Reach::Web(&list, Some(&hosts)), request(&outer.url)).await.unwrap_err();
    assert!(matches!(error, WebError::Refused(_)), "{error}");
}

#[tokio::test]
async fn redirects_end() {
    let mut server = redirecting("/again", 302).await;
    let list = allowed(&["127.0.0.1"]);
    let error = fetch(Reach::Web(&list, None), request(&server.url)).await.unwrap_err();
    assert!(matches!(error, WebError::Redirects(_)), "{error}");
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn nothing_travels_to_another_server() {
    let list = allowed(&["127.0.0.1"]);
    for status in [301, 302, 303, 307, 308] {
        let mut other = Server::answering("200 OK", "other").await;
        let mut server = redirecting(&other.url, status).await;
        let headers = vec![("authorization".to_owned(), "Bearer s3cret".to_owned()), ("x-key".into(), "s3cret".into())];
        let get = Request { headers, body: Some(b"b0dy".to_vec()), ..request(&server.url) };
        fetch(Reach::Web(&list, None), get.clone()).await.unwrap();
        let (first, second) = (server.requests(), other.requests());
        for told in ["s3cret", "b0dy"] {
            assert!(first[0].contains(told) && !second[0].contains(told), "{second:?}");
        }
        let post = Request { method: Method::POST, ..get };
        assert_eq!(fetch(Reach::Web(&list, None), post).await.unwrap().status, status);
        assert!(
            server.requests()[0].ends_with("b0dy") && other.requests().is_empty(),
            "{status}: a POST is not repeated"
        );
    }
}

#[tokio::test]
async fn floods_end() {
    let list = allowed(&["127.0.0.1"]);
    let check = async |steps: Vec<Step>, expected: &str| {
        let server = Server::start(steps).await;
        let hurried = Request { within: Duration::from_millis(500), ..request(&server.url) };
        let error = fetch(Reach::Web(&list, None), hurried).await.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    let head = |text: &str| Step::Send(format!("HTTP/1.1 200 OK\r\n{text}").into_bytes());
    let drip = || vec![Step::Send(b"x".to_vec()), Step::Wait(Duration::from_millis(20))];
    let endless =
        |first: Step| std::iter::once(first).chain((0..100).flat_map(|_| drip())).chain([Step::Hold]).collect();
    check(endless(head("\r\n")), "timeout").await;
    check(endless(head("x: ")), "timeout").await;
    check(vec![Step::Hold], "timeout").await;
    check(vec![head(&format!("x: {}", "y".repeat(1 << 20))), Step::Hold], "the request failed").await;
    check(vec![head(&"x: y\r\n".repeat(1 << 16)), Step::Hold], "the request failed").await;
    let server = Server::answering("200 OK", &"y".repeat(1 << 20)).await;
    let page = fetch(Reach::Web(&list, None), request(&server.url)).await.unwrap();
    assert_eq!((page.body.len(), page.cut), (1 << 16, true));
}
