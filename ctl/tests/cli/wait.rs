//! `wait` and `result`.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::fake::{Fake, Say};
use crate::shell::nanoctl;
use crate::wire::task;

fn tasks(_: &str, params: &Value) -> Vec<Say> {
    let id = params["task"].as_str().unwrap();
    let more = match id {
        "good" => json!({"result": "the answer", "reason": "done"}),
        "cut" => json!({"result": "half", "reason": "length"}),
        "bad" => json!({"reason": "error", "error": {"kind": "model", "message": "overloaded"}}),
        "busy" => json!({"result": "on the way"}),
        _ => json!({}),
    };
    let state = match id {
        "good" => "succeeded",
        "cut" | "bad" => "failed",
        "gone" => "cancelled",
        "torn" => "interrupted",
        "busy" => "running",
        _ => return vec![Say::Error(-32001, "not_found", "there is no such task")],
    };
    vec![Say::Result(task(id, state, &more))]
}

#[test]
fn wait_exits_as_the_first_that_did_not_succeed() {
    let fake = Fake::start(tasks);
    for (ids, code, why) in [
        (&["good"][..], 0, ""),
        (&["good", "bad", "gone"], 1, "nanoctl: wait: bad failed: overloaded; nanoctl resume bad takes it up again\n"),
        (&["gone", "bad"], 6, "nanoctl: wait: gone cancelled; nanoctl task gone shows it\n"),
        (&["torn"], 1, "nanoctl: wait: torn interrupted; nanoctl resume torn takes it up again\n"),
        (&["cut"], 1, "nanoctl: wait: cut failed: length; nanoctl resume cut takes it up again\n"),
    ] {
        let args: Vec<_> = ["wait"].iter().chain(ids).copied().collect();
        let ran = nanoctl(&fake, &args);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (code, "", why), "{ids:?}");
    }
    assert_eq!(nanoctl(&fake, &["wait", "none", "bad"]).code, 4);
    assert_eq!(nanoctl(&fake, &["wait", "bad", "none"]).code, 1);
    let ran = nanoctl(&fake, &["wait", "busy", "--timeout", "1s"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (7, "nanoctl: wait: the time ran out, the task goes on; nanoctl wait busy\n")
    );
}

#[test]
fn wait_in_json_is_one_task_a_line() {
    let fake = Fake::start(tasks);
    let ran = nanoctl(&fake, &["--json", "wait", "bad", "good"]);
    let ids: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert_eq!((ran.code, ids), (1, vec![json!("bad"), json!("good")]));
}

#[test]
fn wait_outlives_a_restart() {
    let count = AtomicUsize::new(0);
    let fake = Fake::start(move |method, params| match count.fetch_add(1, Ordering::SeqCst) {
        0 => vec![Say::Close],
        1 => vec![Say::Error(-32007, "shutting_down", "going down")],
        _ => tasks(method, params),
    });
    assert_eq!(nanoctl(&fake, &["wait", "good"]).code, 0);
    assert_eq!(fake.asked("task.wait").len(), 3);
}

#[test]
fn result_is_an_answer_or_5() {
    let fake = Fake::start(tasks);
    for (id, code, out) in [
        ("good", 0, "the answer\n"),
        ("cut", 0, "half\n"),
        ("bad", 5, ""),
        ("busy", 5, ""),
        ("gone", 5, ""),
        ("none", 4, ""),
    ] {
        let ran = nanoctl(&fake, &["result", id]);
        assert_eq!((ran.code, ran.out.as_str()), (code, out), "{id}");
    }
}
