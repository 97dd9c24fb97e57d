//! The scenes of the sweep, and what they share.

mod approvals;
mod background;
mod deleted;
mod later;
mod life;
mod orders;
mod tools;

use nano_protocol::task::TaskState;
use nano_tests::model_server::{Call, Turn};
use serde_json::{Value, json};

pub use approvals::{APPROVED, DENIED};
pub use background::{BACKGROUND, POLLED};
pub use deleted::DELETED;
pub use later::LATER;
pub use life::{CLOSED, DELEGATE, FOLLOWUP, PLAIN, QUEUED, ROLLED, SHUTDOWN};
pub use orders::{CANCEL, INTERRUPT, NOTES};
pub use tools::{COMMANDS, READS, WRITES};

use super::run::Run;
use super::story::Story;

/// Returns the role and the words of a request's last message.
fn last(request: &Value) -> (&str, &str) {
    let message = request["messages"].as_array().and_then(|messages| messages.last());
    let text = |member: &str| message.and_then(|message| message[member].as_str()).unwrap_or_default();
    (text("role"), text("content"))
}

/// Tells whether a request holds a call already.
fn has_called(request: &Value) -> bool {
    request["messages"].to_string().contains("\"tool_calls\"")
}

fn calls(n: usize, all: &[(&str, Value)]) -> Turn {
    let call = |(at, (name, arguments)): (usize, &(&str, Value))| Call {
        id: format!("c{n}_{at}"),
        name: (*name).into(),
        arguments: arguments.clone(),
    };
    Turn { calls: all.iter().enumerate().map(call).collect(), ..Turn::default() }
}

/// A command that leaves the id of its call, and then does something else.
fn mark(n: usize, at: usize, then: &str) -> (&'static str, Value) {
    ("exec", json!({"command": format!("echo c{n}_{at} >> marks; echo printed{then}")}))
}

fn done(_: &Value, _: usize) -> Turn {
    Turn::text("done")
}

fn succeeded(_: &mut Run, story: &Story) {
    for task in &story.tasks {
        assert_eq!(task.state, TaskState::Succeeded, "{task:?}");
    }
}

/// Waits until the first command runs, or has ended with the daemon that ran it.
fn command_runs(run: &mut Run) {
    run.until("a running command, or its end with the daemon", |run| {
        let runs = run.daemon.workspace().join("marks").exists();
        (runs || run.server.requests().iter().any(has_called)).then_some(())
    });
}
