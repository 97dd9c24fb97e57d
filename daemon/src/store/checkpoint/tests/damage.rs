//! Each file damaged in each way: what comes back, and what is named.

use super::super::super::SCHEMA;
use super::super::super::journal::line::Entry;
use super::super::super::tail::Span;
use super::super::{CheckpointError, Checkpoints, file};
use super::world::{World, open, puts};
use std::sync::Arc;

/// Returns `data` flipped, cut or emptied at `place`, or none for a file that is gone.
pub fn damaged(data: &[u8], how: u8, place: usize) -> Option<Vec<u8>> {
    let mut data = data.to_vec();
    match how {
        0 => data[place] ^= 1,
        1 => data.truncate(place),
        2 => data.clear(),
        _ => return None,
    }
    Some(data)
}

/// Asserts that every record is right, or lies where records are said to be lost.
#[track_caller]
pub fn is_whole_but_for_what_is_named(world: &World) {
    let read = world.read(&Span::all());
    let lost: Vec<_> = read.iter().filter_map(|record| record.as_ref().err()).collect();
    let is_lost = |key: &Vec<u8>| lost.iter().any(|lost| lost.first <= *key && *key <= lost.last);
    let found: super::world::Model = read.iter().filter_map(|record| record.clone().ok()).collect();
    let model = world.model();
    assert!(found.iter().all(|(key, value)| model.get(key) == Some(value)), "what is not so was read");
    let gone: Vec<_> = model.keys().filter(|key| !found.contains_key(*key) && !is_lost(key)).collect();
    assert!(gone.is_empty(), "{gone:?} are gone unnamed");
}

fn named(world: &World) -> Vec<String> {
    world.read(&Span::all()).into_iter().filter_map(Result::err).map(|missing| missing.to_string()).collect()
}

/// Damages the file that has `name` in its name, in each way, and tells what is lost each time, where it is the same.
#[track_caller]
fn check(name: &str, generation: u64, lost: &[&str]) {
    // Chunks 000-009, 010-019 and so on; the second generation wrote 010-019 anew, the third 030 and on.
    let all = World::of([puts(0..45), vec![Entry::Delete(b"012".into())], puts(40..47)]);
    let length = all.disk.files()[name].len();
    let ways = (0..length).step_by(13).flat_map(|place| [(0, place), (1, place)]).chain([(2, 0), (3, 0)]);
    for (how, place) in ways {
        let mut world = all.copy();
        let data = world.disk.files()[name].clone();
        world.disk.set(name, damaged(&data, how, place));
        world.reopen();
        assert_eq!(world.checkpoints.newest().generation, generation, "{name} {how} at {place}");
        let is_named = world.checkpoints.unreadable().iter().any(|unreadable| unreadable == name);
        assert_eq!(is_named, name.ends_with(".manifest") && how < 3, "{name} {how} at {place}");
        assert_eq!(named(&world), lost, "{name} {how} at {place}");
        is_whole_but_for_what_is_named(&world);
        if lost.is_empty() {
            world.is_whole();
            world.line(puts(0..1));
            world.next().unwrap();
            world.is_whole();
            world.is_clean();
        }
    }
}

#[test]
fn a_newest_manifest_is_not_needed() {
    check("0000000000000003.manifest", 2, &[]);
}

#[test]
fn an_older_manifest_is_not_needed() {
    check("0000000000000002.manifest", 3, &[]);
}

#[test]
fn a_chunk_of_the_newest_generation_is_made_again() {
    check("0000000000000003-000000.chunk", 3, &[]);
}

#[test]
fn an_older_chunk_is_lost_and_named() {
    check("0000000000000001-000000.chunk", 3, &["10 records from 000 to 009"]);
    check("0000000000000002-000000.chunk", 3, &["9 records from 010 to 019"]);
}

#[test]
fn around_what_is_lost_the_journal_is_heard() {
    let mut world = World::of([puts(0..30), vec![]]);
    world.disk.set("0000000000000001-000001.chunk", None);
    world.line([puts(8..12), vec![Entry::Delete(b"005".into())]].concat());
    let found: Vec<_> = world.read(&Span { from: b"004".into(), to: Some(b"021".into()) });
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let found: Vec<_> =
        found.into_iter().map(|r| r.map_or_else(|lost| lost.to_string(), |(key, _)| text(key))).collect();
    let lost = "10 records from 010 to 019";
    assert_eq!(found, ["004", "006", "007", "008", "009", lost, "010", "011", "020"]);
    assert_eq!(world.read(&Span { from: b"020".into(), to: None }).len(), 10);
}

