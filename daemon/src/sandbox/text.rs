//! What a program printed as text that can be shown: cut at lines or characters, without control characters.

/// The longest line that is shown whole.
const LINE: usize = 4 * 1024;

/// Cuts at the last line's end, if that is near, else at the last whole character.
pub fn whole_lines_before(head: &[u8]) -> &[u8] {
    let from = head.len().saturating_sub(LINE);
    match memchr::memrchr(b'\n', &head[from..]) {
        Some(at) => &head[..=from + at],
        None => whole_characters(head),
    }
}

/// Cuts before a character of which the end is missing.
pub fn whole_characters(raw: &[u8]) -> &[u8] {
    &raw[..raw.len() - raw.utf8_chunks().last().map_or(0, |chunk| unfinished(chunk.invalid()))]
}

/// Returns the length of a character that was cut in the middle; anything else invalid stays visible.
fn unfinished(invalid: &[u8]) -> usize {
    if std::str::from_utf8(invalid).is_err_and(|why| why.error_len().is_none()) { invalid.len() } else { 0 }
}

/// Begins after the first line's end, if that is near, else at the first whole character.
pub fn whole_lines_after(tail: &[u8]) -> &[u8] {
    match memchr::memchr(b'\n', &tail[..tail.len().min(LINE)]) {
        Some(at) => &tail[at + 1..],
        None => &tail[tail.iter().take(3).take_while(|byte| (0x80..0xC0).contains(*byte)).count()..],
    }
}

/// Tells whether a character is not seen but changes how a text is read: zero width, direction, tags, variations.
pub fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Returns `raw` as text without escape sequences and control characters, but for LF and tab.
pub fn readable(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw).replace("\r\n", "\n");
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(one) = chars.next() {
        match one {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_until_final(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            // A lone CR draws over the line; kept as a line of its own it can be read.
            '\r' => out.push('\n'),
            '\n' | '\t' => out.push(one),
            _ if one.is_control() || is_format(one) => {}
            _ => out.push(one),
        }
    }
    out
}

/// Marks that are not seen but change how the rest is shown or read: text direction, annotations.
fn is_format(one: char) -> bool {
    matches!(one, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fff9}'..='\u{fffb}')
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_until_final(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        // Others: any intermediates, then one final character.
        Some(' '..='~') => {
            while chars.next_if(|one| (' '..='/').contains(one)).is_some() {}
            chars.next_if(|one| ('0'..='~').contains(one));
        }
        _ => {}
    }
}

/// Skips the parameters of a control sequence and its last character.
fn skip_until_final(chars: &mut Chars) {
    while chars.next_if(|one| (' '..='?').contains(one)).is_some() {}
    chars.next_if(|one| ('@'..='~').contains(one));
}

/// Skips to the end of a control string, which a line's end closes too: the rest must not vanish.
fn skip_string(chars: &mut Chars) {
    while let Some(one) = chars.next_if(|one| *one != '\n') {
        match one {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// Shortens every line that is too long, and tells whether there was one.
pub fn clip_lines(text: &str) -> (String, bool) {
    let mut clipped = false;
    let lines = text.split_inclusive('\n').map(|line| {
        let body = line.trim_end_matches('\n');
        if body.len() <= LINE {
            return line.to_owned();
        }
        clipped = true;
        let end = (0..=LINE).rev().find(|at| body.is_char_boundary(*at)).unwrap_or(0);
        format!("{} [… {} bytes of this line left out]\n", &body[..end], body.len() - end)
    });
    (lines.collect(), clipped)
}

#[cfg(test)]
mod tests {
    use super::{readable, whole_lines_after, whole_lines_before};

    #[test]
    fn text_is_readable() {
        let check = |raw: &[u8], expected: &str| assert_eq!(readable(raw), expected, "{raw:?}");
        check(b"a\x1b[1;31mb\x1b[0m\x1b]0;title\x07c\x1b]8;;u\x1b\\d\x1b(Be\x1bcf", "abcdef");
        check(b"\x1b[", "");
        check(b"\x1b", "");
        check(b"\x1b]0;never closed\nnext", "\nnext");
        check("\u{9b}31mx\u{9d}t\u{9c}y".as_bytes(), "xy");
        check(b"1%\r2%\r\nend\x00\x07\x08\x7f\t.", "1%\n2%\nend\t.");
        check("a\u{202e}b\u{fff9}ä".as_bytes(), "abä");
        check(b"\xff\xc3", "\u{fffd}\u{fffd}");
    }

    #[test]
    fn cuts_are_at_lines_or_characters() {
        assert_eq!(whole_lines_before(b"a\nb"), b"a\n");
        assert_eq!(whole_lines_before("aä".as_bytes().split_last().map_or(&[], |(_, rest)| rest)), b"a");
        assert_eq!(whole_lines_before(b"a\xff"), b"a\xff");
        assert_eq!(whole_lines_after(b"a\nb"), b"b");
        assert_eq!(whole_lines_after(&"äa".as_bytes()[1..]), b"a");
    }
}
