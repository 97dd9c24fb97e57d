//! The second layer: loaded, followed, edited and deleted under the eyes of a running task.

use std::fs;
use std::path::Path;

use nano_protocol::event::EventType;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::transcript;
use serde_json::{Value, json};

use super::{Ground, calls, catalogue, done, load, offered, own, put, result, session, system, text};

/// Puts the skill `guide` with its files into the folder of `skills.paths`, and a file beside it.
fn put_guide(ground: &Ground) -> std::path::PathBuf {
    let folder = put(&ground.paths(), "guide", &text("guide", "First words.", "FIRST BODY: read references/one.md"));
    for (name, content) in [("references/one.md", "the reference"), ("scripts/run.sh", "echo ran")] {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }
    fs::write(ground.paths().join("secret.txt"), "SECRET").expect("a file");
    std::os::unix::fs::symlink("../secret.txt", folder.join("link.txt")).expect("a link");
    folder
}

#[test]
fn a_body_comes_with_its_folder_and_files_which_can_be_read_and_nothing_else() {
    let ground = Ground::new();
    let folder = put_guide(&ground);
    let at = |name: &str| folder.join(name).display().to_string();
    let read = |id: &'static str, path: String| (id, "read_file", json!({ "path": path }));
    let write = |id: &'static str, path: String| (id, "write_file", json!({"path": path, "content": "mine"}));
    let server = ModelServer::script(vec![
        load("c1", "guide"),
        calls(&[
            read("c2", at("references/one.md")),
            read("c3", at("../secret.txt")),
            read("c4", ground.paths().join("secret.txt").display().to_string()),
            read("c5", at("link.txt")),
            write("c6", at("references/one.md")),
            write("c7", at("new.md")),
            ("c8", "edit_file", json!({"path": at("SKILL.md"), "old_text": "FIRST", "new_text": "MY"})),
            read("c9", "references/one.md".into()),
        ]),
        Turn::text("done"),
    ]);
    let daemon = ground.daemon(&server, "", "tools = [\"read_file\", \"write_file\", \"edit_file\"]");
    let mut client = daemon.client();
    let session = session(&mut client, &ground.work("work"), json!({}));
    client.run(&session, "p");
    let requests = server.requests();
    assert!(catalogue(system(&requests[0])).contains(&"guide: First words."), "{}", system(&requests[0]));
    assert!(!system(&requests[0]).contains("FIRST BODY"), "{}", system(&requests[0]));
    let loaded = result(&requests[1], "c1");
    for part in ["FIRST BODY: read references/one.md", &at(""), "references/one.md, scripts/run.sh"] {
        assert!(loaded.contains(part.trim_end_matches('/')), "{part} in {loaded}");
    }
    assert!(!loaded.contains("description:") && !loaded.contains("secret"), "{loaded}");
    let last = &requests[2];
    assert!(result(last, "c2").contains("the reference"), "{}", result(last, "c2"));
    for refused in ["c3", "c4", "c5", "c6", "c7", "c8"] {
        let said = result(last, refused);
        assert!(said.contains("outside the workspace") && !said.contains("SECRET"), "{refused}: {said}");
    }
    assert!(result(last, "c9").contains("no such file"), "relative paths mean the workspace: {}", result(last, "c9"));
    assert_eq!(fs::read_to_string(folder.join("references/one.md")).expect("a file"), "the reference");
    assert!(!folder.join("new.md").exists());
    let rendered = transcript::render(&transcript::read(&mut client, &session));
    assert!(rendered.contains("T(c1) A[c2,c3,c4,c5,c6,c7,c8,c9] T(c2) T!(c3) T!(c4)"), "{rendered}");
}

/// Plays a task in which skills are edited from inside and outside, and deleted, before the turns that are gated.
fn play(ground: &Ground) -> (ModelServer, Daemon, String) {
    let new = text("note", "Second note.", "NOTE BODY 2");
    // Below the level host tools do not write skills.
    let write = format!("printf %s '{new}' > .agents/skills/note/SKILL.md");
    let server = ModelServer::script(vec![
        calls(&[
            ("c1", "load_skill", json!({"name": "guide"})),
            ("c2", "load_skill", json!({"name": "note"})),
            ("c3", "exec", json!({"command": write})),
        ]),
        load("c4", "note").gated("edited"),
        load("c5", "guide"),
        Turn::exec("c6", "true").gated("deleted"),
        calls(&[
            ("c7", "load_skill", json!({"name": "guide"})),
            ("c8", "load_skill", json!({"name": "notes"})),
            ("c9", "load_skill", json!({"name": "note"})),
        ]),
        Turn::text("done"),
    ]);
    put_guide(ground);
    let work = ground.work("work");
    put(&own(&work), "note", &text("note", "First note.", "NOTE BODY 1"));
    let daemon = ground.daemon(&server, "", "tools = [\"write_file\", \"exec\"]\nskills = [\"guide\", \"note\"]");
    let session = session(&mut daemon.client(), &work, json!({"level": "host"}));
    (server, daemon, session)
}

