//! Inputs and effects in few words, for tables.

use nano_protocol::id::{MessageId, TaskId};
use nano_protocol::session::Delivery;

use super::super::{Effect, Input, Machine, Queued, Reply, Steer};

pub const WRITES: bool = false;
pub const READS: bool = true;

pub fn submit(max_turns: u32) -> Input {
    Input::Submit(Queued::fresh(TaskId("p".into()), max_turns))
}
pub fn another(task: &str) -> Input {
    Input::Submit(Queued::fresh(TaskId(task.into()), 20))
}
pub fn steer(message: &str, delivery: Delivery) -> Input {
    Input::Steer(Steer { message: MessageId(message.into()), delivery })
}
pub fn says(calls: &[bool]) -> Input {
    Input::Replied(Reply { calls: calls.to_vec(), cut: false, over_budget: false })
}
pub fn is_cut(calls: &[bool]) -> Input {
    Input::Replied(Reply { calls: calls.to_vec(), cut: true, over_budget: false })
}
pub fn spends_all(calls: &[bool]) -> Input {
    Input::Replied(Reply { calls: calls.to_vec(), cut: false, over_budget: true })
}
/// A call ends with a result of its own.
pub fn ended(call: usize) -> Input {
    Input::CallEnded(call, None)
}
pub fn ended_as(call: usize, print: u64) -> Input {
    Input::CallEnded(call, Some(print))
}
pub fn cancel(task: &str) -> Input {
    Input::Cancel(TaskId(task.into()))
}

/// Prints an effect as table 1.6 writes it: U(p) A T0 S.
pub fn word(effect: &Effect) -> String {
    let names = |messages: &[MessageId]| messages.iter().map(MessageId::as_str).collect::<Vec<_>>().join(" ");
    match effect {
        Effect::Begin(task) => format!("{task}:"),
        Effect::TurnBegin => "<".into(),
        Effect::Open => "U".into(),
        Effect::Inject(messages) => names(messages),
        Effect::Ask => "ask".into(),
        Effect::KeepReply => "A".into(),
        Effect::Start(call) => format!("start{call}"),
        Effect::Ended(call, 0..=2) => format!("end{call}"),
        Effect::Ended(call, seen) => format!("end{call}({seen} times)"),
        Effect::KeepResult(call) => format!("T{call}"),
        Effect::Settle(call, why) => format!("T{call}!{why}"),
        Effect::TurnEnd => ">".into(),
        Effect::StopModel => "stop-model".into(),
        Effect::StopCall(call) => format!("stop{call}"),
        Effect::Finish(task, state, reason) => format!("{task}={state}:{reason}"),
        Effect::Carry(messages) => format!("carry({})", names(messages)),
        Effect::Dropped(message) => format!("drop({message})"),
    }
}

/// Gives each input to one machine, and compares what it makes of it.
pub fn check(script: &[(Input, &str)]) {
    let mut machine = Machine::default();
    for (at, (input, expected)) in script.iter().enumerate() {
        let words: Vec<String> = machine.on(input.clone()).iter().map(word).collect();
        assert_eq!(words.join(" "), *expected, "step {at}, {input:?}");
    }
}
