//! What the file tools do with paths that lead astray, and with what is no file.

#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;

use serde_json::json;
use support::Fixture;

#[tokio::test]
async fn nothing_outside_is_read() {
    let w = Fixture::new();
    w.link("/etc", "l");
    w.link("../secret", "up");
    w.link(w.outside("secret"), "absolute");
    w.link("/proc/self/environ", "e");
    w.link("/proc/self/root", "root");
    fs::create_dir(w.path("d")).unwrap();
    w.link("../..", "d/upup");
    let secret = w.outside("secret").display().to_string();
    let through = format!("{}/../secret", w.path("").display());
    for path in [
        "../../../etc/passwd",
        "../secret",
        "d/../../secret",
        "l/passwd",
        "up",
        "absolute",
        "e",
        "root/etc/passwd",
        "d/upup/secret",
        "/etc/passwd",
        "/proc/self/root/etc/shadow",
        "/proc/self/fd/0",
        "/dev/stdin",
        "/dev/zero",
        "/dev/tty",
        "/nowhere/at/all",
        &secret,
        &through,
    ] {
        for (tool, arguments) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x"})),
            ("edit_file", json!({"path": path, "old_text": "secret", "new_text": "x"})),
            ("list_dir", json!({"path": path})),
            ("grep", json!({"path": path, "pattern": "."})),
            ("search", json!({"path": path, "query": "s"})),
        ] {
            let why = w.failed(tool, arguments).await;
            assert!(why.contains("outside the workspace"), "{tool} {path}: {why}");
        }
    }
    assert_eq!(fs::read(w.outside("secret")).unwrap(), b"secret\n");
}

#[tokio::test]
async fn nothing_outside_is_made() {
    let w = Fixture::new();
    w.link(w.outside("new"), "dangling");
    w.link("../new", "relative");
    w.link(w.outside("folder"), "p");
    fs::create_dir(w.outside("there")).unwrap();
    w.link(w.outside("there"), "q");
    for path in ["dangling", "relative", "p/a/b", "q/new", "q/a/b", "../new", "a/../../new"] {
        let why = w.failed("write_file", json!({"path": path, "content": "x"})).await;
        assert!(why.contains("outside the workspace"), "{path}: {why}");
    }
    assert!(!w.outside("new").exists() && !w.outside("folder").exists());
    assert_eq!(fs::read_dir(w.outside("there")).unwrap().count(), 0);
}

#[tokio::test]
async fn some_folders_outside_may_be_read() {
    let mut w = Fixture::new();
    let workspace = nanod::sandbox::workspace::Workspace::open(&w.path(""), true).unwrap();
    w.context.workspace = std::sync::Arc::new(workspace.with_readable(vec![w.outside("skills"), w.outside("none")]));
    let file = w.outside("skills/a/SKILL.md");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "skill\n").unwrap();
    std::os::unix::fs::symlink("../../secret", w.outside("skills/a/link")).unwrap();
    assert_eq!(w.done("read_file", json!({"path": file})).await, "skill\n");
    assert!(w.done("grep", json!({"path": w.outside("skills"), "pattern": "skill"})).await.contains(":1: skill"));
    for (tool, arguments) in [
        ("read_file", json!({"path": w.outside("skills/../secret")})),
        ("read_file", json!({"path": w.outside("skills/a/link")})),
        ("read_file", json!({"path": "../skills/a/SKILL.md"})),
        ("write_file", json!({"path": file, "content": "x"})),
        ("write_file", json!({"path": w.outside("skills/new"), "content": "x"})),
        ("edit_file", json!({"path": file, "old_text": "skill", "new_text": "x"})),
    ] {
        let why = w.failed(tool, arguments.clone()).await;
        assert!(why.contains("outside the workspace"), "{tool} {arguments}: {why}");
    }
}

#[tokio::test]
async fn links_that_stay_inside_are_followed() {
    let w = Fixture::new();
    w.write("d/file", "old\n");
    w.link("d/file", "relative");
    w.link(w.path("d/file"), "absolute");
    w.link("d/new", "dangling");
    w.link("d", "folder");
    w.link("../d/file", "d/back");
    for path in ["relative", "absolute", "folder/file", "d/back", w.path("d/file").to_str().unwrap()] {
        assert_eq!(w.done("read_file", json!({"path": path})).await, "old\n", "{path}");
        let _ = w.done("write_file", json!({"path": path, "content": path})).await;
        assert_eq!(w.read("d/file"), path.as_bytes());
        w.write("d/file", "old\n");
    }
    let _ = w.done("write_file", json!({"path": "dangling", "content": "x"})).await;
    assert_eq!(w.read("d/new"), b"x");
    assert!(w.path("relative").is_symlink() && w.path("absolute").is_symlink());
}

#[tokio::test]
async fn a_hard_link_is_broken_not_followed() {
    for (tool, arguments) in [
        ("write_file", json!({"path": "h", "content": "x"})),
        ("edit_file", json!({"path": "h", "old_text": "secret", "new_text": "x"})),
    ] {
        let w = Fixture::new();
        fs::hard_link(w.outside("secret"), w.path("h")).unwrap();
        let _ = w.done(tool, arguments).await;
        assert_eq!(fs::read(w.outside("secret")).unwrap(), b"secret\n");
    }
}

#[tokio::test]
async fn only_regular_files() {
    for w in [Fixture::new(), Fixture::unrestricted()] {
        rustix::fs::mkfifoat(rustix::fs::CWD, w.path("fifo"), 0o600.into()).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(w.path("socket")).unwrap();
        fs::create_dir(w.path("folder")).unwrap();
        for path in ["fifo", "socket", "folder"] {
            let read = w.failed("read_file", json!({"path": path})).await;
            assert!(read.contains("not a regular file"), "{path}: {read}");
            let written = w.failed("write_file", json!({"path": path, "content": "x"})).await;
            assert!(written.contains("not a regular file"), "{path}: {written}");
            let edited = w.failed("edit_file", json!({"path": path, "old_text": "a", "new_text": "x"})).await;
            assert!(edited.contains("not a regular file"), "{path}: {edited}");
        }
        assert!(w.done("grep", json!({"pattern": "x"})).await.contains("no matches"));
    }
    let w = Fixture::unrestricted();
    for path in ["/dev/zero", "/dev/null"] {
        assert!(w.failed("read_file", json!({"path": path})).await.contains("not a regular file"));
    }
    let outside = w.outside("secret");
    assert_eq!(w.done("read_file", json!({"path": outside})).await, "secret\n");
    assert_eq!(w.done("read_file", json!({"path": "../secret"})).await, "secret\n");
}

#[tokio::test]
async fn bad_paths() {
    let w = Fixture::new();
    let bad = [
        String::new(),
        "a\0b".into(),
        "x".repeat(5000),
        "x".repeat(300),
        "a/".repeat(5000) + "f",
        "a/".repeat(300) + "f",
    ];
    for path in &bad {
        for (tool, arguments) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x"})),
            ("edit_file", json!({"path": path, "old_text": "a", "new_text": "x"})),
            ("list_dir", json!({"path": path})),
        ] {
            let why = w.failed(tool, arguments).await;
            assert!(why.starts_with("bad path: ") && why.len() < 800, "{tool}: {why}");
        }
    }
    for path in [".", "..", "a/", "a/.."] {
        let why = w.failed("write_file", json!({"path": path, "content": "x"})).await;
        assert!(why.starts_with("bad path: "), "{path}: {why}");
    }
    assert_eq!(fs::read_dir(w.path("")).unwrap().count(), 0);
}
