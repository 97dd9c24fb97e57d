//! Reads TOML tables strictly: every key known, every value of its type, every problem with its line.

use std::cell::RefCell;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::{Network, quantity};

/// The text that is read and what was wrong with it so far.
pub struct Reader<'a> {
    file: String,
    text: &'a str,
    problems: RefCell<Vec<(usize, String)>>,
}

/// One table of the file.
pub struct Section<'a> {
    reader: &'a Reader<'a>,
    /// The name between brackets.
    path: String,
    at: usize,
    table: &'a DeTable<'a>,
}

/// A value and where it stands.
type Value<'a> = &'a Spanned<DeValue<'a>>;

impl<'a> Reader<'a> {
    /// Makes a reader of `text`, which stands in `file`.
    pub fn new(file: String, text: &'a str) -> Self {
        Self { file, text, problems: RefCell::default() }
    }

    /// Notes a problem at a byte of the text.
    pub fn problem(&self, at: usize, what: &str) {
        let line = 1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        self.problems.borrow_mut().push((line, what.to_owned()));
    }

    /// Returns the problems, `FILE:LINE: WHAT` each, in order of the file.
    pub fn into_problems(self) -> Vec<String> {
        let mut problems = self.problems.into_inner();
        // Stable, so that what was read twice stands side by side and is told once.
        problems.sort_by_key(|(line, _)| *line);
        problems.dedup();
        problems.iter().map(|(line, what)| format!("{}:{line}: {what}", self.file)).collect()
    }

    /// Returns the whole file as a section.
    pub fn root(&'a self, table: &'a DeTable<'a>, known: &[&str]) -> Section<'a> {
        let root = Section { reader: self, path: String::new(), at: 0, table };
        root.check(known);
        root
    }
}

impl<'a> Section<'a> {
    /// Returns the table `key` if it is there; all its keys must be among `known`.
    pub fn table(&self, key: &'static str, known: &[&str]) -> Option<Section<'a>> {
        let (span, table) = self.get(key, "a table", |value| value.as_table())?;
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        let section = Section { reader: self.reader, path, at: span.start, table };
        section.check(known);
        Some(section)
    }

    /// Returns the tables below the table `key`, in order of the file, with their names.
    pub fn tables(&self, key: &'static str) -> Vec<(&'a str, Section<'a>)> {
        let Some((_, outer)) = self.get(key, "tables", |value| value.as_table()) else { return Vec::new() };
        let mut entries: Vec<_> = outer.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        let section = |(name, value): (&'a Spanned<DeString<'a>>, Value<'a>)| {
            let name = name.get_ref();
            let Some(table) = value.get_ref().as_table() else {
                self.reader.problem(value.span().start, &format!("{key}.{name} must be a table"));
                return None;
            };
            let path = format!("{key}.{name}");
            Some((name.as_ref(), Section { reader: self.reader, path, at: value.span().start, table }))
        };
        entries.into_iter().filter_map(section).collect()
    }

    /// Notes every key that is not among `known`.
    pub fn check(&self, known: &[&str]) {
        for (key, _) in self.table {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let place = if self.path.is_empty() { "at the top".into() } else { format!("in [{}]", self.path) };
                self.reader.problem(
                    key.span().start,
                    &format!("unknown key \"{}\" {place}; {}", name.escape_debug(), nearest(name, known)),
                );
            }
        }
    }

    /// Notes a problem of the section as a whole.
    pub fn wrong(&self, what: &str) {
        self.reader.problem(self.at, &format!("[{}] {what}", self.path));
    }

    /// Notes a problem of one key's value.
    pub fn wrong_key(&self, key: &str, what: &str) {
        let at = self.table.get(key).map_or(self.at, |value| value.span().start);
        self.reader.problem(at, &format!("{key} {what}"));
    }

    /// Notes a problem of one item of a list.
    pub fn wrong_item(&self, key: &str, at: usize, what: &str) {
        let item = self.table.get(key).and_then(|value| value.get_ref().as_array()?.get(at));
        let at = item.map_or(self.at, |item| item.span().start);
        self.reader.problem(at, &format!("{key}: {what}"));
    }

    /// Returns whether `key` is there.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Returns a string.
    pub fn text(&self, key: &str) -> Option<String> {
        self.get(key, "a string", |value| value.as_str().map(str::to_owned)).map(|(_, text)| text)
    }

    /// Returns a string that is not blank.
    pub fn filled(&self, key: &str) -> Option<String> {
        self.get(key, "a string that is not empty", |value| {
            value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
        })
        .map(|(_, text)| text)
    }

