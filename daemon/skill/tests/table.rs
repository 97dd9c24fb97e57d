//! Cases as data: `cases.jsonl` has a document a line, what the reference validator says to it (A accepts, R refuses, C
//! crashes, ? not asked), and what is read. A problem is `line:column` and how its message begins.
#![expect(clippy::expect_used, reason = "tests")]

use nano_skill::{Document, MAX_FILE, MAX_FRONT_MATTER};
use serde_json::Value;

#[track_caller]
fn check(bytes: &[u8], folder: &str, valid: bool, name: &str, description: &str, problems: &[&str]) -> Document {
    let read = Document::read(bytes, folder);
    let told: Vec<String> = read.problems.iter().map(shown).collect();
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
    assert_eq!((read.valid, &*read.name, &*read.description), (valid, name, description), "{text:?}: {told:#?}");
    let is_told = told.len() == problems.len() && told.iter().zip(problems).all(|(told, want)| told.starts_with(want));
    assert!(is_told, "{text:?}\nwanted {problems:#?}\ntold {told:#?}");
    read
}

fn shown(problem: &nano_protocol::skill::Problem) -> String {
    let number = |number: Option<u32>| number.map_or("?".to_owned(), |number| number.to_string());
    format!("{}:{} {}", number(problem.line), number(problem.column), problem.message)
}

fn matter(matter: &str) -> String {
    format!("---\n{matter}\n---\nB\n")
}

#[test]
fn each_case_is_read_as_written_down() {
    for line in include_str!("cases.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let text = |key: &str| case[key].as_str().expect("a text").to_owned();
        let problems = case["problems"].as_array().expect("a list").iter().map(|told| told.as_str().expect("a text"));
        let problems: Vec<&str> = problems.collect();
        let valid = case["valid"] == true;
        let read =
            check(text("text").as_bytes(), &text("folder"), valid, &text("name"), &text("description"), &problems);
        assert_eq!(read.unclosed, case["unclosed"] == true, "{line}");
    }
}

/// What the reference refuses is never loaded without a word; what it accepts is loaded. Here only, "nothing" is no text,
/// and a key of clients counts.
#[test]
fn each_verdict_of_the_reference_is_answered() {
    let excepted = ["desc '~'", "desc 'null'", "hidden"];
    for line in include_str!("cases.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let is_silent = case["problems"].as_array().is_some_and(Vec::is_empty);
        let holds = match case["reference"].as_str() {
            Some("A") => case["valid"] == true,
            Some("R" | "C") => !is_silent,
            _ => true,
        };
        assert!(holds || excepted.iter().any(|name| case["case"] == *name), "{line}");
    }
}

#[test]
fn bytes_that_are_not_utf_8() {
    let body = b"---\nname: x\ndescription: d\n---\nok \xff\xfe ok\n";
    let read = check(body, "x", true, "x", "d", &["5:4 bytes that are not UTF-8, at byte 34 of the file"]);
    assert_eq!(read.body, "ok \u{fffd}\u{fffd} ok");
    let name = b"\xef\xbb\xbf---\r\nname: x\r\ndescription: d\xc3\r\n---\r\nB";
    let told = ["3:15 bytes that are not UTF-8 in the front matter, at byte 31", "1:1 a byte order mark"];
    check(name, "x", false, "x", "d\u{fffd}", &told);
    check(
        b"\xff\xfe-\0-\0-\0",
        "x",
        false,
        "x",
        "",
        &["1:1 no description: the file has no", "1:1 bytes that are not"],
    );
}

#[test]
fn a_nul_in_the_front_matter_is_refused_and_one_in_the_body_is_text() {
    let read = Document::read(b"\xef\xbb\xbf---\nname: x\ndescription: \"d\0\"\n---\n", "x");
    assert!(!read.valid && shown(&read.problems[0]).starts_with("3:16 a NUL byte in the front matter, at byte 30"));
    let read = check(b"---\nname: x\ndescription: d\n---\nB\0B", "x", true, "x", "d", &[]);
    assert_eq!(read.body, "B\0B");
}

#[test]
fn lengths_are_counted_in_characters() {
    let long = |count: usize| "字".repeat(count);
    let described = |count| matter(&format!("name: x\ndescription: {}", long(count)));
    check(described(1024).as_bytes(), "x", true, "x", &long(1024), &[]);
    check(described(1025).as_bytes(), "x", true, "x", &long(1025), &["3:14 the description has more than 1024"]);
    let named = |count| matter(&format!("name: {}\ndescription: d", long(count)));
    check(named(64).as_bytes(), &long(64), true, &long(64), "d", &[]);
    check(named(65).as_bytes(), &long(65), true, &long(65), "d", &["2:7 the name has more than 64"]);
    let read = Document::read(named(3000).as_bytes(), "x");
    assert_eq!(read.name, long(256));
}

