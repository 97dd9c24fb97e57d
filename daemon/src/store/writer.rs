//! The writer: one thread takes a commit, drains what waits, and appends it to the journal as one group with one sync.
//! Then the memory sees it, then it is published, then it is answered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use nano_protocol::event::Event;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot, watch};

use super::encode::{self, Numbers};
use super::ground::Ground;
use super::journal::AppendError;
use super::journal::line::Line;
use super::keeper::Keeper;
use super::memory::Memory;
use super::{Answer, Commit, Gate, Publish, Receipt, Request, StoreError};
use crate::clock::Clock;
use crate::crash;

/// The most commits that become durable together; more only makes the first wait longer.
const GROUP: usize = 256;
/// How often the memory is opened again that finds no room where there is some.
const TRIES: u32 = 20;
/// How long what is owed waits for room before it is tried again.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Writer {
    pub ground: Arc<Ground>,
    pub numbers: Numbers,
    pub memory: Gate,
    pub publish: Publish,
    pub waiting: Arc<AtomicBool>,
    pub failure: Arc<watch::Sender<Option<StoreError>>>,
    pub keeper: Keeper,
    /// What is owed and found no room yet, oldest first.
    pub owed: Vec<Waiting>,
}

/// A commit and who waits for it.
pub(super) struct Waiting {
    pub commit: Commit,
    pub answer: Option<Answer>,
}

impl Waiting {
    fn answer(self, outcome: Result<Receipt, StoreError>) {
        if let Some(answer) = self.answer {
            // Nobody waits any more: what came of it stands all the same.
            drop(answer.send(outcome));
        }
    }
}

/// What there is to do.
#[derive(Default)]
struct Group {
    commits: Vec<Waiting>,
    closing: Option<oneshot::Sender<()>>,
    /// Whether nothing more can come.
    last: bool,
}

impl Writer {
    /// Starts the thread; it ends when the last handle is gone or the store is closed, or at the first failure.
    pub(super) fn start(self, requests: mpsc::Receiver<Request>) -> std::io::Result<()> {
        let failure = self.failure.clone();
        let work = move || {
            if catch_unwind(AssertUnwindSafe(|| self.run(requests))).is_err() {
                failure.send_replace(Some(StoreError::Failed("its writer panicked".into())));
            }
        };
        std::thread::Builder::new().name("store-writer".into()).spawn(work).map(|_| ())
    }

    fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let (closing, failed) = loop {
            let group = self.next(&mut requests);
            let (closing, last) = (group.closing, group.last);
            if let Err(error) = self.record(group.commits) {
                tracing::error!(%error, "the store failed; nothing more is accepted");
                // After a failed sync a second one may lie: this thread ends, and with it the daemon.
                break (closing, true);
            }
            if last || closing.is_some() {
                break (closing, false);
            }
        };
        // Who still asks is told that this is the end.
        drop(requests);
        self.keeper.end();
        if !failed {
            self.memory.write().unwrap_or_else(PoisonError::into_inner).take();
        }
        drop(self);
        if let Some(closing) = closing {
            // Who closed it may have stopped waiting.
            closing.send(()).ok();
        }
    }

    /// Waits for something to do and takes what there is.
    fn next(&mut self, requests: &mut mpsc::Receiver<Request>) -> Group {
        let mut group = Group { commits: std::mem::take(&mut self.owed), ..Group::default() };
        if group.commits.is_empty() {
            match requests.blocking_recv() {
                Some(request) => group.take(request),
                None => group.last = true,
            }
        } else {
            std::thread::park_timeout(PAUSE);
        }
        // What waits for room must not keep those from an answer who can be refused.
        let most = group.commits.len() + GROUP;
        while group.commits.len() < most && group.closing.is_none() {
            match requests.try_recv() {
                Ok(request) => group.take(request),
                Err(TryRecvError::Disconnected) => {
                    group.last = true;
                    break;
                }
                Err(TryRecvError::Empty) => break,
            }
        }
        group
    }

    /// Makes commits durable. One that is asked for is refused where there is no room, and what is owed waits; only a
    /// failure ends the store.
    pub(super) fn record(&mut self, commits: Vec<Waiting>) -> Result<(), StoreError> {
        let asked = commits.iter().any(|one| one.commit.asked);
        let shortage = if asked { self.ground.room.shortage() } else { None };
        let mut commits = match shortage {
            Some(why) => refuse(commits, &why),
            None => commits,
        };
        while !commits.is_empty() && self.owed.is_empty() {
            // One may still find room where many do not.
            let most = if self.waiting.load(Ordering::Relaxed) { 1 } else { GROUP };
            let rest = commits.split_off(most.min(commits.len()));
            self.record_group(commits)?;
            commits = rest;
        }
        if !commits.is_empty() {
            self.owed.extend(refuse(commits, &self.ground.room.told("takes nothing")));
        }
        Ok(())
    }

    /// Makes one group durable; where it finds no room, what of it is owed is kept.
    fn record_group(&mut self, commits: Vec<Waiting>) -> Result<(), StoreError> {
        let (mut numbers, now) = (self.numbers, Clock::default().now());
        let (lines, receipts): (Vec<Line>, Vec<Receipt>) =
            commits.iter().map(|one| encode::line(one.commit.clone(), &mut numbers, now)).unzip();
        match self.ground.append(&lines) {
            Ok(()) => {
                self.waiting.store(false, Ordering::Relaxed);
                self.numbers = Numbers { synced: numbers.line, ..numbers };
            }
            Err(error @ AppendError::Write(_)) => {
                self.wait_for_room(commits, &error.to_string());
                return Ok(());
            }
            Err(error @ AppendError::Sync(_)) => return Err(self.fail(commits, StoreError::Failed(error.to_string()))),
        }
        let events: Vec<Arc<Event>> = receipts.iter().flatten().cloned().collect();
        if let Err(error) = self.show(&lines, &events) {
            return Err(self.fail(commits, error));
        }
        commits.into_iter().zip(receipts).for_each(|(one, receipt)| one.answer(Ok(receipt)));
        Ok(())
    }

    fn wait_for_room(&mut self, commits: Vec<Waiting>, why: &str) {
        self.owed = refuse(commits, &self.ground.room.told(&format!("takes nothing: {why}")));
        if !self.owed.is_empty() && !self.ground.room.release() && !self.waiting.swap(true, Ordering::Relaxed) {
            tracing::error!(why, "the disk takes nothing; what has happened waits to be recorded");
        }
    }

    /// Lets the memory see lines that are durable, and publishes their events: who asked must find what it was told.
    fn show(&self, lines: &[Line], events: &[Arc<Event>]) -> Result<(), StoreError> {
        let mut tries = 0;
        let gate = loop {
            let mut gate = self.memory.write().unwrap_or_else(PoisonError::into_inner);
            match self.apply(lines, &mut gate) {
                Ok(()) => break gate,
                Err(StoreError::NoRoom(_)) if tries < TRIES || self.ground.room.shortage().is_some() => {}
                Err(error) => return Err(StoreError::Failed(error.to_string())),
            }
            drop(gate);
            tries += 1;
            std::thread::park_timeout(PAUSE);
        };
        crash::point("store.publish.before");
        let told = catch_unwind(AssertUnwindSafe(|| (self.publish)(events)));
        crash::point("store.publish.after");
        drop(gate);
        self.keeper.applied();
        told.map_err(|_| StoreError::Failed("publishing panicked".into()))
    }
}

impl Writer {
    fn apply(&self, lines: &[Line], gate: &mut Option<Memory>) -> Result<(), StoreError> {
        let through = lines.last().map(|line| line.number);
        let applied = match gate.as_ref() {
            Some(memory) => memory.apply(lines.iter().flat_map(|line| &line.entries), through),
            None => Err(StoreError::NoRoom("the memory found no room".into())),
        };
        // Brought up anew, it has these lines with all others.
        applied.or_else(|error| self.ground.revive(gate, &error))
    }

    /// Tells everybody that this is the end, and only then those who wait: who goes by their word must find it.
    fn fail(&self, commits: Vec<Waiting>, error: StoreError) -> StoreError {
        self.failure.send_replace(Some(error.clone()));
        for one in commits {
            one.answer(Err(error.clone()));
        }
        error
    }
}

impl Group {
    fn take(&mut self, request: Request) {
        match request {
            Request::Commit(commit, answer) => self.commits.push(Waiting { commit, answer: Some(answer) }),
            Request::Close(closing) => self.closing = Some(closing),
        }
    }
}

/// Refuses what is asked for, and returns what is owed.
fn refuse(commits: Vec<Waiting>, why: &str) -> Vec<Waiting> {
    let (asked, owed): (Vec<_>, Vec<_>) = commits.into_iter().partition(|one| one.commit.asked);
    for one in asked {
        one.answer(Err(StoreError::NoRoom(why.to_owned())));
    }
    owed
}
