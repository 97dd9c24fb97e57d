//! Questions that no rule has asked for: they wait for who is there, and not for nobody.

use std::fs;

use nano_protocol::approval::{Approval, ApprovalState, Approvals};
use nano_protocol::message::NotRun;
use nano_protocol::task::TaskState;
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::wait;
use serde_json::{Value, json};

use crate::approvals::{all, answer, asked, commands, daemon, results};
use crate::confine::shell;

/// How long such a question waits for nobody.
const UNHEARD_MS: i64 = 5000;
const HOUR_MS: i64 = 3_600_000;
const AGENT: &str = "approve_timeout = \"1h\"";

fn wait_of(approval: &Approval) -> i64 {
    approval.expires_at.0 - approval.created_at.0
}

fn subscribe(client: &mut Client, params: &Value) {
    client.get::<Value>("events.subscribe", params);
}

fn victim(daemon: &Daemon) -> std::path::PathBuf {
    let victim = daemon.root().join("victim");
    fs::create_dir_all(&victim).expect("a folder");
    fs::write(victim.join("kept"), "as it was\n").expect("a file");
    victim
}

#[test]
fn where_nobody_is_there_the_task_goes_on() {
    // However it is spelt; each session has one, so that they wait together.
    let spellings = [
        "rm -rf ../victim",
        "rm  -r\t-f ../victim",
        "'rm' --recursive --force ../victim; rm -rf \"$PWD/../victim\"",
        "r\\m -r\\f ../victim",
        "X='rm -r'; $X -f ../victim",
        "rm -rf${IFS}../victim",
        "cd ../victim && rm -r ./*",
        "find ../victim -delete",
        "find ../victim -exec rm {} +",
        "eval \"rm -r\"\"f ../victim\"",
        "xargs rm -fr <<< ../victim",
        "env -S 'rm -rf ../victim'",
        "sh <(echo rm -rf ../victim)",
        "echo cm0gLXJmIC4uL3ZpY3RpbQ== | base64 -d | sh",
        "python3 -c \"import shutil; shutil.rmtree('../victim')\"",
        "mv ../victim elsewhere",
        "truncate -s0 ../victim/kept; : > ../victim/kept; cp /dev/null ../victim/kept",
        "dd of=../victim/kept if=/dev/null; shred -u ../victim/kept; sed -i d ../victim/kept",
        "tar --remove-files -cf t.tar ../victim",
        "mkf''s.ext4 ../victim/kept; wipefs -a ../victim/kept",
    ];
    let server = shell();
    let daemon = daemon(&server, AGENT);
    let victim = victim(&daemon);
    let mut client = daemon.client();
    // A log of everything is nobody.
    subscribe(&mut client, &json!({}));
    subscribe(&mut client, &json!({"types": ["task.finished", "approval.answered"]}));
    let tasks = spellings.map(|spelling| {
        let session = daemon.session(&mut client);
        let task = client.submit(&session, spelling);
        (spelling, session, task)
    });
    for (spelling, session, task) in tasks {
        assert_eq!(client.settled(&task.id).state, TaskState::Succeeded, "{spelling}");
        let [result] = results(&mut client, &session).try_into().expect("one result");
        if result.not_run == Some(NotRun::Denied) {
            assert!(result.content.contains("nobody watches this session"), "{spelling}: {result:?}");
        }
    }
    assert_eq!(fs::read_to_string(victim.join("kept")).expect("a file"), "as it was\n");
    let asked = all(&mut client);
    assert!(asked.len() > 10, "{} were asked about", asked.len());
    for approval in asked {
        assert_eq!((approval.state, wait_of(&approval)), (ApprovalState::Expired, UNHEARD_MS), "{approval:?}");
    }
}

#[test]
fn who_says_that_he_is_there_is_waited_for() {
    for of_one in [false, true] {
        let server = commands(&["rm -rf ../victim"]);
        let daemon = daemon(&server, AGENT);
        victim(&daemon);
        let mut client = daemon.client();
        let session = daemon.session(&mut client);
        let mut watching = daemon.client();
        let mut params = json!({"types": ["approval.requested", "task.finished"]});
        if of_one {
            params["session"] = json!(session);
        }
        subscribe(&mut watching, &params);
        let task = client.submit(&session, "p");
        let approval = asked(&mut client);
        assert_eq!(wait_of(&approval), HOUR_MS, "of one session: {of_one}");
        assert_eq!(answer(&mut client, &approval, false).state, ApprovalState::Denied);
        assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    }
}

#[test]
fn who_watches_another_session_or_has_gone_is_nobody() {
    let server = shell();
    let daemon = daemon(&server, AGENT);
    let mut client = daemon.client();
    let other = daemon.session(&mut client);
    subscribe(&mut client, &json!({"session": other, "types": ["approval.requested"]}));
    let mut gone = daemon.client();
    subscribe(&mut gone, &json!({"types": ["approval.requested"]}));
    drop(gone);
    // That it has gone is known a little later.
    wait::until("a question that nobody hears", || {
        let session = daemon.session(&mut client);
        client.submit(&session, "rm -rf ../victim");
        let approval = wait::until("an approval", || {
            let of = json!({"session": session});
            client.get::<Approvals>("approval.list", &of).approvals.pop()
        });
        (wait_of(&approval) == UNHEARD_MS).then_some(())
    });
}

#[test]
fn who_comes_in_time_has_the_full_time() {
    let server = commands(&["rm -rf ../victim"]);
    let daemon = daemon(&server, AGENT);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    let first = asked(&mut client);
    assert_eq!(wait_of(&first), UNHEARD_MS);
    subscribe(&mut client, &json!({"types": ["approval.requested"]}));
    let longer = wait::until("more time", || {
        let now = asked(&mut client);
        (now.expires_at != first.expires_at).then_some(now)
    });
    assert_eq!((&longer.id, wait_of(&longer)), (&first.id, HOUR_MS));
    answer(&mut client, &longer, false);
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
}

#[test]
fn what_a_rule_asks_is_asked_in_any_case() {
    for rule in ["dangerous: ask", "exec: ask"] {
        let server = commands(&["rm -rf ../victim"]);
        let daemon = daemon(&server, &format!("{AGENT}\napprove = [\"{rule}\"]"));
        let mut client = daemon.client();
        let session = daemon.session(&mut client);
        client.submit(&session, "p");
        let approval = asked(&mut client);
        assert_eq!(wait_of(&approval), HOUR_MS, "{rule}: {approval:?}");
    }
}
