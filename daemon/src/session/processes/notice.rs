//! Telling a session of an end: once, as a note that waits for the next model request, or by the call that shows it.

use nano_protocol::event::EventType;
use nano_protocol::id::{MessageId, ProcessId, SessionId};
use nano_protocol::session::{Delivery, SessionState};
use serde_json::json;

use super::reading::record;
use super::said;
use crate::crash;
use crate::session::actor::{Actor, OpenCall};
use crate::session::deps::Deps;
use crate::session::task::Input;
use crate::store::record::{Draft, SessionRecord, SteeringRecord};
use crate::store::{Change, Key, StoreError};

/// Returns the ends that are untold, oldest first.
pub(in crate::session) fn untold(deps: &Deps, session: &SessionId) -> Result<Vec<ProcessId>, StoreError> {
    Ok(deps.store.ids(&Key::below(b'n', &session.0))?.into_iter().map(ProcessId).collect())
}

fn source(id: &ProcessId) -> String {
    format!("process {id}")
}

/// Returns what a session reads of an end.
fn told(deps: &Deps, id: &ProcessId) -> Result<String, StoreError> {
    match record(deps, id) {
        Ok(Some(record)) => Ok(said::notice(&record)),
        Ok(None) => Ok(format!("Background process {id} ended; its record is gone.")),
        Err(StoreError::Damaged(_)) => Ok(format!("Background process {id} ended; its record is damaged.")),
        Err(error) => Err(error),
    }
}

/// Makes waiting notes of what is untold when a session is taken up; returns what is to be recorded of that.
pub(in crate::session) fn take_untold(
    deps: &Deps,
    record: &SessionRecord,
    steering: &mut Vec<SteeringRecord>,
) -> Result<Vec<Change>, StoreError> {
    let (session, mut changes) = (&record.session.id, Vec::new());
    for id in untold(deps, session)? {
        changes.push(Change::Delete(Key::untold(session, &id)));
        if record.session.state == SessionState::Closed {
            continue;
        }
        let now = deps.clock.now();
        let note = SteeringRecord {
            id: MessageId::from_ulid(&deps.clock.ulid()),
            place: steering.last().map_or(now.0.cast_unsigned(), |last| last.place + 1),
            delivery: Delivery::Note,
            content: told(deps, &id)?,
            source: Some(source(&id)),
            metadata: None,
            at: now,
        };
        let queued = Draft {
            session: Some(session.clone()),
            task: None,
            kind: EventType::SteeringQueued,
            data: json!({"message": note.id, "delivery": note.delivery}),
        };
        changes.extend([Change::steering(session, &note), Change::Event(queued)]);
        steering.push(note);
    }
    Ok(changes)
}

impl Actor {
    /// Tells of ends, unless a call that runs does that itself.
    pub(in crate::session) async fn hear_processes(&mut self) -> Result<(), StoreError> {
        let session = self.record.session.id.clone();
        for id in untold(&self.deps, &session)? {
            let key = Key::untold(&session, &id);
            if self.record.session.state == SessionState::Closed {
                self.commit(vec![Change::Delete(key)]).await?;
            } else if !self.open.iter().any(|open| shows(&self.deps, open, &id)) {
                let content = told(&self.deps, &id)?;
                crash::point("process.note.before");
                self.note_end(key, source(&id), content).await?;
                crash::point("process.note.after");
            }
        }
        Ok(())
    }

    /// Takes back the notes of these ends: a call is about to show them.
    pub(in crate::session) async fn unhear(&mut self, ids: &[ProcessId]) -> Result<(), StoreError> {
        let (mut effects, mut changes) = (Vec::new(), Vec::new());
        for id in ids {
            let source = source(id);
            let note = self.steering.iter().find(|note| note.source.as_ref() == Some(&source));
            if let Some(note) = note.map(|note| note.id.clone()) {
                effects.extend(self.machine.on(Input::Withdraw(note.0)));
                changes.push(Change::put(Key::untold(&self.record.session.id, id), &1));
            }
        }
        if changes.is_empty() { Ok(()) } else { self.apply(effects, changes).await }
    }
}

/// Tells whether a running call may show the end of this one.
fn shows(deps: &Deps, open: &OpenCall, id: &ProcessId) -> bool {
    let argument = |name: &str| open.call.arguments.get(name).and_then(|text| text.as_str());
    let looks = open.call.name == "process" && (argument("action") == Some("list") || argument("id") == Some(&id.0));
    let begins = || {
        let begun = record(deps, id).ok().flatten();
        begun.is_some_and(|record| record.process.call == open.call.id)
    };
    open.stop.is_some() && (looks || begins())
}
