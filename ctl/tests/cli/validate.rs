//! `skills validate` over real folders, where nothing listens.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::shell::{Ran, bare};
use crate::wire::document;

struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Writes a file and the folders to it.
    fn put(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Puts a plain skill into the folder `path`.
    fn skill(&self, path: &str) -> &Self {
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        self.put(&format!("{path}/SKILL.md"), document(name))
    }

    /// Runs `nanoctl skills validate ARGS` there.
    fn validate(&self, args: &[&str]) -> Ran {
        let args: Vec<_> = ["skills", "validate"].iter().chain(args).copied().collect();
        let mut command = bare(&args);
        // Where something connected, it would fail.
        command.env("NANO_SOCKET", "/nowhere/s").current_dir(self.0.path());
        Ran::from(&command.output().unwrap())
    }

    /// Returns the paths that `--json` tells of.
    fn found(&self, args: &[&str]) -> Vec<String> {
        let args: Vec<_> = args.iter().chain(&["--json"]).copied().collect();
        let ran = self.validate(&args);
        let path = |line: &str| serde_json::from_str::<Value>(line).unwrap()["path"].as_str().unwrap().to_owned();
        ran.out.lines().map(path).collect()
    }
}

const NO_DESCRIPTION: &str = "---\nname: bad\n---\n\nWave.\n";

#[test]
fn clean_skills_are_a_summary() {
    let tree = Tree::new();
    tree.skill("a").skill("b/c");
    for args in [&[][..], &["."], &["a", "b"], &["a/SKILL.md", "b/c/"], &["--strict"]] {
        let ran = tree.validate(args);
        assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{args:?}: {}", ran.err);
        assert_eq!(ran.err, "2 skills: 2 clean, 0 with problems, 0 invalid\n", "{args:?}");
    }
    assert_eq!(tree.validate(&["a", "-q"]).err, "");
    assert_eq!(tree.validate(&["a"]).err, "1 skill: 1 clean, 0 with problems, 0 invalid\n");
}

#[test]
fn an_invalid_one_is_told_by_place_and_hides_no_other() {
    let tree = Tree::new();
    tree.put("bad/SKILL.md", NO_DESCRIPTION).skill("good").put("worse/SKILL.md", "no front matter\n");
    let ran = tree.validate(&[]);
    assert_eq!(ran.code, 5);
    let line = "nanoctl: skills validate: 3 skills: 1 clean, 0 with problems, 2 invalid; begin with ./bad/SKILL.md\n";
    assert_eq!(ran.err, line);
    assert!(ran.out.lines().all(|line| line.starts_with("./bad/SKILL.md:") || line.starts_with("./worse/SKILL.md:")));
    assert!(ran.out.contains("./bad/") && ran.out.contains("./worse/"), "{}", ran.out);
}

#[test]
fn problems_count_where_they_are_asked_to() {
    let tree = Tree::new();
    tree.put("folder/SKILL.md", document("other"));
    let ran = tree.validate(&["folder"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "1 skill: 0 clean, 1 with problems, 0 invalid\n"), "{}", ran.out);
    let lines: Vec<_> = ran.out.lines().collect();
    assert!(lines.len() == 1 && lines[0].starts_with("folder/SKILL.md:2:"), "{lines:?}");
    let strict = tree.validate(&["folder", "--strict"]);
    assert_eq!((strict.code, strict.out), (5, ran.out));
    let line = "nanoctl: skills validate: 1 skill: 0 clean, 1 with problems, 0 invalid; begin with folder/SKILL.md\n";
    assert_eq!(strict.err, line);
}

#[test]
fn the_folders_own_name_counts_however_it_is_named() {
    let tree = Tree::new();
    tree.skill("hello").put("hello/deep/x", "").put("flat.md", document("flat"));
    symlink(tree.path("hello"), tree.path("link")).unwrap();
    let clean = "1 skill: 1 clean, 0 with problems, 0 invalid\n";
    for path in ["hello", "hello/", "./hello/SKILL.md", "hello/deep/..", "hello/deep/../SKILL.md", "flat.md"] {
        assert_eq!(tree.validate(&[path]).err, clean, "{path}");
    }
    // The name of the link is the folder's.
    assert_eq!(tree.validate(&["link"]).err, clean.replace("1 clean, 0", "0 clean, 1"));
    let mut inside = bare(&["skills", "validate"]);
    assert_eq!(Ran::from(&inside.current_dir(tree.path("hello")).output().unwrap()).err, clean);
}

#[test]
fn json_is_an_object_for_each_file() {
    let tree = Tree::new();
    tree.put("bad/SKILL.md", NO_DESCRIPTION).skill("good");
    let ran = tree.validate(&["--json"]);
    assert_eq!((ran.code, ran.err.lines().count()), (5, 1), "{}", ran.err);
    let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let verdicts: Vec<_> =
        lines.iter().map(|it| (it["path"].as_str().unwrap(), it["valid"].as_bool().unwrap())).collect();
    assert_eq!(verdicts, [("./bad/SKILL.md", false), ("./good/SKILL.md", true)]);
    let members: Vec<_> = lines[1].as_object().unwrap().keys().collect();
    assert_eq!(members, ["path", "name", "description", "valid", "problems"]);
    assert_eq!((&lines[1]["name"], &lines[1]["description"]), (&"good".into(), &"Says hello.".into()));
    assert!(lines[0]["problems"][0]["message"].is_string());
}

