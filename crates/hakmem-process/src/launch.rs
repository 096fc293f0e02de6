//! What is started, with what preloaded, and why it may fail.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{self, Path, PathBuf};
use std::time::Duration;

/// What to start.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Program and arguments; the program is searched in PATH.
    pub command: Vec<OsString>,
    /// Added to the environment of this process.
    pub environment: BTreeMap<String, String>,
    /// Library to preload, before what LD_PRELOAD holds already.
    pub preload: Option<PathBuf>,
    /// Directory to start in; `None`: the current one.
    pub directory: Option<PathBuf>,
    /// File to read on standard input, from its beginning in every run; `None`: nothing.
    pub input: Option<PathBuf>,
    /// The program's whole tree is killed after this, and the run is an error.
    pub time_limit: Duration,
}

/// Where the helper of this crate lies.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The small parent: the executable `measure`.
    pub measure: PathBuf,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By exit, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was stopped: by the time limit, or because a signal arrived here.
    Stopped,
}

/// Why a program could not be run. The message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The program is not there or may not be executed.
    #[error("cannot run {program}: {reason}")]
    CannotStart {
        /// As it was given.
        program: String,
        /// From the system.
        reason: String,
    },
    /// No end within the time limit.
    #[error("{program} had not ended after {limit:?} and was stopped")]
    TimeLimit {
        /// As it was given.
        program: String,
        /// The limit.
        limit: Duration,
    },
    /// The dynamic linker did not take the library.
    #[error("the dynamic linker did not preload {library}: {message}")]
    NotPreloaded {
        /// The library.
        library: String,
        /// What it said.
        message: String,
    },
    /// SIGINT, SIGTERM or SIGHUP arrived. When the run is over it is delivered once more, so this
    /// is seen only by a process that handles the signal.
    #[error("{program} was stopped because a signal arrived")]
    Interrupted {
        /// As it was given.
        program: String,
    },
    /// A helper of this crate failed.
    #[error("{0}")]
    Helper(String),
}

