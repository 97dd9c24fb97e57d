//! Tables whose readers are still to come: checked as strictly as the others, and not kept.

use super::around::{Around, secret};
use super::reader::Section;
use super::sections::{checked_name, words};

/// Notes everything that is wrong in `[mcp.*]` and `[web_search]`.
pub fn check(root: &Section<'_>, around: &Around<'_>) {
    for (name, section) in root.tables("mcp") {
        checked_name(name, &section);
        check_mcp(&section);
    }
    if let Some(section) = root.table("web_search", &words("provider base_url api_key api_key_env api_key_file")) {
        texts(&section, "provider base_url");
        secret(&section, "api_key", around);
    }
}

fn check_mcp(section: &Section<'_>) {
    section.check(&words("command args env url headers"));
    texts(section, "command url");
    section.list("args");
    section.map_of_texts("env");
    section.map_of_texts("headers");
    if section.has("command") == section.has("url") {
        section.wrong("needs either command or url");
    }
}

fn texts(section: &Section<'_>, keys: &str) {
    for key in words(keys) {
        section.filled(key);
    }
}
