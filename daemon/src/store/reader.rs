//! Reading: records by key and by range, straight from sled's memory.

use std::borrow::Cow;
use std::ops::Bound;

use nano_protocol::event::{Data, Event, EventType};
use nano_protocol::id::SessionId;
use nano_protocol::message::Message;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::writer::{piece_count, piece_key};
use super::{Key, Store, StoreError};

/// A page of events ends behind so many bytes.
const EVENT_BYTES: usize = 1024 * 1024;

/// A page of messages ends behind so many bytes: an answer must fit into a line.
const MESSAGE_BYTES: usize = 8 * 1024 * 1024;

/// As much of an event as tells whose it is.
#[derive(Deserialize)]
struct Whose {
    seq: u64,
    session: Option<SessionId>,
}

impl Store {
    /// Returns the record at `key`, if there is one.
    pub fn get<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<T>, StoreError> {
        let _gate = self.gate.read();
        self.at(key)
    }

    /// Like [`Store::get`], for who holds the gate: to take it twice is to wait for oneself.
    fn at<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<T>, StoreError> {
        let Some(head) = self.db.get(&key.0).map_err(|why| failed(&why))? else {
            return Ok(None);
        };
        self.decode(&key.0, &head).map(Some)
    }

    /// Returns the records below `prefix`, oldest key first, beginning behind `after`, at most `limit`.
    pub fn scan<T: DeserializeOwned>(
        &self,
        prefix: &Key,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<T>, StoreError> {
        let _gate = self.gate.read();
        let inside = self.range(prefix, after);
        inside
            .take(limit)
            .map(|entry| {
                let (key, head) = entry?;
                self.decode(&key, &head)
            })
            .collect()
    }

    /// Returns those records below `prefix` that can be read; the others are told in the log.
    pub fn readable<T: DeserializeOwned>(&self, prefix: &Key) -> Result<Vec<T>, StoreError> {
        let _gate = self.gate.read();
        let mut found = Vec::new();
        for entry in self.range(prefix, None) {
            let (key, head) = entry?;
            match self.decode(&key, &head) {
                Ok(record) => found.push(record),
                Err(error @ StoreError::Damaged(_)) => tracing::error!(%error, "it is left out"),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Returns the records below `prefix`, newest key first, beginning before `before`, at most `limit`.
    pub fn scan_backwards<T: DeserializeOwned>(
        &self,
        prefix: &Key,
        before: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<T>, StoreError> {
        let _gate = self.gate.read();
        let mut end = prefix.0.clone();
        end.extend([0xff; 16]);
        let end = before.map_or(end, |key| key.0.clone());
        let inside = self.db.range(prefix.0.clone()..end).rev().take(limit);
        inside
            .map(|entry| {
                let (key, head) = entry.map_err(|why| failed(&why))?;
                self.decode(&key, &head)
            })
            .collect()
    }

    fn range(
        &self,
        prefix: &Key,
        after: Option<&Key>,
    ) -> impl Iterator<Item = Result<(sled::IVec, sled::IVec), StoreError>> + use<> {
        let prefix = prefix.0.clone();
        let from = after.map_or(Bound::Included(prefix.clone()), |key| Bound::Excluded(key.0.clone()));
        let inside = self.db.range::<Vec<u8>, _>((from, Bound::Unbounded));
        let inside = inside.map(|entry| entry.map_err(|why| failed(&why)));
        inside.take_while(move |entry| entry.as_ref().map_or(true, |(key, _)| key.starts_with(&prefix)))
    }

    /// Returns the ids in the keys below `prefix`, newest first, beginning behind `before`; a record that is not durable
    /// yet may be among them, and [`Store::get`] waits for it.
    pub fn ids_backwards(&self, prefix: &Key, before: Option<&Key>) -> impl Iterator<Item = String> + use<> {
        let mut end = prefix.0.clone();
        end.push(0xff);
        let end = before.map_or(Bound::Excluded(end), |key| Bound::Excluded(key.0.clone()));
        let inside = self.db.range::<Vec<u8>, _>((Bound::Included(prefix.0.clone()), end));
        let keys = inside.rev().map_while(|entry| {
            entry.inspect_err(|error| tracing::error!(%error, "a list ends early")).ok().map(|(key, _)| key)
        });
        keys.map(|key| Key::last_part(&key).to_owned())
    }

    /// Returns a session's messages with a number above `after`, oldest first: at most `limit`, and fewer where they are
    /// large; and whether there are more.
    pub fn messages(&self, session: &SessionId, after: u64, limit: usize) -> Result<(Vec<Message>, bool), StoreError> {
        let _gate = self.gate.read();
        let (mut messages, mut bytes) = (Vec::new(), 0);
        for entry in self.range(&Key::below(b'm', &session.0), Some(&Key::message(session, after))) {
            if messages.len() == limit || bytes > MESSAGE_BYTES {
                return Ok((messages, true));
            }
            let (key, head) = entry?;
            let text = self.whole(&key, &head)?;
            bytes += text.len();
            messages.push(serde_json::from_slice(&text).map_err(|why| damaged(&key, &why.to_string()))?);
        }
        Ok((messages, false))
    }

    /// Returns all messages of a session, taking the gate page by page.
    pub fn all_messages(&self, session: &SessionId) -> Result<Vec<Message>, StoreError> {
        let mut all: Vec<Message> = Vec::new();
        loop {
            let (page, more) = self.messages(session, all.last().map_or(0, |last| last.seq), 256)?;
            all.extend(page);
            if !more {
                return Ok(all);
            }
        }
    }

    /// Returns the events with a number above `after`, whole: at most `limit`, and fewer where they are large.
    /// One that cannot be read is passed over, and named in the log.
    pub fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        let _gate = self.gate.read();
        let prefix = Key::all(b'e');
        let inside = self.range(&prefix, Some(&Key::event(after)));
        let (mut events, mut bytes) = (Vec::new(), 0);
        for entry in inside.take(limit) {
            let (key, head) = entry?;
            match self.whole(&key, &head).and_then(|text| Ok((self.event(&text)?, text.len()))) {
                Ok((event, length)) => {
                    bytes += length + event.data.pointer("/message/content").and_then(Data::as_str).map_or(0, str::len);
                    events.push(event);
                }
                Err(error) => tracing::error!(%error, "an event is passed over"),
            }
            if bytes > EVENT_BYTES {
                break;
            }
        }
        Ok(events)
    }

    /// Returns the numbers of a session's events.
    pub fn event_numbers_of(&self, session: &SessionId) -> Result<Vec<u64>, StoreError> {
        let mut numbers = Vec::new();
        for entry in self.range(&Key::all(b'e'), None) {
            let (key, head) = entry?;
            // One that cannot be read belongs to nobody.
            let whose: Option<Whose> = self.decode(&key, &head).ok();
            numbers.extend(whose.filter(|whose| whose.session.as_ref() == Some(session)).map(|whose| whose.seq));
        }
        Ok(numbers)
    }

    fn event(&self, text: &[u8]) -> Result<Event, StoreError> {
        let mut event: Event = serde_json::from_slice(text).map_err(|why| StoreError::Damaged(why.to_string()))?;
        if let (EventType::MessageAdded, Some(session), Some(seq)) = (event.kind, &event.session, event.seq) {
            let message: Option<Message> = self.at(&Key::message(session, seq))?;
            event.data = json!({ "message": message });
        }
        Ok(event)
    }

    /// Returns the size of the store on disk in bytes.
    pub fn bytes(&self) -> u64 {
        self.db.size_on_disk().unwrap_or(0)
    }

    fn decode<T: DeserializeOwned>(&self, key: &[u8], head: &[u8]) -> Result<T, StoreError> {
        let text = self.whole(key, head)?;
        serde_json::from_slice(&text).map_err(|why| damaged(key, &why.to_string()))
    }

    /// Returns a value, joined where it was cut.
    fn whole<'a>(&self, key: &[u8], head: &'a [u8]) -> Result<Cow<'a, [u8]>, StoreError> {
        if let Some(value) = head.strip_prefix(b"=") {
            return Ok(Cow::Borrowed(value));
        }
        let count = piece_count(head).ok_or_else(|| damaged(key, "its head is unreadable"))?;
        let mut joined = Vec::new();
        for n in 0..count {
            let piece = self.db.get(piece_key(key, n)).map_err(|why| failed(&why))?;
            joined.extend_from_slice(&piece.ok_or_else(|| damaged(key, "a piece is missing"))?);
        }
        Ok(Cow::Owned(joined))
    }
}

fn damaged(key: &[u8], why: &str) -> StoreError {
    StoreError::Damaged(format!("{}: {why}", String::from_utf8_lossy(key).escape_debug()))
}

/// An error of sled itself concerns the store as a whole.
fn failed(why: &sled::Error) -> StoreError {
    StoreError::Failed(why.to_string().replace('\n', " "))
}
