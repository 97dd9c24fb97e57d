//! The store as its users see it: values of every size, groups of commits, reopening, order of events.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nano_protocol::event::{Data, EventType};
use nano_protocol::id::{MessageId, SessionId, TaskId};
use nano_protocol::message::{Message, Role};
use nano_protocol::time::Timestamp;
use serde_json::json;

use super::*;

mod full;
mod lost;
mod offline;
mod upgrade;

type Published = Arc<Mutex<Vec<u64>>>;

/// A temporary folder that goes also where a store that was dropped, not closed, just writes its last files.
struct Folder(PathBuf);

impl Default for Folder {
    fn default() -> Self {
        Self(tempfile::tempdir().unwrap().keep())
    }
}

impl Folder {
    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A store that is opening yet makes its folders again.
        for _ in 0..10 {
            std::fs::remove_dir_all(&self.0).ok();
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

async fn open(folder: &Path) -> (Store, Published, StateLock) {
    let held = lock(folder).await.unwrap();
    let published = Published::default();
    let note = published.clone();
    let publish = move |events: &[Arc<Event>]| note.lock().unwrap().extend(events.iter().filter_map(|event| event.seq));
    (Store::open(&folder.join("store"), &held, Box::new(publish)).await.unwrap(), published, held)
}

fn key(name: &str) -> Key {
    Key::session(&SessionId(name.into()))
}

fn text(length: usize) -> Data {
    json!("x".repeat(length))
}

async fn commit(store: &Store, changes: Vec<Change>) -> Receipt {
    store.commit(Commit::owed(changes)).await.unwrap()
}

/// Returns what lies in the folder where sled puts what it never syncs.
fn unsynced(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("store/memory/blobs")).map_or(0, Iterator::count)
}

#[tokio::test]
async fn values_of_every_size_come_back_and_are_synced() {
    let folder = Folder::default();
    let (store, _, held) = open(folder.path()).await;
    let sizes = [0, 1, 6 * 1024 - 3, 6 * 1024, 30_000, 60_000, 200_000, 1_100_000];
    for round in 0..8 {
        let put = |(n, size): (usize, &usize)| Change::put(key(&format!("ses_{round}_{n}")), &text(*size));
        commit(&store, sizes.iter().enumerate().map(put).collect()).await;
    }
    for task in 0..200 {
        commit(&store, vec![Change::put(Key::task(&TaskId(format!("tsk_{task}"))), &text(30_000))]).await;
    }
    drop((store, held));
    let (store, _, _held) = open(folder.path()).await;
    for (n, size) in sizes.iter().enumerate() {
        assert_eq!(store.get(&key(&format!("ses_7_{n}"))).unwrap(), Some(text(*size)), "{size}");
    }
    let tasks: Vec<Data> = store.scan(&Key::all(b't'), None, usize::MAX).unwrap();
    assert!(tasks.len() == 200 && tasks.iter().all(|task| *task == text(30_000)));
    assert_eq!(unsynced(folder.path()), 0, "files that are never synced");
}

#[tokio::test]
async fn the_last_change_of_a_group_counts_and_leaves_nothing_of_the_others() {
    let folder = Folder::default();
    let (store, _, _held) = open(folder.path()).await;
    let owner = SessionId("ses_1".into());
    let place = |n| Key::steering(&owner, n);
    commit(&store, vec![Change::put(key("a"), &text(50_000)), Change::put(place(1), &text(50_000))]).await;
    commit(
        &store,
        vec![
            Change::put(key("a"), &text(20_000)),
            Change::put(key("a"), &text(10)),
            Change::put(key("b"), &text(40_000)),
            Change::Delete(key("b")),
            Change::put(place(2), &text(40_000)),
            Change::DeleteAll(Key::below(b'w', "ses_1")),
            Change::put(place(3), &text(7_000)),
        ],
    )
    .await;
    assert_eq!(store.get(&key("a")).unwrap(), Some(text(10)));
    assert_eq!(store.get::<Data>(&key("b")).unwrap(), None);
    assert_eq!(store.scan::<Data>(&Key::below(b'w', "ses_1"), None, 9).unwrap(), [text(7_000)]);
    let pieces = (Bound::Included(b"~".to_vec()), Bound::Unbounded);
    let memory = store.memory.read().unwrap().clone().unwrap();
    assert_eq!(memory.range(pieces.0, pieces.1).count(), 2, "pieces of what is gone");
}

#[tokio::test]
async fn events_are_numbered_published_and_read_in_one_order() {
    let folder = Folder::default();
    let (store, published, held) = open(folder.path()).await;
    let session = SessionId("ses_1".into());
    let message = Message::text(MessageId("msg_1".into()), TaskId("tsk_1".into()), Role::User, "hello", Timestamp(0));
    let warning = |n: u64| Draft { session: None, task: None, kind: EventType::Warning, data: json!({"n": n}) };
    let changes = vec![Change::Event(warning(1)), Change::Message(session.clone(), Box::new(message))];
    let many = (0..50).map(|n| store.commit(Commit::owed(vec![Change::Event(warning(n))])));
    commit(&store, changes).await;
    for one in futures_util::future::join_all(many).await {
        one.unwrap();
    }
    let numbers: Vec<u64> = (1..=52).collect();
    assert_eq!(*published.lock().unwrap(), numbers);
    let read = store.events(0, 100).unwrap();
    assert_eq!(read.iter().filter_map(|event| event.seq).collect::<Vec<_>>(), numbers);
    let added = read.iter().find(|event| event.kind == EventType::MessageAdded).unwrap();
    assert_eq!(added.data.pointer("/message/content"), Some(&json!("hello")));
    let (messages, more) = store.messages(&session, 0, 9).unwrap();
    assert_eq!((messages.len(), messages.first().map(|message| message.seq), more), (1, Some(2), false));
    drop((store, held));
    let (store, _, _held) = open(folder.path()).await;
    assert_eq!((store.opened().head, store.opened().epoch), (52, 2));
}

#[tokio::test]
async fn a_folder_has_one_holder() {
    let folder = Folder::default();
    let (_store, _, _held) = open(folder.path()).await;
    let Err(StoreError::Held { pid, .. }) = lock(folder.path()).await else { unreachable!("held twice") };
    assert_eq!(pid, std::process::id().to_string());
}

/// Returns what lies in a folder: names and contents of files, but for the locks.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else if !path.ends_with("lock") {
            all.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    all
}

