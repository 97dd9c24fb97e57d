//! The steering file against writers and crashes.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use super::*;

mod bounds;
mod writers;

const NAME: &str = ".steering.jsonl";
/// Long after every file was written: nothing is too fresh to be removed.
const LATER: Timestamp = Timestamp(i64::MAX);

/// A workspace and what a session has committed of its lines.
struct Bench {
    folder: tempfile::TempDir,
    position: Option<Position>,
    committed: Vec<String>,
    rejected: Vec<(String, String)>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, position: None, committed: Vec::new(), rejected: Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn taken(&self) -> PathBuf {
        self.path(".steering.jsonl.taken")
    }

    fn append(&self, text: &str) {
        append_to(&self.path(NAME)).write_all(text.as_bytes()).unwrap();
    }

    fn scan_newer(&self, newer_than: Timestamp) -> Scan {
        let owner = rustix::process::geteuid().as_raw();
        scan(self.folder.path(), NAME, owner, newer_than, self.position.as_ref()).unwrap()
    }

    fn scan(&self) -> Scan {
        self.scan_newer(Timestamp(0))
    }

    /// Commits the first `count` lines, each with its position, as an actor that dies after them.
    fn commit(&mut self, scan: Scan, count: usize) {
        let all = scan.lines.len() <= count;
        for line in scan.lines.into_iter().take(count) {
            match line.parsed {
                Ok(good) => self.committed.push(good.content),
                Err(why) => self.rejected.push((line.raw, why)),
            }
            self.position = Some(line.end);
        }
        if all {
            self.position = Some(scan.position);
        }
        // What is stored comes back from text.
        let text = serde_json::to_string(&self.position).unwrap();
        self.position = serde_json::from_str(&text).unwrap();
    }

    fn step(&mut self) {
        let scan = self.scan();
        self.commit(scan, usize::MAX);
    }

    /// Takes everything, and returns how many portions that took.
    fn drain(&mut self) -> usize {
        let rounds = (1..100).find(|_| {
            let more = self.scan().more;
            self.step();
            !more
        });
        rounds.unwrap()
    }

    fn retire(&self, now: Timestamp) -> Retired {
        retire(self.folder.path(), NAME, &self.position.clone().unwrap_or_default(), now).unwrap()
    }
}

fn append_to(path: &Path) -> File {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path).unwrap()
}

fn line(content: &str) -> String {
    format!("{{\"content\":\"{content}\"}}\n")
}

#[test]
fn a_line_is_taken_and_its_file_goes() {
    let mut bench = Bench::new();
    assert!(bench.scan().lines.is_empty());
    bench.append(&line("a"));
    bench.step();
    assert_eq!(bench.committed, ["a"]);
    assert!(!bench.path(NAME).exists() && bench.taken().exists());
    assert_eq!(bench.retire(Timestamp(0)), Retired::Kept, "it is too fresh");
    assert_eq!(bench.retire(LATER), Retired::Removed);
    assert_eq!(bench.retire(LATER), Retired::Nothing);
    assert_eq!(std::fs::read_dir(bench.folder.path()).unwrap().count(), 0);
    bench.append(&line("a"));
    bench.step();
    assert_eq!(bench.committed, ["a", "a"]);
}

#[test]
fn nothing_is_removed_before_its_commit() {
    let mut bench = Bench::new();
    bench.append(&(line("a") + &line("b")));
    assert_eq!(bench.scan().lines.len(), 2);
    assert_eq!(bench.retire(LATER), Retired::Nothing);
    let scan = bench.scan();
    bench.commit(scan, 1);
    assert_eq!(bench.retire(LATER), Retired::Kept);
    bench.step();
    assert_eq!((bench.committed.clone(), bench.retire(LATER)), (vec!["a".into(), "b".into()], Retired::Removed));
}

#[test]
fn an_incomplete_line_waits_and_those_before_it_do_not() {
    let mut bench = Bench::new();
    bench.append(&(line("a") + "{\"content\":"));
    bench.step();
    assert_eq!(bench.committed, ["a"]);
    assert!(bench.path(NAME).exists());
    bench.step();
    bench.append("\"b\"}\n");
    bench.step();
    assert_eq!((bench.committed.clone(), bench.retire(LATER)), (vec!["a".into(), "b".into()], Retired::Removed));
}

#[test]
fn a_writer_that_holds_the_file_keeps_it_where_it_is() {
    let mut bench = Bench::new();
    let mut held = append_to(&bench.path(NAME));
    for content in ["a", "b"] {
        held.write_all(line(content).as_bytes()).unwrap();
        bench.step();
        assert_eq!(bench.retire(LATER), Retired::Nothing);
    }
    drop(held);
    bench.step();
    assert_eq!((bench.committed.clone(), bench.retire(LATER)), (vec!["a".into(), "b".into()], Retired::Removed));
}

#[test]
fn a_writer_that_slipped_in_keeps_the_renamed_file() {
    let mut bench = Bench::new();
    bench.append(&line("a"));
    bench.step();
    let mut slipped = append_to(&bench.taken());
    bench.append(&line("new"));
    assert_eq!(bench.retire(LATER), Retired::Kept);
    slipped.write_all(line("b").as_bytes()).unwrap();
    bench.step();
    drop(slipped);
    assert_eq!(
        (bench.committed.clone(), bench.retire(LATER)),
        (vec!["a".into(), "b".into(), "new".into()], Retired::Removed)
    );
    bench.step();
    assert_eq!((bench.committed.len(), bench.retire(LATER)), (3, Retired::Removed));
}

#[test]
fn a_beginning_that_slipped_in_goes_back_to_be_completed() {
    let mut bench = Bench::new();
    bench.append(&line("a"));
    bench.step();
    append_to(&bench.taken()).write_all(b"{\"content\":").unwrap();
    bench.step();
    assert_eq!(bench.retire(LATER), Retired::Kept);
    assert!(bench.path(NAME).exists() && !bench.taken().exists());
    bench.append("\"b\"}\n");
    bench.step();
    assert_eq!((bench.committed.clone(), bench.retire(LATER)), (vec!["a".into(), "b".into()], Retired::Removed));
}

#[test]
fn a_file_written_anew_in_place_is_read_from_its_start() {
    let mut bench = Bench::new();
    bench.append(&(line("first") + "{"));
    bench.step();
    for (text, last) in
        [(line("other") + "{", "other"), (line("x") + "{", "x"), (line("much longer") + "{", "much longer")]
    {
        std::fs::write(bench.path(NAME), text).unwrap();
        bench.step();
        assert_eq!(bench.committed.last().unwrap(), last);
    }
    assert_eq!(bench.committed.len(), 4);
}
