//! Programs in a box, what they print and leave, and files.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use nanod::sandbox::{Command, Ending, Language, SandboxError};
use tokio_util::sync::CancellationToken;

use crate::kit::{booted, run, shell, task};
use nano_tests::boxlite::{Boxlite, Fault};
use nano_tests::wait;

fn python(text: &str) -> Command {
    Command { language: Language::Python, ..shell(text) }
}

#[tokio::test]
async fn programs_end_with_their_status_and_what_they_printed() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    let long = |line: &str| line.repeat(150_000 / line.len());
    for (command, code, output) in [
        (shell("echo one; echo two >&2; echo three; exit 3"), 3, "one\ntwo\nthree\n"),
        (shell("cat; echo read"), 0, "read\n"),
        (shell("printf 'a\\0\\033[1mb\\033[0m\\r\\n'"), 0, "ab\n"),
        (shell("echo \"it's\" '$HOME' \"a  b\""), 0, "it's $HOME a  b\n"),
        (shell("kill -9 $$"), 137, ""),
        (Command { cwd: Some("/tmp".into()), ..shell("pwd") }, 0, "/tmp\n"),
        (shell(&long("true #xxxx\n")), 0, ""),
        (python("import sys\nprint('hi')\nsys.exit(4)"), 4, "hi\n"),
        (python(&format!("{}print(len('''{}'''))", long("# x\n"), "é".repeat(3))), 0, "3\n"),
        (python("print(input() if 0 else 'no input')"), 0, "no input\n"),
    ] {
        let text: String = command.text.chars().take(60).collect();
        let report = run(sandbox.as_ref(), command).await;
        assert_eq!((report.ending, report.output.as_str()), (Ending::Exited(code), output), "{text}");
        assert_eq!((report.spill, report.left_running), (None, 0), "{text}");
    }
    let report = run(sandbox.as_ref(), python("1/0")).await;
    assert!(report.output.contains("ZeroDivisionError"), "{}", report.output);
}

#[tokio::test]
async fn long_output_is_cut_and_whole_in_the_box() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    let output = run(sandbox.as_ref(), shell("seq 1 100000")).await.output;
    assert!(output.starts_with("1\n2\n") && output.ends_with("\n99999\n100000\n") && output.len() < 50_000);
    let note = output.lines().find(|line| line.contains("left out")).unwrap();
    let path = note.split_ascii_whitespace().find(|word| word.starts_with("/tmp/")).unwrap();
    let again = run(sandbox.as_ref(), shell(&format!("wc -l < {path}"))).await;
    assert_eq!(again.output.trim(), "100000");
}

