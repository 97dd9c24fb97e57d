//! Skills made and changed.

use std::os::unix::fs::PermissionsExt;

use std::path::PathBuf;

use nano_protocol::Object;
use nanod::skills::edit::{self, Edit, EditError};
use serde_json::json;

use super::world::{World, text};

#[path = "edit/places.rs"]
mod places;

/// What became of an edit, in a word.
pub fn word<T>(result: &Result<T, EditError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(EditError::Invalid(_)) => "invalid",
        Err(EditError::Gone(_)) => "gone",
        Err(EditError::Conflict(_)) => "conflict",
        Err(EditError::Denied(..)) => "denied",
        Err(EditError::TooLarge(_)) => "too large",
        Err(EditError::Path(_)) => "path",
    }
}

impl World {
    pub fn create(&self, name: &str) -> Result<PathBuf, EditError> {
        self.library.create(true, None, (name, "About it."), &Object::new(), "body")
    }

    pub fn create_here(&self, name: &str) -> Result<PathBuf, EditError> {
        self.library.create(true, Some(&self.workspace()), (name, "About it."), &Object::new(), "body")
    }

    fn update(&self, name: &str, edit: Edit) -> Result<PathBuf, EditError> {
        self.library.update(true, Some(&self.workspace()), name, edit, None)
    }

    /// Returns the digest of a skill's file.
    pub fn digest(&self, name: &str) -> String {
        let shelves = self.look();
        let (root, skill) = edit::find(&shelves, name, None).unwrap();
        edit::read(root, skill).unwrap().digest
    }
}

fn described(text: &str) -> Edit {
    Edit { description: Some(text.into()), ..Edit::default() }
}

fn body(text: &str) -> Edit {
    Edit { body: Some(text.into()), ..Edit::default() }
}

fn whole(text: impl Into<String>) -> Edit {
    Edit { text: Some(text.into()), ..Edit::default() }
}

#[test]
fn names_of_new_skills_are_strict() {
    let world = World::new();
    let (long, longest) = ("x".repeat(65), "x".repeat(64));
    let names = ["", " ", "..", ".", "../x", "/etc/x", "a/b", "a\\b", "A", "a b", " a", "a\n", "-a", "a-", "a--b", "ä"];
    for bad in names.into_iter().chain(["a\0", "a.md", "a_b", &long]) {
        for here in [false, true] {
            let made = if here { world.create_here(bad) } else { world.create(bad) };
            assert_eq!(word(&made), "invalid", "{bad:?}");
        }
    }
    assert!(!world.path("config").exists() && !world.path("w/.agents").exists());
    for good in ["a", "0", "a-b-1", &longest] {
        assert_eq!(word(&world.create(good)), "ok", "{good:?}");
        assert_eq!(word(&world.create(good)), "conflict", "{good:?}");
        assert_eq!(world.body(good).unwrap(), "body");
    }
}

#[test]
fn what_makes_no_skill_is_not_written() {
    let world = World::new();
    for about in ["", " ", "\n"] {
        let made = world.library.create(true, None, ("a", about), &Object::new(), "body");
        assert_eq!(word(&made), "invalid", "{about:?}");
    }
    let huge = world.library.create(true, None, ("a", "A."), &Object::new(), &"x".repeat(1 << 20));
    assert_eq!(word(&huge), "too large");
    assert!(!world.path("config").exists());
}

#[test]
fn a_new_skill_reads_as_it_was_given() {
    let mut world = World::new();
    drop(world.look());
    let metadata = json!({"metadata": {"always_load": "true"}, "license": "MIT", "name": "no"});
    let about = "Uses: colons, \"quotes\" # and\nlines";
    let made = world.library.create(
        true,
        None,
        ("a", about),
        metadata.as_object().unwrap(),
        "# Body\r\n\n---\nnot front matter",
    );
    made.unwrap();
    let row = world.row("config/a/SKILL.md");
    assert_eq!((row.description.as_str(), row.problems.len()), ("Uses: colons, \"quotes\" # and lines", 0), "{row:?}");
    assert!(row.always_load);
    assert_eq!(world.body("a").unwrap(), "# Body\n\n---\nnot front matter");
    assert_eq!(world.news(), ["a added"]);
}

#[test]
fn the_first_place_that_can_be_written_gets_it() {
    // A file in the way stops root too.
    let world = World::new();
    world.write("config", "in the way");
    world.create("a").unwrap();
    assert!(world.path("user/a/SKILL.md").exists());
    let nowhere = World::new();
    for place in ["config", "user", "system"] {
        nowhere.write(place, "in the way");
    }
    let why = nowhere.create("a").unwrap_err();
    assert!(matches!(&why, EditError::Denied(..)), "{why:?}");
    for place in ["config", "user", "system"] {
        assert!(why.to_string().contains(&nowhere.path(place).display().to_string()), "{why}");
    }
    let none = World::with(|_, places| *places = nanod::skills::library::Places::default());
    assert!(matches!(none.create("a"), Err(EditError::Denied(why, _)) if why.contains("skills.paths")));
}

#[test]
fn a_name_is_taken_per_place() {
    let world = World::new();
    world.skill("user/a");
    world.skill("config/group/b");
    world.write("config/c/SKILL.md", text("other", "About it.", "kept"));
    world.write("config/d/skill.md", "broken");
    for (name, expected) in
        [("a", "ok"), ("b", "conflict"), ("c", "conflict"), ("d", "conflict"), ("other", "conflict")]
    {
        assert_eq!(word(&world.create(name)), expected, "{name}");
    }
    assert_eq!(word(&world.create_here("b")), "ok", "another place");
    assert!(world.read("config/c/SKILL.md").contains("kept") && !world.path("user/c").exists());
    assert_eq!(world.row("w/.agents/skills/b/SKILL.md").source, "workspace");
}

