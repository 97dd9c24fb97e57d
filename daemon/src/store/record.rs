//! What is stored, as JSON. A field that a later version adds has a default; a field is never given a new meaning.

pub mod call;
pub mod process;

use nano_protocol::Object;
use nano_protocol::catalog::AgentCreateParams;
use nano_protocol::event::{Data, EventType};
use nano_protocol::followup::Followup;
use nano_protocol::id::{FollowupId, MessageId, SessionId, TaskId};
use nano_protocol::session::{Delivery, Level, Session};
use nano_protocol::task::{Limits, Task};
use nano_protocol::time::Timestamp;
use nano_protocol::tool::Tool;
use serde::{Deserialize, Serialize};

/// A session with what clients do not see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "they are facts, each by its own name")]
pub struct SessionRecord {
    /// What clients see.
    pub session: Session,
    /// The list that its tools were last found to be; its revision rises when it changes.
    pub tools: Vec<Tool>,
    /// Rises with every change of `tools`.
    pub revision: u64,
    /// Whether `tools` is exact.
    pub exact: bool,
    /// True while it is closed and its `session.closed` is still to come.
    #[serde(default)]
    pub closing: bool,
    /// True for a session that a lone task made: its sandbox is freed when it is idle.
    #[serde(default)]
    pub ephemeral: bool,
    /// The key of the remote computer that its model knows; empty before there is one.
    #[serde(default)]
    pub computer: String,
    /// True for a delegate that uses its parent's computer.
    #[serde(default)]
    pub shares: bool,
    /// How many sessions stand above it, each a delegate of the one before.
    #[serde(default)]
    pub depth: u32,
    /// True below a session that may run no programs, whatever its own profile says.
    #[serde(default)]
    pub no_exec: bool,
    /// True below a session whose file tools stay in the workspace, whatever its own profile says.
    #[serde(default)]
    pub restricted: bool,
    /// The rules of every session above it: it is under all of them.
    #[serde(default)]
    pub policies: Vec<Vec<String>>,
}

/// How often a session was taken up by daemons that came after one that died.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tries {
    /// Where it stood: its newest message.
    pub step: u64,
    /// How often, there.
    pub times: u32,
    /// True from before it is read until it could be: found so, the last daemon may have died of that.
    pub under_way: bool,
    /// Whether the last death of a daemon was another session's doing.
    pub spared: bool,
    /// Whether daemons died of it so often that only a person has it taken up.
    pub parked: bool,
}

/// A remote computer that a session has, or had: on record before it is made, until it is known to be given back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComputerRecord {
    /// For whom it was made.
    pub session: SessionId,
    /// The booter's kind.
    pub kind: String,
    /// What makes its making happen once.
    pub key: String,
    /// What the booter calls it, once it is made.
    pub handle: Option<String>,
    /// Whether it has served.
    pub served: bool,
    /// Why the one before it is gone, if it took one's place.
    pub lost: Option<String>,
    /// Whether nobody uses it any more.
    pub giving_back: bool,
    /// Where commands start, if it shares the host's files.
    pub workspace: String,
    /// How far commands may reach.
    pub level: Level,
    /// When it was put on record; once nobody uses it any more, since when.
    #[serde(alias = "at")]
    pub since: Timestamp,
}

/// A task with what clients do not see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// What clients see.
    pub task: Task,
    /// Bounds beside the agent's.
    pub limits: Limits,
    /// Where a task that is not the caller's own comes from.
    #[serde(default)]
    pub source: Option<String>,
    /// How often it went on by itself after the daemon died.
    #[serde(default)]
    pub restarts: u32,
    /// True while it runs in a daemon that stopped in an orderly way.
    #[serde(default)]
    pub suspended: bool,
    /// Replies in a row that the length limit cut.
    #[serde(default)]
    pub cuts: u32,
    /// Turns used before it was last resumed: they no longer count.
    #[serde(default)]
    pub turns_before: u32,
    /// The newest message when it was last resumed: repetitions up to there no longer count.
    #[serde(default)]
    pub seen_before: u64,
    /// When it was queued, or queued again: its place in the queue.
    #[serde(default)]
    pub queued_at: Timestamp,
    /// The follow-up that made it, or the task it was delegated by.
    #[serde(default)]
    pub made_by: Option<MadeBy>,
    /// How many results of delegated work stand in a chain behind it, each of which began a task.
    #[serde(default)]
    pub rounds: u32,
}

