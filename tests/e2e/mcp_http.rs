//! MCP servers that are reached over HTTP: answers as JSON and as events, sessions, and all that may be answered instead.

use std::io::{Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use nano_tests::daemon::{Daemon, Setup};
use nano_tests::http::{self, Request};
use nano_tests::model_server::{ModelServer, Turn};
use serde_json::{Value, json};

use crate::mcp::{shown, tools, turn};

/// A server in this process with one fault.
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    accepting: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start(fault: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
        let address = listener.local_addr().expect("its address");
        let seen = Arc::<Mutex<Vec<Request>>>::default();
        let (all, mut sessions) = (Arc::clone(&seen), 0);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Ok(request) = http::read(&stream) else { return };
                all.lock().expect("the requests").push(request.clone());
                // Who is gone needs no answer.
                drop(answer(fault, &mut sessions, &request, stream));
            }
        });
        Self { address, seen, accepting: Some(accepting) }
    }

    fn requests(&self) -> Vec<Request> {
        self.seen.lock().expect("the requests").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A connection that says nothing ends it.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            accepting.join().expect("the server's thread");
        }
    }
}

fn plain(mut stream: TcpStream, status: u16, more: &[(&str, &str)], body: &str) -> Result<()> {
    let length = body.len().to_string();
    let usual = [("content-type", "application/json"), ("content-length", length.as_str())];
    let headers: Vec<_> = usual.iter().chain(more).map(|(name, value)| ((*name).into(), (*value).into())).collect();
    http::head(&mut stream, status, &headers)?;
    stream.write_all(body.as_bytes())
}

fn answer(fault: &str, sessions: &mut usize, request: &Request, mut stream: TcpStream) -> Result<()> {
    let message = request.json();
    let (method, id) = (message["method"].as_str().unwrap_or_default(), message["id"].clone());
    match fault {
        "redirect" => return plain(stream, 307, &[("location", "http://127.0.0.1:1/")], ""),
        "denied" => return plain(stream, 401, &[], "{\"detail\": \"no key\"}"),
        "no-json" => return plain(stream, 200, &[], "<html>"),
        _ => {}
    }
    if id.is_null() || method.is_empty() {
        return plain(stream, 202, &[], "");
    }
    let known = request.header("mcp-session-id").map(str::to_owned);
    if fault == "forgets" && method == "tools/call" && known.as_deref() == Some("s1") {
        return plain(stream, 404, &[], "");
    }
    let error = |code: i64| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}).to_string();
    let result = match method {
        "initialize" if fault == "stateless" => return plain(stream, 400, &[], &error(-32601)),
        "initialize" => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "1"}})
        }
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        _ => json!({"content": [{"type": "text", "text": "over http"}]}),
    };
    let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    if fault == "events" {
        http::begin_events(&mut stream)?;
        let token = &message["params"]["_meta"]["progressToken"];
        http::event(&mut stream, &json!({"jsonrpc": "2.0", "id": 5, "method": "ping"}).to_string())?;
        http::event(
            &mut stream,
            &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token}})
                .to_string(),
        )?;
        return http::event(&mut stream, &text);
    }
    *sessions += usize::from(method == "initialize");
    let session = format!("s{sessions}");
    let more: &[_] = if method == "initialize" { &[("mcp-session-id", session.as_str())] } else { &[] };
    plain(stream, 200, more, &text)
}

#[test]
fn what_a_server_over_http_brings() {
    let soon = "it is tried again before a later turn";
    let cannot = |why: &str| format!("-mcp__w__*: the server cannot be used: {why}; {soon}");
    for (fault, expected) in [
        ("", "mcp__w__echo".to_owned()),
        ("events", "mcp__w__echo".into()),
        ("forgets", "mcp__w__echo".into()),
        ("stateless", "mcp__w__echo".into()),
        ("redirect", cannot("it sends elsewhere, which is not followed; write that url")),
        ("denied", cannot("it answers HTTP 401: {\"detail\": \"no key\"}")),
        ("no-json", cannot("its reply holds no answer")),
    ] {
        let web = Server::start(fault);
        let model = ModelServer::answering(|request, _| {
            let over = request["messages"].to_string().contains("over http")
                || !request["tools"].to_string().contains("mcp__w__echo");
            Some(if over { Turn::text("done") } else { turn("mcp__w__echo", json!({})) })
        });
        let extra = format!("[mcp.w]\nurl = \"http://{}/mcp\"\nheaders = {{X-Key = \"s3cret-key\"}}\n", web.address);
        let daemon = Daemon::with(&model, Setup { extra, ..Setup::default() });
        let mut client = daemon.client();
        let session = daemon.session(&mut client);
        let task = client.run(&session, "p");
        assert_eq!(task.result.as_deref(), Some("done"), "{fault}");
        assert_eq!(shown(&tools(&mut client, &session)), expected, "{fault}");
        let requests = web.requests();
        assert!(requests.iter().all(|one| one.header("x-key") == Some("s3cret-key")), "{fault}");
        let calls: Vec<_> = requests.iter().filter(|one| one.json()["method"] == "tools/call").collect();
        match fault {
            "" => {
                assert_eq!(calls[0].header("mcp-session-id"), Some("s1"));
                assert_eq!(calls[0].header("mcp-protocol-version"), Some("2025-06-18"));
            }
            "events" => assert!(
                requests.iter().any(|one| one.json()["result"] == json!({}) && one.json()["id"] == 5),
                "a ping is answered"
            ),
            "forgets" => {
                assert_eq!((calls.len(), calls[1].header("mcp-session-id")), (2, Some("s2")), "greeted anew, once");
            }
            "stateless" => {
                let meta = &calls[0].json()["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
                assert_eq!((meta, calls[0].header("mcp-method")), (&json!("2026-07-28"), Some("tools/call")));
            }
            _ => assert!(calls.is_empty(), "{fault}"),
        }
        let _: Value = client.get("session.close", &json!({"session": session}));
        let left = web.requests().iter().any(|one| one.method == "DELETE");
        assert_eq!(left, ["", "forgets"].contains(&fault), "{fault}: a session is given back");
        assert!(!daemon.log().contains("s3cret-key"));
    }
}
