//! Opens files that others could have put where they are: what a recording, a core file or a
//! process names, and what lies in directories that others may write to.
//!
//! A path is opened without its file first (O_PATH), so that nobody waits for the other end of a
//! FIFO, and no device is set going; what is no ordinary file is refused. Names of a container are
//! found below its root, whatever links lie in it.

use std::fs::{create_dir_all, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{fcntl_setfl, open, openat, openat2, Mode, OFlags, ResolveFlags, CWD};
use rustix::process::geteuid;

/// Opens an ordinary file.
///
/// # Errors
/// There is none, or it is something else.
pub fn ordinary(path: &Path) -> io::Result<File> {
    reopened(open(path, FIND, Mode::empty())?)
}

/// Opens a file that the user has named: an ordinary one, or a pipe into which somebody writes.
///
/// # Errors
/// There is none, or it is something else.
pub fn given(path: &Path) -> io::Result<File> {
    /// For who writes to begin.
    const PATIENCE: Timespec = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    let found = File::from(open(path, FIND, Mode::empty())?);
    if !found.metadata()?.file_type().is_fifo() {
        return reopened(found.into());
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let pipe = open(own_path(&found), flags, Mode::empty())?;
    if poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&PATIENCE))? == 0 {
        return Err(io::Error::other("nobody writes into this pipe"));
    }
    fcntl_setfl(&pipe, OFlags::empty())?;
    Ok(pipe.into())
}

/// Opens an ordinary file that may be anybody's: its last name is no link.
///
/// # Errors
/// There is none, or it is something else.
pub fn unlinked(path: &Path) -> io::Result<File> {
    reopened(openat(
        CWD,
        path,
        FIND.union(OFlags::NOFOLLOW),
        Mode::empty(),
    )?)
}

/// Opens an ordinary file of a container, or of this machine, whose root is `/`. Links are followed
/// as those see them who live there.
///
/// # Errors
/// There is none, or it is something else.
pub fn below(root: &Path, path: &Path) -> io::Result<File> {
    match root == Path::new("/") {
        true => ordinary(&root.join(path)),
        false => reopened(within(root, path, FIND)?),
    }
}

/// Opens a directory likewise.
///
/// # Errors
/// There is none, or it is something else.
pub fn directory_below(root: &Path, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
    Ok(within(root, path, flags)?.into())
}

/// All that is in the file.
///
/// # Errors
/// It is longer than that, or cannot be read.
pub fn bytes(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= most {
        true => Ok(bytes),
        false => Err(io::Error::other(format!(
            "it is longer than {} MiB",
            most >> 20
        ))),
    }
}

