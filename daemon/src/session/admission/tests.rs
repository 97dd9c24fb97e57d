#![expect(clippy::unwrap_used, reason = "tests")]

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::id::{MessageId, TaskId};
use nano_protocol::session::{AcceptedAs, Delivery, Session, SessionState, Steered};
use nano_protocol::task::{Limits, Origin, Reason, TaskError, TaskState};
use nano_protocol::time::Timestamp;
use nano_protocol::{MAX_CONTENT, Object};
use serde_json::json;

use super::*;

const NOW: Timestamp = Timestamp(1_000);

fn session(state: SessionState) -> Session {
    let session = json!({
        "id": "ses_1", "owner": 1, "agent": "default", "workspace": "/w", "booter": "none", "booted": false, "capabilities": null,
        "model": "m", "level": "host", "tool_mode": "core", "tools": null, "skills": null, "state": state, "metadata": {},
        "created_at": NOW, "updated_at": NOW, "usage": {"input_tokens": 0, "output_tokens": 0},
    });
    serde_json::from_value(session).unwrap()
}

fn submission() -> Submission {
    Submission {
        id: TaskId("tsk_1".into()),
        origin: Origin::User,
        source: None,
        content: "go".into(),
        metadata: Object::new(),
        limits: Limits::default(),
        keyed: None,
        with: Vec::new(),
        made_by: None,
        rounds: 0,
    }
}

fn record() -> TaskRecord {
    task_record(submission(), &session(SessionState::Idle), NOW).0
}

fn refused(answer: Result<(), RpcError>) -> Option<ErrorKind> {
    answer.err().map(|error| error.data.kind)
}

fn key() -> Keyed {
    Keyed { key: Key::task(&TaskId("k".into())), params: "hash".into() }
}

#[test]
fn content_is_neither_empty_nor_too_long() {
    for (content, expected) in [
        ("x".to_owned(), None),
        (" \n\t".to_owned(), Some(ErrorKind::InvalidParams)),
        (String::new(), Some(ErrorKind::InvalidParams)),
        ("x".repeat(MAX_CONTENT), None),
        // Bytes count, not characters.
        ("ä".repeat(MAX_CONTENT / 2 + 1), Some(ErrorKind::TooLarge)),
    ] {
        assert_eq!(refused(content_fits(&content)), expected, "{} bytes", content.len());
    }
}

#[test]
fn what_a_session_takes() {
    let (willing, unwilling) =
        (AgentConfig::default(), AgentConfig { enable_steering: false, ..AgentConfig::default() });
    for (state, waiting, expected) in [
        (SessionState::Idle, 0, None),
        (SessionState::Running, MAX_WAITING - 1, None),
        (SessionState::Running, MAX_WAITING, Some(ErrorKind::Limit)),
        (SessionState::Interrupted, 1, None),
        (SessionState::Closed, 0, Some(ErrorKind::Conflict)),
        (SessionState::Closed, MAX_WAITING, Some(ErrorKind::Conflict)),
    ] {
        assert_eq!(refused(may_queue(&session(state), waiting)), expected, "task, {state}, {waiting}");
        assert_eq!(refused(may_steer(&session(state), &willing, waiting)), expected, "steering, {state}, {waiting}");
    }
    assert_eq!(refused(may_steer(&session(SessionState::Idle), &unwilling, 0)), Some(ErrorKind::Denied));
}

#[test]
fn limits_are_more_than_nothing() {
    let none = Limits::default();
    for (limits, sense) in [
        (none.clone(), true),
        (Limits { max_turns: Some(1), timeout_ms: Some(1), tokens: Some(1), cost: Some(0.01) }, true),
        (Limits { max_turns: Some(0), ..none.clone() }, false),
        (Limits { timeout_ms: Some(0), ..none.clone() }, false),
        (Limits { tokens: Some(0), ..none.clone() }, false),
        (Limits { cost: Some(0.0), ..none.clone() }, false),
        (Limits { cost: Some(-1.0), ..none.clone() }, false),
        (Limits { cost: Some(f64::NAN), ..none }, false),
    ] {
        let expected = (!sense).then_some(ErrorKind::InvalidParams);
        assert_eq!(refused(limits_make_sense(&limits)), expected, "{limits:?}");
    }
}

#[test]
fn only_interrupted_and_failed_tasks_are_resumed() {
    for (state, expected) in [
        (TaskState::Interrupted, None),
        (TaskState::Failed, None),
        (TaskState::Queued, Some(ErrorKind::NotRunning)),
        (TaskState::Running, Some(ErrorKind::NotRunning)),
        (TaskState::Succeeded, Some(ErrorKind::NotRunning)),
        (TaskState::Cancelled, Some(ErrorKind::NotRunning)),
    ] {
        let task = Task { state, ..record().task };
        assert_eq!(refused(may_resume(&session(SessionState::Idle), &task)), expected, "{state}");
        assert_eq!(refused(may_resume(&session(SessionState::Closed), &task)), Some(ErrorKind::Conflict), "{state}");
    }
}

