//! Names of tools as people and models give them: what an entry of a tools list means, and what is said of one that
//! means nothing.

use std::sync::Arc;

use super::Tool;
use super::set::ToolSet;

impl ToolSet {
    /// Returns what a model reads that called a tool it does not have.
    pub fn not_found_text(&self, name: &str) -> String {
        let shown = crate::sandbox::workspace::shown(name);
        if let Some(withheld) = self.withheld.iter().find(|tool| tool.name == name) {
            return format!("the tool `{shown}` is not offered: {}; {}", withheld.why, self.there_is(name));
        }
        format!("there is no tool `{shown}`; {}", self.there_is(name))
    }

    fn there_is(&self, name: &str) -> String {
        let names: Vec<_> = self.tools.iter().map(|tool| &*tool.spec().name).collect();
        let alike = |known: &&&str| strsim::jaro_winkler(known, name) > 0.8;
        let near = names
            .iter()
            .filter(alike)
            .max_by(|a, b| strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name)));
        match near {
            _ if names.is_empty() => "there are none in this session".into(),
            Some(near) => format!("did you mean `{near}`? There are: {}", names.join(", ")),
            None => format!("there are: {}", names.join(", ")),
        }
    }
}

/// Returns those of `list` that name no registered tool.
pub fn unknown_names(all: &[Arc<dyn Tool>], list: &[String]) -> Vec<String> {
    let known = |pattern: &String| all.iter().any(|tool| names(pattern, &tool.spec().name));
    list.iter().filter(|pattern| !known(pattern)).cloned().collect()
}

/// Tells whether an entry of a tools list means `name`: itself, or `mcp__SERVER__*`.
pub(super) fn names(pattern: &str, name: &str) -> bool {
    if let Some(server) = name.strip_suffix('*') {
        // It stands for all tools of a server.
        return pattern.starts_with(server);
    }
    match pattern.strip_suffix('*') {
        Some(server) if server.starts_with("mcp__") && server.ends_with("__") => name.starts_with(server),
        _ => pattern == name,
    }
}
