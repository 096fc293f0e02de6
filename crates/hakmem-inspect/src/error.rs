//! Why nothing can be told of a process or a core file.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// What went wrong.
#[derive(Debug, Error)]
pub enum Error {
    /// Nobody has the number.
    #[error("there is no process {0}")]
    NoSuchProcess(i32),
    /// It is there until its parent asks for its exit status.
    #[error("process {0} has ended: it is a zombie, of which only its exit status is left")]
    Zombie(i32),
    /// Its other threads go on.
    #[error(
        "the first thread of process {0} has ended, by whose number the kernel tells nothing of \
         the others: give that of one of them, such as {1}"
    )]
    Headless(i32, i32),
    /// The kernel does not let this user look.
    #[error("may not read the memory of process {pid}: {reason}")]
    Denied {
        /// The process.
        pid: i32,
        /// Which setting or capability it is.
        reason: String,
    },
    /// There is no descriptor in it.
    #[error(
        "hakmem does not serve {program}: there is no hakmem in its memory; `hakmem doctor -- \
         PROGRAM` says why, `hakmem run -- PROGRAM` starts it on hakmem"
    )]
    NotServed {
        /// What runs there.
        program: String,
    },
    /// The library is there, and says nothing of itself.
    #[error(
        "{program} runs on a hakmem that does not say where its memory is ({file}): it is older \
         than this command; please start the program on a newer one"
    )]
    TooOld {
        /// What runs there.
        program: String,
        /// The library.
        file: String,
    },
    /// The library is there, and nothing of its data.
    #[error(
        "{core} has no memory of hakmem ({file}) in it: it was cut off, the program left out its \
         private memory (bit 0 of /proc/PID/coredump_filter; 0x33 is the default), or its hakmem \
         is older than this command"
    )]
    NoData {
        /// The core file.
        core: String,
        /// The library.
        file: String,
    },
    /// The library is there, and has not been used.
    #[error("hakmem is loaded into {program}, but has not handed out any memory yet")]
    Unused {
        /// What runs there.
        program: String,
    },
    /// The library keeps its memory in another way than this command knows.
    #[error(
        "{program} runs on hakmem {version}, whose memory is laid out in a way (number {layout}) \
         that this command does not know (it knows {known}): please use the command of that \
         version; its statistics (HAKMEM_STATS, hakmem_stats_json) are the same in all"
    )]
    OtherLayout {
        /// What runs there.
        program: String,
        /// The version of the library.
        version: String,
        /// Its layout.
        layout: u32,
        /// The one that is known here.
        known: u32,
    },
    /// The library is older than what is asked of it.
    #[error("hakmem {version} does not tell where to find {what}, which later versions do")]
    Missing {
        /// The version of the library.
        version: String,
        /// The row of the descriptor.
        what: String,
    },
    /// The library says what no library can.
    #[error(
        "what {file} says of its memory cannot be so: it would have more records than the program \
         has memory; it is damaged, or no hakmem"
    )]
    Unbelievable {
        /// The library.
        file: String,
    },
    /// A core file leaves out what can be read from the library's file.
    #[error(
        "the size classes of {file} cannot be read: a core file leaves them out, and the file is \
         not on this machine, or another one"
    )]
    NoConstants {
        /// The library.
        file: String,
    },
    /// It cannot be read as a core file.
    #[error("{}: {reason}", path.display())]
    NotACore {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Something of the process or the file cannot be read.
    #[error("cannot read {what}: {error}")]
    Read {
        /// What it was.
        what: String,
        /// Why.
        error: io::Error,
    },
    /// It has ended meanwhile, or changes too much to be read.
    #[error("process {0} ended, or became another program, while it was looked at")]
    Gone(i32),
}
