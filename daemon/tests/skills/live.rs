//! What changes while the daemon runs: the text of now counts, but never half of one.

use std::fs::{File, FileTimes, OpenOptions};
use std::io::Write;

use super::world::{World, text};

const FILE: &str = "user/a/SKILL.md";

fn world() -> World {
    let world = World::new();
    world.write(FILE, text("a", "About a.", "one"));
    world.skill("user/b");
    assert_eq!(world.body("a").unwrap(), "one");
    world
}

/// What somebody does.
type Step = fn(&World);

#[test]
fn each_change_is_seen_and_told_once() {
    let mut world = world();
    assert_eq!(world.news(), [""; 0], "what was there at first is no news");
    let steps: &[(Step, &[&str])] = &[
        (|world| world.write(FILE, text("a", "About a.", "two")), &["a changed"]),
        (|_| {}, &[]),
        (|world| world.skill("user/c"), &["c added"]),
        (|world| std::fs::remove_dir_all(world.path("user/c")).unwrap(), &["c removed"]),
        (|world| std::fs::rename(world.path("user/b"), world.path("user/d")).unwrap(), &["b added", "b removed"]),
        (|world| world.write("user/b/notes.md", "# no document"), &[]),
        (|world| world.write(FILE, text("z", "About a.", "two")), &["z changed"]),
        (|world| world.write(FILE, text("a", "About a.", "two")), &["a changed"]),
        (
            |world| {
                world.write("new", text("a", "About a.", "three"));
                std::fs::rename(world.path("new"), world.path(FILE)).unwrap();
            },
            &["a changed"],
        ),
        (|world| std::fs::remove_dir_all(world.path("user")).unwrap(), &["a removed", "b removed"]),
        (|world| world.skill("user/a"), &["a added"]),
        (|world| world.skill("w/.agents/skills/a"), &["a added"]),
        (|world| world.skill("config/e"), &["e added"]),
    ];
    for (number, (step, expected)) in steps.iter().enumerate() {
        step(&world);
        drop(world.look());
        assert_eq!(world.news(), *expected, "step {number}");
    }
}

#[test]
fn what_is_touched_alone_is_no_news() {
    let mut world = world();
    for seconds in 1..5 {
        let file = OpenOptions::new().append(true).open(world.path(FILE)).unwrap();
        let at = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        file.set_times(FileTimes::new().set_modified(at)).unwrap();
        drop(file);
        assert_eq!(world.body("a").unwrap(), "one");
    }
    assert_eq!(world.news(), [""; 0]);
}

/// Edits in place, of the same size, as fast as it goes: the clock of the file system does not tell them apart.
#[test]
fn an_edit_within_one_tick_is_seen() {
    let world = world();
    for round in 0..300 {
        for body in ["uno", "dos"] {
            let mut file = OpenOptions::new().write(true).open(world.path(FILE)).unwrap();
            file.write_all(text("a", "About a.", body).as_bytes()).unwrap();
            let metadata = file.metadata().unwrap();
            // As if nothing had changed.
            file.set_times(FileTimes::new().set_modified(metadata.accessed().unwrap())).unwrap();
            drop(file);
            assert_eq!(world.body("a").unwrap(), body, "round {round}");
        }
    }
}

#[test]
fn a_file_that_is_being_written_waits() {
    let mut world = world();
    let mut file = File::create(world.path(FILE)).unwrap();
    assert_eq!(world.body("a").unwrap(), "one", "truncated");
    file.write_all(b"---\nname: a\ndescription: About a.\n---\ntw").unwrap();
    assert_eq!(world.body("a").unwrap(), "one", "good so far, but not all of it");
    assert_eq!(world.row(FILE).problems, []);
    file.write_all(b"o\n").unwrap();
    drop(file);
    assert_eq!(world.body("a").unwrap(), "two");
    assert_eq!(world.news(), ["a changed"]);
}

#[test]
fn a_new_file_that_is_being_written_comes_when_it_is_there() {
    let mut world = world();
    std::fs::create_dir(world.path("user/n")).unwrap();
    let mut file = File::create(world.path("user/n/SKILL.md")).unwrap();
    file.write_all(b"---\nname: n\n").unwrap();
    assert_eq!(world.names(), ["a", "b"]);
    file.write_all(b"description: New.\n---\nnew\n").unwrap();
    drop(file);
    assert_eq!(world.names(), ["a", "b", "n"]);
    assert_eq!(world.news(), ["n added"]);
}

#[test]
fn what_gets_worse_does_not_replace_what_was_good() {
    let long = "x".repeat((1 << 20) + 1);
    let unreadable: &[u8] = b"---\nname: a\ndescription: \xff\n---\nbad\n";
    for bad in [
        b"".as_slice(),
        b"---\nname: a\ndescription: Half",
        b"---\nname: a\ndescription: Half.\n\nNever closed.\n",
        b"---\nname: a\n---\nNo description.\n",
        b"# Just a note\n",
        unreadable,
        long.as_bytes(),
    ] {
        let mut world = world();
        let shown = String::from_utf8_lossy(&bad[..bad.len().min(40)]).into_owned();
        world.write(FILE, bad);
        assert_eq!(world.body("a").unwrap(), "one", "{shown:?}");
        let row = world.row(FILE);
        assert!(row.valid && row.description == "About a.", "{row:?}");
        assert!(row.problems[0].message.contains("serves on"), "{row:?}");
        assert_eq!(world.news(), ["a changed"]);
        // Worse in another way: one problem says so, not two.
        world.write(FILE, "still bad");
        let stale = world.row(FILE).problems.iter().filter(|one| one.message.contains("serves on")).count();
        assert_eq!(stale, 1, "{shown:?}");
        world.news();
        world.write(FILE, text("a", "About a.", "good again"));
        assert_eq!(world.body("a").unwrap(), "good again");
        assert_eq!((world.row(FILE).problems.len(), world.news()), (0, vec!["a changed".to_owned()]));
    }
}

