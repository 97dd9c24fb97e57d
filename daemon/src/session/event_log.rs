//! The event log: the newest numbered events in memory, the store as archive, and a losable side channel for deltas.
//!
//! Readers pull from a cursor, so a slow one reads longer and never holds up a session. What is published here is
//! durable already: `seen_implies_durable`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use nano_protocol::event::{Event, EventType};
use nano_protocol::id::{SessionId, TaskId};
use nano_protocol::time::Timestamp;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::configured::Live;
use crate::clock::Clock;
use crate::store::{Change, Commit, Key, Store, StoreError};

/// How often old events are looked for.
const PRUNE: Duration = Duration::from_hours(6);

/// Removes events that are older than the config keeps them, now and then until the daemon goes down.
pub async fn keep_short(store: Store, clock: Clock, live: Live, stopping: CancellationToken) {
    let mut changes = live.changes();
    loop {
        let keep = live.now().config.daemon.keep_events.as_millis();
        let keep = i64::try_from(keep).unwrap_or(i64::MAX);
        let oldest = Timestamp(clock.now().0.saturating_sub(keep));
        match prune(&store, oldest).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "old events were removed"),
            Err(error) => return tracing::error!(%error, "old events cannot be removed"),
        }
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(PRUNE) => {}
            // It is never the last one: `live` is ours.
            _ = changes.changed() => {}
        }
    }
}

async fn prune(store: &Store, oldest: Timestamp) -> Result<usize, StoreError> {
    let mut removed = 0;
    loop {
        let page = store.events(0, 256)?;
        let old = page.iter().take_while(|event| event.at < oldest).filter_map(|event| event.seq);
        let changes: Vec<Change> = old.map(|seq| Change::Delete(Key::event(seq))).collect();
        if changes.is_empty() {
            return Ok(removed);
        }
        removed += changes.len();
        store.commit(Commit::owed(changes)).await?;
    }
}

/// How many bytes of events stay in memory.
const RING_BYTES: usize = 4 * 1024 * 1024;
/// How many deltas a slow reader may lag before it loses some.
const DELTAS: usize = 1024;

/// An event with its JSON text, encoded once for all readers.
pub struct Published {
    /// The event without its data.
    pub seq: u64,
    /// The session it happened in.
    pub session: Option<SessionId>,
    /// The task it happened in.
    pub task: Option<TaskId>,
    /// What happened.
    pub kind: EventType,
    /// The whole event.
    pub json: Box<RawValue>,
}

impl Published {
    fn new(event: &Event) -> Option<Arc<Self>> {
        let json = serde_json::value::to_raw_value(event).ok()?;
        let (session, task) = (event.session.clone(), event.task.clone());
        Some(Arc::new(Self { seq: event.seq.unwrap_or(0), session, task, kind: event.kind, json }))
    }
}

#[derive(Default)]
struct Ring {
    events: VecDeque<Arc<Published>>,
    bytes: usize,
    /// Every number above this one is in the ring.
    floor: u64,
}

/// Who is there to answer what a session asks.
pub trait Answers: Send + Sync {
    /// Tells whether a question of this task is put to them.
    fn is_asked(&self, session: &SessionId, task: &TaskId) -> bool;
}

struct Inner {
    ring: Mutex<Ring>,
    /// They are gone when nobody else holds them.
    there: Mutex<Vec<Weak<dyn Answers>>>,
    head: watch::Sender<u64>,
    /// Grows when a task has come to rest.
    settled: watch::Sender<u64>,
    deltas: broadcast::Sender<Arc<Published>>,
}

/// The log; clones share it.
#[derive(Clone)]
pub struct EventLog {
    inner: Arc<Inner>,
}

impl Default for EventLog {
    fn default() -> Self {
        let inner = Inner {
            ring: Mutex::default(),
            there: Mutex::default(),
            head: watch::Sender::new(0),
            settled: watch::Sender::new(0),
            deltas: broadcast::Sender::new(DELTAS),
        };
        Self { inner: Arc::new(inner) }
    }
}

impl EventLog {
    /// Starts behind `head`: what came before is in the store.
    pub fn start(&self, head: u64) {
        self.ring(|ring| ring.floor = head);
        self.inner.head.send_replace(head);
    }

    /// Takes events that are durable, in order of their numbers.
    pub fn publish(&self, events: &[Arc<Event>]) {
        let Some(last) = events.last().and_then(|event| event.seq) else { return };
        self.ring(|ring| {
            for event in events.iter().filter_map(|event| Published::new(event)) {
                ring.bytes += event.json.get().len();
                ring.events.push_back(event);
            }
            while ring.bytes > RING_BYTES {
                let Some(oldest) = ring.events.pop_front() else { break };
                ring.bytes -= oldest.json.get().len();
                ring.floor = oldest.seq;
            }
        });
        self.inner.head.send_replace(last);
        let rests = |event: &Arc<Event>| matches!(event.kind, EventType::TaskFinished | EventType::TaskInterrupted);
        if events.iter().any(rests) {
            self.inner.settled.send_replace(last);
        }
    }

    /// Forgets the events of a session that is being deleted.
    pub fn forget(&self, session: &SessionId) {
        self.ring(|ring| {
            ring.events.retain(|event| event.session.as_ref() != Some(session));
            ring.bytes = ring.events.iter().map(|event| event.json.get().len()).sum();
        });
    }

    /// Sends a piece of a reply or of output to who listens now.
    pub fn delta(&self, event: &Event) {
        if self.inner.deltas.receiver_count() > 0
            && let Some(event) = Published::new(event)
        {
            // Nobody listening any more is no error.
            drop(self.inner.deltas.send(event));
        }
    }

    /// Takes note that somebody is there to answer, until nobody else holds them.
    pub fn is_there(&self, one: Weak<dyn Answers>) {
        let mut there = self.inner.there.lock().unwrap_or_else(PoisonError::into_inner);
        there.retain(|one| one.strong_count() > 0);
        there.push(one);
    }

    /// Tells whether anybody is there to answer a question of this task.
    pub fn may_be_answered(&self, session: &SessionId, task: &TaskId) -> bool {
        let there = self.inner.there.lock().unwrap_or_else(PoisonError::into_inner);
        there.iter().filter_map(Weak::upgrade).any(|one| one.is_asked(session, task))
    }

    /// Returns the newest number, and a receiver that tells when it grows.
    pub fn head(&self) -> watch::Receiver<u64> {
        self.inner.head.subscribe()
    }

    /// Returns a receiver that tells when a task has come to rest.
    pub fn settled(&self) -> watch::Receiver<u64> {
        self.inner.settled.subscribe()
    }

    /// Returns a receiver of deltas from now on.
    pub fn deltas(&self) -> broadcast::Receiver<Arc<Published>> {
        self.inner.deltas.subscribe()
    }

    /// Returns events with a number above `after`, oldest first, at most `limit`.
    pub fn read(&self, store: &Store, after: u64, limit: usize) -> Result<Vec<Arc<Published>>, StoreError> {
        let recent = self.ring(|ring| {
            (after >= ring.floor).then(|| {
                let from = ring.events.partition_point(|event| event.seq <= after);
                ring.events.iter().skip(from).take(limit).cloned().collect()
            })
        });
        match recent {
            Some(events) => Ok(events),
            None => Ok(store.events(after, limit)?.iter().filter_map(Published::new).collect()),
        }
    }

    fn ring<T>(&self, with: impl FnOnce(&mut Ring) -> T) -> T {
        with(&mut self.inner.ring.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
