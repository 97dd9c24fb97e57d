//! A text in the person's editor: a private copy, and nothing that was typed is ever lost.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::Access;
use signal_hook::consts::{SIGINT, SIGQUIT};
use signal_hook::flag::register_conditional_default;
use tempfile::TempDir;

use super::file;
use crate::failure::{Failure, Kind};
use crate::output::Output;

/// A text on its way through an editor, gone with its folder unless it is kept.
pub struct Draft {
    home: TempDir,
    path: PathBuf,
    before: String,
}

impl Draft {
    /// Writes `text` to a file that only its owner can read, in a folder named `folder` as the skill's is.
    pub fn new(folder: &str, text: String) -> Result<Self, Failure> {
        let made = || {
            let home = tempfile::Builder::new().prefix("nanoctl-").tempdir()?;
            let folder = home.path().join(folder);
            DirBuilder::new().mode(0o700).create(&folder)?;
            let path = folder.join("SKILL.md");
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?.write_all(text.as_bytes())?;
            Ok((home, path))
        };
        let (home, path) = made().map_err(|error: io::Error| {
            refused(format!("a file to edit cannot be made ({error})"), "set TMPDIR to a folder you can write to")
        })?;
        Ok(Self { home, path, before: text })
    }

    /// Lets the person edit the text and hands it to `send` with its path; none where it came back as it was.
    ///
    /// Where anything fails after something was typed, the file stays, and the failure says where and what `resend`s it.
    pub fn edit<T>(
        self,
        output: &Output,
        resend: &str,
        send: impl FnOnce(&str, &Path) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let sent = run(output, &self.path)
            .and_then(|()| self.text())
            .and_then(|text| if text == self.before { Ok(None) } else { send(&text, &self.path).map(Some) });
        sent.map_err(|failure| self.keep(failure, resend))
    }

    fn text(&self) -> Result<String, Failure> {
        let bytes = file::read(&self.path).map_err(|why| refused(format!("the edited file is unusable: {why}"), ""))?;
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            refused(format!("the edited text is not UTF-8 at byte {at}: nothing was sent"), "save it as UTF-8")
        })
    }

    fn keep(self, mut failure: Failure, resend: &str) -> Failure {
        let is_there = fs::metadata(&self.path).is_ok_and(|meta| meta.is_file());
        if !is_there || file::read(&self.path).is_ok_and(|bytes| bytes == self.before.as_bytes()) {
            return failure;
        }
        let path = self.path.display();
        let kept = format!("your text is kept: {resend} --file {path} sends it");
        failure.hint = if failure.hint.is_empty() { kept } else { format!("{}; {kept}", failure.hint) };
        // From here on the folder is the person's.
        drop(self.home.keep());
        failure
    }
}

fn run(output: &Output, path: &Path) -> Result<(), Failure> {
    let editor = editor(output)?;
    let named = editor.display();
    let status = wait(output, &editor, path)
        .map_err(|error| refused(format!("the editor {named} cannot be started ({error})"), "set EDITOR"))?;
    if status.success() {
        return Ok(());
    }
    Err(refused(format!("the editor {named} ended with {status}: nothing was sent"), "try again, or set EDITOR"))
}

/// Ctrl-C in the editor is for the editor, as it is for whoever else runs one.
fn wait(output: &Output, editor: &OsString, path: &Path) -> io::Result<ExitStatus> {
    let is_ours = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGQUIT] {
        register_conditional_default(signal, Arc::clone(&is_ours))?;
    }
    // The variable is a line for the shell: `code -w`, or a program with spaces in quotes.
    let mut line = editor.clone();
    line.push(" \"$@\"");
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).arg(editor).arg(path);
    if !output.terminal {
        // Our answer alone goes to stdout; the editor can draw where we speak to people.
        command.stdout(Stdio::from(io::stderr()));
    }
    let status = command.status();
    is_ours.store(true, Ordering::SeqCst);
    status
}

/// Returns the editor that the person named, wherever we run; a usual one only where there is a person.
fn editor(output: &Output) -> Result<OsString, Failure> {
    let said = |name| env::var_os(name).filter(|value| !value.to_string_lossy().trim().is_empty());
    if let Some(editor) = ["VISUAL", "EDITOR"].into_iter().find_map(said) {
        return Ok(editor);
    }
    let hint = "set VISUAL or EDITOR, or give the text with --file";
    if !(io::stdin().is_terminal() && (output.terminal || io::stderr().is_terminal())) {
        return Err(Failure::usage("there is no terminal for an editor", hint));
    }
    let usual = ["vi", "nano"].into_iter().find(|name| is_on_path(name));
    usual.map(OsString::from).ok_or_else(|| Failure::usage("there is no editor on PATH", hint))
}

fn is_on_path(name: &str) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    let is_program = |path: &PathBuf| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok();
    env::split_paths(&folders).map(|folder| folder.join(name)).any(|path| is_program(&path))
}

fn refused(why: String, hint: &str) -> Failure {
    Failure::new(Kind::Refused, why, hint)
}
