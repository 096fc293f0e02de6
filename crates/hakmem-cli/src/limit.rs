//! `hakmem record --limit`: whether the processes stayed below it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use hakmem_profile::analysis::{Analysis, Measure};
use hakmem_profile::file::Recording;
use hakmem_profile::symbols::Symbols;
use hakmem_profile::units::bytes;

use crate::record::{read_new, recordings_in};

/// What lived at the peak, at least: as the allocator counted now and then, or as the samples tell
/// of any moment, less their error.
fn peak_bytes(recording: Recording) -> f64 {
    let counted = recording.snapshots.iter().map(|snapshot| snapshot.live);
    let counted = counted.max().unwrap_or(0) as f64;
    let told = Analysis::new(recording, Symbols::default()).total(Measure::Peak);
    counted.max(told.bytes - told.error())
}

/// A line for each new recording of a process that had more.
pub fn beyond(directory: &Path, before: &BTreeSet<PathBuf>, limit_mib: usize) -> Result<String> {
    let limit = limit_mib as f64 * f64::from(1 << 20);
    let mut text = String::new();
    for path in recordings_in(directory)?.difference(before) {
        let Ok(recording) = read_new(path) else {
            continue;
        };
        let peak = peak_bytes(recording);
        if peak > limit {
            text += &format!(
                "hakmem: {}: {} live at the peak, more than {}\n",
                path.display(),
                bytes(peak),
                bytes(limit)
            );
        }
    }
    Ok(text)
}
