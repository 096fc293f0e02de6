//! The scopes of a program that have memory, one by one.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::classes::SizeClass;
use crate::layout::{length_to, Field, Layout};
use crate::memory::Memory;
use crate::regions::Regions;
use crate::residency::Residency;

/// What is needed of the layout to know the mappings of scopes.
pub(crate) struct SpanShape {
    /// Of such a region.
    pub kind: u64,
    /// Its length.
    pub bytes: Field,
    /// Leads to its scope; older libraries do not tell it.
    pub scope: Field,
}

impl SpanShape {
    /// `None`: the library has no scopes.
    pub fn of(layout: &Layout) -> Option<SpanShape> {
        Some(SpanShape {
            kind: layout.constant("REGION_SCOPE", 255).ok()? as u64,
            bytes: layout.field("span.bytes").ok()?,
            scope: layout.field("span.scope").unwrap_or_default(),
        })
    }
}

/// A scope, by its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Of the record.
    pub address: u64,
    /// That of the scope around it, or 0.
    pub parent: u64,
    /// Its name.
    pub name: String,
    /// Blocks that the program has, with those of the scopes inside it.
    pub live_blocks: u64,
    /// Usable bytes of those.
    pub live_bytes: u64,
    /// Bytes that these may be; 0: any.
    pub limit_bytes: u64,
}

/// What a scope holds, with those inside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScopeReport {
    /// Its name, behind those of the scopes around it.
    pub name: String,
    /// Blocks that were handed out and not freed.
    pub live_blocks: u64,
    /// Usable bytes of those.
    pub live_bytes: u64,
    /// Of its pages, those in memory.
    pub resident_bytes: u64,
    /// Bytes that its blocks may have; 0: any.
    pub limit_bytes: u64,
}

/// Scopes in scopes are not nested deeper.
const DEPTH: usize = 64;

/// More caches of threads than a tree has.
const CACHES_MAX: usize = 1 << 16;

/// What is needed of the layout.
struct Shape {
    bytes: usize,
    parent: Field,
    limit: Field,
    live_bytes: Field,
    live_blocks: Field,
    name: Field,
    /// 0 in the record of an ended scope; older libraries do not tell it.
    lives: Option<Field>,
    /// The list of caches, in the record of the outermost scope; of one of these, its node there,
    /// scope, and counts by class. Older libraries do not tell it.
    caches: Option<(Field, [Field; 3])>,
}

impl Shape {
    /// `None`: the library does not tell it.
    fn of(layout: &Layout) -> Option<Shape> {
        let field = |name: &str| layout.field(&format!("hakmem_scope.{name}")).ok();
        Some(Shape {
            bytes: layout
                .size("hakmem_scope")
                .ok()
                .filter(|&bytes| bytes != 0)?,
            parent: field("parent")?,
            limit: field("limit")?,
            live_bytes: field("live_bytes")?,
            live_blocks: field("live_blocks")?,
            name: field("name")?,
            lives: field("lives"),
            caches: field("caches").zip(
                layout
                    .fields("scope_cache", ["by_tree", "scope", "count"])
                    .ok(),
            ),
        })
    }

    /// `None`: it has ended.
    fn read(&self, memory: &dyn Memory, address: u64) -> Option<Scope> {
        let record = memory.bytes(address, self.bytes)?;
        self.lives
            .is_none_or(|it| it.of(&record) != 0)
            .then_some(())?;
        let limit = self.limit.of(&record);
        Some(Scope {
            address,
            parent: self.parent.of(&record),
            name: self.name.text(&record),
            live_blocks: self.live_blocks.of(&record),
            live_bytes: self.live_bytes.of(&record),
            limit_bytes: if limit == u64::MAX { 0 } else { limit },
        })
    }

    /// Blocks and bytes that threads have at hand in a tree, each with its scope: there they count
    /// as live.
    fn cached(
        &self,
        memory: &dyn Memory,
        root: u64,
        classes: &[SizeClass],
    ) -> Vec<(u64, u64, u64)> {
        let Some((caches, fields)) = self.caches else {
            return Vec::new();
        };
        let [node, scope, count] = fields;
        let read = |address: u64| memory.word(address).filter(|&next| next != 0);
        let nodes = std::iter::successors(read(caches.at(root)), |&address| read(address));
        let cached = |address: u64| {
            let cache =
                memory.bytes(address.wrapping_sub(node.offset as u64), length_to(&fields))?;
            let counts = || (0..count.bytes).map(|class| count.element(&cache, class, 1));
            let bytes = counts()
                .zip(classes)
                .map(|(blocks, class)| blocks.saturating_mul(class.size));
            Some((scope.of(&cache), counts().sum(), bytes.sum()))
        };
        nodes.take(CACHES_MAX).filter_map(cached).collect()
    }
}

/// The scopes that have spans, and those around them, by address.
pub(crate) fn scopes(
    memory: &dyn Memory,
    layout: &Layout,
    regions: &Regions,
    classes: &[SizeClass],
) -> Vec<Scope> {
    let Some(shape) = Shape::of(layout) else {
        return Vec::new();
    };
    let mut scopes: BTreeMap<u64, Scope> = BTreeMap::new();
    for &first in &regions.scopes {
        let mut address = first;
        for _ in 0..DEPTH {
            if address == 0 || scopes.contains_key(&address) {
                break;
            }
            let Some(scope) = shape.read(memory, address) else {
                break;
            };
            address = scope.parent;
            scopes.insert(scope.address, scope);
        }
    }
    let roots: Vec<u64> = scopes
        .values()
        .filter(|scope| scope.parent == 0)
        .map(|scope| scope.address)
        .collect();
    for (mut address, blocks, bytes) in roots
        .into_iter()
        .flat_map(|root| shape.cached(memory, root, classes))
    {
        for _ in 0..DEPTH {
            let Some(scope) = scopes.get_mut(&address) else {
                break;
            };
            scope.live_blocks = scope.live_blocks.saturating_sub(blocks);
            scope.live_bytes = scope.live_bytes.saturating_sub(bytes);
            address = scope.parent;
        }
    }
    scopes.into_values().collect()
}

/// The same, as they came from `scopes`, with their memory, those that have most first.
pub(crate) fn reports(
    scopes: &[Scope],
    regions: &Regions,
    residency: &Residency,
) -> Vec<ScopeReport> {
    let around = |address: u64| {
        let place = scopes.binary_search_by_key(&address, |scope| scope.address);
        place.ok().map(|place| &scopes[place])
    };
    let line = |address: u64| {
        std::iter::successors(around(address), |scope| around(scope.parent)).take(DEPTH)
    };
    let mut resident: BTreeMap<u64, u64> = BTreeMap::new();
    for (range, &address) in regions.scoped.iter().zip(&regions.scopes) {
        let bytes = residency.bytes(range.clone());
        for scope in line(address) {
            *resident.entry(scope.address).or_default() += bytes;
        }
    }
    let mut reports: Vec<_> = scopes
        .iter()
        .map(|scope| {
            let mut names: Vec<_> = line(scope.address).map(|it| it.name.as_str()).collect();
            names.reverse();
            ScopeReport {
                name: names.join(" / "),
                live_blocks: scope.live_blocks,
                live_bytes: scope.live_bytes,
                resident_bytes: resident.get(&scope.address).copied().unwrap_or_default(),
                limit_bytes: scope.limit_bytes,
            }
        })
        .collect();
    reports.sort_by_key(|report| std::cmp::Reverse(report.resident_bytes));
    reports
}
