//! HTML as Markdown: in one pass over its tags, with no tree, so that no page nests too deeply or grows on the way. Pure.

use html5gum::emitters::default::{DefaultEmitter, StartTag};
use html5gum::{HtmlString, Token, Tokenizer};
use url::Url;

/// What is not text for a reader.
const SKIPPED: [&str; 12] = [
    "script", "style", "template", "svg", "math", "noscript", "iframe", "object", "canvas", "audio", "video", "select",
];
/// What stands on lines of its own.
const BLOCKS: [&str; 22] = [
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "dl",
    "table",
    "blockquote",
    "pre",
    "section",
    "article",
    "header",
    "footer",
    "main",
    "nav",
    "aside",
    "figure",
    "form",
];
const LINES: [&str; 8] = ["div", "dt", "dd", "figcaption", "address", "fieldset", "legend", "summary"];
/// How deep lists and quotations are told apart, and how long an address may be.
const DEEPEST: usize = 12;
const ADDRESS: usize = 500;

/// How many bytes are made of a page, whose marks and indents are more than its text where it is made for that.
const MOST: usize = 8 << 20;

/// A page for reading.
#[derive(Debug, PartialEq, Eq)]
pub struct Markdown {
    /// Its title.
    pub title: String,
    /// What it says.
    pub text: String,
}

