//! `[tools.NAME]`: commands that a model may have run, each word of them as a person wrote it.

use std::time::Duration;

use nano_protocol::Object;
use serde_json::Value;
use toml::de::DeValue;

use super::reader::Section;
use super::sections::words;
use crate::json_schema::Schema;

/// `[tools.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolConfig {
    /// Its name, as the model calls it.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// What it takes.
    pub input_schema: Schema,
    /// What it prints, if that is said.
    pub output_schema: Option<Object>,
    /// The program and its arguments.
    pub argv: Vec<Word>,
    /// How long it may take; none: what a command may.
    pub timeout: Option<Duration>,
}

/// One word of a command, with places for arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word(pub Vec<Piece>);

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// As it stands.
    Text(String),
    /// The argument of this name.
    Field(String),
}

impl Word {
    /// Reads a word: `{name}` is an argument's place, `{{` and `}}` are the characters themselves.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("{{").or(rest.strip_prefix("}}")) {
                plain.push_str(&rest[..1]);
                rest = after;
                continue;
            }
            let field = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            let (name, after) = field.filter(|(name, _)| !name.is_empty() && !name.contains('{')).ok_or_else(|| {
                format!("has a lone brace in \"{}\"; write {{{{ or }}}} for the character", text.escape_debug())
            })?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Field(name.to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self(pieces))
    }

    /// Returns the names of the arguments in it.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Field(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }
}

/// Reads `[tools.*]`.
pub fn read(root: &Section<'_>) -> Vec<ToolConfig> {
    root.tables("tools").into_iter().filter_map(|(name, section)| tool(name, &section)).collect()
}

fn tool(name: &str, section: &Section<'_>) -> Option<ToolConfig> {
    section.check(&words("description input_schema output_schema argv timeout"));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !(1..=64).contains(&name.len()) || !name.bytes().all(plain) || name.starts_with("mcp__") {
        section.wrong("has a bad name; a tool's is 1 to 64 of A-Z a-z 0-9 _ - and does not begin with mcp__");
    }
    let (description, timeout) = (section.filled("description"), section.duration("timeout"));
    let (input, output_schema) = (object(section, "input_schema"), object(section, "output_schema"));
    let schema = input.map_or_else(|| Ok(Schema::nothing()), Schema::new);
    let schema = schema.map_err(|why| section.wrong_key("input_schema", &why));
    let argv = section.list("argv");
    if argv.is_none() && !section.has("argv") {
        section.wrong("needs argv");
    }
    let (schema, argv) = (schema.ok()?, argv?);
    let program = argv.first().cloned().unwrap_or_default();
    let argv = command(&argv, &schema).map_err(|why| section.wrong_key("argv", &why)).ok()?;
    let description = description.unwrap_or_else(|| format!("Runs {program}."));
    Some(ToolConfig { name: name.to_owned(), description, input_schema: schema, output_schema, argv, timeout })
}

fn command(argv: &[String], schema: &Schema) -> Result<Vec<Word>, String> {
    let program = argv.first().ok_or("must not be empty")?;
    if argv.iter().any(|word| word.contains('\0')) {
        return Err("holds a NUL byte".into());
    }
    let argv = argv.iter().map(|word| Word::parse(word)).collect::<Result<Vec<_>, _>>()?;
    if program.trim().is_empty() || program.starts_with('-') || argv[0].fields().next().is_some() {
        return Err("must begin with the name of a program, which no argument may choose".into());
    }
    for word in &argv {
        if let Some(name) = word.fields().find(|name| schema.property(name).is_none()) {
            return Err(format!("has a place for \"{}\", which is no property of input_schema", name.escape_debug()));
        }
        let is_list = |name: &&str| schema.property(name).is_some_and(|one| one.get("type") == Some(&"array".into()));
        if let Some(name) = word.fields().find(is_list).filter(|_| word.0.len() > 1) {
            return Err(format!("has the list \"{name}\" within a word; give it one of its own"));
        }
    }
    Ok(argv)
}

/// Returns a table as JSON; the text of a JSON object serves too.
fn object(section: &Section<'_>, key: &str) -> Option<Object> {
    let value = section.value(key)?;
    let found = match (json(value), value.as_str()) {
        (Value::Object(object), _) => Some(object),
        (_, Some(text)) => serde_json::from_str(text).ok(),
        _ => None,
    };
    if found.is_none() {
        section.wrong_key(key, "must be a table, or the text of a JSON object");
    }
    found
}

fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Array(list) => list.iter().map(|one| json(one.get_ref())).collect(),
        DeValue::Table(table) => {
            let mut members: Vec<_> = table.iter().collect();
            // The order of the file: a model is shown what matters first.
            members.sort_by_key(|(name, _)| name.span().start);
            let members = members.into_iter().map(|(name, one)| (name.get_ref().to_string(), json(one.get_ref())));
            Value::Object(members.collect())
        }
    }
}
