//! Files and skills on their way to a ship and back.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use nanod::sandbox::{Sandbox, SandboxError};
use serde_json::json;
use tempfile::TempDir;

use super::boot;
use super::server::{Act, Server, say};

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

async fn fetched(sandbox: &dyn Sandbox, path: &str) -> Result<(u64, Vec<u8>), SandboxError> {
    let into = tempfile::tempfile().unwrap();
    let length = sandbox.download(path, into.try_clone().unwrap()).await?;
    let (mut bytes, mut into) = (Vec::new(), into);
    into.rewind().unwrap();
    into.read_to_end(&mut bytes).unwrap();
    Ok((length, bytes))
}

/// A server that answers every request for `part` so.
fn answering(part: &'static str, act: Act) -> Server {
    Server::start(move |asked| if asked.line.contains(part) { act.clone() } else { Act::Serve })
}

#[tokio::test]
async fn bug_13_and_15_files_go_there_and_come_back_whole() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let place = sandbox.upload(file(b"one\ntwo"), "a/b c.txt").await.unwrap();
    assert_eq!(place, server.path("a/b c.txt").to_str().unwrap());
    let big: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(server.path("big"), &big).unwrap();
    std::fs::write(server.path("empty"), "").unwrap();
    assert!(fetched(sandbox.as_ref(), "big").await.unwrap() == (12_000_000, big));
    assert_eq!(fetched(sandbox.as_ref(), "empty").await.unwrap(), (0, vec![]));
    let asked = &server.asked("/upload")[0];
    assert_eq!(asked.headers.get("x-session-id").map(String::len), Some(64));
}

#[tokio::test]
async fn bug_13_a_path_of_the_host_is_words() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    for (path, expected) in [("none", "no such file"), ("/home/me/x", "give a path relative to it")] {
        let why = fetched(sandbox.as_ref(), path).await.unwrap_err();
        assert!(matches!(&why, SandboxError::Failed(text) if text.contains(expected)), "{why:?}");
    }
}

#[tokio::test]
async fn transfers_that_fail_are_words() {
    let gone = say(404, &json!({"detail": "Ship not found or not running"}));
    for (act, up, down) in [
        (Act::Hang, "unknown whether", "tried again"),
        (Act::Say(413, "{\"detail\": \"too big\"}".into()), "100 MiB is the most", "100 MiB is the most"),
        (say(403, &json!({"detail": "Access denied"})), "relative to it", "relative to it"),
        (say(403, &json!({"detail": "Not authenticated"})), "access_token", "access_token"),
        (say(500, &json!({"detail": "disk"})), "500: disk", "500: disk"),
        (Act::Send(302, "http://127.0.0.1:9/".into()), "redirects", "redirects"),
        (gone, "computer is gone", "computer is gone"),
    ] {
        let server = Server::start(move |asked| match asked.line.as_str() {
            line if line.contains("load") => act.clone(),
            _ => Act::Serve,
        });
        let sandbox = boot(&server).await;
        let why = sandbox.upload(file(b"x"), "x").await.unwrap_err().to_string();
        assert!(why.contains(up), "{why}");
        let why = fetched(sandbox.as_ref(), "x").await.unwrap_err().to_string();
        assert!(why.contains(down), "{why}");
    }
}

#[tokio::test]
async fn a_file_of_the_host_that_cannot_be_written_is_words() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    std::fs::write(server.path("x"), "some").unwrap();
    let why = sandbox.download("x", File::open("/dev/null").unwrap()).await.unwrap_err();
    assert!(matches!(&why, SandboxError::Failed(text) if text.contains("cannot be used")), "{why:?}");
}

#[tokio::test]
async fn an_upload_is_believed_only_where_it_is_said_to_have_worked() {
    let refused = json!({"success": false, "message": "no", "error": "quota"});
    for (act, expected) in [(say(200, &refused), "quota"), (Act::Say(200, "<html>".into()), "unknown whether")] {
        let server = answering("/upload", act);
        let why = boot(&server).await.upload(file(b"x"), "x").await.unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
    }
}

