//! What memory is for.

use serde::Serialize;
use strum::{IntoStaticStr, VariantArray};

/// What memory is for. The first ones are hakmem's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Part {
    /// Blocks up to 1 KiB that the program has.
    LiveTiny,
    /// Up to 32 KiB.
    LiveMid,
    /// Up to 2 MiB.
    LiveLarge,
    /// Above.
    LiveBig,
    /// What scopes hold: blocks, and what lies free beside them.
    Scoped,
    /// Free blocks in magazines of threads.
    Magazines,
    /// Free blocks in transfer caches.
    TransferCaches,
    /// Free blocks, and the rest behind the last one, in slabs.
    FreeBlocks,
    /// Pages of free runs.
    FreeRuns,
    /// Freed big blocks.
    BigCache,
    /// The allocator's own records.
    Records,
    /// The library's code and data.
    Library,
    /// Stacks of threads.
    Stacks,
    /// What the program moved its break for.
    ProgramBreak,
    /// The program and its libraries.
    Files,
    /// Memory shared with other processes.
    Shared,
    /// Mappings that the program made itself.
    OtherMappings,
}

/// All of them.
pub const PARTS: &[Part] = Part::VARIANTS;

impl Part {
    /// The word for it in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether hakmem has it, or handed it out.
    pub fn is_ours(self) -> bool {
        self <= Part::Library
    }

    /// Whether the program has it: live blocks.
    pub fn is_live(self) -> bool {
        self <= Part::Scoped
    }

    /// Whether hakmem keeps it for itself, or for calls to come.
    pub fn is_kept(self) -> bool {
        self.is_ours() && !self.is_live()
    }
}
