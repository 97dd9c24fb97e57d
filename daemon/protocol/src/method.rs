//! The table of methods: name, parameters, result.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{approval, catalog, daemon, event, followup, process, session, skill, task};

/// One method of the daemon.
pub trait Method {
    /// Its name on the wire.
    const NAME: &'static str;
    /// Its parameters.
    type Params: Serialize + DeserializeOwned;
    /// Its result.
    type Result: Serialize + DeserializeOwned;
}

/// Calls the macro `$with` with every method as `Type, name, Params, Result;`.
#[macro_export]
macro_rules! methods {
    ($with:ident) => {
        $with! {
            DaemonHello, "daemon.hello", daemon::HelloParams, daemon::Hello;
            DaemonStatus, "daemon.status", daemon::Nothing, daemon::Status;
            DaemonDoctor, "daemon.doctor", daemon::Nothing, daemon::Doctor;
            DaemonReload, "daemon.reload", daemon::Nothing, daemon::Done;
            DaemonShutdown, "daemon.shutdown", daemon::ShutdownParams, daemon::Done;
            SessionCreate, "session.create", session::CreateParams, session::Session;
            SessionGet, "session.get", session::SessionParams, session::Session;
            SessionList, "session.list", session::ListParams, session::Sessions;
            SessionClose, "session.close", session::SessionParams, session::Session;
            SessionDelete, "session.delete", session::SessionParams, session::Session;
            SessionBoot, "session.boot", session::SessionParams, session::Session;
            SessionTools, "session.tools", session::SessionParams, session::SessionTools;
            SessionPrompts, "session.prompts", session::SessionParams, session::SessionPrompts;
            SessionMessages, "session.messages", session::MessagesParams, session::Messages;
            SessionSteer, "session.steer", session::SteerParams, session::Steered;
            SessionQueue, "session.queue", session::SessionParams, session::Queue;
            SessionWithdraw, "session.withdraw", session::WithdrawParams, session::Queue;
            TaskSubmit, "task.submit", task::SubmitParams, task::Task;
            TaskGet, "task.get", task::TaskParams, task::Task;
            TaskList, "task.list", task::TaskListParams, task::Tasks;
            TaskWait, "task.wait", task::WaitParams, task::Task;
            TaskCancel, "task.cancel", task::TaskParams, task::Task;
            TaskResume, "task.resume", task::TaskParams, task::Task;
            FollowupSchedule, "followup.schedule", followup::ScheduleParams, followup::Followup;
            FollowupGet, "followup.get", followup::FollowupParams, followup::Followup;
            FollowupList, "followup.list", followup::FollowupListParams, followup::Followups;
            FollowupCancel, "followup.cancel", followup::FollowupParams, followup::Followup;
            FollowupPause, "followup.pause", followup::FollowupParams, followup::Followup;
            FollowupResume, "followup.resume", followup::FollowupParams, followup::Followup;
            FollowupRuns, "followup.runs", followup::RunsParams, followup::Runs;
            FollowupTrigger, "followup.trigger", followup::FireParams, task::Task;
            FollowupNext, "followup.next", followup::NextParams, followup::NextTimes;
            ProcessList, "process.list", process::ProcessListParams, process::Processes;
            ProcessLog, "process.log", process::ProcessLogParams, process::ProcessLog;
            ProcessKill, "process.kill", process::ProcessParams, process::Process;
            EventsSubscribe, "events.subscribe", event::SubscribeParams, event::Subscribed;
            EventsUnsubscribe, "events.unsubscribe", event::UnsubscribeParams, daemon::Done;
            AgentList, "agent.list", catalog::PageParams, catalog::Agents;
            AgentGet, "agent.get", catalog::NameParams, catalog::AgentInfo;
            AgentCreate, "agent.create", catalog::AgentCreateParams, catalog::AgentInfo;
            AgentUpdate, "agent.update", catalog::AgentUpdateParams, catalog::AgentInfo;
            AgentDelete, "agent.delete", catalog::NameParams, catalog::AgentInfo;
            SkillList, "skill.list", skill::SkillListParams, skill::Skills;
            SkillGet, "skill.get", skill::SkillParams, skill::Skill;
            SkillCreate, "skill.create", skill::SkillCreateParams, skill::Skill;
            SkillUpdate, "skill.update", skill::SkillUpdateParams, skill::Skill;
            SkillDelete, "skill.delete", skill::SkillDeleteParams, skill::SkillInfo;
            SkillValidate, "skill.validate", skill::SkillValidateParams, skill::Validated;
            ApprovalList, "approval.list", approval::ApprovalListParams, approval::Approvals;
            ApprovalAnswer, "approval.answer", approval::ApprovalAnswerParams, approval::Approval;
            ToolList, "tool.list", catalog::PageParams, catalog::Tools;
            ToolGet, "tool.get", catalog::NameParams, $crate::tool::Tool;
            BooterList, "booter.list", catalog::PageParams, catalog::Booters;
            ModelList, "model.list", catalog::PageParams, catalog::Models;
        }
    };
}

macro_rules! table {
    ($($name:ident, $wire:literal, $params:ty, $result:ty;)+) => {
        $(
            #[doc = concat!("The method `", $wire, "`.")]
            #[derive(Debug)]
            pub enum $name {}

            impl Method for $name {
                const NAME: &'static str = $wire;
                type Params = $params;
                type Result = $result;
            }
        )+

        /// The name of every method, `rpc.discover` apart.
        pub const NAMES: &[&str] = &[$($wire),+];
    };
}

methods!(table);
