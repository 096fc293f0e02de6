//! What /proc tells of a process. A process that is gone, or does not let us look, tells nothing.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The program file of a process.
pub(crate) fn executable(pid: i32) -> Option<PathBuf> {
    let link = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(without_deleted(link.as_os_str().as_bytes()).to_path_buf())
}

/// The process that a thread belongs to.
pub(crate) fn process_of_thread(tid: i32) -> Option<i32> {
    status_field(tid, "Tgid:")
}

/// The parent of a process.
pub(crate) fn parent_of_process(pid: i32) -> Option<i32> {
    status_field(pid, "PPid:")
}

/// Whether a file is mapped in the process of a thread; the path has no links in it.
pub(crate) fn is_mapped(tid: i32, file: &Path) -> Option<bool> {
    let maps = fs::read(format!("/proc/{tid}/maps")).ok()?;
    Some(
        maps.split(|&byte| byte == b'\n')
            .filter_map(mapped_file)
            .any(|path| path == file),
    )
}

/// Resident pages of a process.
pub(crate) fn resident_pages(pid: i32) -> Option<u64> {
    let sizes = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    sizes.split(' ').nth(1)?.parse().ok()
}

/// Resident memory of the process of a thread that is of no file: heaps, stacks, written data.
pub(crate) fn anonymous_kib(tid: i32) -> Option<u64> {
    status_field(tid, "RssAnon:")
}

fn status_field<T: FromStr>(tid: i32, name: &str) -> Option<T> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .trim_end_matches("kB")
        .trim()
        .parse()
        .ok()
}

/// The file in a line of maps.
fn mapped_file(line: &[u8]) -> Option<&Path> {
    let start = line.iter().position(|&byte| byte == b'/')?;
    Some(without_deleted(&line[start..]))
}

/// A file that was removed meanwhile is named as before.
fn without_deleted(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(
        path.strip_suffix(b" (deleted)").unwrap_or(path),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_files_are_read_from_maps() {
        let file = |line: &'static str| mapped_file(line.as_bytes()).and_then(Path::to_str);
        let columns = "7f1e22400000-7f1e22500000 r-xp 00000000 fe:00 1234      ";
        assert_eq!(
            file("7ffe26700000-7ffe26721000 rw-p 00000000 00:00 0      [stack]"),
            None
        );
        assert_eq!(
            file("7f1e22400000-7f1e22500000 rw-p 00000000 00:00 0 "),
            None
        );
        let line = format!("{columns}/a dir/x.so (deleted)");
        assert_eq!(mapped_file(line.as_bytes()), Some(Path::new("/a dir/x.so")));
    }

    #[test]
    fn this_process_is_known() {
        let pid = std::process::id() as i32;
        let executable = executable(pid).unwrap();
        assert_eq!(executable, std::env::current_exe().unwrap());
        assert_eq!(process_of_thread(pid), Some(pid));
        assert!(parent_of_process(pid).is_some());
        assert_eq!(is_mapped(pid, &executable), Some(true));
        assert_eq!(is_mapped(pid, Path::new("/no/such/file")), Some(false));
        assert!(resident_pages(pid).unwrap() > 0);
        assert_eq!(resident_pages(-1), None);
        assert!(anonymous_kib(pid).unwrap() > 0);
        assert_eq!(anonymous_kib(-1), None);
    }
}
