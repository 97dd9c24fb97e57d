//! Stand-ins for servers of the web: pages by path, and the two kinds of search server.

use serde_json::{Value, json};

use crate::http::Request;
use crate::sandboxes::{Reply, Server};

/// Starts a server that answers each path in its own way, others with 404.
pub fn pages(pages: Vec<(&'static str, Reply)>) -> Server {
    Server::answering(move |request| {
        let page = pages.iter().find(|(path, _)| *path == request.path);
        page.map_or_else(|| Reply::text(404, "text/plain", "no such page"), |(_, reply)| reply.clone())
    })
}

/// Starts a `SearXNG` instance that has found this.
pub fn searxng(found: Value) -> Server {
    Server::answering(move |request| match request.path.as_str() {
        "/search" if request.query.contains("format=json") => {
            Reply::json(200, &json!({"query": "q", "number_of_results": 0, "results": found, "answers": []}))
        }
        "/search" => Reply::text(200, "text/html", "<html>"),
        _ => Reply::text(404, "text/html", "<html>"),
    })
}

/// Starts a server like Brave's, which wants this key and has found this.
pub fn brave(key: &'static str, found: Value) -> Server {
    Server::answering(move |request: &Request| match request.header("x-subscription-token") {
        Some(given) if given == key && request.path == "/res/v1/web/search" => {
            Reply::json(200, &json!({"type": "search", "web": {"type": "search", "results": found}}))
        }
        given => Reply::json(422, &json!({"error": {"detail": format!("bad token {}", given.unwrap_or_default())}})),
    })
}
