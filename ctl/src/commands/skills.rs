//! `skills list|show|create|edit|delete|validate`: SKILL.md documents of the daemon's and a session's folders.

mod draft;
mod file;
mod validate;
mod write;

use std::io;

use clap::Subcommand;
use nano_protocol::id::SessionRef;
use nano_protocol::method::{Method as _, SkillDelete, SkillGet, SkillList};
use nano_protocol::skill::{Problem, Skill, SkillDeleteParams, SkillInfo, SkillListParams, SkillParams, Skills};

use crate::client::decode;
use crate::context::{Context, Start};
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::table::Column::{Text, Whole};
use crate::table::{fields, table, table_with_lines};

const NO_SKILL: &str = "there is no skill: nanoctl skills create makes one";

/// What to do with skills.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List them by name
    List(List),
    /// Show one: what is known of it, its files, what a model gets that loads it
    Show(Show),
    /// Make one and print its path
    Create(write::Create),
    /// Change one in your editor
    Edit(write::Edit),
    /// Remove one
    Delete(One),
    /// Check SKILL.md files, without a daemon
    Validate(validate::Args),
}

/// Which skills.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  nanoctl skills list
  nanoctl skills list -s web -v

STATE is ok, always (its text is in every prompt), how many problems it has, or invalid: no model is offered that one,
and ABOUT says why. With -v all problems stand below their skill.")]
pub struct List {
    #[command(flatten)]
    scope: Scope,
}

/// Which skill, and how much of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  nanoctl skills show git-workflow
  nanoctl skills show git-workflow --text > SKILL.md")]
pub struct Show {
    #[command(flatten)]
    one: One,
    /// The file alone, exactly as it is
    #[arg(long)]
    text: bool,
}

/// One skill.
#[derive(Debug, clap::Args)]
pub struct One {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    scope: Scope,
}

/// Whose skills.
#[derive(Debug, clap::Args)]
pub struct Scope {
    /// Those of this session, its workspace's too: id, prefix of the id or name
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,
}

/// Carries out `skills`.
pub fn run(context: &Context, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::List(args) => list(context, &args),
        Verb::Show(args) => {
            let params = SkillParams { session: args.one.scope.session(), name: args.one.name };
            if args.text && !context.output.json {
                let raw = context.connect(Start::Never)?.call_raw(SkillGet::NAME, &params)?;
                return Ok(context.output.piece(&readable(decode(&raw)?)?.text)?);
            }
            context.show::<SkillGet>(&params, |output, it| show(output, &it))
        }
        Verb::Create(args) => write::create(context, &args),
        Verb::Edit(args) => write::edit(context, &args),
        Verb::Delete(one) => {
            let params = SkillDeleteParams { session: one.scope.session(), name: one.name, digest: None };
            context.show::<SkillDelete>(&params, |output, it| output.answer(&format!("{} deleted", it.name)))
        }
        Verb::Validate(args) => validate::run(&context.output, &args),
    }
}

/// Refuses a skill whose file the daemon could not read: it has no text to show or change.
fn readable(skill: Skill) -> Result<Skill, Failure> {
    if !skill.digest.is_empty() {
        return Ok(skill);
    }
    let why = skill.info.problems.first().map_or("nobody knows why", |problem| problem.message.as_str());
    let what = format!("{} cannot be read: {why}", skill.info.name);
    Err(Failure::new(Kind::Refused, what, format!("look at {}", skill.info.path)))
}

impl Scope {
    fn session(&self) -> Option<SessionRef> {
        self.session.clone().map(SessionRef)
    }
}

/// Every page: what a reader does not see of a list, it takes to be absent.
fn list(context: &Context, args: &List) -> Result<(), Failure> {
    let mut params = SkillListParams { session: args.scope.session(), ..SkillListParams::default() };
    let mut client = context.connect(Start::Never)?;
    let mut skills = Vec::new();
    loop {
        let raw = client.call_raw(SkillList::NAME, &params)?;
        if context.output.json {
            context.output.answer(raw.get())?;
        }
        let page: Skills = decode(&raw)?;
        skills.extend(page.skills);
        params.after = page.next;
        if params.after.is_none() {
            break;
        }
    }
    if !context.output.json {
        show_list(&context.output, &skills)?;
    }
    Ok(())
}

fn show_list(output: &Output, skills: &[SkillInfo]) -> io::Result<()> {
    if skills.is_empty() {
        output.note(NO_SKILL);
        return Ok(());
    }
    let row = |it: &SkillInfo| vec![it.name.clone(), it.source.clone(), state(it), about(it)];
    let rows: Vec<_> = skills.iter().map(row).collect();
    let head = [Whole("NAME"), Whole("SOURCE"), Whole("STATE"), Text("ABOUT")];
    if output.verbose {
        return table_with_lines(output, &head, &rows, &skills.iter().map(below).collect::<Vec<_>>());
    }
    table(output, &head, &rows)?;
    let invalid = skills.iter().filter(|it| !it.valid).count();
    let odd = skills.iter().filter(|it| it.valid && !it.problems.is_empty()).count();
    if invalid + odd > 0 {
        output.note(&format!("{invalid} invalid, {odd} with problems: -v says where and why"));
    }
    Ok(())
}

fn show(output: &Output, it: &Skill) -> io::Result<()> {
    let info = &it.info;
    let mut rows = vec![
        ("name", info.name.clone()),
        ("source", info.source.clone()),
        ("path", info.path.clone()),
        ("state", state(info)),
        ("about", info.description.clone()),
        ("digest", it.digest.clone()),
    ];
    rows.extend(info.problems.iter().map(|problem| ("problem", placed(&info.path, problem))));
    rows.extend(it.files.iter().map(|file| ("file", file.clone())));
    fields(output, &rows)?;
    if it.body.is_empty() { Ok(()) } else { output.answer(&format!("\n{}", it.body)) }
}

/// Returns in a word or two whether a model can have it.
fn state(it: &SkillInfo) -> String {
    if !it.valid {
        return "invalid".into();
    }
    let odd = match it.problems.len() {
        0 => None,
        1 => Some("1 problem".to_owned()),
        many => Some(format!("{many} problems")),
    };
    let words: Vec<_> = it.always_load.then(|| "always".to_owned()).into_iter().chain(odd).collect();
    if words.is_empty() { "ok".into() } else { words.join(", ") }
}

/// Returns what it is about; of one that cannot be used, why.
fn about(it: &SkillInfo) -> String {
    let why = it.problems.first().filter(|_| !it.valid);
    why.map_or_else(|| it.description.clone(), |problem| problem.message.clone())
}

fn below(it: &SkillInfo) -> Vec<String> {
    if it.problems.is_empty() {
        return vec![it.path.clone()];
    }
    it.problems.iter().map(|problem| placed(&it.path, problem)).collect()
}

/// Returns a problem as compilers write it, `PATH:LINE:COL: message`, as far as its place is known.
fn placed(path: &str, problem: &Problem) -> String {
    let part = |number: Option<u32>| number.map(|number| format!(":{number}")).unwrap_or_default();
    // A column says nothing without its line.
    let column = problem.line.and(problem.column);
    format!("{path}{}{}: {}", part(problem.line), part(column), problem.message)
}
