//! What no command line should do unasked: a hint for people, not a fence. It reads commands, never texts.

use super::commands::{Command, Reading, joined};
use super::runners::roots;
use super::shell::{Known, Word};

/// Tells whether a path, relative to the folder of the command line or absolute, lies in the workspace.
pub type Inside<'a> = &'a dyn Fn(&str) -> bool;

/// Returns what is dangerous about a command line, if anything is.
pub fn danger(reading: &Reading, inside: Inside<'_>) -> Option<String> {
    reading.commands.iter().find_map(|command| of_command(command, inside))
}

fn of_command(command: &Command, inside: Inside<'_>) -> Option<String> {
    let arguments = command.words.get(1..).unwrap_or_default();
    let found = match command.name() {
        "rm" if is_recursive(arguments, &['r', 'R']) => {
            outside(command, operands(arguments), inside).map(|path| removes(&path))
        }
        "chmod" | "chown" | "chgrp" if is_recursive(arguments, &['R']) => {
            let changed = operands(arguments).skip(usize::from(!names_its_mode(arguments)));
            outside(command, changed, inside).map(|path| format!("changes all below {path}, outside the workspace"))
        }
        "find" if deletes(arguments) => outside(command, roots(arguments).iter(), inside).map(|path| removes(&path)),
        "dd" => arguments.iter().find_map(|word| written(command, word)),
        "tee" | "shred" | "truncate" => operands(arguments).find_map(|word| device(command, &word.text)),
        "cp" | "mv" | "install" => {
            operands(arguments).last().and_then(|word| device(command, &word.text)).or_else(|| into(command, arguments))
        }
        "format" => is_drive(command).then(|| "format wipes what it is given".into()),
        // One of a project is not the machine's.
        _ if command.words.first().is_some_and(|word| !word.text.starts_with('/') && word.text.contains('/')) => None,
        name => halts(name, arguments).or_else(|| formats(name, arguments)),
    };
    found.or_else(|| command.targets.iter().find_map(|word| device(command, &word.text)))
}

fn removes(path: &str) -> String {
    format!("removes {path} and all below it, outside the workspace")
}

/// Returns what is no option.
fn operands(arguments: &[Word]) -> impl Iterator<Item = &Word> {
    let end = arguments.iter().position(|word| word.text == "--").unwrap_or(arguments.len());
    arguments.iter().enumerate().filter(move |(at, word)| *at > end || !is_option(word)).map(|(_, word)| word)
}

/// Tells whether a word is an option and nothing else: what is expanded in it may be more words.
fn is_option(word: &Word) -> bool {
    word.text.starts_with('-') && word.known != Known::Expands
}

fn is_recursive(arguments: &[Word], letters: &[char]) -> bool {
    let options = arguments.iter().take_while(|word| word.text != "--").filter(|word| word.text.starts_with('-'));
    let mut options = options.map(|word| word.text.as_str());
    options.any(|word| if word.starts_with("--") { word.starts_with("--r") } else { word.contains(letters) })
}

/// Returns the first of these paths that does not lie in the workspace, as far as one can tell.
fn outside<'a>(command: &Command, paths: impl Iterator<Item = &'a Word>, inside: Inside<'_>) -> Option<String> {
    let leaves = |word: &&Word| {
        let home = word.known == Known::Globs && word.text.starts_with('~');
        let place = command.folder.as_ref().or(word.text.starts_with('/').then_some(&word.text));
        let seen = place.map(|folder| joined(folder, &word.text)).filter(|_| word.known != Known::Expands && !home);
        !seen.is_some_and(|path| inside(&path))
    };
    let mut paths = paths;
    paths.find(leaves).map(|word| word.text.replace('\0', "$…"))
}

/// Tells whether the mode or owner stands in an option, not in the first operand.
fn names_its_mode(arguments: &[Word]) -> bool {
    let is_mode = |text: &str| !text.is_empty() && text.chars().all(|c| "rwxXst".contains(c));
    let names = |text: &str| text.starts_with("--reference") || text.strip_prefix('-').is_some_and(is_mode);
    arguments.iter().any(|word| names(&word.text))
}

