//! Programs that run others: which, as far as their words tell.

use super::commands::name;
use super::shell::{Known, Word};

/// What a command runs.
pub(super) enum Inner {
    Command {
        words: Vec<Word>,
        /// Whether it is run in another folder.
        moves: bool,
    },
    Script(String),
    Unseen(&'static str),
}

/// Programs that run another one: its options that take a value, and how many operands stand before the command.
const RUNNERS: &[(&str, &str, usize)] = &[
    ("env", "-u --unset -C --chdir -a --argv0", 0),
    ("sudo", "-u -g -h -p -C -r -t -D -R -T -U --user --group --host --prompt --chdir --chroot", 0),
    ("doas", "-u -C", 0),
    ("pkexec", "--user", 0),
    ("runuser", "-u -g -G --user --group --supp-group", 0),
    ("setpriv", "--reuid --regid --groups --inh-caps --bounding-set", 0),
    ("systemd-run", "-p -u -E -M -H -t --property --unit --setenv --uid --gid --slice", 0),
    ("command", "", 0),
    ("builtin", "", 0),
    ("exec", "-a", 0),
    ("time", "-f -o --format --output", 0),
    ("nohup", "", 0),
    ("setsid", "", 0),
    ("nice", "-n --adjustment", 0),
    ("ionice", "-c -n -p --class --classdata", 0),
    ("chrt", "-T -P -D", 1),
    ("taskset", "", 1),
    ("prlimit", "-o --output", 0),
    ("timeout", "-s -k --signal --kill-after", 1),
    ("stdbuf", "-i -o -e --input --output --error", 0),
    ("unbuffer", "", 0),
    ("flock", "-w -E --timeout --wait --conflict-exit-code", 1),
    ("chroot", "", 1),
    ("unshare", "-S -G -R -w --root --wd", 0),
    ("nsenter", "-t -S -G --target --setuid --setgid", 0),
    ("bwrap", "", 0),
    ("fakeroot", "-l -s -i -b", 0),
    ("firejail", "", 0),
    ("dbus-run-session", "", 0),
    ("xvfb-run", "-e -f -n -p -s -w", 0),
    ("strace", "-a -b -e -o -p -s -u -E -I -O -P -S -X", 0),
    ("ltrace", "-a -e -o -p -s -u -l -n", 0),
    ("valgrind", "", 0),
    ("watch", "-n -q --interval --equexit", 0),
    ("xargs", "-I -n -P -L -d -a -E -s --max-args --max-procs --max-lines --delimiter --arg-file", 0),
    ("parallel", "-j -n -N -L -I -a -S -P -d -s --jobs --arg-file --sshlogin", 0),
    ("busybox", "", 0),
    ("toybox", "", 0),
    ("setarch", "", 1),
    ("linux32", "", 0),
    ("linux64", "", 0),
    ("i386", "", 0),
    ("x86_64", "", 0),
    ("uname26", "", 0),
];
/// Those in which the command has other folders, and options that have that effect.
const MOVERS: [&str; 4] = ["chroot", "unshare", "nsenter", "bwrap"];
const MOVES: [&str; 4] = ["-C", "-D", "--chdir", "--wd"];
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish"];
/// What makes `find` run something or change files.
const RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
/// The same for `fd`.
const SEARCHES: [&str; 4] = ["-x", "-X", "--exec", "--exec-batch"];
const CHANGES: [&str; 5] = ["-delete", "-fls", "-fprint", "-fprint0", "-fprintf"];
const HIDDEN: Inner = Inner::Unseen("a shell reads what is not seen here");

/// Returns what a command runs besides itself.
pub(super) fn inner(words: &[Word]) -> Vec<Inner> {
    let name = name(words);
    let behind = words.get(1..).unwrap_or_default();
    match name {
        "su" | "runuser" | "script" | "sg" => match command_option(behind) {
            Some(script) => script_of(&[script]),
            None if name == "runuser" => run_by(name, behind),
            None => vec![HIDDEN],
        },
        "find" => found(behind, &RUNS, &roots(behind)),
        "fd" | "fdfind" => found(&with_names(behind), &SEARCHES, &searched(behind)),
        // It only says what that is.
        "command" if behind.first().is_some_and(|word| is_question(&word.text)) => Vec::new(),
        "eval" => script_of(behind),
        "trap" => script_of(behind.get(..1).unwrap_or_default()).into_iter().chain([HIDDEN]).collect(),
        "source" | "." => vec![Inner::Unseen("it reads a script")],
        "alias" => vec![Inner::Unseen("it defines commands")],
        _ if SHELLS.contains(&name) => shell(behind),
        _ if RUNNERS.iter().any(|(runner, ..)| *runner == name) => run_by(name, behind),
        _ => Vec::new(),
    }
}

fn run_by(name: &str, words: &[Word]) -> Vec<Inner> {
    let (_, takes, operands) = RUNNERS.iter().find(|(runner, ..)| *runner == name).copied().unwrap_or_default();
    let (mut rest, mut skip, mut moves) = (words, operands, MOVERS.contains(&name));
    while let Some((first, behind)) = rest.split_first() {
        let text = first.plain().unwrap_or("\0");
        if let Some(text) = split_string(text).filter(|_| name == "env") {
            let all = std::iter::once(text).chain(behind.iter().map(|word| word.text.as_str()));
            return script_of_text(&all.collect::<Vec<_>>().join(" "));
        }
        if name == "flock" && matches!(text, "-c" | "--command") {
            return script_of(behind.get(..1).unwrap_or_default());
        }
        let is_option = text.starts_with('-');
        let sets = matches!(name, "env" | "sudo") && text.contains('=');
        if !is_option && !sets && skip == 0 {
            break;
        }
        skip -= usize::from(!is_option && !sets);
        moves |= MOVES.iter().any(|option| text.starts_with(option));
        rest = if takes_next(takes, text) { behind.get(1..).unwrap_or_default() } else { behind };
    }
    if rest.is_empty() {
        return vec![Inner::Unseen("it may run another program")];
    }
    match name {
        "watch" | "parallel" if rest.iter().all(|word| word.known == Known::Plain) => {
            let text = rest.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            script_of_text(&if name == "watch" { text } else { format!("{text} \0") })
        }
        "xargs" | "parallel" => {
            let words = filled(rest, replaced(words)).chain([Word::unknown()]).collect();
            vec![Inner::Command { words, moves }]
        }
        _ => vec![Inner::Command { words: rest.to_vec(), moves }],
    }
}

/// Tells whether an option has its value in the next word.
fn takes_next(takes: &str, text: &str) -> bool {
    let mut known = takes.split(' ');
    if text.starts_with("--") || !text.starts_with('-') {
        return known.any(|option| option == text);
    }
    let takes = |c: &char| takes.split(' ').any(|option| option.strip_prefix('-') == Some(c.to_string().as_str()));
    let behind: String = text.chars().skip(1).skip_while(|c| !takes(c)).collect();
    behind.chars().count() == 1
}

/// Returns the value that an option of `env` has which is a command line.
fn split_string(text: &str) -> Option<&str> {
    if let Some(long) = text.strip_prefix("--s") {
        return Some(long.split_once('=').map_or("", |(_, value)| value));
    }
    let (before, value) = text.strip_prefix('-')?.split_once('S')?;
    before.chars().all(|c| "iv0".contains(c)).then_some(value)
}

/// Returns what `xargs` puts names in the place of.
fn replaced(words: &[Word]) -> &str {
    let mut words = words.iter().map(|word| word.text.as_str());
    let value = words.by_ref().find_map(|text| text.strip_prefix("-I").or(text.strip_prefix("--replace=")));
    match value {
        Some("") => words.next().unwrap_or("{}"),
        Some(value) => value,
        None => "{}",
    }
}

/// Returns words in which anything takes the place of `hole`.
fn filled<'a>(words: &'a [Word], hole: &'a str) -> impl Iterator<Item = Word> + 'a {
    words.iter().map(move |word| {
        let known = if word.text.contains(hole) { Known::Expands } else { word.known };
        Word { text: word.text.replace(hole, "\0"), known }
    })
}

/// Returns the command line that an option `-c` has.
fn command_option(words: &[Word]) -> Option<Word> {
    words.iter().enumerate().find_map(|(at, word)| {
        let text = word.text.as_str();
        let with = |text: &str| Some(Word { text: text.to_owned(), known: word.known });
        if text.starts_with("--c") || text.starts_with("--session-c") {
            return text.split_once('=').map_or_else(|| words.get(at + 1).cloned(), |(_, value)| with(value));
        }
        let (_, value) = text.strip_prefix('-').filter(|text| !text.starts_with('-'))?.split_once('c')?;
        if value.is_empty() { words.get(at + 1).cloned() } else { with(value) }
    })
}

fn is_question(option: &str) -> bool {
    option.strip_prefix('-').is_some_and(|letters| letters.contains(['v', 'V']))
}

/// Returns where `find` begins.
pub(super) fn roots(arguments: &[Word]) -> Vec<Word> {
    let options = |word: &&Word| matches!(word.text.as_str(), "-H" | "-L" | "-P") || word.text.starts_with("-O");
    let behind = arguments.iter().skip_while(options);
    or_here(behind.take_while(|word| !word.text.starts_with(['-', '(', '!'])).cloned().collect())
}

/// Returns where `fd` begins: its first operand is what it looks for.
fn searched(arguments: &[Word]) -> Vec<Word> {
    let before = arguments.iter().take_while(|word| !SEARCHES.contains(&word.text.as_str()));
    or_here(before.filter(|word| !word.text.starts_with('-')).skip(1).cloned().collect())
}

fn or_here(roots: Vec<Word>) -> Vec<Word> {
    if roots.is_empty() { vec![Word { text: ".".into(), known: Known::Plain }] } else { roots }
}

/// Returns the arguments of `fd`, which names what it has found at the end where nothing says where.
fn with_names(arguments: &[Word]) -> Vec<Word> {
    let behind = arguments.iter().skip_while(|word| !SEARCHES.contains(&word.text.as_str()));
    let names = behind.clone().count() > 0 && behind.clone().all(|word| !word.text.contains('{'));
    let name = Word { text: "{}".into(), known: Known::Plain };
    arguments.iter().cloned().chain(Some(name).filter(|_| names)).collect()
}

fn found(words: &[Word], runs: &[&str], roots: &[Word]) -> Vec<Inner> {
    let mut all = Vec::new();
    for (at, _) in words.iter().enumerate().filter(|(_, word)| runs.contains(&word.text.as_str())) {
        let behind = words.get(at + 1..).unwrap_or_default();
        let end = behind.iter().position(|word| word.text == ";" || word.text == "+").unwrap_or(behind.len());
        let command = behind.get(..end).unwrap_or_default();
        all.extend(roots.iter().map(|root| Inner::Command { words: below(command, root), moves: false }));
    }
    if words.iter().any(|word| CHANGES.contains(&word.text.as_str())) {
        all.push(Inner::Unseen("it changes files"));
    }
    if words.iter().any(|word| runs.iter().chain(&CHANGES).any(|option| may_be(word, option))) {
        all.push(Inner::Unseen("it may run another program"));
    }
    all
}

/// Returns the words of a command with a name below `root` in the place of `{}`.
fn below(command: &[Word], root: &Word) -> Vec<Word> {
    let name = format!("{}/{{}}", root.text);
    let fill = |word: &Word| {
        let known = if word.text.contains("{}") { word.known.max(root.known).max(Known::Globs) } else { word.known };
        Word { text: word.text.replace("{}", &name), known }
    };
    command.iter().map(fill).collect()
}

/// Tells whether something else that a word is expanded to may be this option.
fn may_be(word: &Word, option: &str) -> bool {
    let (start, end) = match word.known {
        Known::Plain => return false,
        Known::Expands => return true,
        Known::Globs => (word.text.find(['*', '?', '[', '{']), word.text.rfind(['*', '?', ']', '}'])),
    };
    let (Some(start), Some(end)) = (start, end) else { return false };
    let suffix = word.text.get(end + 1..).unwrap_or_default();
    option.starts_with(word.text.get(..start).unwrap_or_default()) && option.ends_with(suffix)
}

fn shell(words: &[Word]) -> Vec<Inner> {
    let (mut rest, mut is_line) = (words.iter(), false);
    while let Some(word) = rest.next() {
        let text = word.plain().unwrap_or("\0");
        if text.starts_with("--") {
            rest = rest
                .as_slice()
                .get(usize::from(matches!(text, "--rcfile" | "--init-file"))..)
                .unwrap_or_default()
                .iter();
        } else if let Some(letters) = text.strip_prefix(['-', '+']) {
            is_line |= text.starts_with('-') && letters.contains('c');
            rest = rest.as_slice().get(usize::from(letters.contains(['o', 'O']))..).unwrap_or_default().iter();
        } else if is_line {
            return script_of(std::slice::from_ref(word));
        } else {
            break;
        }
    }
    vec![HIDDEN]
}

fn script_of(words: &[Word]) -> Vec<Inner> {
    let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    script_of_text(&text)
}

/// Reads a text as a script; what is not known of it may be anything.
fn script_of_text(text: &str) -> Vec<Inner> {
    let script = Inner::Script(text.to_owned());
    if text.contains('\0') { vec![script, HIDDEN] } else { vec![script] }
}
