//! How a command comes to its end.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::booters::program::signal_name;
use crate::sandbox::helper::News;
use crate::sandbox::process::Process;
use crate::sandbox::{Command, Ending, SandboxError};

/// How long a background command is watched for failing at once.
const BACKGROUND: Duration = Duration::from_millis(100);

/// Waits for it; notes the limits that it came up against.
pub async fn ending(
    process: &mut Process,
    command: &Command,
    cancel: &CancellationToken,
    limits: &mut Vec<String>,
) -> Result<Ending, SandboxError> {
    let mut limit = pin!(sleep(command.timeout));
    loop {
        let news = tokio::select! {
            // Who cancels is not told of an end that came at the same moment; an end beats the clock.
            biased;
            () = cancel.cancelled() => return Ok(Ending::Cancelled),
            news = process.news() => news,
            () = &mut limit => return Ok(if command.background { Ending::Running } else { Ending::TimedOut }),
        };
        match news {
            Some(News::Started) if command.background => limit.as_mut().reset(Instant::now() + BACKGROUND),
            Some(News::Started) => {}
            Some(News::Limited(limit)) => limits.push(limit),
            Some(News::Exited(code)) => return Ok(Ending::Exited(code)),
            Some(News::Signalled(number)) => return Ok(Ending::Signalled(signal_name(number))),
            Some(News::Failed(why)) => return Err(SandboxError::Start(why)),
            None => {
                process.ended().await;
                return Ok(Ending::Signalled("SIGKILL".into()));
            }
        }
    }
}