/// The path without the links in it, of which the last names need not exist; for files that are to
/// be written. In a directory in which everybody may make names (`/tmp`) a link is followed only if
/// it is that of this user or of the owner of the directory, as the kernel has it
/// (fs.protected_symlinks), which does so only where it is told to.
///
/// # Errors
/// There is such a link.
pub fn resolved(path: &Path) -> io::Result<PathBuf> {
    const LINKS_MAX: usize = 40;
    let whole = std::path::absolute(path)?;
    let mut rest: Vec<PathBuf> = names(&whole);
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = rest.pop() {
        if name == Path::new("..") {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        match next.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                let place = at.metadata()?;
                let everybodys = place.mode() & 0o1002 == 0o1002;
                let user = metadata.uid();
                if everybodys && user != geteuid().as_raw() && user != place.uid() {
                    return Err(io::Error::other(format!(
                        "{} is a link of another user in a directory of all",
                        next.display()
                    )));
                }
                links += 1;
                if links > LINKS_MAX {
                    return Err(rustix::io::Errno::LOOP.into());
                }
                let target = next.read_link()?;
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                rest.extend(names(&target));
            }
            Ok(_) => at = next,
            Err(error) if error.kind() == ErrorKind::NotFound => at = next,
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}

/// Makes a directory, and those that it lies in. The path is as [`resolved`] has it.
///
/// # Errors
/// There is such a link, or it cannot be made.
pub fn made_directory(path: &Path) -> io::Result<PathBuf> {
    let path = resolved(path)?;
    create_dir_all(&path)?;
    Ok(path)
}

/// The names of a path, the last one first.
fn names(path: &Path) -> Vec<PathBuf> {
    let names = path.components().rev();
    let names = names.filter(|it| matches!(it, Component::Normal(_) | Component::ParentDir));
    names.map(|it| PathBuf::from(it.as_os_str())).collect()
}

const FIND: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

fn within(root: &Path, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let root = open(root, FIND | OFlags::DIRECTORY, Mode::empty())?;
    let resolve = ResolveFlags::IN_ROOT;
    Ok(openat2(root, path, flags, Mode::empty(), resolve)?)
}

/// Opens what was found, to read it.
fn reopened(found: OwnedFd) -> io::Result<File> {
    let found = File::from(found);
    if !found.metadata()?.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    // Some of the kernel's own have nothing to read before something happens: /proc/kmsg.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(open(own_path(&found), flags, Mode::empty())?.into())
}

/// By which this process opens an open file once more.
fn own_path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{symlink, PermissionsExt};

    #[test]
    fn only_ordinary_files_are_opened() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "text").unwrap();
        symlink("file", at("link")).unwrap();
        rustix::fs::mknodat(CWD, at("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(bytes(&ordinary(&at("link")).unwrap(), 4).unwrap(), b"text");
        assert_eq!(bytes(&unlinked(&at("file")).unwrap(), 4).unwrap(), b"text");
        let long = bytes(&ordinary(&at("file")).unwrap(), 3).unwrap_err();
        assert_eq!(long.to_string(), "it is longer than 0 MiB");
        for refused in [
            ordinary(&at("fifo")),
            unlinked(&at("fifo")),
            unlinked(&at("link")),
            ordinary(directory.path()),
            ordinary(Path::new("/dev/zero")),
        ] {
            assert_eq!(refused.unwrap_err().to_string(), "it is no ordinary file");
        }
    }

    #[test]
    fn nobody_waits_for_what_an_ordinary_file_has_not_got() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for file in [ordinary(file.path()), unlinked(file.path())] {
            let flags = rustix::fs::fcntl_getfl(file.unwrap()).unwrap();
            assert!(flags.contains(OFlags::NONBLOCK));
        }
    }

    #[test]
    fn pipes_are_read_where_somebody_writes() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let error = given(&fifo).unwrap_err();
        assert_eq!(error.to_string(), "nobody writes into this pipe");
        let path = fifo.clone();
        let writer = std::thread::spawn(move || fs::write(path, "text"));
        assert_eq!(bytes(&given(&fifo).unwrap(), 4).unwrap(), b"text");
        writer.join().unwrap().unwrap();
        let error = given(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "it is no ordinary file");
        fs::write(directory.path().join("file"), "text").unwrap();
        let file = given(&directory.path().join("file")).unwrap();
        assert_eq!(bytes(&file, 4).unwrap(), b"text");
    }

    #[test]
    fn links_of_a_container_lead_nowhere_outside() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("etc")).unwrap();
        fs::write(root.join("etc/passwd"), "inside").unwrap();
        symlink("/etc/passwd", root.join("absolute")).unwrap();
        symlink("../../../../../../etc/passwd", root.join("relative")).unwrap();
        symlink("/etc", root.join("tmp")).unwrap();
        for name in ["absolute", "/absolute", "relative", "/tmp/passwd"] {
            let file = below(root, Path::new(name)).unwrap();
            assert_eq!(bytes(&file, 100).unwrap(), b"inside", "{name}");
        }
        let tmp = directory_below(root, Path::new("/tmp")).unwrap();
        let inside = root.join("etc").metadata().unwrap().ino();
        assert_eq!(tmp.metadata().unwrap().ino(), inside);
    }

    #[test]
    fn links_of_others_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir(at("all")).unwrap();
        let mode = fs::Permissions::from_mode(0o1777);
        fs::set_permissions(at("all"), mode).unwrap();
        fs::write(at("victim"), "").unwrap();
        symlink("../victim", at("all/own")).unwrap();
        symlink(at("all"), at("link")).unwrap();
        assert_eq!(resolved(&at("all/own")).unwrap(), at("victim"));
        assert_eq!(resolved(&at("link/./../all/new")).unwrap(), at("all/new"));
        assert_eq!(resolved(&at("none/./new")).unwrap(), at("none/new"));
        assert_eq!(made_directory(&at("link/a/b")).unwrap(), at("all/a/b"));
        assert!(at("all/a/b").is_dir());
        symlink("loop", at("loop")).unwrap();
        assert!(resolved(&at("loop")).is_err());
        if !geteuid().is_root() {
            return;
        }
        let other = Some(rustix::fs::Uid::from_raw(65534));
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::chownat(CWD, at("all/own"), other, None, flags).unwrap();
        let error = resolved(&at("all/own")).unwrap_err().to_string();
        assert!(error.contains("is a link of another user"), "{error}");
        assert!(resolved(&at("all/own/x")).is_err());
        assert!(made_directory(&at("all/own/x")).is_err());
        // Where not everybody may make names it is the owner's business.
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(at("all"), mode).unwrap();
        assert_eq!(resolved(&at("all/own")).unwrap(), at("victim"));
    }
}
