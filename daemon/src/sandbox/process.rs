//! The daemon's side of one command: its helper, the control channel and the output pipe.
//!
//! Dropping a [`Process`] closes the channel, and the helper then ends everything below it.

use std::io::{ErrorKind, PipeReader, PipeWriter, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::descendants::descendants;
use super::helper::{ARGUMENT, GRACE, Job, News};
use super::leftovers::MARK;
use super::output::Output;
use super::spool::{Held, Spool};
use super::{SandboxError, adopted};

/// How long a pipe that somebody still holds must be silent to count as drained.
const IDLE: Duration = Duration::from_millis(100);
/// How long output may go on after the command's end before the answer is given all the same.
const TRAILING: Duration = Duration::from_secs(1);
/// How long the helper may take beyond its grace, for instance for a process that waits for a disk.
const BEYOND_GRACE: Duration = Duration::from_secs(4);

/// A started command.
#[derive(Debug)]
pub struct Process {
    keeper: Child,
    keeper_pid: i32,
    news: Lines<BufReader<OwnedReadHalf>>,
    control: Option<OwnedWriteHalf>,
    pipe: Arc<PipeReader>,
    output: Arc<Mutex<Output>>,
    progress: watch::Receiver<()>,
    input: Option<PipeWriter>,
    spool: Held,
}

impl Process {
    /// Starts `job` under a helper of the executable `helper`.
    pub async fn start(helper: &Path, job: &Job, spill: PathBuf, spool: PathBuf) -> Result<Self, SandboxError> {
        let cannot = |why: std::io::Error| SandboxError::Start(format!("its helper does not start: {why}"));
        let (pipe, writer) = std::io::pipe().map_err(cannot)?;
        let (read, input) =
            if job.input { std::io::pipe().map(|(read, write)| (Some(read), Some(write))) } else { Ok((None, None)) }
                .map_err(cannot)?;
        let (keeper, news, control) =
            keeper(helper, job, writer, read.map_or_else(Stdio::null, Stdio::from)).await.map_err(cannot)?;
        let (pipe, output) = (Arc::new(pipe), Arc::new(Mutex::new(Output::new(spill))));
        let spool = Held::new(Spool::new(spool));
        let progress = pump(Arc::clone(&pipe), Arc::clone(&output), spool.sink()).map_err(cannot)?;
        let keeper_pid = keeper.id().unwrap_or_default().cast_signed();
        let news = BufReader::new(news).lines();
        Ok(Self { keeper, keeper_pid, news, control: Some(control), pipe, output, progress, input, spool })
    }

    /// Waits for what the helper tells next; none where it was killed. Loses nothing when dropped.
    pub async fn news(&mut self) -> Option<News> {
        let line = self.news.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    /// Takes the way to its input, if it has one.
    pub fn take_input(&mut self) -> Option<OwnedFd> {
        self.input.take().map(OwnedFd::from)
    }

    /// Returns what collects its output, for who looks at that while others wait for its end.
    pub fn shared_output(&self) -> Arc<Mutex<Output>> {
        Arc::clone(&self.output)
    }

    /// Returns the output so far.
    pub fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until what was printed has been read.
    pub async fn drain(&mut self) {
        let end = Instant::now() + TRAILING;
        while Instant::now() < end {
            match timeout(IDLE, self.progress.changed()).await {
                // Everybody closed it.
                Ok(Err(_)) => return,
                Err(_) if rustix::io::ioctl_fionread(&*self.pipe).unwrap_or(0) == 0 => return,
                Ok(Ok(())) | Err(_) => {}
            }
        }
    }

    /// Returns how many processes of the command live, the helper below the keeper not counted.
    pub fn alive(&self) -> usize {
        descendants(self.keeper_pid).len().saturating_sub(1)
    }

    /// Notes that the call is over which began it: what is printed from now on is no word of that.
    pub fn goes_on_alone(&self) {
        self.spool.end();
    }

    /// Asks the helper to end everything; [`Process::ended`] waits for it.
    pub fn end(&mut self) {
        self.control = None;
    }

    /// Ends everything and waits for that; returns the limits that were reached.
    pub async fn ended(&mut self) -> Vec<String> {
        self.end();
        let patience = Instant::now() + GRACE + BEYOND_GRACE;
        let mut limits = Vec::new();
        while let Ok(Ok(Some(line))) = timeout_at(patience, self.news.next_line()).await {
            if let Ok(News::Limited(limit)) = serde_json::from_str(&line) {
                limits.push(limit);
            }
        }
        timeout_at(patience, self.keeper.wait()).await.ok();
        limits
    }
}

/// Starts a helper of the executable `helper` with `job`, which prints to `output`; returns it and its channel. `input` is
/// what the program reads, if the job says so; a socket is what it reads and prints to, and `output` gets its complaints.
pub(super) async fn keeper(
    helper: &Path,
    job: &Job,
    output: PipeWriter,
    input: Stdio,
) -> std::io::Result<(Child, OwnedReadHalf, OwnedWriteHalf)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    let mut command = Command::new(helper);
    command.arg(ARGUMENT).env_clear().current_dir("/");
    // It may be left behind as well.
    command.envs(job.env.iter().filter(|(name, _)| name == MARK).cloned());
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(output).stderr(input);
    let child = adopted::started(|| command.spawn(), Child::id)?;
    // It holds our copies of the other ends: nobody would see them close.
    drop(command);
    ours.set_nonblocking(true)?;
    let (news, mut control) = UnixStream::from_std(ours)?.into_split();
    let mut line = serde_json::to_vec(job)?;
    line.push(b'\n');
    control.write_all(&line).await?;
    Ok((child, news, control))
}

/// Reads the pipe until everybody closed it, on a thread of its own: it must not stop when nobody waits for it.
fn pump(
    pipe: Arc<PipeReader>,
    output: Arc<Mutex<Output>>,
    spool: impl Fn(&[u8]) + Send + 'static,
) -> std::io::Result<watch::Receiver<()>> {
    let (tell, progress) = watch::channel(());
    std::thread::Builder::new().name("output".into()).spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match (&*pipe).read(&mut buffer) {
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    spool(&buffer[..count]);
                    output.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..count]);
                    tell.send_replace(());
                }
            }
        }
    })?;
    Ok(progress)
}