    /// Returns true or false.
    pub fn flag(&self, key: &str) -> Option<bool> {
        self.get(key, "true or false", DeValue::as_bool).map(|(_, flag)| flag)
    }

    /// Returns a whole number within `range`.
    pub fn count(&self, key: &str, range: Range<u64>) -> Option<u64> {
        let expected = format!("a whole number from {} to {}", range.start, range.end - 1);
        self.get(key, &expected, |value| integer(value).filter(|n| range.contains(n))).map(|(_, n)| n)
    }

    /// Returns a sum of money or another number that is not negative.
    pub fn number(&self, key: &str) -> Option<f64> {
        let float = |value: &DeValue<'_>| match value {
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            DeValue::Integer(integer) => integer.as_str().parse::<f64>().ok(),
            DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                None
            }
        };
        self.get(key, "a number that is not negative", |value| float(value).filter(|n| n.is_finite() && *n >= 0.0))
            .map(|(_, number)| number)
    }

    /// Returns a duration of at least a millisecond.
    pub fn duration(&self, key: &str) -> Option<Duration> {
        let parse = |value: &DeValue<'_>| quantity::duration(value.as_str()?).filter(|d| !d.is_zero());
        self.get(key, "a duration such as \"90s\", \"10m\" or \"1h30m\"", parse).map(|(_, duration)| duration)
    }

    /// Returns a size within `range`.
    pub fn size(&self, key: &str, range: Range<u64>) -> Option<usize> {
        let parse = |value: &DeValue<'_>| integer(value).or_else(|| quantity::size(value.as_str()?));
        let expected = format!("a size such as \"16MiB\", from {} to {} bytes", range.start, range.end - 1);
        let (_, bytes) = self.get(key, &expected, |value| parse(value).filter(|n| range.contains(n)))?;
        usize::try_from(bytes).ok()
    }

    /// Returns a list of strings.
    pub fn list(&self, key: &str) -> Option<Vec<String>> {
        let text = |value: Value<'a>| value.get_ref().as_str().map(str::to_owned);
        self.get(key, "a list of strings", |value| value.as_array()?.iter().map(text).collect()).map(|(_, list)| list)
    }

    /// Returns `"off"`, `"on"` or a list of hosts.
    pub fn network(&self, key: &str) -> Option<Network> {
        let hosts = |value: Value<'a>| value.get_ref().as_str().map(str::to_owned);
        let read = |value: &'a DeValue<'a>| match value.as_str() {
            Some("off") => Some(Network::Off),
            Some("on") => Some(Network::On),
            None if value.as_bool() == Some(false) => Some(Network::Off),
            None if value.as_bool() == Some(true) => Some(Network::On),
            _ => Some(Network::Hosts(value.as_array()?.iter().map(hosts).collect::<Option<_>>()?)),
        };
        self.get(key, "\"off\", \"on\" or a list of hosts", read).map(|(_, network)| network)
    }

    /// Returns the value of `key`, whatever it is.
    pub fn value(&self, key: &str) -> Option<&'a DeValue<'a>> {
        self.table.get(key).map(Spanned::get_ref)
    }

    /// Returns a table whose values are strings.
    pub fn map_of_texts(&self, key: &str) -> Option<Vec<(String, String)>> {
        let pair = |(name, value): (&Spanned<DeString<'a>>, Value<'a>)| {
            Some((name.get_ref().to_string(), value.get_ref().as_str()?.to_owned()))
        };
        let texts = |value: &'a DeValue<'a>| value.as_table()?.iter().map(pair).collect::<Option<Vec<_>>>();
        self.get(key, "a table of strings", texts).map(|(_, found)| found)
    }

    /// Returns one word of a closed set; `words` names them.
    pub fn word<T: FromStr<Err = String>>(&self, key: &str) -> Option<T> {
        let text = self.text(key)?;
        T::from_str(&text).map_err(|why| self.wrong_key(key, &format!("is not valid: {why}"))).ok()
    }

    fn get<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<(Range<usize>, T)> {
        let value: Value<'a> = self.table.get(key)?;
        let found = read(value.get_ref());
        if found.is_none() {
            self.reader.problem(value.span().start, &format!("{key} must be {expected}"));
        }
        Some((value.span(), found?))
    }
}

fn integer(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Returns a hint for a name that is not among `known`: the nearest one, or all.
pub fn nearest(name: &str, known: &[&str]) -> String {
    let near = known
        .iter()
        .map(|one| (strsim::damerau_levenshtein(&name.to_lowercase(), one), one))
        .min()
        .filter(|(distance, one)| *distance <= 1 + one.len() / 3);
    match near {
        Some((_, one)) => format!("did you mean \"{one}\"?"),
        None => format!("known are {}", known.join(", ")),
    }
}
