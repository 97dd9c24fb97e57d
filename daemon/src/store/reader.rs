//! Reading: records by key and by range, from the store's memory.

use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

use nano_protocol::event::{Data, Event, EventType};
use nano_protocol::id::SessionId;
use nano_protocol::message::Message;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::memory::{Memory, Stored};
use super::{Key, Store, StoreError};

/// A page of events ends behind so many bytes.
const EVENT_BYTES: usize = 1024 * 1024;

/// So many ids are looked up at once.
const IDS: usize = 256;

/// A page of messages ends behind so many bytes: an answer must fit into a line.
const MESSAGE_BYTES: usize = 8 * 1024 * 1024;

/// As much of an event as tells whose it is.
#[derive(Deserialize)]
struct Whose {
    seq: u64,
    session: Option<SessionId>,
}

impl Store {
    /// Has `work` look at the memory. Nothing is applied meanwhile: to take the gate twice is to wait for oneself.
    fn look<T>(&self, work: impl Fn(&Memory) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.try_twice(|| self.try_look(&work))
    }

    /// Does it again where the memory has failed: after a write that found no room sled says so to whoever reads next,
    /// and the truth is whole all the same.
    fn try_twice<T>(&self, work: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        match work() {
            Err(StoreError::Failed(_)) => {
                self.ground.mend(&self.memory)?;
                work()
            }
            done => done,
        }
    }

    fn try_look<T>(&self, work: impl Fn(&Memory) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let gate = self.memory.read().unwrap_or_else(PoisonError::into_inner);
        let memory = gate.as_ref().ok_or_else(|| StoreError::NoRoom("the store's memory found no room".into()))?;
        // sled panics on some damage; the next start finds it.
        let found = catch_unwind(AssertUnwindSafe(|| work(memory)));
        found.unwrap_or_else(|_| Err(StoreError::Damaged("sled panicked while it was read".into())))
    }

    /// Returns the record at `key`, if there is one.
    pub fn get<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<T>, StoreError> {
        self.look(|memory| at(memory, key))
    }

    /// Returns the records below `prefix`, oldest key first, beginning behind `after`, at most `limit`.
    pub fn scan<T: DeserializeOwned>(
        &self,
        prefix: &Key,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<T>, StoreError> {
        self.look(|memory| below(memory, prefix, after).take(limit).map(|entry| decode(memory, &entry?)).collect())
    }

    /// Returns those records below `prefix` that can be read; the others are told in the log.
    pub fn readable<T: DeserializeOwned>(&self, prefix: &Key) -> Result<Vec<T>, StoreError> {
        self.look(|memory| {
            let mut found = Vec::new();
            for entry in below(memory, prefix, None) {
                match decode(memory, &entry?) {
                    Ok(record) => found.push(record),
                    Err(error @ StoreError::Damaged(_)) => tracing::error!(%error, "it is left out"),
                    Err(error) => return Err(error),
                }
            }
            Ok(found)
        })
    }

    /// Returns the records below `prefix`, newest key first, beginning before `before`, at most `limit`.
    pub fn scan_backwards<T: DeserializeOwned>(
        &self,
        prefix: &Key,
        before: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<T>, StoreError> {
        let mut end = prefix.0.clone();
        end.extend([0xff; 16]);
        let end = before.map_or(end, |key| key.0.clone());
        self.look(|memory| {
            let inside = memory.range(Bound::Included(prefix.0.clone()), Bound::Excluded(end.clone())).rev();
            inside.take(limit).map(|entry| decode(memory, &entry?)).collect()
        })
    }

    /// Returns the ids in the keys below `prefix`, newest first, beginning behind `before`; what is gone meanwhile may be
    /// among them. It ends with the first error.
    pub fn ids_backwards<'a>(
        &'a self,
        prefix: &Key,
        before: Option<&Key>,
    ) -> impl Iterator<Item = Result<String, StoreError>> + use<'a> {
        let prefix = prefix.clone();
        let mut end = before.map_or_else(|| [prefix.0.as_slice(), &[0xff]].concat(), |key| key.0.clone());
        let mut page = Vec::new().into_iter();
        let mut is_over = false;
        std::iter::from_fn(move || {
            if page.len() == 0 && !is_over {
                let found = self.keys_backwards(prefix.clone(), &end, IDS);
                is_over = found.as_ref().map_or(true, |found| found.len() < IDS);
                match found {
                    Ok(found) => page = found.into_iter(),
                    Err(error) => return Some(Err(error)),
                }
            }
            end = page.next()?;
            Some(Ok(Key::last_part(&end).to_owned()))
        })
    }

    /// Returns the ids in the keys below `prefix`, oldest first.
    pub fn ids(&self, prefix: &Key) -> Result<Vec<String>, StoreError> {
        let mut ids: Vec<String> = self.ids_backwards(prefix, None).collect::<Result<_, _>>()?;
        ids.reverse();
        Ok(ids)
    }

