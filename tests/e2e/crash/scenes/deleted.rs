//! A session that is deleted: whoever was not answered finds it gone or whole, and can delete it again.

use std::path::PathBuf;

use nano_protocol::error::ErrorKind;
use nano_protocol::followup::{Followup, Followups};
use nano_protocol::session::Session;
use nano_protocol::task::Task;
use nano_tests::model_server::Turn;
use nano_tests::wait;
use serde_json::{Value, json};

use super::super::run::Run;
use super::super::scene::Scene;
use super::super::story::Story;
use super::{calls, has_called, succeeded};

/// Makes a session that has done something, in the given workspace or one of its own.
fn session(run: &mut Run, content: &str, workspace: &Value) {
    let params = json!({"workspace": workspace, "skills": [], "idempotency_key": content});
    run.session = run.ask::<Session>("session.create", &params).id.0;
    run.submit(content);
    run.settle();
}

/// The session that is deleted writes a file, as only then is its own workspace made.
fn model(request: &Value, n: usize) -> Turn {
    let goes = request["messages"].to_string().contains("goes");
    let file = ("write_file", json!({"path": "file", "content": "its own"}));
    if goes && !has_called(request) { calls(n, &[file]) } else { Turn::text("done") }
}

/// Returns its own workspace.
fn folder(run: &Run) -> PathBuf {
    run.daemon.state().join("workspaces").join(&run.session)
}

/// Asks once, and notes whether it is gone.
fn delete(run: &mut Run) {
    let params = json!({ "session": run.session });
    let answered = run.client().try_call("session.delete", &params);
    let Err(error) = run.try_ask("session.get", &params) else {
        return assert!(answered.is_none(), "it is there, and was answered: {answered:?}");
    };
    assert_eq!(error.data.kind, ErrorKind::NotFound, "{error:?}");
    assert!(answered.is_none() || !folder(run).exists(), "its own workspace is left");
    run.is_gone();
}

fn gone_or_whole(run: &mut Run, story: &Story) {
    succeeded(run, story);
    let there = usize::from(run.gone.is_empty());
    let counts = [story.sessions.len(), story.tasks.len(), story.messages().count()];
    assert_eq!(counts, [1 + there, 2 + there, 4 + 4 * there], "{:#?}", story.sessions);
    let of_it = |of: &str| of == run.session;
    let events = story.history.iter().any(|event| event.session.as_ref().is_some_and(|id| of_it(id.as_str())));
    assert_eq!(events, there == 1, "events are left, or gone alone");
    if there == 1 {
        let later: Followups = run.ask("followup.list", &json!({ "session": run.session }));
        assert_eq!(later.followups.len(), 1, "it is whole, and so are its follow-ups");
        delete(run);
    }
    let folders = ["workspaces", "spill"].map(|kind| run.daemon.state().join(kind).join(&run.session));
    wait::until("the end of its folders", || folders.iter().all(|folder| !folder.exists()).then_some(()));
    let left: Followups = run.ask("followup.list", &json!({}));
    assert!(run.gone.len() == 1 && left.followups.is_empty(), "it cannot be deleted again: {left:?}");
    assert!(run.daemon.workspace().is_dir(), "a workspace that was given stays");
}

pub const DELETED: Scene = Scene {
    check: gone_or_whole,
    spare: 2,
    ..Scene::new("deleted", model, |run| {
        let given = json!(run.daemon.workspace());
        session(run, "stays", &given);
        let stays = run.session.clone();
        session(run, "goes", &Value::Null);
        let trigger = json!({"after_ms": 3_600_000});
        let later = json!({"session": run.session, "content": "f", "trigger": trigger, "idempotency_key": "later"});
        run.ask::<Followup>("followup.schedule", &later);
        assert!(run.deaths > 0 || folder(run).is_dir(), "it has a workspace of its own");
        delete(run);
        // The newest event is of one that stays: the head of the history is looked for.
        let more = json!({"session": stays, "content": "more", "idempotency_key": "more"});
        run.ask::<Task>("task.submit", &more);
    })
};
