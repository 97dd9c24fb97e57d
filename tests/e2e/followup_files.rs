//! Follow-ups that wait for files below the workspace: each version once, when it is complete.

use std::fs;
use std::io::Write;
use std::path::Path;

use nano_protocol::followup::Followup;
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use serde_json::json;

use crate::followup_kit::{act, check, get, made, plain, schedule, wait_made};

fn on(client: &mut Client, session: &str, glob: &str) -> Followup {
    schedule(client, session, &json!({"on": {"file": glob}}), &json!({"overlap": "queue"}))
}

/// Returns the files that the tasks were told of.
fn told(client: &mut Client, session: &str) -> Vec<String> {
    let tasks = made(client, session);
    let file = |content: &str| content.rsplit_once("File: ").expect("a line that names the file").1.to_owned();
    tasks.iter().map(|task| file(&task.content)).collect()
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

#[test]
fn each_version_once() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let (session, work) = (daemon.session(&mut client), daemon.workspace());
    put(&work, "inbox/old.md", "was there");
    let followup = on(&mut client, &session, "inbox/*.md");
    put(&work, "inbox/a.md", "1");
    wait_made(&mut client, &session, 1);
    put(&work, "inbox/a.txt", "does not fit");
    put(&work, "inbox/deeper/b.md", "does not fit");
    daemon.kill9();
    put(&work, "inbox/b.md", "while nobody looked");
    daemon.restart();
    let mut client = daemon.client();
    wait_made(&mut client, &session, 2);
    // Written anew, and replaced by another.
    put(&work, "inbox/a.md", "2");
    wait_made(&mut client, &session, 3);
    put(&work, "new", "3");
    fs::rename(work.join("new"), work.join("inbox/a.md")).expect("a rename");
    wait_made(&mut client, &session, 4);
    // What is found together comes by name: with the last one all have come that ever will.
    put(&work, "inbox/z.md", "4");
    wait_made(&mut client, &session, 5);
    let expected = ["inbox/a.md", "inbox/b.md", "inbox/a.md", "inbox/a.md", "inbox/z.md"];
    assert_eq!(told(&mut client, &session), expected);
    assert_eq!(check(&daemon, &followup).len(), 5);
}

#[test]
fn many_at_once_in_folders_that_come_later() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let (session, work) = (daemon.session(&mut client), daemon.workspace());
    on(&mut client, &session, "out/**/*.{csv,tsv}");
    for n in 0..5 {
        put(&work, &format!("out/{n}/x.csv"), "x");
        put(&work, &format!("out/{n}/y.tsv"), "x");
    }
    wait_made(&mut client, &session, 10);
    let mut files = told(&mut client, &session);
    files.sort();
    files.dedup();
    assert_eq!(files.len(), 10, "{files:?}");
}

#[test]
fn not_before_it_is_complete() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let (session, work) = (daemon.session(&mut client), daemon.workspace());
    on(&mut client, &session, "*.log");
    let mut file = fs::File::create(work.join("a.log")).expect("a file");
    for n in 1..3 {
        file.write_all(b"more").expect("a line");
        put(&work, &format!("b{n}.log"), "x");
        wait_made(&mut client, &session, n);
    }
    assert_eq!(told(&mut client, &session), ["b1.log", "b2.log"], "somebody still writes the first one");
    drop(file);
    wait_made(&mut client, &session, 3);
    put(&work, "c.log", "x");
    wait_made(&mut client, &session, 4);
    assert_eq!(told(&mut client, &session), ["b1.log", "b2.log", "a.log", "c.log"]);
}

#[test]
fn nothing_but_regular_files_below_the_workspace() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let (session, work) = (daemon.session(&mut client), daemon.workspace());
    let outside = daemon.root().join("outside");
    put(&outside, "x.md", "secret");
    std::os::unix::fs::symlink(&outside, work.join("early")).expect("a link");
    let followup = on(&mut client, &session, "**/*.md");
    on(&mut client, &session, "early/*.md");
    std::os::unix::fs::symlink(&outside, work.join("late")).expect("a link");
    std::os::unix::fs::symlink(outside.join("x.md"), work.join("l.md")).expect("a link");
    fs::create_dir(work.join("folder.md")).expect("a folder");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        work.join("pipe.md"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe");
    put(&outside, "y.md", "secret");
    put(&work, "odd\n name.md", "x");
    put(&work, "z.md", "x");
    wait_made(&mut client, &session, 2);
    put(&work, "zz.md", "x");
    wait_made(&mut client, &session, 3);
    assert_eq!(told(&mut client, &session), [r"odd\n name.md", "z.md", "zz.md"]);
    assert_eq!(get(&mut client, &followup).runs, 3);
}

#[test]
fn what_appears_in_a_pause_does_not_count() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let (session, work) = (daemon.session(&mut client), daemon.workspace());
    let followup = on(&mut client, &session, "*.md");
    act(&mut client, "followup.pause", &followup);
    put(&work, "a.md", "x");
    act(&mut client, "followup.resume", &followup);
    put(&work, "b.md", "x");
    wait_made(&mut client, &session, 1);
    put(&work, "c.md", "x");
    wait_made(&mut client, &session, 2);
    assert_eq!(told(&mut client, &session), ["b.md", "c.md"]);
}
