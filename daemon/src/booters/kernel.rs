//! What a Python kernel in a remote computer says of a program, as a report.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use ulid::Ulid;

use super::skill_files::nameless;
use crate::sandbox::output::{HEAD, Output, TAIL};
use crate::sandbox::{Ending, Report, Sandbox, SandboxError};

/// What a kernel said.
#[derive(Debug, Default)]
pub struct Kernel<'a> {
    /// What was printed.
    pub text: &'a str,
    /// What went wrong; may be empty.
    pub error: &'a str,
    /// Whether it says that it failed.
    pub failed: bool,
    /// What was drawn.
    pub images: &'a [Value],
    /// What a model should know besides.
    pub notes: Vec<String>,
    /// The longest that it runs a program, where more was asked for.
    pub own_limit: Option<Duration>,
}

impl Kernel<'_> {
    /// Makes a report of it; what is too long to be seen is put into a file over there.
    pub async fn report(self, sandbox: &dyn Sandbox) -> Report {
        let timed_out = is_timeout(self.error);
        let error = (!self.error.is_empty()).then(|| self.error.to_owned());
        let late = self.own_limit.filter(|_| timed_out).map(advice);
        let mut printed = self.text.to_owned();
        for line in error.into_iter().chain(drawn(self.images)).chain(self.notes).chain(late) {
            if !printed.is_empty() && !printed.ends_with('\n') {
                printed.push('\n');
            }
            printed.push_str(&line);
        }
        let failed = self.failed || !self.error.is_empty();
        let ending = if timed_out { late_after(self.own_limit) } else { Ending::Exited(failed.into()) };
        let (output, spill) = bounded(sandbox, printed.as_bytes()).await;
        Report { ending, output, spill, left_running: 0 }
    }
}

/// Says how long a program may take.
pub fn advice(own_limit: Duration) -> String {
    format!("[a call of python is stopped after {} s here; run what takes longer with exec]", own_limit.as_secs())
}

/// Returns how a program ended whose time ran out.
pub fn late_after(own_limit: Option<Duration>) -> Ending {
    own_limit.map_or(Ending::TimedOut, Ending::Limited)
}

/// Tells what a server says of a program that took too long from a traceback, which may name a time limit too.
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
async fn bounded(sandbox: &dyn Sandbox, printed: &[u8]) -> (String, Option<PathBuf>) {
    let place = format!(".nanod/output-{}.log", Ulid::generate());
    let cut = if printed.len() > HEAD + TAIL { (HEAD, printed.len() - TAIL) } else { (printed.len(), printed.len()) };
    let (head, tail) = (&printed[..cut.0], &printed[cut.1..]);
    let (text, spill) = Output::elsewhere(place.clone().into(), head, tail, printed.len() as u64).render();
    if spill.is_none() {
        return (text, None);
    }
    let file = nameless(printed).map_err(|why| SandboxError::Failed(why.to_string()));
    let kept = match file {
        Ok(file) => sandbox.upload(file, &place).await.map(drop),
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
