//! Skills that are written while others write, while the daemon dies, and where a link leads elsewhere.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use nano_protocol::skill::{Skill, Skills};
use nano_tests::client::Client;
use serde_json::{Value, json};

use super::{Ground, done, own, put, session, text};

#[test]
fn of_two_that_make_the_same_name_one_wins() {
    let ground = Ground::new();
    let server = done();
    let daemon = ground.daemon(&server, "", "");
    let mut clients = [daemon.client(), daemon.client(), daemon.client()];
    for n in 0..20 {
        let name = format!("s{n}");
        let params = |who: usize| json!({"name": name, "description": "d", "content": format!("by {who}")});
        let begin = |(who, client): (usize, &mut Client)| client.begin("skill.create", &params(who)).expect("a daemon");
        let asked: Vec<u64> = clients.iter_mut().enumerate().map(begin).collect();
        let finish =
            |(client, id): (&mut Client, u64)| client.finish(id).expect("an answer").map_err(|error| error.code);
        let answers: Vec<Result<Value, i32>> = clients.iter_mut().zip(asked).map(finish).collect();
        let won: Vec<&Value> = answers.iter().flatten().collect();
        assert_eq!((won.len(), answers.iter().filter(|one| **one == Err(-32002)).count()), (1, 2), "{answers:?}");
        let file = fs::read_to_string(ground.paths().join(&name).join("SKILL.md")).expect("a file");
        assert_eq!(json!(file), won[0]["text"], "who was told that it won has won");
    }
}

#[test]
fn of_two_that_change_the_same_version_one_wins() {
    let ground = Ground::new();
    let server = done();
    let daemon = ground.daemon(&server, "", "");
    put(&ground.paths(), "x", &text("x", "d", "by nobody"));
    let mut clients = [daemon.client(), daemon.client()];
    for n in 0..20 {
        let now: Skill = clients[0].get("skill.get", &json!({"name": "x"}));
        let params = |who: usize| json!({"name": "x", "content": format!("{n} by {who}"), "digest": now.digest});
        let begin = |(who, client): (usize, &mut Client)| client.begin("skill.update", &params(who)).expect("a daemon");
        let asked: Vec<u64> = clients.iter_mut().enumerate().map(begin).collect();
        let finish =
            |(client, id): (&mut Client, u64)| client.finish(id).expect("an answer").map_err(|error| error.code);
        let answers: Vec<Result<Value, i32>> = clients.iter_mut().zip(asked).map(finish).collect();
        let won: Vec<&Value> = answers.iter().flatten().collect();
        assert!(won.len() == 1 && answers.contains(&Err(-32002)), "{answers:?}");
        let file = fs::read_to_string(ground.paths().join("x/SKILL.md")).expect("a file");
        assert_eq!(json!(file), won[0]["text"]);
    }
}

#[test]
fn what_was_answered_is_on_disk_whole() {
    let ground = Ground::new();
    let work = ground.work("work");
    let server = done();
    let mut daemon = ground.daemon(&server, "", "");
    let session = session(&mut daemon.client(), &work, json!({}));
    let body = |n: usize| format!("{n}{}", "é".repeat(200_000));
    let mut answered: Option<Skill> = None;
    for n in 0..4 {
        let mut client = daemon.client();
        let method = if n == 0 { "skill.create" } else { "skill.update" };
        let params = json!({"name": "x", "description": "d", "content": body(n), "session": session});
        let made: Skill = client.get(method, &params);
        // Others are under way when it dies: they are there wholly or not at all.
        let under_way: Vec<u64> = (0..8)
            .map(|more| {
                let params = json!({"name": "x", "content": body(90 + more), "session": session});
                client.begin("skill.update", &params).expect("a daemon")
            })
            .collect();
        client.finish(under_way[0]).expect("an answer").expect("a skill");
        daemon.kill9();
        let file = fs::read_to_string(own(&work).join("x/SKILL.md")).expect("a file");
        let is_whole = (90..98).any(|more| file == made.text.replace(&body(n), &body(more)));
        assert!(is_whole, "{} bytes of {}", file.len(), made.text.len());
        daemon.restart();
        let shown: Skill = daemon.client().get("skill.get", &json!({"name": "x", "session": session}));
        assert_eq!((shown.info.valid, &shown.text), (true, &file));
        answered = Some(shown);
    }
    let digest = answered.expect("an answer").digest;
    daemon.client().get::<Value>("skill.delete", &json!({"name": "x", "session": session, "digest": digest}));
    daemon.kill9();
    assert!(!own(&work).join("x").exists());
    daemon.restart();
    assert_eq!(daemon.client().refused("skill.get", &json!({"name": "x", "session": session})), -32001);
}

/// Returns everything below a folder with its contents.
fn contents(folder: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.push((path.display().to_string(), String::new()));
            all.extend(contents(&path));
        } else {
            all.push((path.display().to_string(), fs::read_to_string(&path).expect("a file")));
        }
    }
    all.sort();
    all
}

/// Checks that nothing is written through the link at `link` below a workspace, which leads to a folder outside.
fn check_link(link: &str, target: &str) {
    let ground = Ground::new();
    let (work, beyond) = (ground.work("work"), ground.work("beyond"));
    put(&beyond, "far", &text("far", "Is far away.", "FAR"));
    put(&beyond.join("skills"), "far", &text("far", "Is far away.", "FAR"));
    let place = work.join(link);
    fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
    symlink(beyond.join(target), &place).expect("a link");
    let before = contents(&beyond);
    let server = done();
    let daemon = ground.daemon(&server, "", "");
    let mut client = daemon.client();
    let session = session(&mut client, &work, json!({}));
    for (method, params) in [
        ("skill.create", json!({"name": "far", "description": "d", "content": "c", "session": session})),
        ("skill.create", json!({"name": "new", "description": "d", "content": "c", "session": session})),
        ("skill.update", json!({"name": "far", "content": "c", "session": session})),
        ("skill.delete", json!({"name": "far", "session": session})),
    ] {
        let answer = client.call(method, &params);
        // Beside a link of another name one may be made, and the link itself be removed.
        let may = link.ends_with("/far") && (params["name"] == "new" || method == "skill.delete");
        assert_eq!(answer.is_ok(), may, "{link} {method}: {answer:?}");
        assert_eq!(contents(&beyond), before, "{link} {method}");
    }
    let list: Skills = client.get("skill.list", &json!({ "session": session }));
    assert!(list.skills.iter().all(|skill| skill.description != "Is far away."), "{list:?}");
}

#[test]
fn nothing_is_written_or_removed_through_a_link_out_of_the_workspace() {
    check_link(".agents", "");
    check_link(".agents/skills", "");
    check_link(".agents/skills/far", "far");
}
