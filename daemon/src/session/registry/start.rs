//! Taking up what the last daemon left: first it is counted, then what could be fatal comes last and alone.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::iter;
use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::EventType;
use nano_protocol::id::SessionId;
use nano_protocol::session::SessionState;
use nano_protocol::task::{Origin, TaskState};

use serde_json::json;

use super::Registry;
use crate::session::actor::Command;
use crate::session::computer;
use crate::session::processes;
use crate::session::recovery::{forget_spools, step};
use crate::session::restore::{interrupt, open_tasks};
use crate::session::tries::{self, Start};
use crate::store::record::{Draft, SessionRecord, Tries};
use crate::store::{Change, Commit, Key, StoreError};

/// So many sessions are read at once: all of them together would keep the first clients waiting.
const AT_ONCE: usize = 8;
/// So long the next ones wait for one, whose workspace may lie on a disk that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long who asks for an actor waits for the count: on a full disk it may be long in coming.
const COUNT: Duration = Duration::from_secs(3);
/// How long the count waits for a store that cannot be read now.
const AGAIN: Duration = Duration::from_millis(500);
/// How long the mark of an orderly end waits for room.
const MARK: Duration = Duration::from_millis(500);
/// What says that the last daemon did not die.
const STOPPED: &str = "stopped";

/// What is to be taken up, in this order.
#[derive(Debug, Default)]
struct Left {
    together: Vec<SessionId>,
    alone: Vec<(SessionId, Tries)>,
}

impl Registry {
    /// Takes up what the last daemon left, once that is counted on record; until then no session is restored. On a full
    /// disk that waits for room.
    pub async fn begin(self) {
        let left = loop {
            match self.count().await {
                Ok(left) => break left,
                Err(StoreError::NoRoom(_)) if self.is_open().is_ok() => tokio::time::sleep(AGAIN).await,
                Err(error) => return drop(self.deps.store_failed(&error)),
            }
        };
        self.counted.cancel();
        tokio::select! {
            biased;
            () = self.deps.shutdown.stopping().cancelled() => {}
            () = self.wake(left) => {}
        }
    }

    /// Lets who needs an actor wait a little for the count: a death of what was restored before it would not be counted.
    pub(in crate::session) async fn is_counted(&self) -> Result<(), RpcError> {
        let counted = tokio::time::timeout(COUNT, self.counted.cancelled());
        tokio::select! {
            biased;
            counted = counted => counted.map_err(|_| {
                let message = "no session is taken up before the start is on record, and the disk takes nothing";
                RpcError::new(ErrorKind::Unavailable, message).hint("free some space there and ask again")
            }),
            () = self.deps.shutdown.stopping().cancelled() => self.is_open(),
        }
    }

    /// Counts, in one commit, what will be taken up, unless the last daemon ended in an orderly way; what the daemon has
    /// died of too often is left for a person.
    async fn count(&self) -> Result<Left, StoreError> {
        let store = &self.deps.store;
        let clean = match store.get::<bool>(&Key::meta(STOPPED)) {
            Err(StoreError::Damaged(_)) => false,
            mark => mark?.is_some(),
        };
        let mut changes = if clean { vec![Change::Delete(Key::meta(STOPPED))] } else { Vec::new() };
        changes.extend(processes::lost(&self.deps)?);
        let mut left = Left::default();
        let mut all = Vec::new();
        let unfinished = self.unfinished();
        self.forget_spools(&unfinished).await;
        for id in unfinished {
            let tries = tries::of(&self.deps, &id)?;
            all.extend((!tries.parked).then_some((id, tries)));
        }
        let suspects = all.iter().any(|(_, tries)| tries.under_way);
        for (id, tries) in all {
            if clean {
                left.together.push(id);
                continue;
            }
            match self.weigh(&id, &tries, suspects, &mut changes) {
                Ok(Start::Together(_)) => left.together.push(id),
                Ok(Start::Alone(tries)) => left.alone.push((id, tries)),
                Ok(Start::Waits(_)) => {}
                Err(error @ StoreError::Damaged(_)) => tracing::error!(session = %id, %error, "it is not taken up"),
                Err(error) => return Err(error),
            }
        }
        if !changes.is_empty() {
            store.commit(Commit::owed(changes)).await?;
        }
        Ok(left)
    }

    /// Decides about one session, and adds what is recorded of that now.
    fn weigh(
        &self,
        id: &SessionId,
        tries: &Tries,
        suspects: bool,
        changes: &mut Vec<Change>,
    ) -> Result<Start, StoreError> {
        let works = self.deps.store.ids_backwards(&Key::below(b'o', &id.0), None).next().transpose()?.is_some();
        let start = tries::decide(tries, step(&self.deps, id)?.number, suspects, works);
        match &start {
            Start::Together(tries) => changes.push(tries::put(id, tries)),
            Start::Alone(_) => {}
            Start::Waits(tries) => changes.extend(self.park(id, tries)?),
        }
        Ok(start)
    }

    /// Removes what programs had printed whose results are on record: the daemon died before it did that itself.
    async fn forget_spools(&self, unfinished: &[SessionId]) {
        let unfinished: BTreeSet<&SessionId> = unfinished.iter().collect();
        let known: BTreeSet<SessionId> = self.lock().sessions.keys().cloned().collect();
        let over = known.into_iter().filter(|id| !unfinished.contains(id));
        let folders: Vec<PathBuf> = over.map(|id| self.deps.spill(&id)).collect();
        let forget = move || folders.iter().for_each(|folder| forget_spools(folder));
        // One that fails leaves small files behind.
        tokio::task::spawn_blocking(forget).await.ok();
    }