/// Says that a device is written to by the name of its folder.
fn into(command: &Command, arguments: &[Word]) -> Option<String> {
    let texts = || arguments.iter().map(|word| word.text.as_str());
    let next = texts().zip(texts().skip(1)).find_map(|(option, next)| (option == "-t").then_some(next));
    let folder = texts().find_map(|text| text.strip_prefix("--target-directory=")).or(next)?;
    device(command, &format!("{folder}/*"))
}

fn deletes(arguments: &[Word]) -> bool {
    let runs = |pair: &[Word]| {
        let name = pair.last().map_or("", |word| word.text.as_str()).rsplit('/').next().unwrap_or_default();
        let exec = pair.first().is_some_and(|word| word.text.starts_with("-exec"));
        exec && matches!(name, "rm" | "unlink" | "shred")
    };
    arguments.iter().any(|word| word.text == "-delete") || arguments.windows(2).any(runs)
}

/// Says what `dd` writes over with this argument, also where it may be anything.
fn written(command: &Command, word: &Word) -> Option<String> {
    let Some(path) = word.text.strip_prefix("of=") else {
        let hides = word.text.starts_with('\0') || word.text.starts_with("{of=");
        return hides.then(|| "writes over what it does not name".into());
    };
    let hides = path.contains('\0') && !path.starts_with("./");
    device(command, path).or_else(|| hides.then(|| format!("writes over {}", path.replace('\0', "$…"))))
}

/// Says that a device is written to, unless it is one that takes anything.
fn device(command: &Command, path: &str) -> Option<String> {
    let path = place(&joined(command.folder.as_deref().unwrap_or_default(), path));
    let name = path.strip_prefix("/dev/")?;
    let harmless = ["null", "zero", "full", "tty", "stdin", "stdout", "stderr", "random", "urandom", "ptmx"];
    let is_harmless = harmless.contains(&name)
        || ["fd", "shm", "pts", "tcp", "udp"].contains(&name.split('/').next().unwrap_or_default());
    (!is_harmless && !name.is_empty()).then(|| format!("writes over the device {}", path.replace('\0', "$…")))
}

/// Returns a path without its empty parts, and `.` and `..` in it.
fn place(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    format!("{}{}", if path.starts_with('/') { "/" } else { "" }, parts.join("/"))
}

/// Tells whether `format` is the one that wipes a drive, not a program of a project.
fn is_drive(command: &Command) -> bool {
    let is_bare = command.words.first().and_then(Word::plain) == Some("format");
    let arguments = command.words.get(1..).unwrap_or_default();
    let drive = |word: &Word| match word.text.as_bytes() {
        [letter, b':', rest @ ..] => letter.is_ascii_alphabetic() && matches!(rest, [] | [b'\\' | b'/']),
        _ => device(command, &word.text).is_some(),
    };
    is_bare && operands(arguments).any(drive)
}

fn formats(name: &str, arguments: &[Word]) -> Option<String> {
    const FORMATS: [&str; 8] = ["mkfs", "mke2fs", "mkswap", "mkdosfs", "wipefs", "blkdiscard", "sgdisk", "sfdisk"];
    let formats = FORMATS.contains(&name) || name.starts_with("mkfs.");
    (formats && operands(arguments).next().is_some()).then(|| format!("{name} wipes what it is given"))
}

fn halts(name: &str, arguments: &[Word]) -> Option<String> {
    let mut words = operands(arguments).map(|word| word.text.as_str());
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // With -c a shutdown is called off.
    let asks = arguments.iter().any(|word| matches!(word.text.as_str(), "--help" | "--version" | "-c"));
    let unit = if matches!(first, "isolate" | "start") { second.trim_end_matches(".target") } else { first };
    let halts = match name {
        "shutdown" | "reboot" | "poweroff" | "halt" => !asks,
        "systemctl" | "loginctl" => {
            matches!(unit, "poweroff" | "reboot" | "halt" | "kexec" | "suspend" | "hibernate" | "emergency" | "rescue")
        }
        "init" | "telinit" => matches!(first, "0" | "1" | "6"),
        _ => false,
    };
    halts.then(|| format!("{name} stops this machine"))
}
