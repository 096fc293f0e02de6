//! Blocks above 2 MiB.

use std::ops::Range;

/// A mapping of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Big {
    /// Its address.
    pub base: u64,
    /// Bytes of the block, or of the cached mapping.
    pub bytes: u64,
    /// Bytes behind a block that are cached for it.
    pub rest: u64,
    /// Leading bytes that were touched.
    pub dirty: u64,
    /// Handed out.
    pub live: bool,
    /// In the BigCache; when neither, a thread works on it.
    pub cached: bool,
    /// Where the record of its sample lies, or 0.
    pub sample: u64,
}

impl Big {
    /// Where the block lies.
    #[must_use]
    pub fn block(&self) -> Range<u64> {
        self.base..self.base + self.bytes
    }

    /// What is cached behind it.
    #[must_use]
    pub fn behind(&self) -> Range<u64> {
        self.block().end..self.block().end + self.rest
    }
}
