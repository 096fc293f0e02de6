//! Where the results go: files, and standard output, which shows the table unless another format
//! was asked for there.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use hakmem_report::table::{self, TableOptions};
use hakmem_report::{brief, csv, html, json, markdown};
use hakmem_results::ResultFile;
use rustix::process::geteuid;
use tempfile::NamedTempFile;

use crate::cli::{OutputOptions, RecordingOptions};
pub use crate::printing::{print, print_bytes, print_if_read, say};

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For a terminal.
    Table,
    /// For programs.
    Json,
    /// For spreadsheets.
    Csv,
    /// For documents; of results alone.
    Markdown,
    /// A page.
    Html,
    /// A profile of pprof; this and those that follow are of recordings alone.
    Pprof,
    /// Samples, for spreadsheets.
    Samples,
    /// Collapsed stacks.
    Collapsed,
    /// A flame graph.
    Flamegraph,
    /// Defects, of leaks alone.
    Sarif,
}

impl Format {
    pub(crate) fn render(self, file: &ResultFile) -> Result<Vec<u8>> {
        Ok(match self {
            Format::Table => table::render(file, &TableOptions::for_stdout()),
            Format::Json => json::render(file),
            Format::Csv => csv::render(file),
            Format::Markdown => markdown::render(file),
            Format::Html => html::render(file),
            Format::Pprof
            | Format::Samples
            | Format::Collapsed
            | Format::Flamegraph
            | Format::Sarif => bail!(
                "--pprof, --samples, --collapsed, --flamegraph and --sarif show recordings, not \
                 results"
            ),
        }
        .into_bytes())
    }
}

/// How a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum How {
    /// As a new file in the same directory, which then takes the name: nobody ever sees half of
    /// it, and what was there before stays until then. The path has no links in it.
    Replace(PathBuf),
    /// As it is: a pipe, a device, or a file in a directory that takes no new ones.
    InPlace,
}

/// The outputs of one run of the command.
#[derive(Debug)]
pub struct Outputs {
    stdout: Format,
    files: Vec<(Format, Document)>,
}

impl Outputs {
    /// What the options ask for.
    ///
    /// # Errors
    /// Two formats want standard output or the same file, or a file cannot be written: better said
    /// before the experiment than after it.
    pub fn new(options: &OutputOptions) -> Result<Outputs> {
        Outputs::with_recording(options, &RecordingOptions::default())
    }

    /// The same, with the formats of recordings.
    ///
    /// # Errors
    /// As for [`Outputs::new`].
    pub fn with_recording(
        options: &OutputOptions,
        recording: &RecordingOptions,
    ) -> Result<Outputs> {
        let asked = [
            (Format::Json, &options.json),
            (Format::Csv, &options.csv),
            (Format::Markdown, &options.markdown),
            (Format::Html, &options.html),
            (Format::Pprof, &recording.pprof),
            (Format::Samples, &recording.samples),
            (Format::Collapsed, &recording.collapsed),
            (Format::Flamegraph, &recording.flamegraph),
            (Format::Sarif, &recording.leak_options.sarif),
        ];
        let asked = asked
            .into_iter()
            .filter_map(|(format, path)| Some((format, path.clone()?)));
        let (on_stdout, asked): (Vec<_>, Vec<_>) =
            asked.partition(|(_, path)| path == Path::new("-"));
        if on_stdout.len() > 1 {
            bail!("only one format can go to standard output: give the others a file, --csv=FILE");
        }
        let mut files: Vec<(Format, Document)> = Vec::new();
        for (format, path) in asked {
            let document = Document::new(&path)?;
            if let Some((_, other)) = files.iter().find(|(_, other)| document.replaces(other)) {
                let (path, other) = (path.display(), other.path.display());
                bail!("two formats would be written to the same file: {other} and {path}");
            }
            files.push((format, document));
        }
        let stdout = on_stdout
            .first()
            .map_or(Format::Table, |(format, _)| *format);
        Ok(Outputs { stdout, files })
    }

    /// Whether standard output shows the table.
    pub fn shows_table(&self) -> bool {
        self.stdout == Format::Table
    }

    /// The files, as they were given.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(_, file)| file.path.as_path())
    }

    /// Writes the results everywhere; the table in short, if so.
    ///
    /// # Errors
    /// As for [`Outputs::write_with`].
    pub fn write(&self, file: &ResultFile, in_short: bool) -> Result<()> {
        self.write_with(|format| match format {
            Format::Table if in_short => {
                Ok(brief::render(file, &TableOptions::for_stdout()).into_bytes())
            }
            format => format.render(file),
        })
    }

    /// Writes what `render` makes everywhere.
    ///
    /// # Errors
    /// A format cannot be made, or a file cannot be written. The others, and standard output, are
    /// written all the same.
    pub fn write_with(&self, render: impl Fn(Format) -> Result<Vec<u8>>) -> Result<()> {
        let mut result = render(self.stdout).and_then(|bytes| match self.shows_table() {
            true => print(&String::from_utf8_lossy(&bytes)),
            false => print_bytes(&bytes),
        });
        for (format, file) in &self.files {
            let written = render(*format).and_then(|bytes| file.write(bytes));
            result = result.and(written);
        }
        result
    }
}

/// A single file, or standard output.
#[derive(Debug)]
pub struct Document {
    /// As it was given.
    path: PathBuf,
    /// `None`: standard output.
    how: Option<How>,
    /// What a new file may be; the umask takes of that.
    mode: u32,
}

/// What tells where the code of a process lies is for its user alone.
const PRIVATE: u32 = 0o600;
const ORDINARY: u32 = 0o666;

