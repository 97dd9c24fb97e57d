//! Files that nobody wants in a workspace: tasks run as ever, and a list says what is wrong.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use nano_protocol::skill::{SkillInfo, Skills};
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use serde_json::{Value, json};

use super::{Ground, catalogue, load, own, put, result, session, system, text};

fn folder(root: &Path, name: &str) -> std::path::PathBuf {
    let folder = root.join(name);
    fs::create_dir_all(&folder).expect("a folder");
    folder.join("SKILL.md")
}

/// Fills a folder of skills with everything that is bad, and one good skill.
fn litter(root: &Path, piles: usize) {
    let pipe = folder(root, "a-pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).expect("a pipe");
    let socket = folder(root, "a-socket");
    drop(std::os::unix::net::UnixListener::bind(socket).expect("a socket"));
    fs::create_dir_all(folder(root, "a-folder")).expect("a folder");
    symlink("SKILL.md", folder(root, "a-loop")).expect("a link");
    symlink("/dev/zero", folder(root, "a-device")).expect("a link");
    symlink("..", root.join("upwards")).expect("a link");
    symlink(".", root.join("itself")).expect("a link");
    symlink("/etc", root.join("elsewhere")).expect("a link");
    symlink("round-b", root.join("round-a")).expect("a link");
    symlink("round-a", root.join("round-b")).expect("a link");
    File::create(folder(root, "a-gigabyte")).and_then(|file| file.set_len(1 << 30)).expect("a file");
    fs::write(folder(root, "bytes"), b"---\nname: bytes\ndescription: \xff\xfe\n---\n").expect("a file");
    fs::write(folder(root, "nul"), b"---\nname: nul\ndescription: a\0b\n---\n").expect("a file");
    let laughs: Vec<String> =
        (1..10).map(|n| format!("a{n}: &a{n} [{}]", vec![format!("*a{}", n - 1); 9].join(","))).collect();
    let bomb = format!("---\nname: bomb\na0: &a0 [x]\n{}\n---\n", laughs.join("\n"));
    fs::write(folder(root, "bomb"), bomb).expect("a file");
    fs::write(folder(root, "brackets"), format!("---\nname: brackets\nx: {}\n---\n", "[".repeat(60_000)))
        .expect("a file");
    fs::write(folder(root, "unclosed"), "---\nname: unclosed\ndescription: For ever").expect("a file");
    fs::write(folder(root, "empty"), "").expect("a file");
    let odd = root.join(std::ffi::OsStr::from_bytes(b"b\xffd"));
    fs::create_dir(&odd).expect("a folder");
    fs::write(odd.join("SKILL.md"), "").expect("a file");
    for n in 0..piles {
        fs::create_dir_all(root.join(format!("piles/{n:04}"))).expect("a folder");
    }
    put(root, "good", &text("good", "Is good.", "GOOD BODY"));
}

fn list(daemon: &Daemon, session: &str) -> Vec<SkillInfo> {
    let list: Skills = daemon.client().get("skill.list", &json!({ "session": session }));
    list.skills
}

/// Checks that a skill's first problem tells what is wrong.
fn check(skills: &[SkillInfo], name: &str, valid: bool, says: &str) {
    let found = skills.iter().find(|skill| skill.name == name);
    let skill = found.unwrap_or_else(|| panic!("{name} is not listed: {skills:#?}"));
    let told = skill.problems.iter().any(|problem| problem.message.contains(says));
    assert!(skill.valid == valid && told, "{name} {says}: {skill:#?}");
}

const WRONG: [(&str, &str); 13] = [
    ("a-pipe", "not a regular file but a pipe"),
    ("a-socket", "not a regular file"),
    ("a-folder", "not a regular file but a folder"),
    ("a-loop", ""),
    ("a-device", "outside the workspace"),
    ("a-gigabyte", "longer than 1048576 bytes"),
    ("bytes", "UTF-8"),
    ("nul", "NUL"),
    ("bomb", ""),
    ("brackets", ""),
    ("empty", ""),
    ("b\u{fffd}d", ""),
    ("skills", "more than 2000 folders"),
];

#[test]
fn a_workspace_full_of_bad_files_hinders_nobody() {
    let ground = Ground::new();
    let (work, calm) = (ground.work("work"), ground.work("calm"));
    litter(&own(&work), 5000);
    let server = ModelServer::answering(|request, _| {
        let messages = request["messages"].as_array().expect("messages");
        let answered = messages.last().is_some_and(|last| last["role"] == "tool");
        Some(if answered { Turn::text("done") } else { load("c{n}", "good") })
    });
    let daemon =
        ground.daemon(&server, "", "tools = []\nskills = [\"good\", \"bomb\", \"bytes\", \"a-pipe\", \"a-gigabyte\"]");
    let (mut client, mut other) = (daemon.client(), daemon.client());
    let asked = client.begin("session.create", &json!({ "workspace": work })).expect("a daemon");
    other.get::<Value>("daemon.status", &json!({}));
    let quiet = session(&mut other, &calm, json!({}));
    other.run(&quiet, "p");
    let created = client.finish(asked).expect("an answer").expect("a session");
    let session = created["id"].as_str().expect("an id").to_owned();
    for _ in 0..2 {
        client.run(&session, "p");
    }
    let requests = server.requests();
    let last = requests.last().expect("a request");
    assert_eq!(catalogue(system(last)), ["good: Is good."]);
    let call = last["messages"].as_array().expect("messages").iter().rfind(|one| one["role"] == "tool");
    let call = call.expect("a result")["tool_call_id"].as_str().expect("an id");
    assert!(result(last, call).contains("GOOD BODY"), "{last}");
    let all: Skills = client.get("skill.list", &json!({"session": whole(&mut other, &work)}));
    for (name, says) in WRONG {
        check(&all.skills, name, false, says);
    }
    check(&all.skills, "unclosed", true, "");
    assert!(all.skills.iter().any(|skill| skill.name == "good" && skill.valid && skill.problems.is_empty()));
    assert!(list(&daemon, &session).iter().all(|skill| skill.name != "empty"), "the filter holds for bad ones too");
    let status: Value = client.get("daemon.status", &json!({}));
    assert!(status["rss_bytes"].as_u64().expect("a number") < 300 << 20, "{status}");
}

/// Makes a session that is offered everything.
fn whole(client: &mut nano_tests::client::Client, work: &Path) -> String {
    // A filter of the agent is not to be taken away by a session, so it names all that there could be.
    let names: Vec<&str> = WRONG.iter().map(|(name, _)| *name).chain(["good", "unclosed"]).collect();
    session(client, work, json!({ "skills": names }))
}

#[test]
fn bad_files_in_the_daemons_own_folder_are_listed_and_links_there_are_followed() {
    let ground = Ground::new();
    litter(&ground.paths(), 500);
    let beyond = ground.work("beyond");
    put(&beyond, "far", &text("far", "Is far away.", "FAR"));
    symlink(beyond.join("far"), ground.paths().join("far")).expect("a link");
    let server = ModelServer::script(vec![Turn::text("done")]);
    let daemon = ground.daemon(&server, "", "tools = []\nskills = [\"good\", \"far\"]");
    let mut client = daemon.client();
    let session = session(&mut client, &ground.work("work"), json!({}));
    client.run(&session, "p");
    assert_eq!(catalogue(system(&server.requests()[0])), ["far: Is far away.", "good: Is good."]);
    let all: Skills = client.get("skill.list", &json!({}));
    for (name, says) in [
        ("a-pipe", "a pipe"),
        ("a-device", "a device"),
        ("a-loop", "too many links"),
        ("a-gigabyte", "longer than"),
        ("bytes", "UTF-8"),
    ] {
        check(&all.skills, name, false, says);
    }
}

#[test]
fn links_out_of_a_workspace_are_listed_but_not_followed() {
    let ground = Ground::new();
    let work = ground.work("work");
    let beyond = ground.work("beyond");
    put(&beyond, "far", &text("far", "Is far away.", "FAR"));
    fs::create_dir_all(own(&work)).expect("a folder");
    symlink(beyond.join("far"), own(&work).join("far")).expect("a link");
    let file = folder(&own(&work), "file");
    symlink(beyond.join("far/SKILL.md"), file).expect("a link");
    put(&work.join("docs"), "near", &text("near", "Is near.", "NEAR"));
    symlink("../../docs/near", own(&work).join("near")).expect("a link");
    let server = ModelServer::script(vec![load("c1", "far"), Turn::text("done")]);
    let daemon = ground.daemon(&server, "", "tools = []\nskills = [\"far\", \"file\", \"near\"]");
    let mut client = daemon.client();
    let session = session(&mut client, &work, json!({}));
    client.run(&session, "p");
    let requests = server.requests();
    assert_eq!(catalogue(system(&requests[0])), ["near: Is near."]);
    assert!(result(&requests[1], "c1").contains("there is no skill `far`; there is `near`"), "{}", requests[1]);
    let skills = list(&daemon, &session);
    check(&skills, "far", false, "outside the workspace");
    check(&skills, "file", false, "outside the workspace");
}
