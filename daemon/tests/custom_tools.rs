//! Commands that a person configured as tools: each word reaches the program as it is, and nothing else does.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::sync::Arc;

use nanod::config::{Config, Env};
use nanod::tools::{Tool, ToolOutcome, custom, registry};
use serde_json::{Value, json};
use support::Fixture;

/// Reads a config that has these lines below `[tools.t]`.
fn config(lines: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nanod.toml");
    std::fs::write(&file, format!("[tools.t]\n{lines}")).unwrap();
    nanod::config::load(&file, &Env::of(1000, &[("HOME", "/home/p")])).map_err(|why| why.to_string())
}

fn tool(lines: &str) -> Arc<dyn Tool> {
    custom::tool(&config(lines).unwrap().tools[0])
}

async fn call(w: &Fixture, tool: &dyn Tool, arguments: Value) -> ToolOutcome {
    let Value::Object(arguments) = arguments else { panic!("no object") };
    tool.call(&w.context, arguments).await.unwrap()
}

/// Prints each of its arguments between angle brackets.
const SHOW: &str = r#"argv = ["python3", "-c", "import sys; print(''.join('<' + a + '>' for a in sys.argv[1:]))", "#;
const SCHEMA: &str = r#"input_schema = {type = "object", required = ["a"], additionalProperties = false, properties = {
    a = {type = "string"}, n = {type = "integer"}, l = {type = "array"}, o = {type = "object"}, f = {type = "boolean"}, x = {}}}"#;

#[tokio::test]
async fn words_reach_the_program_as_they_are() {
    let w = Fixture::with_computer().await;
    let done = |text: &str| ToolOutcome::Done(text.into());
    let failed = |text: &str| ToolOutcome::Failed(format!("bad arguments: {text}"));
    let nasty = [
        "$(touch pwned)",
        "`touch pwned`",
        "; touch pwned",
        "a'b\"c\\d",
        "$HOME ~ * ?",
        "a\nb\tc",
        "-n",
        "",
        "{a}",
        "%s é 🦀",
    ];
    let plain = tool(&format!("{SHOW}\"{{a}}\"]\n{SCHEMA}"));
    for text in nasty {
        assert_eq!(call(&w, plain.as_ref(), json!({"a": text})).await, done(&format!("<{text}>")), "{text:?}");
    }
    let mixed = tool(&format!("{SHOW}\"--a={{a}}\"]\n{SCHEMA}"));
    for text in nasty {
        assert_eq!(call(&w, mixed.as_ref(), json!({"a": text})).await, done(&format!("<--a={text}>")), "{text:?}");
    }
    assert!(!w.path("pwned").exists());
    let every =
        tool(&format!("{SHOW}\"{{a}}\", \"{{n}}\", \"{{l}}\", \"{{o}}\", \"{{f}}\", \"{{{{x}}}}\", \"$a\"]\n{SCHEMA}"));
    for (arguments, expected) in [
        (json!({"a": "1"}), done("<1><{x}><$a>")),
        (json!({"a": "1", "n": 5, "f": false}), done("<1><5><false><{x}><$a>")),
        (json!({"a": "1", "n": "5", "f": null}), done("<1><5><{x}><$a>")),
        (json!({"a": "1", "l": []}), done("<1><{x}><$a>")),
        (json!({"a": "1", "l": ["p q", 2, ["r"], {"s": "'"}]}), done("<1><p q><2><[\"r\"]><{\"s\":\"'\"}><{x}><$a>")),
        (json!({"a": "1", "o": {"k": ["v"]}}), done("<1><{\"k\":[\"v\"]}><{x}><$a>")),
        (json!({}), failed("`a` is missing")),
        (json!({"a": null}), failed("`a` is missing")),
        (json!({"a": 1}), failed("`a` must be a string, not 1")),
        (json!({"a": "x\u{0}y"}), failed("there is a NUL byte in them")),
        (json!({"a": "x", "b": 1}), failed("`b` is not known (the tool takes `a`, `n`, `l`, `o`, `f`, `x`)")),
    ] {
        assert_eq!(call(&w, every.as_ref(), arguments.clone()).await, expected, "{arguments}");
    }
    let within = tool(&format!("{SHOW}\"-{{x}}-\"]\n{SCHEMA}"));
    for (x, expected) in [
        (json!(null), failed("`x` is missing")),
        (json!([1]), failed("`x` may not be a list: it is part of a word")),
        (json!({"k": 1}), done("<-{\"k\":1}->")),
    ] {
        assert_eq!(call(&w, within.as_ref(), json!({"a": "", "x": x})).await, expected, "{x}");
    }
    let long = "x".repeat(100_000);
    assert_eq!(
        call(
            &w,
            tool(&format!("argv = [\"sh\", \"-c\", 'printf %s \"$1\" | wc -c', \"-\", \"{{a}}\"]\n{SCHEMA}")).as_ref(),
            json!({"a": long})
        )
        .await,
        done("100000")
    );
}

#[tokio::test]
async fn it_runs_as_any_command_does() {
    let w = Fixture::with_computer().await;
    let run = async |lines: &str| call(&w, tool(lines).as_ref(), json!({})).await;
    let here = std::fs::canonicalize(w.path("")).unwrap().display().to_string();
    assert_eq!(run("argv = [\"pwd\"]").await, ToolOutcome::Done(here));
    assert_eq!(run("argv = [\"false\"]").await, ToolOutcome::Failed("(no output)\n[exit status 1]".into()));
    let ToolOutcome::Failed(missing) = run("argv = [\"no-such-program\"]").await else { panic!("it was found") };
    assert!(missing.contains("no-such-program") && missing.ends_with("[exit status 127]"), "{missing}");
    let slow = run("argv = [\"sleep\", \"1000\"]\ntimeout = \"50ms\"").await;
    assert_eq!(slow, ToolOutcome::Stopped("(no output)\n[stopped after 0.05 s]".into()));
    let without = Fixture::new();
    let nowhere = call(&without, tool("argv = [\"pwd\"]").as_ref(), json!({})).await;
    assert_eq!(nowhere, ToolOutcome::Failed("this session has no computer".into()));
}

#[test]
fn a_name_is_one_tools() {
    let mut configured = config("argv = [\"a\"]").unwrap().tools;
    for (name, expected) in [
        ("t", None),
        ("exec", Some("tools.exec: there is a tool exec already, of booter:local; give it another name")),
        ("delegate", Some("tools.delegate: there is a tool delegate already, of core; give it another name")),
    ] {
        name.clone_into(&mut configured[0].name);
        let mut all = [registry::core(), registry::local()].concat();
        assert_eq!(custom::join(&mut all, &configured).err().as_deref(), expected);
    }
    let whole = Config { tools: configured, ..Config::default() };
    let why = nanod::check(&whole).unwrap_err();
    assert!(why.starts_with("tools.delegate: there is a tool delegate"), "{why}");
}
