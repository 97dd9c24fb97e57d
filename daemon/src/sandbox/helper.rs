//! The two small processes that stand between the daemon and one command: `nanod` run again with a hidden argument.
//!
//! ```text
//! nanod ── keeper ── helper ── shell ── …
//! ```
//!
//! The shell is started by one more step, which gives up what a command must not have: see [`super::confine`].
//!
//! Both are subreapers: every orphan below becomes their child, also one that opened a session of its own. The helper's
//! standard input is the control channel: one [`Job`] comes in, [`News`] go out. When the channel closes, on
//! purpose or because the daemon died, the helper ends everything below it: TERM, [`GRACE`], KILL until nobody is left.
//! The keeper does the same if the command kills the helper. Both live until nobody is left. There is no runtime here
//! and nothing of the daemon's environment but the mark by which [`super::leftovers`] finds what even the keeper left.

mod handing;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus, getpid};
use serde::{Deserialize, Serialize};

use handing::{argument, handed_on};

use super::Language;
use super::cgroup::Groups;
use super::confine::{self, Plan};
use super::descendants::{descendants, kill_children, signal_all};
use super::protected;

/// The hidden argument that makes `nanod` a keeper, which starts the helper.
pub const ARGUMENT: &str = "__exec";
/// The one that makes it a helper.
const INNER: &str = "__exec-inner";
/// How long what was asked to end may take.
pub const GRACE: Duration = Duration::from_secs(2);
/// How often the process table is read while everything is being ended.
const LOOK: Duration = Duration::from_millis(25);

/// What a helper is to do.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// The interpreter.
    pub program: PathBuf,
    /// Its language.
    pub language: Language,
    /// What it interprets.
    pub text: String,
    /// Where.
    pub cwd: PathBuf,
    /// Which folder that must be: its device and inode.
    #[serde(default)]
    pub place: Option<(u64, u64)>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// What it must not do; a program of the daemon's own has no such plan.
    pub plan: Option<Plan>,
    /// Whether its input is the pipe that the helper has as its standard error.
    #[serde(default)]
    pub input: bool,
}

/// What a helper tells.
#[derive(Debug, Serialize, Deserialize)]
pub enum News {
    /// The program runs.
    Started,
    /// The program could not be started.
    Failed(String),
    /// The program ended with this status.
    Exited(i32),
    /// The program was ended by the signal of this number.
    Signalled(i32),
    /// It came up against this limit; how it ended follows.
    Limited(String),
}

/// Serves as keeper, helper or last step if the first of the program's arguments asks for that, and returns the exit
/// status.
pub fn run_if_asked(mut arguments: impl Iterator<Item = OsString>) -> Option<u8> {
    let life = match arguments.next()?.to_str()? {
        ARGUMENT => keep,
        INNER => serve,
        confine::ARGUMENT => return Some(confine::enter(&mut arguments)),
        confine::PROBE => return Some(confine::probe()),
        _ => return None,
    };
    Some(u8::from(prepare().and_then(|()| life()).is_err()))
}

fn prepare() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(getpid()))?;
    // A name that no `pkill nanod` means.
    rustix::thread::set_name(c"nano-exec")?;
    outlive_signals()
}

/// The keeper's life: it only acts if the helper was killed.
fn keep() -> io::Result<()> {
    rustix::process::setsid()?;
    close_what_was_inherited()?;
    let helper = Command::new("/proc/self/exe").arg(INNER).spawn()?;
    // Channel and pipe belong to those below: they close when those end.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stderr(File::open("/dev/null")?)?;
    reap(helper.id(), |status| {
        if status.exit_status() != Some(0) {
            thread::spawn(|| end_all(|| ()));
        }
    })
}

