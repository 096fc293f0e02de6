//! Looks, while programs are recorded, at what their live blocks pin: a recording has samples and
//! sums, and only the process itself knows the free memory beside a block. Of each process the look
//! at which most was pinned stays, in the header of its file.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hakmem_process::spawn_deaf;
use hakmem_profile::file::{writer_of, HEADER_NUMBERS};
use rustix::time::{clock_gettime, ClockId};

use crate::inspection::apart::apart;
use crate::inspection::pinned;
use crate::record::{maps_file, recordings_in};

/// Between two looks, at least.
const PAUSE: Duration = Duration::from_millis(200);
/// Looks take this part of the time at most: one in so many.
const PART: u32 = 20;

/// Looks until it is dropped, and then once more.
pub struct Lookout {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lookout {
    /// At the processes whose recordings appear in the directory.
    pub fn begin(directory: &Path, before: &BTreeSet<PathBuf>) -> Lookout {
        let (end, ended) = channel();
        let (directory, before) = (directory.to_owned(), before.clone());
        let thread = spawn_deaf(move || {
            let mut most = HashMap::new();
            let mut pause = PAUSE;
            let mut is_over = false;
            while !is_over {
                is_over = ended.recv_timeout(pause) != Err(RecvTimeoutError::Timeout);
                let began = Instant::now();
                let found = recordings_in(&directory).unwrap_or_default();
                for path in found.difference(&before) {
                    look(path, most.entry(path.clone()).or_default());
                }
                pause = PAUSE.max(began.elapsed() * PART);
            }
        });
        Lookout {
            end: Some(end),
            thread: thread.ok(),
        }
    }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.end.take();
        // What it could not look at is not in the report.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Looks at the process that writes to the file, and keeps what is more than the most so far.
fn look(path: &Path, most: &mut u64) -> Option<()> {
    let file = hakmem_files::unlinked(path).ok()?;
    let mut header = [0; HEADER_NUMBERS];
    file.read_exact_at(&mut header, 0).ok()?;
    let (pid, mean) = writer_of(&header)?;
    let owner = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    if file.metadata().ok()?.uid() != owner || !maps_file(pid, Path::new(path.file_name()?)) {
        return None;
    }
    let report = apart(move || hakmem_inspect::inspect(pid))?.ok()?;
    let mut pinned = pinned::look(&report);
    if pinned.pinned_bytes <= *most {
        return None;
    }
    *most = pinned.pinned_bytes;
    let now = clock_gettime(ClockId::Monotonic);
    pinned.time_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    pinned.sample_mean_bytes = mean;
    let same = format!("/proc/self/fd/{}", file.as_raw_fd());
    pinned
        .write_to(&File::options().write(true).open(same).ok()?)
        .ok()
}
