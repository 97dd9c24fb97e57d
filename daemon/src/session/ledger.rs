//! What the machine's effects are on record: each becomes changes of the one commit, and the actor's own memory of it.

use nano_protocol::event::{Data, EventType};
use nano_protocol::id::{MessageId, TaskId};
use nano_protocol::message::{Message, NotRun, Outcome, Role};
use nano_protocol::task::{Reason, TaskError, TaskState};
use serde_json::json;

use super::actor::{Actor, KeptReply, OpenCall};
use super::recovery::not_run;
use super::task::{Effect, REPEATS_WARNED};
use super::transcript;
use crate::store::record::{Draft, TaskRecord};
use crate::store::{Change, Key};

impl Actor {
    /// Adds what `effect` records to `changes`.
    pub(super) fn write(&mut self, effect: &Effect, changes: &mut Vec<Change>) {
        match effect {
            Effect::Begin(task) => self.write_begin(task, changes),
            Effect::TurnBegin => self.write_turn(EventType::TurnStarted, changes),
            Effect::Open => self.write_first_message(None, changes),
            Effect::Inject(messages) => self.write_injected(messages, changes),
            Effect::KeepReply => self.write_reply(changes),
            Effect::Start(call) => self.write_start(*call, changes),
            Effect::Ended(call, seen) => self.write_ended(*call, *seen, changes),
            Effect::KeepResult(call) => self.write_result(*call, changes),
            Effect::Settle(call, why) => self.write_settled(*call, *why, changes),
            Effect::TurnEnd => self.write_turn(EventType::TurnFinished, changes),
            Effect::Finish(task, state, reason) => self.write_finish(task, *state, *reason, changes),
            Effect::Carry(messages) => {
                changes
                    .extend(messages.iter().map(|id| self.draft(EventType::SteeringCarried, json!({"message": id}))));
            }
            Effect::Dropped(message) => self.write_dropped(message, changes),
            Effect::Ask | Effect::StopModel | Effect::StopCall(_) => {}
        }
    }

    fn turn_record(&self) -> Option<&TaskRecord> {
        self.tasks.get(self.turn_task.as_ref()?)
    }

    fn task_event(&self, kind: EventType, task: &TaskId, data: Data) -> Change {
        Change::Event(Draft { session: Some(self.record.session.id.clone()), task: Some(task.clone()), kind, data })
    }

    fn write_begin(&mut self, task: &TaskId, changes: &mut Vec<Change>) {
        let now = self.deps.clock.now();
        self.turn_task = Some(task.clone());
        let Some(record) = self.tasks.get_mut(task) else { return };
        record.task.state = TaskState::Running;
        record.task.started_at.get_or_insert(now);
        changes.push(Change::task(record));
        let data = json!({"task": record.task});
        changes.push(self.task_event(EventType::TaskStarted, task, data));
        let spoken = self.transcript.iter().any(|message| message.task == *task);
        if spoken && self.transcript.last().is_some_and(|message| message.task != *task) {
            // Others came in between: the model has to hear again what this one is about.
            self.write_first_message(Some("taken up again"), changes);
        }
    }

    fn write_turn(&self, kind: EventType, changes: &mut Vec<Change>) {
        let turns = self.turn_record().map_or(0, |record| record.task.turns);
        let turn = if kind == EventType::TurnStarted { turns + 1 } else { turns };
        let Some(task) = self.turn_task.as_ref() else { return };
        changes.push(self.task_event(kind, task, json!({"turn": turn})));
    }

    pub(super) fn add_message(
        &mut self,
        role: Role,
        content: String,
        with: impl FnOnce(&mut Message),
        changes: &mut Vec<Change>,
    ) {
        let Some(task) = self.turn_task.clone() else { return };
        let id = MessageId::from_ulid(&self.deps.clock.ulid());
        let mut message = Message::text(id, task, role, content, self.deps.clock.now());
        with(&mut message);
        changes.push(Change::Message(self.record.session.id.clone(), Box::new(message.clone())));
        self.transcript.push(message);
    }

    fn write_first_message(&mut self, again: Option<&str>, changes: &mut Vec<Change>) {
        let Some(record) = self.turn_record().cloned() else { return };
        let role = transcript::first_role(record.task.origin);
        let (source, metadata) = (again.map(str::to_owned).or(record.source), record.task.metadata);
        let with = |message: &mut Message| {
            message.source = source;
            message.metadata = (!metadata.is_empty()).then_some(metadata);
        };
        self.add_message(role, record.task.content, with, changes);
    }

    fn write_injected(&mut self, messages: &[MessageId], changes: &mut Vec<Change>) {
        for id in messages {
            let Some(at) = self.steering.iter().position(|one| one.id == *id) else { continue };
            let steering = self.steering.remove(at);
            changes.push(Change::Delete(Key::steering(&self.record.session.id, steering.place)));
            changes.push(self.draft(EventType::SteeringApplied, json!({"message": id, "delivery": steering.delivery})));
            let with = |message: &mut Message| {
                message.id = steering.id;
                message.source = steering.source;
                message.metadata = steering.metadata;
            };
            self.add_message(Role::Steering, steering.content, with, changes);
        }
    }

