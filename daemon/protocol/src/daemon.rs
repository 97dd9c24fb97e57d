//! The daemon itself.

use std::collections::BTreeMap;

use crate::time::Timestamp;

params! {
    /// No parameters.
    pub struct Nothing {}

    /// Parameters of `daemon.hello`.
    pub struct HelloParams {
        /// The client's name and version.
        pub client: String,
        /// The newest protocol it speaks.
        pub protocol: u64,
    }

    /// Parameters of `daemon.shutdown`.
    pub struct ShutdownParams {
        /// How long running calls may take to end.
        pub grace_ms: Option<u64>,
    }
}

wire! {
    /// An empty result.
    #[derive(Default)]
    pub struct Done {}

    /// Result of `daemon.hello`.
    pub struct Hello {
        /// `nanod`.
        pub server: String,
        /// The daemon's version.
        pub version: String,
        /// The protocol that both speak.
        pub protocol: u64,
    }

    /// Result of `daemon.status`.
    pub struct Status {
        /// The daemon's version.
        pub version: String,
        /// Its process id.
        pub pid: u32,
        /// When it started.
        pub started_at: Timestamp,
        /// How long ago.
        pub uptime_ms: u64,
        /// How many sessions are in each state.
        pub sessions: BTreeMap<String, u64>,
        /// How many tasks are in each state.
        pub tasks: BTreeMap<String, u64>,
        /// The schedule.
        pub followups: FollowupStatus,
        /// The store.
        pub store: StoreStatus,
        /// Resident memory.
        pub rss_bytes: u64,
    }

    /// Result of `daemon.doctor`.
    pub struct Doctor {
        /// What was looked at, always the same in the same order.
        pub checks: Vec<Check>,
    }

    /// One thing that `daemon.doctor` looked at.
    pub struct Check {
        /// What.
        pub name: String,
        /// Whether it is as it should be, or nearly.
        pub ok: bool,
        /// Whether it is there in part only, which does no harm by itself.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub partial: bool,
        /// What was found.
        pub detail: String,
        /// What to do about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub hint: Option<String>,
    }

    /// The schedule in brief.
    pub struct FollowupStatus {
        /// How many will fire.
        pub active: u64,
        /// The next one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<Timestamp>,
    }

    /// The store in brief.
    pub struct StoreStatus {
        /// Its folder.
        pub path: String,
        /// Its size.
        pub bytes: u64,
    }
}
