//! What an agent puts off by its own tool.

use nano_protocol::followup::{FollowupState, Followups};
use nano_protocol::message::Role;
use nano_tests::model_server::Turn;
use serde_json::json;

use super::super::scene::Scene;
use super::{calls, has_called, last, succeeded};

const WORK: &str = "what was put off";

pub const LATER: Scene = Scene {
    agent: "tool_mode = \"all\"\nenable_followup = true",
    check: |run, story| {
        succeeded(run, story);
        let all: Followups = run.ask("followup.list", &json!({ "session": run.session }));
        let [one] = all.followups.as_slice() else { panic!("one call makes one follow-up: {all:#?}") };
        assert_eq!((one.state, one.runs, one.missed), (FollowupState::Done, 1, 0), "{one:?}");
        assert_eq!(story.said(&run.session, Role::Followup), [WORK]);
        let results: Vec<_> = story.results().collect();
        let [result] = results.as_slice() else { panic!("{results:#?}") };
        assert!(result.ok == Some(true) && result.content.contains(one.id.as_str()), "{result:?}");
    },
    ..Scene::new(
        "later",
        |request, n| {
            let put_off = ("schedule_followup", json!({"content": WORK, "trigger": {"after_ms": 1}}));
            if has_called(request) { Turn::text("done") } else { calls(n, &[put_off]) }
        },
        |run| {
            run.open();
            run.submit("p");
            run.until("the request of what was put off", |run| {
                let fired = |(role, text): (&str, &str)| role == "user" && text.contains(WORK);
                run.server.requests().iter().any(|request| fired(last(request))).then_some(())
            });
        },
    )
};