    fn write_reply(&mut self, changes: &mut Vec<Change>) {
        let Some(KeptReply { answer, partial }) = self.reply.take() else { return };
        let Some(task) = self.turn_task.clone() else { return };
        if let Some(record) = self.tasks.get_mut(&task) {
            record.task.turns += 1;
            record.task.usage.add(&answer.usage);
            record.cuts = if answer.finish == crate::model::Finish::Length { record.cuts + 1 } else { 0 };
            self.record.session.usage.add(&answer.usage);
            changes.push(Change::task(record));
            changes.push(Change::session(&self.record));
        }
        // A reply that was stopped before it said anything leaves nothing behind.
        if partial && answer.text.is_empty() {
            return;
        }
        let calls = answer.calls;
        let with = |message: &mut Message| {
            message.tool_calls = calls;
            message.partial = partial.then_some(true);
        };
        self.add_message(Role::Assistant, answer.text, with, changes);
    }

    pub(super) fn write_start(&mut self, at: usize, changes: &mut Vec<Change>) {
        if self.keeps_back(at, changes) {
            return;
        }
        let Some(OpenCall { call, record, verdict, .. }) = self.open.get_mut(at) else { return };
        (record.begun, record.starts) = (Some(self.deps.clock.now()), record.starts + 1);
        changes.push(Change::put(Key::call(&self.record.session.id, at), record));
        let mut data = json!({"call": call.id, "name": call.name, "arguments": call.arguments});
        if record.starts > 1 {
            data["start"] = json!(record.starts);
        }
        if let Some(verdict) = verdict.as_ref().filter(|verdict| !verdict.why.is_empty()) {
            data["policy"] = json!({"level": verdict.level.as_str(), "why": verdict.why});
        }
        changes.push(self.draft(EventType::ToolStarted, data));
    }

    fn write_ended(&mut self, at: usize, seen: u32, changes: &mut Vec<Change>) {
        let Some(open) = self.open.get_mut(at) else { return };
        open.stop = None;
        let Some(result) = &mut open.result else { return };
        if seen >= REPEATS_WARNED {
            result.content = transcript::with_repeat_warning(&result.content, seen);
        }
        let mut data = json!({"call": open.call.id, "name": open.call.name, "ok": result.ok});
        if result.stopped {
            data["outcome"] = json!(Outcome::Stopped);
        }
        open.record.result = Some(result.clone());
        changes.push(Change::put(Key::call(&self.record.session.id, at), &open.record));
        changes.append(&mut open.settles);
        let Some(task) = self.turn_task.clone().filter(|_| open.record.starts > 0) else { return };
        changes.push(self.task_event(EventType::ToolFinished, &task, data));
    }

    fn write_result(&mut self, at: usize, changes: &mut Vec<Change>) {
        let Some(open) = self.open.get_mut(at) else { return };
        let (call, Some(result)) = (open.call.clone(), open.result.take()) else { return };
        changes.push(Change::Delete(Key::call(&self.record.session.id, at)));
        self.add_message(Role::Tool, String::new(), |message| result.tell(call, message), changes);
    }

    fn write_settled(&mut self, at: usize, why: NotRun, changes: &mut Vec<Change>) {
        let Some(call) = self.open.get(at).map(|open| open.call.clone()) else { return };
        self.add_message(Role::Tool, String::new(), |message| not_run(why).tell(call, message), changes);
    }

    fn write_finish(&mut self, id: &TaskId, state: TaskState, reason: Reason, changes: &mut Vec<Change>) {
        let failure = self.failure.take();
        let said = self.transcript.iter().rev();
        let result = said.filter(|message| message.task == *id && message.role == Role::Assistant);
        let result = result.map(|message| message.content.clone()).find(|text| !text.is_empty());
        let now = self.deps.clock.now();
        let Some(mut record) = self.tasks.remove(id) else { return };
        let task = &mut record.task;
        (task.state, task.reason, task.result, task.finished_at) = (state, Some(reason), result, Some(now));
        if state == TaskState::Succeeded {
            // An answer without a word is still an answer.
            task.result.get_or_insert_default();
        }
        task.error = (state == TaskState::Failed).then(|| failure.unwrap_or_else(|| reason_error(reason)));
        changes.push(Change::task(&record));
        changes.push(Change::Delete(Key::open_task(&self.record.session.id, id)));
        let data = json!({"task": record.task});
        changes.push(self.task_event(EventType::TaskFinished, id, data));
        self.stop_children(&record.task, changes);
        self.ended.push(record.task);
        if self.turn_task.as_ref() == Some(id) {
            self.turn_task = None;
        }
    }

    fn write_dropped(&mut self, id: &MessageId, changes: &mut Vec<Change>) {
        let Some(at) = self.steering.iter().position(|one| one.id == *id) else { return };
        let steering = self.steering.remove(at);
        changes.push(Change::Delete(Key::steering(&self.record.session.id, steering.place)));
        changes.push(self.draft(EventType::SteeringWithdrawn, json!({"message": id})));
    }
}

fn reason_error(reason: Reason) -> TaskError {
    let message = match reason {
        Reason::Length => "the reply was cut by the length limit",
        Reason::MaxTurns => "it used all its turns",
        Reason::Timeout => "it used all its time",
        Reason::Loop => "the same call gave the same result again and again",
        Reason::Budget => "it used all its tokens or money",
        Reason::Denied => "policy ended it",
        Reason::Restart => "the daemon ended while it ran",
        Reason::Done | Reason::Cancelled | Reason::Error => "it could not go on",
    };
    TaskError { kind: reason.to_string(), message: message.into() }
}
