//! The small parent: `measure` (lab/measure/measure.c), which starts every program, and what it
//! reports.

use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::memfd::{memfd_create, MFdFlags};
use serde::Deserialize;
use serde_json::Value;

use crate::interrupt::Interrupt;
use crate::launch::{absolute, Exit, Launch, LaunchError, Tools};

/// So much is kept of a program's standard output, and as much of its standard error, in bytes.
/// What lies beyond is dropped while the program runs (`KEPT_BYTES` in measure.c).
pub const CAPTURE_LIMIT: u64 = 64 << 20;

/// A program that is about to run or runs. It begins with [`Parent::release`].
pub(crate) struct Parent {
    child: Child,
    line: UnixStream,
    stdout: File,
    stderr: File,
}

/// What a program wrote.
pub(crate) struct Output {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// How a run ended, as `measure` says it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum End {
    Code(i32),
    Signal(i32),
    NotStarted(String),
    TimeLimit,
    Interrupted,
    Failed(String),
}

/// The report of a run that came to its own end.
#[derive(Debug)]
pub(crate) struct Report {
    pub exit: Exit,
    /// The figures.
    pub figures: Value,
}

impl Parent {
    /// Starts the parent, which waits. `pairs` are set in the program's environment.
    pub fn start(
        tools: &Tools,
        launch: &Launch,
        pairs: &[OsString],
    ) -> Result<Parent, LaunchError> {
        if launch.command.is_empty() {
            return Err(LaunchError::Helper(
                "there is no program to run".to_string(),
            ));
        }
        if let Some(directory) = launch.directory.as_deref().filter(|path| !path.is_dir()) {
            let reason = format!("{} is not a directory", directory.display());
            return Err(LaunchError::CannotStart {
                program: launch.program(),
                reason,
            });
        }
        let measure = absolute(&tools.measure)?;
        let input = match &launch.input {
            Some(input) => readable(input)?,
            None => PathBuf::from("/dev/null"),
        };
        let spawn = || -> io::Result<Parent> {
            let (line, other_end) = UnixStream::pair()?;
            let (stdout, stderr) = (memory_file(c"stdout")?, memory_file(c"stderr")?);
            let child = Command::new(&measure)
                .arg(launch.time_limit.as_millis().max(1).to_string())
                .arg(&input)
                .args(pairs)
                .arg("--")
                .args(&launch.command)
                .current_dir(launch.directory.as_deref().unwrap_or(Path::new(".")))
                .stdin(OwnedFd::from(other_end))
                .stdout(stdout.try_clone()?)
                .stderr(stderr.try_clone()?)
                .spawn()?;
            Ok(Parent {
                child,
                line,
                stdout,
                stderr,
            })
        };
        spawn().map_err(|reason| {
            LaunchError::Helper(format!("cannot start {}: {reason}", measure.display()))
        })
    }

    /// The parent's process id.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Lets the program begin.
    pub fn release(&self) -> Result<(), LaunchError> {
        (&self.line)
            .write_all(b"\n")
            .map_err(|reason| LaunchError::Helper(format!("measure did not listen: {reason}")))
    }

    /// Ends the run: `measure` stops the program and ends.
    pub fn stop(&self) {
        // It fails only if the other end is gone, and then there is nothing to stop.
        let _ = self.line.shutdown(Shutdown::Both);
    }

    /// Waits for the report, in which case everything of the program is gone. When a signal
    /// arrives, the run is told to end and the answer is empty.
    pub fn await_report(&self, interrupt: &Interrupt) -> String {
        let mut text = Vec::new();
        let mut bytes = [0; 4096];
        loop {
            let mut waits = [self.line.as_fd(), interrupt.as_fd()]
                .map(|source| PollFd::new(source, PollFlags::POLLIN));
            match poll(&mut waits, PollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                Err(_) => break,
                Ok(_) => {}
            }
            if waits[1].any() == Some(true) {
                self.stop();
                return String::new();
            }
            match (&self.line).read(&mut bytes) {
                Ok(count) if count > 0 => text.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Waits for the end of the parent; not for one that is traced.
    pub fn reap(&mut self) {
        // That it ended is all there is to know: what went wrong is in the report.
        let _ = self.child.wait();
    }

    /// What the program wrote, up to [`CAPTURE_LIMIT`] each.
    pub fn output(self) -> Result<Output, LaunchError> {
        let read = |mut file: File| -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            file.rewind()?;
            file.take(CAPTURE_LIMIT).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read(self.stdout)
            .and_then(|stdout| {
                Ok(Output {
                    stdout,
                    stderr: read(self.stderr)?,
                })
            })
            .map_err(|reason| {
                LaunchError::Helper(format!("cannot read what the program wrote: {reason}"))
            })
    }
}

/// The path of an input, absolute, because the program may start in another directory. A pipe could
/// be read by one run alone, and might keep it waiting for ever.
fn readable(input: &Path) -> Result<PathBuf, LaunchError> {
    let cannot = |reason: String| {
        LaunchError::Helper(format!(
            "cannot read the input {}: {reason}",
            input.display()
        ))
    };
    let metadata = input
        .metadata()
        .map_err(|reason| cannot(reason.to_string()))?;
    let kind = metadata.file_type();
    if kind.is_fifo() || kind.is_socket() {
        return Err(cannot("it can be read only once; use a file".to_string()));
    }
    File::open(input).map_err(|reason| cannot(reason.to_string()))?;
    absolute(input)
}

/// A file in memory: writing to it makes no work for a disk, which other runs would feel.
fn memory_file(name: &CStr) -> io::Result<File> {
    Ok(File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC)?))
}

impl Report {
    /// Reads the report of a run.
    pub fn parse(text: &str, launch: &Launch) -> Result<Report, LaunchError> {
        let program = launch.program();
        let bad = || LaunchError::Helper(format!("measure ended without a report: {text:?}"));
        let figures: Value = serde_json::from_str(text).map_err(|_| bad())?;
        let exit = match End::deserialize(&figures["end"]).map_err(|_| bad())? {
            End::Code(code) => Exit::Code(code),
            End::Signal(signal) => Exit::Signal(signal),
            End::NotStarted(reason) => return Err(LaunchError::CannotStart { program, reason }),
            End::TimeLimit => {
                let limit = launch.time_limit;
                return Err(LaunchError::TimeLimit { program, limit });
            }
            End::Interrupted => return Err(LaunchError::Interrupted { program }),
            End::Failed(reason) => {
                return Err(LaunchError::Helper(format!("measure: {program}: {reason}")))
            }
        };
        Ok(Report { exit, figures })
    }
}
