//! Files into a box and out of it, by programs that run there: what a server has beside them is not proven.

use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;

use data_encoding::BASE64;

use super::client::{Api, Exec};
use super::execution::{Execution, collect, gather};
use super::sandbox::script;
use crate::http::socket::Sending;
use crate::sandbox::SandboxError;
use crate::sandbox::output::readable;

const PUT: &str = include_str!("put.sh");
const GET: &str = include_str!("get.sh");
/// How much goes into one frame.
const CHUNK: usize = 64 << 10;
/// What `get.sh` sends at once: in base64 it is below the 256 KiB that a server keeps for whoever comes late.
const PIECE: u64 = 184 << 10;
/// The largest file that comes out, in MiB.
const MOST_MIB: u64 = 100;
/// The most that scripts print.
const MOST: usize = 512 << 10;
/// How long an upload may take at most.
const UPLOAD: Duration = Duration::from_mins(30);
/// The end of the input, as the server is told.
const END_OF_INPUT: &str = r#"{"type":"stdin_eof"}"#;

/// Writes a file into the box; returns where it is there.
pub async fn put(api: &Api, id: &str, file: File, path: &str, cold: Duration) -> Result<String, SandboxError> {
    let program = Exec { stdin: None, ..script(PUT, &[path]) };
    let mut execution = Execution::start(api, id, &program, cold).await?;
    let mut sent = 0;
    let ended = tokio::time::timeout(UPLOAD, feed(&mut execution, file, &mut sent)).await;
    let (code, out, err) = match ended {
        Ok(Ok(ended)) => ended,
        Ok(Err(why)) => return Err(given_up(execution, why).await),
        Err(_) => {
            return Err(given_up(execution, SandboxError::Failed("the upload took too long".into())).await);
        }
    };
    if code != 0 {
        return Err(SandboxError::Failed(format!("{path} was not written: {}", words(&err))));
    }
    let told = String::from_utf8_lossy(&out);
    match told.trim_end_matches('\n').split_once(' ') {
        Some((size, place)) if size.parse() == Ok(sent) => Ok(place.to_owned()),
        _ => Err(SandboxError::Failed(format!("{path} is not whole in the sandbox: {sent} bytes were sent, {told}"))),
    }
}

/// Sends the file and reads what the program says at the same time: it may give up before all has come.
async fn feed(execution: &mut Execution, file: File, sent: &mut u64) -> Result<(i32, Vec<u8>, Vec<u8>), SandboxError> {
    let lost = |why: String| SandboxError::Failed(format!("the connection to the sandbox broke: {why}"));
    let Some(sending) = execution.take_sending() else {
        return Err(lost(execution.broken().unwrap_or_default().to_owned()));
    };
    let mut fed = std::pin::pin!(send(sending, file, sent));
    let mut read = std::pin::pin!(gather(execution, MOST));
    tokio::select! {
        // What was sent is known before it is told that it came.
        biased;
        fed = &mut fed => fed?,
        ended = &mut read => return ended,
    }
    read.await
}

/// Sends the file and the end of it, and counts in `sent` how much that was.
async fn send(mut sending: Sending, mut file: File, sent: &mut u64) -> Result<(), SandboxError> {
    let lost = |why| SandboxError::Failed(format!("the connection to the sandbox broke: {why}"));
    loop {
        let (read, back) = tokio::task::spawn_blocking(move || (chunk(&mut file), file))
            .await
            .map_err(|why| SandboxError::Failed(why.to_string()))?;
        file = back;
        let bytes = read.map_err(|why| SandboxError::Failed(format!("the file cannot be read: {why}")))?;
        if bytes.is_empty() {
            sending.text(END_OF_INPUT.into()).await.map_err(lost)?;
            return Ok(());
        }
        *sent += bytes.len() as u64;
        sending.binary(bytes).await.map_err(lost)?;
    }
}

fn chunk(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(CHUNK as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

async fn given_up(mut execution: Execution, why: SandboxError) -> SandboxError {
    execution.end(drop).await;
    why
}

/// Reads a file of the box into one of the host; returns how many bytes it has.
pub async fn get(api: &Api, id: &str, path: &str, mut into: File, cold: Duration) -> Result<u64, SandboxError> {
    let (mut at, mut came, mut first) = (0_u64, 0, None);
    loop {
        let (size, bytes) = ask(api, id, [path, &at.to_string()], cold).await?;
        if size > MOST_MIB << 20 {
            let words = format!("`{path}` has {size} bytes; {MOST_MIB} MiB is the most: split or compress it");
            return Err(SandboxError::Failed(words));
        }
        let before = *first.get_or_insert(size);
        if size != before || bytes.len() as u64 != (size - came).min(PIECE) {
            let words = format!("{path} did not come whole: it had {before} bytes and changed meanwhile");
            return Err(SandboxError::Failed(words));
        }
        into.write_all(&bytes).map_err(|why| SandboxError::Failed(format!("it cannot be kept here: {why}")))?;
        (at, came) = (at + 1, came + bytes.len() as u64);
        if came == size {
            return Ok(size);
        }
    }
}

/// Asks for a file's size and the piece of it at a place.
async fn ask(api: &Api, id: &str, args: [&str; 2], cold: Duration) -> Result<(u64, Vec<u8>), SandboxError> {
    let (code, out, err) = collect(api, id, &script(GET, &args), cold, MOST).await?;
    if code != 0 {
        return Err(SandboxError::Failed(words(&err)));
    }
    let told = || {
        let text = String::from_utf8(out).ok()?;
        let (size, piece) = text.trim_start().split_once('\n')?;
        let piece: Vec<u8> = piece.bytes().filter(|one| !one.is_ascii_whitespace()).collect();
        Some((size.trim().parse().ok()?, BASE64.decode(&piece).ok()?))
    };
    told().ok_or_else(|| SandboxError::Failed(format!("the sandbox did not send {} as it should", args[0])))
}

/// Returns what a script complained of.
pub fn words(err: &[u8]) -> String {
    let text = readable(err);
    let text = text.trim();
    if text.is_empty() { "the sandbox did not say why".into() } else { text.chars().take(500).collect() }
}
