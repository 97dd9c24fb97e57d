//! Commands in the background: they go on behind their task, end with their session and the daemon, and each end is told
//! once, whatever dies in between.

use std::fs;

use nano_protocol::process::{Process, ProcessLog, ProcessState, Processes};
use nano_protocol::task::TaskState;
use nano_tests::wait;
use serde_json::{Value, json};

use crate::background_kit::{World, background, call, exec, gated, order};

/// A command that runs until there is a file `go`.
const UNTIL_GO: &str = "echo up; while ! [ -e go ]; do sleep 0.01; done; echo end";

#[test]
fn it_goes_on_behind_its_task_and_its_end_is_told_once() {
    let mut w = World::start();
    let id = w.begin(UNTIL_GO);
    let process = w.get(&id);
    assert_eq!((process.state, process.command.as_str()), (ProcessState::Running, UNTIL_GO));
    assert_eq!(w.exits(), []);
    fs::write(w.daemon.workspace().join("go"), "").expect("a file");
    let process = w.ended(&id);
    assert_eq!((process.state, process.status, process.signal), (ProcessState::Exited, Some(0), None));
    assert_eq!(fs::read_to_string(&process.output).expect("its output"), "up\nend\n");
    w.waits(1);
    assert_eq!(w.client.tasks(&w.session.clone()).len(), 1, "no task begins by itself");
    w.run(&[]);
    w.run(&[]);
    let notices = w.notices();
    assert!(notices.len() == 1 && notices[0].starts_with(&format!("process {id}: ")), "{notices:?}");
    assert!(notices[0].contains("exit status 0") && notices[0].ends_with("up\nend"), "{notices:?}");
    let exits = w.exits();
    assert_eq!(exits.len(), 1);
    assert_eq!(exits[0].data["id"], json!(id));
    // Told before the next request, not during the one after.
    let first = w.server.requests()[4]["messages"].to_string();
    assert!(first.contains(&format!("[process {id}]")), "{first}");
    w.leaves_nothing();
}

#[test]
fn a_call_that_shows_the_end_takes_the_place_of_the_notice() {
    for shows in [
        call("process", json!({"action": "log", "id": "$ID"})),
        call("process", json!({"action": "list"})),
        call("process", json!({"action": "kill", "id": "$ID"})),
        call("process", json!({"action": "write", "id": "$ID", "text": "x"})),
    ] {
        for noted in [true, false] {
            let mut w = World::start();
            let task = w.client.submit(&w.session, &order(&[background(UNTIL_GO), gated("ended", shows.clone())]));
            w.server.wait_requests(4);
            let id = w.list()[0].id.0.clone();
            if noted || shows["arguments"]["action"] != "kill" {
                fs::write(w.daemon.workspace().join("go"), "").expect("a file");
                w.ended(&id);
            }
            if noted {
                w.waits(1);
            }
            w.server.open("ended");
            assert_eq!(w.client.settled(&task.id).state, TaskState::Succeeded, "{shows}");
            w.run(&[]);
            assert_eq!(w.notices(), Vec::<String>::new(), "{shows}");
            assert_eq!(w.waiting(), 0, "{shows}");
            let messages = w.messages();
            let told = messages.iter().filter(|message| message.content.contains("exit status 0")).count();
            let killed = messages.iter().filter(|message| message.content.contains("killed: ")).count();
            assert_eq!(told + killed, 1, "{shows}: {messages:?}");
            assert_eq!(w.exits().len(), 1);
            w.leaves_nothing();
        }
    }
}

#[test]
fn what_ends_at_once_is_told_by_its_own_call() {
    let mut w = World::start();
    let mut late = 0;
    for (command, ok, parts) in [
        ("echo no; exit 7", false, ["no\n[bytes 0 to 3 of 3; exit status 7 after ", "]"]),
        ("seq 1000; exit", true, ["\n1000\n[bytes ", " of 3893; exit status 0 after "]),
        ("kill -9 $$", false, ["(no output)\n", "ended by SIGKILL after "]),
    ] {
        let result = w.run(&[background(command)]).remove(0);
        // On a machine that is slow it is told as any other.
        if result.content.contains("running in the background") {
            let id = w.list()[0].id.0.clone();
            w.ended(&id);
            w.run(&[]);
            late += 1;
            continue;
        }
        assert_eq!(result.ok, Some(ok), "{command}: {result:?}");
        assert!(parts.iter().all(|part| result.content.contains(part)), "{command}: {}", result.content);
        w.run(&[]);
        assert_eq!(w.notices().len(), late, "{command}: {:?}", w.notices());
    }
    let exits: Vec<Value> = w.exits().into_iter().map(|event| event.data["id"].clone()).collect();
    assert_eq!(exits.len(), 3, "{exits:?}");
    w.leaves_nothing();
}

