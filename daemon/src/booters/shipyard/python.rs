//! `python` in a ship: a kernel that lives on between calls.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use ulid::Ulid;

use super::ship::Ship;
use crate::booters::skill_files::nameless;
use crate::sandbox::output::{HEAD, Output, TAIL};
use crate::sandbox::{Command, Ending, Report, Sandbox, SandboxError};

/// The longest that one call may take: the server gives up at 30 s, whatever it is told, and would leave it running.
pub const MOST: Duration = Duration::from_secs(28);

/// Runs a program to its end, its time limit, or until `cancel`, after which it cannot be reached any more.
pub async fn run(ship: &Ship, command: &Command, cancel: &CancellationToken) -> Result<Report, SandboxError> {
    let limit = command.timeout.min(MOST);
    let payload = json!({"code": command.text, "timeout": limit.as_secs().max(1)});
    let asked = tokio::select! {
        // Who cancels is not told of an end that came at the same moment.
        biased;
        () = cancel.cancelled() => return Ok(report(Ending::Cancelled, BUSY.into(), None)),
        asked = ship.client.exec(&ship.id, "ipython/exec", payload, limit) => asked,
    };
    match asked? {
        Some(data) => Ok(tell(ship, &data, command.timeout > MOST).await),
        None => Ok(report(Ending::TimedOut, format!("{BUSY}\n{}", advice()), None)),
    }
}

const BUSY: &str = "[it may still run; until it has ended, further calls of python wait]";

fn advice() -> String {
    format!("[a call of python is stopped after {} s here; run what takes longer with exec]", MOST.as_secs())
}

fn report(ending: Ending, output: String, spill: Option<PathBuf>) -> Report {
    Report { ending, output, spill, left_running: 0 }
}

async fn tell(ship: &Ship, data: &Value, wanted_more: bool) -> Report {
    let error = data.get("error").and_then(Value::as_str).filter(|error| !error.is_empty());
    let failed = error.is_some() || data.get("success").and_then(Value::as_bool) == Some(false);
    let timed_out = error.is_some_and(is_timeout);
    let mut printed = data.pointer("/output/text").and_then(Value::as_str).unwrap_or_default().to_owned();
    let images = data.pointer("/output/images").and_then(Value::as_array);
    let more = images.and_then(|images| drawn(images));
    let advice = (timed_out && wanted_more).then(advice);
    for line in [error.map(str::to_owned), more, advice].into_iter().flatten() {
        if !printed.is_empty() && !printed.ends_with('\n') {
            printed.push('\n');
        }
        printed.push_str(&line);
    }
    let ending = match (timed_out, failed) {
        (true, _) => Ending::TimedOut,
        (false, failed) => Ending::Exited(failed.into()),
    };
    let (output, spill) = bounded(ship, printed.as_bytes()).await;
    report(ending, output, spill)
}

/// Tells what the ship says of a program that took too long from a traceback, which may name a time limit too.
fn is_timeout(error: &str) -> bool {
    let error = error.to_ascii_lowercase();
    !error.contains("traceback") && (error.contains("timed out") || error.contains("timeout"))
}

fn drawn(images: &[Value]) -> Option<String> {
    let one = |image: &Value| {
        let (kind, data) = image.as_object()?.iter().next()?;
        let digits = data.as_str()?.trim_end_matches('=').len();
        Some(format!("{kind}, {} bytes", digits * 3 / 4))
    };
    let many: Vec<String> = images.iter().filter_map(one).collect();
    let images = if many.len() == 1 { "image" } else { "images" };
    (!many.is_empty()).then(|| format!("[{} {images}, {}, not shown]", many.len(), many.join("; ")))
}

/// Returns what is to be seen of an output; what is left out is put into a file over there.
async fn bounded(ship: &Ship, printed: &[u8]) -> (String, Option<PathBuf>) {
    let place = format!(".nanod/output-{}.log", Ulid::generate());
    let cut = if printed.len() > HEAD + TAIL { (HEAD, printed.len() - TAIL) } else { (printed.len(), printed.len()) };
    let (head, tail) = (&printed[..cut.0], &printed[cut.1..]);
    let (text, spill) = Output::elsewhere(place.clone().into(), head, tail, printed.len() as u64).render();
    if spill.is_none() {
        return (text, None);
    }
    let file = nameless(printed).map_err(|why| SandboxError::Failed(why.to_string()));
    let kept = match file {
        Ok(file) => ship.upload(file, &place).await.map(drop),
        Err(why) => Err(why),
    };
    match kept {
        Ok(()) => (text, spill),
        Err(why) => (format!("{text}\n[{place} could not be written: {why}]"), None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{drawn, is_timeout};

    #[test]
    fn images_are_told_of() {
        let check = |images: serde_json::Value, expected: Option<&str>| {
            assert_eq!(drawn(images.as_array().map_or(&[], Vec::as_slice)).as_deref(), expected);
        };
        check(json!([]), None);
        check(json!([{"image/png": "AAAA"}]), Some("[1 image, image/png, 3 bytes, not shown]"));
        check(
            json!([{"image/png": "AAA="}, {"image/jpeg": "AA=="}]),
            Some("[2 images, image/png, 2 bytes; image/jpeg, 1 bytes, not shown]"),
        );
    }

    #[test]
    fn a_time_limit_is_no_traceback() {
        assert!(is_timeout("Code execution timed out") && is_timeout("Timeout"));
        assert!(!is_timeout("Traceback (most recent call last)\nTimeoutError: timed out"));
        assert!(!is_timeout("NameError: x"));
    }
}
