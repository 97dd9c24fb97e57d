//! Every tool that is built in.

use std::sync::Arc;

use super::{
    Tool, datetime, edit_file, exec, grep, list_dir, load_skill, python, read_file, schedule_followup, search,
    write_file,
};

/// Returns one of each; [`super::set::ToolSet`] picks and orders.
pub fn registry() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(load_skill::tool()),
        Arc::new(read_file::tool()),
        Arc::new(write_file::tool()),
        Arc::new(edit_file::tool()),
        Arc::new(exec::tool()),
        Arc::new(python::tool()),
        Arc::new(search::tool()),
        Arc::new(list_dir::tool()),
        Arc::new(grep::tool()),
        Arc::new(datetime::tool()),
        Arc::new(schedule_followup::tool()),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::registry;

    #[test]
    fn names_are_valid_and_unique() {
        let mut seen = BTreeSet::new();
        for tool in registry() {
            let name = tool.spec().name;
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            assert!((1..=64).contains(&name.len()) && name.chars().all(plain), "{name}");
            assert!(seen.insert(name), "{name} twice");
            let schema = &tool.spec().input_schema;
            assert_eq!(schema.get("type").and_then(|kind| kind.as_str()), Some("object"), "{name}");
            assert_eq!(schema.get("additionalProperties"), Some(&false.into()), "{name}");
        }
    }

    #[test]
    fn parameters_stand_in_the_documented_order() {
        let text = |tool: &std::sync::Arc<dyn super::Tool>| {
            let properties = tool.spec().input_schema.get("properties").and_then(|all| all.as_object()).cloned();
            let names: Vec<_> = properties.unwrap_or_default().keys().cloned().collect();
            format!("{}: {}", tool.spec().name, names.join(", "))
        };
        let expected = [
            "load_skill: name",
            "read_file: path, offset, limit",
            "write_file: path, content",
            "edit_file: path, old_text, new_text, replace_all",
            "exec: command, timeout, cwd, background",
            "python: code, timeout",
            "search: query, path, limit",
            "list_dir: path, limit",
            "grep: pattern, path, glob, context, limit",
            "datetime: zone",
            "schedule_followup: content, trigger",
        ];
        assert_eq!(registry().iter().map(text).collect::<Vec<_>>(), expected);
    }
}