#[test]
fn what_was_never_good_serves_nothing() {
    let world = World::new();
    world.write(FILE, "---\nname: a\ndescription: Half");
    world.write("user/b/SKILL.md", "no front matter");
    let shown = world.paths();
    assert!(shown.contains(&"!user/b/SKILL.md".to_owned()), "{shown:?}");
    std::fs::remove_file(world.path("user/b/SKILL.md")).unwrap();
    assert!(!world.paths().contains(&"!user/b/SKILL.md".to_owned()));
}

#[test]
fn what_is_deleted_is_gone_even_if_it_comes_back_bad() {
    let world = world();
    std::fs::remove_file(world.path(FILE)).unwrap();
    assert_eq!(world.body("a"), None);
    world.write(FILE, "bad");
    assert!(!world.row(FILE).valid);
}

#[test]
fn a_file_that_becomes_a_link_out_serves_on() {
    let world = World::new();
    let file = "w/.agents/skills/a/SKILL.md";
    world.skill("w/.agents/skills/a");
    let one = world.body("a").unwrap();
    world.write("secret", text("a", "Secret.", "secret"));
    std::fs::remove_file(world.path(file)).unwrap();
    world.link(world.path("secret"), file);
    assert_eq!(world.body("a").unwrap(), one);
    let row = world.row(file);
    assert!(row.problems[0].message.contains("outside the workspace") && row.description == "About it.", "{row:?}");
}

#[test]
fn a_link_that_leads_elsewhere_is_followed_anew() {
    let world = World::new();
    for (name, body) in [("one", "one"), ("two", "two")] {
        world.write(&format!("lib/{name}/SKILL.md"), text("a", "About a.", body));
    }
    let point = |name: &str, target: &str| {
        std::fs::remove_file(world.path(name)).ok();
        world.link(target, name);
    };
    point("lib/now", "one");
    point("user/a", "../lib/now");
    // The same folder again by another way.
    point("user/b", "../lib/one");
    assert_eq!(world.body("a").unwrap(), "one");
    point("lib/now", "two");
    assert_eq!(world.paths(), ["user/a/SKILL.md", "user/b/SKILL.md"], "a link behind a link");
    assert_eq!(world.body("a").unwrap(), "two");
    point("user/a", "../lib/later");
    point("user/b", "../lib/later");
    assert_eq!(world.names(), [""; 0]);
    world.write("lib/later/SKILL.md", text("a", "About a.", "later"));
    assert_eq!(world.body("a").unwrap(), "later", "what a link leads to came later");
    std::fs::remove_dir_all(world.path("lib/later")).unwrap();
    assert_eq!(world.names(), [""; 0]);
}

#[test]
fn a_root_of_which_only_the_beginning_is_there() {
    let world = World::with(|folder, places| places.user = vec![folder.join("x/y/z")]);
    assert_eq!(world.names(), [""; 0]);
    for part in ["x", "x/y", "x/y/z", "x/y/z/a"] {
        std::fs::create_dir(world.path(part)).unwrap();
        assert_eq!(world.names(), [""; 0]);
    }
    world.skill("x/y/z/a");
    assert_eq!(world.names(), ["a"]);
}

#[test]
fn without_a_watch_skills_are_taken_once_but_own_edits_are_seen() {
    let mut world = World::with(|_, places| places.watch = false);
    world.skill("user/a");
    assert_eq!(world.names(), ["a"]);
    world.skill("user/b");
    world.write(FILE, text("a", "About a.", "changed"));
    world.library.look_again();
    assert_eq!((world.names(), world.body("a").unwrap()), (vec!["a".to_owned()], "Body of user/a.".to_owned()));
    world.library.create(true, None, ("c", "C."), &nano_protocol::Object::new(), "c").unwrap();
    assert_eq!(world.names(), ["a", "c"]);
    assert_eq!(world.news(), ["c added"]);
}

#[test]
fn of_many_workspaces_few_are_kept() {
    let mut world = World::new();
    let workspaces: Vec<_> = (0..600).map(|n| world.path(&format!("many/{n}"))).collect();
    for workspace in &workspaces {
        std::fs::create_dir_all(workspace.join(".agents/skills")).unwrap();
        drop(world.library.look_now(Some(workspace)));
    }
    (0..600).for_each(|n| world.skill(&format!("many/{n}/.agents/skills/a")));
    world.library.look_again();
    assert_eq!(world.news().len(), 256);
    drop(world.library.look_now(Some(&workspaces[0])));
    world.skill("many/0/.agents/skills/b");
    world.skill("many/344/.agents/skills/b");
    world.skill("many/599/.agents/skills/b");
    world.library.look_again();
    assert_eq!(world.news().len(), 2, "the one looked at longest ago went");
}
