//! What a model is told and offered before anything runs.

use std::path::Path;

use nanod::booters::Booter;
use nanod::sandbox::Capability;

use super::booter;

#[test]
fn tools_and_their_parameters_stand_in_the_documented_order() {
    let text = |tool: &std::sync::Arc<dyn nanod::tools::Tool>| {
        let spec = tool.spec();
        let required = spec.input_schema.get("required").and_then(|all| all.as_array()).cloned().unwrap_or_default();
        let mark = |name: &String| if required.iter().any(|one| one == name.as_str()) { "*" } else { "" };
        let properties = spec.input_schema["properties"].as_object().unwrap();
        let names: Vec<_> = properties.keys().map(|name| format!("{name}{}", mark(name))).collect();
        let needs = if spec.requires.contains(&Capability::Browser) { " (browser)" } else { "" };
        format!("{}: {}{needs}{}", spec.name, names.join(", "), if spec.read_only { " (reads)" } else { "" })
    };
    let tools = booter("http://x").tools();
    assert!(tools.iter().all(|tool| tool.spec().source == "booter:shipyard_neo"));
    let expected = [
        "exec: command*, timeout, cwd, background",
        "python: code*, timeout",
        "upload_file: local_path*, remote_path",
        "download_file: remote_path*, local_path",
        "get_execution_history: exec_type, success_only, limit, offset, tags, has_notes, has_description (reads)",
        "annotate_execution: execution_id*, description, tags, notes",
        "create_skill_payload: payload*, kind",
        "get_skill_payload: payload_ref* (reads)",
        "create_skill_candidate: skill_key*, source_execution_ids*, scenario_key, payload_ref",
        "list_skill_candidates: status, skill_key, limit, offset (reads)",
        "evaluate_skill_candidate: candidate_id*, passed*, score, benchmark_id, report",
        "promote_skill_candidate: candidate_id*, stage, sync_to_local",
        "list_skill_releases: skill_key, active_only, stage, limit, offset (reads)",
        "rollback_skill_release: release_id*",
        "sync_skill_release: release_id, skill_key, require_stable",
        "browser_exec: cmd*, timeout, description, tags, learn, include_trace (browser)",
        "browser_batch_exec: commands*, timeout, stop_on_error, description, tags, learn, include_trace (browser)",
        "run_browser_skill: skill_key*, timeout, stop_on_error, include_trace, description, tags (browser)",
    ];
    assert_eq!(tools.iter().map(text).collect::<Vec<_>>(), expected);
}

#[test]
fn bug_17_no_schema_has_alternatives() {
    for tool in booter("http://x").tools() {
        let text = serde_json::to_string(&tool.spec().input_schema).unwrap();
        for word in ["anyOf", "oneOf", "allOf", "$ref", "\"null\""] {
            assert!(!text.contains(word), "{text}");
        }
    }
}

#[test]
fn what_is_declared_is_all_a_sandbox_may_have() {
    let declared = booter("http://x").declared(Path::new("/w"));
    let names: Vec<_> = declared.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    assert_eq!(names, ["file_paths", "skill_lifecycle", "sandbox"]);
    assert!(declared.prompts.iter().all(|prompt| prompt.source == "booter:shipyard_neo") && !declared.fixed);
    assert_eq!(declared.capabilities.len(), 4);
    // Which tools a session has is known only later; what a sandbox's profile may lack is named nowhere.
    for name in ["browser", "exec ", "with exec", "python "] {
        assert!(declared.prompts.iter().all(|prompt| !prompt.text.contains(name)), "{name}");
    }
    assert!(declared.prompts[1].text.contains("later sessions of this workspace"));
    let lifecycle = &declared.prompts[1].text;
    let order =
        ["create_skill_payload", "create_skill_candidate", "evaluate_skill_candidate", "promote_skill_candidate"];
    let places: Vec<_> = order.iter().map(|name| lifecycle.find(name).unwrap()).collect();
    assert!(places.is_sorted() && lifecycle.contains("has not passed"), "{lifecycle}");
    assert!(booter("http://x").is_remote() && booter("http://x").lacking(Capability::Browser).contains("browser"));
}
