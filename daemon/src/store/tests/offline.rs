//! Check, export, import and repair.

use super::super::offline::{self, OfflineError};
use super::*;

async fn filled() -> Folder {
    let folder = Folder::default();
    let (store, _, held) = open(folder.path()).await;
    for n in 0..50_u64 {
        commit(&store, vec![Change::put(key(&format!("{n:02}")), &text(2000))]).await;
    }
    store.close().await;
    drop((store, held));
    folder
}

fn damage(checked: Result<String, OfflineError>) -> String {
    match checked.unwrap_err() {
        OfflineError::Damaged(how) => how,
        other => unreachable!("{other}"),
    }
}

#[tokio::test]
async fn what_is_exported_can_be_imported() {
    let (from, to) = (filled().await, Folder::default());
    let mut dump = Vec::new();
    let count = offline::export(from.path(), &mut dump).await.unwrap();
    assert_eq!(count, 52, "sessions, schema and epoch");
    assert_eq!(offline::import(to.path(), dump.as_slice()).await.unwrap(), count);
    let again = offline::import(to.path(), dump.as_slice()).await.unwrap_err();
    assert!(again.to_string().contains("holds a store already"), "{again}");
    let mut same = Vec::new();
    offline::export(to.path(), &mut same).await.unwrap();
    assert_eq!(String::from_utf8(dump.clone()).unwrap(), String::from_utf8(same).unwrap());
    let (store, _, _held) = open(to.path()).await;
    let all: Vec<Data> = store.scan(&Key::all(b's'), None, 1000).unwrap();
    assert_eq!((all.len(), store.opened().epoch), (50, 2));
    assert_eq!(store.events(0, 9).unwrap().len(), 0);
    let cut = dump.get(..dump.len() / 2).unwrap();
    let other = Folder::default();
    assert!(matches!(offline::import(other.path(), cut).await.unwrap_err(), OfflineError::Refused(_)));
    assert!(offline::import(other.path(), dump.as_slice()).await.is_ok(), "a refused import leaves nothing");
}

#[tokio::test]
async fn a_check_changes_nothing_and_names_what_is_wrong() {
    let scratch = Folder::default();
    let folder = filled().await;
    let before = contents(folder.path());
    let said = offline::check(folder.path(), scratch.path()).await.unwrap();
    assert!(said.contains("52 records") && said.contains("all is well"), "{said}");
    assert_eq!(contents(folder.path()), before);
    let store = folder.path().join("store");
    std::fs::remove_dir_all(store.join("memory")).unwrap();
    assert!(damage(offline::check(folder.path(), scratch.path()).await).contains("the memory is not there"));
    let said = offline::repair(folder.path()).await.unwrap();
    assert!(said.contains("52 records of the memory were put right"), "{said}");
    assert!(offline::check(folder.path(), scratch.path()).await.unwrap().contains("all is well"));
    assert_eq!(offline::repair(folder.path()).await.unwrap(), "nothing was wrong");
}

#[tokio::test]
async fn a_store_that_is_held_is_left_alone() {
    let scratch = Folder::default();
    let folder = filled().await;
    let (_store, _, _held) = open(folder.path()).await;
    let refused = offline::check(folder.path(), scratch.path()).await.unwrap_err();
    assert!(refused.to_string().contains(&std::process::id().to_string()), "{refused}");
}

#[tokio::test]
async fn an_import_beside_a_memory_is_refused() {
    let (from, to) = (filled().await, filled().await);
    let mut dump = Vec::new();
    offline::export(from.path(), &mut dump).await.unwrap();
    for part in ["journal", "checkpoint"] {
        std::fs::remove_dir_all(to.path().join("store").join(part)).unwrap();
    }
    let refused = offline::import(to.path(), dump.as_slice()).await.unwrap_err();
    assert!(refused.to_string().contains("holds a store already"), "{refused}");
}

/// Puts a pipe in the place of a file.
fn pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    std::fs::remove_file(path).ok();
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[tokio::test]
async fn a_pipe_in_the_store_keeps_nobody_waiting() {
    let scratch = Folder::default();
    for (name, damages) in [("memory/db", true), ("memory/conf", true), ("memory/more", true), ("conf", false)] {
        let folder = filled().await;
        pipe(&folder.path().join("store").join(name));
        let checked = offline::check(folder.path(), scratch.path()).await;
        assert_eq!(checked.is_err(), damages, "{name}: {checked:?}");
        let (store, _, _held) = open(folder.path()).await;
        assert_eq!(store.scan::<Data>(&Key::all(b's'), None, 1000).unwrap().len(), 50, "{name}");
    }
    for part in ["journal", "checkpoint"] {
        let folder = filled().await;
        let part = folder.path().join("store").join(part);
        let any = std::fs::read_dir(&part).unwrap().next().unwrap().unwrap().path();
        pipe(&any);
        drop(offline::check(folder.path(), scratch.path()).await);
        let (store, _, _held) = open(folder.path()).await;
        assert_eq!(store.scan::<Data>(&Key::all(b's'), None, 1000).unwrap().len(), 50, "{}", any.display());
    }
}

#[tokio::test]
async fn a_file_where_a_folder_should_be_is_named() {
    let scratch = Folder::default();
    for name in ["store", "store/journal", "store/checkpoint", "store/memory"] {
        let folder = filled().await;
        let path = folder.path().join(name);
        std::fs::remove_dir_all(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        let told = offline::check(folder.path(), scratch.path()).await.unwrap_err().to_string();
        assert!(told.contains(&format!("{} is no folder", path.display())), "{name}: {told}");
        let held = lock(folder.path()).await.unwrap();
        let opened = Store::open(&folder.path().join("store"), &held, Box::new(|_| {})).await;
        let told = opened.err().map_or(String::new(), |error| error.to_string());
        // A memory is begun anew.
        let is_named = told.contains(&format!("{} is no folder", path.display()));
        assert!(is_named || name == "store/memory", "{name}: {told}");
    }
}
