//! Skills: SKILL.md documents that inform a model; they execute nothing.

use crate::Object;
use crate::id::SessionRef;

wire! {
    /// Something that a reader of skills would want to know: a leniency, or why a file cannot be used.
    pub struct Problem {
        /// The line in the file, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub line: Option<u32>,
        /// The character in the line, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub column: Option<u32>,
        /// What, and what to do.
        pub message: String,
    }

    /// A skill as lists show it.
    pub struct SkillInfo {
        /// Its name; that of its folder where it has none.
        pub name: String,
        /// What it is about and when to load it; empty where it does not say.
        pub description: String,
        /// The file; `nanod:NAME/SKILL.md` for a shipped one.
        pub path: String,
        /// `workspace`, `config`, `user`, `system` or `shipped`.
        pub source: String,
        /// Whether its body stands in the prompt from the start.
        pub always_load: bool,
        /// Whether it can be offered to a model; `problems` says why not.
        pub valid: bool,
        /// What is odd or wrong about it.
        pub problems: Vec<Problem>,
    }

    /// Result of `skill.list`.
    pub struct Skills {
        /// By name; of one name, the one that counts first.
        pub skills: Vec<SkillInfo>,
        /// Goes into `after` for the rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Result of `skill.get`: the same and the document.
    pub struct Skill {
        /// As in the list.
        #[serde(flatten)]
        pub info: SkillInfo,
        /// What a model gets that loads it.
        pub body: String,
        /// The front matter.
        pub metadata: Object,
        /// Files beside it, relative to its folder; at most 100.
        pub files: Vec<String>,
        /// The whole file.
        pub text: String,
        /// SHA-256 of the file, in hex: an update or delete can ask for exactly this.
        pub digest: String,
    }

    /// Result of `skill.validate`.
    pub struct Validated {
        /// The name that was read.
        pub name: String,
        /// The description that was read.
        pub description: String,
        /// Whether it can be offered to a model.
        pub valid: bool,
        /// What is odd or wrong about it.
        pub problems: Vec<Problem>,
    }
}

params! {
    /// Parameters of `skill.list`.
    pub struct SkillListParams {
        /// What this session could be offered: its workspace's skills too.
        pub session: Option<SessionRef>,
        /// At most so many; 200 unless told.
        pub limit: Option<usize>,
        /// `next` of the page before.
        pub after: Option<String>,
    }

    /// Parameters of `skill.get`.
    pub struct SkillParams {
        /// Its name.
        pub name: String,
        /// Among this session's.
        pub session: Option<SessionRef>,
    }

    /// Parameters of `skill.create`.
    pub struct SkillCreateParams {
        /// Its name: 1 to 64 of a-z 0-9 and single dashes.
        pub name: String,
        /// What it is about and when to load it.
        pub description: String,
        /// The body.
        pub content: String,
        /// Further front matter.
        pub metadata: Option<Object>,
        /// In this session's workspace; in the first writable folder of the daemon's unless told.
        pub session: Option<SessionRef>,
    }

    /// Parameters of `skill.update`: `text`, or what of the document changes.
    pub struct SkillUpdateParams {
        /// Its name.
        pub name: String,
        /// Among this session's.
        pub session: Option<SessionRef>,
        /// The new description.
        pub description: Option<String>,
        /// The new body.
        pub content: Option<String>,
        /// The whole new file.
        pub text: Option<String>,
        /// Only if the file still is this one.
        pub digest: Option<String>,
    }

    /// Parameters of `skill.delete`.
    pub struct SkillDeleteParams {
        /// Its name.
        pub name: String,
        /// Among this session's.
        pub session: Option<SessionRef>,
        /// Only if the file still is this one.
        pub digest: Option<String>,
    }

    /// Parameters of `skill.validate`: a text, or the name of a skill there is.
    pub struct SkillValidateParams {
        /// A whole SKILL.md.
        pub text: Option<String>,
        /// The folder's name that `text` is to lie in.
        pub folder: Option<String>,
        /// A skill's name.
        pub name: Option<String>,
        /// Among this session's.
        pub session: Option<SessionRef>,
    }
}
