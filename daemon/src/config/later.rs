//! Tables whose readers are still to come: checked as strictly as the others, and not kept.

use super::around::{Around, secret};
use super::reader::Section;
use super::sections::words;

/// Notes everything that is wrong in `[web_search]`.
pub fn check(root: &Section<'_>, around: &Around<'_>) {
    if let Some(section) = root.table("web_search", &words("provider base_url api_key api_key_env api_key_file")) {
        texts(&section, "provider base_url");
        secret(&section, "api_key", around);
    }
}

fn texts(section: &Section<'_>, keys: &str) {
    for key in words(keys) {
        section.filled(key);
    }
}
