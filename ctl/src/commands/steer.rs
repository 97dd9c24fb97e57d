//! `steer`: says something to the task that runs.

use nano_protocol::id::SessionRef;
use nano_protocol::method::SessionSteer;
use nano_protocol::session::{AcceptedAs, Delivery, SteerParams};

use crate::context::Context;
use crate::failure::Failure;
use crate::text;

/// What to say and when it takes effect.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session: id, prefix of the id or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// What to say; - reads stdin, so does none with a piped stdin
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    #[command(flatten)]
    when: When,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct When {
    /// After the running calls (this unless told)
    #[arg(long)]
    note: bool,
    /// After the running call; no other starts
    #[arg(long)]
    redirect: bool,
    /// At once: the reply and the running call are stopped
    #[arg(long)]
    interrupt: bool,
}

impl When {
    fn delivery(&self) -> Delivery {
        match (self.redirect, self.interrupt) {
            (true, _) => Delivery::Redirect,
            (_, true) => Delivery::Interrupt,
            _ => Delivery::Note,
        }
    }
}

/// Carries out `steer`.
pub fn run(context: &Context, args: Args) -> Result<(), Failure> {
    let content = text::resolve(args.text.as_deref(), &context.output)?;
    let delivery = Some(args.when.delivery());
    let params = SteerParams { session: SessionRef(args.session), content, delivery, ..SteerParams::default() };
    context.show::<SessionSteer>(&params, |output, steered| {
        output.answer(&format!("{} {}", steered.message, steered.accepted_as))?;
        if steered.accepted_as == AcceptedAs::Task {
            output.note(&format!("the session was idle: this is now task {}", steered.task));
        }
        Ok(())
    })
}
