//! Links: followed in places that are trusted, refused where they lead out of a workspace.

use std::sync::atomic::{AtomicBool, Ordering};

use super::world::{World, text};

const SKILLS: &str = "w/.agents/skills";

#[test]
fn trusted_places_follow_links() {
    let world = World::new();
    world.skill("elsewhere/real");
    world.write("elsewhere/file.md", "---\ndescription: A file.\n---\nbody\n");
    world.write("elsewhere/nameless/SKILL.md", "---\ndescription: Nameless.\n---\nbody\n");
    world.link(world.path("elsewhere/real"), "user/linked");
    world.link("../elsewhere/nameless", "user/own-name");
    world.link("../elsewhere/file.md", "user/flat.md");
    world.link("../../elsewhere/file.md", "user/doc/SKILL.md");
    let expected = ["user/doc/SKILL.md", "user/flat.md", "user/linked/SKILL.md", "user/own-name/SKILL.md"];
    assert_eq!(world.paths(), expected);
    assert_eq!(world.names(), ["doc", "flat", "own-name", "real"]);
}

#[test]
fn a_root_may_be_a_link() {
    let world = World::new();
    world.skill("elsewhere/a");
    world.link("elsewhere", "user");
    assert_eq!(world.paths(), ["user/a/SKILL.md"]);
}

#[test]
fn real_folders_keep_their_names_and_loops_end() {
    let world = World::new();
    world.skill("user/z");
    world.link("z", "user/a");
    world.link(".", "user/self");
    world.link("..", "user/z/up");
    world.link("loop2", "user/loop1");
    world.link("loop1", "user/loop2");
    world.link("nowhere", "user/dangling");
    assert_eq!(world.names(), ["z"]);
    assert_eq!(world.row("user/z/SKILL.md").problems, []);
}

/// A workspace with `name` a link to `target`, made after a good skill; whether anything is refused there.
#[track_caller]
fn refused(target: &str, name: &str) {
    let world = World::new();
    world.skill("outside/secret");
    world.write("outside/note.md", text("note", "secret", "secret"));
    let good = !SKILLS.starts_with(name);
    if good {
        world.skill(&format!("{SKILLS}/good"));
    }
    let target = if target.starts_with("/proc") {
        target.into()
    } else {
        target.replace("OUT", &world.path("outside").display().to_string())
    };
    world.link(target, name);
    let rows = world.list();
    let bad: Vec<_> = rows.iter().filter(|row| !row.valid).collect();
    assert_eq!(rows.iter().filter(|row| row.valid).count(), usize::from(good), "{name}: {rows:?}");
    assert_eq!(bad.len(), 1, "{name}: {rows:?}");
    assert!(bad[0].problems[0].message.contains("outside the workspace"), "{name}: {rows:?}");
    assert_eq!(bad[0].description, "", "nothing of it is told");
    let offer = world.offer();
    assert!(offer.get("secret").is_none() && offer.get("note").is_none(), "{name}");
}

#[test]
fn links_out_of_a_workspace_are_refused() {
    refused("OUT/secret", "w/.agents/skills/x");
    refused("../../../outside/secret", "w/.agents/skills/x");
    refused("OUT", "w/.agents/skills/deep/x");
    refused("OUT/secret/SKILL.md", "w/.agents/skills/x/SKILL.md");
    refused("../../../../outside/note.md", "w/.agents/skills/x/skill.md");
    refused("OUT/note.md", "w/.agents/skills/note.md");
    refused("OUT", "w/.agents/skills");
    refused("../outside", "w/.agents");
    refused("/proc/self/root/etc", "w/.agents/skills/x");
    refused("/proc/self/environ", "w/.agents/skills/x/SKILL.md");
}

#[test]
fn links_within_a_workspace_are_followed() {
    let world = World::new();
    world.skill("w/lib/a");
    world.skill("w/docs/b");
    world.link("../../lib/a", &format!("{SKILLS}/a"));
    world.link(world.path("w/docs/b"), &format!("{SKILLS}/b"));
    world.link(world.path("w/docs/b/SKILL.md"), &format!("{SKILLS}/c/SKILL.md"));
    assert_eq!(world.paths(), ["a", "b", "c"].map(|name| format!("{SKILLS}/{name}/SKILL.md")));
}

#[test]
fn dot_agents_may_be_a_link_within_and_the_workspace_one_itself() {
    let world = World::new();
    world.skill("w/config/skills/a");
    world.link("config", "w/.agents");
    world.link("w", "also");
    for workspace in ["w", "also"] {
        let shelves = world.library.look_now(Some(&world.path(workspace)));
        let rows = nanod::skills::offer::list(&shelves, None, false);
        assert!(rows.iter().any(|row| row.name == "a" && row.valid && row.source == "workspace"), "{rows:?}");
    }
}

#[test]
fn a_link_that_is_refused_is_taken_once_it_leads_within() {
    let world = World::new();
    world.skill("outside/a");
    world.link("../nowhere", "w/.agents");
    assert_eq!(world.names(), [""; 0]);
    std::fs::remove_file(world.path("w/.agents")).unwrap();
    std::fs::create_dir(world.path("w/.agents")).unwrap();
    assert_eq!(world.list(), []);
    world.skill(&format!("{SKILLS}/a"));
    assert_eq!(world.names(), ["a"]);
}

/// Somebody swaps a folder for a link out and back, as fast as it goes: no attempt reads what is outside.
#[test]
fn a_folder_that_is_swapped_meanwhile_leads_nowhere() {
    let world = World::new();
    world.write("outside/SKILL.md", text("stolen", "secret", "secret"));
    world.skill(&format!("{SKILLS}/x"));
    world.link(world.path("outside"), "w/.agents/out");
    let (done, swapped) = (AtomicBool::new(false), std::sync::atomic::AtomicUsize::new(0));
    let (inner, link) = (world.path(&format!("{SKILLS}/x")), world.path("w/.agents/out"));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(
                    rustix::fs::CWD,
                    &inner,
                    rustix::fs::CWD,
                    &link,
                    rustix::fs::RenameFlags::EXCHANGE,
                )
                .unwrap();
                swapped.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut looked = 0;
        while looked < 50 || swapped.load(Ordering::Relaxed) < 50 {
            looked += 1;
            let stolen = world.list().into_iter().find(|row| row.name == "stolen" || row.description == "secret");
            if stolen.is_some() {
                done.store(true, Ordering::Relaxed);
            }
            assert_eq!(stolen, None);
        }
        done.store(true, Ordering::Relaxed);
    });
}