#[test]
fn trees_are_walked_in_order_and_within_bounds() {
    let tree = Tree::new();
    tree.skill("z")
        .skill("b")
        .skill("b/inner")
        .skill(".git/x")
        .skill(".agents/skills/y")
        .skill("node_modules/x")
        .skill("1/2/3/4/5/6");
    tree.skill("1/2/3/4/5/6/7").put("README.md", "none").put("b/notes/other.md", "none");
    let all = [".agents/skills/y", "1/2/3/4/5/6", "b", "b/inner", "z"].map(|path| format!("./{path}/SKILL.md"));
    assert_eq!(tree.found(&[]), all);
    assert_eq!(tree.found(&[".git"]), [".git/x/SKILL.md"]);
    assert_eq!(tree.found(&["node_modules"]), ["node_modules/x/SKILL.md"]);
}

#[test]
fn links_are_followed_and_lead_nowhere_twice() {
    let (tree, elsewhere) = (Tree::new(), Tree::new());
    tree.skill("a/b");
    elsewhere.skill("far");
    for (target, link) in [
        (elsewhere.path("far"), "far"),
        (tree.path(""), "a/up"),
        (tree.path("a"), "a/b/again"),
        ("self".into(), "self"),
        ("nothing".into(), "broken"),
    ] {
        symlink(target, tree.path(link)).unwrap();
    }
    assert_eq!(tree.found(&[]), ["./a/b/SKILL.md", "./far/SKILL.md"]);
}

#[test]
fn whatever_is_called_skill_md_ends() {
    let tree = Tree::new();
    let fifo = tree.path("fifo/SKILL.md");
    tree.skill("good").put("fifo/x", "").put("device/x", "").put("folder/SKILL.md/x", "").put("broken/x", "");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    symlink("/dev/zero", tree.path("device/SKILL.md")).unwrap();
    symlink("nothing", tree.path("broken/SKILL.md")).unwrap();
    std::fs::create_dir(tree.path("huge")).unwrap();
    std::fs::File::create(tree.path("huge/SKILL.md")).unwrap().set_len(1 << 40).unwrap();
    tree.put("most/SKILL.md", document("most") + &"x".repeat(1024 * 1024 - document("most").len()));
    let ran = tree.validate(&[]);
    assert_eq!(ran.code, 5);
    insta::assert_snapshot!(ran.out, @r"
    ./broken/SKILL.md: it cannot be read (No such file or directory (os error 2))
    ./device/SKILL.md: it is not a regular file: put the text into one
    ./fifo/SKILL.md: it is not a regular file: put the text into one
    ./folder/SKILL.md: it is a folder, not a file: put the text into a file of this name
    ./huge/SKILL.md: it is longer than 1024 KiB: move parts of it into files beside it
    ");
    assert!(ran.err.contains(": 7 skills: 2 clean, 0 with problems, 5 invalid; "), "{}", ran.err);
    assert_eq!(tree.validate(&["fifo/SKILL.md"]).code, 5);
    assert_eq!(tree.validate(&["/dev/zero"]).code, 5);
}

#[test]
fn another_case_is_a_problem_and_the_right_one_wins() {
    let tree = Tree::new();
    tree.put("low/skill.md", document("low")).put("two/SKILL.MD", "none").put("two/SKILL.md", document("two"));
    let ran = tree.validate(&[]);
    assert_eq!(ran.out, "./low/skill.md: it is named skill.md: most programs look for SKILL.md alone\n");
    assert_eq!((ran.code, ran.err.as_str()), (0, "2 skills: 1 clean, 1 with problems, 0 invalid\n"));
}

#[test]
fn nothing_to_judge_is_4_and_hides_nothing() {
    let tree = Tree::new();
    tree.put("empty/x", "").put("bad/SKILL.md", NO_DESCRIPTION);
    let hint = "name a SKILL.md or a folder with some, such as .agents/skills";
    for (path, why) in [
        ("nope", "there is no nope"),
        ("empty/x/SKILL.md", "there is no empty/x/SKILL.md"),
        ("empty", "empty holds no SKILL.md"),
    ] {
        let ran = tree.validate(&[path]);
        assert_eq!((ran.code, ran.err), (4, format!("nanoctl: skills validate: {why}; {hint}\n")));
        let ran = tree.validate(&[path, "bad"]);
        assert!(ran.code == 4 && ran.out.contains("bad/SKILL.md:"), "{ran:?}");
    }
}

#[test]
fn names_do_not_break_lines() {
    let tree = Tree::new();
    tree.put("two\nlines/SKILL.md", NO_DESCRIPTION);
    let ran = tree.validate(&[]);
    assert!(ran.out.lines().all(|line| line.starts_with(r"./two\nlines/SKILL.md:")), "{}", ran.out);
}

#[test]
fn many_folders_are_soon_seen() {
    let tree = Tree::new();
    for n in 0..2000 {
        std::fs::create_dir_all(tree.path(&format!("{n}/e"))).unwrap();
    }
    tree.skill("1999/e");
    assert_eq!(tree.found(&[]), ["./1999/e/SKILL.md"]);
}
