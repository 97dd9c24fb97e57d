//! The writer: one thread takes a commit, drains what waits, and appends it to the journal as one group with one sync.
//! Then the memory sees it, then it is published, then it is answered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot, watch};

use super::encode::{self, Numbers};
use super::ground::Ground;
use super::journal::AppendError;
use super::journal::line::Line;
use super::keeper::Keeper;
use super::waiting::{Patience, Unseen, Waiting, refuse, refuse_all};
use super::{Gate, Publish, Receipt, Request, StoreError};
use crate::clock::Clock;
use crate::crash;

/// The most commits that become durable together; more only makes the first wait longer.
const GROUP: usize = 256;
/// How often those are answered who ask while something waits for room, and how soon that is tried again at first.
const PAUSE: Duration = Duration::from_millis(100);
/// How long it is left alone at most.
const LONGEST: Duration = Duration::from_secs(2);

pub(super) struct Writer {
    pub ground: Arc<Ground>,
    pub numbers: Numbers,
    pub memory: Gate,
    pub publish: Publish,
    pub waiting: Arc<AtomicBool>,
    pub failure: Arc<watch::Sender<Option<StoreError>>>,
    pub keeper: Keeper,
    /// What waits for room.
    pub held: Held,
}

/// What waits for room.
pub(super) struct Held {
    /// What is durable, and the memory cannot take.
    unseen: Option<Unseen>,
    /// What is owed and the journal cannot take, oldest first.
    owed: Vec<Waiting>,
    patience: Patience,
}

impl Default for Held {
    fn default() -> Self {
        Self { unseen: None, owed: Vec::new(), patience: Patience::new(PAUSE, LONGEST) }
    }
}

impl Held {
    fn is_empty(&self) -> bool {
        self.unseen.is_none() && self.owed.is_empty()
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
            let Group { commits, closing, last } = self.next(&mut requests);
            if let Err(error) = self.work(commits) {
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
        if !failed {
            self.let_go();
        }
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

    /// Answers who still waits for room: what is durable was done, whether it can be shown or not.
    fn let_go(&mut self) {
        let Held { unseen, owed, .. } = std::mem::take(&mut self.held);
        unseen.into_iter().for_each(Unseen::answer);
        refuse_all(owed, "the store was closed before there was room");
    }

    /// Waits for something to do and takes what there is.
    fn next(&mut self, requests: &mut mpsc::Receiver<Request>) -> Group {
        let mut group = Group::default();
        if self.held.is_empty() {
            match requests.blocking_recv() {
                Some(request) => group.take(request),
                None => group.last = true,
            }
        } else {
            std::thread::park_timeout(self.held.patience.left().unwrap_or_default().min(PAUSE));
        }
        while group.commits.len() < GROUP && group.closing.is_none() {
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

    /// Tries what waits for room again, when its time has come, and then does what is new. Meanwhile what is asked for is
    /// refused and what is owed queues up.
    fn work(&mut self, commits: Vec<Waiting>) -> Result<(), StoreError> {
        if self.held.is_empty() {
            return self.record(commits);
        }
        let full = self.ground.room.told("is full: what has happened waits to be recorded");
        self.held.owed.extend(refuse(commits, &full));
        if !self.held.patience.is_over() {
            return Ok(());
        }
        if let Some(unseen) = self.held.unseen.take() {
            self.show(unseen)?;
        }
        if self.held.unseen.is_some() {
            return Ok(());
        }
        let owed = std::mem::take(&mut self.held.owed);
        self.record(owed)
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
        while !commits.is_empty() && self.held.is_empty() {
            // One may still find room where many do not.
            let most = if self.waiting.load(Ordering::Relaxed) { 1 } else { GROUP };
            let rest = commits.split_off(most.min(commits.len()));
            self.record_group(commits)?;
            commits = rest;
        }
        if !commits.is_empty() {
            self.held.owed.extend(refuse(commits, &self.ground.room.told("takes nothing")));
        }
        Ok(())
    }

    /// Makes one group durable; where it finds no room, what of it is owed is kept.
    fn record_group(&mut self, commits: Vec<Waiting>) -> Result<(), StoreError> {
        let (mut numbers, now) = (self.numbers, Clock::default().now());
        let (lines, receipts): (Vec<Line>, Vec<Receipt>) =
            commits.iter().map(|one| encode::line(one.commit.clone(), &mut numbers, now)).unzip();
        match self.ground.append(&lines) {
            Ok(()) => self.numbers = Numbers { synced: numbers.line, ..numbers },
            Err(error @ AppendError::Write(_)) => {
                self.wait_for_room(commits, &error.to_string());
                return Ok(());
            }
            Err(error @ AppendError::Sync(_)) => return Err(self.fail(commits, StoreError::Failed(error.to_string()))),
        }
        self.show(Unseen { lines, commits: commits.into_iter().zip(receipts).collect() })
    }

    fn wait_for_room(&mut self, commits: Vec<Waiting>, why: &str) {
        self.held.owed = refuse(commits, &self.ground.room.told(&format!("takes nothing: {why}")));
        // With the ballast gone there is room at once.
        if !self.held.owed.is_empty() && !self.ground.room.release() {
            self.wait(why);
        }
    }

    fn wait(&mut self, why: &str) {
        self.held.patience.longer();
        if !self.waiting.swap(true, Ordering::Relaxed) {
            tracing::error!(why, "the disk takes nothing; what has happened waits to be recorded");
        }
    }

    /// Lets the memory see lines that are durable, publishes their events, and answers: who asked must find what it was
    /// told. Where the memory has no room there is none, and what is owed waits for it.
    fn show(&mut self, mut unseen: Unseen) -> Result<(), StoreError> {
        match self.apply(&unseen) {
            Ok(()) => {
                self.held.patience.end();
                self.waiting.store(false, Ordering::Relaxed);
                unseen.answer();
            }
            Err(StoreError::NoRoom(why)) => {
                unseen.answer_asked();
                self.held.unseen = Some(unseen);
                self.wait(&why);
            }
            Err(error) => {
                let commits = unseen.commits.into_iter().map(|(one, _)| one).collect();
                return Err(self.fail(commits, StoreError::Failed(error.to_string())));
            }
        }
        Ok(())
    }

    fn apply(&self, unseen: &Unseen) -> Result<(), StoreError> {
        self.ground.revive(&self.memory)?;
        let mut gate = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        let through = unseen.lines.last().map(|line| line.number);
        let entries = unseen.lines.iter().flat_map(|line| &line.entries);
        match gate.as_ref().map(|memory| memory.apply(entries, through)) {
            Some(Ok(())) => {}
            // Brought up anew, it has these lines with all others.
            Some(Err(why)) => self.ground.replace(&mut gate, &why)?,
            None => return Err(StoreError::NoRoom("the memory found no room".into())),
        }
        crash::point("store.publish.before");
        let told = catch_unwind(AssertUnwindSafe(|| (self.publish)(&unseen.events())));
        crash::point("store.publish.after");
        drop(gate);
        self.keeper.applied();
        told.map_err(|_| StoreError::Failed("publishing panicked".into()))
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
