//! What the processes of a witnessed run leave of themselves: the records of the probe
//! (lab/probe/probe.c) and hakmem's statistics, in a directory that lives as long as the run.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::launch::LaunchError;

/// A record of the probe: one image of a process, as it began.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Probe {
    /// The object that `malloc` resolved to.
    pub malloc: Option<PathBuf>,
    /// Likewise for `free`.
    pub free: Option<PathBuf>,
    /// Whether the C library served test allocations; `None`: it cannot be asked.
    pub served_by_libc: Option<bool>,
    /// Calls of malloc and free that this took.
    pub calls: u64,
    /// Everything that was loaded.
    pub objects: Vec<PathBuf>,
}

impl Probe {
    /// Whether a file, named without links, was loaded.
    pub fn has_loaded(&self, file: &Path) -> bool {
        self.objects
            .iter()
            .any(|object| object == file || real(object) == file)
    }
}

/// The directory of a run.
pub(crate) struct Records {
    directory: TempDir,
}

impl Records {
    /// Makes the directory.
    pub fn new() -> Result<Records, LaunchError> {
        let make = || -> io::Result<TempDir> {
            let directory = tempfile::Builder::new().prefix("hakmem-").tempdir()?;
            // A program may change its user before it starts another: that one must be able to
            // write here as well, but neither to list nor to remove what others wrote.
            fs::set_permissions(directory.path(), Permissions::from_mode(0o1733))?;
            Ok(directory)
        };
        let directory = make().map_err(|reason| {
            LaunchError::Helper(format!("cannot make a temporary directory: {reason}"))
        })?;
        Ok(Records { directory })
    }

    /// What has to be in a program's environment.
    pub fn environment(&self) -> [(String, String); 2] {
        let path = self.directory.path().display();
        [
            ("LAB_PROBE_DIR".to_string(), path.to_string()),
            ("HAKMEM_STATS_FILE".to_string(), format!("{path}/%p.json")),
        ]
    }

    /// Takes the probe's record of a process: the next image, or the next process of this number,
    /// writes a new one.
    pub fn take_probe(&self, pid: i32) -> Option<Probe> {
        serde_json::from_str(&self.take(pid, "probe")?).ok()
    }

    /// Takes the statistics that hakmem wrote when the process ended.
    pub fn take_statistics(&self, pid: i32) -> Option<Value> {
        serde_json::from_str(&self.take(pid, "json")?).ok()
    }

    fn take(&self, pid: i32, kind: &str) -> Option<String> {
        let path = self.directory.path().join(format!("{pid}.{kind}"));
        let bytes = fs::read(&path).ok()?;
        // It fails only if the file is gone already.
        let _ = fs::remove_file(&path);
        // Paths may be in any encoding.
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The path without links; one that leads nowhere stands for itself.
pub(crate) fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_taken_once() {
        let records = Records::new().unwrap();
        let path = records.directory.path().join("7.probe");
        fs::write(
            &path,
            b"{\"malloc\":\"/\xff.so\",\"free\":null,\"served_by_libc\":null,\
              \"calls\":9,\"objects\":[]}",
        )
        .unwrap();
        assert_eq!(records.take_probe(8), None);
        let probe = records.take_probe(7).unwrap();
        assert_eq!(probe.malloc, Some(PathBuf::from("/\u{fffd}.so")));
        assert_eq!(probe.free, None);
        assert_eq!(probe.calls, 9);
        assert_eq!(records.take_probe(7), None);
    }

    #[test]
    fn half_a_record_is_none() {
        let records = Records::new().unwrap();
        fs::write(records.directory.path().join("7.probe"), "{\"malloc\":\"/x").unwrap();
        assert_eq!(records.take_probe(7), None);
        fs::write(records.directory.path().join("7.json"), "{\"version\":").unwrap();
        assert_eq!(records.take_statistics(7), None);
    }
}
