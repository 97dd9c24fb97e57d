//! `skills validate`: judges SKILL.md files where they lie. No daemon is asked.

mod walk;

use std::path::{Path, PathBuf};

use nano_protocol::skill::{Problem, Validated};
use nano_skill::Document;
use serde::Serialize;

use super::{file, placed};
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::visible::one_line;
use walk::Walk;

/// What to check.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  nanoctl skills validate .agents/skills
  nanoctl skills validate --strict git-workflow/SKILL.md

Each problem is a line PATH:LINE:COL: message on stdout. Of a folder every SKILL.md below is checked; folders whose name
begins with a dot, .agents apart, and node_modules are left out unless named. It exits with 0 where all can be used, 5 where one cannot
(with --strict: where one has a problem), 4 where there is none.")]
pub struct Args {
    /// A SKILL.md, or a folder with some; the current folder unless told
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Any problem counts, not only what makes a skill unusable
    #[arg(long)]
    strict: bool,
}

#[derive(Serialize)]
struct Judged {
    path: String,
    #[serde(flatten)]
    verdict: Validated,
}

/// Which came out how.
#[derive(Default)]
struct Tally {
    clean: usize,
    odd: Vec<String>,
    invalid: Vec<String>,
}

/// Carries out `skills validate`: what can be judged is judged, whatever else is wrong.
pub fn run(output: &Output, args: &Args) -> Result<(), Failure> {
    let here = [PathBuf::from(".")];
    let paths = if args.paths.is_empty() { &here[..] } else { &args.paths };
    let mut tally = Tally::default();
    let mut failed = None;
    for path in paths {
        let mut walk = Walk::default();
        let walked = walk.start(path);
        for file in &walk.found {
            let judged = judge(file);
            tell(output, &judged)?;
            tally.add(judged);
        }
        failed = failed.or(walked.err());
    }
    failed.map_or_else(|| tally.end(output, args.strict), Err)
}

impl Tally {
    fn add(&mut self, Judged { path, verdict }: Judged) {
        match (verdict.valid, verdict.problems.is_empty()) {
            (false, _) => self.invalid.push(path),
            (true, false) => self.odd.push(path),
            (true, true) => self.clean += 1,
        }
    }

    fn end(&self, output: &Output, strict: bool) -> Result<(), Failure> {
        let (clean, odd, invalid) = (self.clean, self.odd.len(), self.invalid.len());
        let all = clean + odd + invalid;
        let skills = if all == 1 { "skill" } else { "skills" };
        let summary = format!("{all} {skills}: {clean} clean, {odd} with problems, {invalid} invalid");
        // Among many lines of mere problems, this one would not be found.
        let worst = self.invalid.first().or_else(|| self.odd.first().filter(|_| strict));
        if let Some(worst) = worst {
            return Err(Failure::new(Kind::Refused, summary, format!("begin with {worst}")));
        }
        output.note(&summary);
        Ok(())
    }
}

fn judge(path: &Path) -> Judged {
    let folder = file::folder(path);
    let mut verdict = match file::read(path) {
        Ok(bytes) => {
            let Document { name, description, valid, problems, .. } = Document::read(&bytes, &folder);
            Validated { name, description, valid, problems }
        }
        Err(message) => {
            let problems = vec![Problem { line: None, column: None, message }];
            Validated { name: folder, description: String::new(), valid: false, problems }
        }
    };
    if let Some(name) = path.file_name().filter(|name| file::is_misspelt(name)) {
        let message = format!("it is named {}: most programs look for SKILL.md alone", name.display());
        verdict.problems.push(Problem { line: None, column: None, message });
    }
    Judged { path: path.display().to_string(), verdict }
}

fn tell(output: &Output, judged: &Judged) -> Result<(), Failure> {
    if output.json {
        let line = serde_json::to_string(judged).map_err(std::io::Error::from)?;
        return Ok(output.answer(&line)?);
    }
    for problem in &judged.verdict.problems {
        output.answer(&one_line(&placed(&judged.path, problem)))?;
    }
    Ok(())
}
