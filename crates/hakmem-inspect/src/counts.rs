//! What threads and shards count, by size class.

/// What was counted of one size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Blocks handed out.
    pub pops: u64,
    /// Of these, by the slow path.
    pub misses: u64,
    /// Blocks freed by the slow path.
    pub overflows: u64,
    /// Batches into magazines.
    pub refills: u64,
    /// Batches out of them.
    pub flushes: u64,
    /// Blocks flushed less those refilled; wraps.
    pub returned: u64,
    /// Blocks in magazines now.
    pub in_magazines: u64,
    /// Blocks in transfer caches now.
    pub in_transfer: u64,
    /// Slabs.
    pub slabs: u64,
    /// Of these, kept without a block in use.
    pub empty_slabs: u64,
    /// Blocks returned to a bin of another shard.
    pub remote: u64,
    /// Blocks freed without a magazine.
    pub direct: u64,
}
