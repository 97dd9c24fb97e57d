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

#[test]
fn files_that_are_not_the_owners_own_are_left_alone() {
    let check = |make: &dyn Fn(&Path), word: &str| {
        let bench = Bench::new();
        make(&bench.path(NAME));
        let scan = bench.scan();
        assert!(scan.lines.is_empty(), "{word}");
        assert!(scan.refused.as_deref().unwrap_or_default().contains(word), "{word}: {:?}", scan.refused);
        assert!(!bench.taken().exists(), "{word}");
    };
    let plain = |path: &Path| std::fs::write(path, line("a")).unwrap();
    let mode = |path: &Path, mode: u32| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    check(
        &|path| (plain(&path.with_extension("x")), symlink(path.with_extension("x"), path).unwrap()).1,
        "symbolic link",
    );
    check(
        &|path| (plain(&path.with_extension("x")), std::fs::hard_link(path.with_extension("x"), path).unwrap()).1,
        "hard link",
    );
    check(&|path| std::fs::create_dir(path).unwrap(), "regular file");
    check(&|path| (plain(path), mode(path, 0o660)).1, "written by others");
    check(&|path| (plain(path), mode(path, 0o602)).1, "written by others");
    check(
        &|path| {
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, path, kind, rustix::fs::Mode::RUSR, 0).unwrap();
        },
        "regular file",
    );
    let bench = Bench::new();
    plain(&bench.path(NAME));
    let other = rustix::process::geteuid().as_raw() + 1;
    let scan = scan(bench.folder.path(), NAME, other, Timestamp(0), None).unwrap();
    assert!(scan.lines.is_empty() && scan.refused.unwrap().contains("owner"));
}

#[test]
fn only_a_file_newer_than_the_task_is_taken() {
    let mut bench = Bench::new();
    bench.append(&line("old"));
    let hour = Duration::from_hours(1);
    File::open(bench.path(NAME)).unwrap().set_modified(SystemTime::now() - hour).unwrap();
    let before =
        Timestamp(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis().try_into().unwrap());
    let scan = bench.scan_newer(before);
    assert!(scan.lines.is_empty() && scan.refused.is_none() && bench.path(NAME).exists());
    bench.append(&line("new"));
    let scan = bench.scan_newer(before);
    bench.commit(scan, usize::MAX);
    assert_eq!(bench.committed, ["old", "new"]);
    // A leftover of that name is not taken for ours, and is not in the way.
    std::fs::write(bench.taken(), line("planted")).unwrap();
    File::open(bench.taken()).unwrap().set_modified(SystemTime::now() - hour).unwrap();
    bench.position = None;
    bench.append(&line("next"));
    let scan = bench.scan_newer(before);
    bench.commit(scan, usize::MAX);
    assert_eq!(bench.committed, ["old", "new", "next"]);
    assert_eq!(bench.retire(LATER), Retired::Removed);
    assert!(bench.path(".steering.jsonl.stale").exists());
}

#[test]
fn a_mark_outlives_a_task_that_does_not_take_its_file() {
    let mut bench = Bench::new();
    let mut held = append_to(&bench.path(NAME));
    held.write_all(line("a").as_bytes()).unwrap();
    bench.step();
    let scan = bench.scan_newer(LATER);
    assert!(scan.lines.is_empty());
    bench.commit(scan, usize::MAX);
    held.write_all(line("b").as_bytes()).unwrap();
    bench.step();
    assert_eq!(bench.committed, ["a", "b"]);
}

#[test]
fn long_and_endless_lines_are_bounded() {
    let mut bench = Bench::new();
    let long = "x".repeat(3 * 1024 * 1024);
    bench.append(&(long.clone() + "\n" + &line("a")));
    bench.step();
    assert_eq!(bench.committed, ["a"]);
    for _ in 0..4 {
        bench.append(&long);
        bench.drain();
    }
    bench.append(&("\n".to_owned() + &line("b")));
    bench.drain();
    assert_eq!(bench.committed, ["a", "b"]);
    let why: Vec<_> = bench.rejected.iter().map(|(raw, why)| (raw.len(), why.as_str())).collect();
    assert_eq!(why, [(4096, "longer than 1048576 bytes"); 2]);
    assert_eq!(bench.retire(LATER), Retired::Removed);
}

#[test]
fn many_lines_come_in_portions() {
    let mut bench = Bench::new();
    let all: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    bench.append(&all.iter().map(|n| line(n) + "\n \r\n").collect::<String>());
    assert_eq!((bench.drain(), bench.committed.clone()), (4, all));
}

#[test]
fn bad_lines_are_set_aside_privately() {
    let bench = Bench::new();
    let at = Timestamp(0);
    reject(bench.folder.path(), NAME, "{bad\n", "not valid", at).unwrap();
    reject(bench.folder.path(), NAME, "worse", "why", at).unwrap();
    let path = bench.path(".steering.rejected.jsonl");
    let expected = "{\"line\":\"{bad\\n\",\"reason\":\"not valid\",\"at\":\"1970-01-01T00:00:00.000Z\"}\n\
                    {\"line\":\"worse\",\"reason\":\"why\",\"at\":\"1970-01-01T00:00:00.000Z\"}\n";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::rename(&path, bench.path("elsewhere")).unwrap();
    symlink(bench.path("elsewhere"), &path).unwrap();
    assert!(reject(bench.folder.path(), NAME, "x", "y", at).is_err(), "a link is not followed");
    assert_eq!(std::fs::read_to_string(bench.path("elsewhere")).unwrap(), expected);
}