/// Makes Markdown of a page; addresses in it start at `base`.
pub fn markdown(html: &str, base: Option<&Url>) -> Markdown {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut writer = Writer { base, ..Writer::default() };
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        if writer.out.len() + writer.title.len() > MOST {
            writer.out.push_str("\n\n[the page goes on]");
            break;
        }
        match token {
            Token::StartTag(tag) => writer.start(&tag),
            Token::EndTag(tag) => writer.end(&text(&tag.name)),
            Token::String(string) => writer.text(&text(&string.value)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    writer.finish()
}

fn text(bytes: &HtmlString) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[derive(Default)]
struct Writer<'a> {
    base: Option<&'a Url>,
    out: String,
    title: String,
    /// What parts the next text from the one before: nothing, a blank, a line's end, an empty line.
    gap: Gap,
    /// Marks that the next text begins with.
    marks: String,
    /// The elements that are left out, and how deep.
    skipped: Option<(String, usize)>,
    in_title: bool,
    in_pre: bool,
    quotes: usize,
    /// The lists one is in; the next number of those that are numbered.
    lists: Vec<Option<u32>>,
    /// Where the text of a link begins, and where it leads.
    link: Option<(usize, String)>,
    /// Of a table: the cells of its row, and whether it is the first one.
    row: Option<(usize, bool)>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Blank,
    Line,
    Paragraph,
}

impl Writer<'_> {
    fn start(&mut self, tag: &StartTag<()>) {
        let name = text(&tag.name);
        if let Some((outer, depth)) = &mut self.skipped {
            *depth += usize::from(*outer == name && !tag.self_closing);
            return;
        }
        if SKIPPED.contains(&name.as_str()) {
            self.skipped = (!tag.self_closing).then_some((name, 1));
            return;
        }
        let attribute = |key: &str| tag.attributes.get(key.as_bytes()).map(|value| text(&value.value));
        self.apart(&name);
        match name.as_str() {
            "title" => self.in_title = self.title.is_empty(),
            "br" => self.space(Gap::Line),
            "hr" => self.rule(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.marks = format!("{} ", "#".repeat(name[1..].parse().unwrap_or(1)));
            }
            "strong" | "b" => self.marks.push_str(self.mark("**")),
            "em" | "i" => self.marks.push_str(self.mark("*")),
            "code" | "kbd" | "samp" | "tt" => self.marks.push_str(self.mark("`")),
            "a" => self.begin_link(attribute("href")),
            "img" => self.image(attribute("alt"), attribute("src")),
            "ul" => self.lists.push(None),
            "ol" => self.lists.push(Some(attribute("start").and_then(|start| start.parse().ok()).unwrap_or(1))),
            "li" => self.item(),
            "blockquote" => self.quotes += 1,
            "pre" => self.begin_code(),
            "table" => self.row = Some((0, true)),
            "tr" => self.begin_row(),
            "td" | "th" => self.cell(),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((outer, depth)) = &mut self.skipped {
            *depth -= usize::from(outer == name);
            if *depth == 0 {
                self.skipped = None;
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            "strong" | "b" => self.unmark("**"),
            "em" | "i" => self.unmark("*"),
            "code" | "kbd" | "samp" | "tt" => self.unmark("`"),
            "a" => self.end_link(),
            "ul" | "ol" => drop(self.lists.pop()),
            "blockquote" => self.quotes = self.quotes.saturating_sub(1),
            "pre" => self.end_code(),
            "tr" | "table" => self.end_row(),
            _ => {}
        }
        if name == "table" {
            self.row = None;
        }
        if name.starts_with('h') && BLOCKS.contains(&name) {
            self.marks.clear();
        }
        self.apart(name);
    }

    /// Parts what stands on lines of its own from the rest; in a table's cell a blank has to do.
    fn apart(&mut self, name: &str) {
        let inner = !self.lists.is_empty();
        match name {
            "ul" | "ol" if inner => self.space(Gap::Line),
            _ if BLOCKS.contains(&name) => self.space(Gap::Paragraph),
            _ if LINES.contains(&name) || name == "li" => self.space(Gap::Line),
            _ => {}
        }
    }

    fn space(&mut self, gap: Gap) {
        let gap = match self.row {
            // A cell begins with a blank of its own.
            Some((1.., _)) if self.out.ends_with("| ") => Gap::None,
            Some((1.., _)) => gap.min(Gap::Blank),
            _ => gap,
        };
        self.gap = self.gap.max(gap);
    }

    fn text(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        if self.in_title {
            self.title.push_str(text);
        } else if self.in_pre {
            self.flush();
            let line = format!("\n{}", self.prefix());
            self.out.push_str(&text.replace('\n', &line));
        } else {
            self.words(text);
        }
    }

    fn words(&mut self, text: &str) {
        for (at, word) in text.split(|one: char| one.is_ascii_whitespace()).enumerate() {
            if at > 0 {
                self.space(Gap::Blank);
            }
            if !word.is_empty() {
                self.flush();
                self.out.push_str(word);
            }
        }
    }

    /// Writes what stands before the next text.
    fn flush(&mut self) {
        let gap = match std::mem::take(&mut self.gap) {
            _ if self.out.is_empty() => self.prefix(),
            Gap::None => String::new(),
            Gap::Blank => " ".into(),
            Gap::Line => format!("\n{}", self.prefix()),
            Gap::Paragraph => format!("\n{}\n{}", self.prefix().trim_end(), self.prefix()),
        };
        self.out.push_str(&gap);
        self.out.push_str(&std::mem::take(&mut self.marks));
    }

    /// What a line begins with.
    fn prefix(&self) -> String {
        let inner = self.lists.len().saturating_sub(1).min(DEEPEST);
        let of_item =
            if self.marks.ends_with(". ") || self.marks.starts_with("- ") { 0 } else { self.lists.len().min(1) };
        "> ".repeat(self.quotes.min(DEEPEST)) + &"  ".repeat(inner + of_item)
    }

    fn mark(&self, mark: &'static str) -> &'static str {
        if self.in_pre || self.in_title { "" } else { mark }
    }

    /// Ends an emphasis; one without a text leaves nothing.
    fn unmark(&mut self, mark: &'static str) {
        if self.mark(mark).is_empty() {
            return;
        }
        match self.marks.strip_suffix(mark) {
            Some(rest) => self.marks.truncate(rest.len()),
            None => self.out.push_str(mark),
        }
    }

    fn finish(mut self) -> Markdown {
        self.end_link();
        self.end_code();
        self.end_row();
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        Markdown { title, text: self.out }
    }
}

mod parts;
#[cfg(test)]
mod tests;
