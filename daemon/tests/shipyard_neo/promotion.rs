//! Promotions that do not come to their good end.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use super::lifecycle::{candidate, session, text};
use super::records::envelope;
use super::server::{Act, Server, say};
use super::until;

#[tokio::test]
async fn what_cannot_be_installed_is_rolled_back_or_said_to_stay() {
    let server = Server::working();
    let (session, _) = session(&server).await;
    for payload in [json!({"commands": []}), json!({"skill_markdown": " "}), json!({"skill_markdown": 5})] {
        let id = candidate(&session, "first", payload).await;
        let told = session.failed("promote_skill_candidate", json!({"candidate_id": id, "stage": "stable"})).await;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["sync"]["ok"], false);
        let release = told["release"]["id"].as_str().unwrap();
        if told["rollback"]["ok"] == false {
            let state = told["rollback"]["state"].as_str().unwrap();
            assert!(state.contains(release) && state.contains("was not rolled back and stays active"), "{state}");
        } else {
            assert_eq!(told["rollback"]["in_force"]["rollback_of"], release);
        }
    }
    assert_eq!(server.asked("/rollback").len(), 3);
    // The first had nothing before it.
    let good = candidate(&session, "second", text("x")).await;
    session.done("promote_skill_candidate", json!({"candidate_id": good, "stage": "stable"})).await;
    std::fs::remove_dir_all(session.fixture.path(".agents")).unwrap();
    session.fixture.write(".agents", "not a folder");
    let next = candidate(&session, "second", text("y")).await;
    let told = session.failed("promote_skill_candidate", json!({"candidate_id": next, "stage": "stable"})).await;
    assert!(told.contains("could not be installed here") && told.contains(r#""rollback":{"ok":true"#), "{told}");
}

#[tokio::test]
async fn of_a_rollback_without_an_answer_nobody_knows_what_is_in_force() {
    let gone = say(404, &envelope("not_found", "no", &json!({})));
    let broken = say(500, &envelope("internal_error", "no", &json!({})));
    for rollback in [Act::Hang, broken] {
        let gone = gone.clone();
        let server = Server::start(move |asked| match asked.parts() {
            ("GET", path, _) if path.starts_with("/v1/skills/candidates/") => gone.clone(),
            (_, path, _) if path.ends_with("/rollback") => rollback.clone(),
            _ => Act::Serve,
        });
        let (session, _) = session(&server).await;
        let id = candidate(&session, "k", text("x")).await;
        let told = session.failed("promote_skill_candidate", json!({"candidate_id": id, "stage": "stable"})).await;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["rollback"]["ok"], false);
        assert!(told["rollback"]["error"].as_str().unwrap().contains("whether it took effect is not known"), "{told}");
        let state = told["rollback"]["state"].as_str().unwrap();
        assert!(state.contains("unknown whether") && !state.contains("stays active"), "{state}");
    }
}

#[tokio::test]
async fn a_promotion_that_is_given_up_is_rolled_back_all_the_same() {
    let (go, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let gone = say(404, &envelope("not_found", "no", &json!({})));
    let server = Server::start(move |asked| match asked.parts() {
        ("GET", path, _) if path.starts_with("/v1/skills/candidates/") => {
            held.lock().unwrap().recv_timeout(Duration::from_secs(30)).ok();
            gone.clone()
        }
        _ => Act::Serve,
    });
    let (session, _) = session(&server).await;
    let id = candidate(&session, "k", text("x")).await;
    tokio::select! {
        told = session.call("promote_skill_candidate", json!({"candidate_id": id, "stage": "stable"})) => {
            panic!("{told:?}");
        }
        () = until(|| !server.asked("GET /v1/skills/candidates/").is_empty()) => {}
    }
    assert!(server.asked("/rollback").is_empty());
    go.send(()).unwrap();
    session.fixture.context.sandbox.as_ref().unwrap().shutdown().await;
    assert_eq!(server.asked("/rollback").len(), 1, "the end of the session waits for it");
}
