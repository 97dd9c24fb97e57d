//! Puts the document together, and decides whether it can be offered.

use nano_protocol::Object;
use nano_protocol::skill::Problem;

use crate::fault::Fault;
use crate::fence::{Cut, cut};
use crate::fields::{Fields, always_load};
use crate::problems::{At, Problems, problem};
use crate::source::{Source, place, with_line_feeds};
use crate::yaml::{self, Front};
use crate::{Document, MAX_FILE, MAX_FRONT_MATTER, name, repair};

/// Reads the bytes of a file that lies in the folder named `folder`.
pub fn document(bytes: &[u8], folder: &str) -> Document {
    if bytes.len() as u64 > MAX_FILE {
        let reason = problem((1, 1), format!("the file is larger than {MAX_FILE} bytes"));
        return refused(folder, "", Problems::default(), reason);
    }
    let source = Source::decode(bytes);
    let mut problems = Problems::default();
    if source.mark > 0 {
        problems.add((1, 1), "a byte order mark; strict readers refuse it: remove it");
    }
    match cut(&source.text) {
        Some(cut) => with_front_matter(&source, cut, folder, problems),
        None => without(&source, folder, problems),
    }
}

fn without(source: &Source<'_>, folder: &str, mut problems: Problems) -> Document {
    if let Some(bad) = source.bad {
        report_bad(source, bad, &mut problems);
    }
    let message = "no description: the file has no front matter, which begins with a line `---`";
    refused(folder, &source.text, problems, problem((1, 1), message))
}

fn with_front_matter(source: &Source<'_>, cut: Cut<'_>, folder: &str, mut problems: Problems) -> Document {
    let (cut, front) = parsed(cut, &source.text);
    let body = source.text.get(cut.body..).unwrap_or_default();
    cut.report(&mut problems);
    let mut reason = bad_bytes(source, cut.body, &mut problems);
    let front = match front {
        Ok(front) => front,
        Err(_) if is_too_long(&cut) => {
            let message = format!("the front matter is longer than {MAX_FRONT_MATTER} bytes");
            let document = refused(folder, body, problems, problem(cut.start(), message));
            return Document { unclosed: cut.unclosed, ..document };
        }
        Err(fault) => repair::read(&cut, &fault, &mut problems),
    };
    let mut fields = Fields::new(&front, &cut, &mut problems);
    let name = fields.name(folder);
    let description = fields.description().unwrap_or_else(|(at, message)| {
        reason.get_or_insert_with(|| problem(at, message));
        String::new()
    });
    fields.rest();
    let metadata = fields.object();
    Document {
        name,
        description,
        always_load: always_load(&metadata),
        hidden: fields.hidden(),
        metadata,
        body: trimmed(body),
        valid: reason.is_none(),
        unclosed: cut.unclosed,
        problems: problems.finish(reason),
    }
}

/// Parses the front matter. If it is none, then perhaps because a rule in the body was taken for its end.
fn parsed<'a>(cut: Cut<'a>, text: &str) -> (Cut<'a>, Result<Front, Fault>) {
    let front = parse(&cut);
    match front.is_err().then(|| cut.without_prose(text)).flatten() {
        Some(shorter) => {
            let front = parse(&shorter);
            (shorter, front)
        }
        None => (cut, front),
    }
}

fn parse(cut: &Cut<'_>) -> Result<Front, Fault> {
    if is_too_long(cut) { Err(Fault::new((0, 0), "too long")) } else { yaml::parse(&cut.text(), 0) }
}

fn is_too_long(cut: &Cut<'_>) -> bool {
    cut.lines.iter().map(|line| line.text.len() + 1).sum::<usize>() > MAX_FRONT_MATTER
}

/// Returns why bytes before the body cannot be front matter; bad ones in the body are only reported.
fn bad_bytes(source: &Source<'_>, body: usize, problems: &mut Problems) -> Option<Problem> {
    let refuse = |at: At, offset: usize, what: &str| {
        problem(at, format!("{what} in the front matter, at byte {} of the file", offset + source.mark))
    };
    match source.bad {
        Some(bad) if bad < body => return Some(refuse(place(&source.text, bad), bad, "bytes that are not UTF-8")),
        Some(bad) => report_bad(source, bad, problems),
        None => {}
    }
    let zero = source.text[..body].find('\0')?;
    Some(refuse(place(&source.text, zero), zero, "a NUL byte"))
}

fn report_bad(source: &Source<'_>, bad: usize, problems: &mut Problems) {
    let message = format!("bytes that are not UTF-8, at byte {} of the file; they read as U+FFFD", bad + source.mark);
    problems.add(place(&source.text, bad), message);
}

fn refused(folder: &str, body: &str, problems: Problems, reason: Problem) -> Document {
    Document {
        name: name::normal(folder),
        description: String::new(),
        always_load: false,
        hidden: false,
        metadata: Object::new(),
        body: trimmed(body),
        valid: false,
        unclosed: false,
        problems: problems.finish(Some(reason)),
    }
}

fn trimmed(body: &str) -> String {
    with_line_feeds(body.trim())
}
