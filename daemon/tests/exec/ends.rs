//! What ends a command ends all that it has started.

use super::*;

#[tokio::test]
async fn a_time_limit_ends_everything() {
    let w = Fixture::with_computer().await;
    let mark = mark();
    for command in [
        "sleep MARK",
        "bash -c 'sleep MARK & wait'",
        "trap '' TERM; sleep MARK & while :; do sleep MARK; done",
        "setsid sleep MARK & setsid setsid sleep MARK & (setsid sh -c 'trap \"\" TERM HUP; sleep MARK & wait; sleep MARK' &) ; sleep MARK",
        "sleep MARK & kill -STOP $!; sleep MARK",
        "python3 -c 'import os,sys,time\nif os.fork(): sys.exit()\nos.setsid()\nif os.fork(): sys.exit()\nos.execlp(\"sleep\", \"sleep\", \"MARK\")'; sleep MARK",
    ] {
        let command = format!("echo so far; {}", command.replace("MARK", &mark));
        let outcome = w.call("exec", json!({"command": command, "timeout": 2})).await;
        let ToolOutcome::Stopped(text) = outcome else { panic!("{command}: {outcome:?}") };
        assert!(text.starts_with("so far\n") && text.ends_with("[stopped after 2 s]"), "{command}: {text}");
        assert_eq!(alive(&mark), 0, "{command}");
    }
    let code = format!("import os\nprint('so far')\nos.system('setsid sleep {mark}')");
    let outcome = w.call("python", json!({"code": code, "timeout": 4})).await;
    let ToolOutcome::Stopped(text) = outcome else { panic!("{outcome:?}") };
    // The shell in between may say that its child was ended.
    assert!(text.starts_with("so far\n") && text.ends_with("[stopped after 4 s]"), "{text}");
    assert_eq!(alive(&mark), 0);
}

#[tokio::test]
async fn cancel_ends_everything() {
    let w = Fixture::with_computer().await;
    let mark = mark();
    let command = format!("echo so far; setsid sleep {mark} & sleep {mark}");
    let running = w.call("exec", json!({"command": command}));
    let cancel = async {
        until(|| alive(&mark) == 2).await;
        w.context.cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(running, cancel);
    assert_eq!(outcome, ToolOutcome::Stopped("so far\n[stopped before it ended]".into()));
    assert_eq!(alive(&mark), 0);
}

#[tokio::test]
async fn what_is_left_running_ends_with_its_task() {
    let w = Fixture::with_computer().await;
    let (mark, other) = (mark(), mark());
    let sandbox = w.context.sandbox.as_ref().unwrap();
    let text = w.done("exec", json!({"command": format!("sleep {mark} & echo done")})).await;
    assert!(text.starts_with("done\n[1 process is left running; it ends with the task; "), "{text}");
    assert_eq!(alive(&mark), 1, "the call did not wait for it");
    let text = w.done("exec", json!({"command": format!("setsid sleep {mark} >/dev/null 2>&1 & disown")})).await;
    assert!(text.contains("1 process is left running"), "{text}");
    let text = w.done("exec", json!({"command": format!("echo up; exec sleep {mark}"), "background": true})).await;
    assert!(text.contains("[running in the background]\n[1 process is left running"), "{text}");
    assert_eq!(alive(&mark), 3);
    sandbox.end_task(&nano_protocol::id::TaskId("tsk_other".into())).await;
    assert_eq!(alive(&mark), 3);
    sandbox.end_task(&w.context.task).await;
    assert_eq!(alive(&mark), 0);
    let _ = w.done("exec", json!({"command": format!("sleep {other} &")})).await;
    sandbox.shutdown().await;
    assert_eq!(alive(&other), 0);
}

#[tokio::test]
async fn later_output_is_kept() {
    let w = Fixture::with_computer().await;
    let gate = w.path("gate").display().to_string();
    let command = format!("mkfifo {gate}; (cat {gate}; echo after) & echo before");
    let text = w.done("exec", json!({"command": command})).await;
    let path = text.split("further output goes to ").nth(1).unwrap().trim_end_matches(']').to_owned();
    assert!(text.starts_with("before\n["), "{text}");
    fs::write(w.path("gate"), "opened\n").unwrap();
    until(|| fs::read_to_string(&path).is_ok_and(|text| text == "before\nopened\nafter\n")).await;
    w.context.sandbox.as_ref().unwrap().shutdown().await;
}

#[tokio::test]
async fn a_killed_helper_takes_its_command_along() {
    let w = Fixture::within(support::local(), |reach| Reach { level: Level::Host, ..reach }).await;
    assert_eq!(w.done("exec", json!({"command": "kill $PPID; kill -HUP $PPID; kill -INT $PPID; echo on"})).await, "on");
    let mark = mark();
    let command = format!("sleep {mark} & setsid sleep {mark} & kill -9 $PPID; sleep {mark}");
    assert_eq!(w.failed("exec", json!({"command": command})).await, "(no output)\n[killed by SIGKILL]");
    assert_eq!(alive(&mark), 0);
    assert_eq!(w.done("exec", json!({"command": "echo on"})).await, "on");
}
