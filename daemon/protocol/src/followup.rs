//! Follow-ups: a message that becomes a task later.

use crate::Object;
use crate::id::{FollowupId, SessionId, SessionRef, TaskId};
use crate::time::Timestamp;

words!(
    /// What becomes of slots that passed while nobody could fire them.
    Missed {
        /// They are recorded and no task runs.
        Skip = "skip",
        /// The latest one within the grace fires.
        Latest = "latest",
        /// All within the grace fire.
        All = "all",
    }
);

words!(
    /// What happens when the task of the slot before still runs.
    Overlap {
        /// The slot is skipped.
        Skip = "skip",
        /// One waits; of what happens and will not come again, all.
        Queue = "queue",
        /// The old task is cancelled, then the new one runs.
        Replace = "replace",
    }
);

words!(
    /// How far a follow-up is.
    FollowupState {
        /// It will fire.
        Active = "active",
        /// It waits for resume; slots that pass meanwhile are missed.
        Paused = "paused",
        /// It has fired for the last time.
        Done = "done",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It cannot go on.
        Failed = "failed",
    }
);

words!(
    /// What became of a slot.
    RunState {
        /// A task was made.
        Fired = "fired",
        /// Its time passed.
        Missed = "missed",
        /// The overlap rule left it out.
        Skipped = "skipped",
    }
);

params! {
    /// What a follow-up waits for: exactly one of its kinds.
    pub struct Trigger {
        /// After so many milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub after_ms: Option<u64>,
        /// At an instant: RFC 3339, or a local time of `tz`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub at: Option<String>,
        /// Every so many milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub every_ms: Option<u64>,
        /// The instant that intervals count from.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub anchor: Option<String>,
        /// A cron expression of 5 or 6 fields.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cron: Option<String>,
        /// The IANA zone of `at` or `cron`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tz: Option<String>,
        /// Something that happens.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub on: Option<On>,
        /// Only by `followup.trigger`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub external: Option<bool>,
    }

    /// Something that happens.
    pub struct On {
        /// This task ends; one that has ended already fires at once.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub task: Option<String>,
        /// A durable event of this type comes, in the follow-up's own session or in none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub event: Option<String>,
        /// What the event's data must hold: members nested or by dotted path; `session` names another session.
        #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
        pub matches: Option<Object>,
        /// A file that fits this glob appears below the workspace, or is replaced; the task is told its name.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub file: Option<String>,
    }

    /// Parameters of `followup.schedule`.
    pub struct ScheduleParams {
        /// The session whose task it becomes.
        pub session: SessionRef,
        /// What to do then.
        pub content: String,
        /// What it waits for.
        pub trigger: Trigger,
        /// A name for people.
        pub name: Option<String>,
        /// The IANA zone, where the trigger has none.
        pub tz: Option<String>,
        /// What becomes of missed slots.
        pub missed: Option<Missed>,
        /// What happens when the task before still runs; `skip` unless told.
        pub overlap: Option<Overlap>,
        /// How late a slot may fire.
        pub grace_ms: Option<u64>,
        /// How often it fires at most; runs by `followup.trigger` count only where nothing else makes it fire.
        pub max_runs: Option<u64>,
        /// Not after this instant.
        pub until: Option<String>,
        /// A stable delay of up to so many milliseconds, less than the shortest period.
        pub jitter_ms: Option<u64>,
        /// The caller's own data.
        pub metadata: Option<Object>,
        /// The same key and parameters answer the same follow-up.
        pub idempotency_key: Option<String>,
    }

    /// Parameters of the methods that take a follow-up alone.
    pub struct FollowupParams {
        /// Its id.
        pub followup: String,
    }

    /// Parameters of `followup.runs`.
    pub struct RunsParams {
        /// Its id.
        pub followup: String,
        /// At most so many; 200 unless told.
        pub limit: Option<usize>,
        /// `next` of the page before.
        pub after: Option<String>,
    }

    /// Parameters of `followup.trigger`.
    pub struct FireParams {
        /// Its id.
        pub followup: String,
        /// What to do this time; the follow-up's own content unless told.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content: Option<String>,
        /// The same key and parameters answer the same task.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub idempotency_key: Option<String>,
    }

    /// Parameters of `followup.list`.
    pub struct FollowupListParams {
        /// Only those of this session.
        pub session: Option<SessionRef>,
        /// Only those in this state.
        pub state: Option<FollowupState>,
        /// At most so many; 200 unless told.
        pub limit: Option<usize>,
        /// `next` of the page before.
        pub after: Option<String>,
    }

    /// Parameters of `followup.next`.
    pub struct NextParams {
        /// What to compute.
        pub trigger: Trigger,
        /// From which instant on; now unless told.
        pub from: Option<String>,
        /// How many; 3 unless told.
        pub count: Option<usize>,
    }
}

wire! {
    /// A follow-up.
    pub struct Followup {
        /// Its id.
        pub id: FollowupId,
        /// The session whose task it becomes.
        pub session: SessionId,
        /// A name for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
        /// What to do then.
        pub content: String,
        /// What it waits for.
        pub trigger: Trigger,
        /// The zone, resolved at creation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub tz: Option<String>,
        /// How far it is.
        pub state: FollowupState,
        /// Why it is paused or failed, where nobody asked for that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
        /// When it fires next, three times at most.
        pub next: Vec<Timestamp>,
        /// The last slot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last: Option<Last>,
        /// Tasks made, by slots and by `followup.trigger`.
        pub runs: u64,
        /// Slots missed.
        pub missed: u64,
        /// What becomes of missed slots.
        pub missed_policy: Missed,
        /// What happens when the task before still runs.
        pub overlap: Overlap,
        /// How late a slot may fire.
        pub grace_ms: u64,
        /// How often it fires at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub max_runs: Option<u64>,
        /// Not after this instant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub until: Option<Timestamp>,
        /// A stable delay of up to so many milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub jitter_ms: Option<u64>,
        /// The caller's own data.
        pub metadata: Object,
        /// When it was made.
        pub created_at: Timestamp,
    }

    /// What became of a slot.
    pub struct Last {
        /// The instant it was due.
        pub slot: Timestamp,
        /// The task it made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub task: Option<TaskId>,
        /// What became of it.
        pub state: RunState,
    }

    /// Result of `followup.list`.
    pub struct Followups {
        /// Newest first.
        pub followups: Vec<Followup>,
        /// Goes into `after` for the rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Result of `followup.next`.
    pub struct NextTimes {
        /// In UTC, ascending.
        pub next: Vec<Timestamp>,
    }

    /// Result of `followup.runs`.
    pub struct Runs {
        /// Newest first.
        pub runs: Vec<Last>,
        /// Goes into `after` for the rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }
}
