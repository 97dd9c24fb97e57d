//! An MCP server for tests: over its input and output, proper unless its arguments name faults.
#![expect(clippy::expect_used, clippy::print_stderr, reason = "it is a test's")]

use std::io::{self, BufRead, Write};
use std::process::Command;

use serde_json::{Value, json};

struct Server {
    faults: Vec<String>,
    /// Requests of its own that were answered.
    answered: Vec<Value>,
    waiting: Vec<Value>,
}

fn main() {
    let faults: Vec<String> = std::env::args().skip(1).collect();
    eprintln!("running on stdio");
    let mut server = Server { faults, answered: Vec::new(), waiting: Vec::new() };
    if server.has("grandchild") {
        drop(Command::new("setsid").args(["sleep", "1000"]).spawn().expect("a grandchild"));
    }
    for line in io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str(&line.expect("input")) else { continue };
        server.take(&message);
    }
    if server.has("stays") {
        loop {
            std::thread::park();
        }
    }
}

fn put(text: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).expect("output");
}

fn send(message: &Value) {
    put(&message.to_string());
}

impl Server {
    fn has(&self, fault: &str) -> bool {
        self.faults.iter().any(|one| one == fault)
    }

    fn value(&self, fault: &str) -> Option<&str> {
        self.faults.iter().find_map(|one| one.strip_prefix(fault)?.strip_prefix('='))
    }

    fn take(&mut self, message: &Value) {
        let id = message.get("id").cloned();
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            self.answered.push(message.clone());
            // It has asked for two things before it lists its tools.
            if self.answered.len() == 2
                && let Some(request) = self.waiting.pop()
            {
                self.list(&request);
            }
            return;
        };
        if self.has("garbage") {
            (0..5).for_each(|_| put("Debugger attached. {not json"));
        }
        match (method, id) {
            ("initialize", Some(id)) => self.greet(&id, message),
            ("notifications/initialized", None) if self.has("list-changed") => {
                send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                send(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}}));
            }
            ("tools/list", Some(_)) if self.has("asks") && self.answered.len() < 2 => {
                self.waiting.push(message.clone());
                send(&json!({"jsonrpc": "2.0", "id": "p1", "method": "ping"}));
                send(&json!({"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {}}));
            }
            ("tools/list", Some(_)) => self.list(message),
            ("tools/call", Some(id)) => self.call(&id, message),
            (_, Some(id)) => refuse(&id, -32601, "Method not found"),
            (_, None) => {}
        }
    }

    fn greet(&self, id: &Value, message: &Value) {
        if self.has("crash") {
            eprintln!("boom: no token");
            std::process::exit(3);
        }
        if self.has("babble") {
            (0..1000).for_each(|_| put("hello"));
        }
        if self.has("stateless") {
            return refuse(id, -32601, "Method not found");
        }
        if self.has("hang") {
            return;
        }
        if self.has("refuse") {
            return refuse(id, -32000, "no \u{1b}[31mlicence");
        }
        let asked = message["params"]["protocolVersion"].as_str().unwrap_or_default();
        let version = self.value("version").unwrap_or(asked);
        let result = json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "fake", "version": "1"}});
        send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn list(&self, message: &Value) {
        let id = &message["id"];
        if self.has("stateless")
            && message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] != "2026-07-28"
        {
            return refuse(id, -32602, "no version");
        }
        if self.has("no-tools") {
            return refuse(id, -32601, "Method not found");
        }
        if self.has("asks") {
            assert_eq!(self.answered[0]["result"], json!({}));
            assert_eq!(self.answered[1]["error"]["code"], json!(-32601));
        }
        let description = self
            .value("file")
            .map_or_else(|| "Says\u{200b} it.".into(), |file| std::fs::read_to_string(file).unwrap_or_default());
        let tool = |name: &str| {
            json!({"name": name, "description": description, "annotations": {"readOnlyHint": true},
            "inputSchema": {"$schema": "x", "type": "object", "properties": {"text": {"type": "string"}}}})
        };
        let mut tools = vec![tool("echo"), tool("do.it")];
        if self.has("bad-tools") {
            tools = vec![
                tool("good"),
                tool("a.b"),
                tool("a_b"),
                tool("good"),
                json!({"name": "good", "description": "Another one."}),
                json!({"name": "", "inputSchema": {}}),
                json!({"name": "list", "inputSchema": []}),
                json!({"name": "text", "inputSchema": {"type": "string"}}),
                tool(&"x".repeat(129)),
                json!({"inputSchema": {}}),
                json!(5),
            ];
        }
        if let Some(many) = self.value("many").and_then(|many| many.parse().ok()) {
            tools = (0..many).map(|at: u32| json!({"name": format!("t{at}")})).collect();
        }
        let mut result = json!({ "tools": tools });
        if self.has("pages") {
            let at = message["params"]["cursor"].as_str().map_or(0, str::len);
            result = json!({"tools": [tool(&format!("t{at}"))]});
            if at < 3 {
                result["nextCursor"] = json!("c".repeat(at + 1));
            }
        }
        if self.has("endless") {
            result["nextCursor"] = json!("same");
        }
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        send(&answer);
        if self.has("twice") {
            send(&answer);
            send(&json!({"jsonrpc": "2.0", "id": 999, "result": {}}));
        }
    }

    fn call(&self, id: &Value, message: &Value) {
        let text = message["params"]["arguments"]["text"].as_str().unwrap_or_default();
        let result = match text {
            "crash" => std::process::exit(9),
            "hang" => return,
            "huge" => json!({"content": [{"type": "text", "text": "x".repeat(300_000)}]}),
            "fail" => json!({"isError": true, "content": [{"type": "text", "text": "it failed"}]}),
            "unknown" => return refuse(id, -32602, "Unknown tool"),
            "pwd" => json!({"content": [{"type": "text", "text": format!("{:?}", std::env::current_dir())}]}),
            "env" => {
                json!({"content": [{"type": "text", "text": std::env::vars().map(|(name, _)| name).collect::<Vec<_>>().join(" ")}]})
            }
            "token" => {
                json!({"isError": true, "content": [{"type": "text", "text": format!("bad token {}", std::env::var("TOKEN").unwrap_or_default())}]})
            }
            "args" => json!({"content": [{"type": "text", "text": self.faults.join(" ")}]}),
            "progress" => {
                let token = &message["params"]["_meta"]["progressToken"];
                for at in 0..8 {
                    std::thread::park_timeout(std::time::Duration::from_millis(250));
                    send(
                        &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": at}}),
                    );
                }
                json!({"content": [{"type": "text", "text": "at last"}]})
            }
            other => {
                json!({"content": [{"type": "text", "text": format!("{} says {other}", message["params"]["name"].as_str().unwrap_or_default())}]})
            }
        };
        send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
}

fn refuse(id: &Value, code: i64, why: &str) {
    send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}}));
}
