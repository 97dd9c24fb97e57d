//! `nanoctl` as scripts use it: what is on standard output, and the exit status.

use nano_protocol::task::{Task, TaskState};
use nano_tests::ctl::{self, Ctl, Output};
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::processes;
use nano_tests::wait;
use rustix::process::Signal;
use serde_json::{Value, json};

fn plain() -> ModelServer {
    ModelServer::answering(|_, _| Some(Turn::text("all done")))
}

fn run<'a>(daemon: &Daemon, args: impl IntoIterator<Item = &'a str>) -> Output {
    daemon.ctl(args).run()
}

#[test]
fn submit_prints_the_id_alone_and_wait_and_result_take_it() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let submitted = run(&daemon, ["submit", "hello"]);
    let id = submitted.expect_code(0);
    assert!(id.starts_with("tsk_") && submitted.stdout == format!("{id}\n"), "{submitted:?}");
    run(&daemon, ["wait", &id]).expect_code(0);
    assert_eq!(run(&daemon, ["result", &id]).expect_code(0), "all done");
    let task: Task = serde_json::from_str(&run(&daemon, ["--json", "task", &id]).expect_code(0)).expect("a task");
    assert_eq!((task.state, task.content.as_str()), (TaskState::Succeeded, "hello"));
}

#[test]
fn run_streams_the_answer_and_nothing_else() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let output = run(&daemon, ["run", "hello"]);
    assert_eq!(output.expect_code(0), "all done");
    assert!(
        !output.stdout.contains('\u{1b}') && !output.stderr.contains('\u{1b}'),
        "colour off a terminal: {output:?}"
    );
    assert_eq!(run(&daemon, ["-q", "run", "hello"]).stderr, "");
}

#[test]
fn run_with_json_prints_events_and_ends_with_the_task() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let output = run(&daemon, ["--json", "run", "hello"]).expect_code(0);
    let lines: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (last, events) = lines.split_last().expect("lines");
    assert_eq!((&last["state"], &last["result"]), (&json!("succeeded"), &json!("all done")));
    assert!(events.iter().all(|event| event["type"].is_string()), "{output}");
    assert!(events.iter().any(|event| event["type"] == "task.finished"), "{output}");
}

#[test]
fn text_comes_from_where_it_is_told() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let content = |output: &Output| {
        let id = output.expect_code(0);
        daemon.client().get::<Task>("task.get", &json!({ "task": id })).content
    };
    let piped = |args: &[&'static str]| daemon.ctl(args.iter().copied()).input("from a pipe\n").run();
    assert_eq!(content(&piped(&["submit", "-"])).trim_end(), "from a pipe");
    assert_eq!(content(&piped(&["submit"])).trim_end(), "from a pipe");
    assert_eq!(content(&piped(&["submit", "told"])), "told");
    run(&daemon, ["submit"]).expect_code(2);
}

#[test]
fn the_current_directory_is_the_workspace() {
    let server = ModelServer::script(vec![Turn::exec("c1", "touch here"), Turn::text("done")]);
    let daemon = Daemon::start(&server);
    run(&daemon, ["run", "go"]).expect_code(0);
    assert!(daemon.workspace().join("here").exists());
}

#[test]
fn statuses() {
    let server = ModelServer::script(vec![
        Turn { status: Some(400), when: Some("xbad".to_owned()), repeat: true, ..Turn::default() },
        Turn { hang: true, when: Some("xhang".to_owned()), repeat: true, ..Turn::default() },
        Turn { repeat: true, ..Turn::text("done") },
    ]);
    let daemon = Daemon::start(&server);
    let submit = |text: &str| run(&daemon, ["submit", text]).expect_code(0);
    let (good, bad, hanging) = (submit("good"), submit("xbad"), submit("xhang"));
    for (args, code) in [
        (vec!["run", "xbad"], 1),
        (vec!["wait", &good], 0),
        (vec!["wait", &bad], 1),
        (vec!["wait", &good, &bad], 1),
        (vec!["result", &bad], 5),
        (vec!["result", &hanging], 5),
        (vec!["--timeout", "200ms", "wait", &hanging], 7),
        (vec!["--timeout", "200ms", "run", "xhang"], 7),
        (vec!["wait", "tsk_00000000000000000000000000"], 4),
        (vec!["task", "nonsense"], 4),
        (vec!["tools", "nobody"], 4),
        (vec!["resume", &good], 5),
        (vec!["session", "create", "--new", "a b"], 5),
        (vec!["frobnicate"], 2),
        (vec!["run", "-s", "x", "--new", "y", "text"], 2),
        (vec!["run", "-s", "x", "--booter", "none", "text"], 2),
        (vec!["run", "--booter", "cloud", "text"], 5),
        (vec!["rpc", "no.such"], 5),
        (vec!["rpc", "daemon.status"], 0),
        (vec!["cancel", &hanging], 0),
        (vec!["wait", &hanging], 6),
        (vec!["wait", &good, &hanging, &bad], 6),
        (vec!["cancel", &good], 0),
        (vec!["status"], 0),
    ] {
        let output = run(&daemon, ["-q"].into_iter().chain(args.iter().copied()));
        assert_eq!(output.code, Some(code), "{args:?}: {output:?}");
        if args.contains(&"wait") || code == 0 {
            continue; // A wait tells by its status alone.
        }
        let _ = output.expect_error(code);
    }
}

