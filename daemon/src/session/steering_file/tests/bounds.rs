//! What is left alone, cut into portions or set aside.

use super::*;

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
