//! Which of several places an edit goes to, and whose it may be.

use super::*;

#[test]
fn an_edit_of_one_that_is_hidden_by_another_goes_to_the_one_that_counts() {
    let world = World::new();
    world.skill("user/a");
    world.skill("w/.agents/skills/a");
    world.update("a", body("mine")).unwrap();
    assert!(world.read("w/.agents/skills/a/SKILL.md").contains("mine"));
    world.library.update(true, None, "a", body("yours"), None).unwrap();
    assert!(world.read("user/a/SKILL.md").contains("yours"));
    assert_eq!(world.body("a").unwrap(), "mine");
}

#[test]
fn nothing_outside_a_workspace_is_touched() {
    for (target, link) in [
        ("outside", "w/.agents"),
        ("outside", "w/.agents/skills"),
        ("outside/skills/a", "w/.agents/skills/a"),
        ("user/..", "w/.agents"),
    ] {
        let world = World::with(|folder, places| {
            places.user = vec![folder.join("outside/skills")];
            std::fs::create_dir_all(folder.join("outside/skills/a")).unwrap();
            std::fs::create_dir_all(folder.join("user")).unwrap();
        });
        world.link(world.path(target), link);
        let made = world.create_here("a");
        // A link that is refused is listed, and so its name is taken.
        let expected = if link.ends_with("/a") { "conflict" } else { "denied" };
        assert_eq!(word(&made), expected, "{link}");
        let why = made.unwrap_err().to_string();
        assert!(expected == "conflict" || why.contains("outside the workspace"), "{why}");
        assert_eq!(std::fs::read_dir(world.path("outside/skills/a")).unwrap().count(), 0, "{link}");
        assert_eq!(std::fs::read_dir(world.path("outside/skills")).unwrap().count(), 1, "{link}");
        assert_eq!(std::fs::read_dir(world.path("outside")).unwrap().count(), 1, "{link}");
    }
}

#[test]
fn who_may_not_change_the_daemons_folders_can_change_a_workspace() {
    let world = World::new();
    world.create("a").unwrap();
    world.create_here("b").unwrap();
    let here = Some(world.workspace());
    let here = here.as_deref();
    let create = |name, place| word(&world.library.create(false, place, (name, "About it."), &Object::new(), "body"));
    assert_eq!([create("c", None), create("c", here)], ["denied", "ok"]);
    for (name, expected) in [("a", "denied"), ("b", "ok")] {
        let changed = world.library.update(false, here, name, body("new"), None);
        assert_eq!(word(&changed), expected, "{name}");
        assert_eq!(word(&world.library.delete(false, here, name, None)), expected, "{name}");
    }
    assert_eq!(world.body("a").as_deref(), Some("body"));
}