#[tokio::test]
async fn too_large_a_file_is_neither_sent_nor_taken() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let large = file(b"");
    large.set_len((100 << 20) + 1).unwrap();
    let why = sandbox.upload(large.try_clone().unwrap(), "x").await.unwrap_err().to_string();
    assert!(why.contains("too large") && server.asked("/upload").is_empty(), "{why}");
    File::create(server.path("large")).unwrap().set_len((100 << 20) + 1).unwrap();
    let why = fetched(sandbox.as_ref(), "large").await.unwrap_err().to_string();
    assert!(why.contains("too large"), "{why}");
}

fn skill() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "SKILL.md", "# s");
    write(folder.path(), "scripts/run it.sh", "echo ran");
    write(folder.path(), "old.md", "old");
    write(folder.path(), ".git/config", "secret");
    std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link")).unwrap();
    let script = folder.path().join("scripts/run it.sh");
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn bug_11_a_skill_is_where_the_sandbox_says() {
    let (server, folder) = (Server::working(), skill());
    let sandbox = boot(&server).await;
    let place = sandbox.skill_folder("my-skill", folder.path()).await.unwrap();
    let there = server.path("skills/my-skill");
    assert_eq!(place.split(" (").next(), there.to_str(), "{place}");
    assert!(place.contains("1 were left out"), "{place}");
    assert_eq!(std::fs::read_to_string(there.join("SKILL.md")).unwrap(), "# s");
    let script = std::fs::metadata(there.join("scripts/run it.sh")).unwrap();
    assert_eq!(script.permissions().mode() & 0o111, 0o111);
    for absent in ["link", ".git"] {
        assert!(!there.join(absent).exists(), "{absent}");
    }
}

#[tokio::test]
async fn bug_12_a_changed_skill_is_brought_again_and_only_then() {
    let (server, folder) = (Server::working(), skill());
    let sandbox = boot(&server).await;
    let asked = |_: usize| sandbox.skill_folder("s", folder.path());
    let (one, two) = tokio::join!(asked(1), asked(2));
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(server.asked("/upload").len(), 3);
    write(folder.path(), "SKILL.md", "# t");
    std::fs::remove_file(folder.path().join("old.md")).unwrap();
    asked(3).await.unwrap();
    asked(4).await.unwrap();
    assert_eq!(server.asked("/upload").len(), 5);
    assert_eq!(std::fs::read_to_string(server.path("skills/s/SKILL.md")).unwrap(), "# t");
    assert!(!server.path("skills/s/old.md").exists());
}

#[tokio::test]
async fn a_skill_that_did_not_come_whole_is_brought_again() {
    let count = AtomicUsize::new(0);
    let server = Server::start(move |asked| {
        let strikes = asked.line.contains("/upload") && count.fetch_add(1, Ordering::SeqCst) == 1;
        if strikes { Act::Hang } else { Act::Serve }
    });
    let (sandbox, folder) = (boot(&server).await, skill());
    assert!(sandbox.skill_folder("s", folder.path()).await.is_err());
    sandbox.skill_folder("s", folder.path()).await.unwrap();
    assert_eq!(server.asked("/upload").len(), 5);
}

#[tokio::test]
async fn too_much_of_a_skill_is_left_out_and_said() {
    let (server, folder) = (Server::working(), tempfile::tempdir().unwrap());
    for number in 0..103 {
        write(folder.path(), &format!("f{number:03}"), "x");
    }
    let sandbox = boot(&server).await;
    let place = sandbox.skill_folder("../s", folder.path()).await.unwrap();
    assert!(place.contains("3 were left out") && server.asked("/upload").len() == 100, "{place}");
    assert!(place.contains("/skills/-s "), "{place}");
    let gone = sandbox.skill_folder("t", Path::new("/nowhere/at/all")).await.unwrap_err();
    assert!(matches!(gone, SandboxError::Failed(_)), "{gone:?}");
}
