//! What parameters refuse, tried on every golden call and at every depth.

use serde_json::{Value, json};

use super::{calls, members, parsed, row, understand};

/// Members whose inside is the caller's own.
const FREE: [&str; 2] = ["metadata", "match"];

/// Returns a pointer to every value inside, the outermost first, but none into what is the caller's own.
fn places(value: &Value, here: &str, found: &mut Vec<String>) {
    found.push(here.to_owned());
    match value {
        Value::Object(inner) => {
            for (name, member) in inner.iter().filter(|(name, _)| !FREE.contains(&name.as_str())) {
                places(member, &format!("{here}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                places(item, &format!("{here}/{at}"), found);
            }
        }
        _ => {}
    }
}

/// Calls `check` with each golden call's method and parameters, and each place in them.
fn everywhere(mut check: impl FnMut(&str, &Value, &str)) {
    for golden in calls() {
        let params = parsed(&golden.params);
        let mut found = Vec::new();
        places(&params, "", &mut found);
        for place in &found {
            check(&golden.method, &params, place);
        }
    }
}

fn with(params: &Value, place: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut changed = params.clone();
    change(changed.pointer_mut(place).unwrap());
    changed
}

#[test]
fn an_unknown_member_is_refused_by_name() {
    let mut tried = 0;
    everywhere(|method, params, place| {
        if !params.pointer(place).unwrap().is_object() {
            return;
        }
        for name in ["no_such_member", "_internal", "approved", "role", "Content", ""] {
            let changed = with(params, place, |object| object[name] = json!(true));
            let error = understand(method, &changed).expect_err(name);
            assert!(error.contains(&format!("unknown field `{name}`")), "{method} {changed}: {error}");
        }
        tried += usize::from(!place.is_empty());
    });
    assert!(tried > 10, "only {tried} nested objects were tried");
}

#[test]
fn an_array_is_no_object() {
    everywhere(|method, params, place| {
        if let Value::Object(object) = params.pointer(place).unwrap() {
            let values: Vec<Value> = object.values().cloned().collect();
            for array in [json!([]), Value::from(values)] {
                let changed = with(params, place, |object| *object = array);
                let error = understand(method, &changed).expect_err("an array");
                assert!(error.contains("invalid type: sequence, expected struct"), "{method} {changed}: {error}");
            }
        }
    });
}

#[test]
fn a_wrapped_value_is_refused() {
    everywhere(|method, params, place| {
        if params.pointer(place).unwrap().is_object() {
            return;
        }
        for wrap in [|inner: Value| json!([inner]), |inner: Value| json!({inner.as_str().unwrap_or("a"): null})] {
            let changed = with(params, place, |value| *value = wrap(value.take()));
            assert!(understand(method, &changed).is_err(), "{method} {changed}");
        }
    });
}

#[test]
fn null_is_absent_where_a_member_may_be_absent() {
    for golden in calls() {
        for (name, optional) in members(row(&golden.method).1) {
            let mut params = parsed(&golden.params);
            params.as_object_mut().unwrap().shift_remove(name);
            let absent = understand(&golden.method, &params);
            params[name] = Value::Null;
            let null = understand(&golden.method, &params);
            if optional {
                assert!(
                    absent.is_ok() && absent == null,
                    "{}: {absent:?} without {name}, {null:?} with null",
                    golden.method
                );
            } else {
                let error = absent.expect_err("a member is missing");
                assert!(error.contains(&format!("missing field `{name}`")), "{}: {error}", golden.method);
                assert!(null.is_err(), "{}: {name} may not be null", golden.method);
            }
        }
    }
}
