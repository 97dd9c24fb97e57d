//! The computer of a session: on record before it is made, looked for again after a restart, replaced once it is gone,
//! and given back until that has worked.

use std::sync::Arc;
use std::time::Duration;

use nano_protocol::event::EventType;
use nano_protocol::id::SessionId;
use nano_protocol::session::Session;
use serde_json::json;
use tokio::sync::Notify;

use super::deps::Deps;
use crate::booters::{BootRequest, Booter};
use crate::sandbox::{Sandbox, SandboxError};
use crate::store::record::{ComputerRecord, Draft, SessionRecord};
use crate::store::{Change, Commit, Key, StoreError};

/// How long one attempt to give a computer back may take.
const ATTEMPT: Duration = Duration::from_secs(30);
/// The waits between attempts; the last one again and again.
const WAITS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(5)];
/// After this its server has ended it by itself.
const GONE_BY_ITSELF: Duration = Duration::from_hours(24);

/// A computer that serves.
#[derive(Clone)]
pub struct Attached {
    /// It.
    pub sandbox: Arc<dyn Sandbox>,
    /// Which of those that the session has had; empty for a computer that is this machine.
    pub key: String,
    /// Why the one before it is gone, if it took one's place.
    pub lost: Option<String>,
}

/// Attaches to the session's computer; makes one where there is none, and another one, once, where it is gone.
pub async fn obtain(deps: &Deps, session: &Session) -> Result<Attached, SandboxError> {
    let booter = deps
        .booter(&session.booter)
        .ok_or_else(|| SandboxError::Start(format!("the booter {} is not configured", session.booter)))?;
    if !booter.is_remote() {
        let sandbox = booter.attach(&request(&fresh(deps, session, None)), "").await?;
        return Ok(Attached { sandbox, key: String::new(), lost: None });
    }
    if let Some(why) = booter.missing() {
        return Err(SandboxError::Boot { kind: booter.kind(), why });
    }
    let record = match current(deps, &session.id).map_err(unwritten)? {
        Some(record) => record,
        None => put(deps, fresh(deps, session, None), None).await?,
    };
    match attach(deps, booter.as_ref(), &record).await {
        Err(SandboxError::Lost { why, .. }) => {
            let next = fresh(deps, session, Some(why));
            let next = put(deps, next, Some(record)).await?;
            attach(deps, booter.as_ref(), &next).await
        }
        attached => attached,
    }
}

/// Makes the computer, unless that was done, and attaches to it. One that never served is given back if it does not now.
async fn attach(deps: &Deps, booter: &dyn Booter, record: &ComputerRecord) -> Result<Attached, SandboxError> {
    let (mut record, is_new) = (record.clone(), record.handle.is_none());
    let request = request(&record);
    let handle = match record.handle.clone() {
        Some(handle) => handle,
        None => booter.make(&request).await?,
    };
    if is_new {
        record.handle = Some(handle.clone());
        record = put(deps, record, None).await?;
    }
    match booter.attach(&request, &handle).await {
        Ok(sandbox) => {
            if !record.served {
                record = put(deps, ComputerRecord { served: true, ..record }, None).await?;
            }
            Ok(Attached { sandbox, key: record.key, lost: record.lost })
        }
        Err(why) => {
            let why = if is_new { never_served(why) } else { why };
            if !record.served && !matches!(why, SandboxError::Lost { .. }) {
                let commit = Commit::owed(vec![unused(deps, record)]);
                deps.store.commit(commit).await.map_err(unwritten)?;
                deps.computers.notify_one();
            }
            Err(why)
        }
    }
}

/// Says of a computer that is gone as soon as it is made that it cannot be had, so that not another one is made at once.
fn never_served(why: SandboxError) -> SandboxError {
    let SandboxError::Lost { kind, why } = why else { return why };
    SandboxError::Boot { kind, why: format!("it was made and did not come up ({why}); the server's log may say more") }
}

