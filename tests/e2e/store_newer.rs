//! A store that a newer version wrote, wherever it says so: refused by name with exit status 65, and every byte stays.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nano_tests::daemon::Daemon;
use nano_tests::model_server::ModelServer;
use serde_json::json;

use crate::store_fixture::{obedient, setup};
use crate::store_kit::files;
use crate::store_versions::unpack;

/// A store of this version with a checkpoint and a journal behind it.
fn made(server: &ModelServer) -> Daemon {
    let mut daemon = Daemon::with(server, setup());
    let session = daemon.session(&mut daemon.client());
    // So much is worth a checkpoint at the end.
    for _ in 0..3 {
        daemon.client().run(&session, &format!("say {}", "hello ".repeat(100_000)));
    }
    daemon.terminate().code().expect("an end of its own");
    daemon.restart();
    daemon.client().run(&session, "say more");
    daemon.kill9();
    daemon
}

/// Returns the newest file of this ending in a part of the store.
fn newest(daemon: &Daemon, part: &str, ending: &str) -> PathBuf {
    let folder = daemon.state().join("store").join(part);
    let newest = files(&folder).into_keys().rfind(|name| name.ends_with(ending));
    folder.join(newest.unwrap_or_else(|| panic!("no {ending} in {part}")))
}

/// CRC-32 as zlib has it.
fn crc32(bytes: &[u8]) -> u32 {
    let shift = |sum: u32, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0_u32, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), shift))
}

fn sha256(bytes: &[u8]) -> String {
    let mut child = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sha256sum");
    child.stdin.take().expect("its input").write_all(bytes).expect("all of it");
    let output = child.wait_with_output().expect("a sum").stdout;
    String::from_utf8_lossy(&output)[..64].to_owned()
}

/// Puts `new` for `old` where it first stands in a line of a segment, and makes the line's sum right.
fn edit_journal(segment: &Path, old: &str, new: &str) {
    let bytes = fs::read(segment).expect("a segment");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("lines") + 1;
    let text = String::from_utf8(bytes[..end].to_vec()).expect("UTF-8");
    assert!(text.contains(old), "{old} is not in {}", segment.display());
    let edit = |line: &str| {
        let body = line.split_once(' ').expect("a sum").1.replacen(old, new, 1);
        format!("{:08x} {body}\n", crc32(body.as_bytes()))
    };
    let edited: Vec<String> =
        text.lines().map(|line| if line.contains(old) { edit(line) } else { format!("{line}\n") }).collect();
    let mut edited = edited.concat().into_bytes();
    edited.resize(bytes.len().max(edited.len()), 0);
    fs::write(segment, edited).expect("a segment");
}

/// Puts `new` for `old` in the head of a manifest, and makes its sum right.
fn edit_manifest(manifest: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(manifest).expect("a manifest");
    assert!(text.contains(old), "{old} is not in {}", manifest.display());
    let end = text.rfind('\n').expect("an end") + 1;
    let body = text[..end].replacen(old, new, 1);
    fs::write(manifest, format!("{body}{}", json!({"sha256": sha256(body.as_bytes())}))).expect("a manifest");
}

fn check_refused(daemon: &mut Daemon, what: &str) {
    let store = daemon.state().join("store");
    let content = || {
        let mut files = files(&store);
        files.remove("lock"); // Says who holds it.
        files
    };
    let before = content();
    let status = daemon.try_start().expect_err(what);
    assert_eq!(status.code(), Some(65), "{what}: {}", daemon.log());
    let log = daemon.log();
    assert!(
        log.lines().any(|line| line.starts_with("nanod: ") && line.contains("newer") && line.contains("999")),
        "{what}: {log}"
    );
    let after = content();
    let names: Vec<_> =
        before.keys().chain(after.keys()).filter(|name| before.get(*name) != after.get(*name)).collect();
    assert!(names.is_empty(), "{what}: {names:?} changed");
}

#[test]
fn a_segment_says_so() {
    let server = obedient(false);
    let mut daemon = made(&server);
    edit_journal(&newest(&daemon, "journal", ".jnl"), "\"schema\":2", "\"schema\":999");
    check_refused(&mut daemon, "the header of the newest segment");
}

#[test]
fn a_record_says_so() {
    let server = obedient(false);
    let mut daemon = made(&server);
    edit_journal(&newest(&daemon, "journal", ".jnl"), "[\"put\",\"!/schema\",2]", "[\"put\",\"!/schema\",999]");
    check_refused(&mut daemon, "the record of the schema");
}

#[test]
fn a_checkpoint_says_so() {
    for member in ["\"schema\":2", "\"nano_checkpoint\":1"] {
        let server = obedient(false);
        let mut daemon = made(&server);
        let newer = format!("{}999", &member[..member.len() - 1]);
        edit_manifest(&newest(&daemon, "checkpoint", ".manifest"), member, &newer);
        check_refused(&mut daemon, member);
    }
}

#[test]
fn the_first_layout_says_so() {
    let server = obedient(false);
    let mut daemon = unpack(&server, "schema-1");
    let db = sled::open(daemon.state().join("store")).expect("sled");
    db.insert("!/schema", &999_u64.to_be_bytes()).expect("a record");
    db.flush().expect("a flush");
    drop(db);
    check_refused(&mut daemon, "sled in the first layout");
}
