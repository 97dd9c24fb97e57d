//! `agents`: what its flags say over the wire, and what an import makes of profiles in the MAO shape.

use serde_json::{Value, json};

use crate::fake::{Fake, Say};
use crate::shell::{Ran, nanoctl, piped};
use crate::wire::agent;

mod imported;

/// A daemon with a few tools, a model, and a profile named `taken`.
fn daemon() -> Fake {
    let tool =
        |name: &str| json!({"name": name, "description": "", "input_schema": {}, "source": "core", "requires": []});
    let tools = ["exec", "read_file", "write_file", "edit_file", "grep"].map(tool);
    let tools = json!({ "tools": tools });
    let models =
        json!({"models": [{"name": "main", "api": "openai", "model": "gpt-4o", "default": true, "source": "config"}]});
    Fake::start(move |method, params| {
        let name = params["name"].as_str().unwrap_or_default();
        vec![match method {
            "tool.list" => Say::Result(tools.clone()),
            "model.list" => Say::Result(models.clone()),
            "agent.get" if name != "taken" => Say::Error(-32001, "not_found", "there is no agent"),
            "agent.create" if name == "taken" => Say::Error(-32002, "conflict", "there is an agent taken already"),
            _ => Say::Result(agent(name)),
        }]
    })
}

fn without_nulls(mut params: Value) -> Value {
    params.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    params
}

/// Runs a verb, which must do what it says, and returns what it asked for and its stdout.
fn check(args: &[&str], stdin: &str, method: &str) -> (Value, String) {
    let fake = daemon();
    let ran = piped(&fake, args, stdin.as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
    (without_nulls(fake.asked(method)[0].clone()), ran.out)
}

#[test]
fn flags_say_what_a_profile_is_like() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prompt.md");
    std::fs::write(&file, "\u{feff}From a\nfile.\r\n").unwrap();
    for (args, stdin, params) in [
        (&[][..], "", json!({})),
        (&["--tools", "", "--skills", ""], "", json!({"tools": [], "skills": []})),
        (&["--tools", " , "], "", json!({"tools": []})),
        (&["--tools", "a, mcp__x__*", "--skills", "git"], "", json!({"tools": ["a", "mcp__x__*"], "skills": ["git"]})),
        (&["--mode", "readonly", "--level", "host"], "", json!({"tool_mode": "readonly", "level": "host"})),
        (&["--prompt", ""], "", json!({"system_prompt": ""})),
        (&["--prompt", " x\n"], "", json!({"system_prompt": " x\n"})),
        (&["--prompt", "-"], "a\nb\n", json!({"system_prompt": "a\nb"})),
        (&["--prompt-file", "-"], "a\n\n", json!({"system_prompt": "a\n"})),
        (&["--prompt-file", file.to_str().unwrap()], "", json!({"system_prompt": "From a\nfile."})),
        (&["--model", "m", "--booter", "sandbox"], "", json!({"model": "m", "booter": "sandbox"})),
        (&["--max-turns", "3", "--budget", "0.5"], "", json!({"max_turns": 3, "budget": 0.5})),
        (
            &["--task-timeout", "1m", "--exec-timeout", "2s", "--exec-timeout-max", "3s"],
            "",
            json!({"timeout_ms": 60000, "exec_timeout_ms": 2000, "exec_timeout_max_ms": 3000}),
        ),
        (
            &["--enable-exec", "false", "--enable-steering", "false", "--enable-followup", "true"],
            "",
            json!({"enable_exec": false, "enable_steering": false, "enable_followup": true}),
        ),
        (
            &["--restrict-to-workspace", "false", "--resume", "ask"],
            "",
            json!({"restrict_to_workspace": false, "resume": "ask"}),
        ),
    ] {
        let mut params = params;
        params["name"] = json!("w");
        let create = [&["agents", "create", "w"][..], args].concat();
        assert_eq!(check(&create, stdin, "agent.create"), (params.clone(), "w\n".into()), "{args:?}");
        if !args.is_empty() {
            let edit = [&["agents", "edit", "w"][..], args].concat();
            assert_eq!(check(&edit, stdin, "agent.update"), (params, "w changed\n".into()), "{args:?}");
        }
    }
    let reset = [
        "agents",
        "edit",
        "w",
        "--reset",
        "tools",
        "--reset",
        "exec-timeout",
        "--reset",
        "prompt",
        "--reset",
        "nonsense",
    ];
    let members = json!(["tools", "exec_timeout_ms", "system_prompt", "nonsense"]);
    assert_eq!(check(&reset, "", "agent.update").0, json!({"name": "w", "reset": members}));
    assert_eq!(check(&["agents", "delete", "w"], "", "agent.delete"), (json!({"name": "w"}), "w deleted\n".into()));
}

#[test]
fn show_tells_all_and_list_has_pages() {
    let (_, out) = check(&["agents", "show", "taken"], "", "agent.get");
    insta::assert_snapshot!(out, @r"
    agent             taken
    source            config
    note              hides a stored profile of the same name
    model             -
    booter            local
    level             read-only
    mode              core
    tools             none
    skills            git
    turns             5
    timeout           60s
    exec timeout      30s
    exec timeout max  600s
    exec              off
    steering          on
    follow-ups        off
    workspace only    on
    resume            auto
    approve           -
    approve timeout   -
    budget            0.5
    prompt            Be\nkind.
    ");
    let fake = Fake::start(|_, _| vec![Say::Result(json!({"agents": [agent("w")], "next": "w"}))]);
    let ran = nanoctl(&fake, &["agents", "list", "--limit", "1", "--after", "a"]);
    assert_eq!(without_nulls(fake.asked("agent.list")[0].clone()), json!({"limit": 1, "after": "a"}));
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (0, "w  -  local  none  config\n", "there are more: --after w\n")
    );
}

#[test]
fn wrong_lines_are_refused_before_the_daemon_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let long = folder.path().join("long");
    std::fs::write(&long, "x".repeat(1024 * 1024 + 3)).unwrap();
    let bytes = folder.path().join("bytes");
    std::fs::write(&bytes, [0xff]).unwrap();
    let (long, bytes) = (long.to_str().unwrap(), bytes.to_str().unwrap());
    for (args, code, says) in [
        (&["create"][..], 2, "required arguments"),
        (&["create", "w", "--prompt", "x", "--prompt-file", "y"], 2, "cannot be used with"),
        (&["create", "w", "--prompt-file", "/nowhere/x"], 2, "/nowhere/x cannot be read (No such file"),
        (&["create", "w", "--prompt-file", "/"], 2, "/ cannot be read (Is a directory"),
        (&["create", "w", "--prompt-file", long], 5, "is longer than"),
        (&["create", "w", "--prompt-file", bytes], 5, "is not UTF-8"),
        (&["create", "w", "--level", "root"], 2, "is none of read-only, workspace-write, host"),
        (&["create", "w", "--max-turns", "-1"], 2, "usage"),
        (&["create", "w", "--enable-exec"], 2, "a value is required"),
        (&["edit", "w"], 2, "nothing to change was given"),
        (&["import"], 2, "required arguments"),
        (&["import", "/nowhere/x"], 2, "cannot be read"),
        (&["import", bytes], 5, "is not UTF-8"),
        (&["import", long], 5, "is not JSON"),
    ] {
        let fake = daemon();
        let ran = nanoctl(&fake, &[&["agents"][..], args].concat());
        assert!(ran.code == code && ran.out.is_empty() && ran.err.contains(says), "{args:?}: {ran:?}");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
        assert!(fake.asked("agent.create").is_empty() && fake.asked("agent.update").is_empty());
    }
}
