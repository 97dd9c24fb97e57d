//! Which of several skills of one name counts.

use nanod::skills::library::Places;

use super::world::{World, text};

const PLACES: [&str; 4] = ["config/a", "w/.agents/skills/a", "user/a", "system/a"];
const BROKEN: &str = "---\nname: a\n---\nNo description.\n";

#[test]
fn the_first_place_counts_and_the_others_say_so() {
    for first in 0..PLACES.len() {
        let world = World::new();
        for place in &PLACES[first..] {
            world.skill(place);
        }
        assert_eq!(world.body("a").unwrap(), format!("Body of {}.", PLACES[first]));
        let rows: Vec<_> = world.list().into_iter().filter(|row| row.name == "a").collect();
        assert_eq!(rows.len(), PLACES.len() - first);
        let winner = world.path(&format!("{}/SKILL.md", PLACES[first])).to_string_lossy().into_owned();
        assert_eq!((rows[0].path.as_str(), rows[0].problems.len()), (winner.as_str(), 0), "it stands first");
        for row in &rows[1..] {
            assert!(row.valid && row.problems.iter().any(|one| one.message.contains(&winner)), "{row:?}");
        }
    }
}

#[test]
fn one_that_cannot_be_used_hides_none_that_can() {
    for good in PLACES {
        let world = World::new();
        for place in PLACES {
            world.write(&format!("{place}/SKILL.md"), BROKEN);
        }
        world.skill(good);
        assert_eq!(world.body("a").unwrap(), format!("Body of {good}."));
        for bad in PLACES.iter().filter(|place| **place != good) {
            let row = world.row(&format!("{bad}/SKILL.md"));
            assert!(!row.valid && row.problems[0].message.starts_with("no description"), "{row:?}");
        }
    }
}

#[test]
fn every_place_hides_what_is_shipped_unless_it_is_broken() {
    for place in ["config", "w/.agents/skills", "user", "system"] {
        let world = World::new();
        world.skill(&format!("{place}/git-workflow"));
        assert!(world.body("git-workflow").unwrap().starts_with("Body of"), "{place}");
        world.write(&format!("{place}/git-workflow/SKILL.md"), "nothing");
        let other = World::new();
        other.write(&format!("{place}/git-workflow/SKILL.md"), "nothing");
        assert!(other.body("git-workflow").unwrap().len() > 100, "{place}");
    }
}

#[test]
fn within_one_place_and_among_several_paths_the_first_counts() {
    let world = World::with(|folder, places| places.config = vec![folder.join("one"), folder.join("two")]);
    for folder in ["two/a", "one/z/a", "one/m/a"] {
        world.skill(folder);
    }
    assert_eq!(world.body("a").unwrap(), "Body of one/m/a.");
    assert!(world.problems("one/z/a/SKILL.md").contains("one/m/a/SKILL.md"));
    assert!(world.problems("two/a/SKILL.md").contains("one/m/a/SKILL.md"));
}

#[test]
fn names_that_are_the_same_when_normalised_are_one_name() {
    let world = World::new();
    world.write("config/x/SKILL.md", text("ｇｉｔ", "Wide.", "wide"));
    world.write("user/git/SKILL.md", text("git", "Narrow.", "narrow"));
    assert_eq!(world.body("git").unwrap(), "wide");
    assert!(world.problems("user/git/SKILL.md").contains("config/x/SKILL.md"));
}

/// A home whose `.agents/skills` is a root of the daemon, and a session that works in that home.
fn home(config: bool) -> World {
    World::with(|folder, places: &mut Places| {
        let skills = vec![folder.join("w/.agents/skills")];
        *if config { &mut places.config } else { &mut places.user } = skills;
    })
}

#[test]
fn the_home_as_workspace_is_listed_once_and_stays_trusted() {
    for config in [false, true] {
        let world = home(config);
        let always = "---\nname: a\ndescription: A.\nmetadata:\n  always_load: true\n---\nAlways here.\n";
        world.write("w/.agents/skills/a/SKILL.md", always);
        let library = &world.library;
        library.create(true, Some(&world.workspace()), ("b", "B."), &nano_protocol::Object::new(), "b").unwrap();
        world.link("w", "also");
        for workspace in ["w", "also"] {
            let shelves = library.look_now(Some(&world.path(workspace)));
            let rows = nanod::skills::offer::list(&shelves, None, false);
            let rows: Vec<_> = rows.iter().filter(|row| row.source != "shipped").collect();
            let source = if config { "config" } else { "user" };
            assert_eq!(rows.len(), 2, "{workspace}: {rows:?}");
            assert!(rows.iter().all(|row| row.source == source && row.problems.is_empty()), "{workspace}: {rows:?}");
            assert!(rows[0].always_load);
        }
    }
}

#[test]
fn a_place_that_is_named_twice_is_listed_once() {
    let world = World::with(|folder, places| {
        std::os::unix::fs::symlink("user", folder.join("link")).unwrap();
        places.config = vec![folder.join("user"), folder.join("link")];
    });
    world.skill("user/a");
    assert_eq!(world.paths(), ["user/a/SKILL.md"]);
    assert_eq!((world.list()[0].source.as_str(), world.list()[0].problems.len()), ("config", 0));
}
