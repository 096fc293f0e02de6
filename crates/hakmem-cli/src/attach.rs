//! `hakmem record --attach`: records a process that runs already, from now on.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{chown, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use hakmem_inspect::attach::{observer_of, Attachment, Request};
use hakmem_inspect::process;
use hakmem_inspect::report::find_library;
use hakmem_inspect::{Error, Process};
use hakmem_report::format::one_line;
use memchr::memmem;
use rustix::process::geteuid;
use tempfile::TempDir;

use crate::cli::RecordArguments;
use crate::inspection::apart::{apart, unless_stuck};
use crate::inspection::target::process_of;
use crate::interrupt::Interrupt;
use crate::lookout::Lookout;
use crate::output::say;
use crate::record::{self, recordings_in};
use crate::report::{check_length, RECORDING_MAX};

/// Between two looks at the process.
const PAUSE: Duration = Duration::from_millis(10);
/// So often it is hastened.
const HASTE: u64 = 10;
/// A process that has not answered until then is idle.
const PATIENCE: Duration = Duration::from_secs(2);

/// What else there is to say.
const RIGHTS: &str = "; it writes the files itself, with its own rights: --output takes another \
                      directory";

/// Records the process until the time is over, Ctrl-C, or its end.
pub fn attach(arguments: &RecordArguments, target: &str) -> Result<ExitCode> {
    if arguments.library.preset.is_some() || !arguments.library.options.is_empty() {
        bail!("a process that runs keeps its options: --attach goes without --option and --preset");
    }
    let pid = process_of(target)?;
    let open = move || Ok(Process::open(pid).map(|process| (process.name(), process))?);
    let (title, process) = unless_stuck(pid, open)?;
    let name = format!("process {pid} ({})", one_line(&title));
    if process::has_filter(pid) && !arguments.force {
        bail!(
            "{name} has a filter of system calls (seccomp), which may end it for what a recording \
             needs: a thread, files; --force attaches all the same"
        );
    }
    let open = move || Ok(Attachment::open(&process, &find_library(&process)?));
    let attachment = match unless_stuck(pid, open)? {
        Err(Error::Missing { version, .. }) => bail!(
            "{name} runs on a hakmem {version} that is too old to be asked: start the program by \
             `hakmem record -- PROGRAM`, or on the hakmem of this command"
        ),
        opened => opened?,
    };
    if let Some(other) = observer_of(pid) {
        bail!("{name} is being recorded already, by process {other}, another hakmem");
    }
    let places = Places::of(pid, arguments)?;
    let before = recordings_in(&places.seen)?;
    let before_here = recordings_in(&places.output)?;
    let interrupt = Arc::new(Interrupt::catch()?);
    let session = Session {
        attachment,
        interrupt: interrupt.clone(),
        time: arguments.time,
        ends: None,
        name: name.clone(),
    };
    // The library knows the title, which a server may have changed.
    let program = title.replace('/', "_").replace('%', "%%");
    let pattern = record::pattern(&places.written, &program);
    let mean_bytes = match arguments.every {
        true => 1,
        false => u64::from(arguments.sample_kib) << 10,
    };
    let files = pattern.clone();
    let session = unless_stuck(pid, move || session.begin(&files, mean_bytes))?;
    let lookout = Lookout::begin(&places.seen, &before);
    let watch = move || Ok((session.watch(), session));
    let ended = unless_stuck(pid, watch).and_then(|(end, session)| {
        drop(lookout);
        let end = move || {
            session.end(end);
            Ok(())
        };
        unless_stuck(pid, end)
    });
    // What was recorded until then is there all the same.
    if let Err(error) = ended {
        say(format_args!("hakmem: {error:#}"));
    }
    end_children(&pattern, pid);
    places.fetch(&before)?;
    let recorded = match record::summary_of(&places.output, &before_here)? {
        Some(text) => text,
        None => bail!("{name} has allocated nothing that was sampled"),
    };
    drop(interrupt);
    say(recorded);
    Ok(ExitCode::SUCCESS)
}

