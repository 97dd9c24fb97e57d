//! What a server says of a tool, made fit for a model's request: text without what nobody sees, a schema without what
//! models' servers refuse.

use nano_protocol::Object;
use serde_json::Value;

use crate::sandbox::output::is_unseen;

/// The longest description, in characters.
const DESCRIPTION: usize = 4096;
/// The longest schema, in bytes.
const SCHEMA: usize = 64 << 10;
/// What joins several schemas.
const JOINTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// What models' servers take nowhere, or not at the top, and what tools check themselves.
const REFUSED: [&str; 12] = [
    "$schema",
    "$id",
    "$anchor",
    "$comment",
    "enum",
    "const",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependentRequired",
];
/// What holds schemas by names that are the tool's own.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// What holds values, which mean something else when they are changed.
const VALUES: [&str; 5] = ["enum", "const", "default", "examples", "pattern"];

fn is_hidden(c: char) -> bool {
    is_unseen(c) || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Returns a text without control, bidirectional, zero-width and tag characters, and not too long.
pub fn text(raw: &str) -> String {
    let mut kept = raw.chars().filter(|c| !is_hidden(*c));
    let mut text: String = kept.by_ref().take(DESCRIPTION).collect();
    if kept.next().is_some() {
        text.push('…');
    }
    text.trim().to_owned()
}

/// Returns a schema that models' servers take, or why there is none.
pub fn schema(raw: &Object) -> Result<Object, String> {
    let size = serde_json::to_vec(raw).map_or(usize::MAX, |text| text.len());
    if size > SCHEMA {
        return Err(format!("its schema has {size} bytes; at most {SCHEMA} are taken"));
    }
    let mut schema = refer(raw)?;
    schema.retain(|key, _| !REFUSED.contains(&key.as_str()));
    for joint in JOINTS {
        if let Some(parts) = schema.remove(joint) {
            join(&mut schema, &parts, joint == "allOf");
        }
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {}
        None if !schema.contains_key("type") => drop(schema.shift_insert(0, "type".into(), "object".into())),
        _ => return Err("its schema is not one of an object".into()),
    }
    schema.entry("properties").or_insert_with(|| Object::new().into());
    let properties = schema.get("properties").and_then(Value::as_object).ok_or("its properties are no object")?;
    let plain = |name: &String| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    if let Some(name) = properties.keys().find(|name| !plain(name)) {
        return Err(format!("its property \"{}\" has a name that models' servers refuse", text(name)));
    }
    words(&mut schema);
    match hidden(&schema) {
        Some(value) => Err(format!("its schema has a value with characters that nobody sees: \"{}\"", text(&value))),
        None => Ok(schema),
    }
}

/// Follows a reference at the top of a schema to its definition.
fn refer(raw: &Object) -> Result<Object, String> {
    let Some(reference) = raw.get("$ref").and_then(Value::as_str) else { return Ok(raw.clone()) };
    let whole = Value::Object(raw.clone());
    let found = reference.strip_prefix('#').and_then(|pointer| whole.pointer(pointer)).and_then(Value::as_object);
    let mut found = found.cloned().filter(|found| !found.contains_key("$ref"));
    let found = found.as_mut().ok_or("its schema refers to what is not in it")?;
    for (key, value) in raw.iter().filter(|(key, _)| *key != "$ref") {
        found.entry(key.clone()).or_insert_with(|| value.clone());
    }
    Ok(std::mem::take(found))
}

/// Takes the properties of several schemas as one; what one of several demands is demanded only where all hold.
fn join(schema: &mut Object, parts: &Value, all: bool) {
    for part in parts.as_array().into_iter().flatten().filter_map(Value::as_object) {
        for key in ["properties", "required"] {
            match (schema.get_mut(key), part.get(key)) {
                (Some(Value::Object(own)), Some(Value::Object(more))) => {
                    for (name, one) in more {
                        own.entry(name.clone()).or_insert_with(|| one.clone());
                    }
                }
                (Some(Value::Array(own)), Some(Value::Array(more))) if all => own.extend(more.iter().cloned()),
                (None, Some(more)) if all || key == "properties" => drop(schema.insert(key.into(), more.clone())),
                _ => {}
            }
        }
    }
}

/// Cleans every text in a schema that is for a reader.
fn words(schema: &mut Object) {
    for (key, value) in schema.iter_mut().filter(|(key, _)| !VALUES.contains(&key.as_str())) {
        match value {
            Value::String(one) => *one = text(one),
            Value::Object(all) if NAMED.contains(&key.as_str()) => {
                all.values_mut().filter_map(Value::as_object_mut).for_each(words);
            }
            Value::Object(one) => words(one),
            Value::Array(all) => all.iter_mut().filter_map(Value::as_object_mut).for_each(words),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Returns a name or a value with characters that nobody sees.
fn hidden(schema: &Object) -> Option<String> {
    fn of(value: &Value) -> Option<String> {
        match value {
            Value::String(one) => one.chars().any(is_hidden).then(|| one.clone()),
            Value::Array(all) => all.iter().find_map(of),
            Value::Object(all) => hidden(all),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }
    schema.iter().find_map(|(key, value)| if key.chars().any(is_hidden) { Some(key.clone()) } else { of(value) })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::panic, reason = "tests")]

    use serde_json::{Value, json};

    #[test]
    fn texts() {
        for (raw, expected) in [
            ("plain é 🦀\n\tx", "plain é 🦀\n\tx"),
            ("a\u{200b}b\u{202e}c\u{2066}d\u{feff}e\u{e0041}\u{e007f}f\u{7}\u{1b}[2Jg\r\u{ad}h", "abcdef[2Jgh"),
            ("  \u{200d} ", ""),
        ] {
            assert_eq!(super::text(raw), expected);
        }
        assert_eq!(super::text(&"x".repeat(9000)).chars().count(), 4097);
    }

    #[test]
    fn schemas() {
        let whole = |properties: Value| json!({"type": "object", "properties": properties});
        for (raw, expected) in [
            (json!({"type": "object"}), Ok(whole(json!({})))),
            (json!({}), Ok(whole(json!({})))),
            (
                json!({"$schema": "x", "properties": {"a": {"description": "\u{200b}d"}}}),
                Ok(whole(json!({"a": {"description": "d"}}))),
            ),
            (
                json!({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {}}}}}),
                Ok(json!({"type": "object", "properties": {"a": {}}, "$defs": {"A": {"properties": {"a": {}}}}})),
            ),
            (
                json!({"anyOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]}),
                Ok(whole(json!({"a": {}, "b": {}}))),
            ),
            (
                json!({"type": "object", "allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"required": ["b"]}]}),
                Ok(json!({"type": "object", "properties": {"a": {}}, "required": ["a", "b"]})),
            ),
            (json!({"type": "string"}), Err("not one of an object")),
            (json!({"type": ["object"]}), Err("not one of an object")),
            (json!({"$ref": "http://x"}), Err("refers to what is not in it")),
            (json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#"}}}), Err("refers to what is not in it")),
            (json!({"properties": []}), Err("properties are no object")),
            (json!({"properties": {"a b": {}}}), Err("has a name that models' servers refuse")),
            (
                json!({"enum": [{}], "not": {}, "if": {}, "then": {}, "else": {}, "const": {}, "properties": {"a": {"enum": [" a\t"]}}}),
                Ok(whole(json!({"a": {"enum": [" a\t"]}}))),
            ),
            (
                json!({"properties": {"default": {"description": "a\u{200b}b"}, "x": {"anyOf": [{"title": "\u{feff}t"}], "default": " d "}}}),
                Ok(whole(
                    json!({"default": {"description": "ab"}, "x": {"anyOf": [{"title": "t"}], "default": " d "}}),
                )),
            ),
            (json!({"properties": {"a": {"enum": ["a\u{200b}"]}}}), Err("characters that nobody sees: \"a\"")),
            (json!({"properties": {"a": {"default": {"b\u{e0041}": 1}}}}), Err("characters that nobody sees: \"b\"")),
            (json!({"$defs": {"a": {"pattern": "\u{7}"}}}), Err("characters that nobody sees")),
            (json!({"description": "x".repeat(70_000)}), Err("at most 65536 are taken")),
        ] {
            let Value::Object(object) = &raw else { panic!("{raw}") };
            match (super::schema(object), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(Value::Object(found), expected, "{raw}"),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{raw}: {found}"),
                (found, expected) => panic!("{raw}: {found:?} instead of {expected:?}"),
            }
        }
    }
}
