//! The models there are, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use nano_protocol::catalog::ModelInfo;
use nano_protocol::task::Usage;

use super::Provider;
use super::openai::OpenAi;
use super::replay::Replay;
use crate::config::{Api, ModelConfig};

/// A model that cannot be made from its configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("models.{name}: {reason}")]
pub struct CatalogError {
    /// The model's name.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

/// The configured or found models, ready to be asked.
#[derive(Default)]
pub struct Catalog {
    entries: BTreeMap<String, Entry>,
    default: Option<String>,
}

struct Entry {
    config: ModelConfig,
    provider: Arc<dyn Provider>,
}

impl Catalog {
    /// Makes a provider for each model; the first is the default.
    pub fn new(models: &[ModelConfig]) -> Result<Self, CatalogError> {
        let mut entries = BTreeMap::new();
        for config in models {
            let error = |reason| CatalogError { name: config.name.clone(), reason };
            let provider = provider(config).map_err(error)?;
            entries.insert(config.name.clone(), Entry { config: config.clone(), provider });
        }
        Ok(Self { entries, default: models.first().map(|config| config.name.clone()) })
    }

    /// Returns the provider of the model with this name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Provider>> {
        self.entries.get(name).map(|entry| Arc::clone(&entry.provider))
    }

    /// Returns the name of the model for agents that name none.
    pub fn default(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// Returns every name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Returns the model to ask, then those to try when it gives up or is not there; an empty name means the default.
    pub fn chain(&self, name: &str) -> Vec<String> {
        let name = if name.is_empty() { self.default().unwrap_or_default() } else { name };
        let fallback = match self.entries.get(name) {
            Some(entry) => entry.config.fallback.clone(),
            // It has gone from the config, or is not found any more: the default takes over.
            None => self.default.iter().cloned().collect(),
        };
        std::iter::once(name.to_owned()).chain(fallback).collect()
    }

    /// Returns what is known of each model, by name.
    pub fn list(&self) -> Vec<ModelInfo> {
        self.entries.values().map(|entry| self.info(&entry.config)).collect()
    }

    /// Returns what `usage` costs with this model, if it has prices.
    #[expect(clippy::cast_precision_loss, reason = "no reply has 2^52 tokens")]
    pub fn cost(&self, name: &str, usage: &Usage) -> Option<f64> {
        let config = &self.entries.get(name)?.config;
        if config.price_input.is_none() && config.price_output.is_none() {
            return None;
        }
        let part = |tokens: u64, price: Option<f64>| tokens as f64 / 1e6 * price.unwrap_or(0.0);
        Some(part(usage.input_tokens, config.price_input) + part(usage.output_tokens, config.price_output))
    }

    fn info(&self, config: &ModelConfig) -> ModelInfo {
        let is_server = config.api == Api::OpenAi;
        ModelInfo {
            name: config.name.clone(),
            api: if is_server { "openai" } else { "replay" }.to_owned(),
            model: is_server.then(|| config.model.clone()),
            base_url: is_server.then(|| crate::http::shown(&config.base_url)),
            default: self.default.as_ref() == Some(&config.name),
            source: config.source.clone(),
            note: None,
        }
    }
}

fn provider(config: &ModelConfig) -> Result<Arc<dyn Provider>, String> {
    match (config.api, &config.cassette) {
        (Api::OpenAi, _) => Ok(Arc::new(OpenAi::new(config))),
        (Api::Replay, Some(cassette)) => Ok(Arc::new(Replay::open(cassette)?)),
        (Api::Replay, None) => Err("api `replay` needs a cassette".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::io::Write;
    use std::path::PathBuf;

    use super::*;

    fn config(name: &str, api: Api, cassette: Option<PathBuf>, prices: (Option<f64>, Option<f64>)) -> ModelConfig {
        ModelConfig {
            name: name.to_owned(),
            api,
            base_url: "http://127.0.0.1:1/v1".to_owned(),
            model: "m".to_owned(),
            api_key: None,
            context_window: None,
            max_output: None,
            stream: true,
            idle_timeout: std::time::Duration::from_secs(1),
            price_input: prices.0,
            price_output: prices.1,
            fallback: vec![],
            cassette,
            source: "config".to_owned(),
        }
    }

    #[test]
    fn models_by_name() {
        let mut tape = tempfile::NamedTempFile::new().unwrap();
        writeln!(tape, "{{}}").unwrap();
        let catalog = Catalog::new(&[
            config("z", Api::OpenAi, None, (Some(2.0), Some(8.0))),
            config("a", Api::Replay, Some(tape.path().to_owned()), (None, None)),
        ])
        .unwrap();
        let listed: Vec<_> = catalog.list().into_iter().map(|m| (m.name, m.api, m.model, m.default)).collect();
        let [a, z] = listed.as_slice() else { unreachable!("{listed:?}") };
        assert_eq!(*a, ("a".to_owned(), "replay".to_owned(), None, false));
        assert_eq!(*z, ("z".to_owned(), "openai".to_owned(), Some("m".to_owned()), true));
        assert_eq!(catalog.default(), Some("z"));
        assert!(catalog.get("a").is_some() && catalog.get("b").is_none());
        assert_eq!(Catalog::new(&[]).unwrap().default(), None);
    }

    #[test]
    fn costs() {
        let catalog = Catalog::new(&[
            config("both", Api::OpenAi, None, (Some(2.0), Some(8.0))),
            config("one", Api::OpenAi, None, (None, Some(8.0))),
            config("none", Api::OpenAi, None, (None, None)),
        ])
        .unwrap();
        let usage = Usage { input_tokens: 1_500_000, output_tokens: 250_000, cost: None };
        for (name, expected) in [("both", Some(5.0)), ("one", Some(2.0)), ("none", None), ("unknown", None)] {
            assert_eq!(catalog.cost(name, &usage), expected, "{name}");
        }
    }

    #[test]
    fn cassettes_are_checked_at_once() {
        let mut tape = tempfile::NamedTempFile::new().unwrap();
        writeln!(tape, "{{}}\nx").unwrap();
        for (cassette, expected) in [
            (None, "models.t: api `replay` needs a cassette".to_owned()),
            (Some(tape.path().to_owned()), format!("models.t: {}:2: ", tape.path().display())),
        ] {
            let error = Catalog::new(&[config("t", Api::Replay, cassette, (None, None))]).err().unwrap().to_string();
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