    /// Tells whether there is a key below `prefix`; what cannot be read may be there.
    pub fn may_hold(&self, prefix: &Key) -> bool {
        let found = self.keys_backwards(prefix.clone(), &[prefix.0.as_slice(), &[0xff]].concat(), 1);
        found.map_or(true, |keys| !keys.is_empty())
    }

    fn keys_backwards(&self, prefix: Key, end: &[u8], most: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let range = (Bound::Included(prefix.0), Bound::Excluded(end.to_vec()));
        self.look(|memory| {
            let inside = memory.range(range.0.clone(), range.1.clone()).rev();
            inside.take(most).map(|entry| Ok(entry?.key().to_vec())).collect()
        })
    }

    /// Returns a session's messages with a number above `after`, oldest first: at most `limit`, and fewer where they are
    /// large; and whether there are more.
    pub fn messages(&self, session: &SessionId, after: u64, limit: usize) -> Result<(Vec<Message>, bool), StoreError> {
        self.look(|memory| {
            let (mut messages, mut bytes) = (Vec::new(), 0);
            for entry in below(memory, &Key::below(b'm', &session.0), Some(&Key::message(session, after))) {
                if messages.len() == limit || bytes > MESSAGE_BYTES {
                    return Ok((messages, true));
                }
                let entry = entry?;
                let text = memory.value(&entry)?;
                bytes += text.len();
                messages.push(serde_json::from_slice(&text).map_err(|why| damaged(entry.key(), &why.to_string()))?);
            }
            Ok((messages, false))
        })
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
        self.look(|memory| {
            let (mut events, mut bytes) = (Vec::new(), 0);
            for entry in below(memory, &Key::all(b'e'), Some(&Key::event(after))).take(limit) {
                let entry = entry?;
                match memory.value(&entry).and_then(|text| Ok((event(memory, &text)?, text.len()))) {
                    Ok((event, length)) => {
                        let content = event.data.pointer("/message/content").and_then(Data::as_str);
                        bytes += length + content.map_or(0, str::len);
                        events.push(event);
                    }
                    Err(error @ StoreError::Damaged(_)) => tracing::error!(%error, "an event is passed over"),
                    Err(error) => return Err(error),
                }
                if bytes > EVENT_BYTES {
                    break;
                }
            }
            Ok(events)
        })
    }

    /// Returns the numbers of a session's events; the gate is not held while they are looked for.
    pub fn event_numbers_of(&self, session: &SessionId) -> Result<Vec<u64>, StoreError> {
        self.try_twice(|| {
            let memory = self.look(|memory| Ok(memory.clone()))?;
            let mut numbers = Vec::new();
            for entry in below(&memory, &Key::all(b'e'), None) {
                let whose: Whose = match decode(&memory, &entry?) {
                    // One that cannot be read belongs to nobody.
                    Err(StoreError::Damaged(_)) => continue,
                    whose => whose?,
                };
                numbers.extend((whose.session.as_ref() == Some(session)).then_some(whose.seq));
            }
            Ok(numbers)
        })
    }
}

fn at<T: DeserializeOwned>(memory: &Memory, key: &Key) -> Result<Option<T>, StoreError> {
    let Some(text) = memory.get(&key.0)? else { return Ok(None) };
    serde_json::from_slice(&text).map(Some).map_err(|why| damaged(&key.0, &why.to_string()))
}

fn below(
    memory: &Memory,
    prefix: &Key,
    after: Option<&Key>,
) -> impl Iterator<Item = Result<Stored, StoreError>> + use<> {
    let prefix = prefix.0.clone();
    let from = after.map_or(Bound::Included(prefix.clone()), |key| Bound::Excluded(key.0.clone()));
    let inside = memory.range(from, Bound::Unbounded);
    inside.take_while(move |entry| entry.as_ref().map_or(true, |entry| entry.key().starts_with(&prefix)))
}

fn event(memory: &Memory, text: &[u8]) -> Result<Event, StoreError> {
    let mut event: Event = serde_json::from_slice(text).map_err(|why| StoreError::Damaged(why.to_string()))?;
    if let (EventType::MessageAdded, Some(session), Some(seq)) = (event.kind, &event.session, event.seq) {
        let message: Option<Message> = at(memory, &Key::message(session, seq))?;
        event.data = json!({ "message": message });
    }
    Ok(event)
}

fn decode<T: DeserializeOwned>(memory: &Memory, entry: &Stored) -> Result<T, StoreError> {
    let text = memory.value(entry)?;
    serde_json::from_slice(&text).map_err(|why| damaged(entry.key(), &why.to_string()))
}

fn damaged(key: &[u8], why: &str) -> StoreError {
    StoreError::Damaged(format!("{}: {why}", String::from_utf8_lossy(key).escape_debug()))
}
