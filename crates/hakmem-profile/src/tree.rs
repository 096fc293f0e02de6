//! Call stacks added up into a tree, for flame graphs.

use std::collections::BTreeMap;

use regex_lite::Regex;

use crate::analysis::{Amount, Analysis, Measure};
use crate::file::FRAMES_MAX;
use crate::select::is_in;
use crate::symbols::Frame;

const CUT_OFF: &str = "… deeper";

/// A function in its callers' context.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// What the frame shows.
    pub name: String,
    /// Function, source and module.
    pub title: String,
    /// It was inlined.
    pub inlined: bool,
    /// What it and what it called have.
    pub now: Amount,
    /// The same of another recording to compare with.
    pub before: Amount,
    /// By name.
    pub callees: BTreeMap<String, Node>,
}

impl Node {
    /// The deepest level below it.
    pub fn depth(&self) -> usize {
        let deepest = self.callees.values().map(Node::depth).max();
        deepest.map_or(0, |depth| depth + 1)
    }

    /// What the widths are made of: the larger one of both recordings.
    pub fn width(&self) -> f64 {
        let callees: f64 = self.callees.values().map(Node::width).sum();
        self.now.bytes.max(self.before.bytes).max(callees)
    }

    /// Whether what it has differs by no more than the choice of samples may make.
    pub fn is_within_error(&self) -> bool {
        let change = self.now.bytes - self.before.bytes;
        change.abs() <= self.now.error_of_difference(&self.before)
    }

    /// Adds the stacks of all sites, to the one amount or the other.
    fn add_all(
        &mut self,
        analysis: &Analysis,
        measure: Measure,
        sum: fn(&mut Node) -> &mut Amount,
    ) {
        for site in &analysis.sites {
            let amount = site.amount(measure);
            if amount.bytes > 0.0 {
                self.add(analysis, site.site, |node| sum(node).join(&amount));
            }
        }
    }

    /// Adds the stack of a site. `change` adds to its nodes.
    fn add(&mut self, analysis: &Analysis, site: usize, change: impl Fn(&mut Node)) {
        change(self);
        let mut node = self;
        // Of a deep stack the outermost frames are not known.
        let recorded = analysis.recording.sites.get(site);
        if recorded.is_some_and(|site| site.frames.len() == FRAMES_MAX) {
            node = node
                .callees
                .entry(CUT_OFF.to_owned())
                .or_insert_with(|| Node {
                    name: CUT_OFF.to_owned(),
                    title: "stacks of which the outermost callers are not recorded".to_owned(),
                    ..Node::default()
                });
            change(node);
        }
        node.add_frames(analysis.symbols.frames_of(site).rev(), change);
    }

    fn add_frames<'a>(
        &mut self,
        frames: impl Iterator<Item = &'a Frame>,
        change: impl Fn(&mut Node),
    ) {
        let mut node = self;
        for frame in frames {
            let key = frame.function.clone();
            node = node.callees.entry(key).or_insert_with(|| Node {
                name: frame.brief(),
                title: title(frame),
                inlined: frame.inlined,
                ..Node::default()
            });
            change(node);
        }
    }
}

fn title(frame: &Frame) -> String {
    let place = match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!(" at {file}:{line}"),
        (Some(file), None) => format!(" at {file}"),
        _ => String::new(),
    };
    let module = match frame.module.as_str() {
        "" => String::new(),
        module => format!(" in {module}"),
    };
    let inlined = if frame.inlined { ", inlined" } else { "" };
    format!("{}{place}{module}{inlined}", frame.function)
}

/// The tree of one recording.
pub fn tree(analysis: &Analysis, measure: Measure) -> Node {
    let mut root = named("all");
    root.add_all(analysis, measure, |node| &mut node.now);
    root
}

/// The tree of two: what was in `before`.
pub fn difference(before: &Analysis, after: &Analysis, measure: Measure) -> Node {
    let mut root = tree(after, measure);
    root.add_all(before, measure, |node| &mut node.before);
    root
}

/// Upside down: the functions in which the expression is found, below them who calls these. Of a
/// stack with several of them counts the innermost one.
pub fn callers(analysis: &Analysis, measure: Measure, function: &Regex) -> Node {
    let mut root = named(&format!("callers of {function}"));
    for site in &analysis.sites {
        let amount = site.amount(measure);
        let frames = || analysis.symbols.frames_of(site.site);
        let first = frames().position(|frame| is_in(function, frame));
        if let (Some(first), true) = (first, amount.bytes > 0.0) {
            root.now.join(&amount);
            root.add_frames(frames().skip(first), |node| node.now.join(&amount));
        }
    }
    root
}

fn named(name: &str) -> Node {
    Node {
        name: name.to_owned(),
        title: name.to_owned(),
        ..Node::default()
    }
}
