//! The book against a plain list, and the bounds that are read from it.
#![expect(clippy::unwrap_used, reason = "tests")]

use nano_protocol::error::ErrorKind;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schedule::booking::{self, Maker};

const STATES: [FollowupState; 4] =
    [FollowupState::Active, FollowupState::Paused, FollowupState::Done, FollowupState::Cancelled];

fn record(id: u32, session: u8, state: FollowupState, schedule: &Schedule, next: i64) -> FollowupRecord {
    let next = schedule.is_timed().then_some(Timestamp(next));
    let followup = json!({
        "id": format!("fup_{id:05}"), "session": format!("ses_{session}"), "content": "f", "trigger": {}, "state": state,
        "next": [], "runs": 0, "missed": 0, "missed_policy": "latest", "overlap": "skip", "grace_ms": 0, "metadata": {},
        "created_at": Timestamp(0),
    });
    serde_json::from_value(json!({"followup": followup, "owner": 1, "schedule": schedule, "next_due": next})).unwrap()
}

fn schedule(kind: u8) -> Schedule {
    match kind {
        0 => Schedule::At { due: Timestamp(0) },
        1 => serde_json::from_value(json!({
            "kind": "after", "due": Timestamp(0), "boot": {"boot": "b", "ms": 500},
        }))
        .unwrap(),
        2 => serde_json::from_value(json!({
            "kind": "after", "due": Timestamp(0), "boot": {"boot": "another", "ms": 5},
        }))
        .unwrap(),
        3 => Schedule::Task { task: TaskId("tsk_1".into()) },
        4 => Schedule::File { glob: "*".into() },
        _ => Schedule::External,
    }
}

fn at(ms: i64) -> Moment {
    Moment { wall: Timestamp(ms), boot_ms: ms.unsigned_abs(), boot: "b".into() }
}

/// Returns who is due and when, as a plain look at all records tells.
fn due(records: &BTreeMap<u32, FollowupRecord>) -> BTreeSet<(i64, String)> {
    let active = records.values().filter(|record| record.followup.state == FollowupState::Active);
    let due = active.filter_map(|record| {
        let at = match slots::schedule(record).unwrap() {
            Schedule::After { boot: Some(boot), .. } if boot.boot == "b" => boot.ms.cast_signed(),
            _ => record.next_due?.0,
        };
        Some((at, record.followup.id.0.clone()))
    });
    due.collect()
}

proptest! {
    #[test]
    fn it_agrees_with_a_plain_list(
        acts in prop::collection::vec((0_u32..12, 0_u8..3, 0_usize..5, 0_u8..6, 1_i64..1000), 1..60),
    ) {
        let (mut book, mut all) = (Book::default(), BTreeMap::new());
        for (id, session, act, kind, next) in acts {
            match STATES.get(act) {
                Some(state) => {
                    let record = record(id, session, *state, &schedule(kind), next);
                    book.put(&record, "b");
                    all.insert(id, record);
                }
                None => {
                    book.remove(&FollowupId(format!("fup_{id:05}")));
                    all.remove(&id);
                }
            }
        }
        let ids = |records: Vec<&FollowupRecord>| -> Vec<String> {
            records.into_iter().map(|record| record.followup.id.0.clone()).collect()
        };
        let backwards: Vec<String> = book.backwards(None, None).map(|(id, _)| id.0.clone()).collect();
        prop_assert_eq!(backwards, ids(all.values().rev().collect()));
        let (session, before) = (SessionId("ses_1".into()), FollowupId("fup_00006".into()));
        let page: Vec<String> = book.backwards(Some(&session), Some(&before)).map(|(id, _)| id.0.clone()).collect();
        let expected = all.range(..6).rev().map(|(_, record)| record).filter(|record| record.followup.session == session);
        prop_assert_eq!(page, ids(expected.collect()));
        let active = |record: &&FollowupRecord| record.followup.state == FollowupState::Active;
        prop_assert_eq!(book.active(), all.values().filter(active).count() as u64);
        let waiting = all.values().filter(active).filter(|one| matches!(slots::schedule(one), Ok(Schedule::File { .. })));
        let awaiting: Vec<String> = book.awaiting(&Awaited::File).into_iter().map(|id| id.0).collect();
        prop_assert_eq!(awaiting, ids(waiting.collect()));
        let due = due(&all);
        let first = due.first().map(|(at, _)| *at);
        prop_assert_eq!(book.next_fire(&at(0)).map(|at| at.0), first);
        for now in 0..1000 {
            let found = book.first_due(&at(now)).map(|id| id.0);
            let expected: Vec<&String> = due.iter().filter(|(at, _)| *at <= now).map(|(_, id)| id).collect();
            prop_assert_eq!(found.is_some(), !expected.is_empty());
            prop_assert!(found.is_none_or(|found| expected.contains(&&found)));
        }
        for (_, id) in due {
            book.put_off(&FollowupId(id), Timestamp(5000));
        }
        prop_assert_eq!(book.first_due(&at(4999)), None);
    }
}

#[test]
fn bounds_of_a_session() {
    let client = Maker { owner: 1, agent: None };
    let agent = |depth| Maker { owner: 1, agent: Some(depth) };
    let (session, other) = (SessionId("ses_1".into()), SessionId("ses_2".into()));
    let refused = |book: &Book, session: &SessionId, maker: &Maker| {
        booking::has_room(book, session, maker).err().map(|error| (error.data.kind, error.message))
    };
    let mut book = Book::default();
    for id in 0..10_000 {
        let state = if id == 3 { FollowupState::Paused } else { FollowupState::Active };
        let mut record = record(id, 1, state, &Schedule::External, 0);
        record.by_agent = id < 10;
        assert_eq!(refused(&book, &session, &client), None, "{id}");
        assert_eq!(refused(&book, &session, &agent(0)).is_some(), id >= 10, "{id}");
        book.put(&record, "b");
    }
    for (maker, says) in [(client.clone(), "10000 follow-ups"), (agent(0), "active: 10"), (agent(3), "depth: ")] {
        let (kind, message) = refused(&book, &session, &maker).unwrap();
        assert!(kind == ErrorKind::Limit && message.contains(says), "{message}");
    }
    assert_eq!(refused(&book, &other, &agent(2)), None);
    assert!(refused(&book, &other, &agent(3)).is_some());
    // What has ended makes room.
    for id in [3, 5000] {
        let mut record = record(id, 1, FollowupState::Done, &Schedule::External, 0);
        record.by_agent = id < 10;
        book.put(&record, "b");
    }
    assert_eq!((refused(&book, &session, &client), refused(&book, &session, &agent(0))), (None, None));
}
