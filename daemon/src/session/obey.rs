//! What clients ask of a session: accepted on record first, answered, and only then begun.

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::EventType;
use nano_protocol::id::TaskId;
use nano_protocol::session::{AcceptedAs, Delivery, Session, SessionState, Steered};
use nano_protocol::task::{Origin, Task};
use serde_json::json;

use super::actor::{Actor, Command, Reply};
use super::admission::{self, SteerRequest, Submission};
use super::task::{Input, Steer};
use crate::store::record::TaskRecord;
use crate::store::{Change, Commit, Key, StoreError};

impl Actor {
    pub(super) async fn obey(&mut self, command: Command) -> Result<(), StoreError> {
        match command {
            Command::Submit(submission, reply) => {
                let answer = self.submit(*submission).await;
                self.answer(reply, answer).await
            }
            Command::Steer(request, reply) => {
                let answer = self.steer(*request).await;
                self.answer(reply, answer).await
            }
            Command::Cancel(task, reply) => self.cancel(task, reply).await,
            Command::Resume(task, reply) => {
                let answer = self.resume(&task).await;
                self.answer(reply, answer).await
            }
            Command::Withdraw(id, reply) => {
                let known =
                    self.machine.queue().any(|task| task.0 == id) || self.steering.iter().any(|one| one.id.0 == id);
                let gone =
                    || RpcError::new(ErrorKind::NotFound, format!("nothing with the id {id} waits in this session"));
                self.feed(Input::Withdraw(id.clone())).await?;
                drop(reply.send(if known { Ok(()) } else { Err(gone()) }));
                Ok(())
            }
            Command::Boot(reply) => {
                self.boot_for(reply);
                Ok(())
            }
            Command::Lend(doubt, reply) => {
                self.lend(doubt.as_deref(), reply);
                Ok(())
            }
            Command::Close(reply) => self.close(reply).await,
            Command::Answer(answer, reply) => self.take_answer(answer, reply).await,
            Command::Children => {
                self.hear_children().await?;
                self.hear_processes().await?;
                self.answer_close().await
            }
            Command::Unhear(processes, reply) => {
                self.unhear(&processes).await?;
                drop(reply.send(Ok(())));
                Ok(())
            }
            Command::Wake(reply) => {
                drop(reply.map(|reply| reply.send(Ok(()))));
                Ok(())
            }
        }
    }

    /// Answers, then begins what was accepted: accepting and beginning are two commits.
    async fn answer<T>(
        &mut self,
        reply: Reply<T>,
        answer: Result<(T, Option<Input>), Refusal>,
    ) -> Result<(), StoreError> {
        match answer {
            Ok((answer, input)) => {
                drop(reply.send(Ok(answer)));
                match input {
                    Some(input) => self.feed(input).await,
                    None => Ok(()),
                }
            }
            Err(Refusal::Caller(error)) => {
                drop(reply.send(Err(error)));
                Ok(())
            }
            Err(Refusal::Store(error)) => {
                drop(reply.send(Err(super::deps::unavailable(&error))));
                Err(error)
            }
        }
    }

    pub(super) async fn submit(&mut self, submission: Submission) -> Result<(Task, Option<Input>), Refusal> {
        admission::may_queue(&self.record.session, self.machine.queue().count())?;
        let agent = self.agent();
        let (record, extra) = admission::task_record(submission, &self.record.session, self.deps.clock.now());
        let id = record.task.id.clone();
        let queued = admission::queued(&record, &agent);
        let mut changes = vec![Change::Queued(Box::new(record.clone()))];
        changes.extend(extra);
        let mut session = self.record.clone();
        // Written with the task: a daemon that dies now must find that this session has something to do.
        if session.session.state == SessionState::Idle {
            session.session.state = SessionState::Running;
            changes.push(Change::session(&session));
        }
        // What a child came to is owed: it has ended already.
        let is_owed = record.task.origin == Origin::Subagent;
        let receipt = self.keep(if is_owed { Commit::owed(changes) } else { Commit::asked(changes) }).await?;
        self.record = session;
        let record = self.tasks.entry(id).or_insert(record);
        record.task.seq = admission::queued_number(&receipt);
        Ok((record.task.clone(), Some(Input::Submit(queued))))
    }

