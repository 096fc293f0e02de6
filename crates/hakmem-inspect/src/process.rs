//! A process that runs: what the kernel tells of it, and whether it lets us look.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use crate::denial::denial;
use crate::error::Error;
use crate::maps::{self, Mapping};
use crate::memory::ProcessMemory;
use crate::residency::page_size;

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its memory.
    pub memory: ProcessMemory,
    /// Its mappings when it was opened, in order.
    pub mappings: Vec<Mapping>,
    /// The file that it runs; empty when that cannot be told.
    pub executable: PathBuf,
    /// When it began, in ticks since the machine did: tells it from a later one of its number.
    pub start: u64,
}

/// What changes all the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults that needed no device.
    pub minor_faults: u64,
    /// Those that did.
    pub major_faults: u64,
    /// Threads.
    pub threads: u64,
    /// Ticks of the clock since the machine began: see [`Process::start`].
    pub start: u64,
}

/// Half a million mappings, which is more than the kernel allows by default.
const MAPS_MAX: u64 = 64 << 20;
/// What the kernel gives a program at its start is no longer than that.
const ENVIRONMENT_MAX: u64 = 6 << 20;
/// What is shown of a command line, of which a process may say that any of its memory is that.
const COMMAND_MAX: u64 = 64 << 10;

/// The beginning of a file of /proc, which may be as long as others want, and take them as long.
fn beginning(path: &str, most: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path)?.take(most).read_to_end(&mut text)?;
    Ok(text)
}

/// The mappings of a process, as the kernel writes them down.
///
/// # Errors
/// There is no such process, it may not be looked at, or has more than any true one.
pub fn maps(pid: i32) -> io::Result<Vec<u8>> {
    let text = beginning(&format!("/proc/{pid}/maps"), MAPS_MAX + 1)?;
    match text.len() as u64 <= MAPS_MAX {
        true => Ok(text),
        false => Err(io::Error::other("it is longer than any true one")),
    }
}

/// The variables of a process when its program began, each with a zero behind it; empty where they
/// may not be read.
pub fn environment(pid: i32) -> Vec<u8> {
    beginning(&format!("/proc/{pid}/environ"), ENVIRONMENT_MAX).unwrap_or_default()
}

impl Process {
    /// Opens a process.
    ///
    /// # Errors
    /// There is none of the number, or this user may not read its memory.
    pub fn open(pid: i32) -> Result<Process, Error> {
        if pid <= 0 || fs::metadata(format!("/proc/{pid}")).is_err() {
            return Err(Error::NoSuchProcess(pid));
        }
        if !runs(pid) {
            let other = numbers_in(&format!("/proc/{pid}/task"));
            let other = other.into_iter().find(|&thread| runs(thread));
            return Err(other.map_or(Error::Zombie(pid), |it| Error::Headless(pid, it)));
        }
        let denied = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => Error::Denied {
                pid,
                reason: denial(pid),
            },
            io::ErrorKind::NotFound => Error::NoSuchProcess(pid),
            _ if error.raw_os_error() == Some(Errno::ESRCH as i32) => Error::NoSuchProcess(pid),
            _ => Error::Read {
                what: format!("/proc/{pid}/maps"),
                error,
            },
        };
        let text = maps(pid).map_err(denied)?;
        let mappings = maps::parse(&String::from_utf8_lossy(&text));
        let memory = ProcessMemory::new(pid);
        let readable = mappings.iter().find(|m| m.readable && m.is_file());
        if let Some(mapping) = readable {
            let read = memory.try_read(mapping.addresses.start, &mut [0; 1]);
            if let Err(error) = read {
                return Err(match error {
                    Errno::ESRCH => Error::NoSuchProcess(pid),
                    Errno::EPERM | Errno::EACCES => Error::Denied {
                        pid,
                        reason: denial(pid),
                    },
                    error => Error::Read {
                        what: format!("the memory of process {pid}"),
                        error: error.into(),
                    },
                });
            }
        }
        let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        Ok(Process {
            pid,
            memory,
            mappings,
            executable,
            start: usage(pid).unwrap_or_default().start,
        })
    }

    /// Whether there is no such process any more, or it is another one of the same number.
    pub fn is_gone(&self) -> bool {
        usage(self.pid).is_none_or(|usage| usage.start != self.start)
            || fs::read_link(format!("/proc/{}/exe", self.pid))
                .is_ok_and(|executable| executable != self.executable)
    }

    /// Its command line, in one, or its beginning.
    pub fn command(&self) -> String {
        command(self.pid)
    }

    /// What people call it.
    pub fn name(&self) -> String {
        let command = command(self.pid);
        let short = short_name(self.pid).unwrap_or_default();
        match name_of(&self.executable, &command, &short) {
            name if name.is_empty() => format!("process {}", self.pid),
            name => name,
        }
    }
}

/// In which /proc tells times, on every Linux.
pub(crate) const TICKS_PER_SECOND: f64 = 100.0;

/// Nanoseconds since the process began that has this [`Process::start`].
pub fn age_ns(start: u64) -> u64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let uptime = uptime.split(' ').next().and_then(|it| it.parse().ok());
    let start = start as f64 / TICKS_PER_SECOND;
    ((uptime.unwrap_or(0.0) - start).max(0.0) * 1e9) as u64
}

/// The kernel cuts short names off here.
const SHORT_NAME: usize = 15;

