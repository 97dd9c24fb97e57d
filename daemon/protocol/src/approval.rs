//! Approvals: calls that wait for a person.

use crate::Object;
use crate::id::{ApprovalId, SessionId, SessionRef, TaskId};
use crate::time::Timestamp;

words!(
    /// How far an approval is.
    ApprovalState {
        /// It waits for an answer.
        Pending = "pending",
        /// A person allowed it.
        Allowed = "allowed",
        /// A person denied it, or what it was about is not there any more.
        Denied = "denied",
        /// Nobody answered in time, or its task did not wait any longer.
        Expired = "expired",
    }
);

wire! {
    /// A call that a person is asked about: what is allowed is just this.
    pub struct Approval {
        /// Its id.
        pub id: ApprovalId,
        /// The session whose call it is.
        pub session: SessionId,
        /// The task whose call it is.
        pub task: TaskId,
        /// The call.
        pub call: String,
        /// The tool.
        pub tool: String,
        /// What the call is about, on one line.
        pub what: String,
        /// The call's arguments, long texts cut.
        pub arguments: Object,
        /// The SHA-256 of the tool and all its arguments.
        pub arguments_sha256: String,
        /// The program and its arguments, where it is one command without anything to expand.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub argv: Option<Vec<String>>,
        /// Where the path leads that it is about, links followed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub leads_to: Option<String>,
        /// The folder it works in, where that is on this machine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub cwd: Option<Place>,
        /// The SHA-256 of the environment of its program, where that is this machine's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub environment_sha256: Option<String>,
        /// The rule, or the danger, for which a person is asked.
        pub why: String,
        /// How far it is.
        pub state: ApprovalState,
        /// When it was asked.
        pub created_at: Timestamp,
        /// Until when it waits.
        pub expires_at: Timestamp,
        /// The uid of who answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub answered_by: Option<u32>,
        /// When it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub answered_at: Option<Timestamp>,
        /// Whether the same call is allowed for the rest of the session.
        pub always: bool,
        /// Why it ended, where no person ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
    }

    /// A folder: which one, not only its name.
    #[derive(Eq)]
    pub struct Place {
        /// Its path, links followed.
        pub path: String,
        /// Its device.
        pub device: u64,
        /// Its inode.
        pub inode: u64,
    }

    /// Result of `approval.list`.
    pub struct Approvals {
        /// Newest first.
        pub approvals: Vec<Approval>,
        /// Goes into `after` for the rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }
}

params! {
    /// Parameters of `approval.list`.
    pub struct ApprovalListParams {
        /// Only those of this session.
        pub session: Option<SessionRef>,
        /// Only those in this state.
        pub state: Option<ApprovalState>,
        /// At most so many; 200 unless told.
        pub limit: Option<usize>,
        /// `next` of the page before.
        pub after: Option<String>,
    }

    /// Parameters of `approval.answer`.
    pub struct ApprovalAnswerParams {
        /// Its id, or an unambiguous beginning of that.
        pub approval: String,
        /// Whether the call may run.
        pub allow: bool,
        /// Whether the same call may run for the rest of the session; only where it may run.
        pub always: Option<bool>,
    }
}
