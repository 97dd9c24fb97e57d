//! What opening a store found wrong with it, and what became of that.

use std::fmt;

use nano_protocol::event::EventType;
use serde_json::json;

use super::checkpoint::Missing;
use super::journal::Cut;
use super::journal::reader::Damage;
use super::record::Draft;
use super::{Change, Commit, Key, SCHEMA};

/// A journal that ends before its checkpoint does: its end is gone.
#[derive(Debug, Clone, Copy)]
pub struct Short {
    /// Its last line.
    pub last: u64,
    /// The last line that the checkpoint has.
    pub through: u64,
}

impl fmt::Display for Short {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { last, through } = self;
        write!(to, "the journal ends at line {last}, before the checkpoint, which has line {through}: its end is lost")
    }
}

/// What was wrong with a store.
#[derive(Debug, Default)]
pub struct Report {
    /// How many records the memory had wrong: they were put right.
    pub put_right: u64,
    /// How many records only the memory knew: the journal has them now.
    pub adopted: u64,
    /// How many records the memory did not have, where it knew lines that the journal had lost: they count as removed.
    pub removed: u64,
    /// Where the journal ends before its checkpoint does.
    pub short: Option<Short>,
    /// Why the memory was begun anew, where it did not open.
    pub began_anew: Option<String>,
    /// Lines of the journal that are lost.
    pub lost: Vec<Damage>,
    /// What the end of the journal was cut by.
    pub cut: Option<Cut>,
    /// Records that a checkpoint has lost.
    pub missing: Vec<Missing>,
    /// Records that could not be read when the store was upgraded.
    pub damaged: Vec<String>,
    /// What lies in `set-aside` now.
    pub set_aside: Vec<String>,
}

impl Report {
    /// Tells whether something was wrong.
    pub fn is_damage(&self) -> bool {
        self.put_right + self.adopted + self.removed > 0
            || self.began_anew.is_some()
            || self.cut.is_some()
            || self.short.is_some()
            || !(self.lost.is_empty()
                && self.missing.is_empty()
                && self.damaged.is_empty()
                && self.set_aside.is_empty())
    }

    /// Returns what every opening writes, the one of this epoch with it.
    pub fn opening(&self, epoch: u64) -> Commit {
        let mut changes = vec![Change::put(Key::meta("schema"), &SCHEMA), Change::put(Key::meta("epoch"), &epoch)];
        if self.is_damage() {
            let data = json!({"message": format!("the store was not as it was left: {self}")});
            changes.push(Change::Event(Draft { session: None, task: None, kind: EventType::Warning, data }));
        }
        Commit::owed(changes)
    }
}

/// How many lines of one kind are told; there may be thousands.
const MOST: usize = 50;

/// Leaves out what is too much, and says how much that is.
pub fn bounded(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
}

impl Report {
    /// Returns what was wrong, one thing a line.
    pub fn lines(&self) -> Vec<String> {
        let mut told: Vec<String> = Vec::new();
        told.extend(self.began_anew.iter().map(|why| format!("the memory did not open and was begun anew: {why}")));
        told.extend((self.put_right > 0).then(|| format!("{} records of the memory were put right", self.put_right)));
        let adopted = || format!("{} records that the journal had lost were taken from the memory", self.adopted);
        told.extend((self.adopted > 0).then(adopted));
        let removed = || {
            format!(
                "{} records that the memory no longer had count as removed by lost lines; set-aside/removed.jsonl has them",
                self.removed
            )
        };
        told.extend((self.removed > 0).then(removed));
        told.extend(self.short.map(|short| short.to_string()));
        told.extend(bounded(self.lost.iter().map(|lost| format!("lost: {lost}")).collect()));
        let missing = self.missing.iter().map(|missing| format!("lost from the checkpoint: {missing}"));
        told.extend(bounded(missing.collect()));
        told.extend(bounded(self.damaged.iter().map(|key| format!("unreadable before the upgrade: {key}")).collect()));
        told.extend(self.cut.as_ref().map(|cut| {
            let kept = cut.kept.as_ref().map(|kept| format!(", kept as set-aside/{kept}")).unwrap_or_default();
            format!("the journal ends before line {}: {} bytes behind it were cut{kept}", cut.from, cut.bytes)
        }));
        told.extend(self.set_aside.iter().map(|name| format!("set aside: {name}")));
        told
    }
}

impl fmt::Display for Report {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.lines().join("; "))
    }
}
