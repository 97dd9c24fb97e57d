//! Folders made to hurt. What is done stays bounded, which is asserted by counts, and what is good is found.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use nano_protocol::skill::SkillInfo;
use nanod::sandbox::workspace::Workspace;
use nanod::skills::files;

use super::world::{World, text};

const PLACES: [&str; 2] = ["user", "w/.agents/skills"];

/// The rows, those that can be used and those that cannot.
fn halves(world: &World) -> (Vec<SkillInfo>, Vec<SkillInfo>) {
    world.list().into_iter().partition(|row| row.valid)
}

/// Makes a place with a good skill and what `make` adds at the path that it gets; one row with `why` comes of it.
#[track_caller]
fn check(why: &str, make: impl Fn(&World, &str)) {
    for place in PLACES {
        let world = World::new();
        world.skill(&format!("{place}/good"));
        std::fs::create_dir(world.path(&format!("{place}/bad"))).unwrap();
        make(&world, &format!("{place}/bad/SKILL.md"));
        let (good, bad) = halves(&world);
        assert_eq!(good.len(), 1, "{why}: {good:?}");
        assert!(bad.len() == 1 && bad[0].problems[0].message.contains(why), "{place}, {why}: {bad:?}");
        assert_eq!(bad[0].path, world.path(&format!("{place}/bad/SKILL.md")).to_string_lossy());
        assert!(world.offer().get(&bad[0].name).is_none_or(|skill| skill.document.body.len() < 4 << 20));
    }
}

