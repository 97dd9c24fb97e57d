#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::{MAX_EVENT, Parser, TooLong};

fn events(reads: &[&[u8]]) -> Vec<String> {
    let mut parser = Parser::default();
    let mut events: Vec<String> = reads.iter().flat_map(|read| parser.push(read).unwrap()).collect();
    events.extend(parser.finish());
    events
}

/// Reads are separated by `│`, as in the table of quirks.
fn check(stream: &str, expected: &[&str]) {
    let reads: Vec<&[u8]> = stream.split('│').map(str::as_bytes).collect();
    assert_eq!(events(&reads), expected, "{stream:?}");
}

#[test]
fn framing() {
    for (stream, expected) in [
        (": PROCESSING\n\ndata: {\"a\":1}\n\n:\n\n", &[r#"{"a":1}"#][..]),
        ("data:\n\ndata: \n\ndata\n\ndata:  \n\n", &[]),
        ("event: keepalive\n\n", &[]),
        ("id: 7\ndata: {}\n\n: ping\n\n", &["{}"]),
        ("data: a\r│\ndata: b\r\n\r\n", &["a\nb"]),
        ("data: a\r││\n\r│\n", &["a"]),
        ("data: a\r\rdata: b\r\r", &["a", "b"]),
        ("data: a\r│\rdata: b\r│\r", &["a", "b"]),
        ("data: a\n\rdata: b\r\n\n", &["a", "b"]),
        ("data:{\"x\":1}\n\ndata:[DONE]\n\n", &["{\"x\":1}", "[DONE]"]),
        ("data:  two\n\n", &[" two"]),
        ("da│ta: {\"cho│ices\":[]}\n│\n", &["{\"choices\":[]}"]),
        ("data: 1\n\ndata: 2\n\ndata: 3\n\n", &["1", "2", "3"]),
        ("data: [DONE]", &["[DONE]"]),
        ("data: 1\n\ndata: [DONE]\n", &["1", "[DONE]"]),
        ("\u{feff}data: 1\n\n\u{feff}data: 2\n\n", &["1"]),
        ("event: message\nid: 1\nretry: 5\ndata: 1\nother: x\ndatax: 2\n\n", &["1"]),
        ("error: {\"code\":500}\n\n", &["{\"code\":500}"]),
        ("errors: 1\n\n", &[]),
        ("retry: 3", &[]),
        ("", &[]),
    ] {
        check(stream, expected);
    }
}

#[test]
fn a_character_split_over_reads() {
    assert_eq!(events(&[b"data: {\"c\":\"\xE6", b"\x8A", b"\x80\"}\n\n"]), ["{\"c\":\"技\"}"]);
}

#[test]
fn invalid_utf8_does_not_end_the_stream() {
    assert_eq!(events(&[b"data: a\xFFb\n\ndata: c\n\n"]), ["a\u{fffd}b", "c"]);
}

#[test]
fn one_long_line_in_small_reads() {
    let line = format!("data: {}\n\n", "x".repeat(4 * 1024 * 1024));
    let reads: Vec<&[u8]> = line.as_bytes().chunks(1024).collect();
    assert_eq!(events(&reads), [&line[6..line.len() - 2]]);
}

#[test]
fn lines_and_events_are_bounded() {
    let mut parser = Parser::default();
    let long = vec![b'x'; MAX_EVENT];
    assert_eq!(parser.push(&long), Ok(vec![]));
    assert_eq!(parser.push(b"x"), Err(TooLong));
    let mut parser = Parser::default();
    let half = format!("data: {}\n", "x".repeat(MAX_EVENT / 2));
    assert_eq!(parser.push(half.as_bytes()), Ok(vec![]));
    assert_eq!(parser.push(half.as_bytes()), Err(TooLong));
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_events(
        lines in prop::collection::vec(("(data: ?|: |event: |id:|)[a-z技é{}\":]{0,6}", "\r\n|\r|\n|\n\n|\r\r"), 0..12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let stream: Vec<u8> = lines.iter().flat_map(|(line, end)| [line.as_bytes(), end.as_bytes()].concat()).collect();
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        places.extend([0, stream.len()]);
        places.sort_unstable();
        let reads: Vec<&[u8]> = places.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(events(&reads), events(&[&stream]));
        prop_assert_eq!(events(&bytes), events(&[&stream]));
    }
}
