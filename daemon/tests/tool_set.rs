//! The tool list of a session, before boot and after, golden; and every reason why a tool is missing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use nano_protocol::Object;
use nano_protocol::session::ToolMode;
use nanod::booters::Booter;
use nanod::booters::local::LocalBooter;
use nanod::booters::none::NoneBooter;
use nanod::sandbox::{BoxFuture, Capabilities, Capability};
use nanod::tools::naming::unknown_names;
use nanod::tools::registry;
use nanod::tools::set::{Choice, Machine, ToolSet};
use nanod::tools::web::{self, Settings};
use nanod::tools::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec};

const PLAIN: Choice<'_> = Choice {
    mode: ToolMode::Core,
    tools: None,
    enable_exec: true,
    enable_followup: false,
    delegate_barred: None,
    skills_offered: false,
};

struct Fake(ToolSpec);

impl Fake {
    fn tool(name: &'static str, source: &'static str) -> Arc<dyn Tool> {
        let input_schema = Object::new();
        Arc::new(Self(ToolSpec {
            name: name.into(),
            description: "".into(),
            input_schema,
            source: source.into(),
            requires: &[],
            read_only: false,
        }))
    }
}

impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _: &'a ToolContext, _: Object) -> BoxFuture<'a, Result<ToolOutcome, ToolFault>> {
        panic!("is never called")
    }
}

/// Every built-in tool, in the order of the registry.
fn builtin() -> Vec<Arc<dyn Tool>> {
    [registry::core(), web::tools(&Settings::default()), registry::local()].concat()
}

/// Every built-in tool, and one of each kind that comes from elsewhere.
fn all() -> Vec<Arc<dyn Tool>> {
    let mut all = vec![
        Fake::tool("mcp__b__x", "mcp:b"),
        Fake::tool("mcp__a__z", "mcp:a"),
        Fake::tool("mcp__a__y", "mcp:a"),
        Fake::tool("deploy", "config"),
        Fake::tool("upload_file", "booter:shipyard"),
    ];
    all.extend(builtin().into_iter().rev());
    all
}

/// Writes the decision as one line of names and one line per withheld tool.
fn show(set: &ToolSet) -> String {
    let names: Vec<_> = set.wire().into_iter().map(|tool| tool.name).collect();
    let mut lines = vec![format!("{}: {}", if set.exact { "exact" } else { "default" }, names.join(" "))];
    lines.extend(set.withheld.iter().map(|tool| format!("- {}: {}", tool.name, tool.why)));
    lines.join("\n")
}

fn assemble(tools: &[Arc<dyn Tool>], booter: &dyn Booter, found: Option<&Capabilities>, choice: Choice<'_>) -> String {
    let declared = Capabilities::Known(booter.declared(Path::new("/w")).capabilities);
    let lacking = |capability: Capability| booter.lacking(capability);
    let capabilities = found.unwrap_or(&declared);
    let fixed = booter.declared(Path::new("/w")).fixed;
    let machine = Machine { kind: booter.kind(), booted: found.is_some(), capabilities, fixed, lacking: &lacking };
    show(&ToolSet::assemble(tools, machine, choice))
}

