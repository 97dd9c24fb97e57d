//! What a program in a box printed, as far as it is told: `run.sh` has left out what is too much already.

use super::execution::Event;
use crate::sandbox::SandboxError;
use crate::sandbox::output::readable;

/// The most that is kept of a server whose box does not leave out anything.
const MOST: usize = 64 << 10;

/// Collects what an execution tells.
#[derive(Debug)]
pub struct Heard {
    mark: String,
    text: Vec<u8>,
    left_out: usize,
    left_running: usize,
    exit: Option<i32>,
}

impl Heard {
    /// Starts to collect; `out` is the output's file in the box.
    pub fn new(out: &str) -> Self {
        Self { mark: format!("{out} left "), text: Vec::new(), left_out: 0, left_running: 0, exit: None }
    }

    /// Takes what was told.
    pub fn hear(&mut self, event: Event) {
        match event {
            Event::Out(bytes) => self.push(&bytes),
            Event::Err(bytes) => match self.left(&bytes) {
                Some(count) => self.left_running = count,
                None => self.push(&bytes),
            },
            Event::Exited(code) => self.exit = Some(code),
        }
    }

    /// Returns how it ended, once it has.
    pub fn exit(&self) -> Option<i32> {
        self.exit
    }

    /// Returns how many processes it left running.
    pub fn left_running(&self) -> usize {
        self.left_running
    }

    /// Returns the text, with a word on what is not there.
    pub fn render(&self, broken: Option<&str>) -> String {
        let mut text = readable(&self.text);
        let mut note = |words: String| {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&words);
        };
        if self.left_out > 0 {
            note(format!("[… {} bytes left out]\n", self.left_out));
        }
        if let Some(why) = broken {
            note(format!("[the output may be incomplete: {why}]\n"));
        }
        text
    }

    /// Adds what was printed to the words of an error.
    pub fn with(&self, why: SandboxError) -> SandboxError {
        match why {
            SandboxError::Failed(why) if !self.text.is_empty() => {
                SandboxError::Failed(format!("{why}\nIt printed:\n{}", self.render(None)))
            }
            other => other,
        }
    }

    fn left(&self, bytes: &[u8]) -> Option<usize> {
        std::str::from_utf8(bytes).ok()?.strip_prefix(&self.mark)?.trim_end().parse().ok()
    }

    fn push(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(MOST - self.text.len());
        self.text.extend_from_slice(&bytes[..taken]);
        self.left_out += bytes.len() - taken;
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Heard, MOST};

    #[test]
    fn what_is_told_in_order() {
        let mut heard = Heard::new("/tmp/nano/1");
        for event in [
            Event::Out(b"a\n".to_vec()),
            Event::Err(b"b\x1b[0m\n".to_vec()),
            Event::Err(b"/tmp/nano/1 left 2\n".to_vec()),
            Event::Out(b"\xc3".to_vec()),
            Event::Out(b"\xa4".to_vec()),
            Event::Exited(-9),
        ] {
            heard.hear(event);
        }
        assert_eq!((heard.exit(), heard.left_running()), (Some(-9), 2));
        assert_eq!(heard.render(None), "a\nb\nä");
        assert_eq!(heard.render(Some("reset")), "a\nb\nä\n[the output may be incomplete: reset]\n");
    }

    #[test]
    fn too_much_is_counted() {
        let mut heard = Heard::new("x");
        for _ in 0..3 {
            heard.hear(Event::Out(vec![b'x'; MOST / 2 + 1]));
        }
        let text = heard.render(None);
        assert!(
            text.len() < MOST + 100 && text.ends_with(&format!("\n[… {} bytes left out]\n", MOST / 2 + 3)),
            "{text}"
        );
    }
}
