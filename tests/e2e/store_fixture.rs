//! Makes the fixture of the schema that this version writes: a rich state that a kill left behind, and what is in it.
//!
//! Run by `tests/store-fixture.sh`; what it makes is kept for good, and `store_versions` goes on with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nano_protocol::followup::Followup;
use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use nano_tests::wait;
use serde_json::{Value, json};

use crate::followup_kit::{HOUR, act, schedule, wait_for};
use crate::store_kit::{Seen, look, look_at_events, text};

/// Where the sessions of a fixture work.
pub const WORKSPACE: &str = "/tmp/nano-fixture";
/// A grace that never ends: a slot that passed between the making and any later test still fires.
const FOR_EVER: u64 = 100 * 365 * 24 * HOUR;

/// The folder of the fixtures.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/stores")
}

/// The agents of a fixture, and events that are kept for good.
pub fn setup() -> Setup {
    Setup {
        daemon: "keep_events = \"40000d\"".into(),
        agent: "tool_mode = \"all\"\nskills = []".into(),
        extra: "[agents.asking]\nresume = \"ask\"\nskills = []".into(),
        ..Setup::default()
    }
}

/// A model that says, runs, fails or delegates as it is told; `hang` is for a making, not for what comes after.
pub fn obedient(hangs: bool) -> ModelServer {
    ModelServer::answering(move |request, number| {
        let last = request["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let words = last["content"].as_str().unwrap_or_default();
        let call = |name: &str, arguments| Call { id: format!("c{number}"), name: name.into(), arguments };
        let calls = |call| Turn { calls: vec![call], ..Turn::default() };
        Some(match (last["role"].as_str(), words.split_once(' ').unwrap_or((words, ""))) {
            (Some("tool"), _) => Turn::text("done"),
            (_, ("run", command)) => Turn::exec(format!("c{number}"), command),
            (_, ("delegate", content)) => calls(call("delegate", json!({ "content": content }))),
            (_, ("fail", _)) => Turn { status: Some(400), ..Turn::default() },
            (_, ("hang", _)) if hangs => Turn { hang: true, ..Turn::default() },
            (_, ("repeat", count)) => Turn::text(long(count.parse().expect("a count"))),
            _ => Turn::text("done"),
        })
    })
}

/// A text of so many lines.
fn long(lines: usize) -> String {
    (0..lines).map(|line| format!("line {line} of a long text")).collect::<Vec<_>>().join("\n")
}

/// What was asked with a key, to be asked again.
struct Asked(Vec<Value>);

impl Asked {
    fn ask(&mut self, client: &mut Client, method: &str, mut params: Value) -> Value {
        params["idempotency_key"] = json!(format!("key {}", self.0.len()));
        let answer: Value = client.get(method, &params);
        let member = if method == "session.steer" { "message" } else { "id" };
        self.0.push(json!({"method": method, "params": params, "member": member, "answer": answer[member]}));
        answer
    }
}

fn create(client: &mut Client, name: &str, agent: &str) -> String {
    let params = json!({"name": name, "agent": agent, "workspace": WORKSPACE});
    text(&client.get::<Value>("session.create", &params)["id"]).to_owned()
}

fn ends_as(client: &mut Client, session: &str, content: &str, state: TaskState) -> Task {
    let task = client.submit(session, content);
    let task = client.settled(&task.id);
    assert_eq!(task.state, state, "{task:?}");
    task
}

/// Work that has ended in every way.
fn talk(client: &mut Client, asked: &mut Asked) {
    let session = create(client, "talk", "default");
    for number in 0..8 {
        let params = json!({"session": session, "content": format!("say hello {number}"), "metadata": {"n": number}});
        let task = asked.ask(client, "task.submit", params);
        client.get::<Value>("task.wait", &json!({"task": task["id"]}));
    }
    client.run(&session, &format!("say {}", long(300)));
    client.run(&session, "repeat 5000");
    client.run(&session, "run for i in $(seq 3000); do echo output $i; done");
    ends_as(client, &session, "run exit 3", TaskState::Succeeded);
    ends_as(client, &session, "fail", TaskState::Failed);
    let hanging = client.submit(&session, "hang");
    client.get::<Task>("task.cancel", &json!({"task": hanging.id}));
    client.run(&session, "say bye");
    let closed = create(client, "closed", "default");
    client.run(&closed, "say the last words");
    client.get::<Value>("session.close", &json!({ "session": closed }));
    let agent = json!({"name": "keeper", "system_prompt": "You keep things.", "skills": [], "tools": ["read_file"]});
    client.get::<Value>("agent.create", &agent);
    let kept = create(client, "kept", "keeper");
    client.run(&kept, "say what you keep");
}

/// Follow-ups in every state; the last two are still to fire.
fn plan(client: &mut Client, asked: &mut Asked, session: &str, after: &Value) {
    let cron = json!({"session": session, "content": "f", "trigger": {"cron": "30 3 * * *", "tz": "Europe/Berlin"}});
    asked.ask(client, "followup.schedule", cron);
    let add = |client: &mut Client, trigger: Value, more: Value| schedule(client, session, &trigger, &more);
    let paused = add(client, json!({"every_ms": HOUR}), json!({"name": "paused"}));
    act(client, "followup.pause", &paused);
    let cancelled = add(client, json!({"after_ms": HOUR}), json!({"name": "cancelled"}));
    act(client, "followup.cancel", &cancelled);
    let once = add(client, json!({"after_ms": 1}), json!({"name": "once"}));
    wait_for(client, &once, "done");
    let external = add(client, json!({"external": true}), json!({"name": "external"}));
    for number in 0..2 {
        let params = json!({"followup": external.id, "content": format!("say called {number}")});
        let task: Task = client.get("followup.trigger", &params);
        client.settled(&task.id);
    }
    add(client, json!({"on": {"task": after}}), json!({"name": "after", "overlap": "queue"}));
    add(client, json!({"after_ms": 20_000}), json!({"name": "due", "grace_ms": FOR_EVER, "overlap": "queue"}));
}

/// A command that a kill meets in its midst: it has left its mark and does not end.
fn begin(client: &mut Client, session: &str, mark: &str) -> Task {
    let task = client.submit(session, &format!("run touch {mark}; sleep 600"));
    wait::until("the command", || Path::new(WORKSPACE).join(mark).exists().then_some(()));
    task
}

fn steer(client: &mut Client, asked: &mut Asked, session: &str) {
    for content in ["be quick", "be careful"] {
        asked.ask(client, "session.steer", json!({"session": session, "content": content}));
    }
}

/// Makes all of it, killing the daemon twice, and returns what is there.
fn make(daemon: &mut Daemon) -> (Seen, Vec<Value>) {
    let mut asked = Asked(Vec::new());
    let mut client = daemon.client();
    talk(&mut client, &mut asked);
    let asking = create(&mut client, "asking", "asking");
    begin(&mut client, &asking, "asking");
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    client.submit(&asking, "say what comes after");
    steer(&mut client, &mut asked, &asking);
    let parent = create(&mut client, "parent", "default");
    client.run(&parent, "delegate say 42");
    client.submit(&parent, "delegate hang");
    let running = create(&mut client, "running", "default");
    begin(&mut client, &running, "running");
    steer(&mut client, &mut asked, &running);
    let queued = asked.ask(&mut client, "task.submit", json!({"session": running, "content": "say what waited"}));
    client.submit(&running, "say more");
    wait::until("the child's request", || {
        let sessions = crate::delegate_kit::children(&mut client, &parent);
        let task = client.tasks(sessions.get(1)?.id.as_str()).pop()?;
        (task.state == TaskState::Running).then_some(())
    });
    let other = create(&mut client, "planned", "default");
    plan(&mut client, &mut asked, &other, &queued["id"]);
    let mut seen = look(&mut client);
    look_at_events(daemon, &mut seen);
    let due = |followup: &Followup| followup.name.as_deref() == Some("due") && followup.runs == 0;
    let followups: nano_protocol::followup::Followups = client.get("followup.list", &json!({}));
    daemon.kill9();
    assert!(followups.followups.iter().any(due), "this was too slow: the follow-up that was to wait has fired");
    (seen, asked.0)
}

#[test]
#[ignore = "makes a fixture that is kept for good: run it by tests/store-fixture.sh"]
fn make_the_fixture() {
    let schema = std::env::var("NANO_SCHEMA").expect("NANO_SCHEMA, the number of the schema that is written");
    let server = obedient(true);
    fs::create_dir_all(WORKSPACE).expect("the workspace");
    let mut daemon = Daemon::with(&server, setup());
    let (seen, asked) = make(&mut daemon);
    fs::remove_dir_all(WORKSPACE).expect("the workspace");
    fs::create_dir_all(folder()).expect("the folder of the fixtures");
    let archive = folder().join(format!("schema-{schema}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--owner=0", "--group=0", "--numeric-owner", "--sort=name", "--exclude=./lock", "-czf"]).arg(&archive);
    assert!(tar.arg("-C").arg(daemon.state()).arg(".").status().expect("tar").success());
    let lines = |(name, value): (String, Value)| format!("    {}: {value}", json!(name));
    let seen: Vec<String> = seen.into_iter().map(lines).collect();
    let asked: Vec<String> = asked.into_iter().map(|one| format!("    {one}")).collect();
    let (seen, asked) = (seen.join(",\n"), asked.join(",\n"));
    let text = format!("{{\n  \"seen\": {{\n{seen}\n  }},\n  \"asked\": [\n{asked}\n  ]\n}}\n");
    fs::write(folder().join(format!("schema-{schema}.json")), text).expect("what is in it");
}
