//! What each table of the config file may hold, and what it means.

use super::agent::{agent, is_name};
use super::around::{Around, paths};
use super::model::model;
use super::reader::{Section, nearest};
use super::{Config, DaemonConfig, SkillsConfig, SteeringConfig, zone};

/// The tables of the file.
pub const TOP: [&str; 11] = [
    "daemon",
    "models",
    "agents",
    "booters",
    "skills",
    "steering",
    "tools",
    "mcp",
    "web",
    "web_search",
    "http_request",
];
const DAEMON: &str = "log max_line drain workspaces time_zone keep_events socket_group roles";
const KIB: u64 = 1 << 10;
const GIB: u64 = 1 << 30;

/// Reads every table of `root` into `config`, which holds the defaults.
pub fn read(root: &Section<'_>, around: &Around<'_>, config: &mut Config) {
    if let Some(section) = root.table("daemon", &words(DAEMON)) {
        daemon(&section, around, &mut config.daemon);
    }
    config.models =
        root.tables("models").into_iter().filter_map(|(name, section)| model(name, &section, around)).collect();
    for (name, section) in root.tables("agents") {
        config.agents.insert(checked_name(name, &section), agent(&section));
    }
    if let Some(section) = root.table("skills", &["paths", "watch", "trust"]) {
        skills(&section, around, &mut config.skills);
    }
    if let Some(section) = root.table("steering", &["enabled", "file"]) {
        steering(&section, &mut config.steering);
    }
    let tables = root.table("booters", &["shipyard", "shipyard_neo", "boxlite"]);
    config.booters = super::booters::read(tables.as_ref(), around);
    config.tools = super::tools::read(root);
    config.mcp = super::mcp::read(root);
    references(root, config);
    config.web = super::web::read(root, around);
}

/// Splits a list of keys.
pub fn words(list: &str) -> Vec<&str> {
    list.split(' ').collect()
}

/// Overwrites `place` if there is a value.
pub fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn daemon(section: &Section<'_>, around: &Around<'_>, config: &mut DaemonConfig) {
    if let Some(log) = section.filled("log") {
        if let Err(why) = tracing_subscriber::EnvFilter::try_new(&log) {
            section.wrong_key("log", &format!("is not a filter such as \"info\" or \"nanod=debug\": {why}"));
        }
        config.log = log;
    }
    set(&mut config.max_line, section.size("max_line", KIB..GIB + 1));
    set(&mut config.drain, section.duration("drain"));
    set(&mut config.workspaces, paths(section, "workspaces", around));
    set(&mut config.keep_events, section.duration("keep_events"));
    config.socket_group = section.filled("socket_group");
    section.table("roles", &[]);
    if let Some(named) = section.filled("time_zone").filter(|named| named != "system") {
        match zone::known(&named) {
            Ok(name) => config.time_zone = name,
            Err(why) => section.wrong_key("time_zone", &format!("is not valid: {why}")),
        }
    }
}

fn skills(section: &Section<'_>, around: &Around<'_>, config: &mut SkillsConfig) {
    set(&mut config.paths, paths(section, "paths", around));
    set(&mut config.watch, section.flag("watch"));
    set(&mut config.trust, paths(section, "trust", around));
}

fn steering(section: &Section<'_>, config: &mut SteeringConfig) {
    set(&mut config.enabled, section.flag("enabled"));
    set(&mut config.file, section.filled("file"));
    // It lies directly in the workspace: what leads elsewhere could read any file as instructions.
    if config.file.contains(['/', '\0']) || [".", ".."].contains(&config.file.as_str()) || config.file.len() > 200 {
        section.wrong_key("file", "must be a plain file name");
    }
}

/// Checks that agents and fallbacks name models of the file.
fn references(root: &Section<'_>, config: &Config) {
    let models: Vec<&str> = root.tables("models").iter().map(|(name, _)| *name).collect();
    let unknown = |name: &str| match models.as_slice() {
        [] => format!("names \"{}\", but the file has no [models.NAME]", name.escape_debug()),
        _ => format!("names the unknown model \"{}\"; {}", name.escape_debug(), nearest(name, &models)),
    };
    for (name, section) in root.tables("agents") {
        let model = config.agents.get(name).and_then(|agent| agent.model.as_deref());
        if let Some(model) = model.filter(|model| !models.contains(model)) {
            section.wrong_key("model", &unknown(model));
        }
    }
    for (name, section) in root.tables("models") {
        for fallback in config.models.iter().filter(|model| model.name == name).flat_map(|model| &model.fallback) {
            if fallback == name {
                section.wrong_key("fallback", "names the model itself");
            } else if !models.contains(&fallback.as_str()) {
                section.wrong_key("fallback", &unknown(fallback));
            }
        }
    }
}

/// Returns the name of a table, having noted what is wrong with it.
pub fn checked_name(name: &str, section: &Section<'_>) -> String {
    if !is_name(name) {
        section.wrong("has a bad name; 1 to 64 of A-Z a-z 0-9 . _ - are allowed");
    }
    name.to_owned()
}
