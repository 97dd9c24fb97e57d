//! Why text is not YAML, in plain words.

use granit_parser::{ErrorKind, ScanError};

use crate::node::Place;

/// What is wrong, and where.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What.
    pub message: String,
}

impl Fault {
    /// Says it of a place.
    pub fn new(place: Place, message: impl Into<String>) -> Self {
        Self { place, message: message.into() }
    }

    /// The same, `lines` further down.
    pub fn down(self, lines: usize) -> Self {
        Self { place: (self.place.0 + lines, self.place.1), ..self }
    }

    /// Says it of what the parser found in `text`.
    pub fn of(error: &ScanError, text: &str) -> Self {
        let mark = error.marker();
        let place = (mark.line().saturating_sub(1), mark.col());
        if let ErrorKind::UnexpectedCharacter { character } = error.kind() {
            return Self::character(*character, place, text);
        }
        if matches!(
            error.kind(),
            ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation
        ) {
            let line = text.lines().nth(place.0).unwrap_or_default();
            let column = line.chars().position(|part| part == '\t').unwrap_or(place.1);
            return Self::new((place.0, column), "a TAB where YAML wants spaces");
        }
        Self::new(place, words(error.kind()).map_or_else(|| error.info(), str::to_owned))
    }

    /// The parser names the place where the scalar begins, not that of the character.
    fn character(character: char, (line, column): Place, text: &str) -> Self {
        let mut after = text.lines().zip(0..).skip(line).map(|(text, number)| {
            let skipped = if number == line { column } else { 0 };
            (number, text.chars().skip(skipped).position(|one| one == character).map(|found| found + skipped))
        });
        let found = after.find_map(|(number, column)| Some((number, column?)));
        let message = if character.is_control() {
            format!("a control character (U+{:04X})", u32::from(character))
        } else {
            format!("`{character}` cannot begin a value that is not quoted")
        };
        Self::new(found.unwrap_or((line, column)), message)
    }
}

fn words(kind: &ErrorKind) -> Option<&'static str> {
    use ErrorKind as K;
    Some(match kind {
        K::MappingValueNotAllowed => "`: ` (or a colon at the end) in a value that is not quoted",
        K::UnknownAnchor | K::MissingAnchorOrAliasName => "`*` or `&` at the beginning of a value that is not quoted",
        K::InvalidTrailingSingleQuotedScalar | K::InvalidTrailingDoubleQuotedScalar => "text after a closing quote",
        K::UnclosedQuotedScalar => "a quote that is never closed",
        K::SimpleKeyExpected => "a line that is neither `key: value` nor indented",
        K::UnknownQuotedScalarEscape | K::InvalidQuotedScalarHexEscape | K::InvalidUnicodeEscape => {
            "a backslash in double quotes that means nothing there"
        }
        K::MissingLowSurrogate | K::UnpairedLowSurrogate | K::InvalidLowSurrogate | K::InvalidLowSurrogateHexEscape => {
            "half a character (`\\uD800` to `\\uDFFF`) in double quotes"
        }
        K::TabAtBlockScalarStart => "a TAB where YAML wants spaces",
        K::InvalidBlockScalarHeader => "text after `|` or `>`",
        K::RecursionLimitExceeded => "lists and maps lie too deep in each other",
        K::UnclosedFlowCollection { .. }
        | K::MismatchedFlowCollectionEnd { .. }
        | K::MisplacedFlowCollectionEnd
        | K::UnexpectedEofFlowSequence
        | K::UnexpectedEofFlowMapping => "a bracket or brace without its counterpart",
        K::InvalidIndentation => "text after a closing bracket, or wrong indentation",
        K::InvalidBlockScalarIndent | K::ExpectedBlockMappingKey => "wrong indentation",
        K::MappingKeyNotAllowed => "`? ` at the beginning of a value that is not quoted",
        K::UnexpectedEofBlockMapping => "a sign that cannot begin a value that is not quoted",
        K::BlockSequenceEntryNotAllowed => "`- ` where no list can begin",
        _ => return None,
    })
}
