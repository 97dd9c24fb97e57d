//! Every method, event and error against golden lines: read and written again they are the same bytes.
//!
//! A golden line is what a released client may send or rely on: it is added to, never changed.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "wire/contract.rs"]
mod contract;
#[path = "wire/params.rs"]
mod params;
#[path = "wire/words.rs"]
mod words;

use std::collections::BTreeSet;

use nano_protocol::error::ErrorKind;
use nano_protocol::event::EventType;
use nano_protocol::jsonrpc::{EventParams, Incoming, OutgoingRequest, Request, Response};
use nano_protocol::method::{self, Method, NAMES};
use serde_json::Value;
use serde_json::value::RawValue;

use contract::{DURABLE, ERRORS, LOSABLE, METHODS, NESTED, Row};

/// A call and its answer as they stand on the wire.
struct Golden {
    method: String,
    params: Box<RawValue>,
    result: Box<RawValue>,
}

/// Reads the golden calls; their envelopes come back as the same bytes too.
fn calls() -> Vec<Golden> {
    let lines: Vec<&str> = include_str!("golden/methods.jsonl").lines().collect();
    lines.chunks(2).map(|pair| call(pair[0], pair[1])).collect()
}

fn call(asked: &str, answered: &str) -> Golden {
    let request: Request = serde_json::from_str(asked).unwrap();
    let answer: Incoming = serde_json::from_str(answered).unwrap();
    let (id, params, result) = (request.id.unwrap(), request.params.unwrap(), answer.result.unwrap());
    let method: String = serde_json::from_str(request.method.unwrap().get()).unwrap();
    assert_eq!(answer.id.unwrap().to_string(), id.get(), "{asked}");
    let (jsonrpc, number) = ("2.0", answer.id.unwrap());
    let outgoing = OutgoingRequest { jsonrpc, id: number, method: &method, params: &params };
    assert_eq!(serde_json::to_string(&outgoing).unwrap(), asked);
    let response = Response { jsonrpc, id: &id, result: Some(&result), error: None };
    assert_eq!(serde_json::to_string(&response).unwrap(), answered);
    Golden { method, params, result }
}

/// Returns a value without its members that are null.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, member)| !member.is_null());
            kept.map(|(name, member)| (name, without_nulls(member))).collect()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        plain => plain,
    }
}

/// Returns the parameters as they were understood, without what is absent.
fn understood<M: Method>(params: &str) -> Result<String, String> {
    let params: M::Params = serde_json::from_str(params).map_err(|why| why.to_string())?;
    Ok(without_nulls(serde_json::to_value(&params).unwrap()).to_string())
}

fn comes_back<M: Method>(golden: &Golden) {
    let (params, result) = (golden.params.get(), golden.result.get());
    assert_eq!(understood::<M>(params).as_deref(), Ok(params), "{}", M::NAME);
    let read: M::Result = serde_json::from_str(result).unwrap_or_else(|why| panic!("{}: {why} in {result}", M::NAME));
    assert_eq!(serde_json::to_string(&read).unwrap(), result, "{}", M::NAME);
    // An older client does not mind what a newer daemon tells.
    let mut newer = parsed(&golden.result);
    newer["of_a_newer_daemon"] = Value::Bool(true);
    let read: M::Result = serde_json::from_value(newer).unwrap_or_else(|why| panic!("{}: {why}", M::NAME));
    assert_eq!(serde_json::to_string(&read).unwrap(), result, "{}", M::NAME);
}

/// Calls a generic check with the method of a golden call as its type.
macro_rules! with_method {
    ($($name:ident, $wire:literal, $params:ty, $result:ty;)+) => {
        fn check_comes_back(golden: &Golden) {
            match golden.method.as_str() {
                $($wire => comes_back::<method::$name>(golden),)+
                unknown => panic!("there is no method {unknown}"),
            }
        }
        fn understand(method: &str, params: &Value) -> Result<String, String> {
            match method {
                $($wire => understood::<method::$name>(&params.to_string()),)+
                unknown => panic!("there is no method {unknown}"),
            }
        }
    };
}

nano_protocol::methods!(with_method);

fn row(method: &str) -> &'static Row {
    METHODS.iter().find(|(name, ..)| *name == method).unwrap_or_else(|| panic!("{method} has no row in METHODS"))
}

/// Returns the names in a list of members, and whether each may be absent.
fn members(list: &str) -> impl Iterator<Item = (&str, bool)> {
    list.split_whitespace().map(|name| (name.trim_end_matches('?'), name.ends_with('?')))
}

