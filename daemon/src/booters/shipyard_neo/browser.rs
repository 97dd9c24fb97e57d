//! The tools that drive the sandbox's browser.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::bay::Ask;
use super::fault::Fault;
use super::paths::step;
use super::sandbox::NeoSandbox;
use super::tool::{BayTool, compact};
use crate::tools::{Tool, ToolOutcome};

/// The status of a shell that does not find a program.
const NOT_FOUND: i64 = 127;

#[derive(Debug, Deserialize, JsonSchema)]
struct One {
    /// The command line of agent-browser, without its name, such as `open https://example.org`.
    cmd: String,
    /// After how many seconds it is stopped, 1 to 300; 30 unless given.
    timeout: Option<i64>,
    /// What it does, for the history.
    description: Option<String>,
    /// Words to find it by, separated by commas.
    tags: Option<String>,
    /// Let the server learn a skill from it.
    learn: Option<bool>,
    /// Record the steps.
    include_trace: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Batch {
    /// Command lines of agent-browser, without its name, in order.
    commands: Vec<String>,
    /// After how many seconds all of it is stopped, 1 to 600; 60 unless given.
    timeout: Option<i64>,
    /// Whether the first that fails is the last; true unless given.
    stop_on_error: Option<bool>,
    /// What it does, for the history.
    description: Option<String>,
    /// Words to find it by, separated by commas.
    tags: Option<String>,
    /// Let the server learn a skill from it.
    learn: Option<bool>,
    /// Record the steps.
    include_trace: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Replay {
    /// The skill whose active release is run.
    skill_key: String,
    /// After how many seconds all of it is stopped, 1 to 600; 60 unless given.
    timeout: Option<i64>,
    /// Whether the first that fails is the last; true unless given.
    stop_on_error: Option<bool>,
    /// Record the steps.
    include_trace: Option<bool>,
    /// What it does, for the history.
    description: Option<String>,
    /// Words to find it by, separated by commas.
    tags: Option<String>,
}

/// Returns the tools, in order.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(
            BayTool::new("browser_exec", "Runs one command in the sandbox's browser.", false, one)
                .telling(told)
                .with_browser(),
        ),
        Arc::new(
            BayTool::new(
                "browser_batch_exec",
                "Runs several commands in the sandbox's browser, one after the other.",
                false,
                batch,
            )
            .telling(told)
            .with_browser(),
        ),
        Arc::new(
            BayTool::new("run_browser_skill", "Runs what the active release of a browser skill holds.", false, replay)
                .telling(told)
                .with_browser(),
        ),
    ]
}

fn one(sandbox: &NeoSandbox, args: One) -> Result<Ask, Fault> {
    let time = seconds(args.timeout, 30, 300)?;
    let body = json!({
        "cmd": args.cmd,
        "timeout": time.as_secs(),
        "learn": args.learn.unwrap_or(false),
        "include_trace": args.include_trace.unwrap_or(false),
    });
    let body = noted(body, args.description, args.tags);
    Ok(Ask::post(sandbox.path("browser/exec"), &body).taking(time))
}

fn batch(sandbox: &NeoSandbox, args: Batch) -> Result<Ask, Fault> {
    if args.commands.is_empty() {
        return Err(Fault::plain("bad arguments: `commands` is empty"));
    }
    let time = seconds(args.timeout, 60, 600)?;
    let body = json!({
        "commands": args.commands,
        "timeout": time.as_secs(),
        "stop_on_error": args.stop_on_error.unwrap_or(true),
        "learn": args.learn.unwrap_or(false),
        "include_trace": args.include_trace.unwrap_or(false),
    });
    let body = noted(body, args.description, args.tags);
    Ok(Ask::post(sandbox.path("browser/exec_batch"), &body).taking(time))
}

fn replay(sandbox: &NeoSandbox, args: Replay) -> Result<Ask, Fault> {
    let time = seconds(args.timeout, 60, 600)?;
    let body = json!({
        "timeout": time.as_secs(),
        "stop_on_error": args.stop_on_error.unwrap_or(true),
        "include_trace": args.include_trace.unwrap_or(false),
    });
    let body = noted(body, args.description, args.tags);
    Ok(Ask::post(sandbox.path(&format!("browser/skills/{}/run", step(&args.skill_key)?)), &body).taking(time))
}

fn seconds(asked: Option<i64>, unless: u64, most: u64) -> Result<Duration, Fault> {
    let Some(asked) = asked else { return Ok(Duration::from_secs(unless)) };
    match u64::try_from(asked) {
        Ok(seconds) if (1..=most).contains(&seconds) => Ok(Duration::from_secs(seconds)),
        _ => Err(Fault::plain(format!("bad arguments: `timeout` must be 1 to {most} seconds, not {asked}"))),
    }
}

fn noted(mut body: Value, description: Option<String>, tags: Option<String>) -> Value {
    for (name, text) in [("description", description), ("tags", tags)] {
        if let Some(text) = text {
            body[name] = text.into();
        }
    }
    body
}

/// Says whether the commands did what they were to do; a browser that is not there is not the command's fault.
fn told(reply: &Value) -> ToolOutcome {
    let text = compact(reply);
    if reply.get("success").and_then(Value::as_bool) != Some(false) {
        return ToolOutcome::Done(text);
    }
    let steps = reply.get("results").and_then(Value::as_array).into_iter().flatten();
    let codes = std::iter::once(reply).chain(steps).map(|one| one.get("exit_code").and_then(Value::as_i64));
    let mut codes = codes.flatten();
    let is_missing = codes.any(|code| code == NOT_FOUND) || text.contains("agent-browser: not found");
    let advice = "agent-browser is not installed where this sandbox's browser runs: trying again does not help; whoever \
                  runs the server has to give the profile a browser image that has it";
    ToolOutcome::Failed(if is_missing { format!("{text}\n{advice}") } else { text })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{seconds, told};
    use crate::tools::ToolOutcome;

    #[test]
    fn timeouts() {
        for (asked, expected) in [(None, Some(60)), (Some(1), Some(1)), (Some(600), Some(600)), (Some(0), None)] {
            assert_eq!(seconds(asked, 60, 600).ok().map(|time| time.as_secs()), expected, "{asked:?}");
        }
        assert!(seconds(Some(601), 60, 600).is_err() && seconds(Some(-1), 60, 600).is_err());
    }

    #[test]
    fn bug_18_a_browser_that_is_not_there_is_named() {
        for (reply, is_done, is_named) in [
            (json!({"success": true, "exit_code": 0}), true, false),
            (json!({"success": false, "exit_code": 1}), false, false),
            (json!({"success": false, "exit_code": 127}), false, true),
            (json!({"success": false, "results": [{"exit_code": 0}, {"exit_code": 127}]}), false, true),
            (json!({"success": false, "exit_code": null, "error": "sh: agent-browser: not found"}), false, true),
        ] {
            let (done, text) = match told(&reply) {
                ToolOutcome::Done(text) => (true, text),
                ToolOutcome::Failed(text) | ToolOutcome::Stopped(text) => (false, text),
                settled @ ToolOutcome::Settles(..) => (false, format!("{settled:?}")),
            };
            assert_eq!((done, text.contains("not installed")), (is_done, is_named), "{reply}");
        }
    }
}
