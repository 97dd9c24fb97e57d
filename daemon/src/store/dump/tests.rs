//! What is written comes back; what was tampered with is refused, and where.
#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;

fn export(records: &[Record]) -> String {
    let mut out = Vec::new();
    assert_eq!(write(&mut out, 7, records.iter().cloned()).unwrap(), records.len() as u64);
    String::from_utf8(out).unwrap()
}

fn import(text: &[u8]) -> Result<Vec<Record>, DumpError> {
    Reader::open(text)?.collect()
}

fn example() -> Vec<Record> {
    let record = |key: &[u8], value: &str| (key.to_vec(), value.as_bytes().to_vec());
    vec![record(b"e/\x00\x01", r#"{"a": 1}"#), record(b"s/\\\"", r#""\u00e9""#), record(b"t/1", "null")]
}

#[test]
fn an_export_is_lines_a_person_can_read() {
    let text = export(&example());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0], format!(r#"{{"nano_store":1,"schema":{SCHEMA},"head":7}}"#));
    assert_eq!(lines[1], r#"["e/\\x00\\x01",{"a": 1}]"#);
    assert_eq!(lines[2], r#"["s/\\x5c\"","\u00e9"]"#);
    assert!(lines[4].starts_with(r#"{"count":3,"sha256":""#), "{}", lines[4]);
    let reader = Reader::open(text.as_bytes()).unwrap();
    assert_eq!((reader.header().schema, reader.header().head), (SCHEMA, 7));
    assert_eq!(import(text.as_bytes()).unwrap(), example());
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let found = import(text.as_bytes()).unwrap_err().to_string();
    assert!(found.contains(expected), "{found}");
}

#[test]
fn what_is_not_whole_is_refused() {
    let text = export(&example());
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    let of = |order: &[usize]| order.iter().map(|at| lines[*at]).collect::<String>();
    let newer = format!("\"schema\":{}", SCHEMA + 1);
    for (text, expected) in [
        (String::new(), "line 1: the export ends here"),
        ("[]\n".into(), "line 1: this is no export"),
        (of(&[1, 2, 3, 4]), "line 1: this is no export"),
        (
            text.replace("\"nano_store\":1", "\"nano_store\":2"),
            "line 1: this export is of a newer nanod (2; this one knows 1)",
        ),
        (text.replace(&format!("\"schema\":{SCHEMA}"), &newer), "line 1: this export is of a newer nanod"),
        (of(&[0, 1, 2, 3]), "line 5: the export ends here"),
        (text[..text.len() - 1].into(), "line 5: the export ends here"),
        (text[..text.len() - 9].into(), "line 5: the export ends here"),
        (of(&[0, 1, 3, 4]), "line 4: the end does not match"),
        (of(&[0, 4]), "line 2: the end does not match"),
        (of(&[0, 2, 1, 3, 4]), "line 3: this record is out of order"),
        (of(&[0, 1, 1, 2, 3, 4]), "line 3: this record is out of order or there twice"),
        (of(&[0, 1, 2, 3, 4, 4]), "line 5: something follows"),
        (of(&[0, 1]) + "\n" + &of(&[2, 3, 4]), "line 3: this is no record"),
        (text.replace("\"a\": 1", "\"a\": 2"), "line 5: the end does not match"),
        (text.replace("\"head\":7", "\"head\":8"), "line 5: the end does not match"),
        (text.replace("\"count\":3", "\"count\":4"), "line 5: the end does not match"),
        (text.replace("\"count\":3", "\"sum\":3"), "line 5: this is no end"),
        (text.replace(r"\\x00", r"\\x0"), "line 2: this is no record"),
        (text.replace("null", "nul"), "line 4: this is no record"),
    ] {
        refused(&text, expected);
    }
}

#[test]
fn an_error_is_the_last_thing_read() {
    let text = export(&example()).replace("null", "nul");
    let mut reader = Reader::open(text.as_bytes()).unwrap();
    let is_good: Vec<_> = reader.by_ref().take(9).map(|record| record.is_ok()).collect();
    assert_eq!(is_good, [true, true, false]);
}

#[test]
fn a_line_without_end_is_not_read_into_memory() {
    let endless = export(&[]).lines().next().unwrap().to_owned() + "\n";
    let endless = io::BufReader::new(endless.as_bytes().chain(io::repeat(b'[')));
    let error = Reader::open(endless).unwrap().next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "line 2: it is too long");
}

#[test]
fn a_value_that_makes_no_line_is_not_written() {
    for value in ["", "{", "1 ", "[1,\n2]", "1,2", "\u{1}"] {
        let error = write(io::sink(), 0, [(b"s/1".to_vec(), value.into())]).unwrap_err();
        assert_eq!(error.to_string(), "the value of s/1 is not one line of JSON", "{value:?}");
    }
}

proptest! {
    #[test]
    fn everything_comes_back(records in btree_map(vec(any::<u8>(), 0..6), any::<String>(), 0..9), at: prop::sample::Index) {
        let value = |text: String| serde_json::to_vec(&text).unwrap();
        let records: Vec<_> = records.into_iter().map(|(key, text)| (key, value(text))).collect();
        let text = export(&records);
        prop_assert_eq!(&import(text.as_bytes()).unwrap(), &records);
        let mut cut = text.clone().into_bytes();
        cut.truncate(at.index(text.len()));
        prop_assert!(import(&cut).is_err());
        let mut flipped = text.into_bytes();
        let at = at.index(flipped.len());
        flipped[at] ^= 1;
        prop_assert!(import(&flipped).is_err(), "{}", String::from_utf8_lossy(&flipped));
    }
}
