//! What a reply says, as text: by its type and its characters, without what cannot be seen. Pure.

use encoding_rs::{Encoding, UTF_8};
use url::Url;

use super::markdown::{Markdown, markdown};
use crate::http::web::Page;
use crate::sandbox::output::is_unseen;

/// As much of a page is looked at for the charset that it names itself.
const START: usize = 1024;

/// Returns what a reply says: its title, and its text or, in brackets, what else it is.
pub fn read(page: &Page) -> Markdown {
    let kind = page.header("content-type").unwrap_or_default();
    let (media, _) = kind.split_once(';').unwrap_or((kind, ""));
    let media = media.trim().to_ascii_lowercase();
    let plain = |text| Markdown { title: String::new(), text };
    match media.as_str() {
        "" if page.body.iter().take(START).any(|byte| *byte == 0) => plain(binary(page, "of no named type")),
        "text/html" | "application/xhtml+xml" => markdown(&decode(page, kind), Url::parse(&page.url).ok().as_ref()),
        "" if page.body.trim_ascii_start().starts_with(b"<") => {
            markdown(&decode(page, kind), Url::parse(&page.url).ok().as_ref())
        }
        "" => plain(decode(page, kind)),
        text if is_text(text) => plain(decode(page, kind)),
        other => plain(binary(page, other)),
    }
}

fn is_text(media: &str) -> bool {
    const TEXT: [&str; 9] =
        ["json", "xml", "javascript", "ecmascript", "yaml", "x-yaml", "toml", "graphql", "x-ndjson"];
    let sub = media.split_once('/').map_or("", |(_, sub)| sub);
    let last = sub.rsplit_once('+').map_or(sub, |(_, last)| last);
    media.starts_with("text/") || TEXT.contains(&last) || sub == "x-www-form-urlencoded"
}

fn binary(page: &Page, kind: &str) -> String {
    let more = if page.cut { "more than " } else { "" };
    format!("[not shown: {more}{} bytes {kind}]", page.body.len())
}

/// Decodes a body: by its mark, by what the server says, by what the page says, else as UTF-8.
fn decode(page: &Page, kind: &str) -> String {
    let start = String::from_utf8_lossy(&page.body[..page.body.len().min(START)]).to_ascii_lowercase();
    let encoding = charset(&kind.to_ascii_lowercase()).or_else(|| charset(&start)).unwrap_or(UTF_8);
    encoding.decode(&page.body).0.into_owned()
}

fn charset(text: &str) -> Option<&'static Encoding> {
    let (_, after) = text.split_once("charset")?;
    let name = after.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    Encoding::for_label(name.split(['"', '\'', ';', '>', '/', ' ']).next()?.as_bytes())
}

/// Leaves out what cannot be seen but changes how a text is read: zero width, direction, tags, variations.
pub fn plain(text: &str) -> String {
    text.chars().filter(|one| !is_unseen(*one)).collect()
}

/// Returns a short text of the web as one line of at most `most` characters.
pub fn line(html: &str, most: usize) -> String {
    let text = String::from_utf8(plain(&markdown(html, None).text).into_bytes()).unwrap_or_default();
    let text = crate::sandbox::output::readable(text.as_bytes());
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::{line, plain, read};
    use crate::http::web::Page;

    fn page(kind: Option<&str>, body: &[u8]) -> Page {
        let headers = kind.map(|kind| ("content-type".to_owned(), kind.to_owned())).into_iter().collect();
        Page { status: 200, url: "http://example.com/".into(), headers, body: body.to_vec(), cut: false }
    }

    #[test]
    fn types_and_charsets() {
        for (kind, body, expected) in [
            (Some("text/html"), b"<p>a <b>b".as_slice(), "a **b"),
            (Some("text/html; charset=ISO-8859-1"), b"<p>\xe4", "ä"),
            (Some("text/html"), b"<meta charset=windows-1252><p>\x80", "€"),
            (Some("text/html"), b"<meta http-equiv=x content='text/html; charset=\"shift_jis\"'>\x82\xa0", "あ"),
            (Some("text/html; charset=nonsense"), "ä".as_bytes(), "ä"),
            (Some("text/plain; charset=utf-8"), b"\xff\xfea\0", "a"),
            (Some("TEXT/PLAIN"), b"<b>x</b>", "<b>x</b>"),
            (Some("application/json"), b"{\"a\": 1}", "{\"a\": 1}"),
            (Some("application/problem+json"), b"{}", "{}"),
            (Some("application/atom+xml"), b"<feed/>", "<feed/>"),
            (Some("image/png"), b"\x89PNG", "[not shown: 4 bytes image/png]"),
            (Some("application/octet-stream"), b"abc", "[not shown: 3 bytes application/octet-stream]"),
            (None, b"\0\x01", "[not shown: 2 bytes of no named type]"),
            (None, b" <html>x", "x"),
            (None, b"x", "x"),
        ] {
            assert_eq!(read(&page(kind, body)).text, expected, "{kind:?} {body:?}");
        }
    }

    #[test]
    fn what_cannot_be_seen_is_left_out() {
        let hidden = "a\u{200b}\u{200d}\u{202e}\u{2066}\u{feff}\u{e0041}\u{e0100}\u{fe0f}\u{ad}\u{3164}b ä 日";
        assert_eq!(plain(hidden), "ab ä 日");
        assert_eq!(line("<strong>a</strong>\n\u{1b}[31m b\u{e0041}", 100), "**a** b");
        assert_eq!(line(&"x".repeat(9), 5), "xxxxx…");
    }
}
