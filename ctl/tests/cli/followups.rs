//! `nanoctl followup …`: what each verb asks for, and what it says to programs and to people.

use serde_json::{Value, json};

use crate::fake::{Fake, Say};
use crate::lists::{answering, check};
use crate::shell::{Ran, command, nanoctl, piped};
use crate::wire::{followup, task};

/// Returns a follow-up with further members.
fn with(more: &Value) -> Value {
    let mut it = followup("fup_1");
    it.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    it
}

#[test]
fn the_times_are_told_in_their_zone_and_here() {
    let check = |more: &Value, here: &str, expected: &str| {
        let fake = answering(&with(more));
        let output = command(&fake, &["followup", "add", "s", "again", "--every", "90s"]).env("TZ", here).output();
        let ran = Ran::from(&output.unwrap());
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("fup_1\n", expected));
    };
    let once = |more: &Value| {
        let mut all = json!({"next": ["2027-01-31T08:00:00.000Z"]});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let first = "next 2027-01-31T08:00:00.000Z  2027-01-31 ";
    check(&once(&json!({})), "JST-9", &format!("{first}08:00:00 UTC  2027-01-31 17:00:00 JST\n"));
    check(&once(&json!({})), "GMT0", &format!("{first}08:00:00 UTC\n"));
    check(&once(&json!({"tz": null})), "JST-9", &format!("{first}17:00:00 JST\n"));
    check(&once(&json!({"tz": "Europe/Oslo"})), "GMT0", &format!("{first}09:00:00 CET\n"));
    check(&json!({"next": []}), "JST-9", "");
    let three = ["2027-03-27T01:30:00.000Z", "2027-03-28T01:00:00.000Z", "2027-03-29T00:30:00.000Z"];
    let oslo = json!({"tz": "Europe/Oslo", "next": three});
    let local = ["2027-03-27 02:30:00 CET", "2027-03-28 03:00:00 CEST", "2027-03-29 02:30:00 CEST"];
    let lines = three.iter().zip(local).map(|(utc, local)| format!("next {utc}  {local}\n"));
    check(&oslo, "UTC0", &lines.collect::<String>());
}

#[test]
fn what_is_no_time_is_told_in_words() {
    for (args, trigger, said) in [
        (&["--after", "tsk_1"][..], json!({"on": {"task": "tsk_1"}}), "waits for the end of task tsk_1\n"),
        (&["--on", "skill.changed"], json!({"on": {"event": "skill.changed"}}), "waits for events skill.changed\n"),
        (
            &["--on", "task.finished", "--match", "task.state=failed", "--match", "session=web"],
            json!({"on": {"event": "task.finished", "match": {"task.state": "failed", "session": "web"}}}),
            "waits for events task.finished with {task.state:failed,session:web}\n",
        ),
        (
            &["--file", "in/*.csv"],
            json!({"on": {"file": "in/*.csv"}}),
            "waits for files below the workspace that fit in/*.csv\n",
        ),
        (&["--external"], json!({"external": true}), "waits for nanoctl followup trigger fup_1\n"),
    ] {
        let fake = answering(&with(&json!({"next": [], "trigger": trigger})));
        let ran = nanoctl(&fake, &[&["followup", "add", "s", "again"], args].concat());
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "fup_1\n", said));
        assert_eq!(fake.asked("followup.schedule")[0]["trigger"], trigger, "{args:?}");
    }
}

