use std::path::Path;

use nano_protocol::session::Level;

use super::Reach;

fn reach(level: Level, elsewhere: bool) -> Reach {
    Reach {
        level,
        elsewhere,
        hidden: vec!["/home/u/.config/nanod".into(), "/home/u/state".into(), "/home/u/w/key".into()],
        shown: vec!["/home/u/state/spill/s".into(), "/home/u/.config/nanod/skills/a".into()],
        protected: vec!["/home/u/main/.git/hooks".into()],
        steering: ".steering.jsonl".into(),
        ..Reach::of("/home/u/w".into(), "/home/u/state/spill/s/tmp".into())
    }
}

#[test]
fn what_is_hidden_is_hidden_but_for_what_is_shown_in_it() {
    for (path, expected) in [
        ("/home/u/state", true),
        ("/home/u/state/store/db", true),
        ("/home/u/state/spill/s/output", false),
        ("/home/u/state/spill/other", true),
        ("/home/u/state2", false),
        ("/home/u/w/a", false),
        ("/home/u/w/key", true),
        ("/home/u/.config/nanod/nanod.toml", true),
        ("/home/u/.config/nanod/skills/a/SKILL.md", false),
        ("/home/u/.config/nanod/skills/b/SKILL.md", true),
    ] {
        for level in Level::ALL.iter().copied() {
            let reach = reach(level, false);
            assert_eq!(reach.hides(Path::new(path)), expected, "{path}");
            assert_eq!(reach.bars_reading(Path::new(path)).is_some(), expected, "{path}");
        }
    }
    let own = Reach { workspace: "/home/u/state/workspaces/s".into(), ..reach(Level::WorkspaceWrite, false) };
    assert!(!own.hides("/home/u/state/workspaces/s/a".as_ref()) && own.hides("/home/u/state/workspaces/t".as_ref()));
}

#[test]
fn what_file_tools_may_write() {
    use Level::{Host, ReadOnly, WorkspaceWrite};
    let check = |level, elsewhere, path: &str, expected| {
        let why = reach(level, elsewhere).bars_writing(Path::new(path));
        assert_eq!(why.is_none(), expected, "{level} {elsewhere} {path}: {why:?}");
    };
    for (path, read_only, workspace, elsewhere, host) in [
        ("/home/u/w/a", false, true, true, true),
        ("/home/u/state/spill/s/tmp/a", true, true, true, true),
        ("/home/u/state/store/db", false, false, false, false),
        ("/home/u/w/key", false, false, false, false),
        ("/home/u/x", false, true, true, true),
        ("/etc/x", false, false, false, true),
        ("/usr/bin/x", false, false, false, true),
        ("/var/lib/x", false, false, false, true),
        ("/home/u/main/.git/hooks/x", false, false, false, false),
    ] {
        // That a path is outside is for the kernel to say, which resolves it.
        let all = [(ReadOnly, false, read_only), (WorkspaceWrite, false, workspace)];
        for (level, beyond, expected) in [&all[..], &[(WorkspaceWrite, true, elsewhere), (Host, true, host)]].concat() {
            check(level, beyond, path, expected);
        }
    }
}

#[test]
fn names_that_programs_or_the_daemon_act_on() {
    for (name, expected) in [
        (".git/hooks/pre-commit", false),
        (".GIT/Hooks/pre-commit", false),
        (".git/config", false),
        (".git/config.worktree", false),
        (".git/modules/m/hooks/x", false),
        ("sub/.git/hooks/x", false),
        ("bare.git/hooks/x", false),
        (".git", false),
        ("SKILL.md", false),
        ("a/skill.md", false),
        (".agents/skills/a/notes", false),
        (".nanod/config", false),
        (".steering.jsonl", false),
        (".git/info/exclude", true),
        (".gitignore", true),
        (".github/hooks/x", true),
        ("hooks/x", true),
        ("config", true),
        (".agents/notes", true),
        ("MY_SKILL.md", true),
        ("steering.jsonl", true),
    ] {
        let path = Path::new("/home/u/w").join(name);
        for level in [Level::WorkspaceWrite, Level::Host] {
            assert_eq!(reach(level, false).bars_writing(&path).is_none(), expected, "{name}");
        }
    }
}

#[test]
fn a_tmp_of_its_own_only_where_nothing_else_is_there() {
    let at = |workspace: &str, elsewhere| Reach { elsewhere, ..Reach::of(workspace.into(), "/s/tmp".into()) };
    for (workspace, elsewhere, expected) in [("/w", false, true), ("/w", true, false), ("/tmp/w", false, false)] {
        assert_eq!(at(workspace, elsewhere).has_own_tmp(), expected, "{workspace}");
    }
    assert!(!Reach::of("/w".into(), "/tmp/s".into()).has_own_tmp());
}
