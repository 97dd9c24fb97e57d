//! Skills from end to end: what a session is offered, what its model loads, who is told of changes, and what becomes of
//! bad files.

mod bad;
mod live;
mod loading;
mod offer;
mod rpc;
mod unwatched;
mod writing;

use std::fs;
use std::path::{Path, PathBuf};

use nano_protocol::session::SessionPrompts;
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Folders that are there before the daemon is: one of `skills.paths`, and workspaces.
struct Ground(TempDir);

impl Ground {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("ground-").tempdir().expect("a folder");
        fs::create_dir(folder.path().join("paths")).expect("a folder");
        Self(folder)
    }

    /// Returns the folder that `skills.paths` names.
    fn paths(&self) -> PathBuf {
        self.0.path().join("paths")
    }

    /// Makes a workspace.
    fn work(&self, name: &str) -> PathBuf {
        let work = self.0.path().join(name);
        fs::create_dir_all(&work).expect("a workspace");
        work
    }

    /// Starts a daemon that has the folder in `skills.paths`, with further lines of `[skills]` and of the agent.
    fn daemon(&self, server: &ModelServer, skills: &str, agent: &str) -> Daemon {
        let extra = format!("[skills]\npaths = [{}]\n{skills}\n", json!(self.paths()));
        Daemon::with(server, Setup { extra, agent: agent.to_owned(), ..Setup::default() })
    }
}

/// Returns where a workspace has its skills.
fn own(work: &Path) -> PathBuf {
    work.join(".agents/skills")
}

/// Returns a SKILL.md.
fn text(name: &str, description: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n{body}\n")
}

/// Returns one whose body is to stand in the prompt.
fn unasked(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}.\nmetadata:\n  always_load: true\n---\n\n{body}\n")
}

/// Writes a skill below `root` in one step, as an editor does, and returns its folder.
fn put(root: &Path, name: &str, text: &str) -> PathBuf {
    let folder = root.join(name);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(".new"), text).expect("a file");
    fs::rename(folder.join(".new"), folder.join("SKILL.md")).expect("a move");
    folder
}

/// A model that always says `done`.
fn done() -> ModelServer {
    ModelServer::answering(|_, _| Some(Turn::text("done")))
}

/// Makes a session in `work` and returns its id.
fn session(client: &mut Client, work: &Path, mut params: Value) -> String {
    params["workspace"] = json!(work);
    let session: Value = client.get("session.create", &params);
    session["id"].as_str().expect("a session id").to_owned()
}

fn prompts(client: &mut Client, session: &str) -> SessionPrompts {
    client.get("session.prompts", &json!({ "session": session }))
}

/// Makes a turn of calls, each with its id, its tool and its arguments.
fn calls(calls: &[(&str, &str, Value)]) -> Turn {
    let call = |(id, name, arguments): &(&str, &str, Value)| Call {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    };
    Turn { calls: calls.iter().map(call).collect(), ..Turn::default() }
}

/// Makes a turn that loads one skill.
fn load(id: &str, name: &str) -> Turn {
    calls(&[(id, "load_skill", json!({ "name": name }))])
}

/// Returns the names of the tools in a request.
fn offered(request: &Value) -> String {
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    let names: Vec<_> = tools.iter().map(|tool| tool["function"]["name"].as_str().expect("a name")).collect();
    names.join(" ")
}

/// Returns the system prompt of a request.
fn system(request: &Value) -> &str {
    let first = &request["messages"][0];
    if first["role"] == "system" { first["content"].as_str().expect("a prompt") } else { "" }
}

/// Returns the lines of the catalogue in a prompt.
fn catalogue(prompt: &str) -> Vec<&str> {
    let Some((_, block)) = prompt.split_once("## Available Skills\n") else { return Vec::new() };
    let block = block.split("\n\n").next().unwrap_or_default();
    block.lines().filter_map(|line| line.strip_prefix("- ")).collect()
}

/// Returns the names in the catalogue of a prompt.
fn listed(prompt: &str) -> String {
    let names: Vec<_> = catalogue(prompt).iter().filter_map(|line| line.split(':').next()).collect();
    names.join(" ")
}

/// Returns the result of a call in a request.
fn result<'a>(request: &'a Value, call: &str) -> &'a str {
    let messages = request["messages"].as_array().expect("messages");
    let found = messages.iter().find(|message| message["tool_call_id"] == call);
    found.unwrap_or_else(|| panic!("no result of {call}"))["content"].as_str().expect("a text")
}
