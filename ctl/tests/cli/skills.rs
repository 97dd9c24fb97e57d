//! `skills list|show|delete`: what is asked for and how skills look.

use serde_json::{Value, json};

use crate::fake::{Fake, Say};
use crate::shell::nanoctl;
use crate::wire::{document, skill};

fn problem(line: u32, column: u32, message: &str) -> Value {
    json!({"line": line, "column": column, "message": message})
}

/// Two pages: what is on the second must not be taken to be absent.
fn library() -> Fake {
    let odd = [problem(2, 7, "a colon\nin it"), json!({"line": 3, "message": "a tab"}), json!({"message": "another"})];
    let one = [problem(1, 1, "a mark")];
    let broken = json!({"valid": false, "description": "", "problems": [problem(4, 2, "no description")]});
    let first = json!({"next": "p2", "skills": [
        skill("always", &json!({"always_load": true})),
        skill("both", &json!({"always_load": true, "problems": one})),
        skill("broken", &broken),
    ]});
    let long =
        json!({"problems": odd, "description": "long\nstory", "source": "shipped", "path": "nanod:odd/SKILL.md"});
    let second = json!({"skills": [skill("odd", &long), skill("plain", &json!({"source": "workspace"}))]});
    Fake::start(move |_, params| vec![Say::Result(if params["after"] == "p2" { &second } else { &first }.clone())])
}

#[test]
fn a_list_is_whole_and_shows_what_is_wrong() {
    let ran = nanoctl(&library(), &["skills", "list"]);
    insta::assert_snapshot!(ran.out, @r"
    always  config     always             Says hello.
    both    config     always, 1 problem  Says hello.
    broken  config     invalid            no description
    odd     shipped    3 problems         long …
    plain   workspace  ok                 Says hello.
    ");
    assert_eq!((ran.code, ran.err.as_str()), (0, "1 invalid, 2 with problems: -v says where and why\n"));
    let ran = nanoctl(&library(), &["skills", "list", "-v"]);
    insta::assert_snapshot!(ran.out, @r"
    always  config     always             Says hello.
        /k/always/SKILL.md
    both    config     always, 1 problem  Says hello.
        /k/both/SKILL.md:1:1: a mark
    broken  config     invalid            no description
        /k/broken/SKILL.md:4:2: no description
    odd     shipped    3 problems         long …
        nanod:odd/SKILL.md:2:7: a colon\nin it
        nanod:odd/SKILL.md:3: a tab
        nanod:odd/SKILL.md: another
    plain   workspace  ok                 Says hello.
        /k/plain/SKILL.md
    ");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let fake = library();
    let ran = nanoctl(&fake, &["skills", "list", "-s", "web", "--json"]);
    assert_eq!((ran.out.lines().count(), ran.err.as_str()), (2, ""));
    let asked = fake.asked("skill.list");
    assert_eq!(
        (&asked[0]["session"], &asked[1]["session"], &asked[1]["after"]),
        (&json!("web"), &json!("web"), &json!("p2"))
    );
    assert!(asked[0]["after"].is_null());
}

#[test]
fn no_skill_says_so() {
    let fake = Fake::start(|_, _| vec![Say::Result(json!({"skills": []}))]);
    let ran = nanoctl(&fake, &["skills", "list"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert_eq!(ran.err, "there is no skill: nanoctl skills create makes one\n");
    assert_eq!(nanoctl(&fake, &["skills", "list", "-q"]).err, "");
}

#[test]
fn one_is_shown_whole_or_as_its_file() {
    let more =
        json!({"files": ["a.sh", "b/c.md"], "problems": [problem(2, 7, "a colon")], "text": "---\n\u{1b}\r\nno end"});
    let shown = skill("hello", &more);
    let fake = Fake::start(move |_, _| vec![Say::Result(shown.clone())]);
    let ran = nanoctl(&fake, &["skills", "show", "hello", "-s", "web"]);
    insta::assert_snapshot!(ran.out, @r"
    name     hello
    source   config
    path     /k/hello/SKILL.md
    state    1 problem
    about    Says hello.
    digest   d1
    problem  /k/hello/SKILL.md:2:7: a colon
    file     a.sh
    file     b/c.md

    Wave.
    Smile.
    ");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(fake.asked("skill.get"), [json!({"name": "hello", "session": "web"})]);
    assert_eq!(nanoctl(&fake, &["skills", "show", "hello", "--text"]).out, "---\n\u{1b}\r\nno end");
    let json: Value = serde_json::from_str(&nanoctl(&fake, &["skills", "show", "hello", "--json"]).out).unwrap();
    assert_eq!(json, skill("hello", &more));
    let bare = skill("hello", &json!({"body": ""}));
    let fake = Fake::start(move |_, _| vec![Say::Result(bare.clone())]);
    assert!(nanoctl(&fake, &["skills", "show", "hello"]).out.ends_with("digest  d1\n"));
    assert_eq!(nanoctl(&fake, &["skills", "show", "hello", "--text"]).out, document("hello"));
}

#[test]
fn one_that_cannot_be_read_has_no_text() {
    let locked = skill("hello", &json!({"digest": "", "text": "", "problems": [{"message": "permission denied"}]}));
    let fake = Fake::start(move |_, _| vec![Say::Result(locked.clone())]);
    for args in [&["skills", "show", "hello", "--text"][..], &["skills", "edit", "hello"]] {
        let ran = nanoctl(&fake, args);
        assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{args:?}");
        assert!(
            ran.err.ends_with("hello cannot be read: permission denied; look at /k/hello/SKILL.md\n"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn one_is_deleted() {
    let fake = Fake::start(|_, _| vec![Say::Result(skill("hello", &json!({})))]);
    let ran = nanoctl(&fake, &["skills", "delete", "hello", "-s", "web"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "hello deleted\n", ""));
    let asked = &fake.asked("skill.delete")[0];
    assert_eq!((&asked["name"], &asked["session"]), (&json!("hello"), &json!("web")));
}

#[test]
fn what_is_not_there_is_4() {
    let fake = Fake::start(|_, _| vec![Say::Error(-32001, "not_found", "there is no skill hullo")]);
    for verb in ["show", "edit", "delete"] {
        let ran = nanoctl(&fake, &["skills", verb, "hullo"]);
        assert_eq!((ran.code, ran.out.as_str()), (4, ""));
        let line =
            format!("nanoctl: skills {verb}: there is no skill hullo; nanoctl skills list shows what there is\n");
        assert_eq!(ran.err, line);
    }
}
