//! `skills create` and `skills edit`: where the text comes from, and that none is lost. The editors are shell lines.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fake::{Fake, Say};
use crate::shell::{Ran, command, nanoctl, piped};
use crate::wire::{document, skill};

/// A daemon with the skill `hello` that takes what it is sent.
fn daemon() -> Fake {
    Fake::start(|_, _| vec![Say::Result(skill("hello", &json!({})))])
}

/// A folder for drafts, so that a test sees what stays.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// Returns `nanoctl ARGS` with `editor`.
    fn command(&self, fake: &Fake, args: &[&str], editor: &str) -> Command {
        let mut command = command(fake, args);
        command.env("EDITOR", editor).env("TMPDIR", self.0.path()).env("PATH", "/usr/bin:/bin");
        command
    }

    fn run(&self, fake: &Fake, args: &[&str], editor: &str) -> Ran {
        Ran::from(&self.command(fake, args, editor).output().unwrap())
    }

    /// Returns the only draft that stayed, none where nothing did.
    fn kept(&self) -> Option<PathBuf> {
        let mut homes = std::fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        let (home, more) = (homes.next(), homes.next());
        assert!(more.is_none());
        home.map(|home| home.join("hello/SKILL.md"))
    }
}

#[test]
fn an_edit_is_sent_whole_and_only_over_what_was_read() {
    let (fake, desk) = (daemon(), Desk::new());
    let ran = desk.run(&fake, &["skills", "edit", "hello", "-s", "web"], "sed -i s/Smile/Grin/");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "/k/hello/SKILL.md\n", ""));
    let mut asked = fake.asked("skill.update")[0].clone();
    asked.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    let text = document("hello").replace("Smile", "Grin");
    assert_eq!(asked, json!({"name": "hello", "session": "web", "text": text, "digest": "d1"}));
    assert_eq!(desk.kept(), None);
}

#[test]
fn the_draft_is_private_and_named_like_the_skill() {
    let (fake, desk) = (daemon(), Desk::new());
    let look = r#"stat -c %a "$1" "$(dirname "$1")" >&2; echo "$1" >&2; true"#;
    let ran = desk.run(&fake, &["skills", "edit", "hello"], &format!("f() {{ {look}; }}; f"));
    let lines: Vec<_> = ran.err.lines().collect();
    assert_eq!(lines[..2], ["600", "700"], "{ran:?}");
    assert!(lines[2].ends_with("/hello/SKILL.md"), "{ran:?}");
}

#[test]
fn the_editor_is_a_line_for_the_shell_and_stdout_is_not_its_own() {
    let (fake, desk) = (daemon(), Desk::new());
    let place = desk.0.path().join("my tool");
    std::os::unix::fs::symlink("/bin/echo", &place).unwrap();
    let ran = desk.run(&fake, &["skills", "edit", "hello"], &format!("'{}' -n a", place.display()));
    assert!(ran.err.starts_with("a /") && ran.out == "/k/hello/SKILL.md\n", "{ran:?}");
    std::fs::remove_file(place).unwrap();
    let mut both = desk.command(&fake, &["skills", "edit", "hello"], "false");
    assert_eq!(Ran::from(&both.env("VISUAL", "true").output().unwrap()).code, 0);
}

#[test]
fn an_untouched_text_is_not_sent() {
    let (fake, desk) = (daemon(), Desk::new());
    let ran = desk.run(&fake, &["skills", "edit", "hello"], "true");
    assert_eq!((ran.code, ran.err.as_str()), (0, "the text was left as it was: nothing was sent\n"));
    let ran = desk.run(&fake, &["skills", "edit", "hello", "--json"], "true");
    assert_eq!((ran.code, ran.out), (0, format!("{}\n", skill("hello", &json!({})))));
    let ran = desk.run(&fake, &["skills", "create", "hello"], "true");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (5, "", 1), "{}", ran.err);
    assert_eq!((fake.asked("skill.update").len(), fake.asked("skill.create").len(), desk.kept()), (0, 0, None));
}