#[test]
fn add_asks_for_what_it_is_told() {
    let fake = answering(&followup("fup_1"));
    let line = "followup add s again --every 90s --tz UTC --name n --missed all --overlap replace \
                --until 2027-12-31T00:00 --max-runs 5 --jitter 1m --idempotency-key k";
    let ran = nanoctl(&fake, &line.split_whitespace().collect::<Vec<_>>());
    assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (0, "fup_1\n", 2));
    let mut asked = fake.asked("followup.schedule")[0].clone();
    asked.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    let expected = json!({
        "session": "s", "content": "again", "trigger": {"every_ms": 90000}, "name": "n", "tz": "UTC", "missed": "all",
        "overlap": "replace", "max_runs": 5, "until": "2027-12-31T00:00", "jitter_ms": 60000, "idempotency_key": "k"
    });
    assert_eq!(asked, expected);
    let ran = piped(&fake, &["followup", "add", "s", "--in", "1s", "-q"], b"from stdin\n");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let asked = &fake.asked("followup.schedule")[1];
    assert_eq!(asked["content"], "from stdin");
    assert!(asked["idempotency_key"].as_str().unwrap().len() > 20, "one is made, so that sending it again is harmless");
}

#[test]
fn lists_have_all_for_programs() {
    let check = |line: &str, params: &Value, more: &Value| {
        let method = format!("followup.{}", line.split(' ').nth(1).unwrap()).replace("show", "get");
        check(line, &method, params, more).0
    };
    let late = with(&json!({
        "name": "n", "content": "a b\nc", "tz": "Europe/Oslo", "state": "paused", "next": [], "missed": 2,
        "last": {"slot": "2027-01-31T08:00:00.000Z", "task": "tsk_1", "state": "fired"}, "reason": "it failed 5 times"
    }));
    let list = json!({"followups": [late, followup("fup_2")], "next": "fup_2"});
    let params = json!({"session": "web", "state": "paused", "limit": 2, "after": "x"});
    insta::assert_snapshot!(check("followup list -s web --state paused --limit 2 --after x", &params, &list), @r"
    fup_1  paused  -                         Europe/Oslo  fired:2027-01-31T08:00:00.000Z  2  n: a b …  {every_ms:90000}  ses_1  it failed 5 times
    fup_2  active  2027-01-31T08:00:00.000Z  UTC          -                               0  again     {every_ms:90000}  ses_1  -
    ");
    let runs = json!({"runs": [
        {"slot": "2027-01-31T08:01:30.000Z", "state": "missed"},
        {"slot": "2027-01-31T08:00:00.000Z", "state": "fired", "task": "tsk_1"}
    ], "next": "n"});
    let params = json!({"followup": "fup_1", "limit": 2, "after": "x"});
    insta::assert_snapshot!(check("followup runs fup_1 --limit 2 --after x", &params, &runs), @r"
    2027-01-31T08:01:30.000Z  missed  -      2027-01-31 08:01:30 UTC
    2027-01-31T08:00:00.000Z  fired   tsk_1  2027-01-31 08:00:00 UTC
    ");
    let next = json!({"next": ["2027-01-31T08:00:00.000Z"]});
    let params = json!({"trigger": {"cron": "@daily", "tz": "UTC"}, "from": "2027-01-01T00:00:00Z", "count": 1});
    let line = "followup next --cron @daily --tz UTC --from 2027-01-01T00:00:00Z --count 1";
    insta::assert_snapshot!(check(line, &params, &next), @"2027-01-31T08:00:00.000Z  2027-01-31 08:00:00 UTC");
    let one = json!({"followup": "fup_1"});
    let all = with(&json!({
        "state": "failed", "reason": "the zone is gone", "max_runs": 5, "runs": 2, "jitter_ms": 1500,
        "until": "2027-12-31T00:00:00.000Z", "last": {"slot": "2027-01-31T08:00:00.000Z", "state": "skipped"}
    }));
    insta::assert_snapshot!(check("followup show fup_1", &one, &all), @r"
    followup  fup_1
    session   ses_1
    name      -
    state     failed
    reason    the zone is gone
    when      {every_ms:90000}
    zone      UTC
    text      again
    last      2027-01-31T08:00:00.000Z skipped
    runs      2
    missed    0 (latest, grace 45 s)
    overlap   skip
    max runs  5
    until     2027-12-31T00:00:00.000Z
    jitter    1500 ms
    next      2027-01-31T08:00:00.000Z  2027-01-31 08:00:00 UTC
    next      2027-01-31T08:01:30.000Z  2027-01-31 08:01:30 UTC
    ");
    for (verb, state) in [("pause", "paused"), ("resume", "active"), ("cancel", "cancelled")] {
        let said = check(&format!("followup {verb} fup_1"), &one, &with(&json!({"state": state})));
        assert_eq!(said, format!("fup_1 {state}\n"));
    }
}

#[test]
fn a_trigger_prints_the_task_alone() {
    for (args, input, content, key) in [
        (&["fup_1"][..], "", Value::Null, None),
        (&["fup_1", "now"], "unread", json!("now"), None),
        (&["fup_1", "-"], "payload\n", json!("payload"), None),
        (&["fup_1", "--idempotency-key", "k"], "two\nlines\n", json!("two\nlines"), Some("k")),
    ] {
        let fake = answering(&task("tsk_9", "queued", &json!({})));
        let ran = piped(&fake, &[&["followup", "trigger"], args].concat(), input.as_bytes());
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "tsk_9\n", ""), "{args:?}");
        let asked = &fake.asked("followup.trigger")[0];
        assert_eq!((&asked["followup"], &asked["content"]), (&json!("fup_1"), &content), "{args:?}");
        let sent = asked["idempotency_key"].as_str().unwrap();
        assert!(key.map_or(sent.len() > 20, |key| key == sent), "{args:?}: {sent}");
    }
    let fake = answering(&task("tsk_9", "queued", &json!({})));
    assert_eq!(nanoctl(&fake, &["followup", "trigger", "fup_1"]).out, "tsk_9\n");
    assert_eq!(nanoctl(&fake, &["followup", "trigger", "fup_1", ""]).code, 2);
    assert_eq!(piped(&fake, &["followup", "trigger", "fup_1", "-"], b"").code, 2);
    assert_eq!(fake.asked("followup.trigger").len(), 1);
}

#[test]
fn what_broke_is_sent_again_with_the_same_key() {
    let broken = std::sync::atomic::AtomicBool::new(false);
    let fake = Fake::start(move |_, _| {
        let again = broken.swap(true, std::sync::atomic::Ordering::SeqCst);
        vec![if again { Say::Result(task("tsk_9", "queued", &json!({}))) } else { Say::Close }]
    });
    assert_eq!(nanoctl(&fake, &["followup", "trigger", "fup_1", "x"]).out, "tsk_9\n");
    let asked = fake.asked("followup.trigger");
    assert_eq!((asked.len(), &asked[0]), (2, &asked[1]));
}

#[test]
fn refusals_have_their_exit_codes() {
    for (code, kind, exit) in
        [(-32001, "not_found", 4), (-32602, "invalid_params", 5), (-32002, "conflict", 5), (-32004, "limit", 5)]
    {
        for verb in ["show", "runs", "trigger", "pause", "resume", "cancel"] {
            let fake = Fake::start(move |_, _| vec![Say::Error(code, kind, "it is so")]);
            let ran = nanoctl(&fake, &["followup", verb, "fup_1"]);
            assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (exit, "", 1), "{verb}: {}", ran.err);
            assert!(ran.err.starts_with(&format!("nanoctl: followup {verb}: it is so")), "{}", ran.err);
        }
    }
    let fake = answering(&followup("fup_1"));
    for line in [
        "add s x",
        "add s x --in 1s --external",
        "add s x --external --match a=b",
        "add s x --on e --match a",
        "add s x --in soon",
        "add s x --in 1s --overlap never",
        "add s x --in 1s --missed some",
        "next",
        "next --external",
        "show",
        "trigger",
        "runs",
        "pause",
    ] {
        let args: Vec<_> = std::iter::once("followup").chain(line.split(' ')).collect();
        let ran = nanoctl(&fake, &args);
        assert_eq!((ran.code, ran.err.lines().count()), (2, 1), "{line}: {}", ran.err);
    }
}
