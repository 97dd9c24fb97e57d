//! Aligned columns: a header and cells cut to the width for people, every column where stdout is piped.

use std::io;

use crate::output::{Output, columns};
use crate::visible::{cut, first_line, one_line};

/// Longer cells say nothing more in a list: the verb that shows one thing has all of it.
const CELL: usize = 200;
/// A text that is cut shorter than this says too little: a column of `Extra` has to go instead.
const TEXT: usize = 40;
const GAP: usize = 2;

/// A column's name, and how it gives way on a narrow terminal.
#[derive(Debug, Clone, Copy)]
pub enum Column {
    /// It is never cut.
    Whole(&'static str),
    /// It gets what the others leave.
    Text(&'static str),
    /// It is left out where there is no room.
    Extra(&'static str),
}

/// Writes rows below their columns' names to stdout.
pub fn table(output: &Output, head: &[Column], rows: &[Vec<String>]) -> io::Result<()> {
    table_with_lines(output, head, rows, &[])
}

/// Writes rows as [`table`] does, each with its lines below it, whole and indented.
pub fn table_with_lines(
    output: &Output,
    head: &[Column],
    rows: &[Vec<String>],
    below: &[Vec<String>],
) -> io::Result<()> {
    let width = output.terminal.then(columns).flatten();
    let header = usize::from(output.terminal);
    let mut text = String::new();
    for (at, row) in layout(head, output.terminal, rows, width).lines().enumerate() {
        let lines = at.checked_sub(header).and_then(|at| below.get(at));
        let lines = lines.into_iter().flatten().map(|line| format!("    {}", one_line(line)));
        for line in std::iter::once(row.to_owned()).chain(lines) {
            text.extend([&line, "\n"]);
        }
    }
    output.piece(&text)
}

/// Writes names with their values, one a line, to stdout.
pub fn fields(output: &Output, fields: &[(&str, String)]) -> io::Result<()> {
    let size = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| {
        let line = format!("{}{}", padded(name, size + GAP), one_line(value));
        [line.trim_end(), "\n"].concat()
    };
    output.piece(&fields.iter().map(line).collect::<String>())
}

impl Column {
    fn name(self) -> &'static str {
        match self {
            Self::Whole(name) | Self::Text(name) | Self::Extra(name) => name,
        }
    }
}

fn layout(head: &[Column], header: bool, rows: &[Vec<String>], width: Option<usize>) -> String {
    let names: Vec<_> = head.iter().map(|column| column.name().to_owned()).collect();
    let cells = |row: &Vec<String>| row.iter().map(|cell| cut(&first_line(cell), CELL)).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = header.then_some(names).into_iter().chain(rows.iter().map(cells)).collect();
    let size = |at: usize| lines.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max();
    let wanted: Vec<_> = (0..head.len()).map(|at| size(at).unwrap_or(0)).collect();
    let sizes = width.map_or_else(|| wanted.iter().copied().map(Some).collect(), |width| fit(head, &wanted, width));
    lines.iter().map(|line| row(line, &sizes, width)).collect()
}

/// Returns each column's size, none for one that is left out.
fn fit(head: &[Column], wanted: &[usize], width: usize) -> Vec<Option<usize>> {
    let all = || head.iter().zip(wanted.iter().copied());
    let whole: usize =
        all().map(|(column, size)| if matches!(column, Column::Whole(_)) { size + GAP } else { 0 }).sum();
    let text: usize =
        all().map(|(column, size)| if matches!(column, Column::Text(_)) { size.min(TEXT) + GAP } else { 0 }).sum();
    // The last column has no gap behind it.
    let room = (width + GAP).saturating_sub(whole);
    let mut spare = room.saturating_sub(text);
    let mut extra = |size: usize| {
        spare = spare.checked_sub(size + GAP)?;
        Some(size)
    };
    let kept: Vec<_> =
        all().map(|(column, size)| if matches!(column, Column::Extra(_)) { extra(size) } else { None }).collect();
    let taken: usize = kept.iter().flatten().map(|size| size + GAP).sum();
    let left = room.saturating_sub(taken + GAP);
    let sizes = all().zip(kept).map(|((column, size), kept)| match column {
        Column::Whole(_) => Some(size),
        Column::Text(_) => Some(size.min(left)),
        Column::Extra(_) => kept,
    });
    sizes.collect()
}

fn row(cells: &[String], sizes: &[Option<usize>], width: Option<usize>) -> String {
    let kept = cells.iter().zip(sizes).filter_map(|(cell, size)| Some(padded(&cut(cell, (*size)?), size.unwrap_or(0))));
    let line = kept.collect::<Vec<_>>().join(&" ".repeat(GAP));
    let line = line.trim_end();
    format!("{}\n", width.map_or_else(|| line.to_owned(), |width| cut(line, width)))
}

/// A format's width ends at 65,535: spaces have no end.
fn padded(cell: &str, size: usize) -> String {
    format!("{cell}{}", " ".repeat(size.saturating_sub(cell.chars().count())))
}

#[cfg(test)]
mod tests {
    use super::Column::{Extra, Text, Whole};
    use super::{CELL, layout};

    fn rows(rows: &[[&str; 4]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn columns_align_and_give_way() {
        let head = [Whole("ID"), Whole("STATE"), Text("TEXT"), Extra("SESSION")];
        let rows =
            rows(&[["tsk_1", "running", "fix\nthe \u{1b}test", "ses_1"], ["tsk_22", "ok", "ä long one", "ses_2"]]);
        insta::assert_snapshot!(layout(&head, true, &rows, Some(40)), @r"
        ID      STATE    TEXT        SESSION
        tsk_1   running  fix …       ses_1
        tsk_22  ok       ä long one  ses_2
        ");
        insta::assert_snapshot!(layout(&head, true, &rows, Some(30)), @r"
        ID      STATE    TEXT
        tsk_1   running  fix …
        tsk_22  ok       ä long one
        ");
        insta::assert_snapshot!(layout(&head, true, &rows, Some(22)), @r"
        ID      STATE    TEXT
        tsk_1   running  fix …
        tsk_22  ok       ä lo…
        ");
        insta::assert_snapshot!(layout(&head, false, &rows, None), @r"
        tsk_1   running  fix …       ses_1
        tsk_22  ok       ä long one  ses_2
        ");
        assert_eq!(layout(&head, false, &[], None), "");
    }

    #[test]
    fn cells_of_any_length_fit_every_width() {
        let long = "long ".repeat(100_000);
        let rows = rows(&[["tsk_1", "running", &long, "ses_1"], [&long, &long, "\n\n", &long]]);
        for head in [[Whole("A"), Whole("B"), Text("C"), Extra("D")], [Text("A"), Extra("B"), Whole("C"), Whole("D")]] {
            for width in [None, Some(0), Some(1), Some(20), Some(80), Some(100_000)] {
                let text = layout(&head, true, &rows, width);
                let most = width.map_or(4 * CELL + 6, |width| width.max(1));
                assert!(
                    text.lines().count() == 3 && text.lines().all(|line| line.chars().count() <= most),
                    "{width:?}"
                );
            }
        }
    }
}
