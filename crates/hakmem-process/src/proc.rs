//! What /proc tells of a process. A process that is gone, or does not let us look, tells nothing.

use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
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

/// Whether a file is mapped in the process of a thread; the path has no links in it. One that was
/// removed meanwhile, or replaced by another of its name, is not.
pub(crate) fn is_mapped(tid: i32, file: &Path) -> Option<bool> {
    let mapped = mapped_files(tid)?;
    Some(mapped.iter().any(|mapped| mapped.file == file))
}

/// A range of addresses and the file that is mapped there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MappedFile {
    pub addresses: Range<u64>,
    /// As the kernel names it: behind one that was removed stands ` (deleted)`.
    pub file: PathBuf,
}

/// The files that are mapped in the process of a thread.
pub(crate) fn mapped_files(tid: i32) -> Option<Vec<MappedFile>> {
    let maps = fs::read(format!("/proc/{tid}/maps")).ok()?;
    let lines = maps.split(|&byte| byte == b'\n');
    Some(lines.filter_map(mapped_file).collect())
}

/// Whether the process of a thread has memory from brk, of which the C library's malloc makes its
/// heap, and nobody else but very few programs takes any.
pub(crate) fn has_brk_heap(tid: i32) -> Option<bool> {
    let maps = fs::read(format!("/proc/{tid}/maps")).ok()?;
    Some(
        maps.split(|&byte| byte == b'\n')
            .any(|line| line.ends_with(b"[heap]")),
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

/// What a line of maps says of a file.
fn mapped_file(line: &[u8]) -> Option<MappedFile> {
    let path = &line[line.iter().position(|&byte| byte == b'/')?..];
    let range = line.split(|&byte| byte == b' ').next()?;
    let (first, end) = std::str::from_utf8(range).ok()?.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some(MappedFile {
        addresses: address(first)?..address(end)?,
        file: PathBuf::from(OsStr::from_bytes(path)),
    })
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
        let file = |line: &str| mapped_file(line.as_bytes()).map(|mapped| mapped.file);
        let columns = "7f1e22400000-7f1e22500000 r-xp 00000000 fe:00 1234      ";
        assert_eq!(
            file("7ffe26700000-7ffe26721000 rw-p 00000000 00:00 0      [stack]"),
            None
        );
        assert_eq!(
            file("7f1e22400000-7f1e22500000 rw-p 00000000 00:00 0 "),
            None
        );
        let mapped = MappedFile {
            addresses: 0x7f1e22400000..0x7f1e22500000,
            file: "/a dir/x.so".into(),
        };
        let line = format!("{columns}/a dir/x.so");
        assert_eq!(mapped_file(line.as_bytes()), Some(mapped));
        let line = format!("{columns}/x.so (deleted)");
        assert_eq!(file(&line), Some("/x.so (deleted)".into()));
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
