//! What becomes of calls that a dead daemon left open. The class of its tool says what an interrupted call gets:
//!
//! | class | gets |
//! | --- | --- |
//! | pure, keyed | run again, if its task goes on by itself; the model is asked after that |
//! | verify | what its file says: done, not run, or neither |
//! | opaque | `outcome: unknown`, and what is known of how far it came |
//! | dangerous | the same, and its task waits for a person |
//!
//! One that was never started is not started any more. All of it is on record before anything goes on.

mod calls;
mod closing;
mod step;

use std::fs::DirEntry;
use std::path::Path;

use nano_protocol::message::{Message, NotRun};
use nano_protocol::task::TaskError;

use super::actor::{Actor, OpenCall};
use super::task::Left;
use super::transcript;
use crate::crash;
use crate::store::Change;
use crate::store::record::call::CallResult;
use crate::tools::intents;

pub(super) use calls::interrupted;
pub(super) use closing::settle;
pub(super) use step::{Step, step};

/// What was made of the calls that were open.
#[derive(Default)]
pub(super) struct Settled {
    /// Results that are known by now.
    pub results: Vec<Message>,
    /// All calls of the reply, where some of them run again; the results are kept when their turn comes.
    pub left: Vec<Left>,
    /// The same for the actor.
    pub open: Vec<OpenCall>,
    /// What is to be recorded.
    pub changes: Vec<Change>,
    /// Why the task waits for a person, if it does.
    pub held: Option<TaskError>,
}

/// Returns the result of a call that never ran.
pub(super) fn not_run(why: NotRun) -> CallResult {
    CallResult { content: transcript::not_run_text(why), not_run: Some(why), ..CallResult::default() }
}

/// Removes what programs of a dead daemon had printed: it is told of by now.
pub(super) fn forget_spools(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let is_spool = |entry: &DirEntry| entry.file_name().to_string_lossy().starts_with("running-");
    for entry in entries.flatten().filter(is_spool) {
        std::fs::remove_file(entry.path()).ok();
    }
}

impl Actor {
    /// Does what is left to do when the result of a call is on record.
    pub(super) async fn after_call(&self, at: usize) {
        self.look_for_children(at);
        let Some(open) = self.open.get(at) else { return };
        if open.record.starts > 1 {
            crash::point("recovery.rerun.after");
        }
        let spool = intents::spool(&self.deps.spill(&self.record.session.id), &open.call.id);
        // Most calls print nothing.
        tokio::fs::remove_file(spool).await.ok();
    }
}
