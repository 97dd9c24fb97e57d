//! The only door to the YAML parser: a front matter in, a bounded tree and what is odd in it out.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Options, Parser, ScalarStyle, Span, StructureStyle};

use crate::fault::Fault;
use crate::node::{Entry, Node, Oddity, Place, What, unique};
use crate::strict;

/// How deep lists and maps may lie in each other.
const MOST_DEPTH: usize = 64;
/// How many values a front matter may have, those that aliases repeat too.
const MOST_NODES: usize = 100_000;
/// How many bytes of text aliases may repeat.
const MOST_COPIED: usize = 1024 * 1024;

/// A front matter that is a map.
#[derive(Debug, Default)]
pub struct Front {
    /// Its entries, each key once.
    pub entries: Vec<Entry>,
    /// What is odd about its YAML.
    pub odd: Vec<Oddity>,
}

/// Parses `text`, which must be one map; `line` is that of its first line.
pub fn parse(text: &str, line: usize) -> Result<Front, Fault> {
    let mut builder = Builder { line, ..Builder::default() };
    for event in Parser::new_from_str_with_options(text, options()) {
        let (event, span) = event.map_err(|error| Fault::of(&error, text).down(line))?;
        builder.take(event, span)?;
    }
    let Builder { root, mut odd, strict, quoted, .. } = builder;
    let signs = strict::tabs(text, &quoted).into_iter().chain(strict::signs(text));
    let signs = signs.map(|odd| Oddity { place: (odd.place.0 + line, odd.place.1), ..odd });
    odd.extend(strict::once_per_line(strict.into_iter().chain(signs).collect()));
    match root {
        Some(Node { what: What::Map { entries, .. }, .. }) => Ok(Front { entries, odd }),
        Some(node) if !node.is_null() => Err(Fault::new(node.start, "it is not a map of `key: value` lines")),
        _ => Ok(Front { entries: Vec::new(), odd }),
    }
}

fn options() -> Options {
    granit_parser::options! {
        flow_nesting_limit: MOST_DEPTH,
        block_nesting_limit: MOST_DEPTH,
        emit_anchor_events: true,
    }
}

/// Builds the tree without recursion: a hostile file must not choose how deep our stack goes.
#[derive(Default)]
struct Builder {
    line: usize,
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    copied: usize,
    odd: Vec<Oddity>,
    strict: Vec<Oddity>,
    /// Where quoted and block scalars stand, in bytes, in order.
    quoted: Vec<(usize, usize)>,
}

/// A list or map whose end has not come.
struct Open {
    start: Place,
    anchor: usize,
    is_map: bool,
    flow: bool,
    nodes: Vec<Node>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        let start = self.place(span.start);
        if let Some(tag) = span.tag_start() {
            self.strict(self.place(tag), "a tag (`!`)");
        }
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                if !plain {
                    self.quoted.extend(span.start.byte_offset().zip(span.end.byte_offset()));
                }
                let what = What::Text { text: text.into_owned(), plain };
                self.add(Node { start, end: self.place(span.end), what }, anchor)
            }
            Event::SequenceStart(style, anchor, _) => self.open(false, style, start, anchor),
            Event::MappingStart(style, anchor, _) => self.open(true, style, start, anchor),
            Event::SequenceEnd | Event::MappingEnd => self.close(self.place(span.end)),
            Event::Alias(anchor) => self.repeat(anchor, start, self.place(span.end)),
            Event::Anchor(..) => {
                self.strict(start, "an anchor (`&`)");
                Ok(())
            }
            Event::DocumentStart(..) => self.next_document(start),
            _ => Ok(()),
        }
    }

    fn place(&self, mark: Marker) -> Place {
        (mark.line().saturating_sub(1) + self.line, mark.col())
    }

    fn strict(&mut self, place: Place, what: &str) {
        self.strict.push(Oddity { place, message: format!("{what}: strict readers refuse it") });
    }

    fn next_document(&mut self, start: Place) -> Result<(), Fault> {
        self.documents += 1;
        if self.documents > 1 { Err(Fault::new(start, "a second YAML document begins here")) } else { Ok(()) }
    }

    fn spend(&mut self, nodes: usize, start: Place) -> Result<(), Fault> {
        self.nodes += nodes;
        let is_over = self.nodes > MOST_NODES || self.copied > MOST_COPIED;
        if is_over { Err(Fault::new(start, "too many values; aliases repeat too much")) } else { Ok(()) }
    }

    fn open(&mut self, is_map: bool, style: StructureStyle, start: Place, anchor: usize) -> Result<(), Fault> {
        let flow = style == StructureStyle::Flow;
        let is_inner = self.open.last().is_some_and(|outer| outer.flow);
        if flow && !is_inner {
            self.strict(start, "a list or map in brackets");
        }
        self.spend(1, start)?;
        self.open.push(Open { start, anchor, is_map, flow, nodes: Vec::new() });
        Ok(())
    }

    fn close(&mut self, end: Place) -> Result<(), Fault> {
        let Some(Open { start, anchor, is_map, flow, nodes }) = self.open.pop() else { return Ok(()) };
        let what =
            if is_map { What::Map { entries: self.entries(nodes), flow } } else { What::List { items: nodes, flow } };
        self.add(Node { start, end, what }, anchor)
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Fault> {
        self.spend(1, node.start)?;
        if anchor != 0 {
            self.copy(&node)?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            Some(outer) => outer.nodes.push(node),
            None => self.root = Some(node),
        }
        Ok(())
    }

    fn copy(&mut self, node: &Node) -> Result<(), Fault> {
        let (nodes, depth, bytes) = node.size();
        self.copied += bytes;
        if self.open.len() + depth > MOST_DEPTH {
            return Err(Fault::new(node.start, "lists and maps lie too deep in each other"));
        }
        self.spend(nodes, node.start)
    }

    fn repeat(&mut self, anchor: usize, start: Place, end: Place) -> Result<(), Fault> {
        self.strict(start, "an alias (`*`)");
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(Fault::new(start, "an alias repeats what it is itself a part of"));
        };
        self.copy(&node)?;
        self.add(Node { start, end, what: node.what }, 0)
    }

    /// Pairs keys with values; what `<<` names is merged in, and what stands in the map itself counts more.
    fn entries(&mut self, nodes: Vec<Node>) -> Vec<Entry> {
        let mut nodes = nodes.into_iter();
        let pairs = std::iter::from_fn(|| nodes.next().zip(nodes.next()));
        let (merges, own): (Vec<_>, Vec<_>) = pairs.partition(is_merge);
        let mut all = unique(own, &mut self.odd);
        if merges.is_empty() {
            return all;
        }
        for (key, _) in &merges {
            self.strict(key.start, "a merge key (`<<`)");
        }
        all.reverse();
        all.extend(merges.into_iter().flat_map(|(_, value)| merged(value)));
        all.reverse();
        unique(all, &mut Vec::new())
    }
}

fn is_merge((key, value): &Entry) -> bool {
    let is_map = |node: &Node| matches!(node.what, What::Map { .. });
    let is_mergeable = match &value.what {
        What::Map { .. } => true,
        What::List { items, .. } => items.iter().all(is_map),
        What::Text { .. } => false,
    };
    is_mergeable && matches!(&key.what, What::Text { text, plain: true } if text == "<<")
}

fn merged(value: Node) -> Vec<Entry> {
    match value.what {
        What::Map { entries, .. } => entries,
        What::List { items, .. } => items.into_iter().flat_map(merged).collect(),
        What::Text { .. } => Vec::new(),
    }
}
