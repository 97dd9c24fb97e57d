//! `tools` and `prompts`: what a session's model really gets.

use nano_protocol::id::SessionRef;
use nano_protocol::method::{SessionPrompts, SessionTools};
use nano_protocol::session::{SessionParams, SessionPrompts as Parts, SessionTools as List};
use nano_protocol::tool::Prompt;

use crate::context::Context;
use crate::failure::Failure;
use crate::table::Column::{Text, Whole};
use crate::table::table;

/// Which session's tools.
#[derive(Debug, clap::Args)]
pub struct Tools {
    /// The session: id, prefix of the id or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// The tools it does not get, too, and why
    #[arg(long)]
    why: bool,
}

/// Which session's prompts.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  nanoctl prompts web
  nanoctl prompts web --assembled > prompt.md

With --assembled the text alone goes to stdout; which lines came from where goes to stderr (not with -q).")]
pub struct Prompts {
    /// The session: id, prefix of the id or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// Exactly what the model gets, as one text
    #[arg(long)]
    assembled: bool,
}

/// Carries out `tools`.
pub fn tools(context: &Context, args: Tools) -> Result<(), Failure> {
    let params = SessionParams { session: SessionRef(args.session) };
    context.show::<SessionTools>(&params, |output, list| {
        output.note(&headline(&list));
        let offered = list.tools.iter().map(|tool| {
            let about = tool.description.lines().next().unwrap_or_default();
            vec![tool.name.clone(), tool.source.clone(), dashed(&tool.requires), about.to_owned()]
        });
        let withheld = list.withheld.iter().filter(|_| args.why);
        let withheld = withheld.map(|tool| vec![tool.name.clone(), "withheld".into(), "-".into(), tool.why.clone()]);
        let rows: Vec<_> = offered.chain(withheld).collect();
        table(output, &[Whole("TOOL"), Whole("SOURCE"), Whole("NEEDS"), Text("ABOUT")], &rows)
    })
}

/// Carries out `prompts`.
pub fn prompts(context: &Context, args: Prompts) -> Result<(), Failure> {
    let params = SessionParams { session: SessionRef(args.session) };
    context.show::<SessionPrompts>(&params, |output, list| {
        if args.assembled {
            output.answer(&list.assembled)?;
            for line in origins(&list) {
                output.note(&line);
            }
            return Ok(());
        }
        for prompt in &list.prompts {
            output.answer(&format!("== {} ({})", prompt.name, prompt.source))?;
            output.answer(&prompt.text)?;
        }
        Ok(())
    })
}

/// Returns which lines of the assembled text each part is; parts stand there in order.
fn origins(list: &Parts) -> Vec<String> {
    let line_at = |at: usize| 1 + list.assembled.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let mut end = 0;
    let origin = |part: &Prompt| {
        let start = end + list.assembled.get(end..)?.find(&part.text)?;
        end = start + part.text.len();
        let last = end.saturating_sub(1).max(start);
        Some(format!("lines {}-{}: {} ({})", line_at(start), line_at(last), part.name, part.source))
    };
    list.prompts.iter().filter_map(origin).collect()
}

fn headline(list: &List) -> String {
    let kind = if list.exact { "exact" } else { "default" };
    let booted = if list.booted { "booted" } else { "not booted" };
    let can = list.capabilities.as_ref().map_or_else(String::new, |can| format!(", can: {}", dashed(can)));
    let withheld = list.withheld.len();
    format!("{kind} list of booter {} ({booted}{can}), revision {}, {withheld} withheld", list.booter, list.revision)
}

fn dashed(words: &[String]) -> String {
    if words.is_empty() { "-".into() } else { words.join(",") }
}
