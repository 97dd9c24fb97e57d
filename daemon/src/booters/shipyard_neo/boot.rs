//! How a sandbox comes and goes: made with a key that makes it once, waited for, and deleted.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::KIND;
use super::bay::{Ask, Bay, RECORDS};
use super::fault::{Fault, one_line};
use super::state::{self, Status};
use crate::booters::is_id;
use crate::config::NeoConfig;
use crate::http::call::Method;
use crate::sandbox::SandboxError;

/// The profile of a server that does not say which there are.
pub const DEFAULT: &str = "python-default";
/// How long a sandbox may take to serve.
const READY: Duration = Duration::from_mins(3);
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LAST_LOOK: Duration = Duration::from_secs(3);
/// How many looks a sandbox without compute is given to begin; then it is taken as it is and the first call starts it.
const IDLE_LOOKS: u32 = 4;

/// Says that there is no sandbox.
pub fn no_boot(why: impl Into<String>) -> SandboxError {
    SandboxError::Boot { kind: KIND, why: why.into() }
}

/// Says that the sandbox is not there any more.
pub fn gone(id: &str) -> SandboxError {
    lost(format!("{id} was deleted, or its time is over"))
}

/// Says that the sandbox cannot be started any more: no call of it was done.
pub fn failed(id: &str) -> SandboxError {
    lost(format!("{id} has failed"))
}

fn lost(why: impl Into<String>) -> SandboxError {
    SandboxError::Lost { kind: KIND, why: why.into() }
}

/// Makes the sandbox of this key, or finds the one that was made with it; returns its id.
pub async fn make(bay: &Bay, config: &NeoConfig, key: &str) -> Result<String, SandboxError> {
    let profiles = match &config.profile {
        Some(profile) => vec![profile.clone()],
        None => profiles(bay).await.map_err(no_boot)?,
    };
    let key: String =
        key.chars().map(|one| if one.is_ascii_alphanumeric() || one == '-' { one } else { '_' }).collect();
    // The same key with another body is refused: then one was made when profile or ttl were others.
    let second = format!("{key}-2");
    for key in [&key[..key.len().min(120)], &second] {
        for profile in &profiles {
            let body = json!({"profile": profile, "ttl": config.ttl.as_secs()});
            match bay.call(&Ask::post("sandboxes", &body).key(key).taking(RECORDS)).await {
                Ok(made) => return id(&made).map_err(no_boot),
                Err(fault) if fault.status == 409 => {}
                Err(fault) => return Err(refused(bay, config, fault).await),
            }
        }
    }
    Err(no_boot("the server keeps another sandbox under this session's key; it forgets that within an hour: try later"))
}

/// Says, where the configured profile may be what is wrong, which ones there are.
async fn refused(bay: &Bay, config: &NeoConfig, fault: Fault) -> SandboxError {
    let Some(profile) = config.profile.as_ref().filter(|_| fault.code == "validation_error") else {
        return no_boot(fault);
    };
    let listed = bay.call(&Ask::get("profiles")).await.unwrap_or_default();
    let there: Vec<_> = state::profile_ids(&listed).iter().map(|id| one_line(id)).collect();
    let there = there.join(", ");
    no_boot(format!("{fault}: booters.shipyard_neo.profile is `{profile}`, and the server has {there}"))
}

fn id(made: &Value) -> Result<String, Fault> {
    let id = made.get("id").and_then(Value::as_str).filter(|id| is_id(id));
    id.map(str::to_owned).ok_or_else(|| Fault::plain("the server made a sandbox and did not say which"))
}

/// Returns the profile to use, and behind it those that may have been used before.
async fn profiles(bay: &Bay) -> Result<Vec<String>, Fault> {
    let listed = match bay.call(&Ask::get("profiles")).await {
        Ok(listed) => listed,
        Err(fault) if matches!(fault.status, 0 | 401 | 403) => return Err(fault),
        // Whether this is Bay at all, the next call shows.
        Err(_) => Value::Null,
    };
    let best = state::best_profile(&listed).unwrap_or_else(|| DEFAULT.to_owned());
    let mut others = state::profile_ids(&listed);
    others.insert(DEFAULT.to_owned());
    others.remove(&best);
    Ok(std::iter::once(best).chain(others).collect())
}

/// Waits until the sandbox serves, and returns what Bay tells of it.
pub async fn wait(bay: &Bay, id: &str) -> Result<Value, SandboxError> {
    if !is_id(id) {
        return Err(lost("its id is not on record"));
    }
    let (end, mut pause, mut looks) = (Instant::now() + READY, FIRST_LOOK, 0);
    loop {
        let sandbox = look(bay, id).await?;
        let status = state::status(&sandbox);
        match status.ok_or_else(|| no_boot(format!("the server does not say how the sandbox {id} is")))? {
            Status::Ready => return Ok(sandbox),
            Status::Idle if looks >= IDLE_LOOKS => return Ok(sandbox),
            Status::Failed if looks > 0 => {
                let deleted = delete(bay, id).await.map_or_else(|why| why.to_string(), |()| "it was deleted".into());
                return Err(no_boot(format!("the sandbox {id} could not be started; {deleted}")));
            }
            Status::Failed => return Err(failed(id)),
            Status::Gone => return Err(gone(id)),
            Status::Idle | Status::Starting if Instant::now() + pause < end => {}
            Status::Idle | Status::Starting => return Err(stuck(bay, id).await),
        }
        sleep(pause).await;
        (pause, looks) = ((pause * 2).min(LAST_LOOK), looks + 1);
    }
}

/// Looks at the sandbox.
pub async fn look(bay: &Bay, id: &str) -> Result<Value, SandboxError> {
    match bay.call(&Ask::get(format!("sandboxes/{id}"))).await {
        Ok(sandbox) => Ok(sandbox),
        Err(fault) if fault.is_not_found() => Err(gone(id)),
        Err(fault) => Err(no_boot(fault)),
    }
}

/// Ends compute that never comes up, so that the next try starts afresh; the files stay.
async fn stuck(bay: &Bay, id: &str) -> SandboxError {
    let stopped = match bay.call(&stop(id)).await {
        Ok(_) => "its compute was stopped, so that the next try starts afresh".to_owned(),
        Err(fault) => format!("stopping it failed too: {fault}"),
    };
    no_boot(format!("the sandbox {id} was still starting after {} s; {stopped}", READY.as_secs()))
}

/// Asks for the end of compute; files stay.
pub fn stop(id: &str) -> Ask {
    Ask::new(Method::POST, format!("sandboxes/{id}/stop")).twice_is_once().taking(RECORDS)
}

/// Deletes the sandbox; one that is gone is deleted.
pub async fn delete(bay: &Bay, id: &str) -> Result<(), SandboxError> {
    if !is_id(id) {
        return Ok(());
    }
    match bay.call(&Ask::new(Method::DELETE, format!("sandboxes/{id}")).taking(RECORDS)).await {
        Ok(_) => Ok(()),
        Err(fault) if fault.is_not_found() => Ok(()),
        Err(fault) => Err(SandboxError::Failed(format!("the sandbox {id} could not be deleted: {fault}"))),
    }
}