#[test]
fn nobody_there() {
    let home = tempfile::tempdir().expect("a home");
    let at = |args: &[&str]| Ctl::new(home.path()).env("NANO_SOCKET", home.path().join("no.sock")).args(args).run();
    for args in [&["status"] as &[&str], &["submit", "x"], &["run", "x"], &["wait", "tsk_0"]] {
        let said = at(args).expect_error(3);
        assert!(said.contains("no.sock"), "{said}");
    }
    assert_eq!(std::fs::read_dir(home.path()).expect("the home").count(), 0, "something was started or made");
}

#[test]
fn lists_are_json_when_asked_for() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let id = run(&daemon, ["session", "create", "--new", "mine"]).expect_code(0);
    assert!(id.starts_with("ses_"), "{id}");
    run(&daemon, ["run", "-s", "mine", "hello"]).expect_code(0);
    for (args, member) in [
        (&["sessions"] as &[&str], "sessions"),
        (&["tasks"], "tasks"),
        (&["tools", "mine"], "tools"),
        (&["prompts", "mine"], "prompts"),
        (&["session", "messages", "mine"], "messages"),
        (&["followup", "list"], "followups"),
        (&["models"], "models"),
        (&["booters"], "booters"),
    ] {
        let json = run(&daemon, ["--json"].into_iter().chain(args.iter().copied())).expect_code(0);
        let value: Value = serde_json::from_str(&json).expect("JSON");
        assert!(value[member].is_array(), "{args:?}: {json}");
        run(&daemon, args.iter().copied()).expect_code(0);
    }
}

#[test]
fn steer_says_how_it_was_accepted() {
    let server =
        ModelServer::answering(|_, n| Some(if n == 1 { Turn::text("one").gated("m1") } else { Turn::text("two") }));
    let daemon = Daemon::start(&server);
    run(&daemon, ["session", "create", "--new", "s"]).expect_code(0);
    let task = run(&daemon, ["submit", "-s", "s", "p"]).expect_code(0);
    server.wait_requests(1);
    for (flag, word) in [("--note", "note"), ("--redirect", "redirect")] {
        let said = run(&daemon, ["steer", "s", "hurry", flag]).expect_code(0);
        assert!(said.contains("msg_") && said.contains(word), "{said}");
    }
    server.open("m1");
    run(&daemon, ["wait", &task]).expect_code(0);
    let said = run(&daemon, ["steer", "s", "idle"]).expect_code(0);
    assert!(said.contains("task"), "{said}");
}

#[test]
fn followup_add_prints_the_id_and_shows_the_times() {
    let server = plain();
    let daemon = Daemon::start(&server);
    run(&daemon, ["session", "create", "--new", "s"]).expect_code(0);
    let output = run(&daemon, ["followup", "add", "s", "look", "--cron", "0 9 * * 1-5", "--tz", "Europe/Oslo"]);
    let id = output.expect_code(0);
    assert!(id.starts_with("fup_") && output.stdout == format!("{id}\n"), "{output:?}");
    assert!(output.stderr.matches('Z').count() >= 3, "three times in UTC: {output:?}");
    run(&daemon, ["followup", "cancel", &id]).expect_code(0);
    run(&daemon, ["followup", "add", "s", "look", "--in", "soon"]).expect_code(2);
    run(&daemon, ["followup", "add", "s", "look"]).expect_code(2);
}

#[test]
fn one_ctrl_c_cancels() {
    let server = ModelServer::script(vec![Turn { hang: true, ..Turn::default() }]);
    let daemon = Daemon::start(&server);
    let child = daemon.ctl(["run", "p"]).interruptible().spawn();
    server.wait_requests(1);
    interrupt(&child);
    let _ = ctl::output(child).expect_code(6);
}

#[test]
fn two_ctrl_c_leave_at_once() {
    let command = "trap 'touch termed' TERM; touch up; while [ ! -e go ]; do sleep 0.02; done";
    let server = ModelServer::script(vec![Turn::exec("c1", command)]);
    let daemon = Daemon::start(&server);
    let child = daemon.ctl(["run", "p"]).interruptible().spawn();
    for file in ["up", "termed"] {
        let path = daemon.workspace().join(file);
        wait::until(file, || path.exists().then_some(()));
        interrupt(&child);
    }
    let _ = ctl::output(child).expect_code(130);
}

fn interrupt(child: &std::process::Child) {
    processes::signal(i32::try_from(child.id()).expect("a process id"), Signal::INT);
}

#[test]
fn a_closed_pipe_is_quiet() {
    let server = ModelServer::answering(|_, _| Some(Turn::text("word ".repeat(50_000))));
    let daemon = Daemon::start(&server);
    let mut child = daemon.ctl(["run", "p"]).spawn();
    drop(child.stdout.take());
    let output = ctl::output(child);
    assert!(!output.stderr.contains("panic") && !output.stderr.contains("roken pipe"), "{output:?}");
}

#[test]
fn run_goes_on_over_a_restart() {
    let server = ModelServer::script(vec![Turn { hang: true, ..Turn::default() }, Turn::text("done")]);
    let mut daemon = Daemon::start(&server);
    let following = daemon.ctl(["run", "p"]).spawn();
    server.wait_requests(1);
    let pid = i32::try_from(daemon.pid()).expect("a process id");
    processes::signal(pid, Signal::KILL);
    assert!(!daemon.wait().success());
    daemon.restart();
    assert_eq!(ctl::output(following).expect_code(0), "done");
}
