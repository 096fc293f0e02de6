//! Brings threads that hit in all of their calls to a slow path.

use super::{each_heap, Shape, POPS_CHANGE};
use crate::error::Error;
use crate::layout::{Field, Layout};
use crate::memory::{Budget, Memory};

/// The heaps of some hundred threads.
const BUDGET_LEAST: u64 = 64 << 20;

/// Where heaps count what their magazines hand out, so that the next one may leave its hit path.
pub(crate) struct Counting {
    shape: Shape,
    sample_round: Field,
    heaps: u64,
}

impl Counting {
    pub fn of(memory: &dyn Memory, layout: &Layout) -> Result<Counting, Error> {
        let all = layout.field("registry.all")?;
        Ok(Counting {
            shape: Shape::of(memory, layout)?,
            sample_round: layout.field("magazine.sample_round")?,
            heaps: all.at(layout.address_of("registry")?),
        })
    }

    /// Lets the next block that each magazine hands out be due, which is counted already. The
    /// thread goes on: what it hands out between a look and the writes, a microsecond, is not
    /// counted. The block is no sample.
    pub fn hasten(&self, memory: &dyn Memory, write: impl Fn(u64, &[u8])) {
        let (shape, heap) = (&self.shape, &self.shape.heap);
        let memory = &Budget::with(memory, BUDGET_LEAST);
        each_heap(memory, shape, self.heaps, |record| {
            let (area, shard) = (heap.area.of(record), heap.shard.of(record));
            if heap.bare.of(record) != 0 {
                return;
            }
            for class in 1..shape.classes {
                let magazine = shape.magazines + shape.place(shard, class) * shape.magazine_bytes;
                let magazine = area.wrapping_add(magazine as u64);
                let at_due = shape.pops_at_due.at(magazine);
                let left = shape.pops_left.at(area).wrapping_add(class as u64 * 8);
                let (Some(due), Some(pops)) = (memory.word(at_due), memory.word(left)) else {
                    continue;
                };
                if due & POPS_CHANGE == 0 && pops > 1 && pops <= due {
                    write(self.sample_round.at(magazine), &[0]);
                    write(at_due, &((due - pops + 1) | POPS_CHANGE).to_ne_bytes());
                    write(left, &1u64.to_ne_bytes());
                }
            }
        });
    }
}
