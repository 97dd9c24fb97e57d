//! The call that delegates: opens the child, and waits for it where that was ordered.

use std::time::Duration;

use nano_protocol::error::RpcError;
use tokio::sync::watch;

use super::end::{self, End};
use super::{cancel, of, opening, refused};
use crate::sandbox::BoxFuture;
use crate::session::deps::Deps;
use crate::session::registry::Registry;
use crate::store::record::ChildRecord;
use crate::store::{Change, Commit, Key, StoreError};
use crate::tools::delegate::{Delegator, Order};
use crate::tools::{ToolContext, ToolOutcome};

/// How long a stopped call waits for the end of its child: less than it has itself.
const PATIENCE: Duration = Duration::from_secs(4);

impl Delegator for Registry {
    fn delegate<'a>(&'a self, context: &'a ToolContext, order: Order) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let child = match self.child(context, order).await {
                Ok(child) => child,
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

impl Registry {
    /// Returns the child of this call, made now or when the call was made before.
    async fn child(&self, context: &ToolContext, order: Order) -> Result<ChildRecord, RpcError> {
        match of(self.deps(), &context.session).into_iter().find(|child| child.call == context.call) {
            Some(child) => Ok(child),
            None => opening::open(self, context, order).await,
        }
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
        self.stop(context, child).await?;
        if let Ok(end) = tokio::time::timeout(PATIENCE, ended(self.deps(), child, &mut settled)).await {
            return Ok(self.result(context, child, end?).await);
        }
        let text = format!("Stopped. Subagent session {} was told to end and has not yet", child.session);
        Ok(ToolOutcome::Stopped(format!("{text}; what comes of it comes as a message.")))
    }

    /// Ends the child's task; that it is to end is on record first.
    async fn stop(&self, context: &ToolContext, child: &ChildRecord) -> Result<(), StoreError> {
        let stopped = ChildRecord { stopped: true, ..child.clone() };
        let changes = vec![Change::put(Key::child(&context.session, &child.session), &stopped)];
        self.deps().store.commit(Commit { owner: None, changes }).await?;
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
        ToolOutcome::Settles(Key::child(&context.session, &child.session), Box::new(outcome))
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
