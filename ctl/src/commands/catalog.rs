//! `models` and `booters`: what sessions may choose from.

use nano_protocol::catalog::{BooterInfo, ModelInfo, PageParams};
use nano_protocol::method::{BooterList, ModelList};

use crate::commands::{or_dash, page};
use crate::context::Context;
use crate::failure::Failure;
use crate::table::Column::{Text, Whole};
use crate::table::table;

const NO_MODEL: &str = "there is no model: set OPENAI_API_KEY for nanod, start Ollama or a llama.cpp server, \
     or put [models.NAME] into nanod.toml";

/// Carries out `models`.
pub fn models(context: &Context) -> Result<(), Failure> {
    context.show::<ModelList>(&PageParams::default(), |output, list| {
        let row = |it: &ModelInfo| {
            let name = if it.default { format!("{} (default)", it.name) } else { it.name.clone() };
            let place = or_dash(it.base_url.as_ref());
            vec![name, it.api.clone(), or_dash(it.model.as_ref()), place, it.source.clone(), or_dash(it.note.as_ref())]
        };
        let rows: Vec<_> = list.models.iter().map(row).collect();
        let head = [Whole("MODEL"), Whole("API"), Whole("SERVES"), Whole("AT"), Whole("SOURCE"), Text("NOTE")];
        page(output, &head, &rows, None, NO_MODEL)
    })
}

/// Carries out `booters`.
pub fn booters(context: &Context) -> Result<(), Failure> {
    context.show::<BooterList>(&PageParams::default(), |output, list| {
        let row = |it: &BooterInfo| {
            let available = if it.available { "available" } else { "unavailable" };
            vec![it.kind.clone(), available.into(), format!("{} tools", it.tools.len()), or_dash(it.note.as_ref())]
        };
        let head = [Whole("BOOTER"), Whole("STATE"), Whole("DECLARES"), Text("NOTE")];
        table(output, &head, &list.booters.iter().map(row).collect::<Vec<_>>())
    })
}
