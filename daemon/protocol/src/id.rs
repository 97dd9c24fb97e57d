//! Identifiers: a prefix that names the kind, then a ULID.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The prefix of this kind of id.
            pub const PREFIX: &'static str = $prefix;

            /// Makes the id from the text of a fresh ULID.
            pub fn from_ulid(ulid: &str) -> Self {
                Self(format!("{}{ulid}", $prefix))
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// Names a session.
    SessionId, "ses_"
);
id!(
    /// Names a task.
    TaskId, "tsk_"
);
id!(
    /// Names a message.
    MessageId, "msg_"
);
id!(
    /// Names a follow-up.
    FollowupId, "fup_"
);
id!(
    /// Names an approval.
    ApprovalId, "apr_"
);
id!(
    /// Names a background process.
    ProcessId, "prc_"
);

const PREFIXES: [&str; 6] =
    [SessionId::PREFIX, TaskId::PREFIX, MessageId::PREFIX, FollowupId::PREFIX, ApprovalId::PREFIX, ProcessId::PREFIX];

/// A session as a person writes it: its id, an unambiguous prefix of the id, or its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
#[derive(Default)]
pub struct SessionRef(pub String);

impl From<&SessionId> for SessionRef {
    fn from(id: &SessionId) -> Self {
        Self(id.0.clone())
    }
}

/// Tells whether `name` may name a session: `[A-Za-z0-9._-]{1,64}` and not like an id.
pub fn is_session_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=64).contains(&name.len()) && name.chars().all(plain) && !PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::is_session_name;

    #[test]
    fn session_names() {
        for good in ["a", "my.app_1-x", "..", &"x".repeat(64)] {
            assert!(is_session_name(good), "{good}");
        }
        for bad in ["", "a b", "ä", "ses_1", "tsk_1", "prc_x", "a/b", &"x".repeat(65)] {
            assert!(!is_session_name(bad), "{bad}");
        }
    }
}
