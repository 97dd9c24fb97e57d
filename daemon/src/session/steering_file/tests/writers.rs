//! Writers at the same time, in whatever order.

use super::*;

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
