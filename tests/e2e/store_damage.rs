//! A store that was damaged from outside: what came back, and what did not and was named; a table of both.
//!
//! `NANO_WRITE_TABLE=1` has it written, in four parts, to `damage-N.md` in the build's folder.

mod rows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::ModelServer;
use nano_tests::random::Random;
use nano_tests::{programs, transcript};
use serde_json::{Value, json};

use crate::store_fixture::{obedient, setup};
use rows::Act::{Cut, Delete, DeleteFolder, Empty, Flip, Leave, Nothing, Nul};
use rows::Part::{Chunk, Conf, Journal, Manifest, Sled, Snapshot};
use rows::{Act, BY_CHECKPOINT, BY_JOURNAL, BY_SLED, BY_TWO, Part, Row};

use crate::store_kit::{Seen, files, look, look_at_events, missing};

/// Returns the files of a part, the newest last.
fn of(store: &Path, part: Part) -> Vec<PathBuf> {
    let memory = if store.join("memory").is_dir() { "memory/" } else { "" };
    let is = |name: &str| {
        let below = |folder: &str| name.strip_prefix(folder);
        let is_manifest = |name: &str| name.contains("manifest");
        match part {
            Sled => below(memory) == Some("db"),
            Conf => below(memory) == Some("conf"),
            Snapshot => below(memory).is_some_and(|name| name.starts_with("snap.")),
            Journal => below("journal/").is_some_and(|name| name.strip_suffix(".jnl").is_some()),
            Manifest => below("checkpoint/").is_some_and(is_manifest),
            Chunk => below("checkpoint/").is_some_and(|name| !is_manifest(name)),
        }
    };
    files(store).into_keys().filter(|name| is(name)).map(|name| store.join(name)).collect()
}

/// Does one thing; false where there is no such file.
fn damage(store: &Path, (part, act): (Part, Act), random: &mut Random) -> bool {
    let all = of(store, part);
    let Some(newest) = all.last() else { return false };
    let any = match act {
        Delete if part == Journal => &all[0],
        Flip | Delete if part != Manifest => random.pick(&all),
        Flip => random.pick(&all),
        _ => newest,
    };
    match act {
        Nothing => {}
        Delete if part == Snapshot => all.iter().for_each(|file| fs::remove_file(file).expect("a file")),
        Delete => fs::remove_file(any).expect("a file"),
        DeleteFolder => fs::remove_dir_all(any.parent().expect("a folder")).expect("a folder"),
        Leave(name) => fs::write(any.with_file_name(name), "").expect("a file"),
        Empty => fs::write(any, "").expect("a file"),
        Flip | Cut(_) | Nul(_) => rewrite(any, act, random),
    }
    true
}

/// Changes the bytes of a file up to the zeros at its end.
fn rewrite(file: &Path, act: Act, random: &mut Random) {
    let mut bytes = fs::read(file).expect("a file");
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    match act {
        Cut(count) => bytes.truncate(length.saturating_sub(count)),
        Nul(count) => bytes[length.saturating_sub(count)..].fill(0),
        _ if length == 0 => {}
        _ => {
            let at = usize::try_from(random.below(length as u64)).expect("an index");
            bytes[at] ^= 1 << random.below(8);
        }
    }
    fs::write(file, bytes).expect("a file");
}

/// A store with two checkpoints and a journal behind them, and all that is in it.
struct Whole {
    state: PathBuf,
    seen: Seen,
    _daemon: Daemon,
}

/// A text that does not compress to nothing.
fn noise(random: &mut Random, lines: usize) -> String {
    (0..lines).map(|_| format!("{:016x}", random.below(u64::MAX))).collect::<Vec<_>>().join("\n")
}

impl Whole {
    fn make(server: &ModelServer) -> Self {
        let mut daemon = Daemon::prepare(server, setup());
        let mut random = Random::new(1);
        for part in 0..4 {
            daemon.restart();
            let mut client = daemon.client();
            let session = daemon.session_with(&mut client, json!({"name": format!("s{part}")}));
            fill(&mut client, &mut random, &session);
            if part == 1 {
                client.get::<Value>("session.delete", &json!({"session": "s0"}));
            }
            if part < 3 {
                daemon.terminate().code().expect("an end of its own, behind a checkpoint");
            }
        }
        let mut seen = Seen::new();
        look_at_events(&daemon, &mut seen);
        seen.extend(look(&mut daemon.client()));
        daemon.kill9();
        assert!(of(&daemon.state().join("store"), Manifest).len() > 1, "there is one checkpoint only");
        Self { state: daemon.state(), seen, _daemon: daemon }
    }
}

/// Fills a session with messages, some of them long, and follow-ups.
fn fill(client: &mut Client, random: &mut Random, session: &str) {
    for n in 0..8 {
        client.run(session, &format!("say {n} {}", noise(random, 2400)));
    }
    client.run(session, "run echo hello");
    for _ in 0..3 {
        let trigger = json!({"session": session, "content": "f", "trigger": {"every_ms": 86_400_000}});
        client.get::<Value>("followup.schedule", &trigger);
    }
    transcript::check_pairs(&transcript::read(client, session), false);
}