/// Records a computer; with `instead_of`, which is gone, in one step with its end.
async fn put(
    deps: &Deps,
    record: ComputerRecord,
    instead_of: Option<ComputerRecord>,
) -> Result<ComputerRecord, SandboxError> {
    let mut changes = vec![Change::computer(&record)];
    let gone = instead_of.is_some();
    if let Some(old) = instead_of {
        let data = json!({"booter": old.kind, "sandbox": old.handle, "reason": record.lost});
        let (session, task, kind) = (Some(old.session.clone()), None, EventType::SandboxLost);
        // One that never served is nobody's loss.
        changes.extend(old.served.then_some(Change::Event(Draft { session, task, kind, data })));
        changes.push(unused(deps, old));
    }
    deps.store.commit(Commit::owed(changes)).await.map_err(unwritten)?;
    if gone {
        deps.computers.notify_one();
    }
    Ok(record)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unwritten(error: StoreError) -> SandboxError {
    SandboxError::Failed(error.to_string())
}

/// Writes a computer that nobody uses any more.
fn unused(deps: &Deps, record: ComputerRecord) -> Change {
    Change::computer(&ComputerRecord { giving_back: true, since: deps.clock.now(), ..record })
}

fn fresh(deps: &Deps, session: &Session, lost: Option<String>) -> ComputerRecord {
    ComputerRecord {
        session: session.id.clone(),
        kind: session.booter.clone(),
        key: deps.clock.ulid(),
        handle: None,
        served: false,
        lost,
        giving_back: false,
        workspace: session.workspace.clone(),
        level: session.level,
        since: deps.clock.now(),
    }
}

fn request(record: &ComputerRecord) -> BootRequest {
    BootRequest {
        session: record.session.clone(),
        key: record.key.clone(),
        workspace: record.workspace.clone().into(),
        level: record.level,
    }
}

fn of(deps: &Deps, session: &SessionId) -> Result<Vec<ComputerRecord>, StoreError> {
    deps.store.readable(&Key::below(b'b', &session.0))
}

/// Returns the computer that a session has, or is about to have.
pub fn current(deps: &Deps, session: &SessionId) -> Result<Option<ComputerRecord>, StoreError> {
    Ok(of(deps, session)?.into_iter().find(|record| !record.giving_back))
}

/// Returns the changes by which a session gives its computer back; they are done with [`give_back`].
pub fn released(deps: &Deps, session: &SessionId) -> Result<Vec<Change>, StoreError> {
    let used = of(deps, session)?.into_iter().filter(|record| !record.giving_back);
    Ok(used.map(|record| unused(deps, record)).collect())
}

/// Gives back what a session does not use any more, as far as that works at once; the rest is tried again later.
pub async fn give_back(deps: &Deps, session: &SessionId) {
    let unused = of(deps, session).unwrap_or_default().into_iter().filter(|record| record.giving_back);
    let attempts = unused.map(|record| async move { give_one_back(deps, &record).await });
    if futures_util::future::join_all(attempts).await.contains(&false) {
        deps.computers.notify_one();
    }
}

/// Tries once; true: it needs no further attempt.
async fn give_one_back(deps: &Deps, record: &ComputerRecord) -> bool {
    let Some(booter) = deps.booter(&record.kind) else { return true };
    let (request, handle) = (request(record), record.handle.as_deref());
    let given = tokio::time::timeout(ATTEMPT, booter.give_back(&request, handle)).await;
    let why = match given {
        Ok(Ok(())) => None,
        Ok(Err(why)) => Some(why.to_string()),
        Err(_) => Some("there was no answer in time".into()),
    };
    let age = deps.clock.now().0.saturating_sub(record.since.0);
    if let Some(why) = &why {
        let session = &record.session;
        tracing::warn!(%session, kind = record.kind, sandbox = record.handle, why, "a computer could not be given back");
        if !booter.ends_by_itself() || u128::from(age.unsigned_abs()) < GONE_BY_ITSELF.as_millis() {
            return false;
        }
    }
    let forget = Change::Delete(Key::computer(&record.session, &record.key));
    deps.store.commit(Commit::owed(vec![forget])).await.is_ok()
}

/// Gives back, until the daemon goes down, what sessions do not use any more, with growing waits where that fails.
pub async fn keep_giving_back(deps: Arc<Deps>) {
    if let Err(error) = release_left(&deps).await {
        tracing::error!(%error, "computers of sessions that ended could not be looked for");
    }
    let mut failed: usize = 0;
    loop {
        failed = if give_all_back(&deps).await { 0 } else { failed + 1 };
        let wait = WAITS.get(failed.saturating_sub(1)).or(WAITS.last()).copied().unwrap_or(ATTEMPT);
        tokio::select! {
            () = deps.shutdown.stopping().cancelled() => return,
            () = deps.computers.notified() => {}
            () = tokio::time::sleep(wait), if failed > 0 => {}
        }
    }
}

async fn give_all_back(deps: &Deps) -> bool {
    let all: Vec<ComputerRecord> = deps.store.readable(&Key::all(b'b')).unwrap_or_default();
    let mut done = true;
    for record in all.iter().filter(|record| record.giving_back) {
        tokio::select! {
            () = deps.shutdown.stopping().cancelled() => return true,
            given = give_one_back(deps, record) => done &= given,
        }
    }
    done
}

/// Releases, at a start, the computers of sessions that are not there any more; those that are do it themselves.
async fn release_left(deps: &Deps) -> Result<(), StoreError> {
    let all: Vec<ComputerRecord> = deps.store.readable(&Key::all(b'b'))?;
    let is_gone = |record: &ComputerRecord| {
        let session = deps.store.get::<SessionRecord>(&Key::session(&record.session));
        session.is_ok_and(|found| found.is_none())
    };
    let left = all.into_iter().filter(|record| !record.giving_back && is_gone(record));
    let changes: Vec<Change> = left.map(|record| unused(deps, record)).collect();
    if changes.is_empty() {
        return Ok(());
    }
    deps.store.commit(Commit::owed(changes)).await.map(|_| ())
}

/// Returns the sessions that have a computer on record: those that ended without giving it back are to be woken.
pub fn users(deps: &Deps) -> Vec<SessionId> {
    let all: Vec<ComputerRecord> = deps.store.readable(&Key::all(b'b')).unwrap_or_default();
    all.into_iter().filter(|record| !record.giving_back).map(|record| record.session).collect()
}

/// Wakes [`keep_giving_back`].
pub type Wake = Notify;
