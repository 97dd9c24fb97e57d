//! `task.*`.

use std::time::Duration;

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::id::TaskId;
use nano_protocol::method::{TaskCancel, TaskGet, TaskList, TaskResume, TaskSubmit, TaskWait};
use nano_protocol::task::{Origin, SubmitParams, Task, TaskListParams, TaskParams, TaskState, Tasks, WaitParams};

use super::dispatch::Serve;
use super::session::invalid;
use super::{Caller, Server};
use crate::session::actor::Command;
use crate::session::admission::{self, Submission};
use crate::session::idempotency::Known;
use crate::session::{opening, reading};

impl Server {
    async fn needs_a_model(&self) -> Result<(), RpcError> {
        if self.deps().look_for_models().await.default().is_some() {
            return Ok(());
        }
        let message = "no model is configured and none was found";
        Err(RpcError::new(ErrorKind::Unavailable, message).hint(
            "start Ollama, add a [models.NAME] to nanod's config, or start nanod anew with OPENAI_API_KEY set (nanoctl \
             shutdown ends this one); nanoctl demo needs none",
        ))
    }
}

impl Serve for TaskSubmit {
    async fn serve(server: &Server, caller: &Caller, params: SubmitParams) -> Result<Task, RpcError> {
        admission::content_fits(&params.content)?;
        params.limits.as_ref().map_or(Ok(()), admission::limits_make_sense)?;
        if params.session.is_some() && params.create.is_some() {
            return Err(invalid("session and create exclude each other"));
        }
        if params.create.as_ref().is_some_and(|create| create.idempotency_key.is_some()) {
            return Err(invalid("idempotency_key belongs beside create, not into it"));
        }
        let (key, store) = (params.idempotency_key.clone(), &server.deps().store);
        let known = server.keys.look_up(store, caller.uid, "task.submit", key.as_deref(), &params).await?;
        let (keyed, _guard) = match known {
            Known::Fresh(keyed, guard) => (keyed, guard),
            Known::Before(id) => {
                let task = reading::task(&server.registry, caller.uid, id.as_str().unwrap_or_default())?;
                return Ok(Task { replayed: true, ..task });
            }
        };
        server.needs_a_model().await?;
        let submission = Submission {
            id: TaskId::from_ulid(&server.deps().clock.ulid()),
            origin: Origin::User,
            source: None,
            content: params.content,
            metadata: params.metadata.unwrap_or_default(),
            limits: params.limits.unwrap_or_default(),
            keyed,
            with: Vec::new(),
            made_by: None,
            rounds: 0,
        };
        let Some(session) = params.session else {
            let create = params.create.unwrap_or_default();
            return opening::open_with_task(&server.registry, caller.uid, create, submission).await;
        };
        let session = server.registry.find(caller.uid, &session)?;
        server.registry.ask(&session, |reply| Command::Submit(Box::new(submission), reply)).await
    }
}

impl Serve for TaskGet {
    async fn serve(server: &Server, caller: &Caller, params: TaskParams) -> Result<Task, RpcError> {
        reading::task(&server.registry, caller.uid, &params.task)
    }
}

impl Serve for TaskList {
    async fn serve(server: &Server, caller: &Caller, params: TaskListParams) -> Result<Tasks, RpcError> {
        let session = params.session.map(|session| server.registry.find(caller.uid, &session)).transpose()?;
        let page = (params.limit, params.after);
        reading::tasks(&server.registry, caller.uid, session.as_ref(), params.state, page)
    }
}

impl Serve for TaskWait {
    async fn serve(server: &Server, caller: &Caller, params: WaitParams) -> Result<Task, RpcError> {
        let mut settled = server.deps().events.settled();
        let limit = Duration::from_millis(params.timeout_ms.unwrap_or(u64::MAX / 1_000_000));
        let over = tokio::time::sleep(limit);
        tokio::pin!(over);
        loop {
            settled.mark_unchanged();
            let task = reading::task(&server.registry, caller.uid, &params.task)?;
            if task.state.is_settled() {
                return Ok(task);
            }
            tokio::select! {
                biased;
                () = server.deps().shutdown.cutting().cancelled() => {
                    return Err(RpcError::new(ErrorKind::ShuttingDown, "the daemon is going down").hint("ask again later"));
                }
                () = caller.connection.gone().cancelled() => return Ok(task),
                _ = settled.changed() => {}
                () = &mut over => return Ok(task),
            }
        }
    }
}

impl Serve for TaskCancel {
    async fn serve(server: &Server, caller: &Caller, params: TaskParams) -> Result<Task, RpcError> {
        let task = reading::task(&server.registry, caller.uid, &params.task)?;
        if matches!(task.state, TaskState::Succeeded | TaskState::Failed | TaskState::Cancelled) {
            return Ok(task);
        }
        server.registry.ask(&task.session, |reply| Command::Cancel(task.id, reply)).await
    }
}

impl Serve for TaskResume {
    async fn serve(server: &Server, caller: &Caller, params: TaskParams) -> Result<Task, RpcError> {
        let task = reading::task(&server.registry, caller.uid, &params.task)?;
        server.registry.ask(&task.session, |reply| Command::Resume(task.id, reply)).await
    }
}
