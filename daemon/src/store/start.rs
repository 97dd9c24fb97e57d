//! The start of a store: refuse what is newer, upgrade what is older, bring the memory up from journal and checkpoints,
//! and name what is wrong.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use super::checkpoint::Checkpoints;
use super::disk::{Folder, RealFolder};
use super::encode::Numbers;
use super::ground::Ground;
use super::journal::line::Entry;
use super::journal::{Found, Journal};
use super::keeper::Keeper;
use super::looked::{Looked, checkpoints, of_checkpoint, of_journal};
use super::memory::Memory;
use super::recall::{Recalled, Sources, failed};
use super::report::{Report, Short};
use super::room::Room;
use super::tail::Tail;
use super::upgrade::{self, First};
use super::verify::groups;
use super::waiting::Waiting;
use super::writer::{Held, Writer};
use super::{Key, Opened, Publish, Store, StoreError, aside, disk};

/// How far event numbers jump where the last of those that were given out may be lost.
const JUMP: u64 = 1 << 20;
/// How often the folder is tried again whose last user is on its way out.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(20);

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// To be served from: where the truth has lost its beginning, it is refused.
    Serve,
    /// To be repaired: what can be had is had.
    Repair,
}

/// A store that is up, before anything is written to it.
pub struct Up {
    path: Arc<Path>,
    room: Room,
    journal: Journal,
    checkpoints: Checkpoints,
    memory: Memory,
    numbers: Numbers,
    epoch: u64,
    lock: File,
    /// What was wrong.
    pub report: Report,
}

impl Up {
    /// Brings the store in `path` up; whose state directory the caller holds.
    pub fn bring(path: &Path, mode: Mode) -> Result<Self, StoreError> {
        disk::make(path).map_err(|why| failed(path, &why))?;
        // The first commit must be found again after a power cut, and so must the way to it.
        path.parent().map_or(Ok(()), aside::sync).map_err(|why| failed(path, &why))?;
        let lock = lock(path)?;
        let is_due = upgrade::is_due(path);
        let looked = if is_due { None } else { Looked::if_there(path, &|name| part(path, name))? };
        let room = Room::new(path);
        if room.free() < room.sizes.watermark / 2 {
            room.release();
        }
        let mut report = Report::default();
        if is_due {
            upgrade(path, &mut report)?;
        }
        upgrade::finish(path).map_err(|why| failed(path, &why))?;
        let looked = looked.map_or_else(|| Looked::at(path, &|name| part(path, name)), Ok)?;
        let Parts { journal, checkpoints, tail, head, short } = open_parts(path, looked, &room, &mut report)?;
        let reader = journal.reader();
        let forgives = mode == Mode::Repair;
        let sources = Sources { path, room: &room, checkpoints: &checkpoints, reader, forgives };
        let recalled = sources.recall(&tail, &report.lost)?;
        drop(tail);
        // After an upgrade or an import there is no line yet, unless the memory says so.
        report.short = short.filter(|short| short.through > upgrade::LINE || recalled.is_ahead);
        let jump = jump(&recalled, &report, journal.last());
        let head = head.max(recalled.newest_event()?) + jump;
        let line = journal.last();
        let numbers = Numbers { line, synced: line, head };
        let epoch = number(&recalled.memory, "epoch")?;
        let memory = recalled.memory.clone();
        let mut up = Self { path: path.into(), room, journal, checkpoints, memory, numbers, epoch, lock, report };
        up.settle(recalled)?;
        if jump > 0 {
            // What was cut is cut: the next start would not know of it.
            up.append(Vec::new())?;
        }
        Ok(up)
    }