/// The short name is the one that the program was started by, also where that is a link to a file
/// of another name: redis-server is one to redis-check-rdb. Where it was cut off, the file or the
/// command has the rest.
pub fn name_of(executable: &Path, command: &str, short: &str) -> String {
    let file = executable.file_name().unwrap_or_default().to_string_lossy();
    let first = command.split(' ').next().unwrap_or_default();
    let first = first.rsplit('/').next().unwrap_or_default();
    let is_whole = |name: &str| match short.len() {
        0 => !name.is_empty(),
        SHORT_NAME => name.starts_with(short),
        _ => name == short,
    };
    let known = [&*file, first];
    let name = known.into_iter().find(|name| is_whole(name));
    name.unwrap_or(short).into()
}

/// The command line of a process, in one, or its beginning.
pub fn command(pid: i32) -> String {
    let line = beginning(&format!("/proc/{pid}/cmdline"), COMMAND_MAX).unwrap_or_default();
    let words: Vec<_> = line
        .split(|&byte| byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    words.join(" ")
}

/// The short name of a process, which its threads may have changed.
pub fn short_name(pid: i32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().into())
}

/// All processes.
pub fn all() -> Vec<i32> {
    numbers_in("/proc")
}

fn numbers_in(directory: &str) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut pids: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    pids
}

/// What the kernel tells behind the name, which is in brackets, and may hold anything.
fn state(pid: i32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1.to_owned())
}

/// Whether there is such a process, and it has not ended.
pub fn runs(pid: i32) -> bool {
    state(pid).is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// What changes all the time; `None`: the process is gone.
pub fn usage(pid: i32) -> Option<Usage> {
    let state = state(pid)?;
    let words: Vec<&str> = state.split(' ').collect();
    let number = |place: usize| words.get(place - 3)?.parse().ok();
    Some(Usage {
        minor_faults: number(10)?,
        major_faults: number(12)?,
        threads: number(20)?,
        start: number(22)?,
    })
}

/// Resident bytes as the kernel has counted them. Older kernels count by processor and may be some
/// pages a processor off.
pub fn resident_bytes(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * page_size())
}

/// Those of them that are no file's and nobody else's. A program may map one page many times, but
/// only where it is shared.
pub(crate) fn private_bytes(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut pages = text.split(' ').skip(1).map_while(|word| word.parse().ok());
    let (resident, shared): (u64, u64) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(shared) * page_size())
}

/// The same, added up page by page: for small processes, since those who map memory wait meanwhile.
pub fn resident_bytes_exact(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(number_in(&text, "Rss:")? * 1024)
}

/// Bytes of a process that are in swap.
pub fn swapped_bytes(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(number_in(&text, "VmSwap:")? * 1024)
}

/// Whether the kernel asks a filter about the system calls of a process, or forbids nearly all.
pub fn has_filter(pid: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    number_in(&text, "Seccomp:").is_some_and(|mode| mode != 0)
}

pub(crate) fn number_in(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Whether a link in the directory of a process, such as `ns/mnt`, leads where that of this process
/// does. `None`: of some processes not even that may be read.
pub fn shares(pid: i32, link: &str) -> Option<bool> {
    let read = |pid: &str| fs::read_link(format!("/proc/{pid}/{link}")).ok();
    Some(Some(read(&pid.to_string())?) == read("self"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_opened() {
        let process = Process::open(std::process::id() as i32).unwrap();
        assert!(!process.is_gone());
        assert!(!process.mappings.is_empty());
        assert_eq!(process.executable, std::env::current_exe().unwrap());
        assert!(process.command().contains(&process.name()));
        assert!(usage(process.pid).unwrap().threads >= 1);
        let exact = resident_bytes_exact(process.pid).unwrap();
        assert!(resident_bytes(process.pid).unwrap().abs_diff(exact) < 64 << 20);
        assert!(all().contains(&process.pid));
    }

    #[test]
    fn programs_have_the_name_that_they_were_started_by() {
        let name = |file: &str, command: &str, short: &str| name_of(file.as_ref(), command, short);
        let redis = "/usr/bin/redis-check-rdb";
        assert_eq!(
            name(redis, "redis-server *:7", "redis-server"),
            "redis-server"
        );
        assert_eq!(
            name("/bin/x", "nginx: master process /x -g", "nginx"),
            "nginx"
        );
        assert_eq!(
            name("/bin/python3.11", "python3 a.py", "python3"),
            "python3"
        );
        let long = "a-name-of-many-letters";
        assert_eq!(name("/a-name-of-many-letters", "", "a-name-of-many-"), long);
        assert_eq!(
            name("/bin/x", "/y/a-name-of-many-letters 3", "a-name-of-many-"),
            long
        );
        assert_eq!(name("/bin/x", "", ""), "x");
    }

    #[test]
    fn a_zombie_has_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        while runs(pid) {
            std::thread::yield_now();
        }
        let error = Process::open(pid).unwrap_err();
        assert!(error.to_string().contains("it is a zombie"), "{error}");
        child.wait().unwrap();
    }

    #[test]
    fn a_process_may_outlive_its_first_thread() {
        let script = "import ctypes, threading, time; threading.Thread(target=time.sleep, \
                      args=(60,)).start(); print(flush=True); ctypes.CDLL(None).pthread_exit(None)";
        let mut child = std::process::Command::new("/usr/bin/python3")
            .args(["-c", script])
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        while runs(pid) {
            std::thread::yield_now();
        }
        let error = Process::open(pid).unwrap_err();
        child.kill().unwrap();
        child.wait().unwrap();
        let Error::Headless(_, thread) = error else {
            panic!("{error}");
        };
        assert_ne!(thread, pid);
    }

    #[test]
    fn there_is_no_process_of_every_number() {
        for pid in [-1, 0, i32::MAX] {
            let error = Process::open(pid).unwrap_err();
            assert!(matches!(error, Error::NoSuchProcess(_)), "{error}");
        }
    }
}
