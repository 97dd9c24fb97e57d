//! Commands: how they end, what is kept of what they print, and that nothing they start outlives its task.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use nano_protocol::session::Level;
use nanod::booters::Booter;
use nanod::sandbox::Language;
use nanod::sandbox::helper::{ARGUMENT, Job};
use nanod::sandbox::reach::Reach;
use nanod::tools::ToolOutcome;
use serde_json::json;
use support::Fixture;

#[path = "exec/ends.rs"]
mod ends;

/// Returns a text that no other process has among its arguments, for `sleep` to take: 1000 hours and some seconds.
fn mark() -> String {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("36{:07}{:03}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Returns how many living processes have `mark` as an argument of their own.
fn alive(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let has_mark = |folder: &Path| {
        let line = fs::read(folder.join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())
    };
    processes.filter(|entry| has_mark(&entry.path())).count()
}

async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn how_commands_end() {
    let w = Fixture::with_computer().await;
    w.write("sub/f", "");
    let cwd = fs::canonicalize(w.path("")).unwrap().display().to_string();
    let done = |text: &str| ToolOutcome::Done(text.into());
    let failed = |text: &str| ToolOutcome::Failed(text.into());
    for (command, expected) in [
        ("echo hi", done("hi")),
        ("true", done("(no output)")),
        ("echo out; echo err >&2", done("out\nerr")),
        ("pwd", done(&cwd)),
        ("cat; echo end", done("end")),
        ("echo a; exit 3", failed("a\n[exit status 3]")),
        ("false", failed("(no output)\n[exit status 1]")),
        ("no-such-program 2>/dev/null", failed("(no output)\n[exit status 127]")),
        ("kill -9 $$", failed("(no output)\n[killed by SIGKILL]")),
        ("echo a; kill -SEGV $$", failed("a\n[killed by SIGSEGV]")),
        ("kill 0; echo not reached", failed("(no output)\n[killed by SIGTERM]")),
        ("printf '\\033]0;x\\007\\033[2Ja\\033[1mb\\r\\nc\\td\\b\\n'", done("ab\nc\td")),
        ("printf '\\377a\\n'", done("\u{fffd}a")),
        ("echo \"format \"; mkdir d; rm -rf d; ls", done("format \nsub")),
        ("kill $PPID 2>/dev/null; kill -HUP $PPID 2>/dev/null; echo alive", done("alive")),
    ] {
        assert_eq!(w.call("exec", json!({"command": command})).await, expected, "{command}");
    }
    assert_eq!(w.done("exec", json!({"command": "pwd", "cwd": "sub"})).await, format!("{cwd}/sub"));
    for (arguments, part) in [
        (json!({"command": "pwd", "cwd": ".."}), "outside the workspace"),
        (json!({"command": "pwd", "cwd": "nowhere"}), "no such file or folder"),
        (json!({"command": "pwd", "cwd": "sub/f"}), "not a folder"),
        (json!({"command": "true", "timeout": 0}), "`timeout` must be 1 to 600 seconds, not 0"),
        (json!({"command": "true", "timeout": -1}), "must be 1 to 600"),
        (json!({"command": "true", "timeout": 601}), "must be 1 to 600"),
        (json!({"command": "true", "timeout": 1e12}), "must be 1 to 600"),
        (json!({"command": "true", "timeout": 1e300}), "`timeout` must be an integer"),
        (json!({"command": "true", "env": {"LD_PRELOAD": "x"}}), "`env` is not known"),
        (json!({"command": "echo a\u{0}b"}), "NUL byte"),
        (json!({"code": "true"}), "`command` is missing"),
    ] {
        let why = w.failed("exec", arguments.clone()).await;
        assert!(why.contains(part), "{arguments}: {why}");
    }
}

#[tokio::test]
async fn python_runs() {
    let w = Fixture::with_computer().await;
    for (code, expected) in [
        ("print('a')\nprint(\"b $HOME 'x'\")", ToolOutcome::Done("a\nb $HOME 'x'".into())),
        ("import sys\nsys.exit(3)", ToolOutcome::Failed("(no output)\n[exit status 3]".into())),
        ("print(repr(__import__('sys').stdin.read()))", ToolOutcome::Done("''".into())),
    ] {
        assert_eq!(w.call("python", json!({"code": code})).await, expected, "{code}");
    }
    let long = format!("x = '''{}'''\ndef f(): return len(x)\nprint(f(), __name__)", "é".repeat(100_000));
    assert_eq!(w.done("python", json!({"code": long})).await, "100000 __main__");
    let long = format!("x='{}'\necho ${{#x}}; exit 4", "a".repeat(200_000));
    assert_eq!(w.failed("exec", json!({"command": long})).await, "200000\n[exit status 4]");
    assert!(w.failed("python", json!({"code": "", "timeout": 0})).await.contains("must be 1 to 600"));
}

#[tokio::test]
async fn the_environment_is_an_allow_list() {
    let w = Fixture::with_computer().await;
    let seen =
        w.done("exec", json!({"command": "env; tr '\\0' '\\n' < /proc/$PPID/environ; ls -v /proc/self/fd"})).await;
    for secret in ["sk-secret", "OPENAI", "NOTIFY_SOCKET", "CARGO"] {
        assert!(!seen.contains(secret), "{seen}");
    }
    assert!(seen.contains("PATH=") && seen.contains("HOME="), "{seen}");
    assert!(seen.ends_with("\n0\n1\n2\n3"), "no descriptor but those of ls itself: {seen}");
}

#[tokio::test]
async fn head_and_tail_are_kept() {
    let w = Fixture::with_computer().await;
    let spilled = |text: &str| {
        let path = text.split("the whole output is in ").nth(1).unwrap_or_else(|| panic!("{text}"));
        fs::read(path.split([' ', ']']).next().unwrap()).unwrap()
    };
    let text = w.done("exec", json!({"command": "seq 100000"})).await;
    assert!(text.starts_with("1\n2\n") && text.ends_with("99999\n100000") && text.len() < 52_000, "{text}");
    assert!(text.contains("bytes left out"));
    assert_eq!(spilled(&text), support::lines(1..=100_000, |n| format!("{n}\n")).into_bytes());
    let text = w.done("exec", json!({"command": "seq 3000"})).await;
    assert!(!text.contains('['), "13 KB fit");
    let text = w.done("exec", json!({"command": "head -c 120000 /dev/zero | tr '\\0' x; echo; echo end"})).await;
    assert!(text.len() < 9_000 && text.contains("of this line left out") && text.contains("\nend"), "{text}");
    assert_eq!(spilled(&text).len(), 120_005);
    let text = w.done("exec", json!({"command": "yes é | tr -d '\\n' | head -c 100001"})).await;
    assert!(!text.contains('\u{fffd}'), "no character is cut: {text}");
    let text = w.done("exec", json!({"command": "head -c 5000 /dev/zero | tr '\\0' x"})).await;
    assert_eq!(spilled(&text).len(), 5000);
}

#[tokio::test]
async fn endless_output_takes_bounded_memory_and_disk() {
    let w = Fixture::with_computer().await;
    let resident = || {
        let status = fs::read_to_string("/proc/self/statm").unwrap();
        status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    };
    let before = resident();
    let text = w.done("exec", json!({"command": "yes | head -c 2G", "timeout": 600})).await;
    assert!(resident() < before + (64 << 20));
    assert!(text.contains("is not the whole output: it holds the first 64 MiB"), "{text}");
    // Beside it lies what a daemon that dies now would leave of the output.
    let is_spill =
        |entry: &fs::DirEntry| entry.path().is_file() && !entry.file_name().to_string_lossy().starts_with("running-");
    let spill = fs::read_dir(w.outside("spill")).unwrap().map(Result::unwrap).find(is_spill).unwrap();
    assert_eq!(spill.metadata().unwrap().len(), 64 << 20);
}

#[tokio::test]
async fn a_spill_that_cannot_be_written_is_said() {
    let w = Fixture::with_computer().await;
    fs::write(w.outside("spill"), "in the way").unwrap();
    let text = w.done("exec", json!({"command": "seq 100000"})).await;
    assert!(text.contains("is not the whole output: ") && text.ends_with("100000"), "{text}");
}

/// A name may be given to another folder after it was looked at.
#[test]
fn a_command_starts_in_the_folder_that_was_meant() {
    use std::os::unix::fs::MetadataExt;
    let root = fs::metadata("/").unwrap();
    for (place, says) in [
        (None, "\"started\""),
        (Some((root.dev(), root.ino())), "\"started\""),
        (Some((root.dev(), root.ino() + 1)), "is another one by now"),
    ] {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut helper = Command::new(env!("CARGO_BIN_EXE_nanod"))
            .arg(ARGUMENT)
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (program, language) = ("/bin/sh".into(), Language::Shell);
        let (text, cwd, env) = ("pwd".into(), "/".into(), support::environment());
        let job = Job { program, language, text, cwd, place, env, plan: None, input: false };
        writeln!(&ours, "{}", serde_json::to_string(&job).unwrap()).unwrap();
        let mut news = String::new();
        BufReader::new(&ours).read_line(&mut news).unwrap();
        drop(ours);
        assert!(news.to_lowercase().contains(says), "{place:?}: {news}");
        let mut output = String::new();
        helper.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        assert!(helper.wait().unwrap().success() && (says.contains("another") == output.is_empty()), "{output}");
    }
}

/// The daemon's death closes the control channel, whatever it died of.
#[test]
fn everything_ends_when_the_control_channel_closes() {
    let mark = mark();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut helper = Command::new(env!("CARGO_BIN_EXE_nanod"))
        .arg(ARGUMENT)
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let job = Job {
        program: "/bin/sh".into(),
        language: Language::Shell,
        text: format!("setsid sleep {mark} & echo up; trap '' TERM; sleep {mark}; sleep {mark}"),
        cwd: "/".into(),
        place: None,
        env: support::environment(),
        plan: None,
        input: false,
    };
    writeln!(&ours, "{}", serde_json::to_string(&job).unwrap()).unwrap();
    let mut output = BufReader::new(helper.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    drop(ours);
    output.read_to_string(&mut line).unwrap();
    assert!(helper.wait().unwrap().success());
    assert_eq!(alive(&mark), 0);
}

#[tokio::test]
async fn a_stranger_is_never_ended() {
    let w = Fixture::with_computer().await;
    let mark = mark();
    let mut stranger = Command::new("sleep").arg(&mark).spawn().unwrap();
    let outcome = w.call("exec", json!({"command": format!("sleep {mark}0"), "timeout": 1})).await;
    assert!(matches!(outcome, ToolOutcome::Stopped(_)));
    assert_eq!(stranger.try_wait().unwrap(), None);
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn without_a_program_there_is_one_clear_error() {
    let booter = nanod::booters::local::LocalBooter::new("/nowhere/nanod".into(), support::environment());
    let mut w = Fixture::new();
    assert_eq!(w.failed("exec", json!({"command": "true"})).await, "this session has no computer");
    w.context.sandbox = Some(booter.attach(&support::request(), "").await.unwrap());
    let why = w.failed("exec", json!({"command": "true"})).await;
    assert!(why.starts_with("the command could not be started: "), "{why}");
}
