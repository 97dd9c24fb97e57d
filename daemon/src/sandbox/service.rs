//! A server that runs as long as the daemon wants it to: below a helper like any command, so that it ends with the
//! daemon, however that ends.

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use tokio::io::AsyncBufReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::helper::{Job, News};
use super::process::keeper;
use super::{Language, SandboxError, adopted};

/// How many of the last lines it printed are kept for whoever asks why it ended.
const LAST: usize = 5;
/// The longest line that is taken.
const LINE: u64 = 4096;
/// How long what it printed last may be on its way; what it left running may hold the pipe for ever.
const ON_THE_WAY: Duration = Duration::from_secs(1);

/// How long its end may take: TERM, 2 s, KILL, and some air.
const PATIENCE: Duration = Duration::from_secs(4);

/// A running server. Dropping it ends it and everything below it: TERM, 2 s, KILL.
#[derive(Debug)]
pub struct Service {
    ended: CancellationToken,
    last: Arc<Mutex<VecDeque<String>>>,
    gone: CancellationToken,
    control: Mutex<Option<OwnedWriteHalf>>,
}

/// What a service is; it prints without the values of its environment, which may be keys.
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Its arguments, for everybody to see.
    pub args: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// What must not be told of what it prints.
    pub secrets: Vec<String>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Program")
            .field("path", &self.path)
            .field("args", &self.args)
            .field("env", &names)
            .finish_non_exhaustive()
    }
}

impl Service {
    /// Starts a service below a helper of the executable `helper`; its lines go to the log at debug.
    pub async fn start(helper: &Path, program: Program) -> Result<Self, SandboxError> {
        Self::begin(helper, program, None).await
    }

    /// Starts a service that is spoken to: what it reads and prints goes through the stream, what it complains of to the
    /// log at debug.
    pub async fn start_talking(helper: &Path, program: Program) -> Result<(Self, UnixStream), SandboxError> {
        let (ours, theirs) = UnixStream::pair().map_err(|why| SandboxError::Start(why.to_string()))?;
        let theirs = theirs.into_std().map_err(|why| SandboxError::Start(why.to_string()))?;
        // A program does not expect its input to say that there is nothing yet.
        theirs.set_nonblocking(false).map_err(|why| SandboxError::Start(why.to_string()))?;
        Ok((Self::begin(helper, program, Some(theirs.into())).await?, ours))
    }

    async fn begin(helper: &Path, program: Program, talk: Option<OwnedFd>) -> Result<Self, SandboxError> {
        let cannot = |why: std::io::Error| SandboxError::Start(format!("{}: {why}", program.path.display()));
        let words = std::iter::once(program.path.to_string_lossy().into_owned()).chain(program.args.iter().cloned());
        let text = format!("exec {}", words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" "));
        let (language, cwd, env) = (Language::Shell, PathBuf::from("/"), program.env.clone());
        let job = Job { program: "/bin/sh".into(), language, text, cwd, place: None, env, plan: None, input: false };
        let (pipe, writer) = std::io::pipe().map_err(cannot)?;
        let channel = talk.map_or_else(Stdio::null, Stdio::from);
        let (mut keeper, news, control) = keeper(helper, &job, writer, channel).await.map_err(cannot)?;
        let last = Arc::default();
        let heard = CancellationToken::new();
        let all = heard.clone().drop_guard();
        listen(pipe, program.secrets.clone(), Arc::clone(&last), all).map_err(cannot)?;
        let ended = CancellationToken::new();
        let over = ended.clone();
        let gone = CancellationToken::new();
        let nothing_left = gone.clone();
        tokio::spawn(async move {
            let mut lines = tokio::io::BufReader::new(news).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if matches!(serde_json::from_str(&line), Ok(News::Started)) {
                    continue;
                }
                // It ended or did not start; what it left running ends once it is dropped.
                drop(tokio::time::timeout(ON_THE_WAY, heard.cancelled()).await);
                over.cancel();
            }
            over.cancel();
            keeper.wait().await.ok();
            nothing_left.cancel();
        });
        Ok(Self { ended, last, gone, control: Mutex::new(Some(control)) })
    }

    /// Fires once it has ended.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Ends it and everything below it, and waits for that.
    pub async fn end(&self) {
        drop(self.control.lock().unwrap_or_else(PoisonError::into_inner).take());
        drop(tokio::time::timeout(PATIENCE, self.gone.cancelled()).await);
    }

    /// Returns the last lines it printed.
    pub fn last_words(&self) -> String {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

/// Keeps the last lines that come, and drops `all` when no more can.
fn listen(
    pipe: PipeReader,
    secrets: Vec<String>,
    last: Arc<Mutex<VecDeque<String>>>,
    all: DropGuard,
) -> std::io::Result<()> {
    std::thread::Builder::new().name("service".into()).spawn(move || {
        let _all = all;
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while reader.by_ref().take(LINE).read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            let mut text = super::output::readable(&line).trim().to_owned();
            for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
                text = text.replace(secret, "(key)");
            }
            tracing::debug!(target: "nanod::sandbox::service", "{text}");
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            last.push_back(text);
            let surplus = last.len().saturating_sub(LAST);
            last.drain(..surplus);
            line.clear();
        }
    })?;
    Ok(())
}

/// Returns `word` as one word of a shell.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Returns the first line that a program prints when it is run with `argument`, if that comes soon.
pub fn first_line(path: &Path, argument: &str, env: &[(String, String)], within: Duration) -> Option<String> {
    let mut command = Command::new(path);
    command.arg(argument).env_clear().envs(env.iter().cloned()).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = adopted::started(|| command.spawn(), |child| Some(child.id())).ok()?;
    let stdout = child.stdout.take()?;
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        BufReader::new(stdout.take(LINE)).read_line(&mut line).ok();
        // Nobody may be waiting any more.
        tell.send(line).ok();
    });
    let line = told.recv_timeout(within).ok();
    child.kill().ok();
    child.wait().ok();
    line.map(|line| super::output::readable(line.as_bytes()).trim().to_owned()).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::Program;

    #[test]
    fn what_is_printed_has_no_secret() {
        let env = vec![("KEY".into(), "s3cret".into())];
        let secrets = vec!["s3cret".into()];
        let program = Program { path: "/bin/x".into(), args: vec!["serve".into()], env, secrets };
        let printed = format!("{program:?}");
        assert!(printed.contains("KEY") && !printed.contains("s3cret"), "{printed}");
    }
}