/// Checks that all these objects together have just the members of the list, and each one those that must be there.
#[track_caller]
fn have_members(what: &str, objects: &[Value], list: &str) {
    let names = |object: &Value| object.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let known: BTreeSet<_> = members(list).map(|(name, _)| name.to_owned()).collect();
    let seen: BTreeSet<_> = objects.iter().flat_map(names).collect();
    assert_eq!(seen, known, "members of {what}");
    for object in objects {
        let missing: Vec<_> = members(list).filter(|(name, may)| !may && object.get(name).is_none()).collect();
        assert!(missing.is_empty(), "{what}: {missing:?} missing in {object}");
    }
}

fn parsed(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap()
}

#[test]
fn every_method_has_golden_lines() {
    let called: BTreeSet<_> = calls().into_iter().map(|golden| golden.method).collect();
    assert_eq!(called, NAMES.iter().map(|name| (*name).to_owned()).collect());
}

#[test]
fn golden_calls_come_back() {
    calls().iter().for_each(check_comes_back);
}

#[test]
fn members_are_those_of_the_contract() {
    let calls = calls();
    // Methods that answer the same share a list: what may be absent stands in one of them at least.
    let of = |part: fn(&Golden) -> &RawValue, fits: &dyn Fn(&Row) -> bool| -> Vec<Value> {
        calls.iter().filter(|golden| fits(row(&golden.method))).map(|golden| parsed(part(golden))).collect()
    };
    for name in NAMES {
        let (_, params, result) = row(name);
        have_members(&format!("{name} params"), &of(|golden| &golden.params, &|row| row.0 == *name), params);
        have_members(&format!("{name} result"), &of(|golden| &golden.result, &|row| row.2 == *result), result);
    }
}

/// Returns what a pointer leads to; `*` stands for every item of an array.
fn at(value: &Value, pointer: &[&str]) -> Vec<Value> {
    match pointer {
        [] => vec![value.clone()],
        ["*", rest @ ..] => value.as_array().unwrap().iter().flat_map(|item| at(item, rest)).collect(),
        [name, rest @ ..] => value.get(name).map_or_else(Vec::new, |member| at(member, rest)),
    }
}

#[test]
fn nested_members_are_those_of_the_contract() {
    for (method, pointer, list) in NESTED {
        let path: Vec<&str> = pointer.split('/').skip(1).collect();
        let calls = calls();
        let of_method = calls.iter().filter(|golden| golden.method == *method);
        // What a follow-up is made of comes back in its result, but each kind of trigger stands in the parameters.
        let objects: Vec<_> = of_method
            .flat_map(|golden| [parsed(&golden.params), parsed(&golden.result)])
            .flat_map(|value| at(&value, &path))
            .collect();
        have_members(&format!("{method} {pointer}"), &objects, list);
    }
}

#[test]
fn golden_events_come_back() {
    let mut types = Vec::new();
    for line in include_str!("golden/events.jsonl").lines() {
        let incoming: Incoming = serde_json::from_str(line).unwrap();
        assert_eq!((incoming.method.as_deref(), incoming.id), (Some("event"), None), "{line}");
        let params = incoming.params.unwrap();
        let read: EventParams = serde_json::from_str(params.get()).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), params.get());
        assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","method":"event","params":{}}}"#, params.get()));
        assert_eq!(read.event.seq.is_some(), read.event.kind.is_durable(), "{line}");
        types.push(read.event.kind);
    }
    assert_eq!(types, EventType::ALL);
}

#[test]
fn types_of_events_are_those_of_the_contract() {
    let of = |durable: bool| EventType::ALL.iter().filter(move |kind| kind.is_durable() == durable);
    for (durable, list) in [(true, DURABLE), (false, LOSABLE)] {
        let words: Vec<_> = of(durable).map(|kind| kind.as_str()).collect();
        assert_eq!(words, list.split_whitespace().collect::<Vec<_>>());
    }
}

#[test]
fn golden_errors_come_back() {
    let mut seen = Vec::new();
    for line in include_str!("golden/errors.jsonl").lines() {
        let incoming: Incoming = serde_json::from_str(line).unwrap();
        let error = incoming.error.unwrap();
        let id = RawValue::from_string(incoming.id.map_or("null".into(), |id| id.to_string())).unwrap();
        let response = Response::<()> { jsonrpc: "2.0", id: &id, result: None, error: Some(&error) };
        assert_eq!(serde_json::to_string(&response).unwrap(), line);
        let kind = error.data.kind;
        assert_eq!((kind.code(), ErrorKind::from_code(error.code)), (error.code, Some(kind)), "{line}");
        assert_eq!(error.data.retryable, kind.retryable(), "{line}");
        seen.push((serde_json::to_value(kind).unwrap(), error.code));
    }
    let known: Vec<_> = ERRORS.iter().map(|(kind, code)| (Value::from(*kind), *code)).collect();
    assert_eq!(seen, known);
    assert_eq!(ErrorKind::CODES.len(), known.len());
}
