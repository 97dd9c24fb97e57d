//! `skill.*`.

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::method::{SkillCreate, SkillDelete, SkillGet, SkillList, SkillUpdate, SkillValidate};
use nano_protocol::skill::{
    Skill, SkillCreateParams, SkillDeleteParams, SkillInfo, SkillListParams, SkillParams, SkillUpdateParams,
    SkillValidateParams, Skills, Validated,
};

use super::dispatch::Serve;
use super::{Caller, Server};

impl Serve for SkillList {
    async fn serve(_: &Server, _: &Caller, _: SkillListParams) -> Result<Skills, RpcError> {
        Err(RpcError::new(ErrorKind::Internal, "not yet"))
    }
}

impl Serve for SkillGet {
    async fn serve(_: &Server, _: &Caller, _: SkillParams) -> Result<Skill, RpcError> {
        Err(RpcError::new(ErrorKind::Internal, "not yet"))
    }
}

impl Serve for SkillCreate {
    async fn serve(_: &Server, _: &Caller, _: SkillCreateParams) -> Result<Skill, RpcError> {
        Err(RpcError::new(ErrorKind::Internal, "not yet"))
    }
}

impl Serve for SkillUpdate {
    async fn serve(_: &Server, _: &Caller, _: SkillUpdateParams) -> Result<Skill, RpcError> {
        Err(RpcError::new(ErrorKind::Internal, "not yet"))
    }
}

impl Serve for SkillDelete {
    async fn serve(_: &Server, _: &Caller, _: SkillDeleteParams) -> Result<SkillInfo, RpcError> {
        Err(RpcError::new(ErrorKind::Internal, "not yet"))
    }
}

impl Serve for SkillValidate {
    async fn serve(_: &Server, _: &Caller, _: SkillValidateParams) -> Result<Validated, RpcError> {
        Err(RpcError::new(ErrorKind::Internal, "not yet"))
    }
}
