//! Runs `nanoctl` as a script would: an empty environment, no terminal, everything captured.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::programs;

/// What a run of `nanoctl` left behind.
#[derive(Debug)]
#[must_use]
pub struct Output {
    /// Its exit status; none when a signal ended it.
    pub code: Option<i32>,
    /// What it answered.
    pub stdout: String,
    /// What it told people.
    pub stderr: String,
}

impl Output {
    /// Checks the status and returns standard output without its last LF.
    pub fn expect_code(&self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.stdout.strip_suffix('\n').unwrap_or(&self.stdout).to_owned()
    }

    /// Checks that it failed with `code` and one line of `nanoctl: …` on standard error, and nothing on the other.
    pub fn expect_error(&self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        let one_line = self.stderr.starts_with("nanoctl: ") && self.stderr.lines().count() == 1;
        assert!(one_line, "not one line of `nanoctl: WHAT: WHY; TRY`: {self:?}");
        self.stderr.trim_end().to_owned()
    }
}

/// A call of `nanoctl` that is being put together.
#[must_use]
pub struct Ctl {
    command: Command,
    input: Option<String>,
}

impl Ctl {
    /// Starts with nothing but `home` and the PATH of this test.
    pub fn new(home: &Path) -> Self {
        let mut command = programs::command("nanoctl");
        command.env("HOME", home).current_dir(home).stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        Self { command, input: None }
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets the folder it runs in.
    pub fn folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Pipes `text` in.
    pub fn input(mut self, text: &str) -> Self {
        self.command.stdin(Stdio::piped());
        self.input = Some(text.to_owned());
        self
    }

    /// Lets Ctrl-C reach it also where this test was started in the background, for which it is ignored.
    pub fn interruptible(self) -> Self {
        let mut command = Command::new("/usr/bin/env");
        command.arg("--default-signal=INT").arg(self.command.get_program()).args(self.command.get_args());
        command.env_clear().envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = self.command.get_current_dir() {
            command.current_dir(folder);
        }
        command.stdin(Stdio::null());
        Self { command, input: None }
    }

    /// Starts it.
    pub fn spawn(mut self) -> Child {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("nanoctl starts");
        if let (Some(text), Some(mut pipe)) = (self.input, child.stdin.take()) {
            drop(pipe.write_all(text.as_bytes())); // It may have ended without reading, which is its right.
        }
        child
    }

    /// Runs it to its end.
    pub fn run(self) -> Output {
        output(self.spawn())
    }
}

/// Waits for a started `nanoctl`, until its end and that of everything that holds its pipes.
pub fn output(child: Child) -> Output {
    let output = child.wait_with_output().expect("nanoctl ends");
    Output {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8 on standard output"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8 on standard error"),
    }
}
