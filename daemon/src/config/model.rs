//! `[models.NAME]`.

use std::time::Duration;

use super::around::{Around, resolve, secret};
use super::reader::{Section, nearest};
use super::sections::{checked_name, words};
use super::{Api, ModelConfig};

const KEYS: &str = "api base_url model api_key api_key_env api_key_file context_window max_output stream idle_timeout \
                    price_input price_output fallback cassette";
const OPENAI: &str = "https://api.openai.com/v1";
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// Numbers that stay exact in every client that reads JSON numbers as doubles.
const WHOLE: u64 = 1 << 53;

/// Reads one model; none if its interface is not known.
pub fn model(name: &str, section: &Section<'_>, around: &Around<'_>) -> Option<ModelConfig> {
    section.check(&words(KEYS));
    let api = api(section)?;
    let base_url = section.filled("base_url").unwrap_or_else(|| OPENAI.to_owned());
    if !["http://", "https://"].iter().any(|scheme| base_url.starts_with(scheme)) {
        section.wrong_key("base_url", "must start with http:// or https://");
    }
    let needed = if api == Api::Replay { "cassette" } else { "model" };
    if !section.has(needed) {
        section.wrong(&format!("needs {needed}"));
    }
    let count = |key| section.count(key, 1..WHOLE);
    Some(ModelConfig {
        name: checked_name(name, section),
        api,
        base_url: base_url.trim_end_matches('/').to_owned(),
        model: section.filled("model").unwrap_or_else(|| name.to_owned()),
        api_key: secret(section, "api_key", around),
        context_window: count("context_window"),
        max_output: count("max_output"),
        stream: section.flag("stream").unwrap_or(true),
        idle_timeout: section.duration("idle_timeout").unwrap_or(IDLE_TIMEOUT),
        price_input: section.number("price_input"),
        price_output: section.number("price_output"),
        fallback: section.list("fallback").unwrap_or_default(),
        cassette: section.filled("cassette").map(|path| resolve(&path, around)),
        source: "config".to_owned(),
    })
}

fn api(section: &Section<'_>) -> Option<Api> {
    match section.text("api").as_deref() {
        None => (!section.has("api")).then_some(Api::OpenAi),
        Some("openai") => Some(Api::OpenAi),
        Some("replay") => Some(Api::Replay),
        Some(later @ ("anthropic" | "responses")) => {
            let what = format!("\"{later}\" cannot be spoken by this version yet; use \"openai\" or \"replay\"");
            section.wrong_key("api", &what);
            None
        }
        Some(other) => {
            let hint = nearest(other, &["openai", "anthropic", "responses", "replay"]);
            section.wrong_key("api", &format!("\"{}\" is unknown; {hint}", other.escape_debug()));
            None
        }
    }
}
