//! What the file tools do with files of every kind: pages, binaries, edits, searches.

#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use nanod::tools::ToolOutcome;
use serde_json::json;
use support::Fixture;

#[tokio::test]
async fn bad_arguments() {
    let w = Fixture::new();
    w.write("f", "a\n");
    for (tool, arguments, part) in [
        ("read_file", json!({}), "`path` is missing"),
        ("read_file", json!({"path": "f", "offset": 0}), "`offset` must be 1 or more"),
        ("read_file", json!({"path": "f", "limit": -1}), "`limit` must be 1 or more"),
        ("read_file", json!({"path": "f", "lines": 1}), "`lines` is not known"),
        ("read_file", json!({"path": "f", "offset": 3}), "offset 3 is beyond the end: `f` has 1 lines"),
        ("read_file", json!({"path": "g"}), "`g`: no such file"),
        ("edit_file", json!({"path": "f", "old_text": "", "new_text": "x"}), "`old_text` is empty"),
        ("edit_file", json!({"path": "f", "old_text": "a", "new_text": "a"}), "are the same"),
        ("edit_file", json!({"path": "g", "old_text": "a", "new_text": "b"}), "`g`: no such file"),
        ("list_dir", json!({"path": "f"}), "not a folder"),
        ("grep", json!({"pattern": "("}), "bad pattern"),
        ("grep", json!({"pattern": "a", "glob": "["}), "bad glob"),
        ("grep", json!({"pattern": "a", "context": -1}), "`context` must be 0 or more"),
        ("search", json!({"query": ""}), "`query` must be"),
        ("datetime", json!({"zone": "../../etc/passwd"}), "unknown time zone"),
    ] {
        let why = w.failed(tool, arguments).await;
        assert!(why.contains(part), "{tool}: {why}");
    }
}

#[tokio::test]
async fn pages_of_a_file() {
    let w = Fixture::new();
    let lines = |from: usize, to: usize| support::lines(from..=to, |n| format!("{n}\n"));
    w.write("f", lines(1, 2500));
    w.write("wide", format!("{}\n", "x".repeat(199)).repeat(500));
    w.write("long", "é".repeat(60_000));
    w.write("open", "a\r\nb");
    w.write("bom", "\u{feff}a\n");
    w.write("latin", b"caf\xe9 au lait, s'il vous pla\xeet\n");
    w.write("empty", "");
    let note = |text: &str, note| format!("{text}[{note}]\n");
    for (arguments, expected) in [
        (json!({"path": "f"}), note(&lines(1, 2000), "lines 1-2000 of more; continue with offset=2001")),
        (json!({"path": "f", "offset": 2001}), note(&lines(2001, 2500), "lines 2001-2500, the end")),
        (json!({"path": "f", "limit": 2}), note("1\n2\n", "lines 1-2 of more; continue with offset=3")),
        (json!({"path": "f", "offset": "3", "limit": 1}), note("3\n", "lines 3-3 of more; continue with offset=4")),
        (json!({"path": "open"}), "a\nb".into()),
        (json!({"path": "bom"}), "a\n".into()),
        (json!({"path": "empty"}), note("", "the file is empty")),
        (
            json!({"path": "latin"}),
            note("caf\u{fffd} au lait, s'il vous pla\u{fffd}t\n", "bytes that are not UTF-8 are shown as \u{fffd}"),
        ),
        (
            json!({"path": "wide"}),
            note(&format!("{}\n", "x".repeat(199)).repeat(256), "lines 1-256 of more; continue with offset=257"),
        ),
        (
            json!({"path": "long"}),
            note(
                &format!("{}\n", "é".repeat(25_600)),
                "line 1 is longer than 51200 bytes and is cut here; continue with offset=2",
            ),
        ),
    ] {
        assert_eq!(w.done("read_file", arguments.clone()).await, expected, "{arguments}");
    }
}

