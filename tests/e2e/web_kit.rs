//! A daemon whose model calls just the tool that a message names.

use nano_protocol::message::Message;
use nano_protocol::session::SessionTools;
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use nano_tests::transcript;
use serde_json::{Value, json};

/// A session in which tools are called one by one.
pub struct Kit {
    pub daemon: Daemon,
    pub client: Client,
    pub session: String,
    _server: ModelServer,
}

fn obey(request: &Value, number: usize) -> Option<Turn> {
    let last = request["messages"].as_array()?.last()?;
    if last["role"] == "tool" {
        return Some(Turn::text("done"));
    }
    let order: Value = serde_json::from_str(last["content"].as_str()?).ok()?;
    let name = order["tool"].as_str()?.to_owned();
    let call = Call { id: format!("c{number}"), name, arguments: order["arguments"].clone() };
    Some(Turn { calls: vec![call], ..Turn::default() })
}

impl Kit {
    /// Starts one with these further tables of the config, and this in its environment.
    pub fn new(extra: &str, env: Vec<(&'static str, String)>) -> Self {
        let server = ModelServer::answering(obey);
        let agent = "tool_mode = \"all\"\nskills = []".to_owned();
        let mut daemon = Daemon::prepare(&server, Setup { agent, extra: extra.to_owned(), ..Setup::default() });
        daemon.set_env(env);
        daemon.restart();
        let mut client = daemon.client();
        let session = daemon.session(&mut client);
        Self { daemon, client, session, _server: server }
    }

    /// Calls a tool and returns its result.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Message {
        self.client.run(&self.session, &json!({"tool": tool, "arguments": arguments}).to_string());
        let all = transcript::read(&mut self.client, &self.session);
        all.into_iter().rfind(|message| message.tool_name.is_some()).expect("a result")
    }

    /// Calls a tool that must do what is asked.
    pub fn done(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result.ok, Some(true), "{tool} {arguments}: {}", result.content);
        result.content
    }

    /// Calls a tool that must fail.
    pub fn failed(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result.ok, Some(false), "{tool} {arguments}: {}", result.content);
        result.content
    }

    /// Returns what the session is offered.
    pub fn tools(&mut self) -> SessionTools {
        self.client.get("session.tools", &json!({ "session": self.session }))
    }

    /// Returns why a tool is withheld.
    pub fn why(&mut self, name: &str) -> Option<String> {
        self.tools().withheld.into_iter().find(|one| one.name == name).map(|one| one.why)
    }

    /// Returns whether a tool is offered.
    pub fn offers(&mut self, name: &str) -> bool {
        self.tools().tools.iter().any(|tool| tool.name == name)
    }
}