#[tokio::test]
async fn a_newer_store_is_refused_untouched() {
    let folder = Folder::default();
    let (store, _, held) = open(folder.path()).await;
    commit(&store, vec![Change::put(Key::meta("schema"), &999)]).await;
    store.close().await;
    drop((store, held));
    let before = contents(folder.path());
    let held = lock(folder.path()).await.unwrap();
    let refused = Store::open(&folder.path().join("store"), &held, Box::new(|_| {})).await.err().unwrap();
    assert!(matches!(refused, StoreError::Newer { found: 999, .. }), "{refused}");
    assert_eq!(contents(folder.path()), before);
}

#[tokio::test]
async fn an_unfinished_snapshot_is_set_aside() {
    let folder = Folder::default();
    let (store, _, held) = open(folder.path()).await;
    commit(&store, vec![Change::put(key("a"), &text(10))]).await;
    store.close().await;
    drop((store, held));
    std::fs::write(folder.path().join("store/memory/snap.0000000000000001.generating"), "").unwrap();
    let (store, _, _held) = open(folder.path()).await;
    assert_eq!(store.get(&key("a")).unwrap(), Some(text(10)));
    assert!(folder.path().join("store/set-aside/snap.0000000000000001.generating").exists());
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[tokio::test]
async fn records_come_newest_first_in_pages() {
    use nano_protocol::id::FollowupId;
    let folder = Folder::default();
    let (store, _, _held) = open(folder.path()).await;
    let (id, other) = (FollowupId("fup_1".into()), FollowupId("fup_10".into()));
    // Bytes of slots that look like parts of a key or its end.
    let slots = [1, 0x2f, 0xff, 0x2f2f, 0xffff, 1_800_000_000_000, i64::MAX];
    let put = |slot: &i64| Change::put(Key::slot(&id, Timestamp(*slot)), slot);
    commit(&store, slots.iter().map(put).chain([Change::put(Key::slot(&other, Timestamp(5)), &5)]).collect()).await;
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let page: Vec<i64> = store.scan_backwards(&Key::below(b'r', &id.0), before.as_ref(), 2).unwrap();
        let Some(last) = page.last() else { break };
        before = Some(Key::slot(&id, Timestamp(*last)));
        all.extend(page);
    }
    assert!(all.iter().eq(slots.iter().rev()), "{all:?}");
}

#[tokio::test]
async fn a_list_of_ids_is_whole_or_says_that_it_is_not() {
    let folder = Folder::default();
    let (store, _, _held) = open(folder.path()).await;
    let names: Vec<String> = (0..600).map(|n| format!("ses_{n:03}")).collect();
    commit(&store, names.iter().map(|name| Change::put(key(name), &1)).collect()).await;
    let ids = |before: Option<&Key>| store.ids_backwards(&Key::all(b's'), before);
    // Pages meet without a gap, wherever the list begins.
    for before in [600, 599, 513, 512, 511, 257, 256, 255, 1, 0] {
        let at = names.get(before).map(|name| key(name));
        let found: Vec<String> = ids(at.as_ref()).map(Result::unwrap).collect();
        assert!(found.iter().eq(names[..before].iter().rev()), "before {before}: {} ids", found.len());
    }
    // A store that fails on the way is told once and ends the list.
    for seen in [0, 1, 255, 256, 257, 512] {
        let mut list = ids(None);
        let begun = list.by_ref().take(seen).flatten().count();
        let memory = store.memory.write().unwrap().take();
        let rest: Vec<_> = list.collect();
        *store.memory.write().unwrap() = memory;
        let known = seen.next_multiple_of(256);
        assert_eq!((begun, rest.len()), (seen, known - seen + 1), "after {seen}");
        assert!(rest.last().unwrap().is_err() && rest[..rest.len() - 1].iter().all(Result::is_ok), "after {seen}");
    }
}
