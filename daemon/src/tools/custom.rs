//! `[tools.NAME]`: a command whose words a person wrote down, with places for arguments. Nothing in an argument is read
//! by a shell: each word reaches the program as it is.

use std::sync::Arc;
use std::time::Duration;

use nano_protocol::Object;
use serde_json::Value;
use ulid::Ulid;

use super::exec::carry_out;
use super::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, intents, schema};
use crate::config::{Piece, ToolConfig, Word};
use crate::json_schema::Schema;
use crate::sandbox::service::quoted;
use crate::sandbox::{BoxFuture, Capability, Command, Language};

struct Custom {
    spec: ToolSpec,
    schema: Schema,
    output_schema: Option<Object>,
    argv: Vec<Word>,
    timeout: Option<Duration>,
}

/// Returns the tool that was configured.
pub fn tool(config: &ToolConfig) -> Arc<dyn Tool> {
    let ToolConfig { name, description, input_schema: schema, output_schema, argv, timeout } = config.clone();
    let input_schema = schema.as_object().clone();
    let (name, description, source) = (name.into(), description.into(), "config".into());
    let requires = &[Capability::Shell];
    let spec = ToolSpec { name, description, input_schema, source, requires, read_only: false };
    Arc::new(Custom { spec, schema, output_schema, argv, timeout })
}

/// Adds the configured tools to all others, unless one has the name of another.
pub fn join(all: &mut Vec<Arc<dyn Tool>>, configured: &[ToolConfig]) -> Result<(), String> {
    for config in configured {
        let same = all.iter().map(|tool| tool.spec()).find(|spec| spec.name == config.name);
        if let Some(spec) = same {
            let (name, source) = (&config.name, &spec.source);
            return Err(format!("tools.{name}: there is a tool {name} already, of {source}; give it another name"));
        }
        all.push(tool(config));
    }
    Ok(())
}

impl Tool for Custom {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn output_schema(&self) -> Option<&Object> {
        self.output_schema.as_ref()
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Object,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolFault>> {
        Box::pin(async move {
            match self.line(arguments) {
                Ok(text) => carry_out(context, self.command(context, text)).await,
                Err(why) => Ok(ToolOutcome::Failed(format!("bad arguments: {why}"))),
            }
        })
    }
}

impl Custom {
    /// Returns the line for a shell that does nothing but become the program.
    fn line(&self, arguments: Object) -> Result<String, String> {
        let arguments = self.tidy(arguments);
        let problems = self.schema.problems(&arguments);
        if !problems.is_empty() {
            return Err(problems.join("; "));
        }
        let mut words = Vec::new();
        for word in &self.argv {
            fill(word, &arguments, &mut words)?;
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err("there is a NUL byte in them".into());
        }
        Ok(format!("exec {}", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")))
    }

    /// Takes null as a way to leave something out, and a number in quotes as a number, where nothing else is meant.
    fn tidy(&self, arguments: Object) -> Object {
        let kind = |name: &str| self.schema.property(name).and_then(|one| one.get("type")?.as_str());
        let known = arguments.into_iter().filter(|(name, value)| !value.is_null() || kind(name) == Some("null"));
        let number = |name: &str, value| if kind(name) == Some("integer") { schema::integer(value) } else { value };
        known.map(|(name, value)| (name.clone(), number(&name, value))).collect()
    }

    fn command(&self, context: &ToolContext, text: String) -> Command {
        let hosts = context.sandbox.as_ref().is_some_and(|sandbox| sandbox.has_hosts_files());
        Command {
            language: Language::Shell,
            text,
            cwd: hosts.then(|| context.workspace.path().to_owned()),
            place: None,
            timeout: self.timeout.unwrap_or(context.exec_timeout),
            task: context.task.clone(),
            spill: context.spill.join(format!("output-{}.log", Ulid::generate())),
            spool: intents::spool(&context.spill, &context.call),
            reach: context.workspace.reach(),
            background: false,
        }
    }
}

/// Adds what becomes of a word: nothing where it is but the place of an argument that was left out, one word for each
/// item where it is that of a list.
fn fill(word: &Word, arguments: &Object, words: &mut Vec<String>) -> Result<(), String> {
    if let [Piece::Field(name)] = word.0.as_slice() {
        match arguments.get(name) {
            None => {}
            Some(Value::Array(list)) => words.extend(list.iter().map(text)),
            Some(value) => words.push(text(value)),
        }
        return Ok(());
    }
    let mut whole = String::new();
    for piece in &word.0 {
        match piece {
            Piece::Text(text) => whole.push_str(text),
            Piece::Field(name) => match arguments.get(name) {
                Some(Value::Array(_)) => return Err(format!("`{name}` may not be a list: it is part of a word")),
                Some(value) => whole.push_str(&text(value)),
                None => return Err(format!("`{name}` is missing")),
            },
        }
    }
    words.push(whole);
    Ok(())
}

/// Returns a value as a program takes it: a text as it is, all else as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