    /// Makes durable what only the memory knew, and sees to it that the checkpoint is whole again.
    fn settle(&mut self, recalled: Recalled) -> Result<(), StoreError> {
        let Recalled { compared, anew, is_alone, is_ahead, was_empty, .. } = recalled;
        // After an upgrade or an import there is no memory yet, and nothing is wrong with that.
        let is_new = was_empty && self.numbers.line == upgrade::LINE;
        self.report.put_right = if anew.is_some() || is_new { 0 } else { compared.put_right };
        self.report.removed = compared.adopted.iter().filter(|entry| matches!(entry, Entry::Delete(_))).count() as u64;
        self.report.adopted = compared.adopted.len() as u64 - self.report.removed;
        self.report.missing = compared.missing;
        if !compared.removed.is_empty() {
            let kept = aside::keep(&self.path, "removed.jsonl", &compared.removed);
            self.report.set_aside.push(kept.map_err(|why| failed(&self.path, &why))?.display().to_string());
        }
        if let Some((why, old)) = anew {
            self.report.began_anew = Some(why);
            self.report.set_aside.push(old);
        }
        if self.report.is_damage() {
            tracing::warn!(report = %self.report, "the store was not as it was left");
        }
        self.write(compared.adopted)?;
        // Two generations share what has not changed: a file that is not whole is made again while the memory knows it.
        let rotten = self.checkpoints.rotten();
        if is_alone || !(self.report.missing.is_empty() && self.report.lost.is_empty() && rotten.is_empty()) {
            // Without room for it the next start tries again: all that was lost is named, and nothing more is by waiting.
            if let Err(error) = self.rebuild(&rotten) {
                tracing::warn!(%error, "no new checkpoint was made");
            }
        }
        self.memory.apply(&[], Some(self.numbers.line))?;
        // From here on it follows again: commits to come must not be judged by what it knows on disk.
        if is_ahead { self.memory.make_durable() } else { Ok(()) }
    }

    fn write(&mut self, entries: Vec<Entry>) -> Result<(), StoreError> {
        groups(entries).into_iter().try_for_each(|group| self.append(group))
    }

    fn append(&mut self, entries: Vec<Entry>) -> Result<(), StoreError> {
        let line = self.numbers.next(self.numbers.head, entries);
        self.journal.append(&[line]).map_err(|why| failed(&self.path, &why))?;
        self.numbers.synced = self.numbers.line;
        Ok(())
    }

    /// Makes a checkpoint of the memory, which was compared with all there is; files that are damaged are set aside.
    fn rebuild(&mut self, rotten: &[String]) -> Result<(), StoreError> {
        let names: Vec<String> = rotten.iter().map(|file| format!("checkpoint/{file}")).collect();
        for name in names.iter().filter(|name| self.path.join(name).exists()) {
            let kept = aside::put(&self.path, name).map_err(|why| failed(&self.path, &why))?;
            self.report.set_aside.push(kept.display().to_string());
        }
        let records = self.memory.records(Vec::new(), None).filter_map(|record| match record {
            Ok((key, value)) => value.map(|value| Ok((key, value))),
            Err(error) => Some(Err(error)),
        });
        let (line, head) = (self.numbers.line, self.numbers.head);
        self.checkpoints.build(records, line, head).map_err(|error| of_checkpoint(&self.path, &error))?;
        Ok(())
    }

    /// Refuses where a daemon would take nothing new.
    pub fn has_room(&self) -> Result<(), StoreError> {
        self.room.shortage().map_or(Ok(()), |why| Err(StoreError::NoRoom(why)))
    }

    /// Lets go of the store, with all that was brought up made durable.
    pub fn put_down(self) -> Result<(), StoreError> {
        self.memory.make_durable()
    }

