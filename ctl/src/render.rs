//! Shows a session's events as they come: texts, tool lines, and on a terminal a line that moves.
//!
//! On a terminal texts stream and each is completed from its recorded message, so a lost piece shows all the same.
//! Where stdout is piped, `run` prints the final answer alone and `attach` prints whole messages.

use std::io;
use std::time::Instant;

use nano_protocol::approval::Approval;
use nano_protocol::event::{Event, EventType};
use nano_protocol::message::{Message, Role};
use nano_protocol::task::{Task, TaskState};
use serde_json::Value;

use crate::commands::approvals::question;
use crate::output::{Output, Style, columns};
use crate::summary::{brief, failing, label, member, text};
use crate::visible::{cut, one_line};

const FRAMES: [&str; 4] = ["-", "\\", "|", "/"];

/// Who looks on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// The one who submitted the task: the answer is what counts.
    Run,
    /// An onlooker: every message counts.
    Attach,
}

/// What has been shown so far.
pub struct Live<'a> {
    output: &'a Output,
    view: View,
    /// The pieces of the reply that streams now: what is said in between does not make it another reply.
    streamed: String,
    /// Whether the last line of stdout is not ended yet.
    open: bool,
    /// The last whole text on stdout.
    shown: Option<String>,
    /// Calls that run: id and label.
    running: Vec<(String, String)>,
    /// Whether a task is known to run.
    busy: bool,
    drawn: bool,
    began: Instant,
}

impl<'a> Live<'a> {
    /// Starts with nothing shown.
    pub fn new(output: &'a Output, view: View) -> Self {
        let (streamed, shown, running, began) = (String::new(), None, Vec::new(), Instant::now());
        Self { output, view, streamed, open: false, shown, running, busy: false, drawn: false, began }
    }

