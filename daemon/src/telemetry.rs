//! Logging to stderr: with journald's priorities under systemd, with times at a terminal.

use std::io;
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{self, FormatEvent, FormatFields};
use tracing_subscriber::fmt::{FmtContext, FormattedFields, SubscriberBuilder};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Registry, reload};

/// Reads a filter: levels, alone or as `target=level`, with commas between.
pub fn filter(text: &str) -> Result<EnvFilter, String> {
    let wrong =
        || format!("daemon.log: \"{text}\" is no filter; give error, warn, info, debug, trace, or such as nanod=debug");
    let level = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
    if !text.split(',').all(level) {
        return Err(wrong());
    }
    EnvFilter::try_new(text).map_err(|_| wrong())
}

/// Starts logging what the filter lets through; one that is none is an error in words.
pub fn start(text: &str, journald: bool) -> Result<(), String> {
    // A log that cannot be written is no reason to panic.
    let lines = tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(filter(text)?)
        .with_writer(io::stderr as fn() -> io::Stderr);
    let lines = lines.with_ansi(false);
    if journald { begin(lines.event_format(Journald)) } else { begin(lines.with_target(false)) }
}

fn begin<E>(lines: SubscriberBuilder<format::DefaultFields, E, EnvFilter, fn() -> io::Stderr>) -> Result<(), String>
where
    E: FormatEvent<Registry, format::DefaultFields> + Send + Sync + 'static,
{
    let lines = lines.with_filter_reloading();
    let handle = lines.reload_handle();
    lines.try_init().map_err(|why| why.to_string())?;
    drop(CHANGE.set(Box::new(move |filter| handle.reload(filter))));
    Ok(())
}

type Change = Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>;
/// Puts another filter into the log, of which a process has one.
static CHANGE: OnceLock<Change> = OnceLock::new();

/// Has another filter serve from now on.
pub fn change(text: &str) -> Result<(), String> {
    let filter = filter(text)?;
    CHANGE.get().map_or(Ok(()), |change| change(filter)).map_err(|why| why.to_string())
}

/// Puts the syslog priority in front, as sd-daemon(3) says.
struct Journald;

impl<S, N> FormatEvent<S, N> for Journald
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut out: format::Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let priority = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            Level::DEBUG | Level::TRACE => 7,
        };
        write!(out, "<{priority}>")?;
        for span in ctx.event_scope().into_iter().flat_map(tracing_subscriber::registry::Scope::from_root) {
            write!(out, "{}", span.name())?;
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>().filter(|fields| !fields.is_empty()) {
                write!(out, "{{{fields}}}")?;
            }
            write!(out, ": ")?;
        }
        ctx.field_format().format_fields(out.by_ref(), event)?;
        writeln!(out)
    }
}
