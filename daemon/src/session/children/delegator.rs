//! The call that delegates: opens the child, and waits for it where that was ordered.

use std::time::Duration;

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::id::SessionId;
use tokio::sync::watch;

use super::end::{self, End};
use super::opening::Call;
use super::{cancel, of, opening, refused};
use crate::sandbox::BoxFuture;
use crate::session::deps::Deps;
use crate::session::reading;
use crate::session::registry::Registry;
use crate::store::record::ChildRecord;
use crate::store::{Change, Commit, Key, StoreError};
use crate::tools::delegate::{Delegator, Order};
use crate::tools::{ToolContext, ToolOutcome};

/// How long a stopped call waits for the end of its child: less than it has itself.
const PATIENCE: Duration = Duration::from_secs(4);

impl Delegator for Registry {
    fn delegate<'a>(&'a self, context: &'a ToolContext, order: Order) -> BoxFuture<'a, ToolOutcome> {
        let wait = order.wait.unwrap_or(true);
        Box::pin(async move {
            let child = match self.child(context, order).await {
                _ if context.cancel.is_cancelled() && !wait => return stopped(),
                Ok(child) => child,
                Err(_) if context.cancel.is_cancelled() => return stopped(),
                Err(error) => return refused(error),
            };
            if !child.wait {
                let ChildRecord { session, task, .. } = child;
                let text = format!("Subagent session {session} works on it, as task {task}.");
                return ToolOutcome::Done(format!("{text} Its result comes as a message."));
            }
            let waited = self.wait_for(context, &child).await;
            waited.unwrap_or_else(|error| refused(self.deps().store_failed(&error)))
        })
    }
}

fn stopped() -> ToolOutcome {
    ToolOutcome::Stopped("Stopped before the subagent session had begun.".into())
}

impl Registry {
    /// Returns the child of this call, made now or when the call was made before.
    async fn child(&self, context: &ToolContext, order: Order) -> Result<ChildRecord, RpcError> {
        let children = of(self.deps(), &context.session).map_err(|error| self.deps().store_failed(&error))?;
        if let Some(child) = children.into_iter().find(|child| child.call == context.call) {
            return Ok(child);
        }
        let (registry, call) = (self.clone(), Call::of(context));
        // On a task of its own: a call that is abandoned leaves no child behind that nobody knows of.
        let opened = self.deps().shutdown.spawn("open-child", async move { registry.opened(call, order).await });
        opened.await.unwrap_or_else(|why| Err(RpcError::new(ErrorKind::Internal, why.to_string())))
    }

    /// Opens a child; one whose call was stopped meanwhile, or whose parent is closed by now, ends at once.
    async fn opened(&self, call: Call, order: Order) -> Result<ChildRecord, RpcError> {
        let child = opening::open(self, &call, order).await?;
        if call.cancel.is_cancelled()
            && let Ok(None) = end::of(self.deps(), &child)
        {
            self.stop(&call.session, &child).await.map_err(|error| self.deps().store_failed(&error))?;
        }
        if reading::record(self.deps(), &child.session).is_ok_and(|record| self.is_orphan(&record.session)) {
            self.close_orphan(&child.session).await;
        }
        Ok(child)
    }

    async fn wait_for(&self, context: &ToolContext, child: &ChildRecord) -> Result<ToolOutcome, StoreError> {
        let mut settled = self.deps().events.settled();
        let stopping = self.deps().shutdown.stopping();
        tokio::select! {
            biased;
            end = ended(self.deps(), child, &mut settled) => return Ok(self.result(context, child, end?).await),
            () = stopping.cancelled() => {
                let goes_on = format!("Stopped: the daemon goes down. Subagent session {}", child.session);
                let text = format!("{goes_on} goes on after its next start; its result comes as a message.");
                return Ok(ToolOutcome::Stopped(text));
            }
            () = context.cancel.cancelled() => {}
        }
        self.stop(&context.session, child).await?;
        if let Ok(end) = tokio::time::timeout(PATIENCE, ended(self.deps(), child, &mut settled)).await {
            return Ok(self.result(context, child, end?).await);
        }
        let text = format!("Stopped. Subagent session {} was told to end and has not yet", child.session);
        Ok(ToolOutcome::Stopped(format!("{text}; what comes of it comes as a message.")))
    }

    /// Ends the child's task; that it is to end is on record first.
    async fn stop(&self, parent: &SessionId, child: &ChildRecord) -> Result<(), StoreError> {
        let stopped = ChildRecord { stopped: true, ..child.clone() };
        let changes = vec![Change::put(Key::child(parent, &child.session), &stopped)];
        self.deps().store.commit(Commit::owed(changes)).await?;
        cancel(self, child);
        Ok(())
    }

    /// Makes the call's result of an end; with that it has been heard.
    async fn result(&self, context: &ToolContext, child: &ChildRecord, end: End) -> ToolOutcome {
        let bounded = async |text| end::bounded(self.deps(), &context.session, child, text).await;
        let outcome = match end.answer {
            Some(answer) => ToolOutcome::Done(bounded(answer).await),
            None if context.cancel.is_cancelled() => ToolOutcome::Stopped(bounded(end.told).await),
            None => ToolOutcome::Failed(bounded(end.told).await),
        };
        let heard = Change::Delete(Key::child(&context.session, &child.session));
        ToolOutcome::Settles(heard, Box::new(outcome))
    }
}

/// Waits for the end of a child's task.
async fn ended(deps: &Deps, child: &ChildRecord, settled: &mut watch::Receiver<u64>) -> Result<End, StoreError> {
    loop {
        settled.mark_unchanged();
        if let Some(end) = end::of(deps, child)? {
            return Ok(end);
        }
        if settled.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
