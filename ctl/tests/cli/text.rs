//! Where TEXT comes from, and what a submission says.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;

use serde_json::json;

use crate::fake::{Fake, Say};
use crate::shell::{Ran, command, nanoctl, piped};
use crate::wire::task;

fn submitter() -> Fake {
    Fake::start(|_, _| vec![Say::Result(task("tsk_1", "queued", &json!({})))])
}

#[test]
fn text_is_given_or_piped() {
    for (args, input, content) in [
        (&["submit", "hi"][..], "unread", "hi"),
        (&["submit", "-"], "from stdin\n", "from stdin"),
        (&["submit"], "two\nlines\r\n", "two\nlines"),
        (&["submit", "--", "-s"], "", "-s"),
        (&["submit", "-"], "\n\n", "\n"),
    ] {
        let fake = submitter();
        let ran = piped(&fake, args, input.as_bytes());
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "tsk_1\n", ""), "{args:?}");
        assert_eq!(fake.asked("task.submit")[0]["content"], content, "{args:?}");
    }
}

/// Runs `nanoctl ARGS` and returns each of its writes to stdout: a datagram keeps them apart.
fn writes(fake: &Fake, args: &[&str]) -> Vec<String> {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let status = command(fake, args).stdout(Stdio::from(OwnedFd::from(theirs))).status().unwrap();
    assert!(status.success(), "{args:?}");
    ours.set_nonblocking(true).unwrap();
    let mut bytes = [0; 4096];
    let next = || ours.recv(&mut bytes).ok().map(|length| String::from_utf8(bytes[..length].to_vec()).unwrap());
    std::iter::from_fn(next).collect()
}

#[test]
fn an_answer_is_one_write() {
    let fake = submitter();
    assert_eq!(writes(&fake, &["submit", "hi"]), ["tsk_1\n"]);
    let json = writes(&fake, &["--json", "submit", "hi"]);
    assert!(json.len() == 1 && json[0].ends_with("}\n"), "{json:?}");
}

#[test]
fn no_text_is_a_usage_error() {
    let fake = submitter();
    for (args, input) in [(&["submit"][..], ""), (&["submit", "-"], "\n"), (&["submit", ""], ""), (&["steer", "s"], "")]
    {
        assert_eq!(piped(&fake, args, input.as_bytes()).code, 2, "{args:?}");
    }
    // Nothing is piped in by cron, by a service, or by `<&-`.
    assert_eq!(nanoctl(&fake, &["submit"]).code, 2);
    let program = env!("CARGO_BIN_EXE_nanoctl");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &format!("{program} submit <&- ")]).env_clear().env("NANO_SOCKET", fake.socket());
    assert_eq!(Ran::from(&shell.output().unwrap()).code, 2);
    assert_eq!(fake.asked("task.submit").len(), 0);
}

#[test]
fn a_file_counts_as_piped() {
    let fake = submitter();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    std::fs::write(&path, "from a file").unwrap();
    let stdin = Stdio::from(std::fs::File::open(path).unwrap());
    let ran = Ran::from(&command(&fake, &["submit"]).stdin(stdin).output().unwrap());
    assert_eq!((ran.code, fake.asked("task.submit")[0]["content"].as_str()), (0, Some("from a file")));
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_too_much_is_refused() {
    let fake = submitter();
    let ran = piped(&fake, &["submit"], b"a\xffb");
    assert_eq!((ran.code, ran.err.as_str()), (0, "stdin is not UTF-8: what is not is replaced\n"));
    assert_eq!(fake.asked("task.submit")[0]["content"], "a\u{fffd}b");
    let most = vec![b'x'; nano_protocol::MAX_CONTENT];
    assert_eq!(piped(&fake, &["submit"], &[&most[..], b"\n"].concat()).code, 0);
    let ran = piped(&fake, &["submit"], &[&most[..], b"xx"].concat());
    assert_eq!((ran.code, fake.asked("task.submit").len()), (5, 2));
}

#[test]
fn a_submission_says_where_and_has_a_key() {
    let fake = submitter();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let ran = Ran::from(&command(&fake, &["submit", "x"]).current_dir(&folder).output().unwrap());
    assert_eq!(ran.code, 0);
    let args = "submit x --new n --agent a --model m --booter b --workspace /w/ --tools readonly --level host";
    assert_eq!(nanoctl(&fake, &args.split(' ').collect::<Vec<_>>()).code, 0);
    assert_eq!(nanoctl(&fake, &["submit", "x", "-s", "ses", "--idempotency-key", "k"]).code, 0);
    let asked = fake.asked("task.submit");
    assert_eq!(asked[0]["create"]["workspace"], folder.to_str().unwrap());
    assert!(asked[0]["idempotency_key"].as_str().unwrap().len() > 20);
    assert_ne!(asked[0]["idempotency_key"], asked[1]["idempotency_key"]);
    let mut create = asked[1]["create"].clone();
    create.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    let all = json!({"name": "n", "agent": "a", "workspace": "/w", "booter": "b", "model": "m", "level": "host", "tool_mode": "readonly"});
    assert_eq!(create, all);
    assert_eq!((asked[2]["session"].as_str(), asked[2]["idempotency_key"].as_str()), (Some("ses"), Some("k")));
    assert!(asked[2]["create"].is_null());
}

#[test]
fn json_is_the_result_unchanged() {
    let fake = submitter();
    let ran = nanoctl(&fake, &["submit", "x", "--json"]);
    assert_eq!(ran.out, format!("{}\n", task("tsk_1", "queued", &json!({}))));
}
