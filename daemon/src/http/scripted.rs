//! A server for tests that answers with given bytes, so that it can also break the rules.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What the server does on a connection, once it has read the request; at the end of the steps it closes.
#[derive(Clone)]
pub enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Does nothing for so long.
    Wait(Duration),
    /// Keeps the connection open until the client closes it.
    Hold,
}

/// A listening server.
pub struct Server {
    /// Its address, without a path.
    pub url: String,
    requests: mpsc::Receiver<String>,
}

impl Server {
    /// Starts a server that answers every connection in the same way.
    pub async fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::channel(1024);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, steps.clone(), sender.clone()));
            }
        });
        Self { url, requests }
    }

    /// Starts a server that answers with this status line, these headers and this body.
    pub async fn answering(head: &str, body: &str) -> Self {
        let reply = format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        Self::start(vec![Step::Send(reply.into_bytes())]).await
    }

    /// Returns the requests that came, each with head and body.
    #[must_use]
    pub fn requests(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.requests.try_recv().ok()).collect()
    }
}

async fn serve(mut stream: TcpStream, steps: Vec<Step>, requests: mpsc::Sender<String>) {
    requests.send(request(&mut stream).await).await.unwrap();
    for step in steps {
        match step {
            Step::Send(bytes) => stream.write_all(&bytes).await.unwrap(),
            Step::Wait(time) => tokio::time::sleep(time).await,
            Step::Hold => drop(stream.read(&mut [0]).await),
        }
    }
}

async fn request(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).await.unwrap();
        assert!(count > 0, "the request broke off: {text}");
        read.extend(&bytes[..count]);
    }
}
