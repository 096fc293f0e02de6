//! Which blocks of a slab are live, cached or free, and how many bytes of a page that is.

use crate::slab::Slab;

/// The unit in which hakmem counts.
pub(crate) const PAGE: u64 = 4096;

/// What the blocks of a slab are, as bits: in transfer caches, in magazines, free in the slab; all
/// others are live. A block that was on its way when it was read counts as the first of these.
pub(crate) struct Bits {
    kinds: [Vec<u64>; 3],
}

impl Bits {
    pub fn of(slab: &Slab) -> Bits {
        let mut kinds = [
            slab.in_transfer.clone(),
            slab.in_magazines.clone(),
            slab.free.clone(),
        ];
        let (mut taken, words) = (vec![0; slab.free.len()], slab.free.len());
        for kind in &mut kinds {
            kind.resize(words, 0);
            for (word, taken) in kind.iter_mut().zip(&mut taken) {
                *word &= !*taken;
                *taken |= *word;
            }
        }
        Bits { kinds }
    }

    /// Blocks from `first` up to `end`, by kind; the live ones last.
    pub fn counts(&self, first: u64, end: u64) -> [u64; 4] {
        let mut counts = [0; 4];
        let mut others = 0;
        for (count, kind) in counts.iter_mut().zip(&self.kinds) {
            *count = ones(kind, first, end);
            others += *count;
        }
        counts[3] = end.saturating_sub(first) - others;
        counts
    }

    /// Bytes of the blocks in the page that starts at the offset, by kind.
    pub fn page(&self, slab: &Slab, offset: u64) -> [u64; 4] {
        let end = offset + PAGE;
        // Blocks that lie wholly in the page, and the two that reach over its ends.
        let first = offset.div_ceil(slab.size).min(slab.blocks);
        let behind = (end / slab.size).min(slab.blocks);
        let mut bytes = [0; 4];
        let mut edge = |block: u64| {
            let from = (block * slab.size).max(offset);
            let to = ((block + 1) * slab.size).min(end);
            if block < slab.blocks && from < to {
                let kind = self.counts(block, block + 1);
                let kind = kind.iter().position(|&count| count == 1).unwrap_or(3);
                bytes[kind] += to - from;
            }
        };
        let before = offset / slab.size;
        if before < first {
            edge(before);
        }
        if behind >= first {
            edge(behind);
        }
        if behind > first {
            let counts = self.counts(first, behind);
            for (bytes, count) in bytes.iter_mut().zip(counts) {
                *bytes += count * slab.size;
            }
        }
        bytes
    }
}

/// Bits that are set from `first` up to `end`.
fn ones(words: &[u64], first: u64, end: u64) -> u64 {
    let mut count = 0;
    let mut bit = first;
    while bit < end {
        let word = words.get(bit as usize / 64).copied().unwrap_or(0) >> (bit % 64);
        let length = (64 - bit % 64).min(end - bit);
        let mask = if length == 64 {
            u64::MAX
        } else {
            (1 << length) - 1
        };
        count += u64::from((word & mask).count_ones());
        bit += length;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slab(size: u64, blocks: u64) -> Slab {
        Slab {
            base: 0,
            bytes: (size * blocks).next_multiple_of(65536),
            size_class: 1,
            size,
            blocks,
            free: vec![0; blocks.div_ceil(64) as usize],
            ..Slab::default()
        }
    }

    #[test]
    fn each_byte_of_a_page_is_counted_as_its_block_is() {
        for size in [16, 48, 80, 1008, 4096, 5120, 65536] {
            let mut slab = slab(size, 65536 / size);
            for block in (0..slab.blocks).step_by(3) {
                slab.free[block as usize / 64] |= 1 << (block % 64);
            }
            slab.in_magazines = vec![1];
            let bits = Bits::of(&slab);
            for page in 0..16 {
                let mut expected = [0; 4];
                for byte in page * PAGE..(page + 1) * PAGE {
                    let block = byte / size;
                    if block < slab.blocks {
                        let kind = if block % 3 != 0 {
                            3
                        } else if block == 0 {
                            1
                        } else {
                            2
                        };
                        expected[kind] += 1;
                    }
                }
                assert_eq!(bits.page(&slab, page * PAGE), expected, "{size} {page}");
            }
        }
    }

    #[test]
    fn a_block_on_its_way_counts_once() {
        let mut slab = slab(64, 1024);
        slab.free[0] = 0b1110;
        slab.in_magazines = vec![0b0110];
        slab.in_transfer = vec![0b0010];
        assert_eq!(Bits::of(&slab).counts(0, 1024), [1, 1, 1, 1021]);
    }

    #[test]
    fn bits_are_counted_over_words() {
        let words = [u64::MAX, 1, u64::MAX];
        assert_eq!(ones(&words, 0, 192), 129);
        assert_eq!(ones(&words, 63, 66), 2);
        assert_eq!(ones(&words, 100, 130), 2);
        assert_eq!(ones(&words, 190, 300), 2);
    }
}