#[test]
fn files_and_front_matter_have_a_size() {
    let most = usize::try_from(MAX_FILE).expect("a size");
    let head = matter("name: x\ndescription: d");
    let fitting = format!("{head}{}", "x".repeat(most - head.len()));
    assert_eq!(check(fitting.as_bytes(), "x", true, "x", "d", &[]).body.len(), most - head.len() + 2);
    check(format!("{fitting}x").as_bytes(), "x", false, "x", "", &["1:1 the file is larger than 1048576 bytes"]);
    let padded = |bytes: usize| matter(&format!("name: x\ndescription: d\n#{}", "x".repeat(bytes - 25)));
    check(padded(MAX_FRONT_MATTER).as_bytes(), "x", true, "x", "d", &[]);
    let too_long = padded(MAX_FRONT_MATTER + 1);
    let read = check(too_long.as_bytes(), "x", false, "x", "", &["1:1 the front matter is longer than 65536 bytes"]);
    assert_eq!(read.body, "B");
}

#[test]
fn bodies_are_trimmed_and_end_their_lines_with_lf() {
    let bodies =
        [("B\r\nC\rD\n", "B\nC\nD"), ("\n\n  B  \n\n", "B"), ("", ""), ("a\n---\nb\n...\nc", "a\n---\nb\n...\nc")];
    for (written, read) in bodies {
        let text = format!("---\nname: x\ndescription: d\n---\n{written}");
        assert_eq!(check(text.as_bytes(), "x", true, "x", "d", &[]).body, read);
    }
    assert_eq!(Document::read(b"\n# Hi\r\n", "x").body, "# Hi");
    assert_eq!(Document::read(b"---\nname: x\ndescription: d\n\nBody\n\n---\nmore", "x").body, "Body\n\n---\nmore");
    assert_eq!(Document::read(b"---\nname: x\ndescription: d\n# Title\nBody", "x").body, "# Title\nBody");
}

#[test]
fn what_clients_ask_for_is_seen_however_it_is_written() {
    let says = |more: &str| Document::read(matter(&format!("name: x\ndescription: d\n{more}")).as_bytes(), "x");
    let always = [
        "\n  always_load: true",
        "\n  always_load: \"true\"",
        "\n  always_load: yes",
        " {\"always_load\": true}",
        " '{\"always_load\": true}'",
    ];
    for written in always {
        assert!(says(&format!("metadata:{written}")).always_load, "{written}");
    }
    assert!(says("metadata:\n\talways_load: true").always_load);
    assert!(says("metadata:\n  author: A: B\n  always_load: true\n  tags:\n  - *a").always_load);
    for written in
        ["\n  always_load: false", "\n  always_load: often", " always_load", "\n  nested:\n    always_load: true", ""]
    {
        assert!(!says(&format!("metadata:{written}")).always_load, "{written}");
    }
    assert!(says("disable-model-invocation: true").hidden && says("disable-model-invocation: \"true\"").hidden);
    // What is not plainly said is told.
    for (written, on) in [("yes", true), ("ON", true), ("off", false), ("often", false), ("[true]", false)] {
        let document = says(&format!("disable-model-invocation: {written}"));
        let told = document.problems.iter().any(|problem| problem.message.starts_with("disable-model-invocation"));
        assert!(document.hidden == on && told, "{written}: {:?}", document.problems);
    }
    for written in ["true", "false", "\"true\""] {
        assert_eq!(says(&format!("disable-model-invocation: {written}")).problems, [], "{written}");
    }
    assert!(!says("disable-model-invocation: false").hidden && !says("license: x").hidden);
}

#[test]
fn values_keep_their_text_in_metadata() {
    let more =
        "a: 1.10\nb: 42\nc: yes\nd: 1e3\ne: 0x1f\nf: 2024-01-01\ng: null\nh: 007\ni: True\nj: [1, x]\nk: .5\nl: \"42\"";
    let read = Document::read(matter(&format!("name: x\ndescription: d\n{more}")).as_bytes(), "x");
    let wanted = serde_json::json!({
        "name": "x", "description": "d", "a": "1.10", "b": 42, "c": "yes", "d": "1e3", "e": "0x1f", "f": "2024-01-01",
        "g": null, "h": "007", "i": true, "j": [1, "x"], "k": ".5", "l": "42",
    });
    assert_eq!(Value::Object(read.metadata), wanted);
}

#[test]
fn the_reason_stands_first_and_no_more_than_fifty_problems_in_all() {
    let keys: String = (0..500).flat_map(|key| ["k".to_owned(), key.to_string(), ": x\n".to_owned()]).collect();
    let read = Document::read(matter(&format!("name: y\n{keys}")).as_bytes(), "x");
    assert!(read.problems.len() == 50 && read.problems[0].message.starts_with("no description"));
    let lines: Vec<_> = read.problems[1..49].iter().map(|problem| problem.line).collect();
    assert!(lines.is_sorted() && lines[0] == Some(2), "{lines:?}");
    assert_eq!(read.problems[49].message, "there are 453 more problems");
}

#[test]
fn new_names_are_strict() {
    for name in ["a", "git-workflow", "a1-b2-c3", "42", &"a".repeat(64)] {
        assert_eq!(nano_skill::name_problem(name), None, "{name}");
    }
    let long = "a".repeat(65);
    let bad =
        ["", "-", "a-", "-a", "a--b", "A", "a_b", "a b", "a/b", "..", ".", "a.b", "字", "é", "a\n", "a\0", "ﬁ", &long];
    for name in bad {
        assert!(nano_skill::name_problem(name).is_some(), "{name:?}");
    }
}