#[test]
fn of_two_who_make_the_same_one_wins() {
    let world = World::new();
    for round in 0..20 {
        let name = format!("s{round}");
        let made: Vec<&str> = std::thread::scope(|threads| {
            let hands: Vec<_> = (0..4).map(|_| threads.spawn(|| word(&world.create(&name)))).collect();
            hands.into_iter().map(|hand| hand.join().unwrap()).collect()
        });
        assert_eq!(made.iter().filter(|word| **word == "ok").count(), 1, "{made:?}");
        assert_eq!(made.iter().filter(|word| **word == "conflict").count(), 3, "{made:?}");
    }
}

#[test]
fn what_is_not_asked_for_stays_byte_for_byte() {
    let world = World::new();
    let old = "---\r\n# a comment\r\nname: a # of its own\r\nodd-key: [1, two]\r\ndescription: \"Old.\"\r\n---\r\n\r\nBody: 1\r\n";
    world.write("user/a/SKILL.md", old);
    world.update("a", described("New: one.")).unwrap();
    assert_eq!(world.read("user/a/SKILL.md"), old.replace("\"Old.\"", "\"New: one.\""));
    world.update("a", body("One\nTwo")).unwrap();
    assert!(world.read("user/a/SKILL.md").ends_with("---\r\n\r\nOne\r\nTwo\r\n"));
    assert!(world.read("user/a/SKILL.md").contains("# a comment\r\nname: a # of its own\r\nodd-key: [1, two]\r\n"));
    std::fs::set_permissions(world.path("user/a/SKILL.md"), PermissionsExt::from_mode(0o640)).unwrap();
    world.update("a", whole(text("a", "Whole.", "whole"))).unwrap();
    assert_eq!(world.read("user/a/SKILL.md"), text("a", "Whole.", "whole"));
    let mode = std::fs::metadata(world.path("user/a/SKILL.md")).unwrap().permissions().mode();
    assert_eq!((world.body("a").unwrap(), mode & 0o777), ("whole".into(), 0o640));
    assert_eq!(std::fs::read_dir(world.path("user/a")).unwrap().count(), 1, "nothing is left lying about");
}

#[test]
fn changes_that_are_refused_change_nothing() {
    let world = World::new();
    let old = text("a", "About it.", "body");
    world.write("user/a/SKILL.md", &old);
    world.write("user/bad/SKILL.md", b"---\nname: bad\ndescription: B.\n---\nbytes: \xff\n");
    let both = Edit { text: Some(old.clone()), ..described("x") };
    for (name, edit, expected) in [
        ("nowhere", body("x"), "gone"),
        ("../a", body("x"), "gone"),
        ("a", described(" "), "invalid"),
        ("a", both, "invalid"),
        ("a", whole(""), "invalid"),
        ("a", whole("---\nname: a\n---\nno description\n"), "invalid"),
        ("a", whole(text("b", "Renamed.", "body")), "invalid"),
        ("a", body(&"x".repeat(1 << 20)), "invalid"),
        ("bad", described("What is no text would be lost."), "invalid"),
        ("git-workflow", body("x"), "denied"),
    ] {
        assert_eq!(word(&world.update(name, edit)), expected, "{name}");
    }
    let stale = world.digest("a");
    let wrong = world.library.update(true, None, "a", body("x"), Some("0"));
    assert_eq!((word(&wrong), world.read("user/a/SKILL.md")), ("conflict", old));
    world.library.update(true, None, "a", body("new"), Some(&stale)).unwrap();
    assert_eq!(word(&world.library.update(true, None, "a", body("newer"), Some(&stale))), "conflict");
    assert_eq!(world.body("a").unwrap(), "new");
}

#[test]
fn a_file_that_is_too_long_is_not_cut_off() {
    let world = World::new();
    let long = text("a", "About it.", &"x".repeat((1 << 20) - 10));
    world.write("user/a/SKILL.md", &long);
    assert_ne!(word(&world.update("a", described("Shorter."))), "ok");
    assert_eq!(world.read("user/a/SKILL.md").len(), long.len());
    world.update("a", whole(text("a", "Short.", "body"))).ok();
    world.library.delete(true, None, "a", None).unwrap();
    assert!(!world.path("user/a").exists());
}

#[test]
fn files_of_every_form_can_be_changed() {
    let nameless = "---\ndescription: Old.\n---\nbody\n";
    let world = World::new();
    world.write("lib/a/SKILL.md", nameless);
    world.link("../lib/a", "user/linked");
    world.write("lib/file.md", nameless);
    world.link("../../lib/file.md", "user/file/SKILL.md");
    for path in
        ["user/v1.2/SKILL.md", "user/flat.md", "user/low/skill.md", "w/.agents/skills/here/SKILL.md", "user/SKILL.md"]
    {
        world.write(path, nameless);
    }
    for (name, path) in [
        ("v1.2", "user/v1.2/SKILL.md"),
        ("flat", "user/flat.md"),
        ("low", "user/low/skill.md"),
        ("here", "w/.agents/skills/here/SKILL.md"),
        ("user", "user/SKILL.md"),
        ("linked", "lib/a/SKILL.md"),
        ("file", "lib/file.md"),
    ] {
        world.update(name, described("New.")).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(world.read(path), nameless.replace("Old.", "New."), "{name}");
    }
    assert!(std::fs::symlink_metadata(world.path("user/file/SKILL.md")).unwrap().is_symlink());
    // Whoever has a broken one makes it good.
    world.write("user/low/skill.md", "broken");
    world.update("low", whole("---\ndescription: Good.\n---\nmended\n")).unwrap();
    assert_eq!(world.body("low").unwrap(), "mended");
}
