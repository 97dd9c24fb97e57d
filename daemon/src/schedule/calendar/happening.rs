//! What follow-ups wait for that is no time: a task's end, an event, a file.

use globset::{GlobBuilder, GlobMatcher};
use nano_protocol::Object;
use nano_protocol::event::{Data, EventType};
use nano_protocol::followup::On;
use nano_protocol::id::{SessionId, TaskId};

use super::Schedule;

/// Names that are so much alike are offered for one that is not known.
const ALIKE: f64 = 0.75;

/// Makes a schedule of something that happens.
pub fn parse(on: &On) -> Result<Schedule, String> {
    if on.matches.is_some() && on.event.is_none() {
        return Err("on: match belongs to event".into());
    }
    match (&on.task, &on.event, &on.file) {
        (Some(task), None, None) => Ok(Schedule::Task { task: TaskId(task.clone()) }),
        (None, Some(event), None) => {
            let mut matches = on.matches.clone().unwrap_or_default();
            let session = named_session(&mut matches);
            Ok(Schedule::Event { event: event_type(event)?, matches, session })
        }
        (None, None, Some(glob)) => {
            let glob = glob.strip_prefix("./").unwrap_or(glob);
            matcher(glob).map(|_| Schedule::File { glob: glob.to_owned() })
        }
        (None, None, None) => Err("on: give one of task, event, file".into()),
        _ => Err("on: task, event and file exclude each other; give one".into()),
    }
}

/// Takes the session out of what must match, where it is named: it stands beside an event's data.
fn named_session(matches: &mut Object) -> Option<SessionId> {
    let name = matches.get("session")?.as_str()?.to_owned();
    matches.remove("session");
    Some(SessionId(name))
}

fn event_type(name: &str) -> Result<EventType, String> {
    let shown = name.escape_debug();
    match name.parse::<EventType>() {
        Ok(kind) if kind.is_durable() => Ok(kind),
        Ok(_) => Err(format!("on: {shown} is not durable and may be lost; {}", near(name))),
        Err(_) => Err(format!("on: there is no event \"{shown}\"; {}", near(name))),
    }
}

/// Says which types there are: those like `name`, else all.
fn near(name: &str) -> String {
    let durable = || EventType::ALL.iter().copied().filter(|kind| kind.is_durable()).map(EventType::as_str);
    let mut alike: Vec<(f64, &str)> = durable().map(|kind| (strsim::jaro_winkler(kind, name), kind)).collect();
    alike.retain(|(likeness, _)| *likeness > ALIKE);
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    let alike: Vec<&str> = alike.into_iter().map(|(_, kind)| kind).take(3).collect();
    if alike.is_empty() {
        return format!("give one of {}", durable().collect::<Vec<_>>().join(", "));
    }
    format!("did you mean {}?", alike.join(" or "))
}

/// Returns what tells whether a path below the workspace fits: `*` stays within a folder, `**` does not.
pub fn matcher(glob: &str) -> Result<GlobMatcher, String> {
    let bad = |why: &str| Err(format!("on.file: \"{}\" {why}; give a path below the workspace", glob.escape_debug()));
    match () {
        () if glob.is_empty() => return bad("is empty"),
        () if glob.starts_with('/') => return bad("is absolute"),
        () if glob.ends_with('/') => return bad("names a folder, not files"),
        () if glob.contains('\0') => return bad("has a NUL byte"),
        () if glob.split('/').any(|part| part == "..") => return bad("leads out of the workspace"),
        () if glob.split('/').any(|part| part.is_empty() || part == ".") => return bad("has an empty part"),
        () => {}
    }
    let built = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
    built.map(|glob| glob.compile_matcher()).or_else(|why| bad(&format!("is no glob ({})", why.kind())))
}

/// Returns the folder that everything that fits lies below, and whether it may lie deeper than one folder's content.
pub fn base(glob: &str) -> (&str, usize) {
    let is_plain = |part: &str| !part.contains(['*', '?', '[', '{', '\\']);
    let plain: usize = glob.split('/').take_while(|part| is_plain(part)).map(|part| part.len() + 1).sum();
    let folder = glob.get(..plain.min(glob.len())).and_then(|plain| plain.rsplit_once('/')).map_or("", |(at, _)| at);
    let below = glob.get(folder.len()..).unwrap_or_default().trim_start_matches('/');
    let deep = below.contains("**") || below.contains('{');
    (folder, if deep { usize::MAX } else { below.split('/').count() })
}

/// Tells whether data holds all that is asked for: members by name, by dotted path, or nested.
pub fn fits(wanted: &Object, data: &Data) -> bool {
    wanted.iter().all(|(path, wanted)| equals(wanted, at(data, path)))
}

fn at<'a>(data: &'a Data, path: &str) -> &'a Data {
    if let Some(found) = data.get(path) {
        return found;
    }
    match path.split_once('.') {
        Some((first, rest)) => data.get(first).map_or(&Data::Null, |found| at(found, rest)),
        None => &Data::Null,
    }
}

/// One that is null is asked to be absent.
fn equals(wanted: &Data, found: &Data) -> bool {
    match (wanted, found) {
        (Data::Object(wanted), Data::Object(_)) => fits(wanted, found),
        (Data::Number(wanted), Data::Number(found)) => wanted == found || wanted.as_f64() == found.as_f64(),
        _ => wanted == found,
    }
}

#[cfg(test)]
mod tests;
