//! The scopes of a program that have memory, one by one.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::layout::{Field, Layout};
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
    /// Blocks that were handed out and not freed, with those of the scopes inside it.
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

/// What is needed of the layout.
struct Shape {
    bytes: usize,
    parent: Field,
    limit: Field,
    live_bytes: Field,
    live_blocks: Field,
    name: Field,
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
        })
    }

    fn read(&self, memory: &dyn Memory, address: u64) -> Option<Scope> {
        let record = memory.bytes(address, self.bytes)?;
        let name = record.get(self.name.offset..)?.get(..self.name.bytes)?;
        let end = name.iter().position(|&byte| byte == 0);
        let limit = self.limit.of(&record);
        Some(Scope {
            address,
            parent: self.parent.of(&record),
            name: String::from_utf8_lossy(&name[..end?]).into_owned(),
            live_blocks: self.live_blocks.of(&record),
            live_bytes: self.live_bytes.of(&record),
            limit_bytes: if limit == u64::MAX { 0 } else { limit },
        })
    }
}

/// The scopes that have spans, and those around them, by address.
pub(crate) fn scopes(memory: &dyn Memory, layout: &Layout, regions: &Regions) -> Vec<Scope> {
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