/// What was typed stays, the last line of stderr names it, and nothing but that file stays.
fn keeps(fake: &Fake, args: &[&str], editor: &str, code: i32, said: &str) {
    let desk = Desk::new();
    let ran = desk.run(fake, args, editor);
    assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{ran:?}");
    let kept = desk.kept().unwrap();
    let last = ran.err.lines().last().unwrap();
    let resend = format!("nanoctl {} --file {} sends it", args.join(" "), kept.display());
    assert!(last.starts_with("nanoctl: skills ") && last.contains(said) && last.ends_with(&resend), "{ran:?}");
    assert!(std::fs::read_to_string(&kept).unwrap().contains("Grin"), "{ran:?}");
}

const GRIN: &str = "sed -i s/Smile/Grin/";

#[test]
fn what_was_typed_is_never_lost() {
    let edit = ["skills", "edit", "hello", "-s", "web"];
    let spoil = "f() { printf -- '---\nname: hello\n---\nGrin\n' > \"$1\"; }; f";
    let fake = daemon();
    keeps(&fake, &edit, spoil, 5, "nothing was sent");
    keeps(&fake, &["skills", "create", "hello"], spoil, 5, "nothing was sent");
    keeps(&fake, &edit, "f() { sed -i s/Smile/Grin/ \"$1\"; exit 3; }; f", 5, "ended with exit status: 3");
    assert_eq!((fake.asked("skill.update").len(), fake.asked("skill.create").len()), (0, 0));
    for (code, kind, exit) in [(-32002, "conflict", 5), (-32003, "denied", 5), (-32007, "shutting_down", 3)] {
        let fake = Fake::start(move |method, _| match method {
            "skill.get" => vec![Say::Result(skill("hello", &json!({})))],
            _ => vec![Say::Error(code, kind, "it is another one now")],
        });
        keeps(&fake, &edit, GRIN, exit, "it is another one now");
    }
    let fake = Fake::start(|method, _| match method {
        "skill.get" => vec![Say::Result(skill("hello", &json!({})))],
        _ => vec![Say::Close],
    });
    keeps(&fake, &edit, GRIN, 3, "the connection to the daemon broke");
}

#[test]
fn an_unusable_text_is_told_by_place() {
    let (fake, desk) = (daemon(), Desk::new());
    let ran = desk.run(&fake, &["skills", "edit", "hello"], "f() { printf -- '---\nname: hello\n---\n' > \"$1\"; }; f");
    let place = format!("{}:", desk.kept().unwrap().display());
    let (problems, last) = ran.err.trim_end().rsplit_once('\n').unwrap();
    assert!(problems.lines().all(|line| line.starts_with(&place)), "{ran:?}");
    assert!(last.starts_with("nanoctl: skills edit: no model could use this text: nothing was sent; "), "{ran:?}");
}

#[test]
fn an_editor_that_fails_is_one_line_and_nothing_stays() {
    let (fake, desk) = (daemon(), Desk::new());
    for editor in ["false", "kill -9 $$;", "f() { rm \"$1\"; }; f", "f() { mkfifo \"$1.f\"; mv \"$1.f\" \"$1\"; }; f"] {
        let ran = desk.run(&fake, &["skills", "edit", "hello"], editor);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (5, "", 1), "{editor}: {ran:?}");
        assert_eq!(fake.asked("skill.update").len(), 0, "{editor}");
    }
}

#[test]
fn no_editor_without_a_terminal() {
    let fake = daemon();
    for verb in ["create", "edit"] {
        let ran = nanoctl(&fake, &["skills", verb, "hello"]);
        let hint = "set VISUAL or EDITOR, or give the text with --file";
        let line = format!("nanoctl: skills {verb}: there is no terminal for an editor; {hint}\n");
        assert_eq!((ran.code, ran.err), (2, line));
    }
    assert_eq!(fake.asked("skill.create").len(), 0);
}

#[test]
fn a_shipped_skill_is_refused_before_anything_is_typed() {
    let fake = Fake::start(|_, _| vec![Say::Result(skill("hello", &json!({"source": "shipped"})))]);
    let ran = Desk::new().run(&fake, &["skills", "edit", "hello"], "touch /nowhere/at/all");
    assert_eq!((ran.code, ran.err.lines().count()), (5, 1), "{ran:?}");
    assert!(ran.err.contains("hello is part of nanod; nanoctl skills create"), "{ran:?}");
}

