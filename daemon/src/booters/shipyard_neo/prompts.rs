//! What a model is told about a sandbox of this kind.

use nano_protocol::tool::Prompt;

use super::SOURCE;

const FILE_PATHS: &str = "## Paths in the sandbox\n\
    Name files of the sandbox relative to its own folder, /workspace, in which commands start: `report.txt`, not \
    `/workspace/report.txt` and no folder of the host. The sandbox has files of its own: upload_file brings a file of the \
    host's workspace into it, download_file brings one of the sandbox to the host's workspace.";

const LIFECYCLE: &str = "## Making a skill that lasts\n\
    What you do in the sandbox can become a skill that later sessions of this workspace have. Use the tools for it; a file or folder that \
    you write yourself is no skill.\n\
    1. Do it in the sandbox until it works; get_execution_history tells the ids of those executions.\n\
    2. create_skill_payload stores the content; for a skill that is to be installed here it has the text of its SKILL.md \
    in `skill_markdown`.\n\
    3. create_skill_candidate puts payload and executions together under a skill_key.\n\
    4. evaluate_skill_candidate records whether it holds: nothing is promoted whose latest evaluation has not passed.\n\
    5. promote_skill_candidate releases it: stage canary to try it out; stage stable with sync_to_local for use, which \
    also installs it here, so that load_skill finds it.\n\
    A skill is changed by a new payload, a new candidate and a new release, never in place; rollback_skill_release goes \
    back to the release before.";

const SANDBOX: &str = "## Sandbox\n\
    You have a sandbox, a computer of your own apart from the host: shell commands and Python run in it without harm to \
    anything outside. Python keeps its variables from one call to the next.";

/// Returns the parts of the prompt, in order.
pub fn all() -> Vec<Prompt> {
    [("file_paths", FILE_PATHS), ("skill_lifecycle", LIFECYCLE), ("sandbox", SANDBOX)]
        .map(|(name, text)| Prompt { name: name.into(), source: SOURCE.into(), text: text.into() })
        .into()
}
