//! `web_search`: each kind of server, what is shown of their finds, and the key, which is nowhere to be seen.

use nano_tests::sandboxes::{Reply, Server};
use nano_tests::web::{brave, pages, searxng};
use serde_json::{Value, json};

use crate::web_kit::Kit;

const KEY: &str = "k3y-canary";

fn found(text: &str) -> Value {
    let one = |n: usize| json!({"title": format!("Title {n}"), "url": format!("https://example.com/{n}"), text: format!("<strong>about</strong> {n}\u{200b}\n&amp;")});
    let mut all: Vec<Value> = (0..15).map(one).collect();
    all.insert(0, json!({"title": "bad", "url": "javascript:alert(1)"}));
    all.insert(1, json!({"title": "no url"}));
    json!(all)
}

fn table(provider: &str, server: &Server) -> String {
    format!("[web_search]\nprovider = \"{provider}\"\nbase_url = \"{}\"\napi_key = \"{KEY}\"", server.url())
}

#[test]
fn finds_are_shown_one_block_each() {
    for (provider, server) in [("searxng", searxng(found("content"))), ("brave", brave(KEY, found("description")))] {
        let mut kit = Kit::new(&table(provider, &server), Vec::new());
        let said = kit.done("web_search", &json!({"query": "a b&c"}));
        assert!(said.contains("Title 0\nhttps://example.com/0\n**about** 0 &\n\nTitle 1\n"), "{provider}: {said}");
        assert!(said.contains("Title 9") && !said.contains("Title 10") && !said.contains("javascript"), "{said}");
        assert_eq!(said.matches("https://").count(), 10, "{said}");
        let request = &server.requests()[0];
        assert!(request.query.starts_with("q=a+b%26c&"), "{}", request.query);
        for bad in ["", "  ", &"x".repeat(401)] {
            assert!(kit.failed("web_search", &json!({ "query": bad })).contains("`query`"));
        }
        let log = kit.daemon.log();
        assert!(!said.contains(KEY) && !log.contains(KEY) && !json!(kit.daemon.history()).to_string().contains(KEY));
    }
}

#[test]
fn what_a_server_says_instead_is_told_without_the_key() {
    let echo = |status: u16| {
        Server::answering(move |request| {
            let headers: Vec<String> = request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            Reply::text(status, "text/plain", headers.join("\n"))
        })
    };
    let other = pages(vec![("/search", Reply::json(200, &json!({"results": []})))]);
    let to = format!("{}/search", other.url());
    let away = Server::answering(move |_| Reply::text(302, "text/plain", "").with("location", &to));
    for (server, expected) in [
        (echo(200), "did not answer in JSON"),
        (echo(403), "status 403"),
        (echo(429), "fewer requests"),
        (echo(500), "status 500"),
        (pages(vec![("/search", Reply::json(200, &json!({"x": 1})))]), "no results"),
        (away, "redirects to another"),
    ] {
        let mut kit = Kit::new(&table("searxng", &server), Vec::new());
        let said = kit.failed("web_search", &json!({"query": "q"}));
        assert!(said.contains(expected) && !said.contains(KEY), "{expected}: {said}");
        assert!(!kit.daemon.log().contains(KEY));
    }
    assert!(other.requests().is_empty(), "the key went on");
}

#[test]
fn without_a_server_it_is_withheld_until_there_is_one() {
    let server = searxng(found("content"));
    let mut kit = Kit::new("", Vec::new());
    assert!(kit.why("web_search").is_some_and(|why| why.contains("[web_search]")) && !kit.offers("web_search"));
    assert!(kit.why("http_request").is_some_and(|why| why.contains("[http_request]")) && kit.offers("web_fetch"));
    let file = kit.daemon.root().join("nanod.toml");
    let old = std::fs::read_to_string(&file).expect("a config");
    let more = format!("{old}\n{}\n[http_request]\nhosts = [\"api.example.com\"]\n", table("searxng", &server));
    std::fs::write(&file, more).expect("room");
    kit.client.get::<Value>("daemon.reload", &json!({}));
    assert!(kit.offers("web_search") && kit.offers("http_request"));
    assert!(kit.done("web_search", &json!({"query": "q"})).contains("Title 3"));
    std::fs::write(&file, old).expect("room");
    kit.client.get::<Value>("daemon.reload", &json!({}));
    assert!(!kit.offers("web_search") && !kit.offers("http_request"));
}