#[test]
fn it_dies_with_the_daemon_and_is_lost() {
    let mut w = World::start();
    let ids = [w.begin("echo up; sleep 1000"), w.begin("trap '' TERM HUP; (setsid setsid sleep 1000 &); sleep 1000")];
    w.daemon.kill9();
    w.restart();
    let lost = |w: &mut World| {
        for id in &ids {
            let process = w.get(id);
            assert_eq!((process.state, process.ended_at.is_some()), (ProcessState::Lost, true), "{process:?}");
        }
        assert_eq!(w.exits().len(), 2);
    };
    lost(&mut w);
    let log: ProcessLog = w.client.get("process.log", &json!({"process": ids[0]}));
    assert_eq!((log.content.as_str(), log.bytes), ("up\n", 3));
    w.daemon.kill9();
    w.restart();
    lost(&mut w);
    w.run(&[]);
    w.daemon.kill9();
    w.restart();
    w.run(&[]);
    let notices = w.notices();
    assert!(notices.len() == 2 && notices.iter().all(|notice| notice.contains("lost: ")), "{notices:?}");
    let id = w.begin("sleep 1000");
    assert_eq!(w.daemon.terminate().code(), Some(0));
    assert_eq!(w.daemon.left(), []);
    w.restart();
    assert_eq!(w.get(&id).state, ProcessState::Lost);
    assert_eq!(w.exits().len(), 3);
    w.run(&[]);
    assert_eq!(w.notices().len(), 3);
}

#[test]
fn the_model_looks_after_them() {
    let mut w = World::start();
    let id = w.begin("echo hello; cat; echo bye >&2; exit 4");
    let log = |w: &mut World, more: Value| {
        let mut arguments = json!({"action": "log", "id": id});
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        w.process(arguments).0
    };
    let (text, ok) = w.process(json!({"action": "write", "id": id, "text": "a\nb\n"}));
    assert!(ok && text == format!("4 bytes written to {id}"), "{text}");
    let output = w.get(&id).output;
    wait::until("what it read", || (fs::read_to_string(&output).ok()? == "hello\na\nb\n").then_some(()));
    assert!(log(&mut w, json!({})).starts_with("hello\na\nb\n[bytes 0 to 10 of 10; running for "));
    assert!(log(&mut w, json!({"tail": 1})).starts_with("b\n[bytes 8 to 10 of 10; "));
    assert!(log(&mut w, json!({"offset": 6})).starts_with("a\nb\n[bytes 6 to 10 of 10; "));
    assert!(w.process(json!({"action": "list"})).0.starts_with(&format!("{id} [running for ")));
    assert!(w.process(json!({"action": "write", "id": id, "end": true})).0.ends_with("its input is closed"));
    let ended = w.ended(&id);
    assert_eq!((ended.state, ended.status), (ProcessState::Exited, Some(4)));
    assert!(log(&mut w, json!({})).starts_with("hello\na\nb\nbye\n[bytes 0 to 14 of 14; exit status 4 after "));
    let id = w.begin("trap '' TERM; touch deaf; sleep 1000 & setsid sleep 1000 & sleep 1000; sleep 1000");
    wait::until("its trap", || w.daemon.workspace().join("deaf").exists().then_some(()));
    let (text, ok) = w.process(json!({"action": "kill", "id": id}));
    assert!(ok && text.starts_with(&format!("{id} has ended: killed: ended by SIGKILL")), "{text}");
    assert_eq!(w.get(&id).state, ProcessState::Killed);
    w.run(&[]);
    assert_eq!(w.exits().len(), 2);
    w.leaves_nothing();
}

#[test]
fn what_cannot_be_done_has_one_clear_error() {
    let mut w = World::start();
    let id = w.begin("exec sleep 1000");
    let long = "x".repeat(100_000);
    for (arguments, part) in [
        (json!({"action": "log"}), "`id` is missing"),
        (json!({"action": "log", "id": "prc_01KEFAV8Z3Q4C9D5WX2R7T6N1M"}), "there is no background process `prc_01KE"),
        (json!({"action": "log", "id": "1"}), "there is no background process `1` in this session"),
        (json!({"action": "stop", "id": id}), "unknown variant `stop`, expected one of"),
        (json!({"action": "write", "id": id}), "write takes `text`, `end`, or both"),
        (json!({"action": "write", "id": id, "text": long}), "it took 65536 of 100000 bytes, and then none for 2 s"),
        (json!({"action": "log", "id": id, "offset": -1}), "offset"),
        (json!({"action": "log", "id": id, "signal": 9}), "`signal` is not known"),
    ] {
        let (text, ok) = w.process(arguments.clone());
        assert!(!ok && text.contains(part), "{arguments}: {text}");
    }
    let own = std::mem::take(&mut w.session);
    w.session = w.daemon.session(&mut w.client);
    for action in ["log", "write", "kill"] {
        let (text, ok) = w.process(json!({"action": action, "id": id, "text": "x"}));
        assert!(!ok && text.contains("in this session"), "{action} of another session's: {text}");
    }
    assert_eq!(w.process(json!({"action": "list"})).0, "(there are none)");
    w.session = own;
    assert!(w.process(json!({"action": "kill", "id": id})).1);
    for action in ["write", "kill"] {
        let (text, ok) = w.process(json!({"action": action, "id": id, "text": "x"}));
        assert!(!ok && text.contains("has ended already: killed: ended by SIGTERM"), "{action}: {text}");
    }
    w.leaves_nothing();
}

