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
        let inner = matches!(name, "ul" | "ol") && self.lists.len() > usize::from(self.gap == Gap::None);
        match name {
            "ul" | "ol" if inner => self.space(Gap::Line),
            _ if BLOCKS.contains(&name) => self.space(Gap::Paragraph),
            _ if LINES.contains(&name) || name == "li" => self.space(Gap::Line),
            _ => {}
        }
    }

    fn space(&mut self, gap: Gap) {
        let in_row = self.row.is_some_and(|(cells, _)| cells > 0);
        self.gap = self.gap.max(if in_row { gap.min(Gap::Blank) } else { gap });
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

    fn address(&self, address: &str) -> Option<String> {
        let url = match self.base {
            Some(base) => base.join(address).ok()?,
            None => Url::parse(address).ok()?,
        };
        (["http", "https", "mailto"].contains(&url.scheme()) && url.as_str().len() <= ADDRESS).then(|| url.into())
    }

    fn begin_link(&mut self, href: Option<String>) {
        self.end_link();
        let within = href.filter(|href| !href.trim_start().starts_with('#'));
        let Some(href) = within.and_then(|href| self.address(href.trim())).filter(|_| !self.in_pre) else { return };
        self.marks.push('[');
        self.link = Some((self.out.len(), href));
    }

    fn end_link(&mut self) {
        let Some((_, href)) = self.link.take() else { return };
        match self.marks.rfind('[') {
            Some(at) => drop(self.marks.remove(at)),
            None => self.out.push_str(&format!("]({href})")),
        }
    }

    fn image(&mut self, alt: Option<String>, src: Option<String>) {
        let alt = alt.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        if !alt.is_empty() {
            self.flush();
            let src = src.and_then(|src| self.address(&src)).unwrap_or_default();
            self.out.push_str(&format!("![{alt}]({src})"));
        }
    }

    fn item(&mut self) {
        self.marks = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{}. ", number.saturating_sub(1))
            }
            _ => "- ".into(),
        };
    }

    fn rule(&mut self) {
        self.space(Gap::Paragraph);
        self.flush();
        self.out.push_str("---");
        self.space(Gap::Paragraph);
    }

    fn begin_code(&mut self) {
        self.flush();
        self.out.push_str(&format!("```\n{}", self.prefix()));
        self.in_pre = true;
    }

    fn end_code(&mut self) {
        if std::mem::take(&mut self.in_pre) {
            let line = if self.out.ends_with('\n') { String::new() } else { format!("\n{}", self.prefix()) };
            self.out.push_str(&format!("{line}```"));
        }
    }

    fn begin_row(&mut self) {
        self.end_row();
        self.space(Gap::Line);
    }

    fn cell(&mut self) {
        let Some((cells, _)) = self.row else { return };
        self.marks.clear();
        if cells == 0 {
            self.flush();
            self.out.push_str("| ");
        } else {
            self.out.push_str(" | ");
        }
        self.gap = Gap::None;
        self.row = self.row.map(|(cells, first)| (cells + 1, first));
    }

    fn end_row(&mut self) {
        let Some((cells @ 1.., first)) = self.row else { return };
        self.out.push_str(" |");
        if first {
            self.out.push_str(&format!("\n{}|{}", self.prefix(), " --- |".repeat(cells)));
        }
        self.marks.clear();
        (self.row, self.gap) = (Some((0, false)), Gap::Line);
    }

    fn finish(mut self) -> Markdown {
        self.end_link();
        self.end_code();
        self.end_row();
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        Markdown { title, text: self.out }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::markdown;

    #[test]
    fn pages() {
        let base = "https://example.com/a/b".parse().unwrap();
        for (html, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("<p>a  b\n c</p><p>d", "a b c\n\nd"),
            ("<h1>T</h1><h3>U <em>v</em></h3>x", "# T\n\n### U *v*\n\nx"),
            ("a<br>b<hr>c", "a\nb\n\n---\n\nc"),
            ("<b>a</b> <i> b </i><b></b><code>x &lt; y</code>", "**a** *b* `x < y`"),
            ("see <a href='c?x=1'>the <b>page</b></a>.", "see [the **page**](https://example.com/a/c?x=1)."),
            ("<a href='javascript:alert(1)'>j</a><a href='#x'>k</a><a href=/y></a>", "jk"),
            ("<img src=/i.png alt='a  b'><img src=x>", "![a b](https://example.com/i.png)"),
            ("<ul><li>a<li>b<ol><li>c</li><li>d</ol><li>e</ul>f", "- a\n- b\n  1. c\n  2. d\n- e\n\nf"),
            ("<blockquote><p>a<p>b</blockquote>c", "> a\n>\n> b\n\nc"),
            ("<pre>a\n  <b>b</b> &amp;</pre>c", "```\na\n  b &\n```\n\nc"),
            ("<table><tr><th>a<th>b<tr><td>1<td><p>2</p></table>x", "| a | b |\n| --- | --- |\n| 1 | 2 |\n\nx"),
            ("a<script>if (a < b) { '</p>' }</script><style>x{}</style><!-- c -->b", "ab"),
            ("<noscript>a<noscript>b</noscript>c</noscript>d", "d"),
            ("<div>a</div><div>b</div>", "a\nb"),
            ("a</b></a></ul></table></blockquote></pre>b", "a**\n\nb"),
        ] {
            assert_eq!(markdown(html, Some(&base)).text, expected, "{html}");
        }
        let page = markdown("<html><head><title> A\n b </title></head><body>c", None);
        assert_eq!((page.title.as_str(), page.text.as_str()), ("A b", "c"));
    }

    #[test]
    fn hostile_pages_end_in_time_and_stay_small() {
        for piece in
            ["<div>", "<b>", "<ul><li>", "<blockquote>", "<table><tr><td>", "<a href=x>", "<p><b a=1>", "<svg>"]
        {
            let html = piece.repeat(100_000) + "x";
            let text = markdown(&html, None).text;
            assert!(text.len() < 4 * html.len() && (piece == "<svg>" || text.contains('x')), "{piece}: {}", text.len());
        }
        let many: String = (0..50_000).map(|n| format!("<b a={n}>")).collect::<String>() + &"<p>x".repeat(50_000);
        assert!(markdown(&many, None).text.len() < 2 * many.len());
    }
}
