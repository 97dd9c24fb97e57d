//! The shape of a request's body, refused as the servers' framework refuses it.

use serde_json::{Map, Value};

use super::wire::{self, Reply};
use crate::http::Request;

/// What a field may hold.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A string.
    Text,
    /// A whole number within bounds.
    Whole(i64, i64),
    /// Any number.
    Number,
    /// True or false.
    Flag,
    /// An object.
    Object,
    /// An object or an array.
    Structure,
    /// A list of strings, at least so many.
    Texts(usize),
}

/// A field, what it holds, and whether it may be missing or null.
pub type Field = (&'static str, Kind, Need);

/// Whether a field has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It has to.
    Must,
    /// It may be missing.
    May,
    /// It may be missing or null.
    Null,
}

/// The fields of a body that has been checked.
#[derive(Debug, Clone, Default)]
pub struct Body(Map<String, Value>);

impl Body {
    /// Returns a text, empty where there is none.
    pub fn text(&self, name: &str) -> &str {
        self.text_or_none(name).unwrap_or_default()
    }

    /// Returns a text that may be missing.
    pub fn text_or_none(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// Returns a number that may be missing.
    pub fn whole(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(Value::as_i64)
    }

    /// Returns whether a field is true, `usual` where it is missing.
    pub fn flag(&self, name: &str, usual: bool) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(usual)
    }

    /// Returns a list of texts.
    pub fn texts(&self, name: &str) -> Vec<String> {
        let list = self.0.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Tells whether a field is there.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns a value, null where it is missing.
    pub fn value(&self, name: &str) -> Value {
        self.0.get(name).cloned().unwrap_or_default()
    }
}

/// Checks the body of `request`, which may be missing where no field must be there.
pub fn body(request: &Request, fields: &[Field]) -> Result<Body, Reply> {
    let all_may_miss = fields.iter().all(|(_, _, need)| *need != Need::Must);
    if request.body.is_empty() && all_may_miss {
        return Ok(Body::default());
    }
    let refuse = |kind: &str| wire::invalid(kind, &["body"], "Input should be a JSON object", &Value::Null);
    let value: Value = serde_json::from_slice(&request.body).map_err(|_| refuse("json_invalid"))?;
    check(value, fields).map_err(|(kind, field, input)| match field {
        "" => refuse(kind),
        field => wire::invalid(kind, &["body", field], "Input should be valid", &input),
    })
}

/// Checks an object; an error is what is wrong, in which field, and what it held.
pub fn check(value: Value, fields: &[Field]) -> Result<Body, (&'static str, &'static str, Value)> {
    let Value::Object(map) = value else { return Err(("model_attributes_type", "", value)) };
    for (name, kind, need) in fields {
        match map.get(*name) {
            None if *need == Need::Must => return Err(("missing", name, Value::Object(map))),
            Some(Value::Null) if *need == Need::Null => {}
            Some(value) if !holds(value, *kind) => return Err((type_of(*kind), name, value.clone())),
            _ => {}
        }
    }
    Ok(Body(map))
}

/// Refuses a body with fields that are not among these.
pub fn only(request: &Request, fields: &[Field]) -> Result<Body, Reply> {
    let body = body(request, fields)?;
    match body.0.iter().find(|(key, _)| fields.iter().all(|(name, _, _)| name != key)) {
        Some((key, value)) => {
            Err(wire::invalid("extra_forbidden", &["body", key], "Extra inputs are not permitted", value))
        }
        None => Ok(body),
    }
}

fn holds(value: &Value, kind: Kind) -> bool {
    match kind {
        Kind::Text => value.is_string(),
        Kind::Whole(least, most) => value.as_i64().is_some_and(|number| (least..=most).contains(&number)),
        Kind::Number => value.is_number(),
        Kind::Flag => value.is_boolean(),
        Kind::Object => value.is_object(),
        Kind::Structure => value.is_object() || value.is_array(),
        Kind::Texts(least) => {
            value.as_array().is_some_and(|list| list.len() >= least && list.iter().all(Value::is_string))
        }
    }
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "string_type",
        Kind::Whole(..) => "int_range",
        Kind::Number => "float_type",
        Kind::Flag => "bool_type",
        Kind::Object | Kind::Structure => "dict_type",
        Kind::Texts(_) => "list_type",
    }
}
