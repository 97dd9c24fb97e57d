//! Skills removed.

use super::edit::word;
use super::world::World;

/// Deletes, and returns what became of it.
fn delete(world: &World, name: &str) -> &'static str {
    word(&world.library.delete(true, Some(&world.workspace()), name, None))
}

#[test]
fn the_folder_goes_with_all_that_is_in_it() {
    let mut world = World::new();
    world.skill("user/a");
    world.write("user/a/scripts/x.sh", "x");
    world.link("../b", "user/a/link");
    world.skill("user/b");
    drop(world.look());
    assert_eq!(delete(&world, "a"), "ok");
    assert!(!world.path("user/a").exists() && world.path("user/b/SKILL.md").exists());
    assert_eq!(std::fs::read_dir(world.path("user")).unwrap().count(), 1, "nothing is left lying about");
    assert_eq!(world.news(), ["a removed"]);
    assert_eq!(delete(&world, "a"), "gone");
}

#[test]
fn of_a_link_the_link_alone_goes() {
    let world = World::new();
    world.skill("lib/a");
    world.write("lib/b.md", "---\ndescription: B.\n---\nbody\n");
    world.link("../lib/a", "user/a");
    world.link("../lib/b.md", "user/b.md");
    world.link("../../lib/b.md", "user/c/SKILL.md");
    assert_eq!(world.names(), ["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        assert_eq!(delete(&world, name), "ok", "{name}");
    }
    assert!(world.path("lib/a/SKILL.md").exists() && world.path("lib/b.md").exists());
    assert_eq!(std::fs::read_dir(world.path("user")).unwrap().count(), 0);
}

#[test]
fn what_lies_directly_in_a_root_goes_alone() {
    let world = World::new();
    world.skill("user/a");
    world.write("user/flat.md", "---\ndescription: Flat.\n---\nbody\n");
    world.write("user/SKILL.md", "---\ndescription: Root.\n---\nbody\n");
    for name in ["user", "flat"] {
        assert_eq!(delete(&world, name), "ok", "{name}");
    }
    assert_eq!(world.paths(), ["user/a/SKILL.md"]);
}

#[test]
fn a_folder_with_another_skill_in_it_stays() {
    let world = World::new();
    world.skill("user/a");
    world.skill("user/a/deep/b");
    assert_eq!(delete(&world, "a"), "conflict");
    assert_eq!(world.paths().len(), 2);
    assert_eq!((delete(&world, "b"), delete(&world, "a")), ("ok", "ok"));
    assert_eq!(std::fs::read_dir(world.path("user")).unwrap().count(), 0);
}

#[test]
fn what_is_shipped_stays_and_comes_back() {
    let world = World::new();
    assert_eq!(delete(&world, "git-workflow"), "denied");
    let shipped = world.body("git-workflow").unwrap();
    world.create("git-workflow").unwrap();
    assert_eq!(world.body("git-workflow").unwrap(), "body");
    assert_eq!(delete(&world, "git-workflow"), "ok");
    assert_eq!(world.body("git-workflow").unwrap(), shipped);
    assert_eq!(delete(&world, "git-workflow"), "denied");
}

#[test]
fn only_what_was_seen_is_removed() {
    let world = World::new();
    world.skill("user/a");
    let seen = world.digest("a");
    world.write("user/a/SKILL.md", super::world::text("a", "About it.", "changed"));
    assert_eq!(word(&world.library.delete(true, None, "a", Some(&seen))), "conflict");
    assert!(world.path("user/a/SKILL.md").exists());
    assert_eq!(word(&world.library.delete(true, None, "a", Some(&world.digest("a")))), "ok");
}

#[test]
fn what_cannot_be_read_can_be_removed() {
    let world = World::new();
    world.write("user/x", "");
    for place in ["user", "w/.agents/skills"] {
        world.skill("outside");
        world.link("/dev/zero", &format!("{place}/device/SKILL.md"));
        world.link(world.path("outside/SKILL.md"), &format!("{place}/out/SKILL.md"));
        world.write(&format!("{place}/broken/SKILL.md"), "broken");
        std::fs::create_dir_all(world.path(&format!("{place}/fifo"))).unwrap();
        let fifo = world.path(&format!("{place}/fifo/SKILL.md"));
        rustix::fs::mknodat(rustix::fs::CWD, fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for name in ["device", "fifo", "broken"] {
            assert_eq!(delete(&world, name), "ok", "{place}/{name}");
            assert!(!world.path(&format!("{place}/{name}")).exists(), "{place}/{name}");
        }
        assert_eq!(delete(&world, "out"), if place == "user" { "gone" } else { "ok" }, "its name is another's");
        assert!(world.path("outside/SKILL.md").exists());
    }
}

#[test]
fn in_a_workspace_whose_folder_is_a_link_out_nothing_is_removed() {
    let world = World::new();
    world.skill("outside/skills/a");
    world.link("../outside", "w/.agents");
    assert_eq!(delete(&world, "a"), "gone");
    assert_ne!(delete(&world, "skills"), "ok");
    assert!(world.path("outside/skills/a/SKILL.md").exists());
    assert!(std::fs::symlink_metadata(world.path("w/.agents")).unwrap().is_symlink());
}
