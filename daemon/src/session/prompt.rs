//! The assembled prompt: persona, booter's parts, skills, tools, in this order. Pure and byte-stable.

use nano_protocol::tool::{Prompt, Tool};

/// Returns the parts, empty ones left out.
pub fn parts(persona: &str, booter: Vec<Prompt>, skills: Vec<Prompt>, tools: &[Tool]) -> Vec<Prompt> {
    let persona = Prompt { name: "persona".into(), source: "agent".into(), text: persona.trim().into() };
    let tools = Prompt { name: "tools".into(), source: "core".into(), text: tool_block(tools) };
    let all = [vec![persona], booter, skills, vec![tools]].concat();
    all.into_iter().filter(|part| !part.text.is_empty()).collect()
}

/// Joins the parts as the model gets them.
pub fn assembled(parts: &[Prompt]) -> String {
    let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
    texts.join("\n\n")
}

fn tool_block(tools: &[Tool]) -> String {
    let lines: Vec<String> = tools.iter().map(|tool| format!("- {}: {}", tool.name, tool.description)).collect();
    if lines.is_empty() { String::new() } else { format!("## Available Tools\n{}", lines.join("\n")) }
}
