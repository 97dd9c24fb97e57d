//! `models` and `booters`: what sessions may choose from.

use nano_protocol::catalog::{BooterInfo, ModelInfo, PageParams};
use nano_protocol::method::{BooterList, ModelList};

use crate::commands::or_dash;
use crate::context::Context;
use crate::failure::Failure;
use crate::table::table;

/// Carries out `models`.
pub fn models(context: &Context) -> Result<(), Failure> {
    context.show::<ModelList>(&PageParams::default(), |output, list| {
        let row = |it: &ModelInfo| {
            let name = if it.default { format!("{} (default)", it.name) } else { it.name.clone() };
            let place = or_dash(it.base_url.as_ref());
            vec![name, it.api.clone(), or_dash(it.model.as_ref()), place, it.source.clone(), or_dash(it.note.as_ref())]
        };
        let rows: Vec<_> = list.models.iter().map(row).collect();
        table(output, &["MODEL", "API", "SERVES", "AT", "SOURCE", "NOTE"], &rows)
    })
}

/// Carries out `booters`.
pub fn booters(context: &Context) -> Result<(), Failure> {
    context.show::<BooterList>(&PageParams::default(), |output, list| {
        let row = |it: &BooterInfo| {
            let available = if it.available { "available" } else { "unavailable" };
            vec![it.kind.clone(), available.into(), format!("{} tools", it.tools.len()), or_dash(it.note.as_ref())]
        };
        table(output, &["BOOTER", "STATE", "DECLARES", "NOTE"], &list.booters.iter().map(row).collect::<Vec<_>>())
    })
}
