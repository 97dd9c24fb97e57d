#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::HashSet;

use nano_protocol::method::NAMES;
use serde_json::{Value, json};

use super::document;

/// Checks that an object has these members, those with `?` at most.
#[track_caller]
fn has_members(object: &Value, members: &str) {
    let object = object.as_object().unwrap();
    let known: HashSet<_> = members.split(' ').map(|member| member.trim_end_matches('?')).collect();
    let strange: Vec<_> = object.keys().filter(|key| !known.contains(key.as_str())).collect();
    assert!(strange.is_empty(), "{strange:?} in {object:?}");
    for member in members.split(' ').filter(|member| !member.ends_with('?')) {
        assert!(object.contains_key(member), "no {member} in {object:?}");
    }
}

/// Calls `check` with every schema's reference, at any depth.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").map(|to| to.as_str().unwrap().to_owned()));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn method(name: &str) -> Value {
    let document = document();
    let methods = document["methods"].as_array().unwrap();
    methods.iter().find(|method| method["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
}

#[test]
fn has_the_shape_of_openrpc() {
    let document = document();
    has_members(&document, "openrpc info methods components");
    has_members(&document["info"], "title version");
    assert_eq!(document["openrpc"], "1.3.2");
    let names: Vec<_> = document["methods"].as_array().unwrap().iter().map(|method| method["name"].clone()).collect();
    assert_eq!(json!(names), json!(NAMES));
    for method in document["methods"].as_array().unwrap() {
        has_members(method, "name paramStructure params result errors");
        assert_eq!(method["paramStructure"], "by-name");
        for descriptor in method["params"].as_array().unwrap() {
            has_members(descriptor, "name description required schema");
            assert!(descriptor["name"].is_string() && descriptor["required"].is_boolean(), "{descriptor}");
            assert!(descriptor["description"].as_str().is_some_and(|text| text.ends_with('.')), "{descriptor}");
            assert!(descriptor["schema"].is_object() || descriptor["schema"] == true, "{descriptor}");
        }
        has_members(&method["result"], "name schema");
        assert!(method["result"]["schema"].is_object(), "{method}");
        assert!(method["errors"].as_array().is_some_and(|errors| !errors.is_empty()), "{method}");
    }
    for error in document["components"]["errors"].as_object().unwrap().values() {
        has_members(error, "code message data");
        has_members(&error["data"], "kind retryable");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.iter().any(|to| to == "#/components/schemas/Task"), "{found:?}");
    for to in found {
        assert!(document.pointer(to.strip_prefix('#').unwrap()).is_some(), "{to} leads nowhere");
    }
}

#[test]
fn a_member_is_a_parameter() {
    let submit = method("task.submit");
    let shown = |one: &Value| {
        let mark = if one["required"] == true { "" } else { "?" };
        format!("{}{mark}", one["name"].as_str().unwrap())
    };
    let params: Vec<_> = submit["params"].as_array().unwrap().iter().map(shown).collect();
    assert_eq!(params.join(" "), "session? create? content metadata? idempotency_key? limits?");
    assert_eq!(
        submit["params"][2],
        json!({"name": "content", "description": "What to do.", "required": true, "schema": {"type": "string"}})
    );
    assert_eq!(submit["result"]["schema"], json!({"$ref": "#/components/schemas/Task"}));
    assert_eq!(method("daemon.status")["params"], json!([]));
}

#[test]
fn schemas_are_those_of_the_wire() {
    let schemas = &document()["components"]["schemas"];
    // What the daemon takes refuses what it does not know; an optional member may be absent.
    assert_eq!(schemas["CreateParams"]["additionalProperties"], false);
    assert_eq!(schemas["CreateParams"].get("required"), None);
    assert_eq!(schemas["Trigger"]["properties"]["every_ms"]["type"], json!(["integer", "null"]));
    // What it gives is always there, if need be as null.
    let required = schemas["Session"]["required"].as_array().unwrap();
    assert!(required.contains(&json!("capabilities")) && !required.contains(&json!("name")), "{required:?}");
    assert_eq!(schemas["Timestamp"]["format"], "date-time");
    let words: Vec<_> =
        schemas["TaskState"]["oneOf"].as_array().unwrap().iter().map(|it| it["const"].clone()).collect();
    assert_eq!(json!(words), json!(["queued", "running", "succeeded", "failed", "cancelled", "interrupted"]));
    has_members(&schemas["Event"]["properties"], "seq session task at type data");
}
