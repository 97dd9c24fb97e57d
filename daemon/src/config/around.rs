//! What values of the file refer to outside it: secrets in variables and files, and paths.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use super::env::Env;
use super::reader::Section;

/// A secret that never prints.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What values may refer to outside the file.
pub struct Around<'a> {
    /// Where `_env` secrets and `~` are looked up.
    pub env: &'a Env,
    /// The config file's folder: relative paths start here.
    pub folder: &'a Path,
    /// The files of secrets that were named so far.
    pub secret_files: RefCell<Vec<PathBuf>>,
}

/// Reads a secret that is given by value, by the name of a variable, or by a file.
pub fn secret(section: &Section<'_>, key: &str, around: &Around<'_>) -> Option<Secret> {
    let (by_env, by_file) = (format!("{key}_env"), format!("{key}_file"));
    if [key, &by_env, &by_file].iter().filter(|one| section.has(one)).count() > 1 {
        section.wrong(&format!("has more than one of {key}, {by_env} and {by_file}; keep one"));
    }
    let from_env = |name: String| {
        let value = around.env.get(&name).map(str::to_owned);
        if value.is_none() {
            section.wrong_key(&by_env, &format!("names the variable {}, which is not set", name.escape_debug()));
        }
        value
    };
    let secret = section
        .filled(key)
        .or_else(|| section.filled(&by_env).and_then(from_env))
        .or_else(|| section.filled(&by_file).and_then(|path| secret_file(section, &by_file, &path, around)));
    secret.map(|text| Secret(text.trim().to_owned()))
}

fn secret_file(section: &Section<'_>, key: &str, path: &str, around: &Around<'_>) -> Option<String> {
    let path = resolve(path, around);
    around.secret_files.borrow_mut().push(path.clone());
    let read = std::fs::read_to_string(&path).map_err(|why| why.to_string());
    let filled = read.and_then(|text| if text.trim().is_empty() { Err("it is empty".into()) } else { Ok(text) });
    filled.map_err(|why| section.wrong_key(key, &format!("names {}, which cannot be used: {why}", path.display()))).ok()
}

/// Reads a list of paths.
pub fn paths(section: &Section<'_>, key: &str, around: &Around<'_>) -> Option<Vec<PathBuf>> {
    let list = section.list(key)?;
    if list.iter().any(|path| path.trim().is_empty()) {
        section.wrong_key(key, "holds an empty path");
    }
    Some(list.iter().map(|path| resolve(path, around)).collect())
}

/// Resolves `~/` and paths relative to the config file.
pub fn resolve(path: &str, around: &Around<'_>) -> PathBuf {
    let home = || around.env.folder("HOME");
    let below_home = if path == "~" { Some("") } else { path.strip_prefix("~/") };
    match below_home.and_then(|rest| Some(home()?.join(rest))) {
        Some(path) => path,
        None => around.folder.join(path),
    }
}
