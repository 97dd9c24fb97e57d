//! The schema of a tool's arguments, and arguments checked against it, in words a model can act on.

use nano_protocol::Object;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

/// Returns the JSON Schema of `T`: an object, its properties in order, nothing else allowed, no noise.
pub fn schema<T: JsonSchema>() -> Object {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    let Value::Object(mut schema) = schema else { return Object::new() };
    schema.remove("description");
    schema.entry("properties").or_insert_with(|| Value::Object(Object::new()));
    schema.insert("additionalProperties".into(), false.into());
    schema
}

/// Removes what tells a model nothing: titles, number formats, null as a way to leave something out.
fn tidy(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    for noise in ["title", "format", "default"] {
        schema.remove(noise);
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|one| one != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            schema.insert("type".into(), one);
        }
    }
    for (key, value) in schema.iter_mut() {
        match value {
            Value::Object(properties) if key == "properties" => properties.values_mut().for_each(tidy),
            Value::Object(_) if key == "items" => tidy(value),
            _ => {}
        }
    }
}

/// How many problems are told.
const MOST: usize = 10;

/// Decodes a call's arguments; the error names what is wrong with them, as far as anybody reads on.
pub fn decode<T: DeserializeOwned + JsonSchema>(arguments: Object) -> Result<T, String> {
    let schema = schema::<T>();
    let no_properties = Object::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&no_properties);
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut problems = Vec::new();
    let mut checked = Object::new();
    // Null is how some models leave a property out.
    for (name, value) in arguments.into_iter().filter(|(_, value)| !value.is_null()) {
        if problems.len() >= MOST {
            break;
        }
        match properties.get(&name) {
            None => problems.push(unknown(&name, properties)),
            Some(wanted) => match fit(value, wanted.get("type").and_then(Value::as_str)) {
                Ok(value) => drop(checked.insert(name, value)),
                Err(why) => problems.push(format!("`{name}` {why}")),
            },
        }
    }
    for name in required.filter(|name| !checked.contains_key(*name)) {
        if !problems.iter().any(|problem| problem.starts_with(&format!("`{name}` "))) {
            problems.insert(0, format!("`{name}` is missing"));
        }
    }
    problems.truncate(MOST);
    if problems.is_empty() {
        return serde_json::from_value(Value::Object(checked)).map_err(|why| format!("bad arguments: {why}"));
    }
    Err(format!("bad arguments: {}", problems.join("; ")))
}

fn unknown(name: &str, properties: &Object) -> String {
    let known: Vec<_> = properties.keys().map(|known| format!("`{known}`")).collect();
    let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
    format!("`{}` is not known (the tool takes {known})", crate::sandbox::workspace::shown(name))
}

/// Returns `value` if it is of the type `wanted`; a number in quotes serves as an integer.
fn fit(value: Value, wanted: Option<&str>) -> Result<Value, String> {
    let Some(wanted) = wanted else { return Ok(value) };
    let value = if wanted == "integer" { integer(value) } else { value };
    let fits = match wanted {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    if fits { Ok(value) } else { Err(format!("must be {}, not {}", article(wanted), received(&value))) }
}

pub(super) fn integer(value: Value) -> Value {
    let number = match &value {
        Value::String(text) => text.trim().parse::<i64>().ok().map(Number::from),
        // JSON knows one kind of number: 30.0 is 30.
        Value::Number(number) if number.is_f64() => format!("{number}").trim_end_matches(".0").parse().ok(),
        _ => None,
    };
    number.map_or(value, Value::Number)
}

fn article(noun: &str) -> String {
    format!("{} {noun}", if noun.starts_with(['a', 'i', 'o']) { "an" } else { "a" })
}

fn received(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((at, _)) = text.char_indices().nth(60) {
        text.truncate(at);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{decode, schema};

    /// Not a description that is wanted.
    #[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
    struct Args {
        /// The file.
        path: String,
        /// How many.
        limit: Option<i64>,
        all: Option<bool>,
    }

    #[test]
    fn the_schema_is_plain_and_in_order() {
        let expected = concat!(
            r#"{"type":"object","properties":{"path":{"type":"string","description":"The file."},"#,
            r#""limit":{"type":"integer","description":"How many."},"all":{"type":"boolean"}},"#,
            r#""required":["path"],"additionalProperties":false}"#
        );
        assert_eq!(serde_json::to_string(&schema::<Args>()).ok().as_deref(), Some(expected));
    }

    #[test]
    fn arguments() {
        let check = |arguments: Value, expected: Result<(&str, Option<i64>), &str>| {
            let Value::Object(arguments) = arguments else { return assert!(expected.is_err()) };
            let decoded = decode::<Args>(arguments.clone());
            let decoded = decoded.as_ref().map(|args| (args.path.as_str(), args.limit)).map_err(String::as_str);
            assert_eq!(decoded, expected, "{arguments:?}");
        };
        check(json!({"path": "a"}), Ok(("a", None)));
        check(json!({"path": "a", "limit": null}), Ok(("a", None)));
        check(json!({"path": "a", "limit": "12"}), Ok(("a", Some(12))));
        check(json!({"path": "a", "limit": 12.0}), Ok(("a", Some(12))));
        check(json!({}), Err("bad arguments: `path` is missing"));
        check(json!({"path": 5}), Err("bad arguments: `path` must be a string, not 5"));
        check(json!({"path": "a", "limit": 1e12}), Ok(("a", Some(1_000_000_000_000))));
        check(json!({"path": "a", "limit": 1.5}), Err("bad arguments: `limit` must be an integer, not 1.5"));
        check(json!({"path": "a", "limit": "x"}), Err("bad arguments: `limit` must be an integer, not \"x\""));
        check(json!({"path": "a", "all": "true"}), Err("bad arguments: `all` must be a boolean, not \"true\""));
        check(
            json!({"path": "a", "p": 1, "limit": []}),
            Err("bad arguments: `p` is not known (the tool takes `path`, `limit`, `all`); \
                 `limit` must be an integer, not []"),
        );
    }

    #[test]
    fn ten_problems_are_told() {
        let arguments = (0..1000).map(|at| (format!("n{at}"), json!(1))).collect();
        let why = decode::<Args>(arguments).err().unwrap_or_default();
        assert_eq!(why.matches("is not known").count() + why.matches("is missing").count(), 10);
    }
}
