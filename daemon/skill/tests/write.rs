//! What is written, byte for byte.
#![expect(clippy::unwrap_used, reason = "tests")]

use nano_protocol::Object;
use nano_skill::{compose, rewrite};
use serde_json::json;

#[test]
fn new_documents_quote_only_what_needs_it() {
    let metadata = json!({
        "name": "not this", "license": "MIT", "allowed-tools": ["Read", "Bash(git:*)"], "version": "1.10",
        "metadata": {"always_load": true, "author": "A: B", "tags": {"a": [1, [], {}]}},
    });
    let text = compose(
        "a-b",
        "Use  when\n you see: this --- or that",
        metadata.as_object().unwrap(),
        "\n# Title\r\n\nText\n\n",
    );
    let wanted = r#"---
name: a-b
description: "Use when you see: this --\u002d or that"
license: MIT
allowed-tools:
  - Read
  - Bash(git:*)
version: "1.10"
metadata:
  always_load: true
  author: "A: B"
  tags:
    a:
      - 1
      - []
      - {}
---

# Title

Text
"#;
    assert_eq!(text, wanted);
    assert_eq!(
        compose("a", "It's \"so\", 100% [sure]", &Object::new(), ""),
        "---\nname: a\ndescription: It's \"so\", 100% [sure]\n---\n"
    );
    let quoted =
        ["42", "yes", "null", "2024-01-01", "1e3", "a #b", "a:", "- a", "*a*", "`a`", "a\tb", " a", "a\u{2028}b"];
    for text in quoted {
        let metadata = json!({"license": text});
        assert!(compose("x", "d", metadata.as_object().unwrap(), "").contains("license: \""), "{text}");
    }
    assert!(compose("null", "d", &Object::new(), "").starts_with("---\nname: \"null\"\n"));
}

#[track_caller]
fn check(old: &str, description: Option<&str>, body: Option<&str>, new: &str) {
    assert_eq!(rewrite(old, description, body).unwrap(), new);
}

#[test]
fn only_the_description_changes() {
    let cases = [
        ("description: old # note", "description: New # note"),
        ("description: \"old\n  more\" # note\n\n# c\nversion: 1", "description: New # note\n\n# c\nversion: 1"),
        ("description: |\n  # a\n  b\n# c\nversion: 1", "description: New\n# c\nversion: 1"),
        ("description: >-\n\n  a\n\n  b\n", "description: New\n"),
        ("description:\n  - a\n  - b\nversion: 1", "description: New\nversion: 1"),
        ("description:\nversion: 1", "description: New\nversion: 1"),
        ("description: # c\nversion: 1", "description: New # c\nversion: 1"),
        ("description: a: b\n c\nd\n# c\nhint: *x", "description: New\n# c\nhint: *x"),
        ("description: a\ndescription: b", "description: a\ndescription: New"),
        ("Description: a", "Description: New"),
        ("\"description\" : a", "\"description\" : New"),
        ("license: \"a\ndescription: b\"\ndescription: c", "license: \"a\ndescription: b\"\ndescription: New"),
        ("description: [a,\n b]\nx: &y 1\nz: *y", "description: New\nx: &y 1\nz: *y"),
    ];
    for (old, new) in cases {
        for end in ["\n", "\r\n", "\r"] {
            let whole =
                |matter: &str| format!("\u{feff}---\nname: x\n{matter}\n---\n\n\nBody  \n\n").replace('\n', end);
            check(&whole(old), Some("New"), None, &whole(new));
        }
    }
}

#[test]
fn a_missing_description_comes_below_the_name() {
    check(
        "---\n# a\nname: x # n\n# b\nv: 1\n---\nB",
        Some("d"),
        None,
        "---\n# a\nname: x # n\ndescription: d\n# b\nv: 1\n---\nB",
    );
    check("---\n  v: 1\n---\n", Some("d"), None, "---\n  v: 1\n  description: d\n---\n");
    check("--- name: x\nv: 1\n---\n", Some("d"), None, "--- name: x\ndescription: d\nv: 1\n---\n");
}

#[test]
fn only_the_body_changes() {
    let head = "---\nname: x\ndescription: a: b # c\n---";
    let cases = [
        ("\n\nOld\n", "\n\nnew\n"),
        ("\nOld", "\nnew\n"),
        ("", "\n\nnew\n"),
        ("\n\n\n", "\n\nnew\n"),
        ("\n\n   code\n  \n", "\n\nnew\n  \n"),
    ];
    for (old, new) in cases {
        check(&format!("{head}{old}"), None, Some("new"), &format!("{head}{new}"));
    }
    check(&format!("{head}\n\nOld\n"), None, Some(" \n"), &format!("{head}\n"));
    check(
        "---\r\ndescription: d\r\n---\r\nOld\r\n",
        Some("e"),
        Some("a\nb\n"),
        "---\r\ndescription: e\r\n---\r\na\r\nb\r\n",
    );
    check("---\ndescription: d\n...\nOld\n", None, Some("---\nx"), "---\ndescription: d\n...\n---\nx\n");
}

#[test]
fn what_cannot_be_changed_says_so() {
    let olds = [
        "",
        "# Hi\n",
        "---\nname: x\ndescription: d\n\nBody",
        "---\nname: x\ndescription: d\n\nBody\n\n---\nmore",
        "---\n{name: x, description: d}\n---\n",
        "---\n- a\n---\n",
        "---\nname: x\ndescription: &a d\nlicense: *a\n---\n",
        "---\nname: x\n? description\n: d\n---\n",
    ];
    for old in olds {
        let problem = rewrite(old, Some("new"), None).unwrap_err();
        assert!(problem.line.is_some() && !problem.message.is_empty(), "{old:?}");
    }
    assert!(rewrite("# Hi\n", None, Some("new")).is_err());
}
