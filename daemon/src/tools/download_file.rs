//! `download_file`: a file of the session's remote computer comes into the workspace.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use ulid::Ulid;

use super::class::Class;
use super::file_tool::done;
use super::intents::{self, Intents};
use super::typed::Typed;
use super::upload_file::{base_name, own, told};
use super::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, schema};
use crate::sandbox::Capability;
use crate::sandbox::place::Place;
use crate::sandbox::private::Private;
use crate::sandbox::workspace::{Workspace, shown};

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// The file in the sandbox.
    remote_path: String,
    /// Where it goes in the workspace on the host; the file's own name unless given.
    local_path: Option<String>,
}

/// Returns the tool, named `source`.
pub fn tool(source: &'static str) -> impl Tool {
    let spec = ToolSpec {
        name: "download_file".into(),
        description: "Copies a file of the sandbox into the workspace on the host, replacing what is there.".into(),
        input_schema: schema::schema::<Args>(),
        source: source.into(),
        requires: &[Capability::Filesystem],
        read_only: false,
    };
    Typed::new(spec, |context, args| Box::pin(download(context, args))).classed(Class::Verify)
}

async fn download(context: &ToolContext, args: Args) -> Result<ToolOutcome, ToolFault> {
    let Some(sandbox) = &context.sandbox else {
        return Ok(ToolOutcome::Failed("this session has no computer".into()));
    };
    let path = args.local_path.clone().unwrap_or_else(|| base_name(&args.remote_path));
    let begun = begin(context, &path).and_then(|file| Ok((file.try_clone().map_err(|why| why.to_string())?, file)));
    let (into, file) = match begun {
        Ok(files) => files,
        Err(why) => return Ok(ToolOutcome::Failed(why)),
    };
    let came = told(sandbox.download(&args.remote_path, into), context, |bytes| {
        format!("downloaded {bytes} bytes to {}", shown(&path))
    })
    .await?;
    let ToolOutcome::Done(says) = came else { return Ok(came) };
    let (root, private) = (context.workspace.path().to_owned(), context.private.clone());
    let intents = context.intents.clone();
    done(context, move || finish(&root, &private, intents.as_ref(), &path, file, says)).await
}

/// Makes a nameless file for what comes, having looked whether the place can be written: half a file is never seen.
fn begin(context: &ToolContext, path: &str) -> Result<File, String> {
    place(context.workspace.path(), &context.private, path)?;
    nameless(&context.spill).map_err(|why| format!("{}: {why}", context.spill.display()))
}

fn finish(
    root: &Path,
    private: &Private,
    intents: Option<&Arc<Intents>>,
    path: &str,
    mut file: File,
    says: String,
) -> Result<String, String> {
    let after = intents::of_all(&mut file).map_err(|why| why.to_string())?;
    let mut place = place(root, private, path)?;
    let _turn = place.turn().map_err(|why| why.to_string())?;
    let before = intents::before(&mut place);
    intents::intend(intents, &place, before, after, &says)?;
    place.replace_with(&mut file).map_err(|why| why.to_string())?;
    Ok(says)
}

/// Finds the place so that nothing beside the workspace is written, whatever file tools may reach, nor what is the
/// daemon's.
fn place(root: &Path, private: &Private, path: &str) -> Result<Place, String> {
    let workspace = Workspace::open(root, true).map_err(|why| why.to_string())?;
    let found = workspace.place(path, true).and_then(|place| Ok((place.path()?, place)));
    let (real, place) = found.map_err(|why| format!("local_path: {why}"))?;
    if private.covers(&real, workspace.path()) {
        return Err(format!("local_path: {}", own(path)));
    }
    Ok(place)
}

fn nameless(folder: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = folder.join(format!("download-{}", Ulid::generate()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
