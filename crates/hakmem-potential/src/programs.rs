//! The rows of `lab/potential.toml`, and how they are run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use hakmem_process::{find_program, run_timed, Exit, Launch, Tools};
use hakmem_profile::file::{parse, Recording};
use serde::{Deserialize, Serialize};

const TIME_LIMIT: Duration = Duration::from_secs(120);

/// A program with two inputs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Unique.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// Debian packages.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Program and arguments.
    pub command: Vec<String>,
    /// What {1}, {2} and so on stand for, in the run that is learned of and in that it is tried on.
    pub inputs: [Vec<String>; 2],
    /// Shell command before the first run of an input.
    pub prepare: Option<String>,
    /// It prints what it cost.
    #[serde(default)]
    pub server: bool,
    /// Variables.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    row: Vec<Row>,
}

/// Reads the list.
///
/// # Errors
/// The file cannot be read or is wrong.
pub fn read(file: &Path) -> Result<Vec<Row>> {
    let name = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let rows: Rows = toml::from_str(&text).with_context(|| format!("{name} is wrong"))?;
    Ok(rows.row)
}

/// Where things are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The helper that starts programs.
    pub tools: Tools,
    /// The library.
    pub library: PathBuf,
    /// The directory lab/.
    pub lab: PathBuf,
    /// The workload programs.
    pub workloads: PathBuf,
}

/// What a run cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Cost {
    pub cpu_s: f64,
    pub peak_rss_kib: f64,
    pub minor_faults: f64,
}

/// A row in its scratch directory.
#[derive(Debug)]
pub struct Program<'a> {
    row: &'a Row,
    places: &'a Places,
    work: PathBuf,
}

impl<'a> Program<'a> {
    /// Prepares both inputs. `Ok(None)`: it is not installed.
    ///
    /// # Errors
    /// The preparation fails.
    pub fn new(row: &'a Row, places: &'a Places, work: &Path) -> Result<Option<Program<'a>>> {
        let program = Program {
            row,
            places,
            work: work.join(&row.name),
        };
        fs::create_dir_all(&program.work)?;
        let command = program.expand(&row.command[0], 0);
        if find_program(Path::new(&command)).is_none() {
            return Ok(None);
        }
        for input in 0..2 {
            let Some(prepare) = &row.prepare else {
                continue;
            };
            let status = Command::new("sh")
                .args(["-c", &program.expand(prepare, input)])
                .current_dir(&program.work)
                .stdin(Stdio::null())
                .status()?;
            ensure!(status.success(), "{}: cannot be prepared", row.name);
        }
        Ok(Some(program))
    }

    fn expand(&self, text: &str, input: usize) -> String {
        let path = |path: PathBuf| path.display().to_string();
        let mut text = text
            .replace("{input}", &path(self.places.lab.join("potential")))
            .replace("{programs}", &path(self.places.lab.join("programs")))
            .replace("{workloads}", &path(self.places.workloads.clone()));
        for (number, value) in self.row.inputs[input].iter().enumerate() {
            text = text.replace(&format!("{{{}}}", number + 1), value);
        }
        text
    }

    /// Runs it with these options of the library.
    ///
    /// # Errors
    /// It cannot be run, fails, or does not say what it cost.
    pub fn run(&self, input: usize, options: &[(String, String)]) -> Result<Cost> {
        let name = &self.row.name;
        let mut environment = self.row.environment.clone();
        environment.extend(options.iter().cloned());
        let command = self.row.command.iter();
        let launch = Launch {
            command: command
                .map(|it| OsString::from(self.expand(it, input)))
                .collect(),
            environment,
            preload: Some(self.places.library.clone()),
            directory: Some(self.work.clone()),
            input: None,
            time_limit: TIME_LIMIT,
        };
        let run = run_timed(&self.places.tools, &launch)?;
        if run.exit != Exit::Code(0) {
            let said = String::from_utf8_lossy(&run.stderr);
            bail!("{name} failed ({:?}): {}", run.exit, said.trim_end());
        }
        if !self.row.server {
            return Ok(Cost {
                cpu_s: run.cost.user_s + run.cost.system_s,
                peak_rss_kib: run.cost.peak_rss_kib as f64,
                minor_faults: run.cost.minor_faults as f64,
            });
        }
        let text = String::from_utf8_lossy(&run.stdout).into_owned();
        let figure = |what: &str| -> Result<f64> {
            let line = text.lines().find_map(|line| line.strip_prefix(what));
            let line = line.with_context(|| format!("{name} does not print {what}"))?;
            Ok(line.trim().parse()?)
        };
        Ok(Cost {
            cpu_s: figure("cpu_s ")?,
            peak_rss_kib: figure("peak_rss_kib ")?,
            minor_faults: figure("minor_faults ")?,
        })
    }

    /// Records a run: the process of it that allocated most.
    ///
    /// # Errors
    /// As those of [`Program::run`]; or nothing was recorded.
    pub fn record(&self, input: usize, limit_mib: u32) -> Result<Recording> {
        let directory = self.work.join("recordings");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory)?;
        let pattern = directory.join("%p.hakprof").display().to_string();
        let options = [
            ("HAKMEM_RECORD_FILE", pattern),
            ("HAKMEM_SAMPLE_KIB", "1".to_owned()),
            ("HAKMEM_RECORD_MIB", limit_mib.to_string()),
        ];
        self.run(
            input,
            &options.map(|(name, value)| (name.to_owned(), value)),
        )?;
        let mut most: Option<Recording> = None;
        let allocated = |recording: &Recording| {
            let bytes = recording.sites.iter().map(|site| site.born_bytes);
            bytes.sum::<u64>()
        };
        for entry in fs::read_dir(&directory)? {
            let Ok(recording) = parse(&fs::read(entry?.path())?) else {
                continue;
            };
            if most
                .as_ref()
                .is_none_or(|it| allocated(it) < allocated(&recording))
            {
                most = Some(recording);
            }
        }
        fs::remove_dir_all(&directory)?;
        most.with_context(|| format!("{}: nothing was recorded", self.row.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_the_lab_is_right() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let rows = read(&top.join("lab/potential.toml")).unwrap();
        assert!(rows.len() > 4);
        for row in &rows {
            let [first, second] = &row.inputs;
            assert_eq!(first.len(), second.len(), "{}", row.name);
            assert_ne!(first, second, "{}", row.name);
        }
    }

    #[test]
    fn a_wrong_list_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("rows.toml");
        fs::write(&file, "[[row]]\nname = \"a\"\ncolour = 1\n").unwrap();
        let error = format!("{:#}", read(&file).unwrap_err());
        assert!(error.contains("rows.toml is wrong"), "{error}");
        assert!(error.contains("colour"), "{error}");
    }
}
