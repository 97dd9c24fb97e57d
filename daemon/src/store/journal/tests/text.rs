use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::super::line::{Entry, Line};

fn values() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<Vec<u8>>(),
        any::<String>().prop_map(|text| serde_json::to_vec(&text).unwrap()),
        any::<(f64, u64)>().prop_map(|pair| serde_json::to_vec(&pair).unwrap()),
    ]
}

fn lines() -> impl Strategy<Value = Line> {
    let entry = prop_oneof![
        (any::<Vec<u8>>(), values()).prop_map(|(key, value)| Entry::Put(key, value)),
        any::<Vec<u8>>().prop_map(Entry::Delete),
        any::<Vec<u8>>().prop_map(Entry::DeleteAll),
    ];
    let parts = (any::<u64>(), any::<u64>(), any::<u64>(), vec(entry, 0..5));
    parts.prop_map(|(number, synced, head, entries)| Line { number, synced, head, entries })
}

/// Without its end of line, as a reader has it.
fn encoded(line: &Line) -> Vec<u8> {
    let mut text = line.encode();
    assert_eq!(text.pop(), Some(b'\n'));
    text
}

#[test]
fn a_line_is_readable() {
    let put = |value: &str| Entry::Put(b"m/s/\x00\xff".to_vec(), value.into());
    let entries = vec![
        put(r#"{"b": 1,"a":[1.0, 1e3]}"#),
        put("{\n}"),
        Entry::Delete(br#"a"\"#.to_vec()),
        Entry::DeleteAll(b"w/".to_vec()),
    ];
    let line = Line { number: 7, synced: 6, head: 9, entries };
    let text = encoded(&line);
    let json = r#"{"n":7,"synced":6,"head":9,"changes":[["put","m/s/\\x00\\xff",{"b": 1,"a":[1.0, 1e3]}],["put_bytes","m/s/\\x00\\xff","{\\x0a}"],["del","a\"\\x5c"],["del_all","w/"]]}"#;
    assert_eq!(std::str::from_utf8(&text).unwrap(), format!("{:08x} {json}", crc32fast::hash(json.as_bytes())));
    assert_eq!(Line::decode(&text), Some(line));
}

#[test]
fn what_has_a_right_checksum_and_is_no_line_is_none() {
    for json in [
        "",
        "{}",
        "[]",
        "\u{0}",
        r#"{"n":1,"synced":0,"head":0}"#,
        r#"{"n":-1,"synced":0,"head":0,"changes":[]}"#,
        r#"{"n":1,"synced":0,"head":0,"changes":[["put","a"]]}"#,
        r#"{"n":1,"synced":0,"head":0,"changes":[["put","\\x0",1]]}"#,
        r#"{"n":1,"synced":0,"head":0,"changes":[["add","a",1]]}"#,
        r#"{"n":1,"synced":0,"head":0,"changes":[["del","a",1]]}"#,
        r#"{"n":1,"synced":0,"head":0,"changes":[]} "x""#,
    ] {
        let text = format!("{:08x} {json}", crc32fast::hash(json.as_bytes()));
        assert_eq!(Line::decode(text.as_bytes()), None, "{json}");
    }
}

#[test]
fn depth_does_not_matter() {
    let deep = ["[".repeat(100_000), "]".repeat(100_000)].concat().into_bytes();
    let line = Line { number: 1, synced: 0, head: 0, entries: vec![Entry::Put(b"a".to_vec(), deep)] };
    assert!(Line::decode(&encoded(&line)) == Some(line));
}

proptest! {
    #[test]
    fn every_line_comes_back_and_is_one_line(line in lines()) {
        let text = encoded(&line);
        prop_assert!(!text.contains(&b'\n') && !text.contains(&0));
        prop_assert_eq!(Line::decode(&text), Some(line));
    }

    #[test]
    fn any_bytes_are_a_line_or_none(bytes: Vec<u8>) {
        prop_assert_eq!(Line::decode(&bytes), None);
    }

    #[test]
    fn a_changed_line_is_none(line in lines(), at: usize, bit in 0..8_u32, cut: usize) {
        let whole = encoded(&line);
        let mut text = whole.clone();
        let at = at % text.len();
        text[at] ^= 1 << bit;
        // The checksum is the same number in capitals.
        let same = at < 8 && text.eq_ignore_ascii_case(&whole);
        prop_assert!(same || Line::decode(&text).is_none());
        prop_assert_eq!(Line::decode(&whole[..cut % whole.len()]), None);
    }
}
