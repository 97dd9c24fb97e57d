//! What is hidden or protected, when what holds it is moved; and what stands in for it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use nano_protocol::session::Level;
use nanod::sandbox::reach::Reach;
use nanod::sandbox::{protected, workspace};
use serde_json::json;

use super::support::Fixture;
use super::{at, both, run, with_mounts};

/// Makes the session see its workspace as it is now.
fn look(w: &mut Fixture) {
    let reach = Reach::clone(&w.context.workspace.reach().unwrap());
    let protected = protected::of(&reach.workspace, ".steering.jsonl");
    let opened = workspace::Workspace::open(&reach.workspace, true).unwrap();
    w.context.workspace = std::sync::Arc::new(opened.with_reach(Reach { protected, ..reach }));
}

#[tokio::test]
async fn what_holds_the_hidden_is_not_moved() {
    for (booter, mounts) in both() {
        let w = Fixture::within(booter, |reach| {
            let at = |path: &str| reach.workspace.join(path);
            for path in [".config/more/nanod/nanod.toml", ".local/share/state/db"] {
                fs::create_dir_all(at(path).parent().unwrap()).unwrap();
                fs::write(at(path), "s3cret\n").unwrap();
            }
            let hidden = vec![at(".config/more/nanod"), at(".local/share/state/db")];
            Reach { hidden: hidden.clone(), known: hidden, ..reach }
        })
        .await;
        for command in [
            "mv .config c",
            "mv .config/more .config/m",
            "mv .local l",
            "mv .local/share .local/s",
            "mv .local/share/state .local/share/s",
            "mkdir new; mv -T .config new",
            "python3 -c 'import os; os.rename(\".config\", \"c\")'",
        ] {
            let (ok, text) = run(&w, command).await;
            assert!(!ok, "{command}, with mounts {mounts}: {text}");
            let (_, text) = run(&w, "grep -r s3cret . ; cat c/more/nanod/* l/share/state/*").await;
            assert!(!text.contains("s3cret"), "{command}, with mounts {mounts}: {text}");
        }
        // Who moved it stood outside: nothing is started until it is back.
        fs::rename(w.path(".config"), w.path("c")).unwrap();
        let (ok, text) = run(&w, "cat c/more/nanod/nanod.toml").await;
        assert!(!ok && text.contains("nanod, which nanod keeps from commands, is not where it was"), "{text}");
    }
}

#[tokio::test]
async fn repositories_keep_what_git_runs() {
    let Some(booter) = with_mounts() else { return };
    let mut w = Fixture::within(booter, |reach| reach).await;
    assert!(run(&w, "git init -q . && mkdir -p .git/modules/a/b .git/worktrees/t").await.0);
    for path in [".git/modules/a/b/HEAD", ".git/modules/a/b/config", ".git/worktrees/t/commondir"] {
        w.write(path, "as it was\n");
    }
    w.write(".git/worktrees/t/HEAD", "x");
    for command in [
        "mv .git/modules .git/m",
        "mv .git/modules/a .git/modules/c",
        "mv .git/modules/a/b .git/modules/b",
        "echo x > .git/modules/a/b/config",
        "echo x > .git/modules/a/b/hooks/post-checkout",
        "echo x > .git/worktrees/t/commondir",
        "mv .git/worktrees .git/w",
    ] {
        look(&mut w);
        let (ok, text) = run(&w, command).await;
        assert!(!ok, "{command}: {text}");
    }
    assert!(!w.path(".git/modules/a/hooks").exists() && !w.path(".git/modules/hooks").exists(), "junk was made");
    // Git would take another config and other hooks from there.
    look(&mut w);
    for command in
        ["echo ../evil > .git/commondir", "ln -s x .git/commondir; false", "(sleep 0.2; echo . > .git/commondir) &"]
    {
        run(&w, &format!("{command}\ntrue")).await;
        run(&w, "wait; sleep 0.5").await;
        let path = w.path(".git/commondir");
        assert!(fs::symlink_metadata(&path).is_err(), "{command}: {}", path.display());
    }
}

#[tokio::test]
async fn devices_and_terminals_of_others_are_closed() {
    let text = "import os; pty = os.openpty(); print(os.ttyname(pty[1]), flush=True); input()";
    let mut holder = std::process::Command::new("python3");
    let mut holder = holder.args(["-c", text]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut name = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut name).unwrap();
    let name = name.trim().to_owned();
    assert!(name.starts_with("/dev/pts/"), "{name}");
    for level in [Level::ReadOnly, Level::WorkspaceWrite] {
        for (booter, mounts) in both() {
            let w = at(booter, level).await;
            let mut commands: Vec<String> = fs::read_dir("/dev")
                .unwrap()
                .flatten()
                .filter(|entry| {
                    use std::os::unix::fs::FileTypeExt;
                    let name = entry.file_name().to_string_lossy().into_owned();
                    let is_device = entry.file_type().is_ok_and(|kind| kind.is_block_device() || kind.is_char_device());
                    is_device && !["full", "null", "ptmx", "random", "tty", "urandom", "zero"].contains(&&*name)
                })
                .map(|entry| format!("exec 3< {}", entry.path().display()))
                .collect();
            commands.extend([format!("exec 3> {name}"), format!("exec 3< {name}")]);
            for command in commands {
                let (ok, text) = run(&w, &format!("timeout 5 bash -c '{command}'")).await;
                assert!(!ok, "{level} {command}, with mounts {mounts}: {text}");
            }
            if mounts {
                let own = "python3 -c 'import os; a, b = os.openpty(); os.write(b, b\"own\\n\"); print(os.read(a, 9))'";
                let (ok, text) = run(&w, own).await;
                assert!(ok && text.contains("own"), "{text}");
            }
            assert!(run(&w, "echo x > /dev/null; head -c1 /dev/zero /dev/urandom > /dev/null; ls -l /dev").await.0);
        }
    }
    holder.kill().unwrap();
    holder.wait().unwrap();
}

#[tokio::test]
async fn file_tools_read_no_process() {
    let w = Fixture::unrestricted();
    for path in
        ["/proc/self/environ", "/proc/1/environ", "/proc/self/root/etc/hostname", "/proc/self/fd/0", "/proc/kcore"]
    {
        let why = w.failed("read_file", json!({"path": path})).await;
        assert!(!why.contains("not found"), "{path}: {why}");
    }
    assert!(!w.done("read_file", json!({"path": "/proc/meminfo"})).await.is_empty());
}
