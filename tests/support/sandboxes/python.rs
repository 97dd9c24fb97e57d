//! A Python that keeps its variables from one call to the next.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Reads a JSON string of code a line, runs it in one namespace, shows the last expression as a notebook does, and
/// writes a line `[text, images, error]`. What is printed by child processes counts too. `show_png(base64)` makes an
/// image.
const DRIVER: &str = r#"
import ast, json, os, sys, tempfile, traceback
asked, told = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
printed = tempfile.TemporaryFile()
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(printed.fileno(), 1)
os.dup2(printed.fileno(), 2)
images = []
names = {"__name__": "__main__", "show_png": lambda data: images.append({"image/png": data})}
for line in asked:
    os.ftruncate(1, 0), os.lseek(1, 0, 0), images.clear()
    error = None
    try:
        tree = ast.parse(json.loads(line))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<cell>", "exec"), names)
        if last:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
            if value is not None:
                print(repr(value))
    except BaseException:
        error = "\x1b[0;31m" + traceback.format_exc() + "\x1b[0m"
    sys.stdout.flush(), sys.stderr.flush(), os.lseek(1, 0, 0)
    text = printed.read().decode("utf-8", "replace")
    print(json.dumps([text, images, error]), file=told, flush=True)
"#;

/// What a piece of code came to.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// What it printed.
    pub text: String,
    /// What it drew.
    pub images: Value,
    /// What it failed of.
    pub error: Option<String>,
    /// How many came before it in its interpreter, and itself.
    pub number: usize,
}

/// A running interpreter.
pub struct Python {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    count: usize,
}

impl Python {
    /// Makes the command that starts one.
    pub fn command() -> Command {
        let mut command = Command::new("python3");
        command.args(["-c", DRIVER]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// Takes over the process that [`Self::command`] has become.
    pub fn over(mut child: Child) -> Self {
        let stdin = child.stdin.take().expect("a piped input");
        let output = BufReader::new(child.stdout.take().expect("a piped output"));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, stdin, lines, count: 0 }
    }

    /// Runs code; nothing comes back from an interpreter that died or took too long, which is of no further use.
    pub fn run(&mut self, code: &str, timeout: Duration) -> Option<Cell> {
        writeln!(self.stdin, "{}", json!(code)).ok()?;
        let line = self.lines.recv_timeout(timeout).ok()?;
        let (text, images, error) = serde_json::from_str(&line).ok()?;
        self.count += 1;
        Some(Cell { text, images, error, number: self.count })
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