/// What became of one damaged copy.
#[derive(Debug)]
struct Outcome {
    /// Its exit status where it did not start.
    refused: Option<i32>,
    missing: Vec<String>,
    /// What was there that should not be.
    invented: Vec<String>,
    /// What was said of it, by `nanod store check` and in the log.
    said: String,
    checked: Option<i32>,
}

/// Damages a copy and starts it; `None` where there is nothing of that kind to damage.
fn strike(server: &ModelServer, whole: &Whole, row: &Row, seed: u64) -> Option<Outcome> {
    let mut daemon = Daemon::prepare(server, setup());
    let status = Command::new("cp").arg("-a").arg(&whole.state).arg(daemon.state()).status();
    assert!(status.expect("cp").success());
    let mut random = Random::new(2 * seed + 101);
    let store = daemon.state().join("store");
    if !row.damage.iter().all(|one| damage(&store, *one, &mut random)) {
        return None;
    }
    let check = check(&daemon);
    let refused = daemon.try_start().err().map(|status| status.code().unwrap_or(-1));
    let mut found = Seen::new();
    if refused.is_none() {
        found = look(&mut daemon.client());
        look_at_events(&daemon, &mut found);
    }
    let missing_now = missing(&whole.seen, &found);
    found.retain(|name, _| !name.starts_with("event "));
    let said = format!("{}{}", check.1, daemon.log());
    daemon.kill9();
    Some(Outcome { refused, missing: missing_now, invented: missing(&found, &whole.seen), said, checked: check.0 })
}

/// Runs `nanod store check` on a store that no daemon holds.
fn check(daemon: &Daemon) -> (Option<i32>, String) {
    let mut command = programs::command("nanod");
    command.arg("--state-dir").arg(daemon.state()).arg("--config").arg(daemon.root().join("nanod.toml"));
    command.args(["store", "check"]).env("HOME", daemon.root()).stdin(Stdio::null());
    let output = command.output().expect("nanod");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout) + &text(output.stderr))
}

/// Strikes as often as the row says and returns its line of the table; what is wrong goes into `wrong`.
fn line(server: &ModelServer, whole: &Whole, row: &Row, wrong: &mut Vec<String>) -> String {
    let outcomes: Vec<(u64, Outcome)> =
        (0..row.times).filter_map(|seed| strike(server, whole, row, seed).map(|outcome| (seed, outcome))).collect();
    if outcomes.is_empty() {
        wrong.push(format!("{}: there is nothing of that kind", row.what));
    }
    for (seed, outcome) in &outcomes {
        let lost = !outcome.missing.is_empty();
        let is_named = ["lost: ", "lost from the checkpoint: ", "the journal ends before line "]
            .iter()
            .any(|word| outcome.said.contains(word));
        let named = is_named && outcome.checked == Some(65);
        // What is known to be open goes on: with its end lost, a task is done again.
        let invented = !(outcome.invented.is_empty() || lost && row.loses);
        if outcome.refused.is_some() || invented || (lost && !(row.loses && named)) {
            eprintln!("{} (seed {seed}): {outcome:#?}", row.what);
            wrong.push(format!("{} (seed {seed})", row.what));
        }
    }
    let times = outcomes.len();
    let back = outcomes.iter().filter(|(_, outcome)| outcome.refused.is_none() && outcome.missing.is_empty()).count();
    let most = outcomes.iter().map(|(_, outcome)| outcome.missing.len()).max().unwrap_or(0);
    let rest = if back == times {
        String::new()
    } else {
        format!("; else at most {most} of {} missing, named", whole.seen.len())
    };
    format!("| {} | {times} | {back}{rest} |\n", row.what)
}

/// Goes through a part of the table.
fn table(part: usize, rows: &[Row]) {
    let server = obedient(false);
    let whole = Whole::make(&server);
    let mut wrong = Vec::new();
    let mut table =
        if part > 1 { String::new() } else { "| damage | times | all came back |\n| --- | --- | --- |\n".into() };
    for row in rows {
        table += &line(&server, &whole, row, &mut wrong);
    }
    if std::env::var_os("NANO_WRITE_TABLE").is_some() {
        fs::write(programs::program("nanod").with_file_name(format!("damage-{part}.md")), &table).expect("the table");
    }
    assert!(wrong.is_empty(), "{table}{}", wrong.join("\n"));
}

#[test]
fn of_the_memory() {
    table(1, BY_SLED);
}

#[test]
fn of_the_journal() {
    table(2, BY_JOURNAL);
}

#[test]
fn of_the_checkpoints() {
    table(3, BY_CHECKPOINT);
}

#[test]
fn of_two_at_once() {
    table(4, BY_TWO);
}

#[test]
fn a_store_is_within_reach_whatever_the_socket_and_the_configuration_are() {
    let server = ModelServer::script(Vec::new());
    let mut daemon = Daemon::start(&server);
    assert_eq!(daemon.terminate().code(), Some(0));
    let mut command = programs::command("nanod");
    command.env_clear().env("NANO_SOCKET", "x".repeat(200)).env("NANO_CONFIG", "/none");
    let output = command.arg("--state-dir").arg(daemon.state()).args(["store", "check"]).output().expect("nanod");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
