//! Cuts the front matter out of a document. It knows lines: dashes inside one, or in the body, close nothing.

use crate::key;
use crate::problems::{At, Problems};
use crate::source::{BOM, Line, lines};

/// A document, cut.
#[derive(Debug)]
pub struct Cut<'a> {
    /// The lines of the front matter; text on the line of the opening fence is the first.
    pub lines: Vec<Line<'a>>,
    /// Where the body begins, in bytes.
    pub body: usize,
    /// Whether no fence closes it.
    pub unclosed: bool,
    /// The number of the opening fence's line, and of the first one of the front matter, from 1.
    fence: usize,
    first: usize,
    /// How many characters stand before the first line of the front matter, on its line.
    shift: usize,
    opening: &'a str,
    closing: Option<(usize, &'a str)>,
}

/// Finds the front matter of `text`; none: its first line that is not blank is no fence.
pub fn cut(text: &str) -> Option<Cut<'_>> {
    let mut rest = lines(text).zip(1..).skip_while(|(line, _)| line.text.trim().is_empty());
    let (opening, fence) = rest.next()?;
    let mut cut = open(opening, fence, text.len())?;
    while let Some((line, number)) = rest.next() {
        if matches!(line.text.trim_end(), "---" | "...") {
            cut.closing = Some((number, line.text.trim_end()));
            cut.body = rest.next().map_or(text.len(), |(line, _)| line.start);
            return Some(cut);
        }
        cut.lines.push(line);
    }
    Some(cut.shortened(cut.leading()))
}

/// Reads a line as the opening fence.
fn open(line: Line<'_>, number: usize, end: usize) -> Option<Cut<'_>> {
    let after = line.text.trim_start().strip_prefix("---")?.trim_start_matches('-');
    let is_blank = |part: char| part.is_whitespace() || matches!(part, BOM | '#');
    let is_fence = after.is_empty() || after.starts_with(is_blank) || key::leading(after).is_some();
    let text = after.trim_start();
    let before = line.text.len() - text.len();
    let first = (!text.is_empty()).then_some(Line { start: line.start + before, text });
    is_fence.then(|| Cut {
        fence: number,
        first: number + usize::from(first.is_none()),
        shift: if first.is_some() { line.text[..before].chars().count() } else { 0 },
        lines: first.into_iter().collect(),
        body: end,
        unclosed: false,
        opening: line.text,
        closing: None,
    })
}

impl Cut<'_> {
    /// The front matter, its lines ended by LF.
    pub fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line.text, "\n"]).collect()
    }

    /// The place in the file of a line and a character of the front matter, both from 0.
    pub fn at(&self, (line, column): (usize, usize)) -> At {
        (self.first + line, column + 1 + if line == 0 { self.shift } else { 0 })
    }

    /// The place of the opening fence.
    pub fn start(&self) -> At {
        (self.fence, 1)
    }

    /// The same front matter without the body, if what seemed its closing fence is a rule in a body that was never
    /// fenced off: then prose comes before it, no key after the prose, and no title after the rule.
    pub fn without_prose(&self, text: &str) -> Option<Self> {
        let texts = || self.lines.iter().map(|line| line.text);
        let is_matter = |line: &str| looks_like_matter(line) || line.starts_with(['"', '\'', ']', '}']);
        let start = texts().position(|line| !line.trim().is_empty())?;
        let blank = start + texts().skip(start).position(|line| line.trim().is_empty())?;
        let prose = blank + texts().skip(blank).position(|line| !line.trim().is_empty() && !is_matter(line))?;
        let has_key = texts().skip(prose).take_while(|line| !line.starts_with("```")).any(is_lower_key);
        let is_title = |line: &str| line.starts_with("# ");
        let is_body = is_title(text.get(self.body..)?.trim_start()) && !texts().skip(blank).any(is_title);
        (self.closing.is_some() && !has_key && !is_body).then(|| self.shortened(self.leading()))
    }

    /// How many lines look like front matter, from the first that is not blank; comments at the end are headings of the
    /// body.
    fn leading(&self) -> usize {
        let blank = self.lines.iter().take_while(|line| line.text.trim().is_empty()).count();
        let looks = blank + self.lines[blank..].iter().take_while(|line| looks_like_matter(line.text)).count();
        let headings = self.lines[..looks].iter().rev().take_while(|line| line.text.starts_with('#')).count();
        looks - headings
    }

    fn shortened(&self, length: usize) -> Self {
        Cut {
            lines: self.lines[..length].to_vec(),
            body: self.lines.get(length).map_or(self.body, |line| line.start),
            unclosed: true,
            closing: None,
            ..*self
        }
    }

    /// Says what is odd about the fences.
    pub fn report(&self, problems: &mut Problems) {
        if self.fence > 1 {
            problems.add(
                self.start(),
                "the opening fence `---` must be the first line of the file; remove the blank lines",
            );
        }
        let indent = self.opening.len() - self.opening.trim_start().len();
        if indent > 0 {
            problems.add(self.start(), "the opening fence `---` is indented; it must begin its line");
        }
        if self.opening.trim_start().starts_with("----") {
            problems.add((self.fence, indent + 4), "the opening fence has more than three dashes");
        }
        if self.shift > 0 {
            problems.add(
                (self.fence, self.shift + 1),
                "text on the line of the opening fence; put it on a line of its own",
            );
        }
        if self.opening.contains('\t') {
            problems.add(self.start(), "a TAB on the line of the opening fence: strict readers refuse it");
        }
        match self.closing {
            Some((line, "...")) => {
                problems.add((line, 1), "the front matter is closed by `...`; other readers want `---`");
            }
            None => problems.add(self.start(), "the front matter is never closed; add a line `---` below it"),
            Some(_) => {}
        }
        self.report_dashes(problems);
    }

    fn report_dashes(&self, problems: &mut Problems) {
        for (number, line) in self.lines.iter().enumerate() {
            if let Some(found) = line.text.find("---") {
                let at = self.at((number, line.text[..found].chars().count()));
                problems.add(at, "`---` inside the front matter: some readers end it here");
            }
        }
    }
}

/// A key line, a comment, an item, or more of what is above it.
fn looks_like_matter(line: &str) -> bool {
    let is_more = line.starts_with([' ', '\t', '#']) || line.starts_with("- ") || key::leading(line).is_some();
    is_more && !line.trim().is_empty()
}

fn is_lower_key(line: &str) -> bool {
    key::leading(line).is_some_and(|(key, _)| !key.contains(char::is_uppercase))
}
