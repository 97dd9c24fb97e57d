//! What holds for every document.
#![expect(clippy::unwrap_used, reason = "tests")]

use nano_protocol::Object;
use nano_skill::{Document, compose, rewrite};
use proptest::prelude::*;
use serde_json::{Value, json};

/// What SKILL.md files and their breakage are made of.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "---\n",
        "---",
        "...\n",
        "name: x\n",
        "description: foo bar\n",
        "description: |\n",
        "metadata:\n",
        "  a: b\n",
        ": ",
        ":",
        " #",
        "#",
        "\n",
        "\n  ",
        "- ",
        "'",
        "\"",
        "[",
        "]",
        "{",
        "}",
        "*a",
        "&a ",
        "!",
        "|",
        ">",
        "%",
        "@",
        "`",
        ",",
        "? ",
        "~",
        "\t",
        "\\",
        "\r\n",
        "\r",
        "<<: ",
        "word",
        "Name: y\n",
        "null",
        "é",
        "字",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "\0",
        "\u{1b}",
        "😀",
        "  ",
        "```\n",
        "# Title\n",
        "always_load: true\n",
        "description:",
        "\u{301}",
    ])
}

fn document() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..30).prop_map(|pieces| pieces.concat())
}

fn fenced() -> impl Strategy<Value = String> {
    let part = || prop::collection::vec(piece(), 0..8).prop_map(|pieces| pieces.concat());
    (part(), part(), part()).prop_map(|(before, between, after)| {
        format!("---\n{before}name: x\n{between}description: foo bar\n{after}\n---\nBody\n")
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,40}", "[ -~]{0,60}", prop::collection::vec(piece(), 0..10).prop_map(|pieces| pieces.concat())]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        text().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4).prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}

/// Keys that mean nothing, and the texts that they map to.
fn metadata() -> impl Strategy<Value = Object> {
    prop::collection::vec(("[a-z]{1,9}", value()), 0..4).prop_map(|all| {
        all.into_iter().filter(|(key, _)| key != "name" && key != "description" && key != "metadata").collect()
    })
}

fn collapsed(text: &str) -> String {
    let clean: String = text.chars().map(|part| if part.is_control() { ' ' } else { part }).collect();
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn as_body(text: &str) -> String {
    text.trim().replace("\r\n", "\n").replace('\r', "\n")
}

fn sane(read: &Document) {
    let is_placed = |problem: &nano_protocol::skill::Problem| problem.line != Some(0) && problem.column != Some(0);
    assert!(read.problems.iter().all(is_placed) && read.problems.len() <= 50);
    assert!(read.valid || !read.problems.is_empty(), "refused without a reason");
    assert!(!(read.valid && read.description.is_empty()));
    assert_eq!(read.description, collapsed(&read.description));
    assert!(!read.name.contains(char::is_control) && read.name.chars().count() <= 256);
}

/// Every place that is told is a place of the file.
fn placed(text: &str, read: &Document) {
    let plain = text.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<usize> = plain.split('\n').map(|line| line.chars().count()).collect();
    for problem in &read.problems {
        let (Some(line), Some(column)) = (problem.line, problem.column) else { continue };
        let length = lines.get(line as usize - 1).copied();
        assert!(length.is_some_and(|length| column as usize <= length + 2), "{text:?}: {problem:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300), folder in ".{0,10}") {
        sane(&Document::read(&bytes, &folder));
        let mut fenced = b"---\n".to_vec();
        fenced.extend(bytes);
        sane(&Document::read(&fenced, &folder));
    }

    #[test]
    fn any_text_is_read_and_each_problem_has_its_place(text in document(), fenced in fenced()) {
        for text in [text, fenced] {
            let read = Document::read(text.as_bytes(), "x");
            sane(&read);
            placed(&text, &read);
        }
    }

    /// Another key that fails must not cost a key what it had: repair is chunk by chunk.
    #[test]
    fn a_key_that_fails_costs_no_other_its_value(text in text(), at in 0..3_usize) {
        let bad = ["hint: a: b\n", "hint: *x y\n", "hint: \"a\" b\n"][at];
        let (quoted, license) = (json!(collapsed(&text)), "license: MIT\n");
        let good = format!("---\nname: x\ndescription: {quoted}\n{license}---\nB");
        let broken = format!("---\nname: x\n{bad}description: {quoted}\n{license}---\nB");
        let [good, broken] = [good, broken].map(|text| Document::read(text.as_bytes(), "x"));
        prop_assert_eq!(&good.description, &broken.description);
        prop_assert_eq!(&good.metadata["license"], &broken.metadata["license"]);
        prop_assert_eq!(good.valid, broken.valid);
    }

    #[test]
    fn new_documents_read_back(name in "[a-z0-9]{1,5}(-[a-z0-9]{1,5}){0,2}", description in text(), metadata in metadata(), body in text()) {
        let text = compose(&name, &description, &metadata, &body);
        let mut read = Document::read(text.as_bytes(), &name);
        prop_assert_eq!(&read.name, &name);
        prop_assert_eq!(&read.description, &collapsed(&description));
        prop_assert_eq!(&read.body, &as_body(&body));
        prop_assert_eq!(read.valid, !read.description.is_empty());
        read.metadata.retain(|key, _| key != "name" && key != "description");
        prop_assert_eq!(read.metadata, metadata, "{}", text);
    }

    #[test]
    fn new_documents_of_the_format_have_no_problems(description in "[!-~]{1,80}", author in text(), body in text()) {
        let metadata = json!({"license": "MIT", "metadata": {"author": author, "always_load": "true"}});
        let text = compose("a-b", &description, metadata.as_object().unwrap(), &body);
        let read = Document::read(text.as_bytes(), "a-b");
        prop_assert!(read.valid && read.always_load && read.problems.is_empty(), "{}: {:?}", text, read.problems);
    }

    /// Whatever the old document: a new description and body read back, or it says that it cannot.
    #[test]
    fn rewritten_documents_read_back(old in fenced(), description in "[ -~é字]{1,60}", body in text()) {
        prop_assume!(!collapsed(&description).is_empty());
        let Ok(new) = rewrite(&old, Some(&description), Some(&body)) else { return Ok(()) };
        let read = Document::read(new.as_bytes(), "x");
        prop_assert_eq!(&read.description, &collapsed(&description));
        prop_assert_eq!(&read.body, &as_body(&body));
        prop_assert_eq!(read.name, Document::read(old.as_bytes(), "x").name);
    }

    #[test]
    fn a_document_of_plain_lines_can_be_rewritten(comment in "[ -~]{0,20}", description in "[ -~]{1,60}", end in 0..3_usize) {
        let end = ["\n", "\r\n", "\r"][end];
        let old = format!("---\n# {comment}\nname: x\ndescription: old\nversion: 1 # c\n---\n\nBody\n").replace('\n', end);
        let new = rewrite(&old, Some(&description), None).unwrap();
        let value = |text: &str| text.split(end).nth(3).unwrap().to_owned();
        prop_assert_eq!(new.replacen(&value(&new), "description: old", 1), old);
    }
}