/// Where the files are: as the process names the directory, and as it is found from here.
struct Places {
    written: PathBuf,
    seen: PathBuf,
    output: PathBuf,
    /// The user whose process it is.
    user: u32,
    /// Keeps the directory of another container in reach.
    _open: Option<File>,
    /// That of another user goes with this.
    _private: Option<TempDir>,
}

impl Places {
    /// A process that has another root writes to its own /tmp, and one of another user to a
    /// directory that is made for it.
    fn of(pid: i32, arguments: &RecordArguments) -> Result<Places> {
        let output = record::directory(arguments)?;
        let process = format!("/proc/{pid}");
        let user = fs::metadata(&process).context(process)?.uid();
        let mut places = ["ns/mnt", "root"].into_iter();
        if places.all(|place| process::shares(pid, place) == Some(true)) {
            let private = match geteuid().is_root() && user != 0 {
                true => Some(private_directory(user)?),
                false => None,
            };
            let place = private.as_ref().map_or(&*output, |it| it.path());
            return Ok(Places {
                written: place.to_owned(),
                seen: place.to_owned(),
                output,
                user,
                _open: None,
                _private: private,
            });
        }
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        let open = hakmem_files::directory_below(&root, Path::new("/tmp"))
            .with_context(|| format!("cannot read {}/tmp", root.display()))?;
        Ok(Places {
            written: PathBuf::from("/tmp"),
            seen: PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd())),
            output,
            user,
            _open: Some(open),
            _private: None,
        })
    }

    /// Brings files of another root to where they are wanted.
    fn fetch(&self, before: &BTreeSet<PathBuf>) -> Result<()> {
        for path in recordings_in(&self.seen)?.difference(before) {
            if self.seen == self.output {
                break;
            }
            match copy(path, &self.output, self.user) {
                Ok(()) => drop(fs::remove_file(path)),
                Err(error) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    say(format_args!("hakmem: cannot copy {name}: {error}"));
                }
            }
        }
        Ok(())
    }
}

/// One that belongs to this user.
fn private_directory(user: u32) -> Result<TempDir> {
    let made = tempfile::Builder::new()
        .prefix("hakmem-")
        .tempdir_in("/tmp");
    let made = made.and_then(|made| chown(made.path(), Some(user), None).map(|()| made));
    made.context("cannot make a directory for the user of the process")
}

/// The processes that were forked meanwhile go on recording unless they are told. What they have of
/// their parent says that they are such, whatever has become of their files.
fn end_children(pattern: &OsStr, parent: i32) {
    let suffix = format!(".{}", record::SUFFIX);
    for child in process::all() {
        let maps = process::maps(child).unwrap_or_default();
        if child == parent || memmem::find(&maps, suffix.as_bytes()).is_none() {
            continue;
        }
        let pattern = pattern.to_owned();
        let end = move || -> Option<()> {
            let process = Process::open(child).ok()?;
            let library = find_library(&process).ok()?;
            let attachment = Attachment::open(&process, &library).ok()?;
            if attachment.is_recording() && attachment.pattern() == pattern.as_bytes() {
                attachment.ask(Request::End).ok()?;
                attachment.hasten();
            }
            Some(())
        };
        apart(end);
    }
}

/// Brings a file of that user, whose others may do there what they like, to a new one.
fn copy(path: &Path, directory: &Path, user: u32) -> io::Result<()> {
    let mut file = hakmem_files::unlinked(path)?;
    let bytes = check_length(&file, RECORDING_MAX)?;
    if file.metadata()?.uid() != user {
        return Err(io::Error::other("it is of another user than the process"));
    }
    let name = path.file_name().unwrap_or_default();
    let mut new = File::options();
    let mut new = new
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(directory.join(name))?;
    io::copy(&mut (&mut file).take(bytes), &mut new)?;
    Ok(())
}

/// Why a recording ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Asked,
    Gone,
}

struct Session {
    attachment: Attachment,
    interrupt: Arc<Interrupt>,
    time: Option<Duration>,
    ends: Option<Instant>,
    name: String,
}

