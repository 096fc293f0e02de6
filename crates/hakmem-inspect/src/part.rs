//! What memory is for.

/// What memory is for. The first ones are hakmem's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Blocks up to 1 KiB that the program has.
    LiveTiny,
    /// Up to 32 KiB.
    LiveMid,
    /// Up to 2 MiB.
    LiveLarge,
    /// Above.
    LiveBig,
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
pub const PARTS: [Part; 16] = [
    Part::LiveTiny,
    Part::LiveMid,
    Part::LiveLarge,
    Part::LiveBig,
    Part::Magazines,
    Part::TransferCaches,
    Part::FreeBlocks,
    Part::FreeRuns,
    Part::BigCache,
    Part::Records,
    Part::Library,
    Part::Stacks,
    Part::ProgramBreak,
    Part::Files,
    Part::Shared,
    Part::OtherMappings,
];

impl Part {
    /// Whether hakmem has it, or handed it out.
    pub fn is_ours(self) -> bool {
        self <= Part::Library
    }

    /// Whether the program has it: live blocks.
    pub fn is_live(self) -> bool {
        self <= Part::LiveBig
    }
}
