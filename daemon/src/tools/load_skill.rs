//! `load_skill`: the second layer of a skill, its body and where its files are.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::typed::Typed;
use super::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, schema};
use crate::sandbox::SandboxError;
use crate::sandbox::workspace::shown;
use crate::skills::{Skill, files, plain};

/// The longest body of one answer, in bytes.
const BYTES: usize = 50 * 1024;
/// How many files are named.
const FILES: usize = 50;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// The skill's name, as in the list of available skills.
    name: String,
}

/// Returns the tool.
pub fn tool() -> impl Tool {
    let spec = ToolSpec {
        name: "load_skill".into(),
        description: "Returns a skill: the document that says how something is done here, and the files beside it."
            .into(),
        input_schema: schema::schema::<Args>(),
        source: "skill".into(),
        requires: &[],
        read_only: true,
    };
    Typed::new(spec, |context, args| Box::pin(load(context, args)))
}

async fn load(context: &ToolContext, Args { name }: Args) -> Result<ToolOutcome, ToolFault> {
    let Some(skill) = context.skills.get(&name) else {
        return Ok(ToolOutcome::Failed(context.skills.not_found_text(&name)));
    };
    let (place, beside) = match &skill.folder {
        Some(folder) => {
            let files = files::beside(context.workspace.clone(), folder.clone()).await;
            (Some(place(context, skill, folder).await?), files)
        }
        None => (None, Vec::new()),
    };
    Ok(ToolOutcome::Done(text(skill, place.as_ref(), &beside)))
}

/// Returns where the session's tools find the skill's folder, or in words that they do not.
async fn place(context: &ToolContext, skill: &Skill, folder: &Path) -> Result<Result<String, String>, ToolFault> {
    match (&context.sandbox, &context.unbootable) {
        (Some(sandbox), _) => match sandbox.skill_folder(&skill.document.name, folder).await {
            Ok(place) => Ok(Ok(plain(Path::new(&place)))),
            Err(gone @ SandboxError::Lost { .. }) => Err(gone.into()),
            // What the document says is worth something without the files beside it.
            Err(why) => Ok(Err(why.to_string())),
        },
        (None, Some(why)) => Ok(Err(why.clone())),
        (None, None) => Ok(Ok(plain(folder))),
    }
}

fn text(skill: &Skill, place: Option<&Result<String, String>>, beside: &[PathBuf]) -> String {
    let document = &skill.document;
    let body = document.body.get(..document.body.floor_char_boundary(BYTES)).unwrap_or_default();
    // A body cannot end the frame that it stands in and speak as the tool.
    let mut frame = "skill".to_owned();
    while body.contains(&format!("</{frame}>")) {
        frame.push('_');
    }
    let name = document.name.replace('"', "&quot;");
    let mut parts = vec![format!("<{frame} name=\"{name}\">\n{body}\n</{frame}>")];
    if body.len() < document.body.len() {
        let name = skill.path.file_name().map(|name| shown(&name.to_string_lossy()));
        let there = place.is_some_and(Result::is_ok);
        let whole =
            name.filter(|_| there).map_or_else(String::new, |name| format!("; the whole is {name} in its folder"));
        parts.push(format!("[{} of {} bytes{whole}]", body.len(), document.body.len()));
    }
    parts.extend(place.map(|place| match place {
        Ok(place) => format!("Its folder, which relative paths in it mean: {place}"),
        Err(why) => format!("Its folder, which relative paths in it mean: (not there: {why})"),
    }));
    if !beside.is_empty() {
        let more = beside.len().saturating_sub(FILES);
        let names: Vec<String> = beside.iter().take(FILES).map(|file| shown(&file.to_string_lossy())).collect();
        let more = match more {
            0 => String::new(),
            more if beside.len() < files::MOST => format!(" and {more} more"),
            more => format!(" and at least {more} more"),
        };
        parts.push(format!("Files there: {}{more}", names.join(", ")));
    }
    parts.join("\n")
}