#[test]
fn no_generation_is_made_that_would_forget_what_is_lost() {
    let mut world = World::of([puts(0..30), vec![]]);
    let whole = world.disk.files();
    world.disk.set("0000000000000001-000001.chunk", Some(vec![]));
    let before = world.disk.files();
    world.line(puts(12..13));
    let error = world.next().unwrap_err();
    assert_eq!(error.to_string(), "the checkpoint has lost 10 records from 010 to 019");
    assert_eq!(world.disk.files(), before);
    world.disk.set("0000000000000001-000001.chunk", whole.get("0000000000000001-000001.chunk").cloned());
    world.next().unwrap();
    world.is_whole();
}

#[test]
fn what_the_newest_wrote_is_proven_again_before_the_older_one_goes() {
    let mut world = World::of([puts(0..30), puts(12..13)]);
    world.disk.set("0000000000000002-000000.chunk", Some(vec![]));
    world.line(puts(0..1));
    world.next().unwrap();
    assert_eq!(world.written_for(), [3, 3, 1]);
    world.is_whole();
}

#[test]
fn what_stands_in_must_be_the_same() {
    let mut world = World::of([puts(0..30), puts(12..15)]);
    world.disk.set("0000000000000002-000000.chunk", Some(vec![]));
    world.is_whole();
    // What the journal says behind the checkpoint is no part of it.
    world.line(vec![Entry::Delete(b"013".into())]);
    world.is_whole();
    world.lines[1].entries.pop();
    world.lines[1].entries.push(Entry::Delete(b"014".into()));
    assert_eq!(named(&world), ["10 records from 010 to 019"]);
}

#[test]
fn a_newer_manifest_is_refused_and_left_alone() {
    let seal = |body: String| {
        let sha256 = file::sha256(body.as_bytes());
        format!("{body}{{\"sha256\":\"{sha256}\"}}").into_bytes()
    };
    let head = |format: u32, schema: u32| {
        format!("{{\"nano_checkpoint\":{format},\"schema\":{schema},\"generation\":3,\"through\":1,\"head\":1}}\n")
    };
    for (body, is_refused) in [
        (head(1, SCHEMA), false),
        (head(2, SCHEMA), true),
        (head(1, SCHEMA + 1), true),
        (head(2, SCHEMA) + "in another form\n", true),
        (head(1, SCHEMA) + "in another form\n", false),
    ] {
        let world = World::of([puts(0..30)]);
        world.disk.set("0000000000000003.manifest", Some(seal(body.clone())));
        let before = world.disk.files();
        let read = Checkpoints::read(Arc::new(world.disk.clone()));
        assert_eq!(matches!(read, Err(CheckpointError::Newer { .. })), is_refused, "{body}");
        assert_eq!(world.disk.files(), before);
    }
}

#[test]
fn without_manifests_the_journal_alone_is_read() {
    let mut world = World::of([puts(0..30)]);
    world.disk.set("0000000000000001.manifest", Some(b"no".to_vec()));
    world.reopen();
    assert_eq!(world.checkpoints.unreadable(), ["0000000000000001.manifest"]);
    assert_eq!((world.checkpoints.newest().generation, world.checkpoints.newest().through), (0, 0));
    world.is_whole();
    world.next().unwrap();
    assert_eq!(open(&world.disk).newest().generation, 2);
    world.is_clean();
    world.is_whole();
}

#[test]
fn other_files_are_left_alone() {
    let mut world = World::of([puts(0..30)]);
    for name in
        ["notes", "0000000000000001.manifest.bak", "000000000000000x.manifest", "0000000000000001-1.jnl", "ééééééééé"]
    {
        world.disk.set(name, Some(b"mine".to_vec()));
    }
    world.line(puts(0..20));
    world.next().unwrap();
    assert_eq!(world.disk.files().values().filter(|data| *data == b"mine").count(), 5);
}
