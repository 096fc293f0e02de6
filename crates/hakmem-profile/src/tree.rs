//! Call stacks added up into a tree, for flame graphs.

use std::collections::BTreeMap;

use crate::analysis::{Analysis, Measure};
use crate::file::FRAMES_MAX;
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
    /// Bytes, of what it called as well.
    pub bytes: f64,
    /// Bytes of another recording to compare with.
    pub before: f64,
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
        self.bytes.max(self.before).max(callees)
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
        for frame in analysis.symbols.frames_of(site).rev() {
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
    let mut root = root();
    for site in &analysis.sites {
        let bytes = site.amount(measure).bytes;
        if bytes > 0.0 {
            root.add(analysis, site.site, |node| node.bytes += bytes);
        }
    }
    root
}

/// The tree of two: what was in `before`.
pub fn difference(before: &Analysis, after: &Analysis, measure: Measure) -> Node {
    let mut root = tree(after, measure);
    for site in &before.sites {
        let bytes = site.amount(measure).bytes;
        if bytes > 0.0 {
            root.add(before, site.site, |node| node.before += bytes);
        }
    }
    root
}

fn root() -> Node {
    Node {
        name: "all".to_owned(),
        title: "all".to_owned(),
        ..Node::default()
    }
}
