//! The tools that install a released skill here: promotion, which takes back what could not be installed, and syncing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nano_protocol::Object;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::bay::Ask;
use super::fault::Fault;
use super::install::{self, Released};
use super::lifecycle::rollback;
use super::paths::step;
use super::sandbox::NeoSandbox;
use super::tool::{compact, spec, whole};
use crate::sandbox::{BoxFuture, SandboxError};
use crate::skills::library::Library;
use crate::tools::typed::Called;
use crate::tools::{Tool, ToolContext, ToolOutcome, ToolSpec};

/// How many releases one page has, and how many pages are looked through.
const PAGE: usize = 100;
const PAGES: usize = 100;

#[derive(Debug, Deserialize, JsonSchema)]
struct Promotion {
    /// The candidate; its latest evaluation must have passed.
    candidate_id: String,
    /// canary to try it out, which it is unless given; stable for use.
    stage: Option<String>,
    /// With stable: install the skill here too; true unless given.
    sync_to_local: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Sync {
    /// The release to install.
    release_id: Option<String>,
    /// Or the skill whose active release is installed.
    skill_key: Option<String>,
    /// Refuse what is not stable; true unless given.
    require_stable: Option<bool>,
}

/// What a tool that may install a skill does in the sandbox, the library and the workspace.
type Work<A> = fn(Arc<NeoSandbox>, Arc<Library>, PathBuf, A) -> BoxFuture<'static, Result<ToolOutcome, SandboxError>>;

/// A tool that may install a skill. A release that is not installed has to be taken back, whoever waits for that: what
/// was begun goes on to its end.
struct Installing<A> {
    spec: ToolSpec,
    library: Arc<Library>,
    work: Work<A>,
}

impl<A: DeserializeOwned + JsonSchema + Send> Tool for Installing<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, context: &'a ToolContext, arguments: Object) -> Called<'a> {
        Box::pin(async move {
            if context.cancel.is_cancelled() {
                return Ok(ToolOutcome::Stopped("stopped before it began".into()));
            }
            let (library, work) = (self.library.clone(), self.work);
            whole(context, arguments, |sandbox, workspace, args| work(sandbox, library, workspace, args)).await
        })
    }
}

/// Returns the tool that releases a candidate and installs it through `library`.
pub fn promote_candidate(library: Arc<Library>) -> impl Tool {
    let description = "Releases a candidate whose latest evaluation has passed. With stage stable the skill is also \
                       installed here; if that fails the release is rolled back.";
    let work: Work<Promotion> = |sandbox, library, workspace, args| {
        Box::pin(async move { promote(&sandbox, &library, &workspace, args).await })
    };
    Installing { spec: spec::<Promotion>("promote_skill_candidate", description, false), library, work }
}

/// Returns the tool that installs a release through `library`.
pub fn install_release(library: Arc<Library>) -> impl Tool {
    let description = "Installs a released skill here, by its release or by the skill's key.";
    let work: Work<Sync> = |sandbox, library, workspace, args| {
        Box::pin(async move { sync_release(&sandbox, &library, &workspace, args).await })
    };
    Installing { spec: spec::<Sync>("sync_skill_release", description, false), library, work }
}

async fn promote(
    sandbox: &NeoSandbox,
    library: &Arc<Library>,
    workspace: &Path,
    args: Promotion,
) -> Result<ToolOutcome, SandboxError> {
    let stage = args.stage.unwrap_or_else(|| "canary".into());
    if !["canary", "stable"].contains(&stage.as_str()) {
        return Err(SandboxError::Failed("bad arguments: `stage` must be canary or stable".into()));
    }
    let path = format!("skills/candidates/{}/promote", step(&args.candidate_id).map_err(failed)?);
    let release = sandbox.call(&Ask::post(path, &json!({"stage": stage}))).await?;
    if stage != "stable" || !args.sync_to_local.unwrap_or(true) {
        let none = Value::Null;
        return Ok(ToolOutcome::Done(compact(&json!({"release": release, "sync": none, "rollback": none}))));
    }
    match sync(sandbox, library, workspace, &release).await {
        Ok(sync) => Ok(ToolOutcome::Done(compact(&json!({"release": release, "sync": sync, "rollback": null})))),
        Err(why) => {
            let rollback = taken_back(sandbox, &release).await;
            let sync = json!({"ok": false, "error": why.to_string()});
            Ok(ToolOutcome::Failed(compact(&json!({"sync": sync, "rollback": rollback, "release": release}))))
        }
    }
}

fn failed(fault: Fault) -> SandboxError {
    SandboxError::Failed(fault.words)
}

/// Rolls a release back that could not be installed, and says what is in force now.
async fn taken_back(sandbox: &NeoSandbox, release: &Value) -> Value {
    let id = text(release, "id");
    let asked = match step(id) {
        Ok(id) => sandbox.attempt(&rollback(&id)).await,
        Err(why) => Err(why),
    };
    match asked {
        Ok(now) => json!({"ok": true, "in_force": now}),
        Err(why) => json!({"ok": false, "error": why.words, "state": in_force(id, why.status)}),
    }
}

