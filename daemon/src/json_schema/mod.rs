//! The part of JSON Schema that a person may describe a tool's arguments with. What is written is enforced: a keyword
//! that is not among [`CHECKED`] and says more than [`NOTES`] is refused when the schema is read.

mod check;

use nano_protocol::Object;
use regex_automata::meta::Regex;
use serde_json::Value;

/// What is enforced.
const CHECKED: [&str; 15] = [
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "pattern",
    "uniqueItems",
];
/// What is for who reads.
const NOTES: [&str; 8] = ["title", "description", "default", "examples", "$schema", "$comment", "deprecated", "format"];
const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];

/// A schema of a tool's arguments that can be enforced.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema(Object);

impl Schema {
    /// Takes a schema, or says what is wrong with it.
    pub fn new(schema: Object) -> Result<Self, String> {
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err("must have type = \"object\"".into());
        }
        usable(&schema, "")?;
        Ok(Self(schema))
    }

    /// Returns the schema of a tool that takes nothing.
    pub fn nothing() -> Self {
        let (kind, none) = (Value::from("object"), Value::Object(Object::new()));
        let members = [("type", kind), ("properties", none), ("additionalProperties", false.into())];
        Self(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Returns it as it was written.
    pub fn as_object(&self) -> &Object {
        &self.0
    }

    /// Returns what is said of one argument.
    pub fn property(&self, name: &str) -> Option<&Object> {
        properties(&self.0).and_then(|all| all.get(name)?.as_object())
    }

    /// Returns what is wrong with arguments, in words that whoever made them can act on.
    pub fn problems(&self, arguments: &Object) -> Vec<String> {
        let mut problems = Vec::new();
        check::members(arguments, &self.0, "", &mut problems);
        problems
    }
}

fn properties(schema: &Object) -> Option<&Object> {
    schema.get("properties")?.as_object()
}

/// Tells whether models' servers take a name for a property.
fn is_property(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

/// Says what is wrong with a schema at `place`.
fn usable(schema: &Object, place: &str) -> Result<(), String> {
    let at = if place.is_empty() { String::new() } else { format!(" at `{place}`") };
    for (keyword, value) in schema {
        let known = [CHECKED.as_slice(), &NOTES].iter().any(|list| list.contains(&keyword.as_str()));
        if !known {
            let keyword = keyword.escape_debug();
            return Err(format!(
                "has the keyword \"{keyword}\"{at}, which is not enforced; there is {}",
                CHECKED.join(", ")
            ));
        }
        shape(keyword, value).map_err(|what| format!("has a `{keyword}`{at} that is not {what}"))?;
    }
    let inner = properties(schema).into_iter().flatten().map(|(name, inner)| (name.as_str(), inner));
    let others = ["items", "additionalProperties"].into_iter().filter_map(|key| Some((key, schema.get(key)?)));
    for (name, inner) in inner.clone() {
        if !is_property(name) {
            let name = name.escape_debug();
            return Err(format!("has the property \"{name}\"{at}; a name is 1 to 64 of A-Z a-z 0-9 . _ -"));
        }
        if !inner.is_object() {
            return Err(format!("has a property `{name}`{at} that is not a table"));
        }
    }
    for (name, inner) in inner.chain(others) {
        let place = if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
        inner.as_object().map_or(Ok(()), |inner| usable(inner, &place))?;
    }
    match check::names(schema, "required").find(|name| properties(schema).is_none_or(|all| !all.contains_key(*name))) {
        Some(name) => Err(format!("requires `{}`{at}, which is none of its properties", name.escape_debug())),
        None => Ok(()),
    }
}

/// Says what a keyword's value ought to be, if it is not.
fn shape(keyword: &str, value: &Value) -> Result<(), &'static str> {
    let is_type = |value: &Value| value.as_str().is_some_and(|word| TYPES.contains(&word));
    let all = |value: &Value, fits: &dyn Fn(&Value) -> bool| value.as_array().is_some_and(|list| list.iter().all(fits));
    let some = |value: &Value| value.as_array().is_some_and(|list| !list.is_empty());
    let (fits, what) = match keyword {
        "type" => (is_type(value) || (some(value) && all(value, &is_type)), "a type or a list of types"),
        "enum" => (some(value), "a list of values"),
        "required" => (all(value, &Value::is_string), "a list of names"),
        "properties" => (value.is_object(), "a table"),
        "additionalProperties" => (value.is_boolean() || value.is_object(), "true, false or a schema"),
        "items" => (value.is_object(), "a schema"),
        "uniqueItems" => (value.is_boolean(), "true or false"),
        "minimum" | "maximum" => (value.is_number(), "a number"),
        "minItems" | "maxItems" | "minLength" | "maxLength" => (value.is_u64(), "a whole number"),
        "pattern" => (value.as_str().is_some_and(|text| Regex::new(text).is_ok()), "a regular expression"),
        _ => (true, ""),
    };
    if fits { Ok(()) } else { Err(what) }
}

#[cfg(test)]
mod tests;
