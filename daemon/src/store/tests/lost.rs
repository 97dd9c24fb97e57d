//! Parts of a store that are lost or damaged while it is closed.

use super::*;

/// Opens a store, does something to its files while it is closed, and returns it open again.
async fn after(done: impl FnOnce(&Path)) -> (Folder, Store, StateLock) {
    let folder = Folder::default();
    let (store, _, held) = open(folder.path()).await;
    let put = |n: u64| Change::put(key(&format!("{n:03}")), &text(usize::try_from(n).unwrap() * 100));
    for n in 0..100 {
        commit(&store, vec![put(n)]).await;
    }
    store.close().await;
    drop((store, held));
    done(&folder.path().join("store"));
    let (store, _, held) = open(folder.path()).await;
    for n in 0..100 {
        let found: Option<Data> = store.get(&key(&format!("{n:03}"))).unwrap();
        assert_eq!(found, Some(text(n * 100)), "{n}");
    }
    (folder, store, held)
}

fn warnings(store: &Store) -> Vec<String> {
    let events = store.events(0, 1000).unwrap();
    events.iter().filter_map(|event| Some(event.data.get("message")?.as_str()?.to_owned())).collect()
}

#[tokio::test]
async fn the_memory_comes_back_from_the_journal() {
    let (_folder, store, _held) = after(|_| {}).await;
    assert_eq!(warnings(&store), [""; 0]);
    let (_folder, store, _held) = after(|store| std::fs::remove_dir_all(store.join("memory")).unwrap()).await;
    assert!(warnings(&store).concat().contains("102 records of the memory were put right"), "{:?}", warnings(&store));
    let (folder, store, _held) =
        after(|store| std::fs::write(store.join("memory/conf"), "this is no configuration of sled").unwrap()).await;
    assert!(warnings(&store).concat().contains("begun anew"), "{:?}", warnings(&store));
    assert!(folder.path().join("store/set-aside/memory").exists());
}

#[tokio::test]
async fn a_memory_that_is_older_catches_up() {
    let folder = Folder::default();
    let (old, memory) = (folder.path().join("old"), folder.path().join("store/memory"));
    let (store, _, held) = open(folder.path()).await;
    commit(&store, vec![Change::put(key("a"), &text(1)), Change::put(key("b"), &text(1))]).await;
    store.close().await;
    drop((store, held));
    copy(&memory, &old);
    let (store, _, held) = open(folder.path()).await;
    commit(&store, vec![Change::put(key("a"), &text(2)), Change::Delete(key("b"))]).await;
    store.close().await;
    drop((store, held));
    std::fs::remove_dir_all(&memory).unwrap();
    std::fs::rename(&old, &memory).unwrap();
    let (store, _, _held) = open(folder.path()).await;
    let all: Vec<Data> = store.scan(&Key::all(b's'), None, 9).unwrap();
    assert_eq!((all, warnings(&store)), (vec![text(2)], Vec::new()));
}

#[tokio::test]
async fn what_the_journal_lost_is_taken_from_the_memory() {
    let lose = |store: &Path| {
        for part in ["journal", "checkpoint"] {
            std::fs::remove_dir_all(store.join(part)).unwrap();
        }
    };
    let (folder, store, held) = after(lose).await;
    assert!(store.opened().head >= 1 << 20, "numbers jump: {:?}", store.opened());
    store.close().await;
    drop((store, held));
    std::fs::remove_dir_all(folder.path().join("store/memory")).unwrap();
    let (store, _, _held) = open(folder.path()).await;
    let all: Vec<Data> = store.scan(&Key::all(b's'), None, 1000).unwrap();
    assert_eq!(all.len(), 100);
}

/// Breaks the journal's line that has `sign` in it; the journal is short enough for none to be in a checkpoint.
fn break_line(store: &Path, sign: &str) {
    for entry in std::fs::read_dir(store.join("journal")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(sign.len()).position(|part| part == sign.as_bytes()) {
            *bytes.get_mut(at).unwrap() = b'#';
            return std::fs::write(&path, bytes).unwrap();
        }
    }
    unreachable!("{sign} is in no line");
}

#[tokio::test]
async fn what_is_committed_beside_a_damaged_line_outlives_a_memory_that_was_not_flushed() {
    let folder = Folder::default();
    let (path, old) = (folder.path().join("store"), folder.path().join("old"));
    let (store, _, held) = open(folder.path()).await;
    commit(&store, vec![Change::put(key("first"), &text(10)), Change::put(key("broken"), &text(10))]).await;
    commit(&store, vec![Change::put(key("last"), &text(10))]).await;
    store.close().await;
    drop((store, held));
    break_line(&path, "broken");
    let held = lock(folder.path()).await.unwrap();
    let up = start::Up::bring(&path, start::Mode::Serve).unwrap();
    // The memory as the disk has it now: what comes is never flushed.
    copy(&path.join("memory"), &old);
    let store = up.serve(Box::new(|_| {})).unwrap();
    assert!(warnings(&store).concat().contains("lost: lines"), "{:?}", warnings(&store));
    commit(&store, vec![Change::put(key("new"), &text(20)), Change::Delete(key("first"))]).await;
    store.close().await;
    drop((store, held));
    std::fs::remove_dir_all(path.join("memory")).unwrap();
    std::fs::rename(&old, path.join("memory")).unwrap();
    let (store, _, _held) = open(folder.path()).await;
    let found = ["first", "broken", "last", "new"].map(|name| store.get::<Data>(&key(name)).unwrap());
    assert_eq!(found, [None, Some(text(10)), Some(text(10)), Some(text(20))]);
}

#[tokio::test]
async fn a_journal_that_is_gone_is_named_and_numbers_jump_once_and_for_all() {
    let (folder, store, held) = after(|_| {}).await;
    store.close().await;
    drop((store, held));
    std::fs::remove_dir_all(folder.path().join("store/journal")).unwrap();
    let said = super::super::offline::repair(folder.path()).await.unwrap();
    assert!(said.contains("the journal ends at line 0, before the checkpoint"), "{said}");
    let (store, _, _held) = open(folder.path()).await;
    assert!(store.opened().head >= 1 << 20, "{:?}", store.opened());
    assert_eq!(warnings(&store), [""; 0], "it was named by the repair");
}

#[tokio::test]
async fn what_only_an_ahead_memory_lacks_is_counted_apart() {
    let folder = Folder::default();
    let path = folder.path().join("store");
    let (store, _, held) = open(folder.path()).await;
    for name in ["kept", "gone", "else"] {
        commit(&store, vec![Change::put(key(name), &text(10))]).await;
    }
    store.close().await;
    drop((store, held));
    let (store, _, held) = open(folder.path()).await;
    commit(&store, vec![Change::Delete(key("gone"))]).await;
    commit(&store, vec![Change::put(key("last"), &text(10))]).await;
    store.close().await;
    drop((store, held));
    break_line(&path, "[[\"del\"");
    let (store, _, _held) = open(folder.path()).await;
    assert!(warnings(&store).concat().contains("1 records that the memory no longer had"), "{:?}", warnings(&store));
    assert_eq!(store.get::<Data>(&key("gone")).unwrap(), None);
    let kept = std::fs::read_to_string(path.join("set-aside/removed.jsonl")).unwrap();
    assert!(kept.starts_with("[\"s/gone\",") && kept.lines().count() == 1, "{kept}");
    assert!(warnings(&store).concat().contains("set-aside/removed.jsonl"), "{:?}", warnings(&store));
}
