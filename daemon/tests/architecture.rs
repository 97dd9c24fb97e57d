//! The architecture as a test: who imports whom, what is confined where, and how large things may be.
//!
//! The rules are the constants below. A new edge is a change of design: it comes with its own reason.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "architecture/source.rs"]
mod source;

use std::path::Path;

use source::Source;

#[path = "architecture/seen.rs"]
mod seen;

/// Module, and what of this crate it may name besides itself; an entry stands for everything below it.
const EDGES: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("crash", &[]),
    ("policy", &[]),
    ("json_schema", &[]),
    // What a person may write down of rules and of a tool's arguments is checked where it is read.
    ("config", &["json_schema", "policy"]),
    ("telemetry", &[]),
    ("shutdown", &["clock"]),
    ("store", &["clock", "config", "crash", "shutdown"]),
    ("http", &["clock", "config"]),
    ("sandbox", &["http", "clock", "config", "crash", "shutdown"]),
    // A workspace is hostile ground for skills as for tools: opened beneath its root; a lease tells whether a file is being written.
    ("skills", &["clock", "config", "store", "sandbox::workspace", "sandbox::place", "sandbox::lease"]),
    ("booters", &["tools", "sandbox", "skills", "http", "clock", "config", "crash"]),
    // How far the web tools reach is configured.
    ("tools", &["http", "config", "json_schema", "sandbox", "skills", "store", "clock", "crash"]),
    // The boxed future of all three seams is declared with the first of them.
    ("model", &["http", "clock", "config", "sandbox::BoxFuture"]),
    // The events of a stream are read in one place.
    ("mcp", &["tools", "sandbox", "store", "http", "config", "model::sse"]),
    (
        "session",
        &[
            "mcp", "booters", "model", "tools", "sandbox", "skills", "store", "policy", "clock", "config", "crash",
            "shutdown",
        ],
    ),
    // A file that a follow-up waits for lies beneath a workspace; the tool that schedules hands its words up here.
    (
        "schedule",
        &[
            "session",
            "store",
            "clock",
            "crash",
            "shutdown",
            "sandbox::workspace",
            "sandbox::lease",
            "tools::schedule_followup",
        ],
    ),
    ("store_work", &["store"]),
    // These two stand beside the assembly; the second makes anew what that made of the configuration.
    ("beside", &["booters", "session", "skills"]),
    ("reload", &["config", "session", "telemetry"]),
    ("ending", &["session", "store"]),
    ("rpc", &["schedule", "session", "tools", "model", "sandbox", "skills", "config", "crash", "shutdown"]),
];

/// Modules that turn input into output and touch nothing.
const PURE: &[&str] = &[
    "session::task",
    "session::admission",
    "session::steering_file::line",
    "schedule::calendar",
    "model::sse",
    "model::retry",
    "skills::catalogue",
    "tools::set",
    "tools::naming",
    "json_schema",
    "config::quantity",
    "policy",
];

/// What pure modules may not name.
const IMPURE: &[&str] = &[
    "tokio",
    "crate::clock",
    "std::fs",
    "std::net",
    "std::thread",
    "std::time::SystemTime",
    "std::time::Instant",
    "SystemTime::now",
    "Instant::now",
    "jiff::Zoned::now",
    "jiff::Timestamp::now",
    "Zoned::now",
    "Timestamp::now",
];

/// A path, and the modules that alone may name it; `""` is the crate root with `main`.
const CONFINED: &[(&str, &[&str])] = &[
    ("sled", &["store"]),
    ("std::process", &["sandbox", ""]),
    ("tokio::process", &["sandbox"]),
    ("reqwest", &["http"]),
    ("tokio_tungstenite", &["http"]),
    // The root reads its arguments; a test build is told where to die.
    ("std::env", &["config", "crash", "store_work", ""]),
    ("serde_json::Value", &["rpc", "tools", "model", "booters", "json_schema", "config::tools", "mcp"]),
    ("libc", &["sandbox"]),
];

const MOST_FILE_LINES: usize = 300;
const MOST_FUNCTION_LINES: usize = 60;
/// A function that is one `match` is a table.
const MOST_TABLE_LINES: usize = 80;

