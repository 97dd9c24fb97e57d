//! The first layout is brought to this one, from wherever it was left off.

use super::journal::line::Entry;
use super::*;

/// Writes a store as the first layout had it, with `schema`.
fn first_layout(store: &Path, schema: u64) {
    let memory = memory::open(store, &store.join("set-aside")).unwrap();
    let put = |key: Key, value: &Data| Entry::Put(key.0, value.to_string().into_bytes());
    let entries = [
        put(key("a"), &text(10)),
        put(key("large"), &text(50_000)),
        put(Key::event(41), &json!({"seq": 41, "type": "warning", "at": Timestamp(0), "data": {"message": "old"}})),
        put(Key::meta("followups"), &json!(17)),
        Entry::Put(key("broken").0, b"{".to_vec()),
    ];
    memory.apply(&entries, None).unwrap();
    for (name, number) in [("schema", schema), ("epoch", 6), ("seq", 41), ("writer", 6)] {
        memory.apply_raw(&Key::meta(name).0, &number.to_be_bytes()).unwrap();
    }
    memory.make_durable().unwrap();
}

async fn check_upgraded(folder: &Path) {
    let (store, _, held) = open(folder).await;
    assert_eq!((store.opened().epoch, store.opened().head), (7, 42));
    assert_eq!(store.get(&key("a")).unwrap(), Some(text(10)));
    assert_eq!(store.get(&key("large")).unwrap(), Some(text(50_000)));
    assert_eq!(store.get(&Key::meta("followups")).unwrap(), Some(json!(17)));
    let said: Vec<Data> = store.events(0, 9).unwrap().into_iter().map(|event| event.data).collect();
    assert_eq!(said.first(), Some(&json!({"message": "old"})));
    assert!(said.get(1).unwrap().to_string().contains("unreadable before the upgrade: s/broken"), "{said:?}");
    commit(&store, vec![Change::put(key("b"), &text(5))]).await;
    store.close().await;
    drop((store, held));
    let (store, _, _held) = open(folder).await;
    assert_eq!(store.get(&key("b")).unwrap(), Some(text(5)));
    assert_eq!(store.get(&key("large")).unwrap(), Some(text(50_000)));
    assert_eq!(store.opened().epoch, 8);
    assert!(folder.join("store/set-aside/schema-1/db").exists() && !folder.join("store/db").exists());
    assert!(!folder.join("store/upgrade").exists());
}

#[tokio::test]
async fn the_first_layout_is_taken_over_whole() {
    let folder = Folder::default();
    first_layout(&folder.path().join("store"), 1);
    check_upgraded(folder.path()).await;
    // A nanod of that time leaves it alone.
    let refused = memory::open(&folder.path().join("store"), folder.path()).map(drop);
    assert!(refused.is_err() && !folder.path().join("store/db").exists(), "{refused:?}");
}

#[tokio::test]
async fn an_upgrade_that_was_cut_off_begins_anew() {
    let folder = Folder::default();
    let store = folder.path().join("store");
    first_layout(&store, 1);
    let before = contents(&store);
    // As it is left by a crash before the first rename.
    start::upgrade(&store, &mut report::Report::default()).unwrap();
    for made in ["upgrade/db", "checkpoint"] {
        assert!(store.join(made).exists(), "{made}");
    }
    let after = contents(&store);
    assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "the original is touched");
    check_upgraded(folder.path()).await;
}

#[tokio::test]
async fn a_newer_first_layout_is_refused_untouched() {
    let folder = Folder::default();
    first_layout(&folder.path().join("store"), 999);
    let before = contents(folder.path());
    let held = lock(folder.path()).await.unwrap();
    let refused = Store::open(&folder.path().join("store"), &held, Box::new(|_| {})).await.err().unwrap();
    assert!(matches!(refused, StoreError::Newer { found: 999, .. }), "{refused}");
    assert_eq!(contents(folder.path()), before);
}
