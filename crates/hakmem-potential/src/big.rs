//! What keeping big blocks for reuse can save of page faults.

use serde::{Deserialize, Serialize};

use crate::blocks::{Block, Program};
use crate::segregation::SLAB_BLOCK_MOST;

const PAGE: f64 = 4096.0;

/// Pages of blocks above 32 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Big {
    /// Of all bytes allocated, what was in big blocks.
    pub share: f64,
    /// Pages of all big blocks: the faults if none were reused and all were touched.
    pub pages_allocated: f64,
    /// Most at the same time: the faults if all were reused.
    pub pages_peak: f64,
}

/// Counts.
pub fn count(program: &Program) -> Big {
    let is_big = |block: &&Block| block.usable > SLAB_BLOCK_MOST;
    let big = Program {
        blocks: program.blocks.iter().filter(is_big).copied().collect(),
        ..program.clone()
    };
    let allocated = big.blocks.iter().fold(0.0, |sum, it| sum + it.weight());
    Big {
        share: allocated / program.allocated.max(1.0),
        pages_allocated: allocated / PAGE,
        pages_peak: big.peak().1 / PAGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_big_blocks() {
        let block = |birth: f64, death: f64, usable: u64| Block {
            site: 0,
            requested: usable,
            usable,
            birth,
            death,
            count: 1.0,
        };
        let program = Program {
            blocks: vec![
                block(0.0, 65536.0, 65536),
                block(65536.0, f64::INFINITY, 65536),
                block(131072.0, f64::INFINITY, 64),
            ],
            stacks: Vec::new(),
            allocated: 131136.0,
        };
        let big = count(&program);
        assert_eq!((big.pages_allocated, big.pages_peak), (32.0, 16.0));
        assert!(big.share > 0.99);
    }
}
