//! `skill.*` over the wire: what is answered, what is refused and with which code, and pages.

use std::collections::BTreeSet;
use std::fs;

use nano_protocol::skill::{Skill, SkillInfo, Skills, Validated};
use nano_tests::client::Client;
use serde_json::{Value, json};

use super::{Ground, done, own, put, session, text};

fn get(client: &mut Client, name: &str, session: Option<&str>) -> Skill {
    client.get("skill.get", &json!({"name": name, "session": session}))
}

/// Checks that a call is refused with this code and says so.
fn refused(client: &mut Client, method: &str, params: &Value, code: i32, says: &str) {
    let error = client.call(method, params).err().unwrap_or_else(|| panic!("{method} {params} was taken"));
    assert!(error.code == code && error.message.contains(says), "{method} {says}: {error:?}");
}

#[test]
fn a_skill_is_made_shown_changed_and_removed() {
    let ground = Ground::new();
    let work = ground.work("work");
    let server = done();
    let daemon = ground.daemon(&server, "", "");
    let mut client = daemon.client();
    let session = session(&mut client, &work, json!({}));
    for (place, within, source) in [(ground.paths(), None, "config"), (own(&work), Some(session.as_str()), "workspace")]
    {
        let metadata = json!({"license": "MIT", "metadata": {"author": "me", "always_load": true}});
        let create = json!({"name": "made-here", "description": "About: it", "content": "# Body\n\ntext", "metadata": metadata,
            "session": within});
        let made: Skill = client.get("skill.create", &create);
        let path = place.join("made-here/SKILL.md");
        assert_eq!(fs::read_to_string(&path).expect("a file"), made.text);
        let info = &made.info;
        assert_eq!(
            (info.name.as_str(), info.description.as_str(), info.source.as_str()),
            ("made-here", "About: it", source)
        );
        assert_eq!((info.path.as_str(), info.valid), (path.to_str().expect("a path"), true));
        // What stands in a workspace is not in the prompt unasked, and that is said.
        let told: Vec<&str> = info.problems.iter().map(|problem| problem.message.as_str()).collect();
        let untrusted = "always_load does not count: the workspace is not below skills.trust";
        assert_eq!(
            (info.always_load, told),
            (within.is_none(), if within.is_none() { vec![] } else { vec![untrusted] })
        );
        assert_eq!(
            (made.body.as_str(), made.digest.len(), &made.metadata["license"]),
            ("# Body\n\ntext", 64, &json!("MIT"))
        );
        fs::create_dir(path.with_file_name("scripts")).expect("a folder");
        fs::write(path.with_file_name("scripts").join("run.sh"), "x").expect("a file");
        let shown = get(&mut client, "made-here", within);
        assert_eq!((&shown.text, &shown.files), (&made.text, &vec!["scripts/run.sh".to_owned()]));
        let change = json!({"name": "made-here", "session": within, "description": "New.", "digest": made.digest});
        let changed: Skill = client.get("skill.update", &change);
        assert_eq!((changed.info.description.as_str(), changed.body.as_str()), ("New.", "# Body\n\ntext"));
        assert_eq!(changed.metadata["metadata"]["author"], "me", "what was not given stays");
        refused(&mut client, "skill.update", &change, -32002, "changed meanwhile");
        let stale = json!({"name": "made-here", "session": within, "digest": made.digest});
        refused(&mut client, "skill.delete", &stale, -32002, "changed meanwhile");
        let whole = text("made-here", "Whole.", "Whole body.");
        let whole: Skill = client.get("skill.update", &json!({"name": "made-here", "session": within, "text": whole}));
        assert_eq!((whole.body.as_str(), &whole.text), ("Whole body.", &text("made-here", "Whole.", "Whole body.")));
        let gone = json!({"name": "made-here", "session": within, "digest": whole.digest});
        let gone: SkillInfo = client.get("skill.delete", &gone);
        assert_eq!((gone.name.as_str(), place.join("made-here").exists()), ("made-here", false));
        refused(&mut client, "skill.get", &json!({"name": "made-here", "session": within}), -32001, "made-here");
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_code() {
    let ground = Ground::new();
    let work = ground.work("work");
    let server = done();
    let daemon = ground.daemon(&server, "", "");
    let mut client = daemon.client();
    let open = session(&mut client, &work, json!({}));
    let closed = session(&mut client, &work, json!({}));
    client.get::<Value>("session.close", &json!({ "session": closed }));
    put(&ground.paths(), "taken", &text("taken", "Is taken.", "BODY"));
    let mebibyte = 1024 * 1024;
    let make = |name: &str| json!({"name": name, "description": "d", "content": "c"});
    let with = |mut params: Value, key: &str, value: Value| {
        params[key] = value;
        params
    };
    for method in ["skill.get", "skill.validate", "skill.delete"] {
        refused(&mut client, method, &json!({"name": "nobody"}), -32001, "there is no skill nobody");
    }
    refused(
        &mut client,
        "skill.update",
        &json!({"name": "nobody", "content": "x"}),
        -32001,
        "there is no skill nobody",
    );
    refused(&mut client, "skill.create", &make("taken"), -32002, "is there already");
    let in_both = with(make("taken"), "session", json!(open));
    client.get::<Skill>("skill.create", &in_both);
    refused(&mut client, "skill.create", &in_both, -32002, "is there already");
    for name in ["", "..", ".", "../x", "a/b", "/etc", "a\\b", "A", "a b", "a\0b", "-a", "a--b", "ä", &"x".repeat(65)]
    {
        refused(&mut client, "skill.create", &make(name), -32602, "");
    }
    let shipped = json!({"name": "git-workflow", "content": "x"});
    refused(&mut client, "skill.update", &shipped, -32003, "shipped");
    refused(&mut client, "skill.delete", &json!({"name": "git-workflow"}), -32003, "shipped");
    let change = |more: Value| {
        let mut params = json!({"name": "taken"});
        params.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        params
    };
    let whole = text("taken", "New.", "NEW");
    for (params, code) in [
        (change(json!({})), -32602),
        (change(json!({"text": whole, "description": "d"})), -32602),
        (change(json!({"text": whole, "content": "c"})), -32602),
        (change(json!({"text": text("other", "New.", "NEW")})), -32602),
        (change(json!({"text": "no front matter"})), -32602),
        (change(json!({"text": "---\nname: taken\n---\n"})), -32602),
        (change(json!({"description": ""})), -32602),
        (change(json!({"description": " \n"})), -32602),
        (change(json!({"content": "x".repeat(mebibyte + 1)})), -32008),
        (change(json!({"text": "x".repeat(mebibyte + 1)})), -32008),
        (change(json!({"content": "x", "digest": "0".repeat(64)})), -32002),
        (change(json!({"content": "x", "session": closed})), -32002),
        (change(json!({"content": "x", "session": "ses_none"})), -32001),
        (change(json!({"content": "x", "folder": "y"})), -32602),
    ] {
        refused(&mut client, "skill.update", &params, code, "");
    }
    refused(&mut client, "skill.create", &with(make("big"), "content", json!("x".repeat(mebibyte + 1))), -32008, "");
    refused(&mut client, "skill.create", &with(make("dull"), "description", json!("")), -32602, "");
    refused(&mut client, "skill.create", &with(make("late"), "session", json!(closed)), -32002, "closed");
    refused(&mut client, "skill.delete", &json!({"name": "taken", "session": closed}), -32002, "closed");
    refused(&mut client, "skill.validate", &json!({"name": "taken", "text": whole}), -32602, "either text or name");
    refused(&mut client, "skill.validate", &json!({}), -32602, "either text or name");
    assert_eq!(get(&mut client, "taken", None).text, text("taken", "Is taken.", "BODY"), "a refusal changes nothing");
    let names: Vec<_> = fs::read_dir(ground.paths()).expect("a folder").flatten().map(|one| one.file_name()).collect();
    assert_eq!(names, ["taken"], "a refusal leaves nothing behind");
}

#[test]
fn what_is_as_long_as_may_be_serves_or_is_refused_as_too_large() {
    let ground = Ground::new();
    let server = done();
    let daemon = ground.daemon(&server, "", "");
    let mut client = daemon.client();
    for length in [1024 * 1024 - 200, 1024 * 1024 - 10, 1024 * 1024] {
        let name = format!("long-{length}");
        match client.call("skill.create", &json!({"name": name, "description": "d", "content": "x".repeat(length)})) {
            Err(error) => {
                assert!(error.code == -32008 && error.message.contains("larger than 1048576 bytes"), "{error:?}");
                assert!(!ground.paths().join(&name).exists(), "a refusal leaves nothing behind");
            }
            Ok(made) => {
                assert!(made["valid"] == true && made["body"].as_str().expect("a body").len() == length, "{length}");
            }
        }
    }
    put(&ground.paths(), "short", &text("short", "Is short.", "BODY"));
    match client.call("skill.update", &json!({"name": "short", "content": "x".repeat(1024 * 1024)})) {
        Err(error) => assert!(error.message.contains("would be larger than 1048576 bytes"), "{error:?}"),
        Ok(made) => assert!(made["body"].as_str().expect("a body").len() == 1024 * 1024),
    }
}

#[test]
fn a_text_is_judged_with_the_place_of_what_is_wrong() {
    let ground = Ground::new();
    let server = done();
    let daemon = ground.daemon(&server, "", "");
    let mut client = daemon.client();
    put(&ground.paths(), "odd", "---\nname: odd\ndescription: Uses: colons\n---\nBODY\n");
    for (params, name, valid, line) in [
        (json!({"text": text("a", "About.", "B")}), "a", true, None),
        (json!({"text": text("a", "About.", "B"), "folder": "a"}), "a", true, None),
        (json!({"text": "---\nname: a\n---\n"}), "a", false, Some(None)),
        (json!({"text": "---\nname: a\ndescription: x: y\n---\n"}), "a", true, Some(Some(3))),
        (json!({"name": "odd"}), "odd", true, Some(Some(3))),
        (json!({"name": "git-workflow"}), "git-workflow", true, None),
    ] {
        let judged: Validated = client.get("skill.validate", &params);
        assert_eq!((judged.name.as_str(), judged.valid), (name, valid), "{params}: {judged:?}");
        match line {
            None => assert_eq!(judged.problems, [], "{params}"),
            Some(None) => assert!(!judged.problems.is_empty(), "{params}"),
            Some(line) => assert_eq!(judged.problems.first().and_then(|one| one.line), line, "{params}: {judged:?}"),
        }
    }
    let other: Validated = client.get("skill.validate", &json!({"text": text("a", "About.", "B"), "folder": "b"}));
    assert!(other.valid && other.problems.iter().any(|one| one.line == Some(2)), "{other:?}");
}

#[test]
fn pages_hold_every_row_once_though_names_repeat() {
    let ground = Ground::new();
    let work = ground.work("work");
    for name in ["a", "a-b", "git-workflow", "code-review", "z"] {
        put(&own(&work), name, &text(name, "Ours.", "OURS"));
        put(&ground.paths(), name, &text(name, "Theirs.", "THEIRS"));
        put(&ground.paths().join("more"), name, &text(name, "More.", "MORE"));
    }
    let server = done();
    let daemon = ground.daemon(&server, "", "");
    let mut client = daemon.client();
    let session = session(&mut client, &work, json!({}));
    let whole: Skills = client.get("skill.list", &json!({ "session": session }));
    let rows = |skills: &[SkillInfo]| skills.iter().map(|one| one.path.clone()).collect::<Vec<_>>();
    let expected = rows(&whole.skills);
    assert_eq!((expected.len(), expected.iter().collect::<BTreeSet<_>>().len(), whole.next), (19, 19, None));
    assert!(whole.skills.is_sorted_by(|one, other| one.name <= other.name), "{expected:?}");
    for limit in [1, 2, 3, 5, 18, 19, 20] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page: Skills = client.get("skill.list", &json!({"session": session, "limit": limit, "after": after}));
            assert!(page.skills.len() <= limit);
            seen.extend(rows(&page.skills));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, expected, "limit {limit}");
    }
}