/// The helper's life.
fn serve() -> io::Result<()> {
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut reader = BufReader::new(control.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let job: Job = serde_json::from_str(&line)?;
    let limits = job.plan.as_ref().map(|plan| plan.limits.clone()).unwrap_or_default();
    limits.groups.make();
    let unwanted =
        job.plan.as_ref().and_then(|plan| plan.reach.as_ref()).map(|reach| protected::unwanted(&reach.protected));
    let tidy = || unwanted.iter().flatten().for_each(|path| drop(fs::remove_file(path)));
    let shell = match start(&job) {
        Ok(child) => child.id(),
        Err(why) => {
            limits.groups.remove();
            return tell(&control, &News::Failed(why.to_string()));
        }
    };
    tell(&control, &News::Started).ok();
    // What the groups told before they were closed: after that they tell of what that prevented.
    let before = Arc::new(OnceLock::new());
    let (groups, told) = (limits.groups.clone(), before.clone());
    thread::Builder::new().name("control".into()).spawn(move || {
        // An error is as good as the end: nobody is there any more.
        io::copy(&mut reader, &mut io::sink()).ok();
        end_all(|| close(&groups, &told));
    })?;
    let ended = reap(shell, |status| {
        tidy();
        let of_groups = before.get().cloned().unwrap_or_else(|| limits.groups.reached());
        // The daemon may be gone; what is left is ended all the same.
        for limit in limits.reached(of_groups, status.exit_status(), status.terminating_signal()) {
            tell(&control, &News::Limited(limit)).ok();
        }
        tell(&control, &news(status)).ok();
    });
    tidy();
    limits.groups.remove();
    ended
}

/// Sees to it that no descriptor the daemon was started with reaches a command.
fn close_what_was_inherited() -> io::Result<()> {
    let open: Vec<i32> =
        fs::read_dir("/proc/self/fd")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for number in open.into_iter().filter(|number| *number > 2) {
        // That of the listing is closed by now.
        confine::close_on_exec(number).ok();
    }
    Ok(())
}

/// A command that signals its parent must not end the one who would clean up after it.
fn outlive_signals() -> io::Result<()> {
    use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

fn start(job: &Job) -> io::Result<Child> {
    if !job.cwd.is_dir() {
        return Err(io::Error::other(format!("the folder {} does not exist", job.cwd.display())));
    }
    // It is held: its name may be another folder's in between.
    let folder = rustix::fs::open(&job.cwd, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let found = rustix::fs::fstat(&folder)?;
    if job.place.is_some_and(|place| place != (found.st_dev, found.st_ino)) {
        return Err(io::Error::other(format!("the folder {} is another one by now", job.cwd.display())));
    }
    let (text, _passed) = argument(job)?;
    let plan = job.plan.as_ref().map(|plan| handed_on(&serde_json::to_vec(plan)?)).transpose()?;
    let mut command = match &plan {
        Some((_, path)) => confine::command(path, &job.program),
        None => Command::new(&job.program),
    };
    if job.language == Language::Python {
        // Unbuffered: what was printed before a time limit is not lost.
        command.arg("-u");
    }
    command
        .arg("-c")
        .arg(text)
        .current_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))
        .env_clear()
        .envs(job.env.iter().cloned());
    if let Some(talk) = talk()? {
        command.stdin(talk.try_clone()?).stdout(talk);
    } else {
        command.stdin(if job.input { io::stderr().as_fd().try_clone_to_owned()?.into() } else { Stdio::null() });
        command.stdout(io::stdout().as_fd().try_clone_to_owned()?);
    }
    command.stderr(io::stdout().as_fd().try_clone_to_owned()?);
    // A group of its own, so that `kill 0` does not mean the helper.
    let child = command.process_group(0).spawn();
    // From here on the pipes belong to what was started: they close when the last of them ends.
    rustix::stdio::dup2_stdout(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stderr(File::open("/dev/null")?)?;
    child.map_err(|why| io::Error::new(why.kind(), format!("{}: {why}", job.program.display())))
}

/// Returns the socket that a program is spoken to through, which is this process's standard error where there is one.
fn talk() -> io::Result<Option<OwnedFd>> {
    let stderr = io::stderr();
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&stderr)?.st_mode);
    kind.is_socket().then(|| stderr.as_fd().try_clone_to_owned()).transpose()
}

/// Waits for every child, its own and the orphans, until there is none; `ended` is told how `child` ended.
fn reap(child: u32, ended: impl Fn(WaitStatus)) -> io::Result<()> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_pid().cast_unsigned() == child => ended(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Ok(()),
            Err(why) => return Err(why.into()),
        }
    }
}

fn news(status: WaitStatus) -> News {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => News::Exited(code),
        (None, signal) => News::Signalled(signal.unwrap_or_default()),
    }
}

fn tell(mut control: &UnixStream, news: &News) -> io::Result<()> {
    let mut line = serde_json::to_vec(news)?;
    line.push(b'\n');
    control.write_all(&line)
}

fn close(groups: &Groups, told: &OnceLock<Vec<String>>) {
    told.set(groups.reached()).ok();
    groups.close();
}

/// Ends everything below; the process, and this thread with it, ends when its last child has been reaped. After the time
/// for an end of their own, `close` sees to it that nothing more starts, where that can be.
#[expect(clippy::disallowed_methods, reason = "the helper is a process of its own with nobody else to serve")]
fn end_all(close: impl FnOnce()) {
    let kin = || descendants(getpid().as_raw_pid());
    signal_all(Signal::TERM, kin);
    // What is stopped takes the TERM only once it goes on.
    signal_all(Signal::CONT, kin);
    let grace = Instant::now() + GRACE;
    while Instant::now() < grace && !kin().is_empty() {
        thread::sleep(LOOK);
    }
    close();
    loop {
        signal_all(Signal::KILL, kin);
        kill_children(|_| true);
        thread::sleep(LOOK);
    }
}
