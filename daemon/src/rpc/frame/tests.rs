#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::{Call, Frame, Lines, Parsed, TooLong, answer, is_http, parse};
use nano_protocol::error::{ErrorKind, RpcError};
use serde_json::value::RawValue;

const MAX: usize = 8;

/// Returns what comes of bytes that arrive in these pieces: the lines, whether one was too long, and the rest.
fn cut(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, bool, Vec<u8>) {
    let mut lines = Lines::new(MAX);
    let mut whole = Vec::new();
    for piece in pieces {
        lines.buffer().extend_from_slice(piece);
        loop {
            match lines.next() {
                Ok(Some(line)) => whole.push(line),
                Ok(None) => break,
                Err(TooLong) => return (whole, true, Vec::new()),
            }
        }
        assert_eq!(lines.is_partial(), !lines.buffer().is_empty());
    }
    (whole, false, lines.rest())
}

#[test]
fn lines() {
    for (bytes, whole, too_long, rest) in [
        ("", vec![], false, ""),
        ("a\nb\n", vec!["a", "b"], false, ""),
        ("a\r\n\n\r\nb\r\r\n", vec!["a", "", "", "b\r"], false, ""),
        ("a\rb\n", vec!["a\rb"], false, ""),
        ("a\nbc", vec!["a"], false, "bc"),
        ("12345678\n12345678\r\n12345678\r", vec!["12345678", "12345678"], false, "12345678\r"),
        ("a\n123456789\nb\n", vec!["a"], true, ""),
        ("a\n123456789", vec!["a"], true, ""),
        ("12345678\r\r\n", vec![], true, ""),
    ] {
        let whole: Vec<_> = whole.into_iter().map(|line| line.as_bytes().to_vec()).collect();
        let expected = (whole, too_long, rest.as_bytes().to_vec());
        assert_eq!(cut(&[bytes.as_bytes()]), expected, "{bytes:?}");
        let bytewise: Vec<&[u8]> = bytes.as_bytes().chunks(1).collect();
        assert_eq!(cut(&bytewise), expected, "{bytes:?} byte by byte");
    }
}

#[test]
fn what_comes_after_the_rest_is_read_from_its_start() {
    let mut lines = Lines::new(MAX);
    lines.buffer().extend_from_slice(b"abc");
    assert_eq!(lines.next(), Ok(None));
    assert_eq!(lines.rest(), b"abc");
    lines.buffer().extend_from_slice(b"d\nefgh");
    assert_eq!(lines.next(), Ok(Some(b"d".to_vec())));
}

proptest! {
    #[test]
    fn the_pieces_do_not_matter(pieces in prop::collection::vec("[a\r\n]{0,6}", 0..12)) {
        let bytes = pieces.concat();
        let pieces: Vec<&[u8]> = pieces.iter().map(String::as_bytes).collect();
        prop_assert_eq!(cut(&pieces), cut(&[bytes.as_bytes()]));
    }

    #[test]
    fn any_bytes_have_an_answer(line in prop::collection::vec(any::<u8>(), 0..64)) {
        let broken = !line.is_ascii() || !line.starts_with(b"{");
        let is_call = |one: &Parsed| one.call.is_ok();
        let said = match parse(&line) {
            Frame::Blank => false,
            Frame::One(one) => is_call(&one),
            Frame::Batch(many) => many.iter().any(is_call),
        };
        prop_assert!(!(broken && said));
    }
}

fn shown(parsed: &Parsed) -> String {
    let id = parsed.id.as_ref().map_or("-", |id| id.get());
    match &parsed.call {
        Ok(Call { method, params }) => format!("{id} {method} {}", params.as_ref().map_or("-", |params| params.get())),
        Err(error) => format!("{id} {}", error.code),
    }
}

fn check(line: impl AsRef<[u8]>, expected: &str) {
    let shown = match parse(line.as_ref()) {
        Frame::Blank => "blank".to_owned(),
        Frame::One(one) => shown(&one),
        Frame::Batch(many) => format!("[{}]", many.iter().map(shown).collect::<Vec<_>>().join(", ")),
    };
    assert_eq!(shown, expected, "{:.300}", String::from_utf8_lossy(line.as_ref()));
}

#[test]
fn no_json() {
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"daemon.status""#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m"} {}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m",}"#,
        r#"{'jsonrpc':"2.0"}"#,
        r#"{"a":"\ud800"}"#,
        "{\"a\":\"\t\"}",
        "GET / HTTP/1.1",
        "\u{feff}{}",
        "\u{a0}{}",
        "\u{b}",
        "NaN",
        "\0",
    ] {
        check(line, "null -32700");
    }
    check(b"{\"jsonrpc\":\"\xff\"}", "null -32700");
    check(b"\xc3", "null -32700");
}

