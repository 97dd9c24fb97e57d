#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;

use super::{Looked, Mark, before, look, of_all, of_bytes};
use crate::sandbox::workspace::Workspace;
use crate::store::record::call::Intent;

struct World {
    folder: PathBuf,
    workspace: Workspace,
}

impl World {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nano-intents-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { workspace: Workspace::open(&folder, true).unwrap(), folder }
    }

    fn put(&self, contents: Option<&[u8]>) {
        let path = self.folder.join("f");
        match contents {
            Some(contents) => std::fs::write(path, contents).unwrap(),
            None => drop(std::fs::remove_file(path)),
        }
    }

    fn intent(&self, contents: &[u8]) -> Intent {
        let mut place = self.workspace.place("f", false).unwrap();
        let before = before(&mut place);
        Intent {
            path: place.path().unwrap().display().to_string(),
            before,
            after: of_bytes(contents),
            says: "done".into(),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

#[test]
fn a_file_says_what_became_of_a_call() {
    let world = World::new("says");
    let check = |old: Option<&[u8]>, found: Option<&[u8]>, expected: &str| {
        world.put(old);
        let intent = world.intent(b"new");
        world.put(found);
        let looked = match look(&world.workspace, &intent, 0, 1) {
            Looked::Done => "done".to_owned(),
            Looked::Untouched => "untouched".into(),
            Looked::Else(why) => why,
        };
        assert!(looked.contains(expected), "{old:?}, then {found:?}: {looked}");
    };
    for old in [None, Some(&b"old"[..]), Some(b"")] {
        check(old, old, "untouched");
        check(old, Some(b"new"), "done");
        check(old, Some(b"ne"), "neither");
        check(old, Some(b"wen"), "neither");
    }
    check(Some(b"new"), Some(b"new"), "done");
    check(Some(b"old"), None, "not there");
    check(None, Some(b"old"), "neither");
    check(Some(b"old"), Some(b"other"), "neither");
}

#[test]
fn a_folder_that_is_gone_holds_nothing() {
    let world = World::new("gone");
    let intent = |before: Option<Mark>| Intent {
        path: world.folder.join("no/f").display().to_string(),
        before,
        after: of_bytes(b"new"),
        says: String::new(),
    };
    assert_eq!(look(&world.workspace, &intent(None), 0, 1), Looked::Untouched);
    assert!(matches!(look(&world.workspace, &intent(Some(of_bytes(b"old"))), 0, 1), Looked::Else(_)));
}

#[test]
fn what_was_left_half_written_goes_and_nothing_else() {
    let world = World::new("swept");
    world.put(Some(b"old"));
    let intent = world.intent(b"new");
    let at = |ms: u64| format!(".nano-{}.tmp", ulid::Ulid::from_parts(ms, 7));
    let names = [at(99), at(100), at(199), at(200), ".nano-x.tmp".into(), format!("{}x", at(150))];
    for name in &names {
        std::fs::write(world.folder.join(name), "half").unwrap();
    }
    assert_eq!(look(&world.workspace, &intent, 100, 200), Looked::Untouched);
    let left: Vec<bool> = names.iter().map(|name| world.folder.join(name).exists()).collect();
    assert_eq!(left, [true, false, false, true, true, true]);
}

#[test]
fn a_long_file_is_known_by_where_it_lies() {
    let world = World::new("long");
    let path = world.folder.join("f");
    let long = |byte: u8| {
        let file = std::fs::File::create(world.folder.join("g")).unwrap();
        file.set_len(super::READ + 2).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[byte], 0).unwrap();
        std::fs::rename(world.folder.join("g"), &path).unwrap();
    };
    long(1);
    let mut intent = world.intent(b"new");
    assert_eq!(look(&world.workspace, &intent, 0, 1), Looked::Untouched);
    long(2);
    assert!(matches!(look(&world.workspace, &intent, 0, 1), Looked::Else(_)), "another file of that length");
    // One that was just made is known by all its bytes.
    intent.after = of_all(&mut std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(look(&world.workspace, &intent, 0, 1), Looked::Done);
}
