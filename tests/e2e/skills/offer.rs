//! What a session is offered: its tools in order, its catalogue, its prompt byte for byte, and nobody else's.

use std::fs;

use nano_protocol::session::SessionTools;
use nano_protocol::skill::Skills;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use serde_json::{Value, json};

use super::{
    Ground, calls, catalogue, done, listed, offered, own, prompts, put, result, session, system, text, unasked,
};

/// Profiles by name.
const AGENTS: &str = r#"
[agents.clerk]
tools = ["read_file", "datetime"]
skills = ["git-workflow"]
[agents.krelc]
tools = ["datetime", "read_file"]
skills = ["git-workflow"]
[agents.ignorant]
tools = ["read_file", "datetime"]
skills = []
[agents.reader]
tools = []
skills = ["git-workflow", "code-review"]
[agents.hopeful]
tools = ["exec"]
skills = ["there-is-none"]
[agents.plain]
tools = ["grep", "exec"]
"#;
const SHIPPED: &str = "code-review git-workflow nanod-operations write-a-skill";

#[test]
fn load_skill_comes_first_and_only_with_something_to_load() {
    let server = done();
    let daemon = Daemon::with(&server, Setup { extra: AGENTS.into(), ..Setup::default() });
    let mut client = daemon.client();
    for (params, tools, skills) in [
        (json!({"agent": "clerk"}), "load_skill read_file datetime", "git-workflow"),
        (json!({"agent": "krelc"}), "load_skill read_file datetime", "git-workflow"),
        (json!({"agent": "ignorant"}), "read_file datetime", ""),
        (json!({"agent": "reader"}), "load_skill", "code-review git-workflow"),
        (json!({"agent": "hopeful"}), "exec", ""),
        (json!({"agent": "plain"}), "load_skill exec grep", SHIPPED),
        (json!({"agent": "default", "tools": []}), "load_skill", SHIPPED),
        (json!({"agent": "clerk", "skills": ["code-review"]}), "load_skill read_file datetime", "code-review"),
        (json!({"agent": "clerk", "skills": []}), "read_file datetime", ""),
        (json!({"agent": "clerk", "tools": ["exec"]}), "load_skill exec", "git-workflow"),
        (json!({"agent": "clerk", "tools": []}), "load_skill", "git-workflow"),
        (json!({"agent": "ignorant", "skills": ["code-review"]}), "load_skill read_file datetime", "code-review"),
        (json!({"agent": "ignorant", "tools": []}), "", ""),
        (json!({"agent": "clerk", "booter": "none", "tools": ["exec"]}), "load_skill", "git-workflow"),
    ] {
        let session = daemon.session_with(&mut client, params.clone());
        let shown: SessionTools = client.get("session.tools", &json!({ "session": session }));
        let shown: Vec<_> = shown.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(shown.join(" "), tools, "{params}");
        client.run(&session, "p");
        let request = server.requests().pop().expect("a request");
        let prompt = system(&request);
        assert_eq!((offered(&request).as_str(), listed(prompt).as_str()), (tools, skills), "{params}");
        assert_eq!(prompt.contains("Available Skills"), !skills.is_empty(), "{params}: {prompt}");
        assert_eq!(prompt.contains("load_skill"), !skills.is_empty(), "{params}: {prompt}");
    }
}

/// Checks the parts of a prompt, and that it is what the model gets, thrice and after a restart.
fn check_prompt(skills: &str, parts: &[&str], catalogued: &str, absent: &[&str]) {
    let ground = Ground::new();
    let work = ground.work("work");
    put(&ground.paths(), "zeal", &unasked("zeal", "ZEAL"));
    put(&ground.paths(), "plain", &text("plain", "Plain.", "PLAIN"));
    put(&own(&work), "amber", &unasked("amber", "AMBER"));
    let server = done();
    let skills = skills.replace("ROOT", &ground.0.path().to_string_lossy());
    let mut daemon = ground.daemon(&server, &skills, "system_prompt = \"Be brief.\"\ntools = [\"exec\"]");
    let mut client = daemon.client();
    let session = session(&mut client, &work, json!({}));
    let before = prompts(&mut client, &session);
    let sources: Vec<_> = before.prompts.iter().map(|prompt| prompt.source.as_str()).collect();
    assert_eq!(sources, parts);
    let texts: Vec<_> = before.prompts.iter().map(|prompt| prompt.text.as_str()).collect();
    assert_eq!(texts.join("\n\n"), before.assembled);
    assert!(before.assembled.starts_with("Be brief.\n\n"), "{}", before.assembled);
    assert_eq!(listed(&before.assembled), catalogued);
    for text in absent {
        assert!(!before.assembled.contains(text), "{text} in {}", before.assembled);
    }
    for _ in 0..3 {
        client.run(&session, "p");
    }
    let after = prompts(&mut client, &session);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let restarted = prompts(&mut client, &session);
    client.run(&session, "q");
    let sent: Vec<String> = server.requests().iter().map(|request| system(request).to_owned()).collect();
    assert_eq!(sent, vec![before.assembled.clone(); 4]);
    assert_eq!((after.assembled, restarted.assembled), (before.assembled.clone(), before.assembled));
}

