//! `web_fetch` and `http_request`: what is not public is never asked, what is allowed is read and bounded.

use nano_tests::sandboxes::{Reply, Server};
use nano_tests::web::pages;
use serde_json::{Value, json};

use crate::web_kit::Kit;

fn host(server: &Server) -> String {
    server.url().trim_start_matches("http://").to_owned()
}

fn port(server: &Server) -> String {
    server.url().rsplit_once(':').expect("a port").1.to_owned()
}

#[test]
fn nothing_inside_is_asked() {
    let inner = pages(vec![("/", Reply::text(200, "text/plain", "secret"))]);
    let mut kit = Kit::new("", Vec::new());
    let port = port(&inner);
    let hosts = [
        "127.0.0.1",
        "localhost",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "2130706433",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[2002:7f00:1::]",
        "[64:ff9b::127.0.0.1]",
        "[fe80::1%25eth0]",
        "user@127.0.0.1",
        "example.com@127.0.0.1",
        "0.0.0.0",
        "[::]",
        "a.localhost",
        "localhost.",
        "１２７.0.0.1",
    ];
    let others = [
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.google.internal/",
        "http://100.100.100.200/",
        "http://10.0.0.1/",
        "http://192.168.0.1/",
        "http://172.31.255.255/",
        "http://[fd00:ec2::254]/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:25/_x",
        "ftp://127.0.0.1/",
        "unix:///run/nanod/nanod.sock",
        "not an address",
        "",
    ];
    let urls = hosts.iter().map(|host| format!("http://{host}:{port}/")).chain(others.map(str::to_owned));
    for url in urls {
        let said = kit.failed("web_fetch", &json!({ "url": url }));
        assert!(said.starts_with("refused: ") || said.starts_with("bad url: "), "{url}: {said}");
    }
    assert!(inner.requests().is_empty(), "{:?}", inner.requests());
    assert!(kit.why("http_request").is_some_and(|why| why.contains("[http_request]")));
}

#[test]
fn pages_are_read_and_bounded() {
    let html =
        "<title>A page</title><h1>Top</h1><p>See <a href=/x>this</a>.\u{200b}\u{e0041}\u{1b}[2J<script>no</script>";
    let long = (0..40_000).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
    let server = pages(vec![
        ("/html", Reply::text(200, "text/html; charset=utf-8", html)),
        ("/latin", Reply::text(200, "text/html; charset=iso-8859-1", b"<p>\xe4\xf6".to_vec())),
        ("/json", Reply::json(200, &json!({"a": [1, 2]}))),
        ("/image", Reply::text(200, "image/png", b"\x89PNG\r\n\x1a\n".to_vec())),
        ("/long", Reply::text(200, "text/plain", long.clone())),
        ("/there", Reply::text(302, "text/plain", "").with("location", "html")),
        ("/loop", Reply::text(302, "text/plain", "").with("location", "/loop")),
        ("/inside", Reply::text(302, "text/plain", "").with("location", "http://127.0.0.2:1/")),
        ("/deep", Reply::text(200, "text/html", "<div>".repeat(200_000) + "bottom")),
    ]);
    let proxy = pages(vec![]);
    let env = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"].map(|name| (name, proxy.url())).to_vec();
    let mut kit = Kit::new(&format!("[web]\nallow = [\"{}\"]", host(&server)), env);
    let url = |path: &str| json!({ "url": format!("{}{path}", server.url()) });
    let page = kit.done("web_fetch", &url("/html"));
    let expected = format!("# Top\n\nSee [this]({}/x).", server.url());
    assert!(page.starts_with("A page\n") && page.contains("not instructions") && page.contains(&expected), "{page}");
    assert!(!page.contains(['\u{200b}', '\u{e0041}', '\u{1b}']) && !page.contains("no\n"), "{page:?}");
    assert!(kit.done("web_fetch", &url("/latin")).contains("äö"));
    assert!(kit.done("web_fetch", &url("/json")).contains("{\"a\":[1,2]}"));
    assert!(kit.done("web_fetch", &url("/image")).contains("[not shown: 8 bytes image/png]"));
    assert!(kit.done("web_fetch", &url("/there")).contains(&format!("{}/html (status 200", server.url())));
    assert!(kit.done("web_fetch", &url("/deep")).contains("bottom"));
    let cut = kit.done("web_fetch", &url("/long"));
    assert!(cut.len() < 60_000 && cut.contains("line 0\n") && cut.contains("line 39999\n"), "{}", cut.len());
    let path = cut.split("the whole output is in ").nth(1).and_then(|rest| rest.split_once(" …]")).expect("a file").0;
    assert_eq!(std::fs::read_to_string(path).expect("the whole"), long);
    assert!(kit.failed("web_fetch", &url("/none")).contains("status 404"));
    assert!(kit.failed("web_fetch", &url("/loop")).starts_with("too many redirects"));
    assert!(kit.failed("web_fetch", &url("/inside")).starts_with("refused: 127.0.0.2 "));
    assert!(proxy.requests().is_empty(), "a proxy was asked: {:?}", proxy.requests());
}

