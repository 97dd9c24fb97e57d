//! `approval.*`.

use nano_protocol::approval::{Approval, ApprovalAnswerParams, ApprovalListParams, Approvals};
use nano_protocol::error::RpcError;
use nano_protocol::method::{ApprovalAnswer, ApprovalList};

use super::dispatch::Serve;
use super::{Caller, Server};
use crate::session::approving::list;

impl Serve for ApprovalList {
    async fn serve(server: &Server, caller: &Caller, params: ApprovalListParams) -> Result<Approvals, RpcError> {
        let session = params.session.map(|session| server.registry.find(caller.uid, &session)).transpose()?;
        let page = (params.limit, params.after);
        list::approvals(&server.registry, caller.uid, session.as_ref(), params.state, page)
    }
}

impl Serve for ApprovalAnswer {
    async fn serve(server: &Server, caller: &Caller, params: ApprovalAnswerParams) -> Result<Approval, RpcError> {
        let ApprovalAnswerParams { approval, allow, always } = params;
        list::answer(&server.registry, caller.uid, &approval, allow, always.unwrap_or(false)).await
    }
}