/// Creates `hello` from `input` on stdin and returns what was asked for.
fn created(args: &[&str], input: &str) -> Value {
    let fake = daemon();
    let args: Vec<_> = ["skills", "create", "hello"].iter().chain(args).copied().collect();
    let ran = piped(&fake, &args, input.as_bytes());
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "/k/hello/SKILL.md\n", ""), "{args:?}");
    let mut asked = fake.asked("skill.create")[0].clone();
    asked.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    asked
}

#[test]
fn a_body_comes_from_a_file_or_stdin() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("body.md");
    std::fs::write(&path, "Wave.\n").unwrap();
    let made = |content: &str| json!({"name": "hello", "description": "d", "content": content});
    assert_eq!(created(&["--description", "d"], "Smile.\n"), made("Smile."));
    assert_eq!(created(&["--description", "d", "--file", "-"], "Smile."), made("Smile."));
    assert_eq!(created(&["--description", "d", "--file", path.to_str().unwrap()], "unread"), made("Wave.\n"));
    assert_eq!(created(&["--description", "d", "--file", "/dev/stdin"], "Smile."), made("Smile."));
    assert_eq!(created(&["--description", "d", "-s", "web"], "x")["session"], "web");
}

#[test]
fn a_whole_document_is_taken_apart() {
    let text = document("hello").replace("\n---\n\n", "\nlicense: MIT\n---\n\n");
    let made = json!({"name": "hello", "description": "Says hello.", "content": "Wave.\nSmile.", "metadata": {"license": "MIT"}});
    assert_eq!(created(&[], &text), made);
    assert_eq!(created(&["--description", "Waves."], &text)["description"], "Waves.");
    let fake = daemon();
    let ran = piped(&fake, &["skills", "create", "hello"], document("other").as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (0, "its text names it other: it becomes hello\n"));
    assert_eq!(fake.asked("skill.create")[0]["name"], "hello");
}

#[test]
fn the_template_becomes_a_skill() {
    let (fake, desk) = (daemon(), Desk::new());
    let args = ["skills", "create", "hello", "--description", "Says hello."];
    let ran = desk.run(&fake, &args, "sed -i 's/^What to do.*/Wave./'");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "/k/hello/SKILL.md\n", ""));
    let asked = &fake.asked("skill.create")[0];
    assert_eq!((&asked["description"], &asked["content"]), (&json!("Says hello."), &json!("# hello\n\nWave.")));
    assert_eq!(desk.kept(), None);
}

#[test]
fn what_cannot_be_made_is_one_line() {
    let fake = daemon();
    let long = "x".repeat(1024 * 1024 + 1);
    for (args, input, code) in [
        (&["--description", "d", "--file", "/nowhere/x"][..], "", 4),
        (&["--description", "d", "--file", "/"], "", 5),
        (&["--description", "d", "--file", "/dev/zero"], "", 5),
        (&["--description", "d"], long.as_str(), 5),
        (&[], "no front matter", 2),
        (&["--description", "d"], "", 2),
    ] {
        let args: Vec<_> = ["skills", "create", "hello"].iter().chain(args).copied().collect();
        let ran = piped(&fake, &args, input.as_bytes());
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (code, "", 1), "{args:?}: {}", ran.err);
    }
    let ran = piped(&fake, &["skills", "create", "../up", "--description", "d"], b"x");
    assert_eq!((ran.code, ran.err.lines().count()), (5, 1), "{ran:?}");
    assert_eq!(fake.asked("skill.create").len(), 0);
}

#[test]
fn an_edit_from_a_file_needs_no_editor() {
    let fake = daemon();
    let text = document("hello").replace("Smile", "Grin");
    let ran = piped(&fake, &["skills", "edit", "hello", "--file", "/dev/stdin"], text.as_bytes());
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "/k/hello/SKILL.md\n", ""));
    assert_eq!(fake.asked("skill.update")[0]["text"], text);
}

#[test]
fn problems_that_stay_are_told() {
    let odd = skill("hello", &json!({"problems": [{"line": 2, "column": 7, "message": "a colon"}]}));
    let fake = Fake::start(move |_, _| vec![Say::Result(odd.clone())]);
    let ran = Desk::new().run(&fake, &["skills", "edit", "hello"], GRIN);
    assert_eq!((ran.code, ran.out.as_str()), (0, "/k/hello/SKILL.md\n"));
    assert_eq!(ran.err, "/k/hello/SKILL.md:2:7: a colon\n");
}