#[test]
fn clients_see_and_end_them() {
    let mut w = World::start();
    let id = w.begin("printf 'eins\\nzwei\\033[1m\\n'; sleep 1000");
    let output = w.get(&id).output;
    wait::until("its output", || (fs::metadata(&output).ok()?.len() == 14).then_some(()));
    let shown = w.daemon.ctl(["session", "show", &w.session]).run().expect_code(0);
    assert!(shown.contains(&id), "{shown}");
    let listed = w.daemon.ctl(["rpc", "process.list"]).run().expect_code(0);
    assert!(listed.contains(&id), "{listed}");
    for (params, count) in [
        (json!({}), 1),
        (json!({"session": w.session}), 1),
        (json!({"state": "running"}), 1),
        (json!({"state": "exited"}), 0),
        (json!({"session": w.session, "state": "lost"}), 0),
        (json!({"after": id}), 0),
    ] {
        assert_eq!(w.client.get::<Processes>("process.list", &params).processes.len(), count, "{params}");
    }
    for (params, text, from, next) in [
        (json!({"process": id}), "eins\nzwei\n", 0, 14),
        (json!({"process": id, "offset": 5}), "zwei\n", 5, 14),
        (json!({"process": id, "tail": 1}), "zwei\n", 5, 14),
        (json!({"process": id, "offset": 99}), "", 14, 14),
    ] {
        let log: ProcessLog = w.client.get("process.log", &params);
        assert_eq!((log.content.as_str(), log.offset, log.next_offset, log.bytes), (text, from, next, 14), "{params}");
    }
    let killed: Process = w.client.get("process.kill", &json!({"process": id}));
    assert_eq!((killed.state, killed.signal.as_deref()), (ProcessState::Killed, Some("SIGTERM")));
    assert_eq!(w.client.refused("process.kill", &json!({"process": id})), -32005);
    assert_eq!(w.client.refused("process.kill", &json!({"process": "prc_x"})), -32001);
    assert_eq!(w.client.refused("process.log", &json!({"process": id, "offset": 1, "tail": 1})), -32602);
    w.run(&[]);
    assert_eq!(w.notices().len(), 1, "the model hears of what a client did");
    w.leaves_nothing();
}

#[test]
fn it_ends_with_its_session_and_with_a_task_that_is_cancelled() {
    let tree = "(setsid setsid sleep 1000 &); sleep 1000";
    let mut w = World::start();
    let kept = w.begin(tree);
    let task = w.client.submit(&w.session, &order(&[background(tree), exec("touch up; sleep 1000")]));
    wait::until("a running command", || w.daemon.workspace().join("up").exists().then_some(()));
    let cancelled: Value = w.client.get("task.cancel", &json!({"task": task.id}));
    assert_eq!(cancelled["state"], "cancelled");
    let states: Vec<_> = w.list().into_iter().map(|process| process.state).collect();
    assert_eq!(states, [ProcessState::Killed, ProcessState::Running], "what another task began goes on");
    let output = w.get(&kept).output;
    w.client.get::<Value>("session.close", &json!({"session": w.session}));
    assert_eq!(w.get(&kept).state, ProcessState::Killed);
    w.leaves_nothing();
    assert!(fs::exists(&output).expect("a look"));
    w.client.get::<Value>("session.delete", &json!({"session": w.session}));
    assert!(w.client.get::<Processes>("process.list", &json!({})).processes.is_empty());
    assert!(!fs::exists(&output).expect("a look"), "its output goes with the session");
}

#[test]
fn output_that_cannot_be_written_is_still_shown() {
    let mut w = World::start();
    let folder = w.daemon.state().join("spill");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(&w.session), "in the way").expect("a file");
    let id = w.begin("seq 10; cat");
    let (text, ok) = w.process(json!({"action": "log", "id": id}));
    assert!(ok && text.contains("9\n10\n[bytes 0 to 21 of 21; "), "{text}");
    w.process(json!({"action": "write", "id": id, "end": true}));
    w.ended(&id);
    let log: ProcessLog = w.client.get("process.log", &json!({"process": id}));
    assert!(log.content.ends_with("9\n10\n"), "{log:?}");
    w.leaves_nothing();
}
