//! The MAO shape of profiles, read into ours. Pure: what the names of its members and tools mean is data.

use nano_protocol::Object;
use nano_protocol::catalog::AgentCreateParams;
use serde_json::Value;

/// What the daemon has.
pub struct There {
    /// Its tools.
    pub tools: Vec<String>,
    /// Its models, with their names at the server.
    pub models: Vec<(String, Option<String>)>,
}

/// Members that an answer of MAO's server wraps profiles in.
const WRAPPERS: [&str; 6] = ["agents", "data", "records", "list", "items", "content"];

#[derive(Clone, Copy)]
enum Member {
    Name,
    Prompt,
    Model,
    Tools,
    Skills,
    Turns,
}

/// What a member means, in any style of writing it. What was called a skill before the split of the two is a tool.
const MEMBERS: [(Member, &[&str]); 6] = [
    (Member::Name, &["name", "agentName"]),
    (Member::Prompt, &["systemPrompt"]),
    (Member::Model, &["model", "modelName"]),
    (Member::Tools, &["tools", "toolIds", "toolNames", "skillIds"]),
    (Member::Skills, &["skillNames", "skills"]),
    (Member::Turns, &["maxTurns", "maxIterations", "maxSteps"]),
];

#[derive(Clone, Copy)]
enum Here {
    /// The tool of this name.
    Tool(&'static str),
    /// Something that every agent has without naming it.
    Anyway,
}

/// What a tool is here, by its name and its class before and after the split.
const TOOLS: [(Here, &[&str]); 7] = [
    (Here::Tool("exec"), &["bash", "BashSkill", "BashTool", "shell", "ShellSkill", "ShellTool"]),
    (Here::Tool("read_file"), &["read_file", "ReadFileSkill", "ReadFileTool"]),
    (Here::Tool("write_file"), &["write_file", "WriteFileSkill", "WriteFileTool"]),
    (Here::Tool("edit_file"), &["edit_file", "EditFileSkill", "EditFileTool"]),
    (Here::Tool("http_request"), &["http_request", "HttpRequestSkill", "HttpRequestTool"]),
    (Here::Tool("todo"), &["todo", "TodoSkill", "TodoTool"]),
    (Here::Anyway, &["load_skill", "LoadSkillTool"]),
];

/// Where an entry that is an object says what it is.
const NAMED_BY: [&str; 7] = ["name", "toolName", "skillName", "modelName", "implClass", "impl_class", "id"];

/// Returns the profiles of an export: JSON texts that are one each, lists of them, or wrapped.
pub fn entries(text: &str) -> Result<Vec<Value>, serde_json::Error> {
    let mut entries = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        unwrap(value?, &mut entries);
    }
    Ok(entries)
}

fn unwrap(value: Value, entries: &mut Vec<Value>) {
    match value {
        Value::Array(all) => entries.extend(all),
        Value::Object(mut members) if !members.contains_key("name") => {
            match WRAPPERS.iter().find_map(|wrapper| members.remove(*wrapper)) {
                Some(inner) => unwrap(inner, entries),
                None => entries.push(Value::Object(members)),
            }
        }
        other => entries.push(other),
    }
}