    pub(super) async fn steer(&mut self, request: SteerRequest) -> Result<(Steered, Option<Input>), Refusal> {
        let agent = self.agent();
        admission::may_steer(&self.record.session, &agent, self.steering.len())?;
        if self.machine.is_idle() {
            return self.steer_as_task(request).await;
        }
        let task = self.machine.current().or_else(|| self.machine.queue().next()).cloned();
        let Some(task) = task else { return self.steer_as_task(request).await };
        let place = self.next_place();
        let delivery = request.delivery;
        let accepted_as = match delivery {
            Delivery::Note => AcceptedAs::Note,
            Delivery::Redirect => AcceptedAs::Redirect,
            Delivery::Interrupt => AcceptedAs::Interrupt,
        };
        let answer = Steered { message: request.id.clone(), accepted_as, task, position: self.steering.len() };
        let (record, mut changes) = request.into_record(place, &answer, self.deps.clock.now());
        changes.push(Change::steering(&self.record.session.id, &record));
        changes.push(self.draft(EventType::SteeringQueued, json!({"message": record.id, "delivery": delivery})));
        let steer = Steer { message: record.id.clone(), delivery };
        self.keep(Commit::asked(changes)).await?;
        self.steering.push(record);
        Ok((answer, Some(Input::Steer(steer))))
    }

    /// Returns where the next steering message lies.
    pub(super) fn next_place(&self) -> u64 {
        self.steering.last().map_or(self.deps.clock.now().0.cast_unsigned(), |last| last.place + 1)
    }

    async fn steer_as_task(&mut self, request: SteerRequest) -> Result<(Steered, Option<Input>), Refusal> {
        let task = TaskId::from_ulid(&self.deps.clock.ulid());
        let message = request.id.clone();
        let answer = Steered { message, accepted_as: AcceptedAs::Task, task: task.clone(), position: 0 };
        let submission = request.into_submission(task, &answer, self.deps.clock.now());
        let (_, input) = self.submit(submission).await?;
        Ok((answer, input))
    }

    async fn cancel(&mut self, task: TaskId, reply: Reply<Task>) -> Result<(), StoreError> {
        if self.tasks.contains_key(&task) {
            self.end_replies.entry(task.clone()).or_default().push(reply);
            return self.feed(Input::Cancel(task)).await;
        }
        let ended = self.deps.store.get::<TaskRecord>(&Key::task(&task))?;
        let gone = || RpcError::new(ErrorKind::NotFound, format!("there is no task {task}"));
        drop(reply.send(ended.map(|record| record.task).ok_or_else(gone)));
        Ok(())
    }

    async fn resume(&mut self, task: &TaskId) -> Result<(Task, Option<Input>), Refusal> {
        let stored = self.tasks.get(task).cloned();
        let record = match stored {
            Some(record) => Some(record),
            None => self.deps.store.get::<TaskRecord>(&Key::task(task))?,
        };
        let mut record =
            record.ok_or_else(|| RpcError::new(ErrorKind::NotFound, format!("there is no task {task}")))?;
        admission::may_resume(&self.record.session, &record.task)?;
        let agent = self.agent();
        let newest = self.transcript.last().map_or(0, |message| message.seq);
        let queued = admission::requeue(&mut record, &agent, newest, self.deps.clock.now());
        let open = Change::put(Key::open_task(&record.task.session, task), &1);
        // A person has looked: it is counted anew how often the daemon dies of this.
        let anew = Change::Delete(Key::tries(&record.task.session));
        self.keep(Commit::asked(vec![Change::task(&record), open, anew])).await?;
        let answer = record.task.clone();
        self.tasks.insert(task.clone(), record);
        Ok((answer, Some(Input::Resume(queued))))
    }

    async fn close(&mut self, reply: Reply<Session>) -> Result<(), StoreError> {
        self.close_replies.push(reply);
        let was = std::mem::replace(&mut self.record.session.state, SessionState::Closed);
        if was != SessionState::Closed {
            self.record.session.updated_at = self.deps.clock.now();
            self.record.closing = true;
            self.commit(vec![Change::session(&self.record)]).await?;
            self.registry.note_closed(&self.record.session);
        }
        self.hold_lends();
        self.stop_boot();
        self.feed(Input::Close).await?;
        self.answer_close().await
    }

    /// Tells of the closing and answers those who closed, once nothing runs any more.
    pub(super) async fn answer_close(&mut self) -> Result<(), StoreError> {
        if !self.machine.is_idle() || self.boot.under_way {
            return Ok(());
        }
        if self.record.session.state == SessionState::Closed {
            if self.closes_children() {
                return Ok(());
            }
            self.end_background(|_| true).await?;
            self.free_computer().await?;
        }
        if std::mem::take(&mut self.record.closing) {
            let closed = self.draft(EventType::SessionClosed, json!({"session": self.record.session}));
            self.commit(vec![Change::session(&self.record), closed]).await?;
        }
        for reply in self.close_replies.drain(..) {
            drop(reply.send(Ok(self.record.session.clone())));
        }
        Ok(())
    }
}

/// Why a command is not obeyed.
pub(super) enum Refusal {
    Caller(RpcError),
    Store(StoreError),
}

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Self {
        Self::Caller(error)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::NoRoom(_)) {
            return Self::Caller(super::deps::unavailable(&error));
        }
        Self::Store(error)
    }
}
