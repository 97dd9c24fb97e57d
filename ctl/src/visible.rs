//! Makes control characters visible: what models and tools write must not drive the reader's terminal.

/// Returns `text` with every control and direction character spelled out, line feeds and tabs apart.
pub fn visible(text: &str) -> String {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

/// Returns `text` on one line, with every control and direction character spelled out.
pub fn one_line(text: &str) -> String {
    escape(text, |_| false)
}

/// Returns the first line of `text` that says something, made harmless; a `…` ends it where more follows.
pub fn first_line(text: &str) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default().trim_end();
    one_line(&if line.len() < text.len() { format!("{line} …") } else { line.to_owned() })
}

/// Returns at most `width` characters of `text`, the last one `…` where something is left out.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if keep(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.extend(format!("\\x{:02x}", u32::from(c)).chars()),
            c if is_direction(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Bidirectional controls reorder what stands around them; line and paragraph separators break lines unseen.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::{cut, first_line, one_line, visible};

    #[test]
    fn nothing_drives_the_terminal() {
        for (text, expected) in [
            ("a\tb\nc", "a\tb\nc"),
            ("\u{1b}[31mred\u{1b}]52;c;eA==\u{7}", "\\x1b[31mred\\x1b]52;c;eA==\\x07"),
            ("over\rwrite", "over\\rwrite"),
            ("\u{9b}2J\u{7f}", "\\x9b2J\\x7f"),
            ("\u{202e}abc\u{2069}", "\\u{202e}abc\\u{2069}"),
            ("Grüße 👋", "Grüße 👋"),
        ] {
            assert_eq!(visible(text), expected);
        }
        assert_eq!(one_line("a\tb\nc"), "a\\tb\\nc");
    }

    #[test]
    fn first_lines() {
        for (text, expected) in
            [("one", "one"), ("one\ntwo", "one …"), ("\r\n one \r\n\r\n", "one"), ("\n", ""), ("", "")]
        {
            assert_eq!(first_line(text), expected, "{text:?}");
        }
        assert_eq!(first_line("a\u{1b}[2J\tb\n"), "a\\x1b[2J\\tb");
    }

    #[test]
    fn cuts_by_characters() {
        for (text, width, expected) in [("äöü", 3, "äöü"), ("äöüß", 3, "äö…"), ("ab", 0, "…"), ("", 0, "")]
        {
            assert_eq!(cut(text, width), expected);
        }
    }
}
