//! Values held against a schema that was found usable.

use std::collections::HashSet;

use nano_protocol::Object;
use regex_automata::meta::Regex;
use serde_json::Value;

/// How much of a value is shown.
const SHOWN: usize = 60;
/// How many problems are noted: with so many at hand nobody needs the next.
const MOST: usize = 10;

/// Notes what is wrong with the members of an object.
pub fn members(object: &Object, schema: &Object, place: &str, problems: &mut Vec<String>) {
    let known = super::properties(schema);
    let free = MOST.saturating_sub(problems.len());
    for name in names(schema, "required").filter(|name| !object.contains_key(*name)).take(free) {
        problems.push(format!("`{}` is missing", below(place, name)));
    }
    for (name, one) in object {
        if problems.len() >= MOST {
            return;
        }
        let place = below(place, name);
        match (known.and_then(|known| known.get(name)), schema.get("additionalProperties")) {
            (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => value(one, schema, &place, problems),
            (None, Some(Value::Bool(false))) => problems.push(format!("`{place}` is not known{}", there_is(known))),
            (None, _) => {}
        }
    }
}

fn there_is(known: Option<&Object>) -> String {
    let names: Vec<_> = known.into_iter().flat_map(Object::keys).map(|name| format!("`{name}`")).collect();
    let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    format!(" (the tool takes {names})")
}

fn below(place: &str, name: &str) -> String {
    let name = name.escape_debug();
    if place.is_empty() { name.to_string() } else { format!("{place}.{name}") }
}

/// Notes what is wrong with one value.
fn value(value: &Value, schema: &Value, place: &str, problems: &mut Vec<String>) {
    let Value::Object(schema) = schema else { return };
    let wrong = [kind(value, schema), choice(value, schema), size(value, schema), text(value, schema)];
    if let Some(why) = wrong.into_iter().flatten().next() {
        return problems.push(format!("`{place}` must {why}, not {}", shown(value)));
    }
    match value {
        Value::Object(object) => members(object, schema, place, problems),
        Value::Array(list) => {
            for (at, one) in list.iter().enumerate() {
                let Some(items) = schema.get("items").filter(|_| problems.len() < MOST) else { break };
                self::value(one, items, &format!("{place}[{at}]"), problems);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the words of a list, or the lone one.
pub fn names<'a>(schema: &'a Object, keyword: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let found = schema.get(keyword);
    let list = found.and_then(Value::as_array).into_iter().flatten();
    list.chain(found.filter(|one| one.is_string())).filter_map(Value::as_str)
}

fn kind(value: &Value, schema: &Object) -> Option<String> {
    let is = |word: &str| match word {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null(),
    };
    let kinds: Vec<_> = names(schema, "type").collect();
    let article = |word: &&str| format!("{} {word}", if word.starts_with(['a', 'i', 'o']) { "an" } else { "a" });
    let fits = kinds.is_empty() || kinds.iter().any(|word| is(word));
    (!fits).then(|| format!("be {}", kinds.iter().map(article).collect::<Vec<_>>().join(" or ")))
}

fn choice(value: &Value, schema: &Object) -> Option<String> {
    let wanted = schema.get("const").filter(|wanted| *wanted != value);
    let choices = schema.get("enum").and_then(Value::as_array).filter(|choices| !choices.contains(value));
    let all = |choices: &Vec<Value>| choices.iter().map(shown).collect::<Vec<_>>().join(", ");
    wanted
        .map(|wanted| format!("be {}", shown(wanted)))
        .or(choices.map(|choices| format!("be one of {}", all(choices))))
}

/// Compares what has a size with its bounds.
fn size(value: &Value, schema: &Object) -> Option<String> {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    #[expect(clippy::cast_precision_loss, reason = "nobody bounds what has that many parts")]
    let (size, least, most, unit) = match value {
        Value::Number(number) => (number.as_f64()?, "minimum", "maximum", ""),
        Value::String(text) => (text.chars().count() as f64, "minLength", "maxLength", " characters"),
        Value::Array(list) => (list.len() as f64, "minItems", "maxItems", " items"),
        Value::Null | Value::Bool(_) | Value::Object(_) => return None,
    };
    let verb = if unit.is_empty() { "be" } else { "have" };
    let low = bound(least).filter(|least| size < *least).map(|least| format!("{verb} at least {least}{unit}"));
    low.or_else(|| bound(most).filter(|most| size > *most).map(|most| format!("{verb} at most {most}{unit}")))
}

fn text(value: &Value, schema: &Object) -> Option<String> {
    if let (Value::Array(list), Some(Value::Bool(true))) = (value, schema.get("uniqueItems")) {
        let mut seen = HashSet::new();
        let twice = list.iter().any(|one| !seen.insert(one));
        return twice.then(|| "hold no item twice".into());
    }
    let pattern = schema.get("pattern").and_then(Value::as_str).filter(|_| value.is_string())?;
    let fits = Regex::new(pattern).is_ok_and(|regex| regex.is_match(value.as_str().unwrap_or_default()));
    (!fits).then(|| format!("match {pattern}"))
}

fn shown(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((at, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(at);
        text.push('…');
    }
    text
}
