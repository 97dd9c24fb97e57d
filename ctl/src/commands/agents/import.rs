//! `agents import`: makes the profiles of a MAO export, and names what has no counterpart.

use std::path::PathBuf;

use nano_protocol::catalog::{AgentCreateParams, AgentInfo, NameParams, PageParams};
use nano_protocol::method::{AgentCreate, AgentGet, Method as _, ModelList, ToolList};
use serde_json::Value;

use super::file;
use super::mao::{self, There};
use crate::client::{Client, decode};
use crate::context::{Context, Start};
use crate::failure::{Failure, Kind};

/// The longest file that is taken.
const MOST: usize = 64 * 1024 * 1024;

/// What to import.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The export; - reads stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print what would be made, one JSON text a line, and make nothing
    #[arg(long)]
    dry_run: bool,
}

/// Carries out `agents import`.
pub fn run(context: &Context, args: &Args) -> Result<(), Failure> {
    let entries = mao::entries(&file::read(&args.file, MOST)?).map_err(|error| {
        let why = format!("{} is not JSON ({error})", args.file.display());
        Failure::new(Kind::Refused, why, "export the profiles as JSON")
    })?;
    if entries.is_empty() {
        context.output.note("there is nothing to import");
    }
    let mut client = context.connect(Start::Never)?;
    let there = there(&mut client)?;
    let mut failed = 0;
    for (at, entry) in entries.iter().enumerate() {
        match one(context, &mut client, &there, (at + 1, entry), args.dry_run) {
            Ok(()) => {}
            Err(failure) if matches!(failure.kind, Kind::Refused | Kind::NotFound) => {
                failed += 1;
                failure.report("agents import", false);
            }
            Err(failure) => return Err(failure),
        }
    }
    if failed == 0 {
        return Ok(());
    }
    let why = format!("{failed} of {} profiles could not be imported", entries.len());
    Err(Failure::new(Kind::Refused, why, "see the lines before this one"))
}

fn there(client: &mut Client) -> Result<There, Failure> {
    let all = PageParams { limit: Some(1000), after: None };
    let tools = client.call::<ToolList>(&all)?.tools.into_iter().map(|tool| tool.name).collect();
    let models = client.call::<ModelList>(&all)?.models.into_iter().map(|it| (it.name, it.model)).collect();
    Ok(There { tools, models })
}

/// Makes one profile, or shows it.
fn one(
    context: &Context,
    client: &mut Client,
    there: &There,
    (nth, entry): (usize, &Value),
    dry_run: bool,
) -> Result<(), Failure> {
    let (profile, lost) = mao::profile(entry, nth, there)
        .map_err(|why| Failure::new(Kind::Refused, format!("entry {nth} {why}"), "mend it and import it again"))?;
    for line in lost {
        context.output.warn(&format!("{}: {line}", profile.name));
    }
    let answer = if dry_run { shown(client, &profile) } else { made(context, client, &profile) };
    let answer = answer.map_err(|mut failure| {
        failure.why = format!("{}: {}", profile.name, failure.why);
        failure
    })?;
    Ok(context.output.answer(&answer)?)
}

fn made(context: &Context, client: &mut Client, profile: &AgentCreateParams) -> Result<String, Failure> {
    let raw = client.call_raw(AgentCreate::NAME, profile)?;
    if context.output.json {
        return Ok(raw.get().to_owned());
    }
    Ok(decode::<AgentInfo>(&raw)?.name)
}

/// Returns a profile that could be made as it goes over the wire.
fn shown(client: &mut Client, profile: &AgentCreateParams) -> Result<String, Failure> {
    match client.call::<AgentGet>(&NameParams { name: profile.name.clone() }) {
        Ok(taken) if taken.source != "builtin" => {
            let why = format!("there is an agent {} already", taken.name);
            return Err(Failure::new(Kind::Refused, why, "rename one of the two"));
        }
        Err(failure) if failure.kind != Kind::NotFound => return Err(failure),
        Ok(_) | Err(_) => {}
    }
    let mut shown = serde_json::to_value(profile).map_err(|error| Failure::misread(&error))?;
    if let Some(members) = shown.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    Ok(shown.to_string())
}
