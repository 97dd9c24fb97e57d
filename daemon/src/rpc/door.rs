//! The door of the socket: commands of agents do not get in, or they would approve what they themselves ask for.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use nano_protocol::error::{ErrorKind, RpcError};
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::frame;
use crate::sandbox::peer::{self, Peer};

/// How long finding out who it is may take, where `/proc` is slow.
const LOOKING: Duration = Duration::from_secs(10);
/// How long a refused peer may take to say what it has to say and read why that is in vain.
const PARTING: Duration = Duration::from_secs(1);
/// How many may take so long at once; the others are cut off.
const PARTINGS: usize = 32;

/// Lets in who may come in.
pub(super) struct Door {
    mark: Option<String>,
    parting: Semaphore,
}

impl Door {
    /// Makes the door of a daemon whose commands carry `mark`.
    pub(super) fn new(mark: Option<String>) -> Self {
        Self { mark, parting: Semaphore::new(PARTINGS) }
    }

    /// Returns the connection if its peer may use it; another one is told why not.
    pub(super) async fn let_in(&self, stream: Stream) -> Option<Stream> {
        let Stream::UdSocket(socket) = &stream;
        let (socket, mark) = (socket.as_fd().try_clone_to_owned().ok()?, self.mark.clone());
        let look = move |socket: OwnedFd| peer::of(socket.as_fd(), mark.as_deref());
        let looking = tokio::task::spawn_blocking(move || look(socket));
        match timeout(LOOKING, looking).await.map(|peer| peer.unwrap_or(Peer::Unknown)) {
            Ok(Peer::Stranger) => return Some(stream),
            peer => {
                tracing::warn!(?peer, "a connection was refused");
                self.refuse(&stream).await;
            }
        }
        None
    }

    async fn refuse(&self, mut stream: &Stream) {
        let message = "commands of an agent, and whatever they start, may not use the daemon that runs them";
        let error = RpcError::new(ErrorKind::Denied, message)
            .hint("say in the answer what should be done: a person or a service can do it from outside");
        let line = frame::answer(RawValue::NULL, &Err(error)) + "\n";
        let part = async {
            stream.write_all(line.as_bytes()).await.ok()?;
            stream.shutdown().await.ok()?;
            let _turn = self.parting.try_acquire().ok()?;
            // A peer that is cut off while it writes does not read any more.
            while matches!(stream.read(&mut [0; 4096]).await, Ok(1..)) {}
            Some(())
        };
        // It had its time.
        drop(timeout(PARTING, part).await);
    }
}
