//! Files made to hurt: the bytes asked of the allocator stand for work and memory, so the bound is the same on every
//! machine.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(unsafe_code, reason = "counting needs an allocator of one's own")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use nano_skill::{Document, MAX_FRONT_MATTER};

/// All that reading one file may ask for, however it is written, and how much of it at a time.
const MOST_ASKED: usize = 256 * 1024 * 1024;
const MOST_HELD: usize = 64 * 1024 * 1024;

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: usize, sign: isize) {
    if sign > 0 {
        ASKED.set(ASKED.get() + bytes);
    }
    HELD.set(HELD.get() + sign * isize::try_from(bytes).unwrap_or(isize::MAX));
    PEAK.set(PEAK.get().max(HELD.get()));
}

// SAFETY: all is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Writes one line for each number.
fn numbered(count: usize, line: &dyn Fn(usize) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().concat()
}

const ROOM: usize = MAX_FRONT_MATTER - 100;

#[track_caller]
fn bounded(what: &str, text: &str) -> Document {
    ASKED.set(0);
    let before = HELD.get();
    PEAK.set(before);
    let read = Document::read(text.as_bytes(), "x");
    let (asked, held) = (ASKED.get(), usize::try_from(PEAK.get() - before).unwrap());
    assert!(asked < MOST_ASKED && held < MOST_HELD, "{what}: {asked} bytes asked, {held} held");
    assert!(read.problems.len() <= 50, "{what}");
    read
}

fn filled(before: &str, unit: &str, after: &str) -> String {
    let count = (ROOM - before.len() - after.len()) / unit.len();
    format!("---\n{before}{}{after}\n---\nB\n", unit.repeat(count))
}

/// Name and description survive whatever the rest of the front matter is.
#[test]
fn a_bomb_beside_the_description_costs_it_nothing() {
    let head = "name: x\ndescription: d\n";
    let units = [
        ("a: ", "[", ""),
        ("a: [", "[],", "]"),
        ("a: ", "{a: ", ""),
        ("a:\n  ", "- ", ""),
        ("a:\n  ", "? ", ""),
        ("a: &a [", "x,", "]\nb: [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]"),
        ("a: &a x\nb: [", "*a,", "]"),
        ("a: &a [*a, ", "*a,", "]"),
        ("a: \"", "\\u0041", "\""),
        ("a: ", ": ", ""),
        ("a: '", "' '", ""),
        ("", "#\n", "a: b"),
        ("", "--- a\n", ""),
        ("a: b\n", " \u{1b}\n", ""),
        ("a: b\t\n", "a: b\t\n", ""),
        ("", "? [a, b]\n: c\n", ""),
        ("a: |\n", "  \u{2028}\n", ""),
        ("metadata: ", "{\"a\":", ""),
    ];
    for (before, unit, after) in units {
        let read = bounded(unit, &filled(&format!("{head}{before}"), unit, after));
        assert!(read.valid && read.name == "x" && read.description.starts_with('d'), "{unit}: {:?}", read.problems);
    }
}

#[test]
fn thousands_of_failing_keys_are_each_read_once() {
    for unit in
        ["a: *\n", "a:*\n", "name:*\n", "a: b: c\n", "a: \"\n", "a: \u{1b}\n", "Name: *\n", "description: *a\n", "a:\n"]
    {
        bounded(unit, &filled("", unit, ""));
    }
    let keys = numbered(8000, &|key| format!("k{key}: *\n"));
    let nested = numbered(300, &|depth| format!("{}metadata:\n", " ".repeat(depth)));
    bounded("nested", &format!("---\n{nested}{}x: *\n---\n", " ".repeat(300)));
    bounded("keys", &format!("---\n{keys}---\n"));
}

#[test]
fn aliases_are_counted_however_they_nest() {
    let laughs = numbered(9, &|key| {
        let items = vec![format!("*a{key}"); 9].join(",");
        format!("a{next}: &a{next} [{items}]\n", next = key + 1)
    });
    let head = "name: x\ndescription: d\na0: &a0 [x,x,x,x,x,x,x,x,x]\n";
    assert!(bounded("laughs", &format!("---\n{head}{laughs}---\n")).valid);
    let nest = numbered(60, &|depth| format!("&a{depth} ["));
    bounded("nested", &format!("---\na: {nest}{}{}\n---\n", "x,".repeat(20_000), "]".repeat(60)));
    let many = numbered(2000, &|key| format!("k{key}: 1,"));
    let merges = numbered(2000, &|key| format!("  k{key}:\n    <<: *a\n"));
    bounded("merges", &format!("---\na: &a {{{many}}}\nb:\n{merges}---\n"));
}

#[test]
fn a_whole_file_of_anything_is_read() {
    for unit in ["\n", "\r", "---\n", "...\n", "\u{feff}", " a\n", "a\n", "\0", "- ", "#\n", "\t", "x", "é", "a: b\n"]
    {
        let text = unit.repeat(1024 * 1024 / unit.len());
        bounded(unit, &text);
        let room = 1024 * 1024 - 60;
        bounded(unit, &format!("---\n{}", &unit.repeat(room / unit.len())));
        let read = bounded(unit, &format!("---\nname: x\ndescription: d\n---\n{}", &unit.repeat(room / unit.len())));
        assert!(read.valid, "{unit:?}");
    }
}