    /// Writes what every opening writes, and lets the store be used. Where there is no room for that yet, it waits.
    pub fn serve(self, publish: Publish) -> Result<Store, StoreError> {
        let Self { path, room, journal, checkpoints, memory, numbers, epoch, lock, report } = self;
        let opening = report.opening(epoch + 1);
        let ground = Arc::new(Ground::new(&path, room, journal, checkpoints, lock));
        let memory = Arc::new(RwLock::new(Some(memory)));
        let (failing, failure) = watch::channel(None);
        let failing = Arc::new(failing);
        let keeper = Keeper::start(ground.clone(), memory.clone(), failing.clone());
        let keeper = keeper.map_err(|why| failed(&path, &why))?;
        let waiting = Arc::new(AtomicBool::new(false));
        let mut writer = Writer {
            ground: ground.clone(),
            numbers,
            memory: memory.clone(),
            publish,
            waiting: waiting.clone(),
            failure: failing,
            keeper,
            held: Held::default(),
        };
        writer.record(vec![Waiting { commit: opening, answer: None }])?;
        let opened = Opened { epoch: epoch + 1, head: writer.numbers.head };
        let (inbox, requests) = mpsc::channel(1024);
        writer.start(requests).map_err(|why| failed(&path, &why))?;
        ground.room.keep_ballast();
        Ok(Store { inbox, path, opened, memory, ground, waiting, failure })
    }
}

/// Opens a part of the store; it is made where it is missing.
pub fn part(path: &Path, name: &str) -> Result<Arc<dyn Folder>, StoreError> {
    Ok(Arc::new(RealFolder::open(&path.join(name)).map_err(|why| failed(path, &why))?))
}

/// Holds the folder: another handle in this very process may be on its way out.
fn lock(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    // Read too, or a pipe in its place would have it wait.
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path.join("lock"));
    let file = file.map_err(|why| failed(path, &why))?;
    for _ in 0..TRIES {
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(file);
        }
        std::thread::park_timeout(PAUSE);
    }
    Err(failed(path, &"it is still being written to"))
}

/// Makes the first checkpoint of the first layout.
pub(super) fn upgrade(path: &Path, report: &mut Report) -> Result<(), StoreError> {
    tracing::info!(store = %path.display(), "the store is brought to the layout of this version");
    let First { head, epoch, mut records, damaged } = upgrade::read(path)?;
    records.push((Key::meta("epoch").0, json!(epoch).to_string().into_bytes()));
    records.sort();
    report.damaged = damaged.iter().map(|key| super::keys::text(key)).collect();
    let mut checkpoints = checkpoints(path, &|name| part(path, name))?;
    let built = checkpoints.build(records.into_iter().map(Ok::<_, StoreError>), upgrade::LINE, head);
    built.map(drop).map_err(|error| of_checkpoint(path, &error))
}

struct Parts {
    journal: Journal,
    checkpoints: Checkpoints,
    tail: Tail,
    head: u64,
    short: Option<Short>,
}

fn open_parts(path: &Path, looked: Looked, room: &Room, report: &mut Report) -> Result<Parts, StoreError> {
    let Looked { checkpoints, journal, tail, head, lost } = looked;
    for name in checkpoints.unreadable() {
        let kept = aside::put(path, &format!("checkpoint/{name}")).map_err(|why| failed(path, &why))?;
        report.set_aside.push(kept.display().to_string());
    }
    let opened = journal.open(&*part(path, "set-aside")?, room.sizes.segment);
    let (mut journal, Found { cut, .. }) = opened.map_err(|error| of_journal(path, &error))?;
    (report.cut, report.lost) = (cut, lost);
    let through = checkpoints.newest().through;
    let short = (journal.last() < through).then_some(Short { last: journal.last(), through });
    journal.number_on_from(through);
    Ok(Parts { journal, checkpoints, tail, head, short })
}

/// Returns how far the numbers jump: events may have been told whose lines are gone.
fn jump(recalled: &Recalled, report: &Report, last: u64) -> u64 {
    let at_end = report.lost.iter().any(|lost| lost.last >= last);
    let lost = recalled.is_ahead || report.cut.is_some() || at_end || report.short.is_some();
    if lost { JUMP } else { 0 }
}

fn number(memory: &Memory, name: &str) -> Result<u64, StoreError> {
    let value = memory.get(&Key::meta(name).0)?;
    Ok(value.and_then(|value| serde_json::from_slice(&value).ok()).unwrap_or(0))
}
