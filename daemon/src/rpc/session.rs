//! `session.*`.

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::id::{MessageId, SessionId};
use nano_protocol::method::{
    SessionBoot, SessionClose, SessionCreate, SessionDelete, SessionGet, SessionList, SessionMessages, SessionPrompts,
    SessionQueue, SessionSteer, SessionTools, SessionWithdraw,
};
use nano_protocol::session::{
    self, CreateParams, Delivery, ListParams, Messages, MessagesParams, Queue, Session, SessionParams, SessionState,
    Sessions, SteerParams, Steered, WithdrawParams,
};

use super::dispatch::Serve;
use super::{Caller, Server};
use crate::session::actor::Command;
use crate::session::admission::{self, SteerRequest};
use crate::session::deps::unavailable;
use crate::session::idempotency::Known;
use crate::session::{children, deletion, opening, reading, view};

pub(super) fn invalid(why: impl Into<String>) -> RpcError {
    RpcError::new(ErrorKind::InvalidParams, why)
}

impl Serve for SessionCreate {
    async fn serve(server: &Server, caller: &Caller, params: CreateParams) -> Result<Session, RpcError> {
        let key = params.idempotency_key.clone();
        let store = &server.deps().store;
        match server.keys.look_up(store, caller.uid, "session.create", key.as_deref(), &params).await? {
            Known::Fresh(keyed, _guard) => opening::open(&server.registry, caller.uid, params, keyed).await,
            Known::Before(id) => {
                Ok(reading::record(server.deps(), &SessionId(id.as_str().unwrap_or_default().to_owned()))?.session)
            }
        }
    }
}

impl Serve for SessionGet {
    async fn serve(server: &Server, caller: &Caller, params: SessionParams) -> Result<Session, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        reading::with_todo(server.deps(), &id)
    }
}

impl Serve for SessionList {
    async fn serve(server: &Server, caller: &Caller, params: ListParams) -> Result<Sessions, RpcError> {
        reading::sessions(&server.registry, caller.uid, &params)
    }
}

impl Serve for SessionClose {
    async fn serve(server: &Server, caller: &Caller, params: SessionParams) -> Result<Session, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        let session = children::close_for_person(&server.registry, &id).await?;
        for id in server.registry.below(&id).iter().chain([&id]) {
            // One that falls due before this is refused by the closed session, and paused by that.
            server.scheduler.pause_all(id).await?;
        }
        Ok(session)
    }
}

impl Serve for SessionDelete {
    async fn serve(server: &Server, caller: &Caller, params: SessionParams) -> Result<Session, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        // What is in the way of deleting is known before anything is closed.
        server.deps().store.has_room().map_err(|error| unavailable(&error))?;
        let session = children::close_for_person(&server.registry, &id).await?;
        let mut all = server.registry.below(&id);
        all.push(id);
        // Others may wait for what has just ended.
        server.scheduler.hear_out().await;
        server.scheduler.delete(&all).await?;
        deletion::remove_folders(server.deps().clone()).await;
        Ok(session)
    }
}

impl Serve for SessionBoot {
    async fn serve(server: &Server, caller: &Caller, params: SessionParams) -> Result<Session, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        if reading::record(server.deps(), &id)?.session.state == SessionState::Closed {
            return Err(RpcError::new(ErrorKind::Conflict, format!("session {id} is closed")));
        }
        server.registry.ask(&id, Command::Boot).await
    }
}

impl Serve for SessionTools {
    async fn serve(server: &Server, caller: &Caller, params: SessionParams) -> Result<session::SessionTools, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        Ok(view::tools(server.deps(), &reading::record(server.deps(), &id)?).await)
    }
}

impl Serve for SessionPrompts {
    async fn serve(
        server: &Server,
        caller: &Caller,
        params: SessionParams,
    ) -> Result<session::SessionPrompts, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        Ok(view::prompts(server.deps(), &reading::record(server.deps(), &id)?).await)
    }
}

impl Serve for SessionMessages {
    async fn serve(server: &Server, caller: &Caller, params: MessagesParams) -> Result<Messages, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        reading::messages(server.deps(), &id, params.after_seq.unwrap_or(0), params.limit)
    }
}

impl Serve for SessionSteer {
    async fn serve(server: &Server, caller: &Caller, params: SteerParams) -> Result<Steered, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        admission::content_fits(&params.content)?;
        let (key, store) = (params.idempotency_key.clone(), &server.deps().store);
        let known = server.keys.look_up(store, caller.uid, "session.steer", key.as_deref(), &params).await?;
        let (keyed, _guard) = match known {
            Known::Fresh(keyed, guard) => (keyed, guard),
            Known::Before(answer) => {
                return serde_json::from_value(answer)
                    .map_err(|why| RpcError::new(ErrorKind::Internal, why.to_string()));
            }
        };
        let request = SteerRequest {
            id: MessageId::from_ulid(&server.deps().clock.ulid()),
            content: params.content,
            delivery: params.delivery.unwrap_or(Delivery::Note),
            source: None,
            metadata: params.metadata,
            keyed,
            with: Vec::new(),
        };
        server.registry.ask(&id, |reply| Command::Steer(Box::new(request), reply)).await
    }
}

impl Serve for SessionQueue {
    async fn serve(server: &Server, caller: &Caller, params: SessionParams) -> Result<Queue, RpcError> {
        reading::queue(server.deps(), &server.registry.find(caller.uid, &params.session)?)
    }
}

impl Serve for SessionWithdraw {
    async fn serve(server: &Server, caller: &Caller, params: WithdrawParams) -> Result<Queue, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        server.registry.ask(&id, |reply| Command::Withdraw(params.id, reply)).await?;
        reading::queue(server.deps(), &id)
    }
}