#[test]
fn a_resumed_task_has_all_its_turns_again() {
    let agent = AgentConfig { max_turns: 7, ..AgentConfig::default() };
    let mut record = record();
    (record.task.state, record.task.reason, record.task.turns) = (TaskState::Failed, Some(Reason::MaxTurns), 7);
    record.task.error = Some(TaskError { kind: "max_turns".into(), message: "…".into() });
    (record.task.started_at, record.task.finished_at) = (Some(NOW), Some(NOW));
    (record.restarts, record.cuts, record.suspended) = (2, 1, true);
    let queued = requeue(&mut record, &agent, 7, Timestamp(9));
    assert_eq!(queued, Queued { resumed: true, ..Queued::fresh(TaskId("tsk_1".into()), 7) });
    assert_eq!((record.turns_before, record.restarts, record.cuts, record.suspended), (7, 0, 0, false));
    assert_eq!((record.seen_before, record.queued_at), (7, Timestamp(9)), "repetitions and the place in the queue");
    let task = record.task;
    assert_eq!((task.state, task.reason, task.error, task.finished_at), (TaskState::Queued, None, None, None));
    assert_eq!((task.started_at, task.turns), (Some(NOW), 7), "what it did stays on record");
}

#[test]
fn a_task_that_never_began_is_resumed_from_its_first_message() {
    let mut record = record();
    record.limits.max_turns = Some(3);
    assert_eq!(
        requeue(&mut record, &AgentConfig::default(), 7, Timestamp(9)),
        Queued::fresh(TaskId("tsk_1".into()), 3)
    );
    assert_eq!(queued(&record, &AgentConfig::default()), Queued::fresh(TaskId("tsk_1".into()), 3));
}

#[test]
fn a_task_is_recorded_with_its_key_and_what_came_with_it() {
    let with = vec![Change::Delete(Key::task(&TaskId("slot".into())))];
    let submission = Submission { keyed: Some(key()), with, source: Some("followup fup_1".into()), ..submission() };
    let (record, with) = task_record(submission, &session(SessionState::Idle), NOW);
    assert_eq!((record.task.state, record.task.created_at, record.task.seq), (TaskState::Queued, NOW, 0));
    assert_eq!((record.task.session.as_str(), record.source.as_deref()), ("ses_1", Some("followup fup_1")));
    assert_eq!(with.len(), 2);
}

#[test]
fn steering_is_recorded_as_a_message_or_as_a_task() {
    let request = || SteerRequest {
        id: MessageId("msg_1".into()),
        content: "stop".into(),
        delivery: Delivery::Redirect,
        source: Some("file".into()),
        metadata: None,
        keyed: Some(key()),
        with: vec![Change::Delete(Key::task(&TaskId("line".into())))],
    };
    let task = TaskId("tsk_2".into());
    let answer = Steered {
        message: MessageId("msg_1".into()),
        accepted_as: AcceptedAs::Redirect,
        task: task.clone(),
        position: 0,
    };
    let (message, with) = request().into_record(9, &answer, NOW);
    assert_eq!((message.place, message.delivery, message.content.as_str()), (9, Delivery::Redirect, "stop"));
    assert_eq!((message.source.as_deref(), with.len()), (Some("file"), 2));
    let submission = request().into_submission(task, &answer, NOW);
    assert_eq!((submission.origin, submission.content.as_str()), (Origin::Steering, "stop"));
    assert_eq!((submission.source.as_deref(), submission.with.len()), (Some("file"), 2));
    assert!(submission.keyed.is_none(), "the key answers the message, not the task");
}

#[test]
fn budgets() {
    let over = |tokens: (u64, u64), cost: Option<f64>, limits: (Option<u64>, Option<f64>), budget: Option<f64>| {
        let mut record = record();
        record.task.usage = Usage { input_tokens: tokens.0, output_tokens: tokens.1, cost };
        (record.limits.tokens, record.limits.cost) = limits;
        over_budget(&record, &AgentConfig { budget, ..AgentConfig::default() })
    };
    assert!(!over((u64::MAX, u64::MAX), Some(1e9), (None, None), None), "nothing bounds it");
    assert!(!over((6, 3), None, (Some(10), None), None));
    assert!(over((6, 4), None, (Some(10), None), None), "both kinds of token count");
    assert!(over((u64::MAX, 1), None, (Some(u64::MAX), None), None), "it does not wrap");
    assert!(!over((6, 4), None, (None, Some(0.5)), None), "without prices no money is used");
    assert!(over((0, 0), Some(0.5), (None, Some(0.5)), None));
    assert!(over((0, 0), Some(0.5), (None, None), Some(0.5)), "the agent's bound");
    assert!(!over((0, 0), Some(0.5), (None, Some(0.6)), Some(0.5)), "the task's bound stands before the agent's");
}
