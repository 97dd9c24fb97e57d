//! Keeps a sandbox alive while a session has it: its compute from going idle, the whole from reaching its end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::bay::{Ask, Bay};
use super::fault::Fault;
use super::state::seconds_until;
use crate::clock;
use crate::http::call::Method;

/// How long at most, and at least, until it is looked after again.
const MOST: Duration = Duration::from_mins(1);
const LEAST: Duration = Duration::from_millis(250);
/// Where more time than this is left, nothing is extended.
const PLENTY: Duration = Duration::from_mins(5);

/// Looks after the sandbox until it is gone; runs until it is dropped otherwise.
pub async fn keep(bay: Arc<Bay>, id: String, ttl: Duration) {
    let low = (ttl / 4).min(PLENTY);
    // When it had its whole time, as far as that is known here: the server's clock may be another one.
    let mut whole = Some(Instant::now());
    loop {
        let pause = match look_after(&bay, &id, (ttl, low), &mut whole).await {
            Ok(pause) => pause,
            // The next call finds out and says so.
            Err(fault) if fault.is_not_found() => return,
            Err(fault) => {
                tracing::warn!(sandbox = id, %fault, "the sandbox could not be kept alive; it is tried again");
                MOST
            }
        };
        sleep(pause.min(low / 2).clamp(LEAST, MOST)).await;
    }
}

/// Returns when the sandbox wants to be looked after again.
async fn look_after(
    bay: &Bay,
    id: &str,
    (ttl, low): (Duration, Duration),
    whole: &mut Option<Instant>,
) -> Result<Duration, Fault> {
    bay.call(&Ask::new(Method::POST, format!("sandboxes/{id}/keepalive")).twice_is_once()).await?;
    let sandbox = bay.call(&Ask::get(format!("sandboxes/{id}"))).await?;
    let now = clock::seconds();
    if let (Some(told), Some(since)) = (seconds_until(&sandbox, "expires_at", now), *whole) {
        let own = ttl.saturating_sub(since.elapsed()).as_secs_f64();
        if told.min(own) < low.as_secs_f64() {
            *whole = extend(bay, id, &sandbox, ttl).await?.then(Instant::now);
        }
    }
    // Half of what is left of the idle time, which has just begun anew.
    let idle = seconds_until(&sandbox, "idle_expires_at", now).filter(|left| *left > 0.0);
    Ok(idle.map_or(MOST, |left| Duration::from_secs_f64(left / 2.0)))
}

/// Gives the sandbox more time; returns whether that can be done again.
async fn extend(bay: &Bay, id: &str, sandbox: &Value, ttl: Duration) -> Result<bool, Fault> {
    let until = sandbox.get("expires_at").and_then(Value::as_str).unwrap_or_default();
    let key: String =
        format!("{id}-{until}").chars().filter(|one| one.is_ascii_alphanumeric() || *one == '-').collect();
    let ask = Ask::post(format!("sandboxes/{id}/extend_ttl"), &json!({"extend_by": ttl.as_secs()}));
    match bay.call(&ask.key(&key)).await {
        Ok(_) => Ok(true),
        Err(fault) if matches!(fault.code.as_str(), "sandbox_ttl_infinite" | "sandbox_expired") => Ok(false),
        Err(fault) => Err(fault),
    }
}
