//! What holds after every run, whatever the scene and wherever the daemon died.

use std::collections::{BTreeMap, BTreeSet};

use nano_protocol::event::{Event, EventType};
use nano_protocol::id::SessionId;
use nano_protocol::message::{Message, Role};
use nano_tests::{programs, transcript};
use serde_json::Value;

use super::run::Run;
use super::story::Story;
use super::{files, requests};

pub fn all(run: &mut Run, story: &Story, lanes: usize, spare: usize) {
    for messages in story.transcripts.values() {
        transcript::check_pairs(messages, false);
        said_once(messages);
    }
    answered_is_present(run, story);
    marks(story);
    ends(story);
    events(run, story);
    let requests = run.server.requests();
    let most = run.deaths * lanes + spare;
    requests::check(&requests, story, most);
    files::check(run.daemon.root());
}

/// What is on the disk is whole, says the program itself. The daemon must be down.
pub fn store(run: &Run) {
    let mut command = programs::command("nanod");
    command.args(["store", "check"]).env("HOME", run.daemon.root());
    let checked = command.arg("--state-dir").arg(run.daemon.state()).output().expect("nanod runs");
    let said = [checked.stdout, checked.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(checked.status.success(), "nanod store check: {}: {said:?}", checked.status);
}

/// Each word of a client is in the transcript once; scenes say no two things alike.
fn said_once(messages: &[Message]) {
    let mut said = BTreeSet::new();
    for message in messages {
        let words = matches!(message.role, Role::User | Role::Steering | Role::Followup) && message.source.is_none();
        assert!(!words || said.insert(&message.content), "said twice: {}", transcript::render(messages));
    }
}

/// What was answered is there, and the same key answers the same object.
fn answered_is_present(run: &mut Run, story: &Story) {
    let mut contents = BTreeSet::new();
    for task in &story.tasks {
        assert!(contents.insert((&task.session, &task.content)), "one task twice: {:#?}", story.tasks);
    }
    for (method, params, answer) in run.asked.clone() {
        let again: Value = run.ask(&method, &params);
        let id = |answer: &Value| answer.get("message").or(answer.get("id")).cloned();
        assert!(id(&answer).is_some(), "{method} answers no id: {answer}");
        assert_eq!(id(&again), id(&answer), "{method} with the key of {params}");
        let known = story.tasks.iter().any(|task| Some(task.id.as_str()) == answer["id"].as_str());
        assert!(known || method != "task.submit", "answered and lost: {answer}");
    }
}

/// No command ran twice; each that is said to have run did, each that is said not to have did not; none ran of a reply
/// that is not in the transcript.
fn marks(story: &Story) {
    let ran: BTreeSet<&str> = story.marks.iter().map(String::as_str).collect();
    assert_eq!(ran.len(), story.marks.len(), "a command ran twice: {:?}", story.marks);
    let calls: BTreeSet<&str> =
        story.messages().flat_map(|message| &message.tool_calls).map(|call| call.id.as_str()).collect();
    assert!(ran.is_subset(&calls), "commands ran that no reply asked for: {ran:?} of {calls:?}");
    for result in story.results().filter(|result| result.tool_name.as_deref() == Some("exec")) {
        let ran = result.tool_call_id.as_deref().is_some_and(|id| ran.contains(id));
        // Its first word may be cut off with the daemon.
        let goes_on = result.content.contains("running in the background");
        assert!(ran || goes_on || result.ok != Some(true), "said to have run, but it did not: {result:?}");
        assert!(!ran || result.not_run.is_none(), "ran, but is said not to have: {result:?}");
    }
}

/// Every task has ended once, and says the same in its events.
fn ends(story: &Story) {
    for task in &story.tasks {
        let of = |kind: EventType| {
            let fits = move |event: &&Event| event.kind == kind && event.task.as_ref() == Some(&task.id);
            story.history.iter().filter(fits).count()
        };
        assert!(task.finished_at.is_some(), "no end: {task:?}");
        let counts = (of(EventType::TaskQueued), of(EventType::TaskFinished));
        assert_eq!(counts, (1, 1), "queued and finished, by events: {task:?}");
    }
}

/// Numbers rise and none comes twice; who reconnects is told everything once; messages and their events are one.
fn events(run: &Run, story: &Story) {
    let numbers: Vec<u64> = story.history.iter().filter_map(|event| event.seq).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "numbers do not rise: {numbers:?}");
    let gone = |session: &SessionId| run.gone.contains(&session.0);
    let is_there = |event: &Event| !event.session.as_ref().is_some_and(gone);
    let told = run.told.lock().expect("events").clone();
    let told: Vec<&Event> = told.iter().filter(|event| event.seq.is_some() && is_there(event)).collect();
    let first: Vec<&Event> = story.history.iter().filter(|event| event.seq.is_some()).take(told.len()).collect();
    let differs = told.iter().zip(&first).find(|(told, kept)| told != kept);
    assert!(differs.is_none() && told.len() == first.len(), "told of an event that is not kept so: {differs:#?}");
    let mut added: BTreeMap<u64, &str> = BTreeMap::new();
    for event in story.history.iter().filter(|event| event.kind == EventType::MessageAdded) {
        added.insert(event.seq.unwrap_or(0), event.data["message"]["id"].as_str().unwrap_or_default());
    }
    let kept: BTreeMap<u64, &str> = story.messages().map(|message| (message.seq, message.id.as_str())).collect();
    assert_eq!(added, kept, "messages by their events, and by the transcripts");
}