/// Returns the profile that the `nth` entry means, and a line for each thing that it loses; or why it is none.
pub fn profile(entry: &Value, nth: usize, there: &There) -> Result<(AgentCreateParams, Vec<String>), String> {
    let entry = entry.as_object().ok_or("is no object")?;
    let mut profile = AgentCreateParams::default();
    let mut lost = Vec::new();
    for (key, value) in entry.iter().filter(|(_, value)| !is_empty(value)) {
        let known = MEMBERS.iter().find(|(_, names)| names.iter().any(|name| alike(name, key)));
        match known.map(|(member, _)| *member) {
            Some(Member::Name) => profile.name = fitting(&word(value), nth, &mut lost),
            Some(Member::Prompt) => match value.as_str() {
                Some(text) => profile.system_prompt = Some(text.to_owned()),
                None => lost.push(format!("{key} is no text")),
            },
            Some(Member::Model) => profile.model = model(&word(value), there, &mut lost).or(profile.model),
            Some(Member::Tools) => tools(words(value), there, profile.tools.get_or_insert_default(), &mut lost),
            Some(Member::Skills) => profile.skills.get_or_insert_default().extend(words(value)),
            Some(Member::Turns) => match word(value).parse() {
                Ok(turns) if turns > 0 => profile.max_turns = Some(turns),
                _ => lost.push(format!("{key} {value} is no count of turns; the default serves")),
            },
            None => lost.push(format!("{key} has no counterpart")),
        }
    }
    if profile.tools.as_ref().is_some_and(Vec::is_empty) {
        lost.push("it gets no tools at all; nanoctl agents edit gives it some, or those of its mode".into());
    }
    if profile.name.is_empty() { Err("has no name".into()) } else { Ok((profile, lost)) }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => matches!(text.trim(), "" | "[]" | "null"),
        Value::Array(all) => all.iter().all(is_empty),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Compares names whether they are written `camelCase`, `snake_case` or otherwise.
fn alike(one: &str, other: &str) -> bool {
    let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    plain(one) == plain(other)
}

/// Returns the words of a list, of a list that stands in a text, or with commas between.
fn words(value: &Value) -> Vec<String> {
    let list = match value {
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Array(all)) => all,
            _ => text.split(',').map(Value::from).collect(),
        },
        Value::Array(all) => all.clone(),
        other => vec![other.clone()],
    };
    list.iter().map(word).filter(|word| !word.is_empty()).collect()
}

/// Returns the word of a value; of an object, the one that names a tool we know before any other.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Object(members) => word_of(members),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn word_of(members: &Object) -> String {
    let words: Vec<String> = NAMED_BY.iter().filter_map(|key| members.get(*key)).map(word).collect();
    words.iter().find(|word| counterpart(word).is_some()).or(words.first()).cloned().unwrap_or_default()
}

/// Returns what a tool of MAO is here; a class may stand with its package.
fn counterpart(name: &str) -> Option<Here> {
    let class = name.rsplit('.').next().unwrap_or(name);
    TOOLS.iter().find(|(_, names)| names.iter().any(|known| alike(known, class))).map(|(here, _)| *here)
}

fn tools(names: Vec<String>, there: &There, tools: &mut Vec<String>, lost: &mut Vec<String>) {
    for name in names {
        let here = match counterpart(&name) {
            Some(Here::Anyway) => continue,
            Some(Here::Tool(here)) => here,
            None => &name,
        };
        if there.tools.iter().any(|tool| tool == here) || here.starts_with("mcp__") {
            if !tools.iter().any(|tool| tool == here) {
                tools.push(here.to_owned());
            }
        } else if here.bytes().all(|b| b.is_ascii_digit()) {
            lost.push(format!("the tool {name} is a number of the database it comes from; say its name"));
        } else if here == name {
            lost.push(format!("the tool {name} has no counterpart"));
        } else {
            lost.push(format!("the tool {name} is {here} here, which this nanod does not have"));
        }
    }
}

fn model(name: &str, there: &There, lost: &mut Vec<String>) -> Option<String> {
    let named = there.models.iter().find(|(here, _)| here == name);
    let found = named.or_else(|| there.models.iter().find(|(_, served)| served.as_deref() == Some(name)));
    if found.is_none() {
        lost.push(format!("the model {name} is not there; the default serves"));
    }
    found.map(|(here, _)| here.clone())
}

/// Returns the name, made to fit where it must be.
fn fitting(name: &str, nth: usize, lost: &mut Vec<String>) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.len() <= 64 && name.chars().all(fits) {
        return name.to_owned();
    }
    let parts = name.split(|c| !fits(c)).filter(|part| !part.is_empty());
    let joined: String = parts.collect::<Vec<_>>().join("-").chars().take(64).collect();
    let made = if joined.is_empty() { format!("agent-{nth}") } else { joined };
    lost.push(format!("the name {name} does not fit and became {made}"));
    made
}
