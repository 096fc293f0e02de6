//! What to do after a comparison: one command, ready to be copied.

use std::collections::BTreeSet;
use std::ffi::OsString;

use hakmem_inspect::process;
use hakmem_lab::plan::DEFAULT_ROUNDS;
use hakmem_lab::shell::quoted;
use hakmem_report::summary;
use hakmem_results::{Arm, ArmKind, Metric, Ratio, ResultFile, Row, Verdict};

use crate::cli::CompareArguments;
use crate::diagnosis::{is_fallback_set, UNSET_FALLBACK};

/// More runs than these are not suggested: what is unclear then is too small to matter.
const MOST_RUNS: usize = 100;

/// Memory that is more than this many times another's is worth a try with another preset.
const MUCH_MORE: f64 = 1.05;

/// What was asked of `hakmem compare`, as far as it is asked again.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The options as they were given, but for those that say how long to measure.
    options: Vec<String>,
    /// Those of the library among them.
    library: Vec<String>,
    /// What the program reads.
    input: Option<String>,
    /// The program and its arguments.
    command: Vec<String>,
    /// The variables that the shell itself was started with: the next command gets them as well.
    inherited: BTreeSet<String>,
}

impl Asked {
    /// From the command line: `line` is all of it, of which `arguments` were made.
    pub fn new(arguments: &CompareArguments, line: impl Iterator<Item = OsString>) -> Asked {
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        let line: Vec<String> = line.map(|word| text(&word)).collect();
        let command: Vec<String> = arguments.command.iter().map(text).collect();
        let end = line.len().saturating_sub(command.len());
        let options = line.get(2..end).unwrap_or_default();
        let library = &arguments.experiment.library;
        let preset = library
            .preset
            .iter()
            .map(|preset| preset.word().to_string());
        let preset = preset.flat_map(|word| ["--preset".to_string(), word]);
        let settings = library.options.iter();
        let settings = settings.map(|setting| format!("{}={}", setting.name, setting.value));
        let settings = settings.flat_map(|setting| ["--option".to_string(), setting]);
        Asked {
            options: without_length(options),
            library: preset.chain(settings).collect(),
            input: arguments
                .input
                .file
                .as_ref()
                .map(|path| path.display().to_string()),
            command,
            inherited: environment_of_parent(),
        }
    }
}

/// Empty where it may not be read.
fn environment_of_parent() -> BTreeSet<String> {
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    let environment = process::environment(parent);
    let variables = environment.split(|&byte| byte == 0);
    variables
        .map(|variable| String::from_utf8_lossy(variable).into_owned())
        .collect()
}

/// The options but for `--runs`, `--time` and the `--` at the end.
fn without_length(options: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--runs" | "--time" => drop(words.next()),
            "--" => {}
            word if word.starts_with("--runs=") || word.starts_with("--time=") => {}
            word => kept.push(word.to_string()),
        }
    }
    kept
}

/// The line below the results: why, and the command, with the variables that counted and that the
/// shell does not have anyway. A comparison has one row.
pub fn render(file: &ResultFile, asked: &Asked) -> Option<String> {
    let row = summary::rows_run(file).next()?;
    if row.error(&file.arms[0].name).is_some() && is_fallback_set() {
        return Some(format!("  → {UNSET_FALLBACK}"));
    }
    let (purpose, words) = next(file, row, asked)?;
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let variables = file.environment.iter();
    let variables: String = variables
        .filter(|(name, value)| !asked.inherited.contains(&format!("{name}={value}")))
        .map(|(name, value)| format!("{name}={} ", quoted(value)))
        .collect();
    Some(format!(
        "Next, to {purpose}: {variables}hakmem {}",
        words.join(" ")
    ))
}

