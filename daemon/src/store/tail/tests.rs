//! The fold against lines applied one by one.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn apply(model: &mut Model, entry: &Entry) {
    match entry {
        Entry::Put(key, value) => _ = model.insert(key.clone(), value.clone()),
        Entry::Delete(key) => _ = model.remove(key),
        Entry::DeleteAll(prefix) => model.retain(|key, _| !key.starts_with(prefix)),
    }
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(prop::sample::select(vec![0, b'a', b'b', 0xff]), 0..4)
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        4 => (key(), any::<u8>()).prop_map(|(key, value)| Entry::Put(key, vec![value])),
        2 => key().prop_map(Entry::Delete),
        1 => key().prop_map(Entry::DeleteAll),
    ]
}

fn span() -> impl Strategy<Value = Span> {
    (key(), prop::option::of(key())).prop_map(|(from, to)| Span { from, to })
}

fn within(span: &Span, model: &Model) -> Vec<Record> {
    model.clone().into_iter().filter(|(key, _)| span.contains(key)).collect()
}

fn over(tail: &Tail, span: &Span, base: &Model) -> Vec<Record> {
    tail.over(span, within(span, base).into_iter().map(Ok::<_, ()>)).collect::<Result<_, _>>().unwrap()
}

proptest! {
    #[test]
    fn it_is_what_its_lines_were(below in vec(entry(), 0..30), lines in vec(entry(), 0..30), span in span()) {
        let (mut base, mut tail, mut narrow) = (Model::new(), Tail::default(), Tail::default());
        for entry in &below {
            apply(&mut base, entry);
        }
        let mut model = base.clone();
        for entry in lines {
            apply(&mut model, &entry);
            narrow.take_within(&span, entry.clone());
            tail.take(entry);
        }
        prop_assert_eq!(over(&tail, &Span::all(), &base), within(&Span::all(), &model));
        prop_assert_eq!(over(&tail, &span, &base), within(&span, &model));
        prop_assert_eq!(over(&narrow, &span, &base), within(&span, &model));
        for key in base.keys().chain(model.keys()) {
            let said = tail.says(key).unwrap_or_else(|| base.get(key).map(Vec::as_slice));
            prop_assert_eq!(said, model.get(key).map(Vec::as_slice));
        }
        if !tail.touches(&span) {
            prop_assert_eq!(within(&span, &base), within(&span, &model));
        }
    }
}

#[test]
fn it_touches_what_it_says_something_of() {
    let mut tail = Tail::default();
    for entry in [Entry::Put(b"c".into(), b"1".into()), Entry::Delete(b"f".into()), Entry::DeleteAll(b"m/1/".into())] {
        tail.take(entry);
    }
    for (from, to, is_touched) in [
        ("", None, true),
        ("", Some("c"), false),
        ("c", Some("d"), true),
        ("d", Some("f"), false),
        ("e", Some("g"), true),
        ("g", Some("m/1/"), false),
        ("m", Some("m/1/x"), true),
        ("m/1/x", Some("m/1/y"), true),
        ("m/1/x", None, true),
        ("m/10", None, false),
        ("z", None, false),
        ("z", Some("a"), false),
    ] {
        let span = Span { from: from.into(), to: to.map(Into::into) };
        assert_eq!(tail.touches(&span), is_touched, "{from} to {to:?}");
    }
}

#[test]
fn what_is_lost_is_passed_on() {
    let mut tail = Tail::default();
    tail.take(Entry::Put(b"b".into(), b"2".into()));
    tail.take(Entry::Delete(b"d".into()));
    let record = |key: &str| (key.as_bytes().to_vec(), b"1".to_vec());
    let base = [Ok(record("a")), Err("lost"), Ok(record("d")), Ok(record("e"))];
    let found: Vec<_> = tail.over(&Span::all(), base).collect();
    assert_eq!(found, [Ok(record("a")), Err("lost"), Ok((b"b".to_vec(), b"2".to_vec())), Ok(record("e"))]);
}
