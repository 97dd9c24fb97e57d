//! Aligned columns: a header and cut lines for people, whole rows alone where stdout is piped.

use std::io;

use crate::output::{Output, columns};
use crate::visible::{cut, one_line};

/// Writes rows below `header` to stdout.
pub fn table(output: &Output, header: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let header = output.terminal.then_some(header);
    let width = output.terminal.then(columns).flatten();
    output.piece(&layout(header, rows, width))
}

/// Writes names with their values, one a line, to stdout.
pub fn fields(output: &Output, fields: &[(&str, String)]) -> io::Result<()> {
    let rows: Vec<_> = fields.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]).collect();
    output.piece(&layout(None, &rows, None))
}

fn layout(header: Option<&[&str]>, rows: &[Vec<String>], width: Option<usize>) -> String {
    let head = header.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let lines: Vec<Vec<String>> =
        head.iter().chain(rows).map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
    let count = lines.iter().map(Vec::len).max().unwrap_or(0);
    let size = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let sizes: Vec<_> = (0..count).map(size).collect();
    lines.iter().map(|line| row(line, &sizes, width)).collect()
}

fn row(cells: &[String], sizes: &[usize], width: Option<usize>) -> String {
    let padded: Vec<_> = cells.iter().zip(sizes).map(|(cell, size)| format!("{cell:size$}")).collect();
    let line = padded.join("  ");
    let line = line.trim_end();
    format!("{}\n", width.map_or_else(|| line.to_owned(), |width| cut(line, width)))
}

#[cfg(test)]
mod tests {
    use super::layout;

    #[test]
    fn columns_align() {
        let rows = [["tsk_1", "running", "fix\nthe \u{1b}test"], ["tsk_22", "ok", "ä"]];
        let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
        insta::assert_snapshot!(layout(Some(&["TASK", "STATE", "TEXT"]), &rows, Some(24)), @r"
        TASK    STATE    TEXT
        tsk_1   running  fix\nt…
        tsk_22  ok       ä
        ");
        assert_eq!(layout(None, &rows[1..], None), "tsk_22  ok  ä\n");
        assert_eq!(layout(None, &[], None), "");
    }
}