/// The purpose and the command; none, where the errors say what to do.
fn next(file: &ResultFile, row: &Row, asked: &Asked) -> Option<(&'static str, Vec<String>)> {
    let again = |more: &[&str]| {
        let words = ["compare"].into_iter().chain(more.iter().copied());
        command(words.map(String::from).chain(asked.options.clone()), asked)
    };
    let first = &file.arms[0].name;
    if let Some(error) = row.error(first) {
        // A run that fails under the C library's malloc as well is no matter of the allocator.
        let is_measured =
            |arm: &Arm| arm.kind == ArmKind::System && row.measured(&arm.name).is_some();
        if !error.starts_with("not proven") && !file.arms.iter().any(is_measured) {
            return None;
        }
        let input = asked
            .input
            .iter()
            .flat_map(|path| ["--input".into(), path.clone()]);
        let words = ["doctor".to_string()].into_iter().chain(input);
        return Some((
            "see why hakmem could not be measured",
            command(words, asked),
        ));
    }
    let runs = row
        .measured(first)
        .map_or(0, |measured| measured.samples.len());
    let more_runs = (2 * runs).max(DEFAULT_ROUNDS as usize);
    if is_open(file, row) && more_runs <= MOST_RUNS {
        return Some((
            "settle what is unclear",
            again(&["--runs", &more_runs.to_string()]),
        ));
    }
    let is_worse = |metric, by| ratios(file, row, metric).any(|(_, it)| needs_more(&it, by));
    if asked.library.is_empty() && is_worse(Metric::PeakRss, MUCH_MORE) {
        return Some(("try for less memory", again(&["--preset", "lean"])));
    }
    if asked.library.is_empty() && is_worse(Metric::Time, 1.0) {
        return Some(("try for less time", again(&["--preset", "speed"])));
    }
    let mut of_system = ratios(file, row, Metric::Time);
    if of_system.any(|(arm, ratio)| arm.kind == ArmKind::System && needs_more(&ratio, 1.0)) {
        let words = ["record".to_string()];
        return Some(("see which code holds the memory", command(words, asked)));
    }
    let words = ["run".to_string()].into_iter().chain(asked.library.clone());
    Some(("run it on hakmem", command(words, asked)))
}

/// Words of the hakmem command, and behind them the program.
fn command(words: impl IntoIterator<Item = String>, asked: &Asked) -> Vec<String> {
    let program = ["--".to_string()].into_iter().chain(asked.command.clone());
    words.into_iter().chain(program).collect()
}

/// hakmem's ratios to the others, but not to itself.
fn ratios<'a>(
    file: &'a ResultFile,
    row: &'a Row,
    metric: Metric,
) -> impl Iterator<Item = (&'a Arm, Ratio)> {
    summary::peers(&file.arms)
        .filter_map(move |arm| Some((arm, summary::ratio(row, &arm.name, metric)?)))
}

fn needs_more(ratio: &Ratio, by: f64) -> bool {
    ratio.verdict == Verdict::Worse && ratio.ratio > by
}

/// Whether more runs would tell more about the time.
fn is_open(file: &ResultFile, row: &Row) -> bool {
    let mut ratios = ratios(file, row, Metric::Time);
    ratios.any(|(_, it)| matches!(it.verdict, Verdict::Unclear | Verdict::TooFewRounds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn asked(line: &[&str]) -> Asked {
        let Command::Compare(arguments) = Cli::try_parse_from(line).unwrap().command else {
            panic!("not compare")
        };
        Asked::new(&arguments, line.iter().map(OsString::from))
    }

    #[test]
    fn how_long_to_measure_is_not_asked_again() {
        let line = [
            "hakmem", "compare", "--runs", "9", "--with", "system", "--", "sort", "--runs",
        ];
        let asked = asked(&line);
        assert_eq!(asked.options, ["--with", "system"]);
        assert_eq!(asked.command, ["sort", "--runs"]);
    }

    #[test]
    fn the_program_needs_no_dashes() {
        let asked = asked(&["hakmem", "compare", "--preset", "lean", "sort", "big file"]);
        assert_eq!(asked.options, ["--preset", "lean"]);
        assert_eq!(asked.library, ["--preset", "lean"]);
        let words = command(["run".to_string()], &asked);
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        assert_eq!(words.join(" "), "run -- sort 'big file'");
    }
}