    /// Shows one event.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        let data = &event.data;
        self.follow(event.kind);
        match event.kind {
            EventType::TextDelta => self.piece(text(data, "text")),
            EventType::MessageAdded => member(data, "message").map_or(Ok(()), |message| self.message(&message)),
            EventType::ToolStarted => {
                self.tool_started(data);
                Ok(())
            }
            EventType::ToolFinished => self.tool_finished(data),
            EventType::TaskFinished | EventType::TaskInterrupted => {
                self.wipe();
                match member(data, "task") {
                    Some(task) if self.view == View::Attach => self.task_ended(&task),
                    _ => Ok(()),
                }
            }
            _ => self.remark(event),
        }
    }

    /// Keeps in mind whether a task runs and which reply streams.
    fn follow(&mut self, kind: EventType) {
        match kind {
            EventType::TaskFinished | EventType::TaskInterrupted | EventType::SessionClosed => self.busy = false,
            EventType::TaskStarted | EventType::ToolStarted | EventType::TextDelta | EventType::ReasoningDelta => {
                self.busy = true;
            }
            // Another try or another turn: its reply begins anew.
            EventType::TurnStarted | EventType::ModelRetry | EventType::ModelFallback => {
                self.busy = true;
                self.streamed.clear();
            }
            _ => {}
        }
    }

    /// Moves the line that shows what is going on.
    pub fn tick(&mut self) {
        if !self.output.live || !self.busy || self.open {
            return;
        }
        let doing = self.running.last().map_or("thinking", |(_, label)| label);
        let frame = FRAMES[usize::try_from(self.began.elapsed().as_millis() / 120).unwrap_or(0) % FRAMES.len()];
        let width = columns().unwrap_or(80).saturating_sub(1);
        self.output.redraw(&cut(&format!("{frame} {doing}"), width));
        self.drawn = true;
    }

    /// Writes one line beside the answer.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        self.fresh_line()?;
        self.output.note(text);
        Ok(())
    }

    /// Ends with the answer, where it is not on stdout yet.
    pub fn end(&mut self, task: &Task) -> io::Result<()> {
        self.fresh_line()?;
        match &task.result {
            Some(answer) if self.shown.as_ref() != Some(answer) && has_answer(task) => self.output.answer(answer),
            _ => Ok(()),
        }
    }

    fn piece(&mut self, piece: &str) -> io::Result<()> {
        if !self.output.terminal {
            return Ok(());
        }
        self.streamed.push_str(piece);
        self.write(piece)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.wipe();
        self.open = if text.is_empty() { self.open } else { !text.ends_with('\n') };
        self.output.piece(text)
    }

    fn message(&mut self, message: &Message) -> io::Result<()> {
        match message.role {
            Role::Assistant => self.reply(&message.content),
            Role::Tool => match failing(message) {
                Some(how) => self.note(&format!("  {}: {how}", message.tool_name.as_deref().unwrap_or("tool"))),
                None => Ok(()),
            },
            Role::User if self.view == View::Run => Ok(()),
            Role::User | Role::Steering | Role::Followup => {
                self.note(&format!("[{}] {}", message.role, message.content))
            }
        }
    }

    fn reply(&mut self, content: &str) -> io::Result<()> {
        let whole = self.output.terminal || self.view == View::Attach;
        if !whole || content.is_empty() {
            return self.fresh_line();
        }
        let streamed = std::mem::take(&mut self.streamed);
        if let Some(rest) = content.strip_prefix(streamed.as_str()) {
            self.write(rest)?;
        } else if !streamed.starts_with(content) {
            // Pieces were lost or belong to a try that was given up.
            self.fresh_line()?;
            self.write(content)?;
        }
        self.shown = Some(content.to_owned());
        self.fresh_line()
    }

    fn tool_started(&mut self, data: &Value) {
        let arguments = data.get("arguments").and_then(Value::as_object);
        let label = label(text(data, "name"), arguments);
        self.running.push((text(data, "call").to_owned(), label));
        self.tick();
    }

    fn tool_finished(&mut self, data: &Value) -> io::Result<()> {
        let call = text(data, "call");
        let known = self.running.iter().position(|(id, _)| id == call).map(|at| self.running.remove(at).1);
        let label = known.unwrap_or_else(|| one_line(text(data, "name")));
        let how = ["not_run", "outcome"].into_iter().find_map(|key| Some(format!(" ({})", data.get(key)?.as_str()?)));
        self.fresh_line()?;
        let (style, mark) = match data.get("ok").and_then(Value::as_bool) {
            Some(true) => (Style::Good, "✓"),
            _ => (Style::Bad, "✗"),
        };
        self.output.marked(style, mark, &format!("{label}{}", how.unwrap_or_default()));
        Ok(())
    }

    fn task_ended(&mut self, task: &Task) -> io::Result<()> {
        self.running.clear();
        let reason = task.reason.map_or(String::new(), |reason| format!(" ({reason})"));
        self.note(&format!("{} {}{reason}", task.id, task.state))
    }

    /// Says what happened beside texts and calls, where it matters to who looks on.
    fn remark(&mut self, event: &Event) -> io::Result<()> {
        let data = &event.data;
        match event.kind {
            EventType::ModelRetry => {
                let why = data.get("error").map(brief).unwrap_or_default();
                let delay = data.get("delay_ms").and_then(Value::as_u64).unwrap_or(0);
                self.note(&format!("the model did not answer ({why}): again in {delay} ms"))
            }
            EventType::ModelFallback
            | EventType::SandboxLost
            | EventType::SteeringRejected
            | EventType::SteeringCarried
            | EventType::ContextCompacted
            | EventType::Warning => self.note(&format!("{}: {}", event.kind, brief(data))),
            EventType::ApprovalRequested => {
                let asked = member::<Approval>(data, "approval").map(|approval| question(&approval));
                asked.map_or(Ok(()), |asked| self.note(&asked))
            }
            EventType::ApprovalAnswered => {
                let ended = member::<Approval>(data, "approval");
                ended.map_or(Ok(()), |it| self.note(&format!("{} {}: {}", it.id, it.state, it.what)))
            }
            EventType::TaskInterrupted | EventType::Gap => self.note(event.kind.as_str()),
            _ => Ok(()),
        }
    }

    fn wipe(&mut self) {
        if std::mem::take(&mut self.drawn) {
            self.output.redraw("");
        }
    }

    /// Ends the reply that streams, so that what comes next begins a line.
    fn fresh_line(&mut self) -> io::Result<()> {
        self.wipe();
        if std::mem::take(&mut self.open) { self.output.piece("\n") } else { Ok(()) }
    }
}

/// Tells whether `result` is an answer: the text of a task that was stopped half-way is none.
pub fn has_answer(task: &Task) -> bool {
    matches!(task.state, TaskState::Succeeded | TaskState::Failed)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::expect_used, reason = "tests")]

    use clap::Parser as _;
    use serde_json::json;

    use super::{Live, Output, View};
    use crate::cli::Cli;

    #[test]
    fn something_goes_on_while_a_task_runs_only() {
        let cli = Cli::try_parse_from(["nanoctl", "-q", "attach"]).expect("a command line");
        let mut output = Output::new(&cli.global);
        output.live = true;
        let mut live = Live::new(&output, View::Attach);
        live.tick();
        assert!(!live.drawn);
        for (kind, busy) in [
            ("session.booted", false),
            ("task.queued", false),
            ("task.started", true),
            ("message.added", true),
            ("task.finished", false),
            ("steering.carried", false),
            ("turn.started", true),
            ("task.interrupted", false),
            ("tool.started", true),
            ("session.closed", false),
        ] {
            let event = json!({"at": "2027-01-31T08:00:00.000Z", "type": kind, "data": {}});
            live.event(&serde_json::from_value(event).expect("an event")).expect("a terminal or none");
            live.tick();
            assert_eq!(live.drawn, busy, "{kind}");
            live.wipe();
        }
    }
}
