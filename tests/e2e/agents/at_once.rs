//! Two who change or use profiles at the same time, and the shell.

use super::*;

#[test]
fn two_clients_lose_no_update() {
    let server = server();
    let daemon = Daemon::start(&server);
    daemon.client().get::<Value>("agent.create", &json!({"name": "w"}));
    let (mut one, mut other) = (daemon.client(), daemon.client());
    for n in 1..=20_u64 {
        let both = [
            (&mut one, json!({"name": "w", "max_turns": n})),
            (&mut other, json!({"name": "w", "skills": [format!("s{n}")]})),
        ];
        let asked = both.map(|(client, params)| {
            let id = client.begin("agent.update", &params).expect("a daemon");
            (client, id)
        });
        for (client, id) in asked {
            client.finish(id).expect("an answer").expect("a result");
        }
        let shown = agent(&daemon, "w");
        assert_eq!((u64::from(shown.max_turns), shown.skills), (n, Some(vec![format!("s{n}")])));
    }
    let made: Vec<_> = [&mut one, &mut other]
        .map(|client| (client.begin("agent.create", &json!({"name": "only"})).expect("a daemon"), client))
        .map(|(id, client)| client.finish(id).expect("an answer").map_err(|error| error.code).map(drop))
        .into();
    assert!(made.contains(&Ok(())) && made.contains(&Err(-32002)), "{made:?}");
}

#[test]
fn no_session_opens_with_a_profile_that_is_being_deleted() {
    let server = server();
    let daemon = Daemon::start(&server);
    let (mut one, mut other) = (daemon.client(), daemon.client());
    for n in 0..20 {
        let name = json!(format!("w{n}"));
        one.get::<Value>("agent.create", &json!({ "name": name }));
        let opening = one.begin("session.create", &json!({ "agent": name })).expect("a daemon");
        let deleting = other.begin("agent.delete", &json!({ "name": name })).expect("a daemon");
        let opened = one.finish(opening).expect("an answer").map_err(|error| error.code).map(drop);
        let deleted = other.finish(deleting).expect("an answer").map_err(|error| error.code).map(drop);
        let one_of_them = matches!((opened, deleted), (Ok(()), Err(-32002)) | (Err(-32602), Ok(())));
        assert!(one_of_them, "{opened:?} {deleted:?}");
    }
}

#[test]
fn from_the_shell() {
    let server = server();
    let daemon = Daemon::start(&server);
    let create = ["agents", "create", "clerk", "--prompt", "-", "--tools", "datetime,read_file", "--skills", ""];
    let made = daemon.ctl(create).input("You are a clerk.\n").run();
    assert_eq!(made.expect_code(0), "clerk");
    assert_eq!(daemon.ctl(["run", "--agent", "clerk", "Go"]).run().expect_code(0), "done");
    assert!(offered(&server) == "read_file datetime" && prompt(&server).starts_with("You are a clerk.\n"));
    let refused = daemon.ctl(["agents", "create", "clerk"]).run().expect_error(5);
    assert!(refused.contains("there is an agent clerk already"), "{refused}");
    let edited = daemon.ctl(["agents", "edit", "clerk", "--tools", "", "--reset", "skills", "--max-turns", "4"]).run();
    assert_eq!(edited.expect_code(0), "clerk changed");
    let shown = agent(&daemon, "clerk");
    assert_eq!((shown.tools, shown.skills, shown.max_turns), (Some(Vec::new()), None, 4));
    let export = json!({"data": [
        {"id": 1, "name": "Code Reviewer", "systemPrompt": "Review.", "skillIds": ["BashSkill", "ReadFileSkill", 9],
         "skillNames": "[\"code-review\"]", "modelName": "scripted"},
        {"name": "clerk"},
        {"name": "open", "toolIds": [], "skillNames": []},
    ]});
    let imported = daemon.ctl(["agents", "import", "-"]).input(&export.to_string()).run();
    assert_eq!(imported.expect_code(5), "Code-Reviewer\nopen");
    for says in
        ["does not fit and became Code-Reviewer", "the tool 9 is a number", "clerk: there is an agent clerk already"]
    {
        assert!(imported.stderr.contains(says), "{says}: {imported:?}");
    }
    let shown = agent(&daemon, "Code-Reviewer");
    let lists = (shown.tools.unwrap_or_default().join(" "), shown.skills.unwrap_or_default().join(" "));
    assert_eq!((lists, shown.model.as_deref()), (("exec read_file".into(), "code-review".into()), Some("scripted")));
    let shown = agent(&daemon, "open");
    assert_eq!((shown.tools, shown.skills), (None, None));
    let busy = daemon.ctl(["agents", "delete", "clerk"]).run().expect_error(5);
    assert!(busy.contains("1 open session uses agent clerk"), "{busy}");
    assert_eq!(daemon.ctl(["agents", "delete", "open"]).run().expect_code(0), "open deleted");
    assert!(daemon.ctl(["agents", "show", "open"]).run().expect_error(4).contains("nanoctl agents list"));
}
