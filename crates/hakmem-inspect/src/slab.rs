//! A slab, and what is known of each of its blocks.

/// A slab.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slab {
    /// Its address.
    pub base: u64,
    /// Bytes of its units.
    pub bytes: u64,
    /// The class of its blocks.
    pub size_class: usize,
    /// Bytes of a block.
    pub size: u64,
    /// How many there are.
    pub blocks: u64,
    /// They are samples.
    pub sampled: bool,
    /// For each block of such a slab, where the record of its sample lies, or 0.
    pub samples: Vec<u64>,
    /// They are of the hardened preset.
    pub hardened: bool,
    /// A bit a block: free in the slab.
    pub free: Vec<u64>,
    /// The same: in a magazine; no words when there is none.
    pub in_magazines: Vec<u64>,
    /// The same: in a transfer cache.
    pub in_transfer: Vec<u64>,
}
