//! Tables whose readers are still to come: checked as strictly as the others, and not kept.

use super::reader::Section;
use super::sections::{checked_name, words};

/// Notes everything that is wrong in `[tools.*]` and `[mcp.*]`.
pub fn check(root: &Section<'_>) {
    for (name, section) in root.tables("tools") {
        checked_name(name, &section);
        check_tool(&section);
    }
    for (name, section) in root.tables("mcp") {
        checked_name(name, &section);
        check_mcp(&section);
    }
}

fn check_tool(section: &Section<'_>) {
    section.check(&words("description input_schema output_schema argv timeout"));
    texts(section, "description");
    section.duration("timeout");
    match section.list("argv") {
        None if !section.has("argv") => section.wrong("needs argv"),
        Some(argv) if argv.is_empty() => section.wrong_key("argv", "must not be empty"),
        _ => {}
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
