//! In what shapes skills lie in a folder that is trusted.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::world::{World, text};

/// A root with these files, and the paths that are listed.
#[track_caller]
fn check(files: &[&str], expected: &[&str]) {
    let world = World::new();
    for file in files {
        world.write(&format!("user/{file}"), text("x", "About x.", "body"));
    }
    let expected: Vec<String> = expected.iter().map(|path| format!("user/{path}")).collect();
    assert_eq!(world.paths(), expected, "{files:?}");
}

#[test]
fn where_documents_are_found() {
    check(&[], &[]);
    check(&["a/SKILL.md"], &["a/SKILL.md"]);
    check(&["SKILL.md"], &["SKILL.md"]);
    check(&["SKILL.md", "a/SKILL.md"], &["SKILL.md", "a/SKILL.md"]);
    check(&["a/skill.md"], &["a/skill.md"]);
    check(&["a/SKILL.MD"], &["a/SKILL.MD"]);
    check(&["a/SKILL.MD", "a/Skill.md"], &["a/SKILL.MD"]);
    check(&["a/SKILL.MD", "a/SKILL.md", "a/skill.md"], &["a/SKILL.md"]);
    check(&["a/SKILL.md", "a/b/SKILL.md", "a/b/c/SKILL.md"], &["a/SKILL.md", "a/b/SKILL.md", "a/b/c/SKILL.md"]);
    check(&["a/README.md", "a/notes.md", "a/SKILL.txt", "a/SKILL"], &[]);
    check(&["flat.md", "a/flat.md", "flat.txt", ".flat.md", "flat.MD"], &["flat.md"]);
    check(&["1/2/3/4/5/6/SKILL.md", "1/2/3/4/5/6/7/SKILL.md"], &["1/2/3/4/5/6/SKILL.md"]);
    check(&[".git/SKILL.md", ".x/a/SKILL.md", "node_modules/SKILL.md", "a/node_modules/b/SKILL.md"], &[]);
    check(&["node_modules.old/SKILL.md", "git/SKILL.md"], &["git/SKILL.md", "node_modules.old/SKILL.md"]);
}

#[test]
fn odd_forms_load_and_say_so() {
    let world = World::new();
    world.write("user/flat.md", text("flat", "About it.", "body"));
    world.write("user/low/skill.md", text("low", "About it.", "body"));
    world.write("user/README.md", "# Notes\n\nNo front matter.\n");
    world.write("user/half.md", "---\nname: half\n---\nNo description.\n");
    assert_eq!(world.paths(), ["!user/half.md", "user/flat.md", "user/low/skill.md"]);
    assert!(world.problems("user/flat.md").contains("flat/SKILL.md"));
    assert!(world.problems("user/low/skill.md").contains("SKILL.md"));
    let offer = world.offer();
    assert_eq!(offer.get("flat").unwrap().folder, None);
    assert_eq!(offer.get("low").unwrap().folder, Some(world.path("user/low")));
}

#[test]
fn a_document_without_a_name_is_called_after_its_folder() {
    let nameless = "---\ndescription: About it.\n---\nbody\n";
    let world = World::new();
    for path in ["user/a/SKILL.md", "user/v1.2/SKILL.md", "user/b.md", "user/SKILL.md"] {
        world.write(path, nameless);
    }
    assert_eq!(world.names(), ["a", "b", "user", "v1.2"]);
}

#[test]
fn names_that_are_no_text_are_listed_all_the_same() {
    let world = World::new();
    world.skill("user/good");
    let bad = world.path("user").join(OsStr::from_bytes(b"b\xffd"));
    std::fs::create_dir(&bad).unwrap();
    std::fs::write(bad.join("SKILL.md"), "---\ndescription: About it.\n---\nbody\n").unwrap();
    assert_eq!(world.names(), ["b\u{fffd}d", "good"]);
    assert_eq!(world.offer().get("b\u{fffd}d").unwrap().folder, Some(bad.clone()));
    world.library.delete(true, None, "b\u{fffd}d", None).unwrap();
    assert!(!bad.exists());
}

#[test]
fn a_root_that_is_no_folder_says_so_or_is_not_there() {
    let world = World::new();
    world.write("config", "a file");
    world.write("w/.agents/skills", "a file");
    assert_eq!(world.paths(), ["!config"]);
    std::fs::remove_file(world.path("config")).unwrap();
    std::fs::remove_file(world.path("w/.agents/skills")).unwrap();
    world.skill("config/a");
    world.skill("w/.agents/skills/b");
    assert_eq!(world.names(), ["a", "b"]);
}

#[test]
fn the_order_is_the_same_however_folders_were_filled() {
    let names: Vec<String> = (0..200).map(|n| format!("s{:03}", n * 77 % 200)).collect();
    let [one, other] = [World::new(), World::new()];
    for (name, eman) in names.iter().zip(names.iter().rev()) {
        one.skill(&format!("user/{name}"));
        other.skill(&format!("user/{eman}"));
    }
    assert_eq!(one.names(), other.names());
    let prompt = |world: &World| world.offer().prompts().iter().map(|part| part.text.clone()).collect::<Vec<_>>();
    assert_eq!(prompt(&one), prompt(&other));
    assert_eq!(prompt(&one), prompt(&one));
}
