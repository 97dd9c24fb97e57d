//! Follow-ups that wait for files below a session's workspace.
//!
//! Folders are watched, and looked at every few seconds in case that was told of nothing. A file fires once per version
//! (device, inode, time of change), when nobody has it open for writing; what is known is in the store.

use std::collections::{BTreeSet, HashMap};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::followup::FollowupState;
use nano_protocol::id::FollowupId;
use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::book::Awaited;
use super::calendar::{Schedule, happening};
use super::listen::Cause;
use super::scheduler::Scheduler;
use super::slots;
use crate::sandbox::lease::Lease;
use crate::sandbox::workspace::Workspace;
use crate::session::deps::unavailable;
use crate::session::reading;
use crate::store::record::FollowupRecord;
use crate::store::{Change, Key};

/// How often folders are looked at all the same.
const LOOK: Duration = Duration::from_secs(4);
/// A change is taken up so long after it was told: more of the kind may follow.
const QUIET: Duration = Duration::from_millis(50);
/// So many files may fit.
const MOST: usize = 10_000;
/// So many entries of folders are looked at.
const MOST_ENTRIES: usize = 200_000;
/// One that was not changed for so long is complete where leases are not to be had.
const STILL: Duration = Duration::from_secs(2);

/// A file that fits, as it was found.
struct Found {
    path: PathBuf,
    version: String,
}

impl Scheduler {
    /// Looks for files until the daemon goes down.
    pub(super) async fn look_at_files(&self) {
        let stopping = self.deps().shutdown.stopping().clone();
        let mut watch = Watch::new(self.files.clone());
        loop {
            let ids = self.book().awaiting(&Awaited::File);
            let (mut folders, mut took) = (HashMap::new(), Duration::ZERO);
            for id in &ids {
                took += self.look_for(id, &mut folders).await;
            }
            watch.follow(folders);
            // Large folders are looked at less often, be there ever so many changes.
            tokio::select! {
                () = stopping.cancelled() => return,
                () = self.files.notified() => tokio::time::sleep(QUIET.max(took * 4)).await,
                () = tokio::time::sleep(LOOK.max(took * 40)), if !ids.is_empty() => {}
            }
        }
    }

    /// Sets a follow-up off for each file that is new to it and complete; returns how long looking for them took.
    async fn look_for(&self, id: &FollowupId, folders: &mut HashMap<PathBuf, RecursiveMode>) -> Duration {
        let Some(record) = self.get(id) else { return Duration::ZERO };
        let (Ok(Schedule::File { glob }), Some(workspace)) = (slots::schedule(&record), self.workspace(&record)) else {
            return Duration::ZERO;
        };
        let begun = Instant::now();
        folders.extend(watched(&workspace, &glob));
        let found = {
            let (glob, workspace) = (glob.clone(), workspace.clone());
            tokio::task::spawn_blocking(move || find(&workspace, &glob)).await.unwrap_or_default()
        };
        let took = begun.elapsed();
        if found.len() > MOST {
            self.too_many(id).await;
            return took;
        }
        for file in found.iter().filter(|file| !self.knows(id, &file.version)) {
            // One that is still being written tells when it is closed; a session that takes nothing is asked again.
            if is_complete(&workspace, file) && !self.appeared(id, file, &found).await {
                break;
            }
        }
        took
    }

    async fn appeared(&self, id: &FollowupId, file: &Found, all: &[Found]) -> bool {
        let _turn = self.turn.write().await;
        let Some(record) = self.get(id).filter(|record| record.followup.state == FollowupState::Active) else {
            return true;
        };
        if self.knows(id, &file.version) {
            return true;
        }
        let mut with = vec![Change::put(Key::file(id, &file.version), &1)];
        with.extend(self.forgotten(id, all));
        let at = self.deps().clock.now();
        let line = Some(format!("File: {}", shown(&file.path)));
        let depth = record.depth;
        self.set_off(record, Cause { at, depth, line }, with).await
    }

    fn knows(&self, id: &FollowupId, version: &str) -> bool {
        self.deps().store.get::<u8>(&Key::file(id, version)).is_ok_and(|known| known.is_some())
    }

    /// Forgets versions that are there no more, once many are known.
    fn forgotten(&self, id: &FollowupId, there: &[Found]) -> Vec<Change> {
        let known = self.deps().store.ids_backwards(&Key::below(b'v', &id.0), None);
        let known: Vec<String> = known.map_while(Result::ok).collect();
        if known.len() < MOST {
            return Vec::new();
        }
        let there: BTreeSet<&str> = there.iter().map(|file| file.version.as_str()).collect();
        let gone = known.iter().filter(|version| !there.contains(version.as_str()));
        gone.map(|version| Change::Delete(Key::file(id, version))).collect()
    }

    async fn too_many(&self, id: &FollowupId) {
        let _turn = self.turn.write().await;
        if let Some(mut record) = self.get(id).filter(|record| record.followup.state == FollowupState::Active) {
            record.followup.state = FollowupState::Paused;
            record.followup.reason = Some(format!("more than {MOST} files fit"));
            drop(self.ask(&record, Vec::new()).await);
        }
    }

    fn workspace(&self, record: &FollowupRecord) -> Option<PathBuf> {
        Some(PathBuf::from(reading::record(self.deps(), &record.followup.session).ok()?.session.workspace))
    }

