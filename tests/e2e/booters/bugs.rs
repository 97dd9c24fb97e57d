//! What went wrong with other clients of these servers, by the number of its report; one test for each, or where it is.
//!
//! | report | where |
//! |---|---|
//! | 1 to 3 | here, and `subagents` |
//! | 4 | here; `bug_4_…` of `daemon/tests`; a dead sandbox is not used again: `exact::a_sandbox_that_died_…` |
//! | 5 | `bug_5_…` of `daemon/tests`; `faults::boots::a_slow_boot_…`, `faults::strangers::nobody_…` |
//! | 6 | here; `bug_6_…` of `daemon/tests` |
//! | 7, 8 | `bug_7_and_8_…` of `daemon/tests`; `faults::boots::a_sandbox_that_fails_…` |
//! | 9 | `secrets::bug_09_…` |
//! | 10 | `bug_10_…` of `daemon/tests`; `faults::strangers` |
//! | 11, 12 | `skills::bug_11_…`, `skills::bug_12_…` |
//! | 13 to 18 | here |
//! | 19 | here, for commands and skills: there is no desktop to bring them to |
//! | 20 | `exact::a_restart_finds_the_sandbox_again`; a fixed store of files is not offered, and a loss is told |
//! | 21 | here: what is missing is said; how a server is set up is its own matter |
//! | 22 | `leaks`, for the kinds there are |
//!
//! Defects that were never reported are called `defect_…`. Those that are shown elsewhere: two first calls boot twice
//! (`faults::boots::first_calls_…`), a restart leaks (`leaks`), nothing is kept alive (`faults::runs::a_sandbox_is_given_time_…`),
//! a key goes to another server (`secrets`), the list changes too late (`exact`), two sessions are one user of a ship
//! (`sessions_do_not_share_a_user` of `daemon/tests`), a roll-back is claimed that was none (`daemon/tests/shipyard_neo`).

use std::fs;
use std::time::Duration;

use nano_tests::sandboxes::{Boot, Browsed, Fault};

use super::faults::{Remote, World, both, hello, no_computer, obeying};
use super::*;

fn offered(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned)).collect()
}

#[test]
fn bug_01_02_03_a_delegate_has_every_tool_or_exactly_those_it_was_given() {
    let bay = Bay::start();
    let some = ["datetime", "browser_exec", "exec"];
    let server = ModelServer::script(vec![
        call("c1", "delegate", json!({"content": "all"})),
        Turn::text("child"),
        call("c2", "delegate", json!({"content": "some", "tools": some})),
        Turn::text("child"),
        Turn::text("done"),
    ]);
    let daemon = daemon(&server, neo(&bay));
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"booter": "shipyard_neo", "tool_mode": "all"}));
    client.run(&session, "p");
    let requests = server.requests();
    assert_eq!(offered(&requests[1]), offered(&requests[0]));
    assert!(offered(&requests[1]).len() > 18, "more than the computer's tools");
    assert_eq!(offered(&requests[3]), ["exec", "browser_exec", "datetime"], "those, in their order");
}

#[test]
fn bug_04_the_first_call_waits_for_a_cold_start() {
    let bay = Bay::start();
    bay.set_boot(Boot::Cold);
    bay.fault(Fault::not_ready("POST", "/shell/exec", 50).times(10));
    let mut world = World::new(Remote::Neo(bay));
    assert_eq!(world.call("exec", json!({"command": "echo hello", "timeout": 1})), ("hello".into(), true));
}

#[test]
fn bug_04_no_error_is_empty() {
    for remote in both() {
        let mut world = World::new(remote);
        world.boot();
        for (method, path, name, arguments) in [
            ("POST", world.remote.exec(), "exec", json!({"command": "true"})),
            ("POST", world.remote.python(), "python", json!({"code": "1"})),
            ("POST", world.remote.upload(), "upload_file", json!({"local_path": "note"})),
            ("GET", world.remote.download(), "download_file", json!({"remote_path": "note"})),
        ] {
            fs::write(world.daemon.workspace().join("note"), "text").expect("a file");
            for status in [400, 403, 404, 413, 422, 500, 502, 504] {
                let empty = nano_tests::sandboxes::Reply { status, ..Default::default() };
                world.remote.fault(Fault::answer(method, path, empty));
                let (text, ok) = world.call(name, arguments.clone());
                assert!(!ok && text.len() > 20 && !text.trim_end().ends_with(':'), "{name} {status}: {text:?}");
                world.remote.clear_faults();
            }
        }
    }
}

