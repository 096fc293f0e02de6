//! Where the cycles of slow paths went, in a process on the measuring library (docs/measuring.md).

use serde::Serialize;

use crate::error::Error;
use crate::layout::{Field, Layout};
use crate::memory::Memory;
use crate::ticks;

/// In ticks of the processor's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cycles {
    /// Ticks in a millisecond, by the clock of this machine.
    pub ticks_per_ms: u64,
    /// By side and kind, without those that never happened.
    pub spans: Vec<Span>,
}

/// Spans of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Span {
    /// `malloc`, `free` or `other`.
    pub side: String,
    /// The kind of work.
    pub kind: String,
    /// How many there were.
    pub count: u64,
    /// Ticks of all together.
    pub ticks: u64,
    /// Of these, what was in no span inside it.
    pub own_ticks: u64,
    /// The longest one.
    pub max_ticks: u64,
    /// Place i counts those whose ticks have i bits.
    pub histogram: Vec<u64>,
}

/// Bytes of a name in the tables of the library.
const SIDE_NAME: usize = 8;
const KIND_NAME: usize = 16;

/// More than any library has, of each.
const COPIES_MAX: u32 = 64;
const KINDS_MAX: u32 = 64;
/// Ticks have no more bits, or none.
const BUCKETS_MAX: usize = 65;

impl Cycles {
    /// Reads them; `None`: nothing was counted.
    ///
    /// # Errors
    /// The library does not say where they are.
    pub fn read(memory: &dyn Memory, layout: &Layout) -> Result<Option<Cycles>, Error> {
        let spans = spans(memory, layout)?;
        if spans.is_empty() {
            return Ok(None);
        }
        Ok(Some(Cycles {
            ticks_per_ms: ticks::per_ms(),
            spans,
        }))
    }

    /// So many ticks in nanoseconds.
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * 1e6 / self.ticks_per_ms.max(1) as f64
    }
}

impl Span {
    /// A bound, in ticks, that so many thousandths of the spans keep.
    pub fn quantile(&self, thousandths: u64) -> u64 {
        let mut below = 0u64;
        for (bits, count) in self.histogram.iter().enumerate() {
            below = below.saturating_add(*count);
            if below.saturating_mul(1000) >= self.count.saturating_mul(thousandths) {
                return ((1u64 << bits.min(63)) - 1).min(self.max_ticks);
            }
        }
        self.max_ticks
    }

    fn add(&mut self, counts: &[u8], fields: &[Field; 4], buckets: Field) {
        let [count, total, own, max] = fields.map(|field| field.of(counts));
        self.count = self.count.saturating_add(count);
        self.ticks = self.ticks.saturating_add(total);
        self.own_ticks = self.own_ticks.saturating_add(own);
        self.max_ticks = self.max_ticks.max(max);
        for (place, sum) in self.histogram.iter_mut().enumerate() {
            *sum = sum.saturating_add(buckets.element(counts, place, 8));
        }
    }
}

fn spans(memory: &dyn Memory, layout: &Layout) -> Result<Vec<Span>, Error> {
    let copies = layout.constant("CYCLES_COPIES", COPIES_MAX)?;
    let sides = layout.constant("CYCLES_SIDES", KINDS_MAX)?;
    let kinds = layout.constant("CYCLES_KINDS", KINDS_MAX)?;
    let (stride, bytes) = (layout.size("cycles_copy")?, layout.size("cycles_counts")?);
    let fields = layout.fields("cycles_counts", ["count", "total", "own", "max"])?;
    let buckets = layout.field("cycles_counts.buckets")?;
    let table = layout.address_of("cycles_copies")?;
    if table == 0 {
        return Ok(Vec::new());
    }
    let table = memory.bytes(table, copies * stride).unwrap_or_default();
    let side_names = names(memory, layout, "cycles_side_names", sides, SIDE_NAME)?;
    let kind_names = names(memory, layout, "cycles_kind_names", kinds, KIND_NAME)?;
    let mut spans = Vec::new();
    // Malloc before free before what is neither.
    for side in (0..sides).map(|side| (side + 1) % sides) {
        for (kind, name) in kind_names.iter().enumerate() {
            let mut span = Span {
                side: side_names[side].clone(),
                kind: name.clone(),
                histogram: vec![0; (buckets.bytes / 8).min(BUCKETS_MAX)],
                ..Span::default()
            };
            for copy in table.chunks_exact(stride) {
                let start = (side * kinds + kind) * bytes;
                span.add(copy.get(start..).unwrap_or_default(), &fields, buckets);
            }
            while span.histogram.last() == Some(&0) {
                span.histogram.pop();
            }
            if span.count > 0 {
                spans.push(span);
            }
        }
    }
    Ok(spans)
}

/// A table of names of the library; those that cannot be read have their numbers.
fn names(
    memory: &dyn Memory,
    layout: &Layout,
    table: &str,
    count: usize,
    bytes: usize,
) -> Result<Vec<String>, Error> {
    let text = memory.bytes(layout.address_of(table)?, count * bytes);
    let text = text.unwrap_or_else(|| vec![0; count * bytes]);
    let name = |(number, name): (usize, &[u8])| {
        let letters: String = name
            .iter()
            .take_while(|&&letter| letter != 0)
            .map(|&letter| match letter {
                b'a'..=b'z' | b'0'..=b'9' | b'_' => letter as char,
                _ => '?',
            })
            .collect();
        match letters.is_empty() {
            true => number.to_string(),
            false => letters,
        }
    };
    Ok(text.chunks_exact(bytes).enumerate().map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_ends_of_their_places() {
        let span = Span {
            count: 100,
            max_ticks: 700,
            histogram: vec![0, 0, 98, 0, 0, 0, 0, 0, 0, 0, 2],
            ..Span::default()
        };
        assert_eq!(span.quantile(500), 3);
        assert_eq!(span.quantile(990), 700);
        assert_eq!(Span::default().quantile(500), 0);
    }
}