impl Document {
    /// What an option asks for; `-` is standard output.
    ///
    /// # Errors
    /// The file cannot be written: better said before the work than after it.
    pub fn new(path: &Path) -> Result<Document> {
        let how = match path == Path::new("-") {
            true => None,
            false => Some(how_to_write(path).with_context(|| cannot_write(path))?),
        };
        Ok(Document {
            path: path.into(),
            how,
            mode: ORDINARY,
        })
    }

    /// The same for this user alone, whatever was there before.
    ///
    /// # Errors
    /// As for [`Document::new`].
    pub fn private(path: &Path) -> Result<Document> {
        Ok(Document {
            mode: PRIVATE,
            ..Document::new(path)?
        })
    }

    /// Whether what is written to the other one would be gone.
    fn replaces(&self, other: &Document) -> bool {
        matches!(self.how, Some(How::Replace(_))) && self.how == other.how
    }

    /// Writes it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, content: impl AsRef<[u8]>) -> Result<()> {
        let written = match &self.how {
            None => return print_bytes(content.as_ref()),
            Some(How::Replace(path)) => replace(path, content.as_ref(), self.mode),
            Some(How::InPlace) => fs::write(&self.path, content),
        };
        written.with_context(|| cannot_write(&self.path))
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Finds out whether and how a file can be written, and leaves everything as it was.
fn how_to_write(path: &Path) -> io::Result<How> {
    let destination = hakmem_files::resolved(path)?;
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => return Err(io::Error::other("it is a directory")),
        Ok(metadata) if metadata.file_type().is_fifo() && !is_trusted(metadata.uid()) => {
            return Err(io::Error::other("it is a pipe of another user"));
        }
        Ok(metadata) if !metadata.is_file() => return Ok(How::InPlace),
        // Not even by a new file of its name, if it must not be written.
        Ok(_) => drop(fs::OpenOptions::new().append(true).open(&destination)?),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Err(_) if path.file_name().is_none() => return Err(ErrorKind::InvalidInput.into()),
        Err(_) => {}
    }
    match new_file_beside(&destination, ORDINARY) {
        Ok(_) => Ok(How::Replace(destination)),
        Err(_) if destination.exists() => Ok(How::InPlace),
        Err(error) => Err(error),
    }
}

fn is_trusted(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

fn directory_of(path: &Path) -> &Path {
    let parent = path.parent();
    parent
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn new_file_beside(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".hakmem-")
        // What the umask takes away is taken away.
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(directory_of(path))
        // The error names the new file, of which nobody knows.
        .map_err(|error| error.kind().into())
}

fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = new_file_beside(path, mode)?;
    // Its error does not name the new file.
    file.as_file_mut().write_all(bytes)?;
    let former = path.metadata().ok().filter(|_| mode != PRIVATE);
    if let Some(former) = former {
        file.as_file().set_permissions(former.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn one_format_on_standard_output() {
        let dash = || Some(PathBuf::from("-"));
        let options = OutputOptions {
            json: dash(),
            ..OutputOptions::default()
        };
        assert!(!Outputs::new(&options).unwrap().shows_table());
        let options = OutputOptions {
            csv: dash(),
            ..options
        };
        assert!(Outputs::new(&options).is_err());
        assert!(Outputs::new(&OutputOptions::default())
            .unwrap()
            .shows_table());
    }

    #[test]
    fn nothing_is_written_before_there_are_results() {
        let directory = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| directory.path().join(name));
        fs::write(&old, "earlier results").unwrap();
        let options = OutputOptions {
            json: Some(old.clone()),
            html: Some(new.clone()),
            ..OutputOptions::default()
        };
        Outputs::new(&options).unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "earlier results");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn two_formats_in_one_file_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| directory.path().join(name));
        let both = |json: &Path, csv: &Path| {
            Outputs::new(&OutputOptions {
                json: Some(json.to_path_buf()),
                csv: Some(csv.to_path_buf()),
                ..OutputOptions::default()
            })
        };
        for present in [false, true] {
            if present {
                fs::write(&file, "earlier results").unwrap();
                symlink(&file, &link).unwrap();
                both(&file, &link).unwrap_err();
            }
            let message = both(&file, &directory.path().join("./file")).unwrap_err();
            let message = message.to_string();
            assert!(message.contains("the same file"), "{message}");
        }
        let null = Path::new("/dev/null");
        both(null, null).unwrap();
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_stays_what_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link, new] = ["file", "link", "new"].map(|name| directory.path().join(name));
        fs::write(&file, "earlier results").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o604)).unwrap();
        symlink(&file, &link).unwrap();
        let mut former = fs::File::open(&file).unwrap();
        let How::Replace(destination) = how_to_write(&link).unwrap() else {
            panic!("in place")
        };
        replace(&destination, b"results", ORDINARY).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "results");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o604);
        // Whoever reads the former file reads it to its end.
        let mut text = String::new();
        former.read_to_string(&mut text).unwrap();
        assert_eq!(text, "earlier results");
        replace(&new, b"results", ORDINARY).unwrap();
        fs::write(directory.path().join("ordinary"), "").unwrap();
        let mode = |name: &str| directory.path().join(name).metadata().unwrap().mode();
        assert_eq!(mode("new"), mode("ordinary"));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 4);
        Document::private(&file).unwrap().write("secret").unwrap();
        assert_eq!(mode("file") & 0o777, 0o600);
    }

    #[test]
    fn files_that_cannot_be_written_are_found_at_once() {
        // Not even root makes a file in the second.
        for path in ["/nonexistent/page.html", "/proc/page.html"] {
            let error = Document::new(Path::new(path)).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(&format!("cannot write {path}")), "{error}");
            assert!(!error.contains(".hakmem-"), "{error}");
        }
    }
}