/// Returns a booter whose PATH holds python3 or does not.
fn local(folder: &Path, python: bool) -> LocalBooter {
    if python {
        fs::write(folder.join("python3"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(folder.join("python3"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    LocalBooter::new("/nanod".into(), vec![("PATH".into(), folder.display().to_string())])
}

#[tokio::test]
async fn before_and_after_boot_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let before = "default: read_file write_file edit_file exec python\n\
                  - load_skill: no skill is offered\n- search: not in mode core\n- list_dir: not in mode core\n- grep: not in mode core\n\
                  - process: not in mode core\n- web_search: not in mode core\n- web_fetch: not in mode core\n- http_request: not in mode core\n- datetime: not in mode core\n- todo: not in mode core\n- delegate: not in mode core\n- schedule_followup: not in mode core";
    let without = "exact: read_file write_file edit_file exec\n\
                   - load_skill: no skill is offered\n- python: python3 is not on PATH\n\
                   - search: not in mode core\n- list_dir: not in mode core\n- grep: not in mode core\n\
                   - process: not in mode core\n- web_search: not in mode core\n- web_fetch: not in mode core\n- http_request: not in mode core\n- datetime: not in mode core\n- todo: not in mode core\n- delegate: not in mode core\n- schedule_followup: not in mode core";
    let booter = local(folder.path(), false);
    assert_eq!(assemble(&builtin(), &booter, None, PLAIN), before);
    let booted = booter.attach(&support::request(), "").await.unwrap();
    assert_eq!(assemble(&builtin(), &booter, Some(booted.capabilities()), PLAIN), without);

    let with = local(folder.path(), true);
    let rejoined = with.attach(&support::request(), "").await.unwrap();
    let now = assemble(&builtin(), &with, Some(rejoined.capabilities()), PLAIN);
    assert_eq!(now, before.replace("default", "exact"), "what is there now, not what was there then");
    let booted = with.attach(&support::request(), "").await.unwrap();
    assert_eq!(
        assemble(&builtin(), &with, Some(booted.capabilities()), PLAIN),
        before.replace("default", "exact"),
        "python3 is there now"
    );
}

#[tokio::test]
async fn without_a_computer() {
    let needs = ["read_file", "write_file", "edit_file", "exec", "python", "search", "list_dir", "grep", "process"]
        .map(|name| format!("\n- {name}: needs a computer; booter none has none"))
        .concat();
    let booted = NoneBooter.attach(&support::request(), "").await.unwrap();
    let mode = Choice { mode: ToolMode::All, ..PLAIN };
    for found in [None, Some(booted.capabilities())] {
        let core = format!(
            "exact: \n- load_skill: no skill is offered{needs}\n- web_search: not in mode core\n- web_fetch: not in mode core\n- http_request: not in mode core\n\
             - datetime: not in mode core\n- todo: not in mode core\n- delegate: not in mode core\n\
             - schedule_followup: not in mode core"
        );
        assert_eq!(assemble(&builtin(), &NoneBooter, found, PLAIN), core);
        assert_eq!(
            assemble(&builtin(), &NoneBooter, found, mode),
            format!(
                "exact: web_fetch datetime todo delegate\n- load_skill: no skill is offered{needs}\n\
                 - web_search: no search server is configured; set provider and base_url in [web_search]\n\
                 - http_request: no host is allowed; set hosts in [http_request] of the config\n- schedule_followup: enable_followup is off"
            )
        );
    }
}

#[test]
fn what_is_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let booter = local(folder.path(), true);
    let check = |choice: Choice<'_>, expected: &str| {
        let shown = assemble(&all(), &booter, None, choice);
        assert_eq!(shown.lines().next(), Some(format!("default: {expected}").as_str()), "{choice:?}");
        assert_eq!(shown.lines().count() - 1 + expected.split_whitespace().count(), all().len());
        shown
    };
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let core = "read_file write_file edit_file exec python deploy mcp__a__y mcp__a__z mcp__b__x";
    let shown = check(PLAIN, core);
    for line in [
        "- load_skill: no skill is offered",
        "- upload_file: belongs to the booter shipyard; this session has local",
        "- schedule_followup: not in mode core",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    check(Choice { skills_offered: true, ..PLAIN }, &format!("load_skill {core}"));
    check(Choice { mode: ToolMode::ReadOnly, ..PLAIN }, "read_file search list_dir grep");
    let everything = "read_file write_file edit_file exec python search list_dir grep process web_fetch datetime \
                      todo delegate schedule_followup deploy mcp__a__y mcp__a__z mcp__b__x";
    check(Choice { mode: ToolMode::All, enable_followup: true, ..PLAIN }, everything);
    let shown = check(
        Choice { mode: ToolMode::All, enable_exec: false, ..PLAIN },
        "read_file write_file edit_file search list_dir grep web_fetch datetime todo delegate mcp__a__y mcp__a__z mcp__b__x",
    );
    for line in [
        "- exec: enable_exec is off",
        "- deploy: enable_exec is off",
        "- python: enable_exec is off",
        "- schedule_followup: enable_followup is off",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let barred = Some("depth 3 of 3 is reached");
    let shown = check(
        Choice { mode: ToolMode::All, enable_followup: true, delegate_barred: barred, ..PLAIN },
        &everything.replace("delegate ", ""),
    );
    assert!(shown.contains("- delegate: depth 3 of 3 is reached"), "{shown}");
    let named = list(&["mcp__a__*", "grep", "exec", "datetime", "read_file"]);
    let chosen = Choice { tools: Some(&named), ..PLAIN };
    let shown = check(chosen, "read_file exec grep datetime mcp__a__y mcp__a__z");
    assert!(shown.contains("- python: not in the agent's tools list"), "{shown}");
    check(Choice { enable_exec: false, ..chosen }, "read_file grep datetime mcp__a__y mcp__a__z");
    check(Choice { tools: Some(&[]), skills_offered: true, ..PLAIN }, "load_skill");
    let asked = list(&["exec", "exce", "mcp__a__*", "mcp__c__*", "*", "load_skill"]);
    assert_eq!(unknown_names(&all(), &asked), ["exce", "mcp__c__*", "*"]);
}

#[test]
fn a_machine_that_does_not_say_keeps_what_was_declared() {
    let folder = tempfile::tempdir().unwrap();
    let booter = local(folder.path(), false);
    let shown = assemble(&builtin(), &booter, Some(&Capabilities::Unknown), PLAIN);
    assert!(shown.starts_with("default: read_file write_file edit_file exec python\n"), "{shown}");
}

#[test]
fn an_unknown_tool_is_answered_with_what_there_is() {
    let nothing = Capabilities::Known(std::collections::BTreeSet::new());
    let lacking = |_: Capability| "python3 is not on PATH".to_owned();
    let known = Capabilities::Known([Capability::Shell, Capability::Filesystem].into());
    let local = Machine { kind: "local", booted: true, capabilities: &known, fixed: false, lacking: &lacking };
    let none = Machine { kind: "none", booted: false, capabilities: &nothing, fixed: false, lacking: &lacking };
    let check = |machine, name, expected| {
        assert_eq!(ToolSet::assemble(&builtin(), machine, PLAIN).not_found_text(name), expected);
    };
    let there = "read_file, write_file, edit_file, exec";
    check(local, "nope", format!("there is no tool `nope`; there are: {there}"));
    check(local, "readfile", format!("there is no tool `readfile`; did you mean `read_file`? There are: {there}"));
    check(local, "python", format!("the tool `python` is not offered: python3 is not on PATH; there are: {there}"));
    check(none, "x", "there is no tool `x`; there are none in this session".into());
}
