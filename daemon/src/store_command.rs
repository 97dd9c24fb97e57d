//! `nanod store`: check, export, import and repair a store that no daemon holds.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use nanod::store::StoreError;
use nanod::store::offline::{self, OfflineError};

use crate::{EX_DATAERR, complain};

#[derive(Subcommand)]
pub enum StoreCommand {
    /// Say how the store is; 65 if something of it is damaged. Journal and checkpoints are only read, and the memory is
    /// looked at in a copy.
    Check,
    /// Write all that the store holds as JSON Lines.
    Export {
        /// Where to; standard output without it.
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

/// Does it and returns the exit status.
pub fn run(command: &StoreCommand, state: &Path) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return complain(&format!("no threads: {why}"), 1),
    };
    match runtime.block_on(work(command, state)) {
        Ok(said) => say(&said),
        Err(error) => {
            let status = match &error {
                OfflineError::Damaged(_)
                | OfflineError::Store(StoreError::Newer { .. } | StoreError::Open { .. } | StoreError::Damaged(_)) => {
                    EX_DATAERR
                }
                OfflineError::Store(StoreError::Held { .. } | StoreError::NoRoom(_) | StoreError::Failed(_))
                | OfflineError::Refused(_)
                | OfflineError::Io { .. } => 1,
            };
            complain(&error.to_string(), status)
        }
    }
}

async fn work(command: &StoreCommand, state: &Path) -> Result<String, OfflineError> {
    match command {
        StoreCommand::Check => offline::check(state).await,
        StoreCommand::Export { file: None } => {
            offline::export(state, BufWriter::new(io::stdout().lock())).await.map(|_| String::new())
        }
        StoreCommand::Export { file: Some(file) } => {
            let out = File::create(file).map_err(|source| unusable(file, source))?;
            let count = offline::export(state, BufWriter::new(&out)).await?;
            out.sync_all().map_err(|source| unusable(file, source))?;
            Ok(format!("{count} records written to {}", file.display()))
        }
        StoreCommand::Import { file } => {
            let input: Box<dyn Read> = match file.as_os_str() == "-" {
                true => Box::new(io::stdin().lock()),
                false => Box::new(File::open(file).map_err(|source| unusable(file, source))?),
            };
            let count = offline::import(state, BufReader::new(input)).await?;
            Ok(format!("{count} records taken in; the next start of nanod goes on from there"))
        }
        StoreCommand::Repair => offline::repair(state).await,
    }
}

fn unusable(file: &Path, source: io::Error) -> OfflineError {
    OfflineError::Io { what: file.display().to_string(), source }
}

fn say(what: &str) -> ExitCode {
    if what.is_empty() || writeln!(io::stdout(), "{what}").is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