#[tokio::test]
async fn binary_and_huge_files_are_named() {
    let w = Fixture::new();
    w.write("nul", b"abc\0def");
    w.write("noise", [0xff, 0xfe, 0x80, 0x81].repeat(100));
    let late = [b"text\n".repeat(4000), vec![0; 100]].concat();
    w.write("late", &late);
    let sparse = fs::File::create(w.path("sparse")).unwrap();
    sparse.set_len(10 << 30).unwrap();
    let headed = fs::File::create(w.path("headed")).unwrap();
    std::io::Write::write_all(&mut &headed, &b"line of text\n".repeat(10_000)).unwrap();
    headed.set_len(10 << 30).unwrap();
    for (path, size) in [("nul", 7), ("noise", 400), ("sparse", 10_u64 << 30)] {
        let why = w.failed("read_file", json!({"path": path})).await;
        assert!(why.contains(&format!("a binary file of {size} bytes")), "{path}: {why}");
    }
    let before = resident();
    let text = w.done("read_file", json!({"path": "headed"})).await;
    assert!(text.ends_with("[lines 1-2000 of more; continue with offset=2001]\n"), "{}", text.len());
    assert!(resident() < before + (64 << 20));
    assert!(w.failed("read_file", json!({"path": "late", "offset": 3999})).await.contains("binary"));
    assert!(w.done("grep", json!({"pattern": "nothing"})).await.contains("no matches"));
    let why = w.failed("edit_file", json!({"path": "headed", "old_text": "a", "new_text": "b"})).await;
    assert!(why.contains("larger than"), "{why}");
}

fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test]
async fn a_long_read_ends_with_the_token() {
    let w = Fixture::new();
    let headed = fs::File::create(w.path("big")).unwrap();
    std::io::Write::write_all(&mut &headed, &[b'x'; 10_000]).unwrap();
    headed.set_len(1 << 43).unwrap();
    let reading = w.call("read_file", json!({"path": "big", "offset": 2}));
    let (outcome, ()) = tokio::join!(reading, async { w.context.cancel.cancel() });
    assert!(matches!(outcome, ToolOutcome::Stopped(_)), "{outcome:?}");
}

