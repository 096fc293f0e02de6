//! What a watched or measured program reads: a file, anew in every run, or nothing. Not what the
//! command itself gets on standard input, for that can be read only once.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use anyhow::{bail, Context, Result};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{fstat, FileType};

use crate::cli::InputOptions;
use crate::output::say;

/// Time for whoever writes into our standard input to begin.
const PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

impl InputOptions {
    /// The file to read, if any. Without one, says on standard error when there is something on
    /// standard input that will not be read.
    ///
    /// # Errors
    /// The file cannot be read, or not more than once.
    pub fn input(&self) -> Result<Option<PathBuf>> {
        let Some(path) = &self.file else {
            if is_given_something() {
                say(
                    "hakmem: warning: what comes on standard input is not read, and the program \
                     reads nothing: give it a file, --input FILE",
                );
            }
            return Ok(None);
        };
        let name = path.display();
        let cannot_read = || format!("cannot read the input {name}");
        let metadata = fs::metadata(path).with_context(cannot_read)?;
        match FileType::from_raw_mode(std::os::unix::fs::MetadataExt::mode(&metadata)) {
            FileType::RegularFile | FileType::CharacterDevice => {
                File::open(path).with_context(cannot_read)?;
                Ok(Some(path.clone()))
            }
            FileType::Directory => bail!("the input {name} is a directory"),
            _ => bail!(
                "the input {name} can be read only once, but there are many runs: put it \
                        into a file"
            ),
        }
    }
}

/// Whether standard input is a file, or a pipe with something in it.
fn is_given_something() -> bool {
    let stdin = io::stdin();
    let kind = fstat(&stdin).map(|status| FileType::from_raw_mode(status.st_mode));
    match kind {
        Ok(FileType::RegularFile) => true,
        Ok(FileType::Fifo) => {
            let mut pipe = [PollFd::new(&stdin, PollFlags::IN)];
            poll(&mut pipe, Some(&PATIENCE)).is_ok() && pipe[0].revents().contains(PollFlags::IN)
        }
        _ => false,
    }
}
