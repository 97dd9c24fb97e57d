//! Every tool that is built in.

use std::sync::Arc;

use super::{
    Tool, datetime, delegate, download_file, edit_file, exec, grep, list_dir, load_skill, process, python, read_file,
    schedule_followup, search, todo, upload_file, write_file,
};

/// Returns those that need no computer; [`super::set::ToolSet`] picks and orders.
pub fn core() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(load_skill::tool()),
        Arc::new(datetime::tool()),
        Arc::new(delegate::tool()),
        Arc::new(schedule_followup::tool()),
        Arc::new(todo::tool()),
    ]
}

/// Returns those for a computer that shares the host's files.
pub fn local() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(read_file::tool()),
        Arc::new(write_file::tool()),
        Arc::new(edit_file::tool()),
        Arc::new(exec::local()),
        Arc::new(python::local()),
        Arc::new(search::tool()),
        Arc::new(list_dir::tool()),
        Arc::new(grep::tool()),
        Arc::new(process::tool()),
    ]
}

/// Returns those that every remote computer has, named `source`: its programs and the way for files to it and back.
pub fn remote(source: &'static str) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(exec::remote(source)),
        Arc::new(python::remote(source)),
        Arc::new(upload_file::tool(source)),
        Arc::new(download_file::tool(source)),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use std::sync::Arc;

    use super::{Tool, core, local, remote};
    use crate::tools::web::{self, Settings};

    fn all() -> Vec<Arc<dyn Tool>> {
        [core(), web::tools(&Settings::default()), local()].concat()
    }

    #[test]
    fn names_are_valid_and_unique() {
        let mut seen = BTreeSet::new();
        for tool in all() {
            let name = &*tool.spec().name;
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            assert!((1..=64).contains(&name.len()) && name.chars().all(plain), "{name}");
            assert!(seen.insert(name.to_owned()), "{name} twice");
            let schema = &tool.spec().input_schema;
            assert_eq!(schema.get("type").and_then(|kind| kind.as_str()), Some("object"), "{name}");
            assert_eq!(schema.get("additionalProperties"), Some(&false.into()), "{name}");
        }
    }

    #[test]
    fn parameters_stand_in_the_documented_order() {
        let text = |tool: &Arc<dyn Tool>| {
            let properties = tool.spec().input_schema.get("properties").and_then(|all| all.as_object()).cloned();
            let names: Vec<_> = properties.unwrap_or_default().keys().cloned().collect();
            format!("{}: {}", tool.spec().name, names.join(", "))
        };
        let expected = [
            "load_skill: name",
            "datetime: zone",
            "delegate: content, agent, tools, wait",
            "schedule_followup: content, trigger",
            "todo: items",
            "web_search: query",
            "web_fetch: url",
            "http_request: method, url, headers, body",
            "read_file: path, offset, limit",
            "write_file: path, content",
            "edit_file: path, old_text, new_text, replace_all",
            "exec: command, timeout, cwd, background",
            "python: code, timeout",
            "search: query, path, limit",
            "list_dir: path, limit",
            "grep: pattern, path, glob, context, limit",
            "process: action, id, offset, tail, text, end",
        ];
        assert_eq!(all().iter().map(text).collect::<Vec<_>>(), expected);
        let expected = [
            "exec: command, timeout, cwd, background",
            "python: code, timeout",
            "upload_file: local_path, remote_path",
            "download_file: remote_path, local_path",
        ];
        assert_eq!(remote("booter:x").iter().map(text).collect::<Vec<_>>(), expected);
    }
}
