//! Words and ids as clients write and read them.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use nano_protocol::event::EventType;
use nano_protocol::followup::{FollowupState, Missed, Overlap, RunState};
use nano_protocol::id::{ApprovalId, FollowupId, MessageId, ProcessId, SessionId, SessionRef, TaskId};
use nano_protocol::message::{NotRun, Outcome, Role};
use nano_protocol::process::ProcessState;
use nano_protocol::session::{AcceptedAs, Delivery, Level, SessionState, ToolMode, WaitingKind};
use nano_protocol::task::{Origin, Reason, TaskState};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[track_caller]
fn check<W: Copy + Debug + Display + PartialEq + Serialize + DeserializeOwned + FromStr>(all: &[W], words: &str) {
    let shown: Vec<_> = all.iter().map(ToString::to_string).collect();
    assert_eq!(shown.join(" "), words);
    for word in all {
        let text = word.to_string();
        assert_eq!(serde_json::to_value(word).unwrap(), Value::from(text.as_str()));
        assert_eq!(serde_json::from_value::<W>(json!(text)).unwrap(), *word);
        assert_eq!(text.parse::<W>().ok(), Some(*word));
        let first = words.split(' ').next().unwrap();
        for bad in [
            json!({text.as_str(): null}),
            json!([text]),
            json!(text.to_uppercase()),
            json!(format!("{text} ")),
            json!(""),
            json!(null),
            json!(0),
        ] {
            let error = serde_json::from_value::<W>(bad.clone()).expect_err("no word").to_string();
            assert!(!bad.is_string() || error.contains(first), "{bad}: {error} does not say what there is");
        }
    }
}

#[test]
fn words() {
    check(SessionState::ALL, "idle running interrupted closed");
    check(Level::ALL, "read-only workspace-write host");
    check(ToolMode::ALL, "core readonly all");
    check(Delivery::ALL, "note redirect interrupt");
    check(AcceptedAs::ALL, "note redirect interrupt task");
    check(WaitingKind::ALL, "steering task");
    check(Origin::ALL, "user followup steering subagent");
    check(TaskState::ALL, "queued running succeeded failed cancelled interrupted");
    check(Reason::ALL, "done length max_turns timeout loop budget denied error cancelled restart");
    check(Role::ALL, "user assistant tool steering followup");
    check(NotRun::ALL, "redirect cancel length restart limit denied");
    check(Outcome::ALL, "stopped unknown");
    check(Missed::ALL, "skip latest all");
    check(Overlap::ALL, "skip queue replace");
    check(FollowupState::ALL, "active paused done cancelled failed");
    check(RunState::ALL, "fired missed skipped");
    check(ProcessState::ALL, "running exited killed lost");
    check(EventType::ALL, &[super::DURABLE, super::LOSABLE].join(" ").split_whitespace().collect::<Vec<_>>().join(" "));
}

#[test]
fn settled_tasks() {
    let settled: Vec<_> = TaskState::ALL.iter().filter(|state| state.is_settled()).map(ToString::to_string).collect();
    assert_eq!(settled.join(" "), "succeeded failed cancelled interrupted");
}

#[test]
fn ids() {
    let ulid = "01KEFAV8Z3Q4C9D5WX2R7T6N1M";
    for (id, shown, prefix) in [
        (serde_json::to_value(SessionId::from_ulid(ulid)).unwrap(), SessionId::from_ulid(ulid).to_string(), "ses_"),
        (serde_json::to_value(TaskId::from_ulid(ulid)).unwrap(), TaskId::from_ulid(ulid).to_string(), "tsk_"),
        (serde_json::to_value(MessageId::from_ulid(ulid)).unwrap(), MessageId::from_ulid(ulid).to_string(), "msg_"),
        (serde_json::to_value(FollowupId::from_ulid(ulid)).unwrap(), FollowupId::from_ulid(ulid).to_string(), "fup_"),
        (serde_json::to_value(ApprovalId::from_ulid(ulid)).unwrap(), ApprovalId::from_ulid(ulid).to_string(), "apr_"),
        (serde_json::to_value(ProcessId::from_ulid(ulid)).unwrap(), ProcessId::from_ulid(ulid).to_string(), "prc_"),
    ] {
        assert_eq!((id, shown), (json!(format!("{prefix}{ulid}")), format!("{prefix}{ulid}")));
    }
    let session: SessionRef = serde_json::from_value(json!("web")).unwrap();
    assert_eq!(serde_json::to_value(session).unwrap(), json!("web"));
}
