//! `skills create` and `skills edit`: a text from a file, from stdin or from the person's editor, checked, then sent.

use std::fs::File;
use std::path::{Path, PathBuf};

use nano_protocol::Object;
use nano_protocol::method::{Method as _, SkillCreate, SkillGet, SkillUpdate};
use nano_protocol::skill::{Skill, SkillCreateParams, SkillParams, SkillUpdateParams};
use nano_skill::{Document, compose, name_problem, rewrite};

use super::draft::Draft;
use super::{One, file, placed, readable};
use crate::client::{Raw, decode};
use crate::context::{Context, Start};
use crate::failure::{Failure, Kind};
use crate::output::{Output, complain};
use crate::text;

const ABOUT: &str = "What it is about, and when to load it.";

/// What to make.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  nanoctl skills create release
  nanoctl skills create release --description \"How we release; load it before any release\" --file release.md
  nanoctl skills create release -s web --file ~/Downloads/release/SKILL.md

Without --file and a piped stdin it opens $VISUAL or $EDITOR. Of a text that begins with front matter all keys are
taken, under the new NAME, but no comments; any other is the body and needs a description. The skill goes into the workspace of the session that -s
names, else into the daemon's own folder.")]
pub struct Create {
    #[command(flatten)]
    one: One,
    /// What it is about and when to load it
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The body, or a whole SKILL.md; - reads stdin, so does none with a piped stdin
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
}

/// What to change.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  nanoctl skills edit release
  EDITOR='code -w' nanoctl skills edit release -s web
  nanoctl skills edit release --file SKILL.md

It opens $VISUAL or $EDITOR, else vi or nano. Where the text cannot be used or sent, it is kept and you are told where.")]
pub struct Edit {
    #[command(flatten)]
    one: One,
    /// The whole new SKILL.md, without an editor; - reads stdin
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
}

/// Carries out `skills create`.
pub fn create(context: &Context, args: &Create) -> Result<(), Failure> {
    let (output, name) = (&context.output, &args.one.name);
    if let Some(why) = name_problem(name) {
        let (why, hint) = why.split_once("; ").unwrap_or((&why, "choose another one"));
        return Err(refused(format!("`{name}` cannot be its name: {why}"), hint));
    }
    let send = |params| context.connect(Start::Never)?.call_raw(SkillCreate::NAME, &params);
    let raw = match &args.file {
        Some(path) => send(args.given(output, &read(output, path)?, path)?)?,
        None if text::is_piped() => send(args.given(output, &text::resolve(None, output)?, Path::new("-"))?)?,
        None => {
            let body = format!("# {name}\n\nWhat to do, step by step.\n");
            let template = compose(name, args.description.as_deref().unwrap_or(ABOUT), &Object::new(), &body);
            let resend = command("create", &args.one);
            let sent = Draft::new(name, template)?
                .edit(output, &resend, |text, path| send(args.document(checked(text, name, path)?, output)));
            sent?
                .ok_or_else(|| refused("the text was left as it was: nothing is made".into(), "say what it is about"))?
        }
    };
    tell(output, &raw)
}

/// Carries out `skills edit`.
pub fn edit(context: &Context, args: &Edit) -> Result<(), Failure> {
    let (output, one) = (&context.output, &args.one);
    let params = SkillParams { name: one.name.clone(), session: one.scope.session() };
    let raw = context.connect(Start::Never)?.call_raw(SkillGet::NAME, &params)?;
    let Skill { info, text, digest, .. } = readable(decode(&raw)?)?;
    if info.source == "shipped" {
        // The daemon would refuse it only after all the typing.
        return Err(refused(format!("{} is part of nanod", info.name), "nanoctl skills create makes one of your own"));
    }
    let folder = file::folder(Path::new(&info.path));
    let send = |text: &str, path: &Path| {
        checked(text, &folder, path)?;
        let (text, digest) = (Some(text.to_owned()), Some(digest));
        let params = SkillUpdateParams {
            name: one.name.clone(),
            session: one.scope.session(),
            text,
            digest,
            ..SkillUpdateParams::default()
        };
        // Not the connection of before: hours may have passed.
        context.connect(Start::Never)?.call_raw(SkillUpdate::NAME, &params).map_err(|mut failure| {
            if failure.hint.is_empty() {
                failure.hint = format!("nanoctl skills show {} --text prints what is there now", info.name);
            }
            failure
        })
    };
    let sent = match &args.file {
        Some(path) => Some(send(&read(output, path)?, path)?),
        None => Draft::new(&folder, text)?.edit(output, &command("edit", one), send)?,
    };
    if sent.is_none() {
        output.note("the text was left as it was: nothing was sent");
    }
    tell(output, sent.as_ref().unwrap_or(&raw))
}

