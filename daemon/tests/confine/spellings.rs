//! A filter of words sees none of these; the kernel sees what they all come to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nano_protocol::session::Level;

use super::support::Fixture;
use super::{at, both, run, support};

/// Each destroys the folder V, or what is in its file `f`.
const SPELLINGS: [&str; 46] = [
    "rm -r -f V",
    "rm -fr V",
    "rm  -rf V",
    "rm\t-rf V",
    "rm -Rf V",
    "rm --recursive --force V",
    "rm -rf${IFS}V",
    "r\\m -r\\f V",
    "'rm' -r -f V",
    "$(echo rm) -rfv V",
    "/bin/rm -rfv V",
    "command rm -fr V",
    "X='rm -r'; $X -f V",
    "find V -delete",
    "find V -exec rm -f {} +",
    "perl -MFile::Path -e 'rmtree(\"V\")'",
    "python3 -c 'import shutil; shutil.rmtree(\"V\")'",
    "echo 'rm -rf V' | base64 | base64 -d | sh",
    "printf '\\162\\155 -rf V' | sh",
    "eval \"rm -r\"\"f V\"",
    "xargs rm -fr <<< V",
    "rm -r{f,v} V",
    "mv V elsewhere",
    "cd V && rm -r ./*",
    "for file in V/f V/g/h; do unlink \"$file\"; done",
    "truncate -s0 V/f",
    ": > V/f",
    "cp /dev/null V/f",
    "tar --remove-files -cf x.tar V",
    "git -c alias.x='!rm -r V' x",
    "env -S 'rm -r V'",
    "sh <(echo rm -r V)",
    "dd of=V/f if=/dev/null",
    "dd of=V/f </dev/null",
    "shred -u V/f",
    "install /dev/null V/f",
    "tee V/f </dev/null",
    "sed -i d V/f",
    // Of the same kinds.
    "ln -sf /dev/null V/f",
    "mv V/f V/k",
    "echo x > V/new",
    "mkdir V/new; mkfifo V/new/pipe",
    "echo 'rm -rf V' > s; chmod +x s; ./s",
    "(setsid rm -rf V &) ; sleep 0.3",
    "python3 -c 'import os; os.rename(\"V/f\", \"V/k\")'",
    "printf 'all:\\n\\trm -rf V\\n' > Makefile; make",
];
/// These change what only a mount can protect.
const MODES: [&str; 3] = ["chmod 000 V/f", "touch -d 2001-01-01 V/f", "chmod -R a+w V"];

fn victim(fixture: &Fixture) -> std::path::PathBuf {
    let victim = fixture.outside("victim");
    if victim.exists() {
        fs::remove_dir_all(&victim).unwrap();
    }
    fs::create_dir_all(victim.join("g")).unwrap();
    fs::write(victim.join("f"), "one\ntwo\n").unwrap();
    fs::write(victim.join("g/h"), "three\n").unwrap();
    victim
}

/// Tells all that could have been changed.
fn state(folder: &Path) -> Vec<(String, u32, std::time::SystemTime, Vec<u8>)> {
    let mut all = Vec::new();
    for path in ["", "f", "g", "g/h", "k", "new"] {
        let Ok(meta) = fs::symlink_metadata(folder.join(path)) else { continue };
        let contents = fs::read(folder.join(path)).unwrap_or_default();
        all.push((path.to_owned(), meta.permissions().mode(), meta.modified().unwrap(), contents));
    }
    all
}

/// Runs the spellings; returns those that changed the victim.
async fn destroy(fixture: &Fixture, spellings: &[&'static str]) -> Vec<&'static str> {
    let mut changed = Vec::new();
    for spelling in spellings {
        let victim = victim(fixture);
        let before = state(&victim);
        run(fixture, &spelling.replace('V', &victim.to_string_lossy())).await;
        if state(&victim) != before {
            changed.push(*spelling);
        }
    }
    changed
}

#[tokio::test]
async fn nothing_outside_is_destroyed_however_that_is_spelt() {
    for (booter, mounts) in both() {
        let fixture = at(booter, Level::WorkspaceWrite).await;
        assert_eq!(destroy(&fixture, &SPELLINGS).await, [""; 0], "with mounts: {mounts}");
        if mounts {
            assert_eq!(destroy(&fixture, &MODES).await, [""; 0]);
        }
    }
}

#[tokio::test]
async fn each_spelling_destroys_where_nothing_is_in_its_way() {
    let fixture = at(support::local(), Level::Host).await;
    let tools = ["perl", "git", "make"];
    let there = |name: &str| std::process::Command::new("which").arg(name).output().is_ok_and(|it| it.status.success());
    let missing: Vec<&str> = tools.into_iter().filter(|name| !there(name)).collect();
    let all: Vec<&str> = SPELLINGS.into_iter().chain(MODES).collect();
    let expected: Vec<&str> =
        all.iter().copied().filter(|one| !missing.iter().any(|name| one.contains(name))).collect();
    assert_eq!(destroy(&fixture, &all).await, expected);
}

#[tokio::test]
async fn what_a_filter_of_words_would_block_runs() {
    for (booter, _) in both() {
        let fixture = at(booter, Level::WorkspaceWrite).await;
        fixture.write("docs/a", "about mkfs\n");
        fixture.write("target/debug/x", "built\n");
        for command in [
            "echo \"format \"",
            "grep -rn mkfs docs/",
            "date --help | grep -i 'format' | head -1",
            "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m 'never rm -rf / again'",
            "git log --pretty=format:\"%h\"",
            "rm -rf target/ && test ! -e target",
            "echo 'dd if=/dev/zero of=/dev/sda' > notes && cat notes",
            "mkdir -p a/b && rm -rf a && mv notes kept && : > kept && truncate -s0 kept",
            "T=$(mktemp) && echo x > $T && rm $T",
            "python3 -c 'import tempfile; tempfile.NamedTemporaryFile()'",
        ] {
            let (ok, text) = run(&fixture, command).await;
            assert!(ok, "{command}: {text}");
        }
    }
}
