//! Subscriptions: each pulls from the log with its own cursor, so a slow reader only reads later.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use nano_protocol::daemon::Done;
use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::{Event, EventType, SubscribeParams, Subscribed, UnsubscribeParams};
use nano_protocol::id::{SessionId, TaskId};
use nano_protocol::method::{EventsSubscribe, EventsUnsubscribe};
use serde_json::json;
use tokio::sync::{broadcast, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::dispatch::Serve;
use super::{Caller, Server};
use crate::session::deps::Deps;
use crate::session::event_log::{Answers, Published};
use crate::session::registry::Registry;

/// How many events are read at once.
const PAGE: usize = 256;
/// How many subscriptions a connection may have.
const MOST: usize = 64;

impl Serve for EventsSubscribe {
    async fn serve(server: &Server, caller: &Caller, params: SubscribeParams) -> Result<Subscribed, RpcError> {
        let filter = Arc::new(Filter {
            registry: server.registry.clone(),
            uid: caller.uid,
            session: params.session.map(|session| server.registry.find(caller.uid, &session)).transpose()?,
            task: params.task,
            types: params.types.map(|types| types.into_iter().collect()),
        });
        let head = server.deps().events.head();
        let head_seq = *head.borrow();
        let deltas = params.deltas.unwrap_or(false).then(|| server.deps().events.deltas());
        let (end, connection) = (CancellationToken::new(), caller.connection.clone());
        let number = {
            let mut subscriptions = Connection::lock(&connection.subscriptions);
            if subscriptions.len() >= MOST {
                let message = format!("a connection has at most {MOST} subscriptions");
                return Err(RpcError::new(ErrorKind::Limit, message).hint("end one, or use another connection"));
            }
            let number = subscriptions.keys().max().map_or(1, |last| last + 1);
            subscriptions.insert(number, end.clone());
            number
        };
        let (start, started) = oneshot::channel();
        Connection::lock(&connection.starting).push(start);
        let after = params.since_seq.unwrap_or(head_seq);
        if filter.types.as_ref().is_some_and(|types| types.contains(&EventType::ApprovalRequested)) {
            server.deps().events.is_there(Arc::downgrade(&filter) as Weak<dyn Answers>);
        }
        let reader = Reader { deps: server.deps().clone(), connection, number, filter, after };
        tokio::spawn(async move {
            // The answer goes first.
            let (connection, number) = (reader.connection.clone(), reader.number);
            if started.await.is_ok() {
                reader.run(end, deltas).await;
            }
            Connection::lock(&connection.subscriptions).remove(&number);
        });
        Ok(Subscribed { subscription: number, head_seq })
    }
}

impl Serve for EventsUnsubscribe {
    async fn serve(_: &Server, caller: &Caller, params: UnsubscribeParams) -> Result<Done, RpcError> {
        let subscription = Connection::lock(&caller.connection.subscriptions).remove(&params.subscription);
        let gone = || RpcError::new(ErrorKind::NotFound, format!("there is no subscription {}", params.subscription));
        subscription.ok_or_else(gone)?.cancel();
        Ok(Done {})
    }
}

struct Filter {
    registry: Registry,
    uid: u32,
    session: Option<SessionId>,
    task: Option<String>,
    types: Option<HashSet<EventType>>,
}

impl Filter {
    fn wants(&self, event: &Published) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(&event.kind))
            && self.sees(event.session.as_ref(), event.task.as_ref())
    }

    fn sees(&self, session: Option<&SessionId>, task: Option<&TaskId>) -> bool {
        let visible = |session: &SessionId| self.registry.sees(self.uid, session);
        self.session.as_ref().is_none_or(|own| session == Some(own))
            && self.task.as_ref().is_none_or(|own| task.is_some_and(|task| task.0 == *own))
            // Who may see the session it is bound to was asked at the beginning: its last events outlive it.
            && (self.session.is_some() || session.map_or(self.registry.is_admin(self.uid), visible))
    }
}

/// Who names the type of questions says that they can be answered; who takes all types may be a log.
impl Answers for Filter {
    fn is_asked(&self, session: &SessionId, task: &TaskId) -> bool {
        self.sees(Some(session), Some(task))
    }
}

struct Reader {
    deps: Arc<Deps>,
    connection: Arc<Connection>,
    number: u64,
    filter: Arc<Filter>,
    after: u64,
}

impl Reader {
    async fn run(mut self, end: CancellationToken, mut deltas: Option<broadcast::Receiver<Arc<Published>>>) {
        let mut head = self.deps.events.head();
        let gone = self.connection.gone().clone();
        loop {
            // Deltas first: the pieces of a reply go out before the message that holds them.
            tokio::select! {
                biased;
                () = end.cancelled() => return,
                () = gone.cancelled() => return,
                Some(delta) = next_delta(&mut deltas), if deltas.is_some() => {
                    if self.filter.wants(&delta) {
                        self.connection.try_send(self.line(&delta));
                    }
                }
                grown = grown(&mut head, self.after) => {
                    if !grown || !self.page().await {
                        return;
                    }
                }
            }
        }
    }

    /// Sends one page; false: the peer is gone.
    async fn page(&mut self) -> bool {
        // Before reading: what comes after it is not passed over.
        let head = *self.deps.events.head().borrow();
        let events = match self.deps.events.read(&self.deps.store, self.after, PAGE) {
            Ok(events) if !events.is_empty() => events,
            // Numbers may be missing at the head: what was deleted is no longer there to read.
            Ok(_) => {
                let from = self.after + 1;
                self.after = self.after.max(head);
                return from > head || self.gap(from, head).await;
            }
            Err(error) => {
                tracing::error!(%error, "events cannot be read");
                return false;
            }
        };
        for event in events {
            let expected = self.after + 1;
            self.after = event.seq;
            if event.seq > expected && !self.gap(expected, event.seq - 1).await {
                return false;
            }
            if self.filter.wants(&event) && !self.connection.send(self.line(&event)).await {
                return false;
            }
        }
        true
    }

    /// Tells of numbers that are no longer there.
    async fn gap(&self, from: u64, to: u64) -> bool {
        let data = json!({"from": from, "to": to});
        let at = self.deps.clock.now();
        let gap = Event { seq: None, session: None, task: None, at, kind: EventType::Gap, data };
        let params = json!({"subscription": self.number, "event": gap});
        self.connection.send(json!({"jsonrpc": "2.0", "method": "event", "params": params}).to_string()).await
    }

    fn line(&self, event: &Published) -> String {
        let (number, json) = (self.number, event.json.get());
        format!(r#"{{"jsonrpc":"2.0","method":"event","params":{{"subscription":{number},"event":{json}}}}}"#)
    }
}

/// Returns once the log has a number above `after`; false: it never will.
async fn grown(head: &mut watch::Receiver<u64>, after: u64) -> bool {
    head.wait_for(|head| *head > after).await.is_ok()
}

/// Returns the next delta; lost ones are passed over.
async fn next_delta(deltas: &mut Option<broadcast::Receiver<Arc<Published>>>) -> Option<Arc<Published>> {
    let deltas = deltas.as_mut()?;
    loop {
        match deltas.recv().await {
            Ok(delta) => return Some(delta),
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return None,
        }
    }
}