#[test]
fn the_prompt_that_is_shown_is_sent_and_bodies_stand_in_it_where_they_are_trusted() {
    let rest = format!("plain {SHIPPED}").split(' ').map(str::to_owned).collect::<Vec<_>>();
    let sorted = |extra: &[&str]| {
        let mut all: Vec<&str> = rest.iter().map(String::as_str).chain(extra.iter().copied()).collect();
        all.sort_unstable();
        all.join(" ")
    };
    check_prompt(
        "",
        &["agent", "booter:local", "skill:zeal", "core", "core"],
        &sorted(&["amber"]),
        &["AMBER", "PLAIN"],
    );
    let both = ["agent", "booter:local", "skill:amber", "skill:zeal", "core", "core"];
    check_prompt("trust = [\"ROOT\"]", &both, &sorted(&[]), &["PLAIN"]);
    check_prompt("trust = [\"ROOT/work\"]", &both, &sorted(&[]), &["PLAIN"]);
    let untrusted = ["agent", "booter:local", "skill:zeal", "core", "core"];
    check_prompt("trust = [\"ROOT/wor\", \"ROOT/work/below\"]", &untrusted, &sorted(&["amber"]), &["AMBER", "PLAIN"]);
}

#[test]
fn sessions_of_one_daemon_see_their_own_skills_alone() {
    let ground = Ground::new();
    put(&ground.paths(), "common", &text("common", "For all.", "COMMON"));
    let works = ["one", "two"].map(|name| ground.work(name));
    for (work, own_name) in works.iter().zip(["alpha", "beta"]) {
        let place = work.file_name().expect("a name").to_string_lossy().to_uppercase();
        put(&own(work), own_name, &text(own_name, &format!("Only in {place}."), &format!("BODY-{place}")));
        put(&own(work), "shared", &text("shared", &format!("As in {place}."), &format!("SHARED-{place}")));
    }
    // Each model asks for everything.
    let asked = ["alpha", "beta", "shared", "common"];
    let server = ModelServer::answering(move |request, _| {
        let messages = request["messages"].as_array().expect("messages");
        let answered = messages.last().is_some_and(|last| last["role"] == "tool");
        let all = asked.map(|name| (name, "load_skill", json!({ "name": name })));
        Some(if answered { Turn::text("done") } else { calls(&all) })
    });
    let daemon = ground.daemon(&server, "", "tools = []");
    for (work, filter, names, bodies) in [
        (0, json!(["alpha", "shared", "common"]), "alpha common shared", ["BODY-ONE", "", "SHARED-ONE", "COMMON"]),
        (1, json!(["alpha", "beta", "shared"]), "beta shared", ["", "BODY-TWO", "SHARED-TWO", ""]),
        (0, json!(["shared"]), "shared", ["", "", "SHARED-ONE", ""]),
        (1, json!(["common", "code-review"]), "code-review common", ["", "", "", "COMMON"]),
    ] {
        let mut client = daemon.client();
        let session = session(&mut client, &works[work], json!({ "skills": filter }));
        client.run(&session, "p");
        let request = server.requests().pop().expect("a request");
        assert_eq!(listed(system(&request)), names);
        let place = if work == 0 { "ONE" } else { "TWO" };
        let foreign = if work == 0 { "TWO" } else { "ONE" };
        assert!(!request.to_string().contains(foreign), "{place}: {request}");
        for (name, body) in asked.iter().zip(bodies) {
            let said = result(&request, name);
            let expected = if body.is_empty() { format!("there is no skill `{name}`") } else { body.to_owned() };
            assert!(said.contains(&expected), "{place} {filter}: {said}");
            let missing = asked.iter().filter(|other| !names.contains(**other) && *other != name);
            let tells = missing.filter(|other| said.contains(&format!("`{other}`"))).count();
            assert_eq!(tells, 0, "{place} {filter}: {said}");
        }
        let list: Skills = client.get("skill.list", &json!({ "session": session }));
        let mut found: Vec<_> = list.skills.iter().map(|skill| skill.name.as_str()).collect();
        found.dedup();
        assert_eq!(found.join(" "), names);
        assert!(!json!(list.skills).to_string().contains(foreign), "{:?}", list.skills);
    }
    let all: Skills = daemon.client().get("skill.list", &json!({}));
    assert!(all.skills.iter().all(|skill| skill.source != "workspace"), "{:?}", all.skills);
    assert!(all.skills.iter().any(|skill| skill.name == "common"), "{:?}", all.skills);
}

#[test]
fn of_one_name_the_configured_one_counts_then_the_workspaces_then_the_shipped_one() {
    let ground = Ground::new();
    let work = ground.work("work");
    let server = done();
    let daemon = ground.daemon(&server, "", "tools = []\nskills = [\"git-workflow\"]");
    let mut client = daemon.client();
    let session = session(&mut client, &work, json!({}));
    let mut told = |expected: &str| {
        client.run(&session, "p");
        let request = server.requests().pop().expect("a request");
        let prompt = system(&request).to_owned();
        assert_eq!(catalogue(&prompt).len(), 1, "{prompt}");
        assert!(catalogue(&prompt)[0].starts_with(&format!("git-workflow: {expected}")), "{prompt}");
        let list: Skills = client.get("skill.list", &json!({ "session": session }));
        list.skills.iter().map(|skill| skill.source.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(told("Works with git"), "shipped");
    put(&own(&work), "git-workflow", &text("git-workflow", "Ours.", "OURS"));
    assert_eq!(told("Ours."), "workspace shipped");
    put(&ground.paths(), "git-workflow", &text("git-workflow", "Theirs.", "THEIRS"));
    assert_eq!(told("Theirs."), "config workspace shipped");
    put(&ground.paths(), "git-workflow", &text("git-workflow", "", "THEIRS"));
    fs::remove_dir_all(own(&work)).expect("the skills");
    assert_eq!(told("Theirs."), "config shipped", "what was good serves on");
    fs::remove_dir_all(ground.paths()).expect("the skills");
    assert_eq!(told("Works with git"), "shipped");
    let list: Value = client.get("skill.list", &json!({ "session": session }));
    assert_eq!(list["skills"][0]["problems"], json!([]));
}
