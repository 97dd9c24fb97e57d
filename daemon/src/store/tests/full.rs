//! A disk that is full: nothing is lost, nothing hangs, all is read.

use super::super::offline::{self, OfflineError};
use super::*;

/// A file system of 8 MiB of its own; none where this may not mount one.
struct Tiny(Folder);

impl Tiny {
    fn mount() -> Option<Self> {
        let folder = Folder::default();
        let options = c"size=8m,mode=700";
        match rustix::mount::mount("tmpfs", folder.path(), "tmpfs", rustix::mount::MountFlags::empty(), options) {
            Ok(()) => Some(Self(folder)),
            Err(why) => {
                eprintln!("not tried: a tmpfs cannot be mounted here ({why})");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills it to the last byte.
    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.path().join("filling")).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.path().join("filling")).unwrap();
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        rustix::mount::unmount(self.path(), rustix::mount::UnmountFlags::DETACH).ok();
    }
}

#[tokio::test]
async fn on_a_full_disk_new_work_is_refused_what_is_owed_waits_and_all_is_read() {
    let Some(disk) = Tiny::mount() else { return };
    let (store, _, _held) = open(disk.path()).await;
    commit(&store, vec![Change::put(key("a"), &text(100))]).await;
    disk.fill();
    let asked = store.commit(Commit::asked(vec![Change::put(key("b"), &text(1))])).await.unwrap_err();
    assert!(matches!(asked, StoreError::NoRoom(_)), "{asked}");
    assert!(store.has_room().is_err());
    // The segment and the ballast still take much of what is owed; then it waits.
    let mut owed = Vec::new();
    for n in 0..300 {
        let (store, change) = (store.clone(), Change::put(key(&format!("owed_{n:03}")), &text(4000)));
        owed.push(tokio::spawn(async move { store.commit(Commit::owed(vec![change])).await }));
    }
    tokio::time::timeout(Duration::from_secs(20), async {
        while !store.waiting.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert_eq!(store.get(&key("a")).unwrap(), Some(text(100)));
    let asked = store.commit(Commit::asked(vec![Change::put(key("b"), &text(1))])).await.unwrap_err();
    assert!(matches!(asked, StoreError::NoRoom(_)), "{asked}");
    disk.free();
    for one in owed {
        one.await.unwrap().unwrap();
    }
    store.commit(Commit::asked(vec![Change::put(key("b"), &text(1))])).await.unwrap();
    let all: Vec<Data> = store.scan(&Key::all(b's'), None, 1000).unwrap();
    assert_eq!(all.len(), 302);
}

#[tokio::test]
async fn a_full_disk_at_the_start_still_reads() {
    let Some(disk) = Tiny::mount() else { return };
    let (store, _, held) = open(disk.path()).await;
    for n in 0..50 {
        commit(&store, vec![Change::put(key(&format!("{n}")), &text(2000))]).await;
    }
    store.close().await;
    drop((store, held));
    disk.fill();
    let (store, _, _held) = open(disk.path()).await;
    assert!(!disk.path().join("store/ballast").exists(), "the ballast was let go");
    let all: Vec<Data> = store.scan(&Key::all(b's'), None, 1000).unwrap();
    assert_eq!(all.len(), 50);
    let asked = store.commit(Commit::asked(vec![Change::put(key("b"), &text(1))])).await.unwrap_err();
    assert!(matches!(asked, StoreError::NoRoom(_)), "{asked}");
    disk.free();
    store.commit(Commit::asked(vec![Change::put(key("b"), &text(1))])).await.unwrap();
}

#[tokio::test]
async fn a_memory_that_cannot_catch_up_for_want_of_room_is_not_set_aside() {
    let Some(disk) = Tiny::mount() else { return };
    let old = Folder::default();
    let memory = disk.path().join("store/memory");
    let (store, _, held) = open(disk.path()).await;
    commit(&store, vec![Change::put(key("first"), &text(10))]).await;
    store.close().await;
    drop((store, held));
    copy(&memory, &old.path().join("memory"));
    let (store, _, held) = open(disk.path()).await;
    for n in 0..30 {
        commit(&store, vec![Change::put(key(&format!("{n:02}")), &text(40_000))]).await;
    }
    store.close().await;
    drop((store, held));
    std::fs::remove_dir_all(&memory).unwrap();
    copy(&old.path().join("memory"), &memory);
    std::fs::remove_file(disk.path().join("store/ballast")).ok();
    disk.fill();
    let held = lock(disk.path()).await.unwrap();
    for _ in 0..2 {
        let opened = Store::open(&disk.path().join("store"), &held, Box::new(|_| {})).await;
        assert!(matches!(opened, Err(StoreError::NoRoom(_))), "{:?}", opened.err());
        assert!(!disk.path().join("store/set-aside/memory").exists());
    }
    drop(held);
    disk.free();
    let (store, _, _held) = open(disk.path()).await;
    assert_eq!(store.scan::<Data>(&Key::all(b's'), None, 1000).unwrap().len(), 31);
}

async fn filled(path: &Path) {
    let (store, _, held) = open(path).await;
    for n in 0..20 {
        commit(&store, vec![Change::put(key(&format!("{n:02}")), &text(2000))]).await;
    }
    store.close().await;
    drop((store, held));
}

#[tokio::test]
async fn a_store_on_a_disk_that_takes_nothing_can_be_checked_and_exported() {
    let Some(disk) = Tiny::mount() else { return };
    filled(disk.path()).await;
    disk.fill();
    let scratch = Folder::default();
    let check = async || {
        let said = offline::check(disk.path(), scratch.path()).await.unwrap();
        assert!(said.contains("22 records") && said.ends_with("all is well") && !said.contains("not looked"), "{said}");
        assert_eq!(offline::export(disk.path(), Vec::new()).await.unwrap(), 22);
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "what was copied is gone");
    };
    check().await;
    rustix::mount::mount_remount(disk.path(), rustix::mount::MountFlags::RDONLY, c"").unwrap();
    check().await;
    let said = offline::check(disk.path(), &scratch.path().join("none")).await.unwrap();
    assert!(said.contains("not looked at") && said.ends_with("all is well"), "{said}");
}

#[tokio::test]
async fn an_import_that_could_not_be_started_is_refused() {
    let Some(disk) = Tiny::mount() else { return };
    let from = Folder::default();
    let (store, _, held) = open(from.path()).await;
    for n in 0..200 {
        commit(&store, vec![Change::put(key(&format!("{n:03}")), &text(40_000))]).await;
    }
    store.close().await;
    drop((store, held));
    let mut dump = Vec::new();
    offline::export(from.path(), &mut dump).await.unwrap();
    let refused = offline::import(disk.path(), dump.as_slice()).await.unwrap_err();
    assert!(matches!(refused, OfflineError::Store(StoreError::NoRoom(_))), "{refused}");
    let left = |part: &str| disk.path().join("store").join(part).exists();
    assert_eq!(["journal", "checkpoint", "memory"].map(left), [false; 3]);
}
