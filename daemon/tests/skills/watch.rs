//! The watch: whoever waits is woken when something may have changed.

use std::time::Duration;

use super::world::{World, text};

impl World {
    /// Waits until the watch wakes, and has the library look; the time is a guard alone.
    async fn woken(&self, why: &str) {
        let watch = self.library.watch().unwrap();
        let waited = tokio::time::timeout(Duration::from_secs(20), watch.something()).await;
        assert!(waited.is_ok(), "nothing was noticed: {why}");
        self.library.look_again();
    }

    /// Waits until exactly this is told.
    async fn told(&mut self, expected: &[&str], why: &str) {
        let mut news = Vec::new();
        while news != expected {
            assert!(news.len() <= expected.len(), "{why}: {news:?}");
            self.woken(why).await;
            news.extend(self.news());
            news.sort();
        }
    }
}

fn remake(world: &World, folder: &str) {
    std::fs::remove_dir_all(world.path(folder)).unwrap();
    std::fs::create_dir_all(world.path(folder)).unwrap();
}

#[tokio::test]
async fn changes_wake() {
    let mut world = World::new();
    world.skill("user/a");
    drop(world.look());
    assert!(!world.library.watch().unwrap().is_polling());
    world.write("user/a/SKILL.md", text("a", "About a.", "new"));
    world.told(&["a changed"], "an edit").await;
    world.skill("user/b/c");
    world.told(&["c added"], "a new folder in a new folder").await;
    world.write("user/b/c/SKILL.md", text("c", "About c.", "new"));
    world.told(&["c changed"], "an edit in a folder that came later").await;
    std::fs::remove_dir_all(world.path("user/b")).unwrap();
    world.told(&["c removed"], "a folder is deleted").await;
    std::fs::rename(world.path("user/a"), world.path("user/z")).unwrap();
    world.told(&["a added", "a removed"], "a folder is renamed").await;
    world.skill("w/.agents/skills/w");
    world.told(&["w added"], "a workspace's folder appears").await;
    world.skill("config/x");
    world.told(&["x added"], "a root appears").await;
}

#[tokio::test]
async fn a_root_that_appears_part_by_part_wakes() {
    let mut world = World::with(|folder, places| places.user = vec![folder.join("x/y/z")]);
    drop(world.look());
    for part in ["x", "x/y", "x/y/z"] {
        std::fs::create_dir(world.path(part)).unwrap();
        world.woken(part).await;
    }
    world.skill("x/y/z/a");
    world.told(&["a added"], "the first skill").await;
}

#[tokio::test]
async fn a_root_that_is_made_anew_is_watched_anew() {
    let mut world = World::new();
    world.skill("user/a");
    drop(world.look());
    for round in 0..5 {
        remake(&world, "user");
        world.told(&["a removed"], &format!("round {round}: deleted and made again")).await;
        world.skill("user/a");
        world.told(&["a added"], &format!("round {round}: a skill in the new root")).await;
        world.write("user/a/SKILL.md", text("a", "About a.", "new"));
        world.told(&["a changed"], &format!("round {round}: its file")).await;
    }
}

#[tokio::test]
async fn without_a_watch_there_is_none() {
    let world = World::with(|_, places| places.watch = false);
    assert!(world.library.watch().is_none());
}

#[tokio::test]
async fn a_file_that_is_being_written_is_known_until_it_is_closed() {
    use std::io::Write;
    let world = World::new();
    world.write("config/a/SKILL.md", text("a", "A.", "good"));
    world.look();
    world.library.look_again();
    let (path, watch) = (world.path("config/a/SKILL.md"), world.library.watch().unwrap());
    let until = async |written: bool| {
        while watch.is_written(&path) != written {
            tokio::task::yield_now().await;
        }
    };
    let guard = Duration::from_secs(20);
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"more").unwrap();
    assert!(tokio::time::timeout(guard, until(true)).await.is_ok(), "the write was not noticed");
    drop(file);
    assert!(tokio::time::timeout(guard, until(false)).await.is_ok(), "its end was not noticed");
}