#[tokio::test]
async fn mode_and_owner_are_kept() {
    let w = Fixture::new();
    w.write("script", "#!/bin/sh\n");
    fs::set_permissions(w.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
    // Only root may give a file away; elsewhere the owner stays what it is.
    std::os::unix::fs::chown(w.path("script"), Some(1234), Some(1234)).ok();
    let before = fs::metadata(w.path("script")).unwrap();
    let _ = w.done("write_file", json!({"path": "script", "content": "echo a\n"})).await;
    let _ = w.done("edit_file", json!({"path": "script", "old_text": "a", "new_text": "b"})).await;
    let after = fs::metadata(w.path("script")).unwrap();
    assert_eq!(w.read("script"), b"echo b\n");
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    let _ = w.done("write_file", json!({"path": "a/b/c", "content": "deep"})).await;
    assert_eq!(w.read("a/b/c"), b"deep");
    let names: Vec<_> = fs::read_dir(w.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "no temporary file stays: {names:?}");
}

#[tokio::test]
async fn edits_touch_nothing_else() {
    let w = Fixture::new();
    w.write("crlf", b"\xef\xbb\xbfone\r\ntwo\r\n\xff\xfe\r\n");
    let text = w.done("edit_file", json!({"path": "crlf", "old_text": "one\ntwo", "new_text": "1\n2"})).await;
    assert_eq!(text, "replaced once in crlf (line 1; tolerant match: quotes, dashes, blanks or line ends differ)");
    assert_eq!(w.read("crlf"), b"\xef\xbb\xbf1\r\n2\r\n\xff\xfe\r\n");
    w.write("f", "a\nb\na\n");
    let why = w.failed("edit_file", json!({"path": "f", "old_text": "a", "new_text": "x"})).await;
    assert!(why.contains("occurs 2 times (lines 1, 3)"), "{why}");
    assert_eq!(w.read("f"), b"a\nb\na\n");
    let all = json!({"path": "f", "old_text": "a", "new_text": "x", "replace_all": true});
    assert_eq!(w.done("edit_file", all).await, "replaced 2 times in f (lines 1, 3; exact match)");
    assert_eq!(w.read("f"), b"x\nb\nx\n");
}

#[tokio::test]
async fn a_tolerant_edit_changes_its_lines_alone() {
    let w = Fixture::new();
    w.write("f", "\u{201c}first\u{201d} \u{2460}\r\nsay \u{201c}hi\u{201d}  \nend\r\n");
    let edit = json!({"path": "f", "old_text": "say \"hi\"\nend\n", "new_text": "say \"ho\"\nend\n"});
    let text = w.done("edit_file", edit).await;
    assert!(text.contains("(line 2; tolerant match"), "{text}");
    assert_eq!(w.read("f"), "\u{201c}first\u{201d} \u{2460}\r\nsay \"ho\"\nend\r\n".as_bytes());
}

#[tokio::test]
async fn what_somebody_else_changed_is_a_conflict() {
    let edit = ("edit_file", json!({"path": "f", "old_text": "a", "new_text": "b"}));
    let write = ("write_file", json!({"path": "f", "content": "b\n"}));
    for (tool, arguments) in [edit, write] {
        let w = Fixture::new();
        w.write("f", "a\n");
        let seen = w.done("read_file", json!({"path": "f"})).await;
        assert_eq!(seen, "a\n");
        w.write("f", "a new\n");
        let why = w.failed(tool, arguments.clone()).await;
        assert!(why.contains("conflict") && why.contains("read it again"), "{tool}: {why}");
        assert_eq!(w.read("f"), b"a new\n", "{tool}");
        let _ = w.done("read_file", json!({"path": "f"})).await;
        let _ = w.done(tool, arguments.clone()).await;
        // What the session wrote itself is known to it.
        let _ = w.done("write_file", json!({"path": "f", "content": "a\n"})).await;
        let _ = w.done(tool, arguments).await;
        let left = fs::read_dir(w.path("")).unwrap().count();
        assert_eq!(left, 1, "{tool}: no temporary file stays");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_edits_of_one_file_are_all_kept() {
    let w = std::sync::Arc::new(Fixture::new());
    w.write("f", support::lines(1..=40, |n| format!("<{n}>\n")));
    w.link("f", "link");
    let edits = (1..=40).map(|n| {
        let w = std::sync::Arc::clone(&w);
        let path = if n % 2 == 0 { "f" } else { "link" };
        tokio::spawn(async move {
            w.done("edit_file", json!({"path": path, "old_text": format!("<{n}>"), "new_text": format!("({n})")})).await
        })
    });
    for edit in edits.collect::<Vec<_>>() {
        assert!(edit.await.unwrap().starts_with("replaced once"));
    }
    assert_eq!(w.read("f"), support::lines(1..=40, |n| format!("({n})\n")).into_bytes());
}

#[tokio::test]
async fn folders_are_listed() {
    let w = Fixture::new();
    assert_eq!(w.done("list_dir", json!({})).await, "[the folder is empty]\n");
    w.write("b/x", "");
    w.write(".hidden", "");
    w.write("a\nb", "");
    w.link("/etc", "link");
    w.link("nowhere", "broken");
    assert_eq!(w.done("list_dir", json!({})).await, ".hidden\na\u{fffd}b\nb/\nbroken@\nlink@");
    assert_eq!(w.done("list_dir", json!({"path": "b"})).await, "x");
    let text = w.done("list_dir", json!({"limit": 1})).await;
    assert_eq!(text, ".hidden\n[1 of 5 entries; set limit for more, up to 2000]\n");
}

#[tokio::test]
async fn lines_are_found() {
    let w = Fixture::new();
    w.write(".gitignore", "ignored/\n*.log\n");
    w.write("a.rs", "one\nfind me\nthree\nfour\nfive\nfind me too\n");
    w.write("sub/b.txt", "find me\r\n");
    w.write("sub/.gitignore", "c.txt\n");
    w.write("sub/c.txt", "find me\n");
    w.write("ignored/d.txt", "find me\n");
    w.write("e.log", "find me\n");
    w.write(".github/f", "find me\n");
    w.write(".git/g", "find me\n");
    w.write("binary", b"\0find me\n");
    fs::write(w.outside("find me"), "find me\n").unwrap();
    w.link("..", "out");
    w.link("../find me", "file");
    let long = format!("long {} tail\n", "x".repeat(600));
    w.write("long", &long);
    for (arguments, expected) in [
        (
            json!({"pattern": "find"}),
            ".github/f:1: find me\na.rs:2: find me\na.rs:6: find me too\nsub/b.txt:1: find me\n",
        ),
        (json!({"pattern": "find", "glob": "*.rs"}), "a.rs:2: find me\na.rs:6: find me too\n"),
        (json!({"pattern": "find", "glob": "sub/*"}), "sub/b.txt:1: find me\n"),
        (json!({"pattern": "find", "path": "sub"}), "sub/b.txt:1: find me\n"),
        (json!({"pattern": "^find me$", "path": "sub/b.txt"}), "[no matches]\n"),
        (json!({"pattern": "find", "path": "ignored"}), "ignored/d.txt:1: find me\n"),
        (json!({"pattern": "find", "path": "e.log"}), "e.log:1: find me\n"),
        (json!({"pattern": "F[I]ND"}), "[no matches]\n"),
        (json!({"pattern": "(?i)F[I]ND", "path": "sub"}), "sub/b.txt:1: find me\n"),
        (
            json!({"pattern": "find", "path": "a.rs", "context": 1}),
            "a.rs-1- one\na.rs:2: find me\na.rs-3- three\n--\na.rs-5- five\na.rs:6: find me too\n",
        ),
        (
            json!({"pattern": "find", "path": "a.rs", "context": 1, "limit": 1}),
            "a.rs-1- one\na.rs:2: find me\na.rs-3- three\n[stopped after 1 matches; narrow the search or set limit]\n",
        ),
        (json!({"pattern": "long", "path": "long"}), &format!("long:1: {} [… line cut]\n", &long[..500])),
    ] {
        assert_eq!(w.done("grep", arguments.clone()).await, expected, "{arguments}");
    }
}

/// A `.gitignore` may be anything: it is read like every other file.
#[tokio::test]
async fn odd_ignore_files_do_no_harm() {
    let w = Fixture::new();
    for name in ["fifo", "sparse", "link", "folder"] {
        w.write(&format!("{name}/f"), "find me\n");
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, w.path("fifo/.gitignore"), 0o600.into()).unwrap();
    fs::File::create(w.path("sparse/.gitignore")).unwrap().set_len(10 << 30).unwrap();
    fs::write(w.outside("rules"), "f\n").unwrap();
    w.link("../../rules", "link/.gitignore");
    fs::create_dir(w.path("folder/.gitignore")).unwrap();
    w.write(".gitignore", "[\n!f\n");
    let found = w.done("grep", json!({"pattern": "find"})).await;
    assert_eq!(found, "fifo/f:1: find me\nfolder/f:1: find me\nlink/f:1: find me\nsparse/f:1: find me\n");
}

#[tokio::test]
async fn texts_are_found_literally() {
    let w = Fixture::new();
    w.write("a.b/axb", "a.b\naxb\n");
    w.write("a.b/a.b", "none\n");
    w.write(".gitignore", "no\n");
    w.write("no", "a.b\n");
    assert_eq!(w.done("search", json!({"query": "a.b"})).await, "a.b\na.b/a.b\na.b/axb:1: a.b\n");
    assert_eq!(w.done("search", json!({"query": "zzz"})).await, "[no matches]\n");
    let text = w.done("search", json!({"query": "a.b", "limit": 1})).await;
    assert_eq!(text, "a.b\n[stopped after 1 matches; narrow the search or set limit]\n");
    assert!(w.done("datetime", json!({})).await.ends_with("(UTC)"));
}
