//! What clients rely on, written down once more: members and words. A member with `?` may be absent.

/// A method, the members of its parameters, and those of its result.
pub type Row = (&'static str, &'static str, &'static str);

const SESSION: &str = "id name? owner agent workspace booter booted capabilities model level tool_mode tools skills state \
                       always? parent? metadata created_at updated_at usage";
const TASK: &str = "id seq session origin content state reason? result? error? usage turns metadata created_at started_at? \
                    finished_at? replayed?";
const PROCESS: &str = "id session task call command cwd state status? signal? output started_at ended_at?";
const FOLLOWUP: &str = "id session name? content trigger tz? state reason? next last? runs missed missed_policy overlap grace_ms \
                        max_runs? until? jitter_ms? metadata created_at";
const AGENT: &str = "name model system_prompt booter level tool_mode tools skills max_turns timeout_ms exec_timeout_ms \
                     exec_timeout_max_ms enable_exec enable_steering enable_followup restrict_to_workspace resume approve? approve_timeout_ms? budget \
                     source note?";
const AGENT_CREATE: &str = "name model? system_prompt? booter? level? tool_mode? tools? skills? max_turns? timeout_ms? \
                            exec_timeout_ms? exec_timeout_max_ms? enable_exec? enable_steering? enable_followup? \
                            restrict_to_workspace? resume? approve? approve_timeout_ms? budget?";
const AGENT_UPDATE: &str = "name model? system_prompt? booter? level? tool_mode? tools? skills? max_turns? timeout_ms? \
                            exec_timeout_ms? exec_timeout_max_ms? enable_exec? enable_steering? enable_followup? \
                            restrict_to_workspace? resume? approve? approve_timeout_ms? budget? reset?";
const APPROVAL: &str = "id session task call tool what arguments arguments_sha256 argv? cwd? environment_sha256? why state \
                        created_at expires_at answered_by? answered_at? always reason?";
const SKILL: &str = "name description path source always_load valid problems";
const SKILL_TEXT: &str = "name description path source always_load valid problems body metadata files text digest";
const TOOL: &str = "name description input_schema output_schema? source requires";
const SCHEDULE: &str = "session content trigger name? tz? missed? overlap? grace_ms? max_runs? until? jitter_ms? metadata? \
                        idempotency_key?";
const CREATE: &str =
    "name? agent? workspace? booter? model? level? tool_mode? tools? skills? metadata? idempotency_key?";

/// Every method.
pub const METHODS: &[Row] = &[
    ("daemon.hello", "client protocol", "server version protocol"),
    ("daemon.status", "", "version pid started_at uptime_ms sessions tasks followups store rss_bytes"),
    ("daemon.doctor", "", "checks"),
    ("daemon.reload", "", ""),
    ("daemon.shutdown", "grace_ms?", ""),
    ("session.create", CREATE, SESSION),
    ("session.get", "session", SESSION),
    ("session.list", "state? limit? after?", "sessions next?"),
    ("session.close", "session", SESSION),
    ("session.delete", "session", SESSION),
    ("session.boot", "session", SESSION),
    ("session.tools", "session", "session booter booted exact capabilities revision tools withheld"),
    ("session.prompts", "session", "session booted exact prompts assembled"),
    ("session.messages", "session after_seq? limit?", "messages next_after_seq?"),
    ("session.steer", "session content delivery? metadata? idempotency_key?", "message accepted_as task position"),
    ("session.queue", "session", "waiting"),
    ("session.withdraw", "session id", "waiting"),
    ("task.submit", "session? create? content metadata? idempotency_key? limits?", TASK),
    ("task.get", "task", TASK),
    ("task.list", "session? state? limit? after?", "tasks next?"),
    ("task.wait", "task timeout_ms?", TASK),
    ("task.cancel", "task", TASK),
    ("task.resume", "task", TASK),
    ("followup.schedule", SCHEDULE, FOLLOWUP),
    ("followup.get", "followup", FOLLOWUP),
    ("followup.list", "session? state? limit? after?", "followups next?"),
    ("followup.cancel", "followup", FOLLOWUP),
    ("followup.pause", "followup", FOLLOWUP),
    ("followup.resume", "followup", FOLLOWUP),
    ("followup.runs", "followup limit? after?", "runs next?"),
    ("followup.trigger", "followup content? idempotency_key?", TASK),
    ("followup.next", "trigger from? count?", "next"),
    ("process.list", "session? state? limit? after?", "processes next?"),
    ("process.log", "process offset? tail?", "process content offset next_offset bytes"),
    ("process.kill", "process", PROCESS),
    ("events.subscribe", "session? task? types? since_seq? deltas?", "subscription head_seq"),
    ("events.unsubscribe", "subscription", ""),
    ("agent.list", "limit? after?", "agents next?"),
    ("agent.get", "name", AGENT),
    ("agent.create", AGENT_CREATE, AGENT),
    ("agent.update", AGENT_UPDATE, AGENT),
    ("agent.delete", "name", AGENT),
    ("skill.list", "session? limit? after?", "skills next?"),
    ("skill.get", "name session?", SKILL_TEXT),
    ("skill.create", "name description content metadata? session?", SKILL_TEXT),
    ("skill.update", "name session? description? content? text? digest?", SKILL_TEXT),
    ("skill.delete", "name session? digest?", SKILL),
    ("skill.validate", "text? folder? name? session?", "name description valid problems"),
    ("approval.list", "session? state? limit? after?", "approvals next?"),
    ("approval.answer", "approval allow always?", APPROVAL),
    ("tool.list", "limit? after?", "tools next?"),
    ("tool.get", "name", TOOL),
    ("booter.list", "limit? after?", "booters next?"),
    ("model.list", "limit? after?", "models next?"),
];

/// What nested objects hold, by a pointer into a golden result of the method.
pub const NESTED: &[Row] = &[
    ("daemon.status", "/followups", "active next?"),
    ("daemon.status", "/store", "path bytes"),
    ("session.create", "/usage", "input_tokens output_tokens cost?"),
    ("session.tools", "/tools/*", TOOL),
    ("skill.list", "/skills/*", SKILL),
    ("skill.list", "/skills/*/problems/*", "line? column? message"),
    ("session.tools", "/withheld/*", "name why"),
    ("session.prompts", "/prompts/*", "name source text"),
    ("agent.list", "/agents/*", AGENT),
    ("approval.list", "/approvals/*", APPROVAL),
    ("approval.list", "/approvals/*/cwd", "path device inode"),
    (
        "session.messages",
        "/messages/*",
        "id seq task role content tool_calls? tool_call_id? tool_name? ok? not_run? outcome? partial? source? metadata? at",
    ),
    ("session.messages", "/messages/*/tool_calls/*", "id name arguments arguments_raw?"),
    ("task.submit", "/error", "kind message"),
    ("followup.schedule", "/last", "slot task? state"),
    ("followup.runs", "/runs/*", "slot task? state"),
    ("followup.schedule", "/trigger", "after_ms? at? every_ms? anchor? cron? tz? on? external?"),
    ("followup.schedule", "/trigger/on", "task? event? match? file?"),
];

/// Every type of event, the durable ones first.
pub const DURABLE: &str = "session.created session.booted session.tools_changed session.closed sandbox.lost task.queued \
                           task.started task.interrupted task.finished turn.started turn.finished message.added \
                           tool.started tool.finished steering.queued steering.applied steering.carried \
                           steering.withdrawn steering.rejected followup.scheduled followup.fired followup.missed \
                           followup.cancelled process.exited skill.changed approval.requested approval.answered \
                           model.retry model.fallback context.compacted warning";
/// Those that may be lost.
pub const LOSABLE: &str = "text.delta reasoning.delta tool.output gap";

/// The codes of errors.
pub const ERRORS: &[(&str, i32)] = &[
    ("parse", -32700),
    ("invalid_request", -32600),
    ("method_not_found", -32601),
    ("invalid_params", -32602),
    ("internal", -32603),
    ("not_found", -32001),
    ("conflict", -32002),
    ("denied", -32003),
    ("limit", -32004),
    ("not_running", -32005),
    ("unavailable", -32006),
    ("shutting_down", -32007),
    ("too_large", -32008),
];
