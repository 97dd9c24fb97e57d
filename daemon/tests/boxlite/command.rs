//! `boxlite serve` as a program that the booter starts.

use std::fs;
use std::path::Path;

use nanod::booters::Booter;
use nanod::booters::boxlite::BoxliteBooter;
use nanod::config::BoxliteConfig;
use tempfile::TempDir;

use crate::kit::{self, boot, request, run, shell};
use nano_tests::boxlite::{program, serve_if_asked};
use nano_tests::{processes, wait};
use tokio_util::sync::CancellationToken;

/// Not a test of its own: here the stand-in becomes a program.
#[test]
fn becomes_the_program() {
    serve_if_asked();
}

fn booter(root: &Path) -> BoxliteBooter {
    let config = BoxliteConfig {
        command: Some("boxlite".into()),
        image: Some("debian:stable".into()),
        path: format!("/nowhere:{}", root.display()),
        ..BoxliteConfig::default()
    };
    let mut env = kit::env();
    env.push(("HOME".into(), root.display().to_string()));
    BoxliteBooter::new(config, env!("CARGO_BIN_EXE_nanod").into(), env)
}

fn place() -> TempDir {
    let root = tempfile::Builder::new().prefix("nano-boxlite-").tempdir().unwrap();
    program(root.path(), "command::becomes_the_program");
    root
}

fn servers(root: &Path) -> Vec<processes::Process> {
    processes::of(root).into_iter().filter(|one| one.command.contains("--exact command::becomes")).collect()
}

#[tokio::test]
async fn it_is_started_once_when_needed_and_ends_with_its_owner() {
    let root = place();
    let booter = booter(root.path());
    assert_eq!(booter.note().unwrap(), "`boxlite serve` is started when it is first needed (boxlite 0.10.8)");
    assert!(processes::of(root.path()).is_empty());
    let sandbox = boot(&booter).await.unwrap();
    assert_eq!(run(sandbox.as_ref(), shell("echo hi; sleep 1000 &")).await.output, "hi\n");
    let running = servers(root.path());
    assert_eq!(running.len(), 1, "{running:?}");
    let key = fs::read_to_string(format!("/proc/{}/environ", running[0].pid)).unwrap();
    let key = key.split('\0').find_map(|one| one.strip_prefix("BOXLITE_SERVE_API_KEY=")).unwrap().to_owned();
    assert!(key.len() == 64 && !processes::of(root.path()).iter().any(|one| one.command.contains(&key)));
    assert!(!format!("{booter:?}").contains(&key));
    booter.give_back(&request("s1"), None).await.unwrap();
    assert!(servers(root.path()).len() == 1 && fs::read_dir(root.path().join(".boxlite")).unwrap().next().is_none());
    drop((booter, sandbox));
    wait::until("the end of all", || processes::of(root.path()).is_empty().then_some(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_died_is_started_again_and_the_box_is_found() {
    let root = place();
    let booter = booter(root.path());
    let sandbox = boot(&booter).await.unwrap();
    assert_eq!(run(sandbox.as_ref(), shell("echo hi > kept")).await.output, "");
    let [old] = &servers(root.path())[..] else { panic!("one server") };
    processes::kill(old);
    wait::until("the end of the server", || servers(root.path()).is_empty().then_some(()));
    let again = wait::until("a server", || {
        let ran = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(sandbox.run(shell("cat kept"), &CancellationToken::new()))
        });
        ran.ok()
    });
    assert_eq!(again.output, "hi\n");
    let now = servers(root.path());
    assert!(now.len() == 1 && now[0].pid != old.pid, "{now:?}");
}

#[tokio::test]
async fn one_that_does_not_stay_says_its_last_words() {
    let root = place();
    fs::write(root.path().join("boxlite"), "#!/bin/sh\necho no lock for you >&2\nexit 1\n").unwrap();
    let error = boot(&booter(root.path())).await.err().unwrap().to_string();
    assert!(error.contains("no lock for you"), "{error}");
}
