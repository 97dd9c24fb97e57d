//! Parameters of the methods of sessions.

use super::{Delivery, Level, SessionState, ToolMode};
use crate::Object;
use crate::id::SessionRef;

params! {
    /// Parameters of `session.create`.
    pub struct CreateParams {
        /// Its name.
        pub name: Option<String>,
        /// Its agent profile; `default` unless told.
        pub agent: Option<String>,
        /// The folder that tools work in, absolute.
        pub workspace: Option<String>,
        /// Its kind of computer.
        pub booter: Option<String>,
        /// The model's name in the config.
        pub model: Option<String>,
        /// How far local tools reach.
        pub level: Option<Level>,
        /// The named set of tools.
        pub tool_mode: Option<ToolMode>,
        /// The tools by name.
        pub tools: Option<Vec<String>>,
        /// The skills by name.
        pub skills: Option<Vec<String>>,
        /// The caller's own data.
        pub metadata: Option<Object>,
        /// The same key and parameters answer the same session.
        pub idempotency_key: Option<String>,
    }

    /// Parameters of the methods that take a session alone.
    pub struct SessionParams {
        /// Which one.
        pub session: SessionRef,
    }

    /// Parameters of `session.list`.
    pub struct ListParams {
        /// Only those in this state.
        pub state: Option<SessionState>,
        /// At most so many; 200 unless told.
        pub limit: Option<usize>,
        /// `next` of the page before.
        pub after: Option<String>,
    }

    /// Parameters of `session.messages`.
    pub struct MessagesParams {
        /// Which session.
        pub session: SessionRef,
        /// Those with a greater `seq`.
        pub after_seq: Option<u64>,
        /// At most so many, up to 1000; 200 unless told.
        pub limit: Option<usize>,
    }

    /// Parameters of `session.steer`.
    pub struct SteerParams {
        /// Which session.
        pub session: SessionRef,
        /// The text.
        pub content: String,
        /// When it takes effect; note unless told.
        pub delivery: Option<Delivery>,
        /// The sender's own data.
        pub metadata: Option<Object>,
        /// The same key and parameters answer the same message.
        pub idempotency_key: Option<String>,
    }

    /// Parameters of `session.withdraw`.
    pub struct WithdrawParams {
        /// Which session.
        pub session: SessionRef,
        /// The waiting task's or message's id.
        pub id: String,
    }
}