    /// Notes what is there already for a follow-up that waits for files: it does not fire for that.
    pub(super) async fn files_there(&self, record: &FollowupRecord) -> Result<Vec<Change>, RpcError> {
        let (Ok(Schedule::File { glob }), Some(workspace)) = (slots::schedule(record), self.workspace(record)) else {
            return Ok(Vec::new());
        };
        let found = tokio::task::spawn_blocking(move || find(&workspace, &glob)).await;
        let found = found.map_err(|why| unavailable(&crate::store::StoreError::Failed(why.to_string())))?;
        if found.len() > MOST {
            let message = format!("more than {MOST} files fit already");
            return Err(RpcError::new(ErrorKind::Limit, message).hint("name fewer"));
        }
        self.files.notify_one();
        let known = found.iter().map(|file| Change::put(Key::file(&record.followup.id, &file.version), &1));
        Ok(known.collect())
    }
}

/// Finds the regular files that fit, by name; links are not followed.
fn find(workspace: &Path, glob: &str) -> Vec<Found> {
    let (Ok(matcher), (base, depth)) = (happening::matcher(glob), happening::base(glob)) else { return Vec::new() };
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    if !is_beneath(workspace, base) {
        return Vec::new();
    }
    let mut walk = ignore::WalkBuilder::new(workspace.join(base));
    walk.standard_filters(false).follow_links(false).sort_by_file_name(Ord::cmp);
    walk.max_depth((depth < usize::MAX).then_some(depth));
    let entries = walk.build().take(MOST_ENTRIES).filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()) && !is_link(entry.path()));
    let fitting = files.filter_map(|entry| {
        let path = entry.path().strip_prefix(workspace).ok()?.to_owned();
        let version = version(&entry.metadata().ok()?);
        matcher.is_match(&path).then_some(Found { path, version })
    });
    fitting.take(MOST + 1).collect()
}

/// Tells whether the folder `base` is really one below the workspace, with no link on the way.
fn is_beneath(workspace: &Path, base: &str) -> bool {
    let mut at = workspace.to_owned();
    base.split('/').filter(|part| !part.is_empty()).all(|part| {
        at.push(part);
        at.symlink_metadata().is_ok_and(|meta| meta.is_dir())
    })
}

fn version(meta: &Metadata) -> String {
    format!("{}:{}:{}.{:09}", meta.dev(), meta.ino(), meta.mtime(), meta.mtime_nsec())
}

/// Tells whether the file is still the one that was found, and nobody writes it.
fn is_complete(workspace: &Path, file: &Found) -> bool {
    let opened = Workspace::open(workspace, true).ok();
    let Some(opened) = opened.and_then(|workspace| workspace.file_at("", &file.path).ok()) else { return false };
    let is_still = || {
        let age = opened.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
        age.is_some_and(|age| age >= STILL)
    };
    !Lease::is_written(&opened).unwrap_or_else(|| !is_still()) && is_same(&opened, file)
}

fn is_same(opened: &File, file: &Found) -> bool {
    opened.metadata().is_ok_and(|meta| version(&meta) == file.version)
}

/// Returns a path as a line names it.
fn shown(path: &Path) -> String {
    let path = path.to_string_lossy();
    if path.contains(char::is_control) { path.escape_debug().to_string() } else { path.into_owned() }
}

/// Returns what to watch for a glob: the folder that holds all that fits, or what stands above while it is not there.
fn watched(workspace: &Path, glob: &str) -> Option<(PathBuf, RecursiveMode)> {
    let (base, depth) = happening::base(glob);
    let wanted = workspace.join(base);
    let there = wanted.ancestors().take_while(|path| path.starts_with(workspace)).find(|path| path.is_dir())?;
    let deep = there == wanted && depth > 1;
    Some((there.to_owned(), if deep { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive }))
}

/// A watch on folders that tells of changes.
struct Watch {
    watcher: Option<RecommendedWatcher>,
    folders: HashMap<PathBuf, RecursiveMode>,
}

impl Watch {
    fn new(told: Arc<Notify>) -> Self {
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // Opening and reading, our own too, changes nothing.
            let idle = |kind: EventKind| matches!(kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write));
            if event.is_ok_and(|event| !idle(event.kind)) {
                told.notify_one();
            }
        });
        let watcher =
            watcher.inspect_err(|why| tracing::warn!(%why, "no watch can be had: files are looked at now and then"));
        Self { watcher: watcher.ok(), folders: HashMap::new() }
    }

    /// Watches these folders and no others.
    fn follow(&mut self, wanted: HashMap<PathBuf, RecursiveMode>) {
        let Some(watcher) = &mut self.watcher else { return };
        for (folder, _) in self.folders.iter().filter(|(folder, mode)| wanted.get(*folder) != Some(*mode)) {
            // A folder that is gone is not watched any more either.
            watcher.unwatch(folder).ok();
        }
        for (folder, mode) in wanted.iter().filter(|(folder, mode)| self.folders.get(*folder) != Some(*mode)) {
            if let Err(why) = watcher.watch(folder, *mode) {
                tracing::debug!(folder = %folder.display(), %why, "a folder is only looked at now and then");
            }
        }
        self.folders = wanted;
    }
}
