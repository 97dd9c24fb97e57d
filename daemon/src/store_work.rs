//! Work on a store that no daemon holds.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use nanod::store::offline::{self, OfflineError};

/// What there is to do with it.
#[derive(Subcommand)]
pub enum StoreCommand {
    /// Say how the store is; 65 if something of it is damaged. Journal and checkpoints are only read, and the memory is
    /// looked at in a copy.
    Check,
    /// Write all that the store holds as JSON Lines.
    Export {
        /// Where to; standard output without it, or with -.
        file: Option<PathBuf>,
    },
    /// Take an export into a state directory that has no store.
    Import {
        /// Where from; - is standard input.
        file: PathBuf,
    },
    /// Set aside what is bad, bring back what can be had, and say what was done.
    Repair,
}

/// Does it; returns what to say of it.
pub async fn run(command: &StoreCommand, state: &Path) -> Result<String, OfflineError> {
    match command {
        StoreCommand::Check => offline::check(state, &std::env::temp_dir()).await,
        StoreCommand::Export { file: Some(file) } if file.as_os_str() != "-" => {
            let count = export(state, file).await?;
            Ok(format!("{count} records written to {}", file.display()))
        }
        StoreCommand::Export { .. } => {
            offline::export(state, BufWriter::new(io::stdout().lock())).await.map(|_| String::new())
        }
        StoreCommand::Import { file } => {
            let input: Box<dyn Read> = if file.as_os_str() == "-" {
                Box::new(io::stdin().lock())
            } else {
                Box::new(File::open(file).map_err(|source| unusable(file, source))?)
            };
            let count = offline::import(state, BufReader::new(input)).await?;
            Ok(format!("{count} records taken in; the next start of nanod goes on from there"))
        }
        StoreCommand::Repair => offline::repair(state).await,
    }
}

/// Exports into a file: beside it first, so that what is there stays until all of the export is.
async fn export(state: &Path, file: &Path) -> Result<u64, OfflineError> {
    let is_special = std::fs::metadata(file).is_ok_and(|found| !found.is_file());
    let beside = if is_special { file.to_owned() } else { PathBuf::from(format!("{}.new", file.display())) };
    // All that people have said to agents is in it.
    let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside);
    let out = made.map_err(|source| unusable(&beside, source))?;
    let exported = offline::export(state, BufWriter::new(&out)).await;
    if is_special {
        return exported;
    }
    let whole = !matches!(exported, Err(OfflineError::Refused(_) | OfflineError::Io { .. } | OfflineError::Store(_)));
    let kept = if whole { out.sync_all().and_then(|()| std::fs::rename(&beside, file)) } else { Ok(()) };
    drop(std::fs::remove_file(&beside));
    kept.map_err(|source| unusable(file, source))?;
    exported
}

fn unusable(file: &Path, source: io::Error) -> OfflineError {
    OfflineError::Io { what: file.display().to_string(), source }
}