#[test]
fn bug_06_a_sandbox_that_stays_idle_is_not_waited_for() {
    let bay = Bay::start();
    bay.set_boot(Boot::Cold);
    let mut world = World::new(Remote::Neo(bay));
    assert!(world.boot().booted);
    assert!(world.remote.requests_to("GET", "/sandboxes/*").len() < 10);
    assert_eq!(world.exec("echo hello"), ("hello".into(), true));
}

#[test]
fn bug_13_14_a_path_of_the_host_is_words_and_the_prompt_tells_which_way_files_go() {
    for remote in both() {
        let mut world = World::new(remote);
        let host = world.daemon.workspace().join("mine");
        fs::write(&host, "text").expect("a file");
        let (text, ok) = world.call("download_file", json!({"remote_path": host}));
        assert!(!ok && text.contains("relative to"), "{text}");
        let (text, ok) = world.call("upload_file", json!({"local_path": "not-there"}));
        assert!(!ok && text.contains("not-there"), "{text}");
        let (text, ok) = world.call("upload_file", json!({"local_path": host}));
        assert!(ok, "an absolute path within the workspace is one of its files: {text}");
        assert_eq!(world.exec("cat mine"), ("text".into(), true));
        let prompts: Value = world.client.get("session.prompts", &json!({"session": world.session}));
        let text = prompts["assembled"].as_str().expect("a prompt");
        assert!(text.contains("upload_file") && text.contains("download_file"), "{text}");
    }
}

#[test]
fn bug_15_files_come_back_whole() {
    let bytes: Vec<u8> = (0..=255_u8).cycle().take(100_003).collect();
    for remote in both() {
        let mut world = World::new(remote);
        let work = world.daemon.workspace();
        for (name, content) in [("whole.png", bytes.as_slice()), ("empty", &[])] {
            fs::write(work.join(name), content).expect("a file");
            assert!(world.call("upload_file", json!({"local_path": name})).1);
            assert_eq!(fs::read(world.remote.folder().join(name)).expect("a file"), content);
            let back = json!({"remote_path": name, "local_path": "back"});
            let (text, ok) = world.call("download_file", back);
            assert!(ok && text.contains(&format!("{} bytes", content.len())), "{text}");
            assert_eq!(fs::read(work.join("back")).expect("a file"), content);
        }
    }
}

/// The server hands a command on for three seconds; the real one for thirty.
#[test]
fn bug_16_a_command_may_take_longer_than_the_server_waits() {
    let ships = Ships::start();
    ships.set_forward_timeout(Duration::from_secs(3));
    let mut world = World::new(Remote::Ship(ships));
    let long = json!({"command": "echo m >> marks; sleep 7; echo over", "timeout": 40});
    assert_eq!(world.call("exec", long), ("over".into(), true));
    assert_eq!(world.remote.marks(), 1);
    let (text, ok) = world.call("exec", json!({"command": "echo begun; sleep 30; touch late", "timeout": 5}));
    assert!(!ok && text.starts_with("begun\n[stopped after 5 s"), "{text}");
    world.remote.wait_quiet();
    let (text, ok) = world.call("exec", json!({"command": "sleep 30", "timeout": 2}));
    assert!(!ok && text.contains("stopped after 2 s"), "{text}");
    let (text, ok) = world.call("python", json!({"code": "import time; time.sleep(6)", "timeout": 20}));
    assert!(!ok && text.contains("run what takes longer with exec"), "{text}");
}

#[test]
fn bug_17_no_schema_has_alternatives_and_a_payload_may_be_anything() {
    let bay = Bay::start();
    let mut world = World::new(Remote::Neo(bay));
    for payload in [json!({"skill_markdown": "x"}), json!([{"a": 1}]), json!("{\"a\": 1}"), json!("[{\"a\": 1}]")] {
        let (text, ok) = world.call("create_skill_payload", json!({ "payload": payload }));
        assert!(ok && text.contains("payload_ref"), "{payload}: {text}");
    }
    let (text, ok) = world.call("create_skill_payload", json!({}));
    assert!(!ok && text.contains("payload"), "{text}");
    let sent = world.model.requests()[0]["tools"].to_string();
    for word in ["anyOf", "oneOf", "allOf", "$ref", "$defs"] {
        assert!(!sent.contains(word), "{word} in {sent}");
    }
}