/// The follow-up that made a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBy {
    /// Which.
    pub followup: FollowupId,
    /// How many follow-ups stand in a chain behind the task, each brought about by a task of the one before.
    pub depth: u32,
}

/// A steering message that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteeringRecord {
    /// Its id.
    pub id: MessageId,
    /// Its place in the order of arrival.
    pub place: u64,
    /// When it takes effect.
    pub delivery: Delivery,
    /// Its text.
    pub content: String,
    /// Where it comes from, if not from a client.
    pub source: Option<String>,
    /// The sender's own data.
    pub metadata: Option<Object>,
    /// When it was accepted.
    pub at: Timestamp,
}

/// A session that a task delegated to, until what came of that is recorded with its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildRecord {
    /// It.
    pub session: SessionId,
    /// Its task.
    pub task: TaskId,
    /// The task that delegated.
    pub parent_task: TaskId,
    /// The call that did.
    pub call: String,
    /// Whether that call waits for the end.
    pub wait: bool,
    /// Whether it was told to end because what it works for has ended.
    #[serde(default)]
    pub stopped: bool,
}

/// A follow-up with what clients do not see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FollowupRecord {
    /// What clients see; its next slots are computed when it is shown.
    pub followup: Followup,
    /// The uid it belongs to.
    pub owner: u32,
    /// Its trigger as the calendar resolved it.
    pub schedule: Data,
    /// The last slot that was decided.
    pub last_due: Option<Timestamp>,
    /// The slot that is decided next.
    pub next_due: Option<Timestamp>,
    /// How many follow-ups stand in a chain up to it, itself included.
    #[serde(default = "one")]
    pub depth: u32,
    /// Whether an agent's own tool made it.
    #[serde(default)]
    pub by_agent: bool,
    /// How many of its runs were made by `followup.trigger`, beside its schedule.
    #[serde(default)]
    pub out_of_turn: u64,
    /// How many of its tasks have failed in a row.
    #[serde(default)]
    pub failures: u32,
    /// The event up to which ends of its tasks are counted.
    #[serde(default)]
    pub judged_seq: u64,
    /// The event up to which events have made it fire, or cannot any more.
    #[serde(default)]
    pub seen_seq: u64,
    /// A task that the newest one replaces, until it is cancelled.
    #[serde(default)]
    pub replaces: Option<TaskId>,
    /// Slots up to here may be on record although the schedule has not come to them: the clock was set far back.
    #[serde(default)]
    pub recorded_until: Option<Timestamp>,
    /// Since when it is counted how often something set it off.
    #[serde(default)]
    pub hour_began: Timestamp,
    /// How often that was.
    #[serde(default)]
    pub in_hour: u64,
}

fn one() -> u32 {
    1
}

/// An agent profile made over RPC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileRecord {
    /// The uid that may change it.
    pub owner: u32,
    /// What was said of it: what was not has the default of the version that reads it.
    pub said: AgentCreateParams,
}

/// What an idempotency key stands for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// SHA-256 of the parameters.
    pub params: String,
    /// The answer: an object's id, or the whole answer where there is no such object.
    pub answer: Data,
    /// When.
    pub at: Timestamp,
}

/// An event that has no number yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The session it happened in.
    pub session: Option<SessionId>,
    /// The task it happened in.
    pub task: Option<TaskId>,
    /// What happened.
    pub kind: EventType,
    /// Particulars.
    pub data: Data,
}