/// Says what is known of a release whose rollback was answered with this status, 0 where it was not.
fn in_force(id: &str, status: u16) -> String {
    if status == 409 {
        return format!(
            "the release {id} was not rolled back and stays active on the server, though it is not installed here: \
             release a new candidate, or roll it back later"
        );
    }
    format!(
        "it is unknown whether the release {id} is still active on the server, and it is not installed here: see \
         list_skill_releases, and roll it back if it is"
    )
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Installs a release: its candidate's payload holds the text.
async fn sync(
    sandbox: &NeoSandbox,
    library: &Arc<Library>,
    workspace: &Path,
    release: &Value,
) -> Result<Value, SandboxError> {
    let missing = |what: &str| SandboxError::Failed(format!("{what}, so there is nothing to install"));
    let candidate = step(text(release, "candidate_id")).map_err(|_| missing("the release names no candidate"))?;
    let candidate = sandbox.call(&Ask::get(format!("skills/candidates/{candidate}"))).await?;
    let payload_ref = text(&candidate, "payload_ref");
    let payload = step(payload_ref).map_err(|_| missing("the candidate has no payload_ref"))?;
    let payload = sandbox.call(&Ask::get(format!("skills/payloads/{payload}"))).await?;
    let payload = payload.get("payload").unwrap_or(&Value::Null);
    let markdown = text(payload, "skill_markdown");
    if markdown.trim().is_empty() {
        return Err(missing("`skill_markdown` of the payload is not a text with something in it"));
    }
    let released = Released {
        key: text(release, "skill_key").to_owned(),
        release: text(release, "id").to_owned(),
        candidate: text(release, "candidate_id").to_owned(),
        payload: payload_ref.to_owned(),
        description: text(payload, "description").to_owned(),
        markdown: markdown.to_owned(),
    };
    let (library, workspace) = (library.clone(), workspace.to_owned());
    let installed = tokio::task::spawn_blocking(move || install::install(&library, &workspace, &released)).await;
    installed.map_err(|why| SandboxError::Failed(why.to_string()))?.map_err(SandboxError::Failed)
}

async fn sync_release(
    sandbox: &NeoSandbox,
    library: &Arc<Library>,
    workspace: &Path,
    args: Sync,
) -> Result<ToolOutcome, SandboxError> {
    let must_be_stable = args.require_stable.unwrap_or(true);
    let release = match (args.release_id, args.skill_key) {
        (Some(id), _) => by_id(sandbox, &id).await?,
        (None, Some(key)) => active(sandbox, &key, must_be_stable).await?,
        (None, None) => {
            return Err(SandboxError::Failed("bad arguments: give `release_id` or `skill_key`".into()));
        }
    };
    if must_be_stable && text(&release, "stage") != "stable" {
        let words = "is not stable; promote its candidate to stable, or give require_stable = false";
        return Err(SandboxError::Failed(format!("the release {} {words}", text(&release, "id"))));
    }
    Ok(ToolOutcome::Done(compact(&sync(sandbox, library, workspace, &release).await?)))
}

/// Looks through all releases for one.
async fn by_id(sandbox: &NeoSandbox, id: &str) -> Result<Value, SandboxError> {
    for page in 0..PAGES {
        let releases = releases(sandbox, |ask| ask.query("offset", Some((page * PAGE).to_string()))).await?;
        if let Some(found) = releases.iter().find(|release| text(release, "id") == id) {
            return Ok(found.clone());
        }
        if releases.len() < PAGE {
            break;
        }
    }
    Err(SandboxError::Failed("there is no such release; list_skill_releases tells which there are".into()))
}

/// Returns the newest active release of a skill.
async fn active(sandbox: &NeoSandbox, key: &str, must_be_stable: bool) -> Result<Value, SandboxError> {
    let stage = must_be_stable.then(|| "stable".to_owned());
    let of_key = |ask: Ask| {
        ask.query("skill_key", Some(key.to_owned())).query("active_only", Some("true".into())).query("stage", stage)
    };
    let version = |release: &&Value| release.get("version").and_then(Value::as_i64);
    let releases = releases(sandbox, of_key).await?;
    let own = releases.iter().filter(|release| text(release, "skill_key") == key);
    let none = "has no active release of this kind; list_skill_releases tells which there are";
    own.max_by_key(version).cloned().ok_or_else(|| SandboxError::Failed(format!("the skill {key} {none}")))
}

async fn releases(sandbox: &NeoSandbox, which: impl FnOnce(Ask) -> Ask) -> Result<Vec<Value>, SandboxError> {
    let ask = Ask::get("skills/releases").query("limit", Some(PAGE.to_string()));
    let listed = sandbox.call(&which(ask)).await?;
    Ok(listed.get("items").and_then(Value::as_array).cloned().unwrap_or_default())
}
