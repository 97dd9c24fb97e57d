//! `python` in a ship: a kernel that lives on between calls.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::client::nonsense;
use super::ship::Ship;
use crate::booters::kernel::{Kernel, advice, late_after};
use crate::sandbox::{Command, Ending, Report, SandboxError};

/// The longest that one call may take: the server gives up at 30 s, whatever it is told, and would leave it running.
pub const MOST: Duration = Duration::from_secs(28);

/// Runs a program to its end, its time limit, or until `cancel`, after which it cannot be reached any more.
pub async fn run(ship: &Ship, command: &Command, cancel: &CancellationToken) -> Result<Report, SandboxError> {
    let limit = command.timeout.min(MOST);
    let payload = json!({"code": command.text, "timeout": limit.as_secs().max(1)});
    let asked = tokio::select! {
        // Who cancels is not told of an end that came at the same moment.
        biased;
        () = cancel.cancelled() => return Ok(report(Ending::Cancelled, BUSY.into())),
        asked = ship.client.exec(&ship.id, "ipython/exec", payload, limit) => asked,
    };
    let own_limit = (command.timeout > MOST).then_some(MOST);
    match asked? {
        Some(data) => tell(ship, &data, own_limit).await,
        None => Ok(report(late_after(own_limit), format!("{BUSY}\n{}", advice(MOST)))),
    }
}

const BUSY: &str = "[it may still run; until it has ended, further calls of python wait]";

fn report(ending: Ending, output: String) -> Report {
    Report { ending, output, spill: None, left_running: 0 }
}

async fn tell(ship: &Ship, data: &Value, own_limit: Option<Duration>) -> Result<Report, SandboxError> {
    let text = |at: &str| data.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let done = data.get("success").and_then(Value::as_bool);
    let kernel = Kernel {
        text: text("/output/text"),
        error: text("/error"),
        failed: !done.ok_or_else(nonsense)?,
        images: data.pointer("/output/images").and_then(Value::as_array).map_or(&[], Vec::as_slice),
        notes: Vec::new(),
        own_limit,
    };
    Ok(kernel.report(ship).await)
}
