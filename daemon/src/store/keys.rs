//! Keys: one letter for the kind, then parts that sort as the records should.

use std::fmt::Write;

use data_encoding::HEXLOWER;
use nano_protocol::id::{ApprovalId, FollowupId, ProcessId, SessionId, TaskId};
use nano_protocol::time::Timestamp;
use serde_json::value::RawValue;

/// Where a record lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(pub(super) Vec<u8>);

fn join(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = vec![kind];
    for part in parts {
        key.push(b'/');
        key.extend_from_slice(part);
    }
    key
}

impl Key {
    /// A session.
    pub fn session(id: &SessionId) -> Self {
        Self(join(b's', &[id.0.as_bytes()]))
    }
    /// A message, by its number.
    pub fn message(session: &SessionId, seq: u64) -> Self {
        Self(join(b'm', &[session.0.as_bytes(), &seq.to_be_bytes()]))
    }
    /// A task.
    pub fn task(id: &TaskId) -> Self {
        Self(join(b't', &[id.0.as_bytes()]))
    }
    /// The fact that a session has a task.
    pub fn session_task(session: &SessionId, task: &TaskId) -> Self {
        Self(join(b'u', &[session.0.as_bytes(), task.0.as_bytes()]))
    }
    /// The fact that a task of a session has not ended.
    pub fn open_task(session: &SessionId, task: &TaskId) -> Self {
        Self(join(b'o', &[session.0.as_bytes(), task.0.as_bytes()]))
    }
    /// A steering message that waits, by its place.
    pub fn steering(session: &SessionId, place: u64) -> Self {
        Self(join(b'w', &[session.0.as_bytes(), &place.to_be_bytes()]))
    }
    /// A call that is not closed yet, by its place in the reply.
    pub fn call(session: &SessionId, place: usize) -> Self {
        Self(join(b'c', &[session.0.as_bytes(), &(place as u64).to_be_bytes()]))
    }
    /// A computer that was made for a session, or was about to be.
    pub fn computer(session: &SessionId, key: &str) -> Self {
        Self(join(b'b', &[session.0.as_bytes(), key.as_bytes()]))
    }
    /// What a session has delegated to a child and not heard of yet.
    pub fn child(parent: &SessionId, child: &SessionId) -> Self {
        Self(join(b'd', &[parent.0.as_bytes(), child.0.as_bytes()]))
    }
    /// An approval.
    pub fn approval(session: &SessionId, id: &ApprovalId) -> Self {
        Self(join(b'q', &[session.0.as_bytes(), id.0.as_bytes()]))
    }
    /// A background process.
    pub fn process(id: &ProcessId) -> Self {
        Self(join(b'j', &[id.0.as_bytes()]))
    }
    /// The fact that a session has a background process.
    pub fn session_process(session: &SessionId, id: &ProcessId) -> Self {
        Self(join(b'l', &[session.0.as_bytes(), id.0.as_bytes()]))
    }
    /// The fact that the end of a background process is still to be told to its session.
    pub fn untold(session: &SessionId, id: &ProcessId) -> Self {
        Self(join(b'n', &[session.0.as_bytes(), id.0.as_bytes()]))
    }
    /// How often a session was taken up after a daemon had died.
    pub fn tries(session: &SessionId) -> Self {
        Self(join(b'i', &[session.0.as_bytes()]))
    }
    /// What a session has on its list of things to do.
    pub fn todo(session: &SessionId) -> Self {
        Self(join(b'x', &[session.0.as_bytes()]))
    }
    /// How far the steering file of a workspace has been taken.
    pub fn position(workspace: &str) -> Self {
        Self(join(b'p', &[workspace.as_bytes()]))
    }
    /// A follow-up.
    pub fn followup(id: &FollowupId) -> Self {
        Self(join(b'f', &[id.0.as_bytes()]))
    }
    /// A slot of a follow-up that fired, was missed or skipped.
    pub fn slot(id: &FollowupId, slot: Timestamp) -> Self {
        Self(join(b'r', &[id.0.as_bytes(), &slot.0.to_be_bytes()]))
    }
    /// A version of a file that a follow-up knows.
    pub fn file(id: &FollowupId, version: &str) -> Self {
        Self(join(b'v', &[id.0.as_bytes(), version.as_bytes()]))
    }
    /// An agent profile made over RPC.
    pub fn agent(name: &str) -> Self {
        Self(join(b'a', &[name.as_bytes()]))
    }
    /// What the tools of an MCP server were.
    pub fn pins(server: &str) -> Self {
        Self(join(b'g', &[server.as_bytes()]))
    }
    /// An event, by its number.
    pub fn event(seq: u64) -> Self {
        Self(join(b'e', &[&seq.to_be_bytes()]))
    }
    /// An idempotency key of a caller and method.
    pub fn idempotency(uid: u32, method: &str, key: &str) -> Self {
        Self(join(b'k', &[&uid.to_be_bytes(), method.as_bytes(), key.as_bytes()]))
    }
    /// A fact about the store itself.
    pub fn meta(name: &str) -> Self {
        Self(join(b'!', &[name.as_bytes()]))
    }

