//! Reading: records by key and by range, straight from sled's memory.

use std::ops::Bound;

use nano_protocol::event::{Event, EventType};
use nano_protocol::id::SessionId;
use nano_protocol::message::Message;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::writer::{piece_count, piece_key};
use super::{Key, Store, StoreError};

impl Store {
    /// Returns the record at `key`, if there is one.
    pub fn get<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<T>, StoreError> {
        let _gate = self.gate.read();
        let Some(head) = self.db.get(&key.0).map_err(|why| StoreError::Damaged(why.to_string()))? else {
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
        let from = after.map_or(Bound::Included(prefix.0.clone()), |key| Bound::Excluded(key.0.clone()));
        let _gate = self.gate.read();
        let inside = self.db.range::<Vec<u8>, _>((from, Bound::Unbounded));
        inside
            .take_while(|entry| entry.as_ref().map_or(true, |(key, _)| key.starts_with(&prefix.0)))
            .take(limit)
            .map(|entry| {
                let (key, head) = entry.map_err(|why| StoreError::Damaged(why.to_string()))?;
                self.decode(&key, &head)
            })
            .collect()
    }

    /// Returns the ids in the keys below `prefix`, newest first, beginning behind `before`; a record that is not durable
    /// yet may be among them, and [`Store::get`] waits for it.
    pub fn ids_backwards(&self, prefix: &Key, before: Option<&Key>) -> impl Iterator<Item = String> + use<> {
        let mut end = prefix.0.clone();
        end.push(0xff);
        let end = before.map_or(Bound::Excluded(end), |key| Bound::Excluded(key.0.clone()));
        let inside = self.db.range::<Vec<u8>, _>((Bound::Included(prefix.0.clone()), end));
        inside.rev().flatten().map(|(key, _)| Key::last_part(&key).to_owned())
    }

    /// Returns a session's messages with a number above `after`, oldest first, at most `limit`.
    pub fn messages(&self, session: &SessionId, after: u64, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.scan(&Key::below(b'm', &session.0), Some(&Key::message(session, after)), limit)
    }

    /// Returns the events with a number above `after`, at most `limit`, whole.
    pub fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        let mut events: Vec<Event> = self.scan(&Key::all(b'e'), Some(&Key::event(after)), limit)?;
        for event in &mut events {
            let (EventType::MessageAdded, Some(session), Some(seq)) = (event.kind, &event.session, event.seq) else {
                continue;
            };
            // A message that is gone went with its deleted session.
            let message: Option<Message> = self.get(&Key::message(session, seq))?;
            event.data = json!({ "message": message });
        }
        Ok(events)
    }

    /// Returns the size of the store on disk in bytes.
    pub fn bytes(&self) -> u64 {
        self.db.size_on_disk().unwrap_or(0)
    }

    fn decode<T: DeserializeOwned>(&self, key: &[u8], head: &[u8]) -> Result<T, StoreError> {
        let damaged =
            |why: &str| StoreError::Damaged(format!("{}: {why}", String::from_utf8_lossy(key).escape_debug()));
        let whole;
        let value = if let Some(value) = head.strip_prefix(b"=") {
            value
        } else {
            let count = piece_count(head).ok_or_else(|| damaged("its head is unreadable"))?;
            let mut joined = Vec::new();
            for n in 0..count {
                let piece =
                    self.db.get(piece_key(key, n)).ok().flatten().ok_or_else(|| damaged("a piece is missing"))?;
                joined.extend_from_slice(&piece);
            }
            whole = joined;
            &whole
        };
        serde_json::from_slice(value).map_err(|why| damaged(&why.to_string()))
    }
}
