#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use serde_json::json;

use super::*;

fn object(value: Value) -> Object {
    let Value::Object(object) = value else { panic!("{value} is no object") };
    object
}

#[test]
fn what_cannot_be_enforced_is_refused() {
    for (schema, expected) in [
        (json!({}), "must have type = \"object\""),
        (json!({"type": "array"}), "must have type = \"object\""),
        (json!({"type": ["object"]}), "must have type = \"object\""),
        (json!({"type": "object", "anyOf": []}), "has the keyword \"anyOf\", which is not enforced"),
        (json!({"type": "object", "$ref": "#"}), "has the keyword \"$ref\""),
        (json!({"type": "object", "properties": {"a": {"not": {}}}}), "has the keyword \"not\" at `a`"),
        (json!({"type": "object", "properties": []}), "has a `properties` that is not a table"),
        (json!({"type": "object", "properties": {"a": true}}), "has a property `a` that is not a table"),
        (json!({"type": "object", "properties": {"a b": {}}}), "has the property \"a b\"; a name is 1 to 64 of"),
        (json!({"type": "object", "properties": {"": {}}}), "has the property \"\""),
        (json!({"type": "object", "properties": {"é": {}}}), "has the property \"é\""),
        (json!({"type": "object", "properties": {"a": {"type": "text"}}}), "has a `type` at `a` that is not a type"),
        (json!({"type": "object", "properties": {"a": {"type": []}}}), "has a `type` at `a`"),
        (json!({"type": "object", "properties": {"a": {"enum": []}}}), "has a `enum` at `a` that is not a list"),
        (json!({"type": "object", "properties": {"a": {"pattern": "("}}}), "that is not a regular expression"),
        (json!({"type": "object", "properties": {"a": {"minLength": -1}}}), "that is not a whole number"),
        (json!({"type": "object", "properties": {"a": {"items": []}}}), "has a `items` at `a` that is not a schema"),
        (json!({"type": "object", "required": ["a"]}), "requires `a`, which is none of its properties"),
        (json!({"type": "object", "required": "a"}), "has a `required` that is not a list of names"),
        (json!({"type": "object", "additionalProperties": 1}), "true, false or a schema"),
    ] {
        let why = Schema::new(object(schema.clone())).err().unwrap_or_else(|| panic!("accepted: {schema}"));
        assert!(why.contains(expected), "{schema}: {why}");
    }
}

#[test]
fn values() {
    let schema = json!({
        "type": "object", "required": ["s"], "additionalProperties": false,
        "properties": {
            "s": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 4},
            "n": {"type": "integer", "minimum": 1, "maximum": 9},
            "e": {"enum": ["x", 1, null]},
            "c": {"const": "k"},
            "l": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": true},
            "o": {"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["b"],
                  "additionalProperties": {"type": "number"}},
            "u": {"type": ["string", "null"]},
        },
    });
    let schema = Schema::new(object(schema)).unwrap();
    for (arguments, expected) in [
        (json!({"s": "ab"}), ""),
        (json!({"s": "ab", "n": 9, "e": 1, "c": "k", "l": ["a"], "o": {"b": true, "z": 1}, "u": null}), ""),
        (json!({"s": "ab", "n": 2.0, "u": "x"}), ""),
        (json!({}), "`s` is missing"),
        (json!({"s": 1}), "`s` must be a string, not 1"),
        (json!({"s": "Ab"}), "`s` must match ^[a-z]+$, not \"Ab\""),
        (json!({"s": "ab\n"}), "`s` must match ^[a-z]+$, not \"ab\\n\""),
        (json!({"s": "abcde"}), "`s` must have at most 4 characters, not \"abcde\""),
        (json!({"s": "a", "n": 0}), "`n` must be at least 1, not 0"),
        (json!({"s": "a", "n": 10}), "`n` must be at most 9, not 10"),
        (json!({"s": "a", "n": 1.5}), "`n` must be an integer, not 1.5"),
        (json!({"s": "a", "n": "1"}), "`n` must be an integer, not \"1\""),
        (json!({"s": "a", "e": "y"}), "`e` must be one of \"x\", 1, null, not \"y\""),
        (json!({"s": "a", "c": "x"}), "`c` must be \"k\", not \"x\""),
        (json!({"s": "a", "l": []}), "`l` must have at least 1 items, not []"),
        (json!({"s": "a", "l": ["x", 2]}), "`l[1]` must be a string, not 2"),
        (json!({"s": "a", "l": ["x", "x"]}), "`l` must hold no item twice, not [\"x\",\"x\"]"),
        (json!({"s": "a", "o": {}}), "`o.b` is missing"),
        (
            json!({"s": "a", "o": {"b": 1, "z": "x"}}),
            "`o.b` must be a boolean, not 1; `o.z` must be a number, not \"x\"",
        ),
        (json!({"s": "a", "u": 1}), "`u` must be a string or a null, not 1"),
        (json!({"s": "a", "t": 1}), "`t` is not known (the tool takes `s`, `n`, `e`, `c`, `l`, `o`, `u`)"),
    ] {
        assert_eq!(schema.problems(&object(arguments.clone())).join("; "), expected, "{arguments}");
    }
    let nothing = Schema::nothing().problems(&object(json!({"a": 1})));
    assert_eq!(nothing, ["`a` is not known (the tool takes nothing)"]);
}

#[test]
fn problems_are_bounded_and_so_is_the_search_for_them() {
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {
        "l": {"type": "array", "items": {"type": "string"}},
        "u": {"type": "array", "uniqueItems": true},
    }});
    let schema = Schema::new(object(schema)).unwrap();
    let unknown: Object = (0..1000).map(|at| (format!("n{at}"), json!(at))).collect();
    let wrong: Vec<_> = (0..1000).collect();
    for arguments in [Value::Object(unknown), json!({ "l": wrong })] {
        assert_eq!(schema.problems(&object(arguments)).len(), 10);
    }
    // With every pair compared this takes hours.
    let (many, twice): (Vec<_>, Vec<_>) = ((0..500_000).collect(), (0..500_000).chain([7]).collect());
    assert_eq!(schema.problems(&object(json!({ "u": many }))), Vec::<String>::new());
    assert!(schema.problems(&object(json!({ "u": twice })))[0].contains("hold no item twice"));
}