#[test]
fn json_as_it_should_not_be() {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let params = |n: usize| format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n));
    let request = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
    check(deep(100_000), "null -32700");
    check(deep(65), "null -32700");
    check(deep(64), "[null -32600]");
    check(request(&params(200)), "null -32700");
    check(request(&params(63)), &format!("1 m {}", params(63)));
    check(request(&params(64)), "null -32700");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"daemon.status","method":"daemon.shutdown"}"#, "null -32700");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"m","\u006dethod":"n"}"#, "null -32700");
    check(request(r#"{"a":{"b":1,"b":2}}"#), "null -32700");
    check(r#"[{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}]"#, "null -32700");
}

#[test]
fn ids() {
    for id in [
        r#""a""#,
        r#""""#,
        r#""\u0000""#,
        r#""\u00e9""#,
        r#""é""#,
        "0",
        "-1",
        "1.50",
        "1e2",
        "null",
        "123456789012345678901234567890",
    ] {
        check(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#), &format!("{id} m -"));
        check(format!(r#"{{"jsonrpc":"1.0","id":{id},"method":"m"}}"#), &format!("{id} -32600"));
    }
    check(r#"{"jsonrpc":"2.0","id":1e400,"method":"m"}"#, "null -32700");
    for id in ["true", "false", "{}", "[]", "[1]"] {
        check(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#), "null -32600");
    }
}

#[test]
fn requests() {
    for (line, expected) in [
        (r#"{"jsonrpc":"2.0","method":"daemon.status"}"#, "- daemon.status -"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}"#, "1 rpc.discover -"),
        (r#"{"method":"m","params":[1],"id":1,"jsonrpc":"2.0"}"#, "1 m [1]"),
        (r#" {"jsonrpc" : "2.0", "id" : 1 , "method":"\u006d", "params": {"a" : 1} } "#, r#"1 m {"a" : 1}"#),
        ("\t{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\r\r", "1 m -"),
        (r#"{"id":1,"method":"m"}"#, "1 -32600"),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, "1 -32600"),
        (r#"{"jsonrpc":null,"id":1,"method":"m"}"#, "1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, "1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"method":["m"]}"#, "1 -32600"),
        (r#"{"jsonrpc":"2.0","method":1}"#, "null -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "1 -32600"),
        ("{}", "null -32600"),
        ("1", "null -32600"),
        (r#""m""#, "null -32600"),
        ("null", "null -32600"),
        ("", "blank"),
        (" \t\r", "blank"),
    ] {
        check(line, expected);
    }
}

#[test]
fn batches() {
    check("[]", "null -32600");
    check("[ ]", "null -32600");
    check("[1,2,3]", "[null -32600, null -32600, null -32600]");
    check(r#"[["2.0",1,"m",{}]]"#, "[null -32600]");
    check(r#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]"#, "[- a -, - b -]");
    check(r#"[ {"jsonrpc":"2.0","id":"x","method":"a"} , {"id":7} ]"#, r#"["x" a -, 7 -32600]"#);
    let many = |n: usize| format!("[{}]", vec!["1"; n].join(","));
    check(many(100), &format!("[{}]", vec!["null -32600"; 100].join(", ")));
    check(many(101), "null -32600");
}

#[test]
fn http() {
    for (line, expected) in [
        ("GET / HTTP/1.1", true),
        ("POST /rpc HTTP/1.1", true),
        ("PRI * HTTP/2.0", true),
        (r#"{"method":"GET "}"#, false),
        ("GETTER", false),
        ("", false),
    ] {
        assert_eq!(is_http(line.as_bytes()), expected, "{line}");
    }
}

#[test]
fn answers() {
    let id = RawValue::from_string(r#""\u0000é""#.to_owned()).unwrap();
    let result = RawValue::from_string(r#"{"a" : 1}"#.to_owned()).unwrap();
    assert_eq!(answer(&id, &Ok(result)), r#"{"jsonrpc":"2.0","id":"\u0000é","result":{"a" : 1}}"#);
    let error = RpcError::new(ErrorKind::NotFound, "there is no x").hint("y lists them");
    let expected = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"there is no x","data":{"kind":"not_found","hint":"y lists them","retryable":false}}}"#;
    assert_eq!(answer(RawValue::NULL, &Err(error)), expected);
}