    /// Every record of a kind: `s`, `t`, `b`, `f`, `j`, `a`, `e`, `k`, `q`.
    pub fn all(kind: u8) -> Self {
        Self(vec![kind, b'/'])
    }
    /// Every record of a kind below one owner: `m`, `u`, `o`, `w`, `c`, `b`, `d`, `l`, `n`, `q` of a session, `r`, `v` of a
    /// follow-up.
    pub fn below(kind: u8, owner: &str) -> Self {
        Self(join(kind, &[owner.as_bytes(), b""]))
    }

    /// Returns the last part as text, such as the id of a task.
    pub(super) fn last_part(bytes: &[u8]) -> &str {
        let at = bytes.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
        bytes.get(at..).and_then(|part| std::str::from_utf8(part).ok()).unwrap_or("")
    }
}

/// Returns a key as people read it: printable ASCII as it is, `\` and every other byte as `\xNN`.
pub(super) fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b' '..=b'~' if *byte != b'\\' => text.push(char::from(*byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(text, "\\x{byte:02x}")),
        }
    }
    text
}

/// Returns a key as it is told of: with its number in decimal where it ends with one, and not endless.
pub(super) fn told(bytes: &[u8]) -> String {
    const MOST: usize = 120;
    let numbered = matches!(bytes.first(), Some(b'm' | b'w' | b'c' | b'e' | b'r'));
    let number = bytes.split_last_chunk::<8>().filter(|(head, _)| numbered && head.ends_with(b"/"));
    let told = match number {
        Some((head, number)) => format!("{}{}", text(head), u64::from_be_bytes(*number)),
        None => text(bytes),
    };
    // All of it is ASCII.
    told.get(..MOST).map_or(told.clone(), |cut| format!("{cut}..."))
}

/// Returns a value as the one line of JSON that it is stored as; nothing where it is none, or has space around it that
/// would not come back.
pub(super) fn one_line(value: &[u8]) -> Option<&str> {
    let json: &RawValue = serde_json::from_slice(value).ok()?;
    (json.get().len() == value.len() && !value.contains(&b'\n')).then_some(json.get())
}

/// Returns the bytes that [`text`] made a text of.
pub(super) fn parse(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = match first {
            b'\\' => {
                let (hex, behind) = behind.strip_prefix(b"x")?.split_at_checked(2)?;
                bytes.push(HEXLOWER.decode(hex).ok()?.pop()?);
                behind
            }
            b' '..=b'~' => {
                bytes.push(*first);
                behind
            }
            _ => return None,
        };
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{parse, text, told};

    #[test]
    fn a_key_is_told_with_its_number_and_not_endless() {
        for (bytes, expected) in [
            (b"m/ses_1/\x00\x00\x00\x00\x00\x00\x01\x00".as_slice(), "m/ses_1/256"),
            (b"e/\x00\x00\x00\x00\x00\x00\x00\x05", "e/5"),
            (b"s/ses_1", "s/ses_1"),
            (b"m/\xff", r"m/\xff"),
            (b"", ""),
        ] {
            assert_eq!(told(bytes), expected);
        }
        assert_eq!(told(&[b'k'; 1000]).len(), 123);
    }

    #[test]
    fn a_key_is_readable() {
        for (bytes, readable) in [
            (b"".as_slice(), ""),
            (b"s/ses_1", "s/ses_1"),
            (b"m/ses_1/\x00\x01\xff", r"m/ses_1/\x00\x01\xff"),
            (br"p/C:\x20 ~", r"p/C:\x5cx20 ~"),
            ("p/ö\n\"".as_bytes(), r#"p/\xc3\xb6\x0a""#),
        ] {
            assert_eq!(text(bytes), readable);
            assert_eq!(parse(readable).as_deref(), Some(bytes), "{readable}");
        }
        for bad in [r"\", r"\x", r"\x0", r"\xg0", r"\y00", "ö", "a\n", r"\x+1"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_key_comes_back(bytes: Vec<u8>) {
            prop_assert_eq!(parse(&text(&bytes)), Some(bytes));
        }

        #[test]
        fn any_text_is_a_key_or_none(text in any::<String>()) {
            drop(parse(&text));
        }
    }
}