impl Create {
    /// Returns what to make of a text that was given: a whole document, or a body.
    fn given(&self, output: &Output, text: &str, path: &Path) -> Result<SkillCreateParams, Failure> {
        let about = self.description.as_deref();
        if has_front_matter(text) {
            let changed = about.map_or_else(|| Ok(text.to_owned()), |about| rewrite(text, Some(about), None));
            let text = changed.map_err(|problem| refused(placed(&path.display().to_string(), &problem), "mend it"))?;
            return Ok(self.document(checked(&text, &self.one.name, path)?, output));
        }
        let missing =
            || Failure::usage("the text has no front matter to say what it is about", "add --description TEXT");
        Ok(self.params(about.ok_or_else(missing)?.to_owned(), text.to_owned(), None))
    }

    fn document(&self, document: Document, output: &Output) -> SkillCreateParams {
        let Document { name, description, mut metadata, body, .. } = document;
        if name != self.one.name {
            output.note(&format!("its text names it {name}: it becomes {}", self.one.name));
        }
        metadata.retain(|key, _| key != "name" && key != "description");
        self.params(description, body, Some(metadata).filter(|rest| !rest.is_empty()))
    }

    fn params(&self, description: String, content: String, metadata: Option<Object>) -> SkillCreateParams {
        let One { name, scope } = &self.one;
        SkillCreateParams { name: name.clone(), description, content, metadata, session: scope.session() }
    }
}

/// Reads `text` as the skill of `folder`; of one that cannot be used, each problem is told.
fn checked(text: &str, folder: &str, path: &Path) -> Result<Document, Failure> {
    let document = Document::read(text.as_bytes(), folder);
    if document.valid {
        return Ok(document);
    }
    for problem in &document.problems {
        complain(&placed(&path.display().to_string(), problem));
    }
    Err(refused("no model could use this text: nothing was sent".into(), "mend it"))
}

/// Says where the skill is, and what is still odd about it.
fn tell(output: &Output, raw: &Raw) -> Result<(), Failure> {
    if output.json {
        return Ok(output.answer(raw.get())?);
    }
    let Skill { info, .. } = decode(raw)?;
    info.problems.iter().for_each(|problem| output.note(&placed(&info.path, problem)));
    Ok(output.answer(&info.path)?)
}

/// A FIFO is welcome here: it was named, and `<(…)` is one.
fn read(output: &Output, path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let unreadable = |error: &std::io::Error| {
        let kind = if error.kind() == std::io::ErrorKind::NotFound { Kind::NotFound } else { Kind::Refused };
        Failure::new(kind, format!("{shown} cannot be read ({error})"), "name a file with --file, or - for stdin")
    };
    if path == Path::new("-") {
        return text::resolve(Some("-"), output);
    }
    let bytes = File::open(path).and_then(|file| file::bounded(&file)).map_err(|error| unreadable(&error))?;
    let bytes =
        bytes.ok_or_else(|| refused(format!("{shown} is too long"), "move parts of it into files beside it"))?;
    String::from_utf8(bytes).map_err(|_| refused(format!("{shown} is not UTF-8"), "save it as UTF-8"))
}

fn has_front_matter(text: &str) -> bool {
    !Document::read(text.as_bytes(), "").metadata.is_empty()
}

/// Returns the line that does it again.
fn command(verb: &str, one: &One) -> String {
    let session = one.scope.session.as_ref().map(|session| format!(" -s {session}")).unwrap_or_default();
    format!("nanoctl skills {verb} {}{session}", one.name)
}

fn refused(why: String, hint: &str) -> Failure {
    Failure::new(Kind::Refused, why, hint)
}