#[test]
fn bug_18_a_browser_that_is_not_there_is_named() {
    let bay = Bay::start();
    bay.force_profile(Some("browser-python"));
    bay.set_browser(|_| Browsed { exit_code: 127, stdout: String::new(), stderr: "agent-browser: not found".into() });
    let mut world = World::new(Remote::Neo(bay));
    for (name, arguments) in
        [("browser_exec", json!({"cmd": "open x"})), ("browser_batch_exec", json!({"commands": ["open x"]}))]
    {
        let (text, ok) = world.call(name, arguments);
        assert!(!ok && text.contains("agent-browser: not found") && text.contains("127"), "{name}: {text}");
    }
}

#[test]
fn bug_19_a_command_may_be_longer_than_an_argument() {
    for remote in both() {
        let mut world = World::new(remote);
        let long = "x'".repeat(150_000);
        let command = format!("cat > big <<'E'\n{long}\nE\nwc -c < big");
        assert_eq!(world.exec(&command), ("300001".into(), true));
    }
}

#[test]
fn bug_19_a_skill_may_be_large() {
    for remote in both() {
        let section = remote.section();
        let mut world = World::with(remote, section, "skills = [\"large\"]");
        let folder = world.daemon.workspace().join(".agents/skills/large");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("SKILL.md"), "---\nname: large\ndescription: Large.\n---\nRead data.\n")
            .expect("a skill");
        fs::write(folder.join("data"), vec![b'x'; 700_000]).expect("a file");
        let (text, ok) = world.call("load_skill", json!({"name": "large"}));
        assert!(ok, "{text}");
        assert_eq!(world.exec("wc -c < skills/large/data"), ("700000".into(), true), "{text}");
    }
}

#[test]
fn bug_21_a_booter_without_its_key_says_so_and_keeps_its_tools() {
    for remote in both() {
        let (kind, url) = (remote.kind(), remote.url());
        for (section, word) in [
            (String::new(), "endpoint"),
            (format!("[booters.{kind}]\nendpoint = \"{url}\"\n"), "access_token"),
            (format!("[booters.{kind}]\naccess_token = \"t\"\n"), "endpoint"),
        ] {
            let model = obeying();
            let daemon = daemon(&model, section);
            let mut client = daemon.client();
            let session = session(&daemon, &mut client, kind);
            assert!(names(&tools(&mut client, &session)).contains(&"exec"));
            let task = client.submit(&session, &json!(hello()).to_string());
            let why = no_computer(&client.settled(&task.id));
            let name = format!("booters.{kind}.{word}");
            assert!(why.contains(&name), "{why}");
            let shown = daemon.ctl(["booters"]).run().expect_code(0);
            assert!(shown.contains(&name), "{name} is not in\n{shown}");
        }
    }
}

#[test]
fn defect_what_a_command_prints_and_its_status_come_through() {
    for remote in both() {
        let mut world = World::new(remote);
        assert_eq!(world.exec("echo hello; echo no >&2; exit 3"), ("hello\nno\n[exit status 3]".into(), false));
        assert_eq!(world.call("python", json!({"code": "print('a'); 5"})), ("a\n5".into(), true));
        let (text, ok) = world.call("python", json!({"code": "1 / 0"}));
        assert!(!ok && text.contains("ZeroDivisionError") && !text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn defect_two_sessions_bring_a_skill_at_once() {
    for remote in both() {
        let section = remote.section();
        let mut world = World::with(remote, section, "skills = [\"both\"]");
        let folder = world.daemon.workspace().join(".agents/skills/both");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("SKILL.md"), "---\nname: both\ndescription: Both.\n---\nRead data.\n").expect("a skill");
        fs::write(folder.join("data"), "for both\n").expect("a file");
        let other = session(&world.daemon, &mut world.client, world.remote.kind());
        let calls =
            json!([["load_skill", {"name": "both"}], ["exec", {"command": "cat skills/both/data"}]]).to_string();
        let sessions = [world.session.clone(), other];
        let tasks = sessions.each_ref().map(|one| world.client.submit(one, &calls));
        for (task, session) in tasks.iter().zip(&sessions) {
            world.client.settled(&task.id);
            assert_eq!(result(&mut world.client, session), ("for both".into(), true));
        }
    }
}

#[test]
fn defect_the_prompt_says_that_promotion_needs_an_evaluation() {
    let bay = Bay::start();
    let mut world = World::new(Remote::Neo(bay));
    let prompts: Value = world.client.get("session.prompts", &json!({"session": world.session}));
    let text = prompts["assembled"].as_str().expect("a prompt");
    assert!(text.contains("evaluate_skill_candidate") && text.contains("promote_skill_candidate"), "{text}");
}
