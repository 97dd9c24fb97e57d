//! Rules that are broken are seen.

use super::*;

fn example(module: &str, code: &str) -> Source {
    let lines = code.lines().count();
    Source { file: "example.rs".into(), module: module.into(), lines, code: source::code_alone(code) }
}

#[test]
fn broken_rules_are_seen() {
    for (module, code, edges, places, impure) in [
        ("store", "use crate::clock::Clock;", 0, 0, 0),
        ("store::writer", "use crate::session::task;", 1, 0, 0),
        ("store::writer", "use super::super::{clock, rpc::{self, task}};", 2, 0, 0),
        ("store", "fn f() { super::session::g() }", 1, 0, 0),
        ("store::keys", "use super::record; use crate::store::x; // crate::rpc\n", 0, 0, 0),
        ("model", "use crate::sandbox::BoxFuture;", 0, 0, 0),
        ("model", "use crate::sandbox::{BoxFuture, Sandbox};", 1, 0, 0),
        ("misc", "", 1, 0, 0),
        ("", "use crate::rpc; use std::process::ExitCode;", 0, 0, 0),
        ("session", "use std::{env, fs};", 0, 1, 0),
        ("session", "let x = std::env::var(r#\"std::env\"#);", 0, 1, 0),
        ("session", "let c = '\"'; let s = \"sled::open\"; /* sled::open */", 0, 0, 0),
        ("rpc", "use serde_json::{Value, json};", 0, 0, 0),
        ("session", "use serde_json::{Value as V, json};", 0, 1, 0),
        ("session::task", "use tokio::sync::mpsc; use std::fs;", 0, 0, 2),
        ("session::task", "let now = Timestamp::now();", 0, 0, 1),
        ("session::tasks", "use tokio::sync::mpsc;", 0, 0, 0),
    ] {
        let source = example(module, code);
        let found = (bad_edges(&source).len(), bad_places(&source).len(), impurities(&source).len());
        assert_eq!(found, (edges, places, impure), "{module}: {code}");
    }
}

#[test]
fn large_functions_are_seen() {
    let body = |n: usize| "x();\n".repeat(n);
    for (code, found) in [
        (format!("fn f() {{\n{}}}\n", body(58)), 0),
        (format!("fn f() {{\n{}}}\n", body(59)), 1),
        (format!("fn f() {{\nmatch x {{\n{}}}\n}}\n", body(76)), 0),
        (format!("fn f() {{\nmatch x {{\n{}}}\n}}\n", body(77)), 1),
        (body(301), 1),
    ] {
        assert_eq!(too_large(&example("session", &code)).len(), found, "{} lines", code.lines().count());
    }
}