#[test]
fn what_is_no_file_is_not_opened_for_long() {
    check("not a regular file but a pipe", |world, path| {
        rustix::fs::mknodat(rustix::fs::CWD, world.path(path), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    });
    check("something that cannot be opened", |world, path| {
        // The path of a socket is short.
        UnixListener::bind(world.path("s")).unwrap();
        std::fs::rename(world.path("s"), world.path(path)).unwrap();
    });
    check("not a regular file but a folder", |world, path| std::fs::create_dir(world.path(path)).unwrap());
    check("no such file", |world, path| world.link("nowhere", path));
}

#[test]
fn devices_are_not_read() {
    for device in ["/dev/null", "/dev/zero"] {
        for (place, why) in [("user", "not a regular file but"), ("w/.agents/skills", "outside the workspace")] {
            let world = World::new();
            world.link(device, &format!("{place}/bad/SKILL.md"));
            let problems = world.problems(&format!("{place}/bad/SKILL.md"));
            assert!(problems.contains(why), "{device}: {problems}");
        }
    }
}

#[test]
fn contents_that_cannot_be_used() {
    check("longer than 1048576 bytes", |world, path| {
        File::create(world.path(path)).unwrap().set_len(1 << 30).unwrap();
    });
    check("UTF-8", |world, path| world.write(path, b"---\nname: bad\ndescription: \xff\xfe\n---\nbody\n"));
    check("no description", |world, path| world.write(path, ""));
    check("no description", |world, path| world.write(path, [0u8; 5000]));
    check("NUL", |world, path| world.write(path, "---\nname: bad\ndescription: a\0b\n---\n"));
    check("front matter is longer", |world, path| {
        world.write(path, format!("---\nname: bad\ndescription: {}\n---\n", "x".repeat(100_000)));
    });
}

#[test]
fn an_alias_bomb_costs_little_and_says_so() {
    let levels: Vec<String> =
        (1..9).map(|n| format!("l{n}: &l{n} [{}]\n", vec![format!("*l{}", n - 1); 9].join(","))).collect();
    let bomb = format!("---\nname: bad\ndescription: Boom.\nl0: &l0 [x]\n{}---\nbody\n", levels.concat());
    let world = World::new();
    world.skill("user/good");
    world.write("user/bad/SKILL.md", bomb);
    let row = world.row("user/bad/SKILL.md");
    assert!(row.problems.iter().any(|one| one.message.contains("was read as the text")), "{row:?}");
    let offer = world.offer();
    let size = serde_json::to_string(&offer.get("bad").unwrap().document.metadata).unwrap().len();
    assert!(size < 100_000, "{size}");
    assert!(offer.get("good").is_some());
}

#[test]
fn folders_without_end_are_left_at_two_thousand() {
    for place in PLACES {
        let world = World::of_many_folders();
        world.skill(&format!("{place}/a"));
        let root = world.path(place);
        (0..100_000).for_each(|n| std::fs::create_dir(root.join(format!("f{n:06}"))).unwrap());
        world.skill(&format!("{place}/zz"));
        let (good, bad) = halves(&world);
        assert_eq!(good.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["a"]);
        assert!(
            bad.len() == 1 && bad.iter().any(|row| row.problems[0].message.contains("more than 2000 folders")),
            "{bad:?}"
        );
    }
}

#[test]
fn links_without_end_are_left_at_two_thousand_and_come_last() {
    let world = World::new();
    world.skill("user/zz");
    (0..5000).for_each(|n| std::os::unix::fs::symlink("nowhere", world.path("user").join(format!("l{n:04}"))).unwrap());
    let (good, bad) = halves(&world);
    assert_eq!((good.len(), bad.len()), (1, 1));
    assert!(bad[0].problems[0].message.contains("more than 2000 folders"), "{bad:?}");
}

#[test]
fn a_place_is_not_wider_than_two_thousand_folders_through_a_link() {
    let world = World::new();
    world.skill("user/a");
    for outer in 0..50 {
        (0..50).for_each(|inner| std::fs::create_dir_all(world.path(&format!("wide/{outer}/{inner}/x"))).unwrap());
    }
    world.link("../wide", "user/link");
    let (good, bad) = halves(&world);
    assert_eq!((good.len(), bad.len()), (1, 1));
    assert!(bad[0].problems[0].message.contains("more than 2000 folders"), "{bad:?}");
}

#[test]
fn skills_without_end_are_left_at_one_thousand() {
    for (folders, extra) in [(3000, ""), (1500, "a/x"), (1000, "")] {
        let world = World::new();
        (0..folders).for_each(|n| world.skill(&format!("user/s{n:04}")));
        if !extra.is_empty() {
            // Something else that has a row of its own.
            world.link("x", &format!("user/{extra}"));
        }
        let (good, bad) = halves(&world);
        assert_eq!(good.len(), 1000, "{folders}");
        assert_eq!(good[999].name, "s0999");
        let told = bad.iter().filter(|row| row.problems[0].message.contains("more than 1000 skills")).count();
        // Of three thousand, two thousand folders are looked at: that is a row too.
        assert_eq!(told, usize::from(folders > 1000), "{bad:?}");
        assert!(bad.len() <= 2, "{bad:?}");
    }
}

#[test]
fn what_cannot_be_read_has_no_more_rows_than_skills() {
    let world = World::new();
    (0..1500).for_each(|n| world.link("SKILL.md", &format!("user/s{n:04}/SKILL.md")));
    let (good, bad) = halves(&world);
    assert_eq!((good.len(), bad.len()), (0, 1001));
}

#[test]
fn notes_without_end_hide_no_skills() {
    let world = World::new();
    (0..3000).for_each(|n| world.write(&format!("user/n{n:04}.md"), "# Just a note\n"));
    world.skill("user/a");
    let (good, bad) = halves(&world);
    assert_eq!((good.len(), bad.len()), (1, 1));
    assert!(bad[0].problems[0].message.contains("more than 1000 files"), "{bad:?}");
    let long = World::new();
    (0..40).for_each(|n| long.write(&format!("user/n{n:02}.md"), "x".repeat(1 << 20)));
    long.skill("user/a");
    let (good, bad) = halves(&long);
    assert_eq!((good.len(), bad.len()), (1, 1));
    assert!(bad[0].problems[0].message.contains("bytes together"), "{bad:?}");
}

#[test]
fn bodies_are_not_longer_than_32_mib_together() {
    let world = World::new();
    let body = "x".repeat((1 << 20) - 1000);
    (0..40).for_each(|n| world.write(&format!("user/s{n:02}/SKILL.md"), text(&format!("s{n:02}"), "Long.", &body)));
    let (good, bad) = halves(&world);
    assert_eq!(good.len(), 32);
    assert!(bad.len() == 1 && bad[0].problems[0].message.contains("bytes together"), "{bad:?}");
}

#[tokio::test]
async fn ten_thousand_files_beside_a_skill() {
    let world = World::new();
    world.skill("user/a");
    (0..10_000).for_each(|n| world.write(&format!("user/a/data/f{n:05}"), ""));
    (0..20).for_each(|n| world.write(&format!("user/a/scripts/s{n:02}"), ""));
    world.skill("user/b");
    assert_eq!(world.names(), ["a", "b"]);
    let ground = Workspace::open(world.folder.path(), true).unwrap();
    let beside = files::beside(ground.into(), world.path("user/a")).await;
    assert_eq!(beside.len(), 100);
    assert_eq!((beside[0].to_str(), beside[99].to_str()), (Some("data/f00000"), Some("data/f00099")));
}

#[test]
fn what_may_not_be_read_says_so() {
    if rustix::process::geteuid().is_root() {
        eprintln!("NOT TESTED: root may read everything");
        return;
    }
    for name in ["user/bad/SKILL.md", "user/bad"] {
        let world = World::new();
        world.skill("user/bad");
        world.skill("user/good");
        let set = |mode| std::fs::set_permissions(world.path(name), PermissionsExt::from_mode(mode)).unwrap();
        set(0);
        assert_eq!(world.names(), ["good"]);
        assert!(world.problems(name).contains("permission denied"), "{name}");
        set(0o700);
        assert_eq!(world.names(), ["bad", "good"]);
    }
}