/// What happens next, in no order that the file could rely on.
#[derive(Debug, Clone)]
enum Op {
    /// A writer appends a piece of its line, or a whole one, and closes the file unless it holds it.
    Write { writer: usize, piece: usize },
    /// A writer opens the file and keeps it, or lets go of it.
    Hold { writer: usize },
    /// A file with one line is renamed into place.
    Replace,
    /// The actor takes what there is and commits so many lines before it dies; all, if it lives.
    Take { commits: usize },
    /// The actor clears up.
    Retire { later: bool },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..3usize, 1..30usize).prop_map(|(writer, piece)| Op::Write { writer, piece }),
        2 => (0..3usize).prop_map(|writer| Op::Hold { writer }),
        1 => Just(Op::Replace),
        3 => prop_oneof![Just(usize::MAX), 0..3usize].prop_map(|commits| Op::Take { commits }),
        2 => any::<bool>().prop_map(|later| Op::Retire { later }),
    ]
}

/// Writers of one file. Two of them never write into the same line: no reader could tell their pieces apart.
struct Writers<'a> {
    path: &'a Path,
    held: BTreeMap<usize, File>,
    /// Who is in the middle of a line, and what is left of it.
    open_line: Option<(usize, String)>,
    written: Vec<String>,
}

impl Writers<'_> {
    fn write(&mut self, writer: usize, piece: usize) {
        let (owner, rest) = self.open_line.take().unwrap_or_else(|| {
            self.written.push(format!("{writer}-{}", self.written.len()));
            (writer, line(self.written.last().unwrap()))
        });
        let (now, later) = rest.split_at(piece.min(rest.len()));
        let write = |mut file: &File| file.write_all(now.as_bytes()).unwrap();
        match self.held.get(&owner) {
            Some(file) => write(file),
            None => write(&append_to(self.path)),
        }
        self.open_line = (!later.is_empty()).then(|| (owner, later.to_owned()));
    }

    fn hold(&mut self, writer: usize) {
        if self.held.remove(&writer).is_none() {
            self.held.insert(writer, append_to(self.path));
        }
    }

    fn replace(&mut self) {
        let new = self.path.with_extension("new");
        if self.path.exists() || self.open_line.is_some() {
            return;
        }
        self.written.push(format!("r-{}", self.written.len()));
        append_to(&new).write_all(line(self.written.last().unwrap()).as_bytes()).unwrap();
        std::fs::rename(new, self.path).unwrap();
    }

    fn finish(&mut self) {
        if self.open_line.is_some() {
            self.write(0, usize::MAX);
        }
        self.held.clear();
    }
}

fn run(ops: &[Op]) -> (Vec<String>, Vec<String>) {
    let mut bench = Bench::new();
    let path = bench.path(NAME);
    let mut writers = Writers { path: &path, held: BTreeMap::new(), open_line: None, written: Vec::new() };
    for op in ops {
        match *op {
            Op::Write { writer, piece } => writers.write(writer, piece),
            Op::Hold { writer } => writers.hold(writer),
            Op::Replace => writers.replace(),
            Op::Take { commits } => {
                let scan = bench.scan();
                bench.commit(scan, commits);
            }
            Op::Retire { later } => drop(bench.retire(if later { LATER } else { Timestamp(0) })),
        }
    }
    writers.finish();
    for _ in 0..3 {
        bench.step();
        bench.retire(LATER);
    }
    // An empty file that somebody only opened is left to them.
    let left = [path.clone(), bench.taken()]
        .iter()
        .filter_map(|path| std::fs::metadata(path).ok())
        .map(|m| m.len())
        .sum::<u64>();
    assert_eq!((left, bench.rejected.len()), (0, 0));
    (writers.written, bench.committed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn no_good_line_is_lost_or_doubled(ops in proptest::collection::vec(op(), 1..60)) {
        let (written, mut committed) = run(&ops);
        prop_assert_eq!(committed.len(), written.len());
        committed.sort();
        let mut written = written;
        written.sort();
        prop_assert_eq!(committed, written);
    }
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let mut bench = Bench::new();
    let (path, done) = (bench.path(NAME), AtomicBool::new(false));
    let expected: Vec<String> = (0..4).flat_map(|w| (0..200).map(move |n| format!("{w}-{n}"))).collect();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let path = &path;
                scope.spawn(move || {
                    let held = (writer == 0).then(|| append_to(path));
                    for n in 0..200 {
                        let text = line(&format!("{writer}-{n}"));
                        let write = |mut file: &File| file.write_all(text.as_bytes()).unwrap();
                        match &held {
                            Some(file) if n > 100 => write(file),
                            _ => write(&append_to(path)),
                        }
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut rounds = 0u32;
            while !done.load(Ordering::Acquire) {
                let scan = bench.scan();
                let commits = if rounds.is_multiple_of(3) { 2 } else { usize::MAX };
                bench.commit(scan, commits);
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
                bench.retire(Timestamp(now.try_into().unwrap()));
                rounds += 1;
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Release);
        reader.join().unwrap();
    });
    for _ in 0..expected.len() {
        bench.step();
        bench.retire(LATER);
    }
    assert!(!path.exists() && !bench.taken().exists());
    let mut committed = bench.committed;
    let of_first: Vec<_> = committed.iter().filter(|line| line.starts_with("0-")).cloned().collect();
    assert_eq!(of_first, (0..200).map(|n| format!("0-{n}")).collect::<Vec<_>>(), "a writer's order is kept");
    committed.sort();
    let mut expected = expected;
    expected.sort();
    assert_eq!(committed, expected);
}
