//! Profiles of other programs.

use super::*;

/// Imports `text`; returns how it ended and what it asked to make.
fn import(text: &str, flags: &[&str]) -> (Ran, Vec<Value>) {
    let fake = daemon();
    let ran = piped(&fake, &[&["agents", "import", "-"][..], flags].concat(), text.as_bytes());
    (ran, fake.asked("agent.create").into_iter().map(without_nulls).collect())
}

#[test]
fn members_of_a_mao_profile() {
    for (members, made, lost) in [
        (json!({}), json!({}), &[][..]),
        (json!({"systemPrompt": "Be.", "model": "main"}), json!({"system_prompt": "Be.", "model": "main"}), &[]),
        (json!({"system_prompt": "Be.", "modelName": "gpt-4o"}), json!({"system_prompt": "Be.", "model": "main"}), &[]),
        (json!({"model_name": "qwen"}), json!({}), &["the model qwen is not there; the default serves"]),
        (json!({"systemPrompt": "", "model": null, "toolIds": [], "skillNames": []}), json!({}), &[]),
        (json!({"skillIds": null, "skill_names": "[]", "skillNames": ""}), json!({}), &[]),
        (json!({"skillIds": ["BashSkill"]}), json!({"tools": ["exec"]}), &[]),
        (json!({"toolIds": ["shell", "bash", "BashTool", "BashSkill"]}), json!({"tools": ["exec"]}), &[]),
        (
            json!({"tools": ["ReadFileSkill", "WriteFileTool", "edit_file", "editFile", "grep", "mcp__git__log"]}),
            json!({"tools": ["read_file", "write_file", "edit_file", "grep", "mcp__git__log"]}),
            &[],
        ),
        (json!({"tools": ["cn.etarch.mao.harness.tool.impl.BashTool"]}), json!({"tools": ["exec"]}), &[]),
        (json!({"tools": [{"id": 1, "name": "run it", "implClass": "a.b.BashTool"}]}), json!({"tools": ["exec"]}), &[]),
        (json!({"skillIds": ["bash"], "toolIds": ["read_file"]}), json!({"tools": ["exec", "read_file"]}), &[]),
        (json!({"tool_ids": "[\"bash\"]"}), json!({"tools": ["exec"]}), &[]),
        (json!({"tools": "bash, read_file"}), json!({"tools": ["exec", "read_file"]}), &[]),
        (json!({"tools": ["load_skill", "bash"]}), json!({"tools": ["exec"]}), &[]),
        (
            json!({"toolIds": [3, "17", "shell", "teleport", "TodoSkill"]}),
            json!({"tools": ["exec"]}),
            &[
                "the tool 3 is a number of the database it comes from; say its name",
                "the tool 17 is a number of the database it comes from; say its name",
                "the tool teleport has no counterpart",
                "the tool TodoSkill is todo here, which this nanod does not have",
            ],
        ),
        (
            json!({"toolIds": [3]}),
            json!({"tools": []}),
            &[
                "the tool 3 is a number of the database it comes from; say its name",
                "it gets no tools at all; nanoctl agents edit gives it some, or those of its mode",
            ],
        ),
        (json!({"skillNames": ["git", "review"]}), json!({"skills": ["git", "review"]}), &[]),
        (json!({"skill_names": "[\"git\", \"review\"]"}), json!({"skills": ["git", "review"]}), &[]),
        (json!({"maxTurns": 7}), json!({"max_turns": 7}), &[]),
        (json!({"maxIterations": "8"}), json!({"max_turns": 8}), &[]),
        (json!({"maxTurns": -1}), json!({}), &["maxTurns -1 is no count of turns; the default serves"]),
        (
            json!({"id": 4, "description": "d", "temperature": 0.7, "tags": [], "avatar": null}),
            json!({}),
            &["id has no counterpart", "description has no counterpart", "temperature has no counterpart"],
        ),
    ] {
        let (mut entry, mut made) = (members.clone(), made);
        (entry["name"], made["name"]) = (json!("w"), json!("w"));
        let (ran, asked) = import(&entry.to_string(), &[]);
        let lines: String = lost.iter().flat_map(|line| ["w: ", line, "\n"]).collect();
        assert_eq!((ran.code, ran.out.as_str(), ran.err), (0, "w\n", lines), "{members}");
        assert_eq!(asked, [made.clone()], "{members}");
        let (ran, asked) = import(&entry.to_string(), &["--dry-run", "-q"]);
        assert_eq!((ran.code, ran.err.as_str(), asked.len()), (0, "", 0), "{members}");
        assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap(), made, "{members}");
        assert_eq!(ran.out.lines().count(), 1);
    }
}

#[test]
fn profiles_stand_alone_in_lists_or_wrapped() {
    let (a, b) = (json!({"name": "a"}), json!({"name": "b"}));
    for (text, names) in [
        (a.to_string(), "a\n"),
        (json!([a, b]).to_string(), "a\nb\n"),
        (json!({"agents": [a, b]}).to_string(), "a\nb\n"),
        (json!({"data": [b, a]}).to_string(), "b\na\n"),
        (json!({"code": 0, "data": a}).to_string(), "a\n"),
        (json!({"code": 0, "data": {"total": 2, "records": [a, b]}}).to_string(), "a\nb\n"),
        (format!("\u{feff}{a}\n{b}\n"), "a\nb\n"),
    ] {
        let (ran, _) = import(&text, &[]);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, names, ""), "{text}");
    }
    let (ran, asked) = import("[]", &[]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", "there is nothing to import\n"));
    assert!(asked.is_empty());
}

#[test]
fn names_are_made_to_fit_and_that_is_said() {
    for (name, fits) in [
        ("Code Reviewer", "Code-Reviewer"),
        (" (a) / b ", "a-b"),
        ("a--b_c.D", "a--b_c.D"),
        ("审查 v2", "v2"),
        ("代码审查", "agent-1"),
        (&"x".repeat(70), &"x".repeat(64)),
    ] {
        let (ran, asked) = import(&json!({ "name": name }).to_string(), &[]);
        assert_eq!((ran.code, ran.out.as_str(), &asked[0]["name"]), (0, format!("{fits}\n").as_str(), &json!(fits)));
        let said = if name == fits {
            String::new()
        } else {
            format!("{fits}: the name {} does not fit and became {fits}\n", name.trim())
        };
        assert_eq!(ran.err, said);
    }
}

#[test]
fn one_that_fails_stops_no_other() {
    let text = json!([{"name": "a"}, {"name": "taken"}, {"id": 3}, 7, {"name": "b"}]).to_string();
    for flags in [&[][..], &["--dry-run"]] {
        let (ran, _) = import(&text, flags);
        assert_eq!((ran.code, ran.out.lines().count()), (5, 2), "{ran:?}");
        let lines: Vec<&str> = ran.err.lines().collect();
        for (line, says) in lines.iter().zip([
            "taken: there is an agent taken already; ",
            "entry 3 has no name",
            "entry 4 is no object",
            "3 of 5 profiles could not be imported",
        ]) {
            assert!(line.starts_with("nanoctl: agents import: ") && line.contains(says), "{line}");
        }
        assert_eq!(lines.len(), 4, "{ran:?}");
    }
    let (ran, _) = import(&text, &["--json"]);
    let made: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(made, [agent("a"), agent("b")]);
}
