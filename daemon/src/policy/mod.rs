//! What of a model's calls runs, what a person is asked about, and what is denied. Pure: it reads texts and says.
#![doc = include_str!("README.md")]

mod address;
pub mod commands;
pub mod danger;
pub mod rules;
mod runners;
pub mod shell;

use danger::Inside;
use rules::{DANGEROUS, Means, Rule};

/// What becomes of a call; the later ones are the stricter ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not run.
    Deny,
}

impl Level {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Allow, Self::Ask, Self::Deny].into_iter().find(|level| level.as_str() == word)
    }
}

/// What a call is about.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// A command line.
    Command(&'a str),
    /// A path with its links followed: as the workspace has it, where it lies there, and as a whole.
    Path {
        /// From the workspace.
        relative: Option<&'a str>,
        /// From the root.
        absolute: &'a str,
    },
    /// A path of which nobody can tell where it leads.
    Unclear,
    /// The address of something on the network.
    Address(&'a str),
    /// Something that rules do not look into.
    Other,
}

/// A call.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// What it is about.
    pub subject: Subject<'a>,
    /// The same as a text that two calls share only where they ask for the same.
    pub text: &'a str,
    /// All its arguments as such a text, paths in them with their links followed.
    pub arguments: &'a str,
    /// Tells what lies in the workspace.
    pub inside: Inside<'a>,
}

/// What becomes of a call, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What becomes of it.
    pub level: Level,
    /// The rule or the danger that says so; empty where nothing does.
    pub why: String,
    /// Whether no rule says so: it is advice that nobody has asked for.
    pub is_advice: bool,
}

impl Verdict {
    /// What becomes of a call because of something else than advice.
    pub fn new(level: Level, why: impl Into<String>) -> Self {
        Self { level, why: why.into(), is_advice: false }
    }

    fn stricter(self, other: Self) -> Self {
        if (other.level, !other.is_advice) > (self.level, !self.is_advice) { other } else { self }
    }

    fn by(level: Level, rule: &str) -> Self {
        Self::new(level, format!("rule \"{rule}\""))
    }

    fn perhaps(rule: &str) -> Self {
        Self::new(Level::Ask, format!("rule \"{rule}\" may apply"))
    }
}

/// An agent's rules.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    rules: Vec<Rule>,
}

impl Policy {
    /// Reads rules; says what is wrong with the first bad one.
    pub fn parse(rules: &[String]) -> Result<Self, String> {
        rules.iter().map(|rule| Rule::parse(rule)).collect::<Result<_, _>>().map(|rules| Self { rules })
    }

    /// Returns the rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Says what becomes of a call.
    pub fn judge(&self, call: &Call<'_>) -> Verdict {
        let exact = self.rules.iter().rev().find(|rule| rule.is_exactly(call));
        let exact = exact.map(|rule| Verdict::by(rule.level, &rule.text));
        let (verdict, danger) = match call.subject {
            Subject::Command(line) => {
                let reading = commands::read(line);
                let danger = danger::danger(&reading, call.inside);
                (self.of_commands(call.tool, &reading), danger.map(|what| self.of_danger(&what)))
            }
            subject => {
                let pick = self.pick(call.tool, |rule| rule.means(&subject));
                (pick.unwrap_or_else(|| self.usual(call.tool)), None)
            }
        };
        let verdict = danger.into_iter().fold(verdict, Verdict::stricter);
        match exact {
            // Somebody has allowed just this; what is denied stays so.
            Some(exact) if verdict.level < Level::Deny || exact.level == Level::Deny => exact,
            _ => verdict,
        }
    }

    fn of_danger(&self, what: &str) -> Verdict {
        let rule = self.rules.iter().rev().find(|rule| rule.is_dangerous());
        let level = rule.map_or(Level::Ask, |rule| rule.level);
        Verdict { is_advice: rule.is_none(), ..Verdict::new(level, format!("{DANGEROUS}: it {what}")) }
    }

    fn of_commands(&self, tool: &str, reading: &commands::Reading) -> Verdict {
        let of_one = |command| self.pick(tool, |rule| rule.means_command(command)).unwrap_or_else(|| self.usual(tool));
        let all = reading.commands.iter().map(of_one);
        let verdict = all.reduce(Verdict::stricter).unwrap_or_else(|| self.usual(tool));
        let Some(why) = reading.obscure else { return verdict };
        // What cannot be seen may be what a rule forbids, and is not what a rule allows.
        let strict = |rule: &&Rule| rule.is_about(tool) && rule.names_commands() && rule.level > Level::Allow;
        let rule = self.rules.iter().filter(strict).max_by_key(|rule| rule.level);
        let hidden = rule.map(|rule| Verdict::new(Level::Ask, format!("rule \"{}\" may apply: {why}", rule.text)));
        hidden.into_iter().fold(verdict.stricter(self.usual(tool)), Verdict::stricter)
    }

    /// Picks what rules with a pattern say: the last one that means the call, but never less than what one denies.
    fn pick(&self, tool: &str, means: impl Fn(&Rule) -> Means) -> Option<Verdict> {
        let about = self.rules.iter().filter(|rule| rule.is_about(tool) && rule.has_pattern());
        let said = about.filter_map(|rule| match (means(rule), rule.level) {
            (Means::Surely, level) => Some((rule, Verdict::by(level, &rule.text))),
            (Means::Perhaps, Level::Ask | Level::Deny) => Some((rule, Verdict::perhaps(&rule.text))),
            (Means::Perhaps | Means::No, _) => None,
        });
        let said: Vec<_> = said.collect();
        let last = said.last().map(|(_, verdict)| verdict.clone())?;
        let denied = said.into_iter().filter(|(rule, _)| rule.level == Level::Deny).map(|(_, verdict)| verdict);
        Some(denied.fold(last, Verdict::stricter))
    }

    /// Says what becomes of calls of a tool that no pattern means.
    fn usual(&self, tool: &str) -> Verdict {
        let about = || self.rules.iter().rev().filter(|rule| rule.is_about(tool) && !rule.has_pattern());
        let rule = about().find(|rule| rule.level == Level::Deny).or(about().next());
        match rule {
            Some(rule) => Verdict::by(rule.level, &rule.text),
            None if self.has_list(tool) => Verdict::new(Level::Ask, format!("no rule of {tool} covers it")),
            None => Verdict::new(Level::Allow, ""),
        }
    }

    /// Tells whether rules name what of a tool is allowed, and none says what becomes of the rest.
    fn has_list(&self, tool: &str) -> bool {
        let about = || self.rules.iter().filter(|rule| rule.is_about(tool));
        about().any(|rule| rule.has_pattern() && rule.level == Level::Allow && !rule.is_exact())
            && !about().any(|rule| !rule.has_pattern())
    }
}

/// Says what becomes of a call that several policies are about: the strictest of what they say.
pub fn judge(policies: &[Policy], call: &Call<'_>) -> Verdict {
    let verdicts = policies.iter().map(|policy| policy.judge(call));
    verdicts.reduce(Verdict::stricter).unwrap_or(Verdict::new(Level::Allow, ""))
}

#[cfg(test)]
mod tests;
