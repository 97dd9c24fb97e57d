//! Just enough Rust reading for the rules: code without comments, literals and tests, its paths, its functions.

use std::path::{Path, PathBuf};

/// One source file of the daemon.
pub struct Source {
    /// Below `src`, with `/`.
    pub file: String,
    /// The module, such as `session::task`; empty for the crate root.
    pub module: String,
    /// Lines as they stand, tests with them.
    pub lines: usize,
    /// The code alone; literals are emptied, line breaks kept.
    pub code: String,
}

/// Reads every file below `src` but those that hold tests alone.
pub fn all(src: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    collect(src, &mut files);
    files.sort();
    let is_product =
        |path: &PathBuf| !path.ends_with("tests.rs") && !path.components().any(|c| c.as_os_str() == "tests");
    files.retain(|path| is_product(&path.strip_prefix(src).unwrap().to_path_buf()));
    files.iter().map(|path| read(src, path)).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn read(src: &Path, path: &Path) -> Source {
    let text = std::fs::read_to_string(path).unwrap();
    let file = path.strip_prefix(src).unwrap().to_str().unwrap().to_owned();
    let module = file.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
    let module = if ["lib", "main"].contains(&module.as_str()) { String::new() } else { module };
    Source { module, lines: text.lines().count(), code: without_tests(&code_alone(&text)), file }
}

/// Blanks comments and empties literals.
pub fn code_alone(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while at < chars.len() {
        let end = opaque_end(&chars, at);
        if end > at {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// Returns the end of the comment or literal that begins at `at`, or `at`.
fn opaque_end(chars: &[char], at: usize) -> usize {
    let next = |offset: usize| chars.get(at + offset).copied().unwrap_or(' ');
    let until =
        |from: usize, found: &dyn Fn(usize) -> bool| (from..chars.len()).find(|i| found(*i)).unwrap_or(chars.len());
    let starts_word = at == 0 || !(chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match (chars[at], next(1)) {
        ('/', '/') => until(at, &|i| chars[i] == '\n'),
        ('/', '*') => (until(at + 2, &|i| chars[i] == '*' && chars.get(i + 1) == Some(&'/')) + 2).min(chars.len()),
        ('"', _) => quoted_end(chars, at, '"'),
        ('r', '"' | '#') if starts_word => raw_end(chars, at),
        ('\'', '\\') => quoted_end(chars, at, '\''),
        ('\'', _) if next(2) == '\'' => at + 3,
        _ => at,
    }
}

fn quoted_end(chars: &[char], at: usize, quote: char) -> usize {
    let mut at = at + 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn raw_end(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    if chars.get(at + 1 + hashes) != Some(&'"') {
        return at;
    }
    let closes =
        |i: &usize| chars[*i] == '"' && chars[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
    (at + 2 + hashes..chars.len()).find(closes).map_or(chars.len(), |end| end + 1 + hashes)
}

fn without_tests(code: &str) -> String {
    let mut code = code.to_owned();
    while let Some(start) = code.find("#[cfg(test)]") {
        let end = item_end(&code, start);
        let blank: String = code[start..end].chars().filter(|c| *c == '\n').collect();
        code.replace_range(start..end, &blank);
    }
    code
}

/// Returns the end of the item at `start`: its `;` or its closing brace.
fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0;
    for (offset, c) in code[start..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && (c == ';' || c == '}') {
            return start + offset + 1;
        }
    }
    code.len()
}

impl Source {
    /// Returns every path in the code, absolute where it begins in this crate, `use` trees spelled out.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        let mut rest = self.code.as_str();
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        while let Some(start) = rest.find(is_path) {
            rest = &rest[start..];
            let end = rest.find(|c| !is_path(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let tree_end = if after.starts_with('{') && word.ends_with("::") { end + group_end(after) } else { end };
            expand(&rest[..tree_end], "", &mut paths);
            rest = &rest[tree_end..];
        }
        paths.into_iter().filter_map(|path| self.absolute(&path)).collect()
    }

    fn absolute(&self, path: &str) -> Option<String> {
        let (mut module, mut path) = (self.module.as_str(), path.strip_prefix("self::").unwrap_or(path));
        let mut is_inner = false;
        while let Some(rest) = path.strip_prefix("super::") {
            (module, path, is_inner) = (module.rsplit_once("::").map_or("", |(outer, _)| outer), rest, true);
        }
        match is_inner {
            true if module.is_empty() => Some(format!("crate::{path}")),
            true => Some(format!("crate::{module}::{path}")),
            false => path.contains("::").then(|| path.to_owned()),
        }
    }

    /// Returns each function's name, its lines, and whether it is one `match`.
    pub fn functions(&self) -> Vec<(String, usize, bool)> {
        let starts = self
            .code
            .match_indices("fn ")
            .filter(|(at, _)| self.code[..*at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_'));
        starts.filter_map(|(at, _)| self.function(at)).collect()
    }

    fn function(&self, at: usize) -> Option<(String, usize, bool)> {
        let whole = &self.code[at..item_end(&self.code, at)];
        let name: String = whole[3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let body = whole.split_once('{')?.1;
        (!name.is_empty()).then(|| (name, whole.lines().count(), body.trim_start().starts_with("match ")))
    }

    /// Returns how many lines hold code.
    pub fn code_lines(&self) -> usize {
        self.code.lines().filter(|line| !line.trim().is_empty()).count()
    }
}

fn group_end(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

/// Spells out `a::{b, c::{d, e}}`.
fn expand(tree: &str, prefix: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((head, group)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree).trim();
        let path = path.strip_suffix("::").unwrap_or(path);
        paths.push(if path == "self" { prefix.trim_end_matches("::").to_owned() } else { format!("{prefix}{path}") });
        return;
    };
    let prefix = format!("{prefix}{head}");
    let (mut depth, mut start) = (0, 0);
    let group = group.strip_suffix('}').unwrap_or(group);
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            if !group[start..at].trim().is_empty() {
                expand(&group[start..at], &prefix, paths);
            }
            start = (at + 1).min(group.len());
        }
    }
}