/// Beginnings of the files that make up the agent core, and how many lines of code they may have together: the double
/// loop, the tool set, the core and read-only tools with what they stand on, and one provider. What a session takes from
/// callers, how it boots and how it is restored stand around the loop and are not in it.
const CORE: &[&str] = &[
    "session/acts",
    "session/actor",
    "session/batch",
    "session/call",
    "session/ledger",
    "session/prompt",
    "session/task",
    "session/transcript",
    "session/turn",
    "tools/mod",
    "tools/set",
    "tools/file_tool",
    "tools/registry",
    "tools/replace",
    "tools/schema",
    "tools/walk",
    "tools/read_file",
    "tools/write_file",
    "tools/edit_file",
    "tools/exec",
    "tools/python",
    "tools/search",
    "tools/list_dir",
    "tools/grep",
    "model/body",
    "model/calls",
    "model/chunk",
    "model/failure",
    "model/intake",
    "model/mod",
    "model/openai",
    "model/retry",
    "model/sse",
    "model/think",
];
const MOST_CORE_LINES: usize = 3500;
/// The same for skills: folders that anybody may fill are walked, watched and edited with care, which has its length.
/// How a document is read is a crate of its own.
const SKILLS: &[&str] = &["skills/", "session/skills", "tools/load_skill"];
const MOST_SKILLS_LINES: usize = 1600;

fn sources() -> Vec<Source> {
    source::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn is_within(module: &str, homes: &[&str]) -> bool {
    homes.iter().any(|home| if home.is_empty() { module.is_empty() } else { is_below(module, home) })
}

fn bad_edges(source: &Source) -> Vec<String> {
    let own = source.module.split("::").next().unwrap_or_default();
    let Some((_, allowed)) = EDGES.iter().find(|(module, _)| *module == own) else {
        return if own.is_empty() { vec![] } else { vec![format!("{}: {own} has no row in EDGES", source.file)] };
    };
    let is_bad = |path: &&str| {
        let known = EDGES.iter().any(|(module, _)| is_below(path, module));
        known && !is_below(path, own) && !is_within(path, allowed)
    };
    let paths = source.paths();
    let inner = paths.iter().filter_map(|path| path.strip_prefix("crate::"));
    inner.filter(is_bad).map(|path| format!("{}: may not import {path}", source.file)).collect()
}

fn bad_places(source: &Source) -> Vec<String> {
    let is_bad = |path: &String| {
        CONFINED.iter().any(|(confined, homes)| is_below(path, confined) && !is_within(&source.module, homes))
    };
    source.paths().into_iter().filter(is_bad).map(|path| format!("{}: {path} is confined", source.file)).collect()
}

fn impurities(source: &Source) -> Vec<String> {
    if !is_within(&source.module, PURE) {
        return Vec::new();
    }
    impure(source)
}

fn impure(source: &Source) -> Vec<String> {
    let is_bad = |path: &String| is_within(path, IMPURE);
    source
        .paths()
        .into_iter()
        .filter(is_bad)
        .map(|path| format!("{}: is pure, but names {path}", source.file))
        .collect()
}

fn too_large(source: &Source) -> Vec<String> {
    let file = (source.lines > MOST_FILE_LINES).then(|| format!("{}: {} lines", source.file, source.lines));
    let limit = |is_table: bool| if is_table { MOST_TABLE_LINES } else { MOST_FUNCTION_LINES };
    let functions = source.functions().into_iter().filter(|(_, lines, is_table)| *lines > limit(*is_table));
    file.into_iter()
        .chain(functions.map(|(name, lines, _)| format!("{}: {name} has {lines} lines", source.file)))
        .collect()
}

#[track_caller]
fn holds(rule: impl Fn(&Source) -> Vec<String>) {
    let broken: Vec<String> = sources().iter().flat_map(rule).collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn imports_flow_one_way() {
    holds(bad_edges);
}

#[test]
fn what_is_confined_stays_at_home() {
    holds(bad_places);
}

#[test]
fn pure_modules_touch_nothing() {
    holds(impurities);
}

#[test]
fn the_reader_of_skills_touches_nothing_and_stays_small() {
    let sources = source::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("skill/src"));
    let broken: Vec<String> = sources.iter().flat_map(|source| [impure(source), too_large(source)].concat()).collect();
    assert!(sources.len() > 5 && broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn files_and_functions_stay_small() {
    holds(too_large);
}

#[test]
fn the_agent_core_and_the_skills_stay_small() {
    let sources = sources();
    for (what, files, most) in [("agent core", CORE, MOST_CORE_LINES), ("skills", SKILLS, MOST_SKILLS_LINES)] {
        let counted = sources.iter().filter(|source| files.iter().any(|start| source.file.starts_with(start)));
        let lines: usize = counted.map(Source::code_lines).sum();
        eprintln!("{what}: {lines} lines of code, {most} allowed");
        assert!(lines < most, "{what}: {lines} lines of code");
    }
}