#[tokio::test]
async fn endless_output_is_bounded_and_ended() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    let report = run(sandbox.as_ref(), Command { timeout: Duration::from_secs(1), ..shell("yes") }).await;
    assert_eq!(report.ending, Ending::TimedOut);
    assert!(report.output.len() < 70_000 && report.output.contains("left out"));
    assert_eq!(server.running(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_too_long_or_is_cancelled_ends_with_all_it_started() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    let text = "echo before; (trap '' TERM; sleep 1000) & setsid sleep 1000 & sleep 1000; echo after";
    let report = run(sandbox.as_ref(), Command { timeout: Duration::from_millis(500), ..shell(text) }).await;
    assert_eq!((report.ending, report.output.as_str()), (Ending::TimedOut, "before\n"));
    assert_eq!(server.running(), Vec::<String>::new());
    let cancel = CancellationToken::new();
    let (command, stop, of_run) = (shell(text), cancel.clone(), sandbox.clone());
    let running = tokio::spawn(async move { of_run.run(command, &stop).await });
    let up = || (server.running().iter().filter(|one| one.starts_with("sleep")).count() == 3).then_some(());
    tokio::task::block_in_place(|| wait::until("three sleeps", up));
    cancel.cancel();
    let report = running.await.unwrap().unwrap();
    assert_eq!((report.ending, report.output.as_str()), (Ending::Cancelled, "before\n"));
    assert_eq!(server.running(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_left_running_ends_with_its_task() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    let report = run(sandbox.as_ref(), shell("echo hi; sleep 1000 & sleep 1000 &")).await;
    assert_eq!((report.ending, report.output.as_str(), report.left_running), (Ending::Exited(0), "hi\n", 2));
    let other = task("t11");
    let background = Command { background: true, task: other.clone(), ..shell("echo hi; sleep 1000") };
    let report = run(sandbox.as_ref(), background).await;
    assert_eq!((report.ending, report.left_running), (Ending::Running, 1));
    let seen = run(sandbox.as_ref(), shell(&format!("cat {}", report.spill.unwrap().display()))).await;
    assert_eq!(seen.output, "hi\n");
    let failing = run(sandbox.as_ref(), Command { background: true, ..shell("no-such-program-x") }).await;
    assert_eq!(failing.ending, Ending::Exited(127));
    let sleeps = || server.running().iter().filter(|one| one.starts_with("sleep 1000")).count();
    assert_eq!(sleeps(), 3);
    sandbox.end_task(&task("t1")).await;
    assert_eq!(sleeps(), 1);
    sandbox.end_task(&other).await;
    assert_eq!(sleeps(), 0);
    wait::until("the end of what watched over it", || server.running().is_empty().then_some(()));
}

#[tokio::test]
async fn a_connection_that_breaks_loses_output_but_not_the_end() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    for fault in [Fault::NoAttach, Fault::Resets(0)] {
        server.fault(Some(fault.clone()));
        let report = run(sandbox.as_ref(), shell("echo hi; exit 3")).await;
        assert_eq!(report.ending, Ending::Exited(3), "{fault:?}");
        assert!(report.output.contains("[the output may be incomplete: "), "{fault:?}: {}", report.output);
    }
    server.fault(Some(Fault::Resets(0)));
    let report = run(sandbox.as_ref(), Command { timeout: Duration::from_secs(1), ..shell("sleep 1000") }).await;
    assert_eq!(report.ending, Ending::TimedOut);
    assert_eq!(server.running(), Vec::<String>::new());
}

#[tokio::test]
async fn a_connection_that_breaks_is_opened_anew_and_tells_each_thing_once() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    for frames in [0, 1] {
        server.fault(Some(Fault::ResetsOnce(frames)));
        let report = run(sandbox.as_ref(), shell("echo hi; exit 3")).await;
        assert_eq!((report.ending, report.output.as_str()), (Ending::Exited(3), "hi\n"), "{frames}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_in_the_background_never_stays_alone() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    let report = run(sandbox.as_ref(), Command { background: true, ..shell("sleep 1000") }).await;
    assert_eq!(report.ending, Ending::Running);
    let attached = || server.seen().iter().filter(|seen| seen.what.ends_with("/attach")).count();
    for _ in 0..3 {
        let before = attached();
        server.cut();
        tokio::task::block_in_place(|| {
            wait::until("another connection", || (attached() > before).then_some(()));
        });
    }
    sandbox.end_task(&task("t1")).await;
}

#[tokio::test]
async fn an_end_that_nobody_saw_is_no_signal() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    server.fault(Some(Fault::WaitFails));
    let error = sandbox.run(shell("echo hi"), &CancellationToken::new()).await.unwrap_err().to_string();
    assert!(error.contains("it is unknown how the program ended") && error.ends_with("It printed:\nhi\n"), "{error}");
    let error = sandbox.upload(file(b"x"), "x").await.unwrap_err().to_string();
    assert!(error.contains("unknown"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_too_large_does_not_come() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    File::create(server.folder().join("big")).unwrap().set_len((100 << 20) + 1).unwrap();
    let into = tempfile::tempfile().unwrap();
    let error = sandbox.download("big", into.try_clone().unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("100 MiB is the most"), "{error}");
    assert_eq!(into.metadata().unwrap().len(), 0);
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    file.rewind().unwrap();
    file
}

#[tokio::test]
async fn files_go_and_come_whole() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    let big: Vec<u8> = (0..1_000_003_u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
    for (path, bytes) in [
        ("empty", &b""[..]),
        ("one", b"x"),
        ("deep/er/a b'c\".bin", &big),
        ("-rf", b"\0\xff\n"),
        ("one", b"again"),
        ("piece", &big[..188_416]),
        ("line\nbreak", b"\n\n"),
    ] {
        let place = sandbox.upload(file(bytes), path).await.unwrap();
        assert_eq!(place, format!("/{path}"));
        let there = fs::read(server.folder().join(path)).unwrap();
        assert!(there == bytes, "{path}: {} bytes", there.len());
        let mut came = tempfile::tempfile().unwrap();
        let count = sandbox.download(path, came.try_clone().unwrap()).await.unwrap();
        let mut back = Vec::new();
        came.rewind().unwrap();
        came.read_to_end(&mut back).unwrap();
        assert!(count == bytes.len() as u64 && back == bytes, "{path}: {count} bytes");
    }
    let left: Vec<_> = fs::read_dir(server.folder()).unwrap().flatten().map(|one| one.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains(".part")), "{left:?}");
}

#[tokio::test]
async fn files_that_cannot_go_or_come_say_why() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    fs::create_dir(server.folder().join("folder")).unwrap();
    fs::write(server.folder().join("plain"), "x").unwrap();
    let big = vec![b'x'; 4 << 20];
    for (path, expected) in [("folder", "is a folder"), ("plain/below", "plain"), ("folder/", "is a folder")] {
        let error = sandbox.upload(file(&big), path).await.unwrap_err();
        assert!(matches!(&error, SandboxError::Failed(why) if why.contains(expected)), "{path}: {error}");
    }
    for (path, expected) in [("none", "none does not exist"), ("folder", "folder is not a file")] {
        let error = sandbox.download(path, tempfile::tempfile().unwrap()).await.unwrap_err();
        assert!(matches!(&error, SandboxError::Failed(why) if why.contains(expected)), "{path}: {error}");
    }
    server.fault(Some(Fault::NoAttach));
    let error = sandbox.upload(file(&big), "x").await.unwrap_err();
    assert!(error.to_string().contains("the connection to the sandbox broke"), "{error}");
    assert!(!Path::new(&server.folder()).join("x").exists());
    assert_eq!(server.running(), Vec::<String>::new());
}

#[tokio::test]
async fn a_skill_comes_with_its_files() {
    let server = Boxlite::start();
    let sandbox = booted(&server).await;
    let skill = tempfile::tempdir().unwrap();
    fs::create_dir(skill.path().join("scripts")).unwrap();
    fs::write(skill.path().join("SKILL.md"), "text").unwrap();
    fs::write(skill.path().join("scripts/run.sh"), "echo ran").unwrap();
    fs::set_permissions(skill.path().join("scripts/run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    let place = sandbox.skill_folder("demo", skill.path()).await.unwrap();
    assert_eq!(place, "/skills/demo");
    assert_eq!(
        run(sandbox.as_ref(), shell("cat skills/demo/SKILL.md && skills/demo/scripts/run.sh")).await.output,
        "textran\n"
    );
}