    /// Has a session wait for a person: with its task, if it has one.
    fn park(&self, id: &SessionId, tries: &Tries) -> Result<Vec<Change>, StoreError> {
        let step = step(&self.deps, id)?;
        tracing::error!(session = %id, step = step.told, "the daemon died here {} times: it waits for a person", tries.times);
        let message = format!(
            "the daemon died {} times of session {id}, the last time at {}; it is not taken up before somebody asks",
            tries.times, step.told
        );
        let (session, data) = (Some(id.clone()), json!({ "message": message }));
        let warning = Change::Event(Draft { session, task: None, kind: EventType::Warning, data });
        let mut changes = vec![tries::put(id, tries), warning];
        if let Some(mut record) = self.deps.store.get::<SessionRecord>(&Key::session(id))?
            && record.session.state != SessionState::Closed
        {
            record.session.state = SessionState::Interrupted;
            changes.push(Change::session(&record));
        }
        let Some(mut first) =
            open_tasks(&self.deps, id)?.into_iter().next().filter(|first| first.task.state != TaskState::Interrupted)
        else {
            return Ok(changes);
        };
        first.task.error = Some(step.parks(tries.times, &first.task.id));
        changes.extend(interrupt(&mut first));
        Ok(changes)
    }

    /// Takes up what had something to do when the last daemon ended.
    async fn wake(&self, left: Left) {
        let Left { together, alone } = left;
        iter(together).for_each_concurrent(AT_ONCE, |id| async move { self.take_up(&id).await }).await;
        for (id, tries) in alone {
            let counted = self.deps.store.commit(Commit::owed(vec![tries::put(&id, &tries)])).await;
            if counted.is_ok() {
                self.take_up(&id).await;
            }
        }
    }

    async fn take_up(&self, id: &SessionId) {
        let record: Option<SessionRecord> = self.deps.store.get(&Key::session(id)).ok().flatten();
        if record.is_some_and(|record| self.is_orphan(&record.session)) {
            return self.close_orphan(id).await;
        }
        // An actor that cannot start has said so in the log; the others go on.
        if tokio::time::timeout(PATIENCE, self.ask(id, |reply| Command::Wake(Some(reply)))).await.is_err() {
            tracing::warn!(session = %id, "it takes long to take up this session; the others go on");
        }
    }

    /// Returns the sessions that have something to do, or had when the last daemon ended.
    fn unfinished(&self) -> Vec<SessionId> {
        let users = computer::users(&self.deps);
        let has = |kind: u8, id: &SessionId| self.deps.store.may_hold(&Key::below(kind, &id.0));
        let all: Vec<SessionId> = self.lock().sessions.keys().cloned().collect();
        let works = |id: &SessionId| {
            let record: Option<SessionRecord> = self.deps.store.get(&Key::session(id)).ok().flatten();
            let Some(record) = record else { return false };
            let busy = matches!(record.session.state, SessionState::Running | SessionState::Interrupted);
            let over = record.ephemeral || record.session.state == SessionState::Closed;
            let left = over && users.contains(id);
            has(b'o', id) || has(b'd', id) || left || busy || record.closing || self.is_orphan(&record.session)
        };
        all.into_iter().filter(works).collect()
    }

    /// Puts on record that this daemon did not die; where it has not even counted, the store is as the last one left it.
    pub async fn stopped(&self) {
        if !self.counted.is_cancelled() {
            return;
        }
        let mark = Change::put(Key::meta(STOPPED), &true);
        match tokio::time::timeout(MARK, self.deps.store.commit(Commit::owed(vec![mark]))).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "this end will count as a death"),
            Err(_) => tracing::warn!("the disk takes nothing: this end will count as a death"),
        }
    }

    /// Refuses what no person asks for of a session that waits for one.
    pub(super) fn may_take_up(&self, id: &SessionId, command: &Command) -> Result<(), RpcError> {
        let own = match command {
            Command::Submit(submission, _) => submission.origin != Origin::User,
            Command::Lend(..) | Command::Children | Command::Unhear(..) => true,
            // The first is counted.
            Command::Wake(_)
            | Command::Steer(..)
            | Command::Cancel(..)
            | Command::Resume(..)
            | Command::Withdraw(..)
            | Command::Boot(_)
            | Command::Answer(..)
            | Command::Close(_) => false,
        };
        if own && self.is_parked(id) { Err(waits(id)) } else { Ok(()) }
    }

    /// Refuses what the daemon itself wants of a session that waits for a person; what nobody else may take up is dealt
    /// with on record.
    pub fn is_within_reach(&self, id: &SessionId) -> Result<(), RpcError> {
        let alive = |entry: &super::Entry| entry.inbox.as_ref().is_some_and(|inbox| !inbox.is_closed());
        let lives = self.lock().sessions.get(id).is_some_and(alive);
        if !lives && self.is_parked(id) { Err(waits(id)) } else { Ok(()) }
    }

    fn is_parked(&self, id: &SessionId) -> bool {
        tries::of(&self.deps, id).is_ok_and(|tries| tries.parked)
    }
}

fn waits(id: &SessionId) -> RpcError {
    let message = format!("session {id} is not taken up: the daemon died of that again and again");
    RpcError::new(ErrorKind::Unavailable, message).hint("nanoctl tasks -s SESSION says more")
}