#[test]
fn requests_go_where_they_may() {
    let other = pages(vec![("/", Reply::text(200, "text/plain", "other"))]);
    let server = pages(vec![
        (
            "/it",
            Reply::text(201, "text/html", "<b>as it is</b>").with("x-request-id", "r1").with("set-cookie", "s3cret"),
        ),
        ("/away", Reply::text(307, "text/plain", "").with("location", &other.url())),
    ]);
    let config = format!(
        "[web]\nallow = [\"127.0.0.1\"]\n[http_request]\nhosts = [\"{}\"]\nmethods = [\"GET\", \"POST\"]",
        host(&server)
    );
    let mut kit = Kit::new(&config, Vec::new());
    let call = |method: &str, url: String, headers: Value| json!({"method": method, "url": url, "headers": headers, "body": "b0dy"});
    let it = format!("{}/it", server.url());
    let said = kit.done("http_request", &call("post", it.clone(), json!({"X-Key": "k", "Content-Type": "text/x"})));
    for part in ["status 201", "<b>as it is</b>", "x-request-id: r1", "not instructions"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("s3cret"), "{said}");
    let sent = server.requests();
    assert_eq!(
        (sent[0].method.as_str(), sent[0].text().as_ref(), sent[0].header("x-key")),
        ("POST", "b0dy", Some("k"))
    );
    let said = kit.done("http_request", &call("POST", format!("{}/away", server.url()), json!({"authorization": "x"})));
    assert!(said.contains("status 307") && said.contains("not followed") && said.contains(&other.url()), "{said}");
    let said =
        kit.failed("http_request", &call("GET", format!("{}/away", server.url()), json!({"authorization": "x"})));
    assert!(said.starts_with("refused: "), "{said}");
    for (method, url, headers, why) in [
        ("DELETE", it.clone(), json!({}), "method"),
        ("GET", other.url(), json!({}), "hosts"),
        ("GET", "http://127.0.0.2/".into(), json!({}), "hosts"),
        ("GET", it.clone(), json!({"Host": "x"}), "cannot be set"),
        ("GET", it.clone(), json!({"content-length": "1"}), "cannot be set"),
        ("GET", it.clone(), json!({"Transfer-Encoding": "chunked"}), "cannot be set"),
        ("GET", it.clone(), json!({"Connection": "close"}), "cannot be set"),
        ("GET", it.clone(), json!({"x": "a\r\nHost: b"}), "control characters"),
        ("GET", it.clone(), json!({"x\r\ny": "a"}), "no name"),
        ("GET", it.clone(), json!({"x y": "a"}), "no name"),
    ] {
        let said = kit.failed("http_request", &call(method, url.clone(), headers.clone()));
        assert!(said.contains(why), "{method} {url} {headers}: {said}");
    }
    assert_eq!((server.requests().len(), other.requests().len()), (3, 0));
}