impl Session {
    fn is_over(&self) -> bool {
        let now = Instant::now();
        self.interrupt.was_asked() || self.ends.is_some_and(|ends| now >= ends)
    }

    /// Waits until the request is answered; false: the time is over before that.
    fn wait(&self, answered: u64, is_over: impl Fn() -> bool) -> Result<bool> {
        for pauses in 0u64.. {
            // Busy programs come by themselves.
            if pauses % HASTE == HASTE - 1 {
                self.attachment.hasten();
            }
            match self.attachment.answers() {
                None => bail!("{} {}", self.name, self.why_unread()),
                Some(answers) if answers != answered => return Ok(true),
                Some(_) if is_over() => return Ok(false),
                Some(_) => sleep(PAUSE),
            }
        }
        Ok(false)
    }

    /// Of a process whose answers cannot be read.
    fn why_unread(&self) -> &'static str {
        match self.attachment.is_there() {
            true => "goes on, but its memory cannot be read any more",
            false => "has ended, or become another program",
        }
    }

    fn begin(mut self, pattern: &OsStr, mean_bytes: u64) -> Result<Session> {
        let (name, why) = (self.name.clone(), self.why_unread());
        let gone = || format!("{name} {why}");
        let attachment = &self.attachment;
        let answered = attachment.answers().with_context(gone)?;
        self.ends = self.time.map(|time| Instant::now() + time);
        match attachment.prepare(pattern.as_bytes(), mean_bytes) {
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                bail!("cannot record to {}: {error}", pattern.to_string_lossy())
            }
            prepared => prepared.with_context(gone)?,
        }
        attachment.ask(Request::Begin).with_context(gone)?;
        let asked = Instant::now();
        if !self.wait(answered, || self.is_over() || asked.elapsed() >= PATIENCE)? {
            if !self.is_over() {
                say(format_args!(
                    "hakmem: {name} allocates nothing: the recording begins when it does"
                ));
            }
            if !self.wait(answered, || self.is_over())? {
                self.give_up(answered)?;
            }
        }
        if !self.attachment.is_recording() {
            let said = self.attachment.said();
            let (reason, advice) = match said.trim_start_matches("hakmem: recording: ") {
                "" => ("it may have no thread for that", ""),
                reason if reason.contains(": no permission") => (reason, RIGHTS),
                reason => (reason, ""),
            };
            bail!("{name} cannot be recorded: {reason}{advice}");
        }
        say(format_args!("hakmem: recording {name}; Ctrl-C ends it"));
        self.ends = self.time.map(|time| Instant::now() + time);
        Ok(self)
    }

    /// Takes the request back, unless it has just been found.
    fn give_up(&self, answered: u64) -> Result<()> {
        if self.attachment.is_asked() == Some(true) {
            self.attachment.withdraw()?;
        }
        let asked = Instant::now();
        if self.wait(answered, || asked.elapsed() > 5 * PAUSE)? {
            return Ok(());
        }
        bail!(
            "{} has allocated nothing meanwhile: nothing was recorded",
            self.name
        )
    }

    fn watch(&self) -> End {
        loop {
            match self.attachment.answers() {
                None => return End::Gone,
                Some(_) if self.is_over() => return End::Asked,
                Some(_) => sleep(PAUSE),
            }
        }
    }

    fn end(&self, end: End) {
        let said = self.attachment.said();
        if !said.is_empty() {
            say(said);
        }
        let answered = self.attachment.answers();
        let (End::Asked, Some(answered)) = (end, answered) else {
            say(format_args!("hakmem: {} {}", self.name, self.why_unread()));
            return;
        };
        let asked = Instant::now();
        let is_over = || asked.elapsed() >= PATIENCE;
        let ended = match self.attachment.ask(Request::End) {
            Ok(()) => self.wait(answered, is_over).unwrap_or(true),
            Err(_) => true,
        };
        if !ended {
            say(format_args!(
                "hakmem: {} allocates nothing: it ends the recording when it does",
                self.name
            ));
        }
    }
}