impl Launch {
    /// The program as it was given, for messages.
    pub(crate) fn program(&self) -> String {
        self.command
            .first()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// The environment pairs to set, LD_PRELOAD included if the launch preloads.
    pub(crate) fn pairs(&self) -> Result<Vec<OsString>, LaunchError> {
        let mut pairs: BTreeMap<_, _> = self
            .environment
            .iter()
            .map(|(name, value)| (name.clone(), value.into()))
            .collect();
        if let Some(library) = self.preload.as_deref() {
            let existing = pairs
                .remove("LD_PRELOAD")
                .or_else(|| env::var_os("LD_PRELOAD"));
            let value = preload_value(&[library], existing.as_deref())?;
            pairs.insert("LD_PRELOAD".to_string(), value);
        }
        let join = |(name, value): (String, OsString)| {
            let mut pair = OsString::from(name);
            pair.push("=");
            pair.push(value);
            pair
        };
        Ok(pairs.into_iter().map(join).collect())
    }

    /// Fails if the dynamic linker said on the program's standard error that it did not take the
    /// library.
    pub(crate) fn check_preloaded(&self, stderr: &[u8]) -> Result<(), LaunchError> {
        let Some(library) = &self.preload else {
            return Ok(());
        };
        let library = absolute(library)?.display().to_string();
        let quoted = format!("object '{library}' from LD_PRELOAD cannot be preloaded");
        let stderr = String::from_utf8_lossy(stderr);
        let complaint = stderr
            .lines()
            .find(|line| line.contains("ld.so:") && line.contains(&quoted));
        match complaint {
            Some(line) => {
                let message = line.split_once(&quoted).map_or(line, |(_, reason)| reason);
                let message = message.trim().trim_end_matches(": ignored.");
                let message = message
                    .trim_start_matches('(')
                    .trim_end_matches(')')
                    .to_string();
                Err(LaunchError::NotPreloaded { library, message })
            }
            None => Ok(()),
        }
    }
}

/// The value of LD_PRELOAD that loads these libraries before those of an existing value, each once:
/// one that is there already, as in a shell that runs on it itself, moves to the front.
///
/// The paths are made absolute, for the program may start in another directory. Fails if one has
/// a colon or white space in it, which separate the entries: the dynamic linker knows no quoting.
pub fn preload_value(
    libraries: &[&Path],
    existing: Option<&OsStr>,
) -> Result<OsString, LaunchError> {
    let mut value = OsString::new();
    for library in libraries {
        let library = absolute(library)?;
        if library
            .as_os_str()
            .as_bytes()
            .iter()
            .any(|byte| b": \t\n".contains(byte))
        {
            return Err(LaunchError::NotPreloaded {
                library: library.display().to_string(),
                message: "LD_PRELOAD cannot hold a path with a colon or a space in it; copy the \
                          library to another place"
                    .to_string(),
            });
        }
        if !value.is_empty() {
            value.push(":");
        }
        value.push(library);
    }
    let existing = existing.unwrap_or_default().as_bytes();
    for entry in existing.split(|byte| b" :".contains(byte)) {
        let entry = OsStr::from_bytes(entry);
        // A name without a slash is searched elsewhere than here.
        let is_path = entry.as_bytes().contains(&b'/');
        let is_there = |library: &&Path| is_path && is_same(Path::new(entry), library);
        if !entry.is_empty() && !libraries.iter().any(is_there) {
            value.push(":");
            value.push(entry);
        }
    }
    Ok(value)
}

fn is_same(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| path.canonicalize().ok();
    one == other || file(one).is_some_and(|one| file(other) == Some(one))
}

/// Makes a path absolute, links and all left as they are.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, LaunchError> {
    path::absolute(path)
        .map_err(|reason| LaunchError::Helper(format!("{}: {reason}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(preload: Option<&str>) -> Launch {
        Launch {
            command: vec!["true".into()],
            environment: BTreeMap::new(),
            preload: preload.map(PathBuf::from),
            directory: None,
            input: None,
            time_limit: Duration::from_secs(1),
        }
    }

    #[test]
    fn preloaded_libraries_stand_before_existing_ones() {
        let libraries = [Path::new("/lib/a.so"), Path::new("/lib/b.so")];
        assert_eq!(
            preload_value(&libraries, None).unwrap(),
            "/lib/a.so:/lib/b.so"
        );
        let existing = Some(OsStr::new("c.so d.so"));
        assert_eq!(
            preload_value(&libraries, existing).unwrap(),
            "/lib/a.so:/lib/b.so:c.so:d.so"
        );
        assert_eq!(
            preload_value(&libraries[..1], Some(OsStr::new(""))).unwrap(),
            "/lib/a.so"
        );
    }

    #[test]
    fn a_library_that_is_there_already_stands_there_once() {
        let directory = tempfile::tempdir().unwrap();
        let [library, link] = ["x.so", "link.so"].map(|name| directory.path().join(name));
        std::fs::write(&library, "").unwrap();
        std::os::unix::fs::symlink(&library, &link).unwrap();
        let existing = format!("c.so {} x.so:{}", library.display(), link.display());
        let value = preload_value(&[&link], Some(OsStr::new(&existing))).unwrap();
        assert_eq!(value, format!("{}:c.so:x.so", link.display()).as_str());
    }

    #[test]
    fn a_relative_path_becomes_absolute() {
        let value = preload_value(&[Path::new("x.so")], None).unwrap();
        assert_eq!(value, env::current_dir().unwrap().join("x.so").as_os_str());
    }

    #[test]
    fn a_path_that_ld_preload_cannot_hold_is_refused() {
        for path in ["/a b/x.so", "/a:b/x.so"] {
            let error = preload_value(&[Path::new(path)], None).unwrap_err();
            assert!(error.to_string().contains("copy the library"), "{error}");
        }
    }

    #[test]
    fn what_the_launch_sets_beats_the_environment() {
        let mut launch = launch(Some("/lib/a.so"));
        launch
            .environment
            .insert("LD_PRELOAD".to_string(), "/lib/own.so".to_string());
        launch
            .environment
            .insert("X".to_string(), "1=2".to_string());
        let pairs = launch.pairs().unwrap();
        assert_eq!(pairs, ["LD_PRELOAD=/lib/a.so:/lib/own.so", "X=1=2"]);
    }

    #[test]
    fn the_complaint_of_the_dynamic_linker_is_found() {
        let stderr = b"hello\nERROR: ld.so: object '/no/x.so' from LD_PRELOAD cannot be preloaded \
                       (cannot open shared object file): ignored.\n";
        launch(Some("/no/y.so")).check_preloaded(stderr).unwrap();
        launch(None).check_preloaded(stderr).unwrap();
        let error = launch(Some("/no/x.so"))
            .check_preloaded(stderr)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the dynamic linker did not preload /no/x.so: cannot open shared object file"
        );
    }
}
