//! From the first layout to this one. The first had sled's files in the store's own folder.
//!
//! They are read from a copy. The original is set aside only when the new store is complete and synced, so that a crash
//! anywhere leaves it whole, and the upgrade begins anew.

use std::fs;
use std::io;
use std::path::Path;

use super::keys::one_line;
use super::memory::{self, Memory};
use super::recall;
use super::tail::Record;
use super::{Key, StoreError, aside, disk};
use crate::crash;

/// The schema of the first layout.
const FIRST: u64 = 1;
/// The line of the journal that stands for what an upgrade or an import brought.
pub const LINE: u64 = 1;
/// Where the copy lies. While it is there, so is all that was made of it, and none of that counts yet.
const COPY: &str = "upgrade";
/// What the first layout counted by itself.
const COUNTED: [&str; 4] = ["schema", "epoch", "seq", "writer"];
/// Lies where the first layout has a file that it must understand: a nanod of that time refuses this store, and
/// leaves it alone.
const GUARD: &str = "This store has a layout that nanod of schema 1 does not know. Use a newer nanod.\n";

/// What was found in the first layout.
pub struct First {
    /// The newest event number.
    pub head: u64,
    /// How often it was opened.
    pub epoch: u64,
    /// Every record that can be read, in order.
    pub records: Vec<Record>,
    /// The keys of those that cannot.
    pub damaged: Vec<Vec<u8>>,
}

/// Tells whether the store in `path` is still to be upgraded. Beside a complete store, the first layout means nothing.
pub fn is_due(path: &Path) -> bool {
    path.join("db").is_file() && (path.join(COPY).exists() || !path.join("journal").exists())
}

/// Reads the first layout in `path` from a copy; what an upgrade that was cut off has made is removed.
pub fn read(path: &Path) -> Result<First, StoreError> {
    let failed = |why: String| recall::failed(path, &why);
    let copy = path.join(COPY);
    begin_anew(path).map_err(|why| failed(why.to_string()))?;
    disk::copy(path, &copy, &memory::is_sled_file)
        .map_err(|why| failed(format!("it cannot be copied for the upgrade: {why}")))?;
    let memory = memory::open(&copy, &aside::folder(path)).map_err(failed)?;
    let number = |name: &str| memory.number(&Key::meta(name).0);
    let found = number("schema")?.unwrap_or(FIRST);
    if found > FIRST {
        drop(memory);
        fs::remove_dir_all(&copy).map_err(|why| failed(why.to_string()))?;
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        return Err(StoreError::Newer { path: path.to_owned(), found });
    }
    let unreadable = || failed("its own count of events cannot be read".into());
    let (head, epoch) = (number("seq")?, number("epoch")?.unwrap_or(0));
    let (records, damaged) = records(&memory)?;
    let head = if records.is_empty() { head.unwrap_or(0) } else { head.ok_or_else(unreadable)? };
    Ok(First { head, epoch, records, damaged })
}

fn records(memory: &Memory) -> Result<(Vec<Record>, Vec<Vec<u8>>), StoreError> {
    let counted = COUNTED.map(|name| Key::meta(name).0);
    let (mut records, mut damaged) = (Vec::new(), Vec::new());
    for record in memory.records(Vec::new(), None) {
        match record? {
            (key, _) if counted.contains(&key) => {}
            (key, Some(value)) if one_line(&value).is_some() => records.push((key, value)),
            (key, _) => damaged.push(key),
        }
    }
    Ok((records, damaged))
}

/// Removes what an upgrade made that did not come to its end; what somebody else made is not touched.
fn begin_anew(path: &Path) -> io::Result<()> {
    let made = ["journal", "checkpoint", "memory"];
    if path.join(COPY).exists() {
        made.iter().filter(|name| path.join(name).exists()).try_for_each(|name| fs::remove_dir_all(path.join(name)))?;
        fs::remove_dir_all(path.join(COPY))?;
    } else {
        // Parts of a store that has no journal: they may mean something to somebody.
        made.iter().filter(|name| path.join(name).exists()).try_for_each(|name| aside::put(path, name).map(drop))?;
    }
    fs::create_dir(path.join(COPY))?;
    aside::sync(path)
}

/// Sets the first layout aside once the new store is complete. The rename of `db` is what counts; a crash behind it
/// leaves files that mean nothing, and they follow at the next start.
pub fn finish(path: &Path) -> io::Result<()> {
    let guard = path.join("conf");
    let is_clean = !path.join(COPY).exists() && !path.join("db").exists();
    if is_clean && guard.is_file() && fs::read_to_string(&guard).is_ok_and(|text| text == GUARD) {
        return Ok(());
    }
    let to = aside::free(path, "schema-1");
    fs::create_dir_all(&to)?;
    let mut names: Vec<String> = fs::read_dir(path)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| memory::is_sled_file(name))
        .collect();
    names.sort_by_key(|name| name != "db");
    for name in names {
        crash::point("upgrade.rename.before");
        fs::rename(path.join(&name), to.join(&name))?;
        aside::sync(&to)?;
        aside::sync(path)?;
        crash::point("upgrade.rename.after");
    }
    if path.join(COPY).exists() {
        fs::remove_dir_all(path.join(COPY))?;
    }
    // Where nothing was moved there was nothing to keep.
    drop(fs::remove_dir(&to));
    fs::write(&guard, GUARD)?;
    aside::sync(path)
}
