//! What the parts are called, and what would make each of them smaller.

use crate::part::Part;
use crate::snapshot::Settings;

/// The name of a part, for people.
pub fn title(part: Part) -> &'static str {
    match part {
        Part::LiveTiny => "live blocks to 1 KiB",
        Part::LiveMid => "live blocks to 32 KiB",
        Part::LiveLarge => "live blocks to 2 MiB",
        Part::LiveBig => "live blocks above 2 MiB",
        Part::Scoped => "scopes",
        Part::Magazines => "magazines of threads",
        Part::TransferCaches => "transfer caches",
        Part::FreeBlocks => "free blocks in slabs",
        Part::FreeRuns => "free runs in superslabs",
        Part::BigCache => "BigCache",
        Part::Records => "records",
        Part::Library => "hakmem's code and data",
        Part::Stacks => "stacks",
        Part::ProgramBreak => "program break",
        Part::Files => "program and libraries",
        Part::Shared => "shared memory",
        Part::OtherMappings => "other mappings",
    }
}

/// What it is, in a sentence.
pub fn meaning(part: Part) -> &'static str {
    match part {
        Part::LiveTiny | Part::LiveMid => {
            "blocks that the program has; rounding to the size class is part of it, a ninth of it \
             at most"
        }
        Part::LiveLarge | Part::LiveBig => {
            "blocks that the program has, as far as their pages were touched"
        }
        Part::Scoped => "blocks that the program has in scopes, and what lies free beside them",
        Part::Magazines => "free blocks that threads keep for their next calls",
        Part::TransferCaches => "free blocks on their way between threads",
        Part::FreeBlocks => "free blocks, and rests, of slabs in which other blocks are live",
        Part::FreeRuns => "free memory for any size that was touched and not given back",
        Part::BigCache => "freed blocks above 2 MiB that are kept for the next",
        Part::Records => "what the allocator writes down about all of it",
        Part::Library => "the library's own pages; its code is shared with other processes",
        Part::Stacks => "stacks of the threads",
        Part::ProgramBreak => "memory that the program took by brk, not by malloc",
        Part::Files => "code and data of the program and its libraries, mapped files",
        Part::Shared => "shared mappings",
        Part::OtherMappings => "memory that the program mapped itself: not malloc",
    }
}

/// The option or the call that would make it smaller; `None`: nothing of hakmem would.
pub fn advice(part: Part, settings: &Settings) -> Option<String> {
    let number = |name: &str, value: i64| format!("HAKMEM_{}={value}", name.to_uppercase());
    Some(match part {
        Part::LiveTiny | Part::LiveMid | Part::LiveLarge | Part::LiveBig => return None,
        Part::Scoped => {
            "hakmem_scope_reset() or hakmem_scope_destroy(), or a limit of the scope".into()
        }
        Part::Magazines => format!(
            "{} (now {}), hakmem_thread_flush() before a thread sleeps, or malloc_trim(0)",
            number("magazine_kib", (settings.magazine_kib / 4).max(1)),
            settings.magazine_kib
        ),
        Part::TransferCaches => format!(
            "{} (now {}) bounds them as well; malloc_trim(0) or hakmem_purge()",
            number("magazine_kib", (settings.magazine_kib / 4).max(1)),
            settings.magazine_kib
        ),
        Part::FreeBlocks => {
            "`hakmem trim PID`, HAKMEM_BACKGROUND=1 or malloc_trim(0) gives back whole free pages; \
             `hakmem inspect --pinned` says which live blocks keep the others"
                .into()
        }
        Part::FreeRuns => format!(
            "{} (now {}), {} (now {}), malloc_trim(0) or hakmem_purge()",
            number("retain_percent", 5),
            settings.retain_percent,
            number("purge_delay_ms", 50),
            settings.purge_delay_ms
        ),
        Part::BigCache => format!(
            "{} (now {}) and HAKMEM_RETAIN_PERCENT (now {}), malloc_trim(0) or hakmem_purge()",
            number("big_cache_mib", 0),
            settings.big_cache_mib,
            settings.retain_percent
        ),
        Part::Records => format!(
            "HAKMEM_SHARDS (now {}): each shard and each thread has some",
            match settings.shards {
                0 => "one a CPU".into(),
                shards => shards.to_string(),
            }
        ),
        _ => return None,
    })
}
