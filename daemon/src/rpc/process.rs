//! `process.*`.

use nano_protocol::error::RpcError;
use nano_protocol::method::{ProcessKill, ProcessList, ProcessLog};
use nano_protocol::process::{
    Process, ProcessListParams, ProcessLog as Log, ProcessLogParams, ProcessParams, Processes,
};

use super::dispatch::Serve;
use super::session::invalid;
use super::{Caller, Server};
use crate::session::processes::{self, Part};

impl Serve for ProcessList {
    async fn serve(server: &Server, caller: &Caller, params: ProcessListParams) -> Result<Processes, RpcError> {
        let session = params.session.map(|session| server.registry.find(caller.uid, &session)).transpose()?;
        let page = (params.limit, params.after);
        processes::list(&server.registry, caller.uid, session.as_ref(), params.state, page).await
    }
}

impl Serve for ProcessLog {
    async fn serve(server: &Server, caller: &Caller, params: ProcessLogParams) -> Result<Log, RpcError> {
        if params.offset.is_some() && params.tail.is_some() {
            return Err(invalid("offset and tail exclude each other"));
        }
        let process = processes::process(&server.registry, caller.uid, &params.process).await?;
        processes::log(&server.registry, &process, Part::new(params.offset, params.tail)).await
    }
}

impl Serve for ProcessKill {
    async fn serve(server: &Server, caller: &Caller, params: ProcessParams) -> Result<Process, RpcError> {
        let process = processes::process(&server.registry, caller.uid, &params.process).await?;
        processes::kill(&server.registry, caller.uid, &process).await
    }
}