#[test]
fn what_is_edited_and_deleted_on_the_way_serves_from_the_next_turn() {
    let ground = Ground::new();
    let (server, daemon, session) = play(&ground);
    let mut client = daemon.client();
    let task = client.submit(&session, "p");
    server.wait_requests(2);
    put(&ground.paths(), "guide", &text("guide", "Second words.", "SECOND BODY"));
    server.open("edited");
    server.wait_requests(4);
    fs::remove_dir_all(ground.paths().join("guide")).expect("the skill");
    server.open("deleted");
    client.settled(&task.id);
    let requests = server.requests();
    let seen: Vec<String> = requests.iter().map(|request| catalogue(system(request)).join(" ")).collect();
    assert_eq!(
        seen,
        [
            "guide: First words. note: First note.",
            "guide: First words. note: Second note.",
            "guide: Second words. note: Second note.",
            "guide: Second words. note: Second note.",
            "note: Second note.",
            "note: Second note.",
        ]
    );
    let last = requests.last().expect("a request");
    for (call, says) in [
        ("c1", "FIRST BODY"),
        ("c2", "NOTE BODY 1"),
        ("c4", "NOTE BODY 2"),
        ("c5", "SECOND BODY"),
        ("c7", "there is no skill `guide`; there is `note`"),
        ("c8", "there is no skill `notes`; there is `note`"),
        ("c9", "NOTE BODY 2"),
    ] {
        assert!(result(last, call).contains(says), "{call}: {}", result(last, call));
    }
    let rendered = transcript::render(&transcript::read(&mut client, &session));
    assert!(rendered.contains("T!(c7) T!(c8) T(c9)"), "{rendered}");
}

/// Returns what the session's tool changes added and removed.
fn changes(daemon: &Daemon) -> Vec<(Value, Value)> {
    let history = daemon.history();
    let changed = history.iter().filter(|event| event.kind == EventType::SessionToolsChanged);
    changed.map(|event| (event.data["added"].clone(), event.data["removed"].clone())).collect()
}

#[test]
fn load_skill_goes_with_the_last_skill_and_comes_back_with_it() {
    let ground = Ground::new();
    let work = ground.work("work");
    put(&own(&work), "x", &text("x", "About x.", "X"));
    let server = ModelServer::script(vec![
        load("c1", "x").gated("deleted"),
        Turn::text("one"),
        Turn::text("two"),
        Turn::text("three"),
    ]);
    let mut daemon = ground.daemon(&server, "", "tools = [\"datetime\"]\nskills = [\"x\"]");
    let mut client = daemon.client();
    let session = session(&mut client, &work, json!({}));
    let task = client.submit(&session, "p");
    server.wait_requests(1);
    fs::remove_dir_all(own(&work).join("x")).expect("the skill");
    server.open("deleted");
    client.settled(&task.id);
    assert_eq!(changes(&daemon), [(json!([]), json!(["load_skill"]))]);
    put(&own(&work), "x", &text("x", "About x.", "X"));
    client.run(&session, "q");
    let back = (json!(["load_skill"]), json!([]));
    assert_eq!(changes(&daemon).get(1), Some(&back));
    daemon.kill9();
    fs::remove_dir_all(own(&work)).expect("the skills");
    daemon.restart();
    daemon.client().run(&session, "r");
    assert_eq!(changes(&daemon)[1..], [back, (json!([]), json!(["load_skill"]))]);
    let tools: Vec<String> = server.requests().iter().map(offered).collect();
    assert_eq!(tools, ["load_skill datetime", "datetime", "load_skill datetime", "datetime"]);
}

#[test]
fn what_one_session_loads_after_a_restart_is_what_is_there_then() {
    let ground = Ground::new();
    let work = ground.work("work");
    put_guide(&ground);
    let server =
        ModelServer::script(vec![load("c1", "guide"), Turn::text("one"), load("c2", "guide"), Turn::text("two")]);
    let mut daemon = ground.daemon(&server, "", "tools = []");
    let mut client = daemon.client();
    let session = session(&mut client, &work, json!({}));
    client.run(&session, "p");
    daemon.kill9();
    put(&ground.paths(), "guide", &text("guide", "Second words.", "SECOND BODY"));
    daemon.restart();
    daemon.client().run(&session, "q");
    let requests = server.requests();
    assert!(catalogue(system(&requests[2])).contains(&"guide: Second words."), "{}", system(&requests[2]));
    let last = requests.last().expect("a request");
    assert!(result(last, "c1").contains("FIRST BODY") && result(last, "c2").contains("SECOND BODY"), "{last}");
}

/// Checks that a skill serves as it was while its file gets worse step by step, and as it is once it is good again.
#[test]
fn half_a_file_never_replaces_a_good_one() {
    let ground = Ground::new();
    let work = ground.work("work");
    let server = done();
    let daemon = ground.daemon(&server, "", "tools = []\nskills = [\"x\"]");
    put(&own(&work), "x", &text("x", "Good.", "X"));
    let mut client = daemon.client();
    let session = session(&mut client, &work, json!({}));
    let mut seen = |content: &str, expected: &str| {
        rewrite(&own(&work).join("x/SKILL.md"), content);
        client.run(&session, "p");
        let request = server.requests().pop().expect("a request");
        assert_eq!(catalogue(system(&request)), [expected], "{content:?}");
    };
    seen("", "x: Good.");
    seen("---\nname: x\ndescr", "x: Good.");
    seen("---\nname: x\n---\n", "x: Good.");
    seen("---\nname: x\ndescription: Better.\n---\nX", "x: Better.");
}

fn rewrite(path: &Path, content: &str) {
    fs::write(path, content).expect("a file");
}
