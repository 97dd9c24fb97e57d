//! Files in the workspace that programs or the daemon act on, for commands and for file tools.

use std::fs;

use nano_protocol::session::Level;
use nanod::sandbox::reach::Reach;
use nanod::sandbox::{protected, workspace};
use serde_json::json;

use super::support::Fixture;
use super::{run, support, with_mounts};

/// Makes the session see its workspace as it is now.
fn look(w: &mut Fixture, level: Level) {
    let reach = Reach::clone(&w.context.workspace.reach().unwrap());
    let protected = protected::of(&reach.workspace, ".steering.jsonl");
    let opened = workspace::Workspace::open(&reach.workspace, true).unwrap();
    let reach = Reach { level, protected, steering: ".steering.jsonl".into(), ..reach };
    w.context.workspace = std::sync::Arc::new(opened.with_reach(reach));
}

#[tokio::test]
async fn commands_do_not_write_what_is_protected() {
    let Some(booter) = with_mounts() else { return };
    let mut w = Fixture::within(booter, |reach| reach).await;
    w.write(".agents/skills/a/SKILL.md", "mine");
    w.write(".steering.jsonl", "");
    w.write(".nanod/config", "mine");
    assert!(run(&w, "git init -q . && rm -rf .git/hooks").await.0);
    look(&mut w, Level::WorkspaceWrite);
    let before = fs::read(w.path(".git/config")).unwrap();
    for command in [
        "echo x > .git/hooks/pre-commit",
        "mkdir -p .git/hooks/x",
        "git config core.fsmonitor ./x",
        "echo x >> .git/config",
        "rm .git/config",
        "mv .git git",
        "rm -rf .git/hooks && mkdir .git/hooks",
        "ln -sfn /tmp .git/hooks",
        "echo x > .agents/skills/a/SKILL.md",
        "mkdir .agents/skills/b",
        "mv .agents agents",
        "echo x > .nanod/config",
        "echo x >> .steering.jsonl",
        "chmod 777 .git/config",
    ] {
        let (ok, text) = run(&w, command).await;
        assert!(!ok, "{command}: {text}");
    }
    assert_eq!(fs::read(w.path(".git/config")).unwrap(), before);
    assert_eq!(fs::read_dir(w.path(".git/hooks")).unwrap().count(), 0);
    // Git works on.
    let commit = "echo x > a && git add a && git -c user.name=a -c user.email=a@b commit -qm a && git checkout -q -b b";
    let (ok, text) = run(&w, commit).await;
    assert!(ok, "{text}");
}

#[tokio::test]
async fn nor_where_the_workspace_lies_in_what_is_protected() {
    let Some(booter) = with_mounts() else { return };
    let mut w = Fixture::within(booter, |reach| reach).await;
    w.write(".git/HEAD", "ref: refs/heads/main\n");
    w.write(".git/hooks/x", "mine");
    look(&mut w, Level::WorkspaceWrite);
    let mut reach = Reach::clone(&w.context.workspace.reach().unwrap());
    reach.protected.push(reach.workspace.parent().unwrap().to_owned());
    let opened = workspace::Workspace::open(&reach.workspace, true).unwrap();
    w.context.workspace = std::sync::Arc::new(opened.with_reach(reach));
    let (ok, text) = run(&w, "echo x > a && ! echo x > .git/hooks/x && ! mv .git git").await;
    assert!(ok && fs::read_to_string(w.path(".git/hooks/x")).unwrap() == "mine", "{text}");
}

#[tokio::test]
async fn nor_where_the_repository_is_somewhere_else() {
    let Some(booter) = with_mounts() else { return };
    let mut w = Fixture::within(booter, |reach| reach).await;
    w.write("main/.git/worktrees/w/commondir", "../..\n");
    w.write("main/.git/hooks/x", "");
    w.write(".git", "gitdir: main/.git/worktrees/w\n");
    look(&mut w, Level::WorkspaceWrite);
    for command in ["echo x > .git", "rm .git", "mv .git x", "echo x > main/.git/hooks/x", "mv main/.git main/git"] {
        let (ok, text) = run(&w, command).await;
        assert!(!ok, "{command}: {text}");
    }
}

#[tokio::test]
async fn file_tools_do_not_write_what_is_protected() {
    for level in [Level::WorkspaceWrite, Level::Host] {
        let mut w = Fixture::within(support::local(), |reach| reach).await;
        look(&mut w, level);
        fs::create_dir_all(w.path(".git/hooks")).unwrap();
        w.write(".agents/skills/a/SKILL.md", "old");
        w.link(".git/hooks", "hooks");
        w.link(".git/config", "dangling");
        for path in [
            ".git/hooks/pre-commit",
            "hooks/pre-commit",
            "dangling",
            "./sub/../.git/config",
            "sub/.git/hooks/x",
            ".nanod/config",
            "SKILL.md",
            ".agents/skills/a/SKILL.md",
            ".agents/skills/b/notes",
            ".steering.jsonl",
        ] {
            let why = w.failed("write_file", json!({"path": path, "content": "x"})).await;
            assert!(why.contains("is protected: "), "{level} {path}: {why}");
        }
        let edit = json!({"path": ".agents/skills/a/SKILL.md", "old_text": "old", "new_text": "new"});
        assert!(w.failed("edit_file", edit).await.contains("is protected: "));
        for path in [".nanod", "sub/.git", ".git/hooks/pre-commit", ".steering.jsonl", "SKILL.md"] {
            assert!(!w.path(path).exists(), "{path} was made");
        }
        let why = w.failed("write_file", json!({"path": "../x", "content": "x"})).await;
        assert!(why.contains("outside the workspace"), "{why}");
        assert!(w.done("write_file", json!({"path": "a/b", "content": "x"})).await.contains("a/b"));
    }
}

#[tokio::test]
async fn a_level_that_only_reads_holds_for_file_tools() {
    let mut w = Fixture::within(support::local(), |reach| reach).await;
    w.write("a", "old");
    look(&mut w, Level::ReadOnly);
    for (tool, arguments) in [
        ("write_file", json!({"path": "a", "content": "x"})),
        ("write_file", json!({"path": "new/b", "content": "x"})),
        ("edit_file", json!({"path": "a", "old_text": "old", "new_text": "new"})),
    ] {
        let why = w.failed(tool, arguments).await;
        assert!(why.contains("is protected: this session's level is read-only"), "{tool}: {why}");
    }
    assert!(!w.path("new").exists() && w.read("a") == b"old");
    assert_eq!(w.done("read_file", json!({"path": "a"})).await, "old");
}

#[tokio::test]
async fn without_restriction_the_system_stays_as_it_is() {
    let w = Fixture::unrestricted();
    for path in ["/etc/nano-x", "/usr/bin/nano-x", "/var/lib/nano-x/y", "/proc/sys/x", "/dev/shm/nano-x"] {
        let why = w.failed("write_file", json!({"path": path, "content": "x"})).await;
        assert!(why.contains("is protected: it belongs to the system"), "{path}: {why}");
    }
    assert!(w.done("write_file", json!({"path": w.outside("new/x"), "content": "x"})).await.contains("new/x"));
}
