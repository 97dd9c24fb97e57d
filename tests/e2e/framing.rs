//! What the socket makes of bytes: each line of `fixtures/rpc/framing.jsonl` is something sent and what must come back.

use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::ModelServer;
use nano_tests::random::Random;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde::Deserialize;
use serde_json::{Value, json};

/// One thing sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    /// What it is about, for people.
    #[expect(dead_code, reason = "read by people")]
    about: String,
    send: Vec<Part>,
    /// Sends each byte by itself.
    #[serde(default)]
    bytewise: bool,
    /// Says afterwards that nothing more comes.
    #[serde(default)]
    half_close: bool,
    /// The answers, in order.
    expect: Vec<Answer>,
    /// Whether the daemon closes the connection then.
    #[serde(default)]
    close: bool,
}

/// A piece of what is sent.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Part {
    Text(String),
    Times { text: String, times: usize },
    Bytes(Vec<u8>),
}

/// An answer.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Answer {
    /// To one request.
    One(One),
    /// To a batch, in any order.
    Batch { batch: Vec<One> },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    /// The codes that are right; empty: a result.
    code: Vec<i64>,
    /// The id, byte for byte.
    id: Option<String>,
    /// What the message must hold.
    #[serde(default)]
    says: String,
}

fn rows() -> Vec<Row> {
    let text = include_str!("../fixtures/rpc/framing.jsonl");
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
    text.lines().map(read).collect()
}

fn bytes(parts: &[Part]) -> Vec<u8> {
    let piece = |part: &Part| match part {
        Part::Text(text) => text.clone().into_bytes(),
        Part::Times { text, times } => text.repeat(*times).into_bytes(),
        Part::Bytes(bytes) => bytes.clone(),
    };
    parts.iter().flat_map(piece).collect()
}

/// Returns what is wrong with an answer.
fn wrong(line: &str, expected: &One) -> Option<String> {
    let Ok(answer) = serde_json::from_str::<Value>(line) else { return Some(format!("not JSON: {line}")) };
    let code = answer["error"]["code"].as_i64();
    let fits = if expected.code.is_empty() { answer.get("result").is_some() } else { expected.code.contains(&code?) };
    let id = expected
        .id
        .as_ref()
        .is_none_or(|id| line.contains(&format!("\"id\":{id},")) || line.contains(&format!("\"id\":{id}}}")));
    let says = answer["error"]["message"].as_str().unwrap_or_default().contains(&expected.says);
    let data = code.is_none() || answer["error"]["data"]["kind"].is_string();
    (!fits || !id || !says || !data).then(|| format!("{line} is not {expected:?}"))
}

fn wrong_answer(line: &str, answer: &Answer) -> Option<String> {
    match answer {
        Answer::One(one) => wrong(line, one),
        Answer::Batch { batch } => {
            let Ok(answers) = serde_json::from_str::<Vec<Value>>(line) else {
                return Some(format!("no batch: {line}"));
            };
            let fits = |one: &One| answers.iter().any(|answer| wrong(&answer.to_string(), one).is_none());
            let all = answers.len() == batch.len() && batch.iter().all(fits);
            (!all).then(|| format!("{line} is not {batch:?}"))
        }
    }
}

/// Plays a row and returns what went wrong.
fn play(daemon: &Daemon, row: &Row) -> Vec<String> {
    let mut client = daemon.client();
    let bytes = bytes(&row.send);
    let step = if row.bytewise { 1 } else { bytes.len().max(1) };
    for chunk in bytes.chunks(step) {
        if client.send(chunk).is_err() {
            break; // The daemon may have refused already; the answer tells.
        }
    }
    if row.half_close {
        client.half_close();
    }
    let mut found = Vec::new();
    for answer in &row.expect {
        let line = client.read_line();
        found.extend(line.map_or(Some("closed before an answer".to_owned()), |line| wrong_answer(&line, answer)));
    }
    found.extend(end(&mut client, row));
    found
}

/// Checks that nothing more came, and that the connection is as open as it should be.
fn end(client: &mut Client, row: &Row) -> Option<String> {
    if row.close || row.half_close {
        return client.read_line().map(|line| format!("not closed but answered {line}"));
    }
    client.send(b"{\"jsonrpc\":\"2.0\",\"id\":\"probe\",\"method\":\"daemon.status\"}\n").ok();
    let line = client.read_line();
    let probe = line.as_ref().is_some_and(|line| line.contains("\"id\":\"probe\""));
    (!probe).then(|| format!("the next answer is {line:?}"))
}

#[test]
fn every_row() {
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    let mut watcher = daemon.client();
    let mut found = Vec::new();
    for row in rows() {
        found.extend(play(&daemon, &row).into_iter().map(|what| format!("{}: {what:.300}", row.id)));
        let status: Value = watcher.get("daemon.status", &json!({}));
        assert_eq!(status["pid"], daemon.pid(), "after {}", row.id);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn noise_harms_nobody() {
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    let seed = 20_270_131;
    let mut random = Random::new(seed);
    for round in 0..50 {
        let noise: Vec<u8> = (0..random.below(65_536)).map(|_| random.below(256).to_le_bytes()[0]).collect();
        let mut client = daemon.client();
        client.send(&noise).ok();
        drop(client);
        let status: Value = daemon.client().get("daemon.status", &json!({}));
        assert_eq!(status["pid"], daemon.pid(), "seed {seed}, round {round}");
    }
}

#[test]
fn a_long_line_costs_little_memory_for_long() {
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    let memory = || daemon.client().get::<Value>("daemon.status", &json!({}))["rss_bytes"].as_u64().expect("a size");
    let before = memory();
    for _ in 0..3 {
        let mut client = daemon.client();
        client.send(&vec![b'A'; 16 * 1024 * 1024 + 2]).ok();
        client.send(b"\n").ok();
        let line = client.read_line().expect("an answer");
        assert!(line.contains("-32008"), "{line:.200}");
    }
    let grown = memory().saturating_sub(before) / (1024 * 1024);
    assert!(grown <= 32, "{grown} MiB more");
}

/// Lets this process open as many files as it may; a daemon that runs already keeps what it was given.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("a limit that may be raised");
}

#[test]
fn a_thousand_connections_are_held() {
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    raise_open_files();
    let mut clients: Vec<Client> = (0..1000).map(|_| daemon.client()).collect();
    for client in &mut clients {
        let status: Value = client.get("daemon.status", &json!({}));
        assert_eq!(status["pid"], daemon.pid());
    }
}

#[test]
fn slow_writers_hold_nobody_up() {
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    raise_open_files();
    let mut slow: Vec<Client> = (0..200).map(|_| daemon.client()).collect();
    for client in &mut slow {
        client.send(b"{").expect("a byte sent");
    }
    let status: Value = daemon.client().get("daemon.status", &json!({}));
    assert_eq!(status["pid"], daemon.pid());
}

#[test]
fn pipelined_requests_are_answered_by_id() {
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let ids: Vec<u64> = (0..500).map(|_| client.begin("daemon.status", &json!({})).expect("a live daemon")).collect();
    for id in ids.into_iter().rev() {
        let answer = client.finish(id).expect("a live daemon").expect("a result");
        assert_eq!(answer["pid"], daemon.pid());
    }
}

#[test]
fn a_client_that_never_reads_harms_nobody() {
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    let mut deaf = daemon.client();
    let request = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tool.list\"}\n";
    deaf.stop_when_full();
    while deaf.send(request).is_ok() {}
    let status: Value = daemon.client().get("daemon.status", &json!({}));
    assert_eq!(status["pid"], daemon.pid());
}
