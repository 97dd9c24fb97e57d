//! Closing each call that was open, or taking it up again.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use nano_protocol::id::MessageId;
use nano_protocol::message::{Message, NotRun, Role};

use super::Settled;
use super::calls::{Interrupted, Open, Verdict, held, verdict};
use crate::sandbox::output::readable;
use crate::sandbox::spool;
use crate::sandbox::workspace::Workspace;
use crate::session::actor::OpenCall;
use crate::session::approving::{self, Gate};
use crate::session::children;
use crate::session::deps::Deps;
use crate::session::task::Left;
use crate::session::transcript;
use crate::store::record::SessionRecord;
use crate::store::record::call::{CallRecord, CallResult, Intent};
use crate::store::{Change, Key};
use crate::tools::class::Class;
use crate::tools::intents::{self, Looked};

/// So much of what a program printed last is shown.
const SHOWN: usize = 4 * 1024;

/// Decides on every open call; `goes_on`: their task goes on by itself, unless one of them is too dangerous for that.
pub async fn settle(deps: &Deps, record: &SessionRecord, interrupted: Interrupted, goes_on: bool) -> Settled {
    let Interrupted { task, kept, open } = interrupted;
    let held = held(&open);
    let goes_on = goes_on && held.is_none();
    let mut settled = Settled { held, ..Settled::default() };
    settled.left.extend(kept.iter().map(|_| Left::Kept));
    settled.open.extend(kept.into_iter().map(OpenCall::new));
    for one in open {
        let waits = one.waits.clone().filter(|_| goes_on);
        if let (Some(approval), None) = (&one.waits, &waits) {
            let why = "the daemon died, and its task does not go on by itself";
            settled.changes.extend(approving::ended(approval, deps.clock.now(), why));
        }
        let verdict = if waits.is_some() { Verdict::Waits } else { verdict(one.class, one.record.as_ref(), goes_on) };
        let result = result(deps, record, &one, verdict).await;
        let id = MessageId::from_ulid(&deps.clock.ulid());
        let mut message = Message::text(id, task.clone(), Role::Tool, "", deps.clock.now());
        result.clone().tell(one.call.clone(), &mut message);
        children::reword(deps, &record.session.id, &mut message);
        let result = CallResult { content: message.content.clone(), ..result };
        settled.left.push(match verdict {
            Verdict::Again => Left::Again { read_only: one.read_only },
            Verdict::Never => Left::Never,
            Verdict::Waits => Left::Waits,
            Verdict::Known | Verdict::Look | Verdict::Unknown => Left::Ended,
        });
        settled.results.push(message);
        let blank = OpenCall::new(one.call);
        let record = one.record.unwrap_or_else(|| blank.record.clone());
        let record = CallRecord { approval: waits.as_ref().map(|one| one.id.clone()).or(record.approval), ..record };
        let gate = waits.map_or(Gate::Open, |approval| Gate::Waits(Box::new(approval)));
        settled.open.push(OpenCall { record, result: Some(result), gate, ..blank });
    }
    record_all(record, &mut settled);
    settled
}

/// Says what is recorded: every result, in its place; or, where a call runs again, those that are known, for their turn.
fn record_all(record: &SessionRecord, settled: &mut Settled) {
    let session = &record.session.id;
    if settled.left.iter().any(|left| matches!(left, Left::Again { .. } | Left::Waits)) {
        for (at, (left, open)) in settled.left.iter().zip(&settled.open).enumerate() {
            if *left == Left::Ended {
                let known = CallRecord { result: open.result.clone(), ..open.record.clone() };
                settled.changes.push(Change::put(Key::call(session, at), &known));
            }
        }
        return;
    }
    let kept = settled.left.len() - settled.results.len();
    for (at, message) in settled.results.iter().enumerate() {
        settled.changes.push(Change::Delete(Key::call(session, kept + at)));
        settled.changes.push(Change::Message(session.clone(), Box::new(message.clone())));
    }
    (settled.left, settled.open) = (Vec::new(), Vec::new());
}

/// Returns what a call came to; of one that runs again, what it came to if it cannot.
async fn result(deps: &Deps, record: &SessionRecord, open: &Open, verdict: Verdict) -> CallResult {
    let stored = open.record.clone().unwrap_or_default();
    match verdict {
        Verdict::Known => stored.result.unwrap_or_default(),
        Verdict::Never | Verdict::Waits => super::not_run(NotRun::Restart),
        Verdict::Look => look(deps, record, stored).await,
        Verdict::Again | Verdict::Unknown => unknown(told(deps, record, open, &stored)),
    }
}

fn unknown(content: String) -> CallResult {
    CallResult { content, unknown: true, ..CallResult::default() }
}

/// Looks what became of a file.
async fn look(deps: &Deps, record: &SessionRecord, stored: CallRecord) -> CallResult {
    let untouched = || {
        let content = "Not run: the daemon died before the file was changed; it is as it was.".into();
        CallResult { content, ..super::not_run(NotRun::Restart) }
    };
    // What is about to be done is on record before it is done.
    let Some(intent) = stored.intent else { return untouched() };
    let restrict = record.restricted || deps.agent(&record.session.agent).restrict_to_workspace;
    let (workspace, begun) = (record.session.workspace.clone(), stored.begun.unwrap_or_default().0);
    let (from, until) = (begun.unsigned_abs(), deps.started_at.0.unsigned_abs());
    let path = intent.path.clone();
    let says = intent.says.clone();
    let looked =
        tokio::task::spawn_blocking(move || look_at(Path::new(&workspace), restrict, &intent, from, until)).await;
    match looked.unwrap_or_else(|why| Looked::Else(why.to_string())) {
        Looked::Done => CallResult { content: says, ok: true, ..CallResult::default() },
        Looked::Untouched => untouched(),
        Looked::Else(why) => unknown(format!(
            "Interrupted: the daemon died while this changed {path}, and whether it did is unknown: {why}. Read the \
             file before you change it."
        )),
    }
}

fn look_at(workspace: &Path, restrict: bool, intent: &Intent, from_ms: u64, until_ms: u64) -> Looked {
    match Workspace::open(workspace, restrict) {
        Ok(workspace) => intents::look(&workspace, intent, from_ms, until_ms),
        Err(why) => Looked::Else(format!("{}: {why}", workspace.display())),
    }
}

/// Tells what is known of a call that died with the daemon.
fn told(deps: &Deps, record: &SessionRecord, open: &Open, stored: &CallRecord) -> String {
    let mut parts = vec![transcript::UNKNOWN.to_owned()];
    if open.class == Class::Pure {
        parts.push("It changes nothing: make the call again if you need what it tells.".into());
    }
    let Some(begun) = stored.begun else { return parts.join(" ") };
    let most = millis(deps.clock.now().0 - begun.0);
    parts.push(format!("It had begun at {begun} and ran for {most:?} at most."));
    let path = intents::spool(&deps.spill(&record.session.id), &open.call.id);
    if let Some((end, at)) = spool::read(&path).filter(|(end, _)| !end.is_empty()) {
        let at = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let after = millis(i64::try_from(at.as_millis()).unwrap_or(i64::MAX) - begun.0);
        let shown = readable(end.get(end.len().saturating_sub(SHOWN)..).unwrap_or_default());
        parts.push(format!("What it had printed last, {after:?} after its beginning:\n{}", shown.trim_end()));
    }
    parts.join(" ")
}

fn millis(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
