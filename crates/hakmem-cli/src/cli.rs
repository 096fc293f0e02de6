//! The command line: one definition, from which the help, the man pages and the completions come.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use hakmem_lab::plan::ExitCodes;
use hakmem_profile::condition::Condition;
use regex_lite::Regex;

use crate::candidates;
use crate::settings::LibraryOptions;
use crate::values::{duration, exit_codes, mib, number, sample_kib};

/// Run programs on hakmem, a malloc for Linux, and measure what it brings.
#[derive(Debug, Parser)]
#[command(name = "hakmem", version, max_term_width = 100, after_help = EXAMPLES)]
#[command(arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  hakmem run -- redis-server      run a program on hakmem
  hakmem doctor -- git status     is hakmem the malloc of this program?
  hakmem record -- ./server       which code holds its memory?
  hakmem report FILE              what was recorded
  hakmem trim 1234                give free memory back now
  hakmem compare -- sort big.txt  which allocator is best for this program?
  hakmem bench --quick            the same for the built-in list of programs";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program on hakmem
    Run(RunArguments),
    /// Say whether hakmem serves a program, and if not, why
    Doctor(DoctorArguments),
    /// Say where the memory of a running program, or of one that left a core file, is
    Inspect(InspectArguments),
    /// Watch the memory of a running program
    Top(TopArguments),
    /// Write figures of running programs for Prometheus
    Metrics(MetricsArguments),
    /// Serve Prometheus, pprof and its kin, and browsers
    Serve(ServeArguments),
    /// Let running programs give free memory back now, also while they sleep
    Trim(TrimArguments),
    /// Measure a program on hakmem, the system's malloc and other allocators
    Compare(CompareArguments),
    /// Measure the built-in workloads and the listed real programs
    Bench(BenchArguments),
    /// Record where a program's memory comes from
    Record(RecordArguments),
    /// Show a recording, or a result file that --json wrote, in any format
    Report(Box<ReportArguments>),
    /// Give the functions and lines of a crash report names
    Explain(ExplainArguments),
    /// Write shell completions or man pages
    #[command(hide = true)]
    Generate(GenerateArguments),
}

/// `hakmem run`
#[derive(Args, Debug)]
#[command(override_usage = "hakmem run [OPTIONS] -- PROGRAM [ARGUMENT]...")]
#[command(after_help = "\
The program keeps its exit code, signals, standard streams and LD_PRELOAD: it takes the place of \
the hakmem command, which with --stats stays as its parent, passes signals on to it and ends as \
it ends. Exit status: that of the program; 127 when it was not found, 126 when it could not be \
executed, 125 when hakmem itself failed, a wrong command line included.

Examples:
  hakmem run -- python3 script.py
  hakmem run --preset lean --stats -- redis-server --port 7000
  hakmem run --option purge_delay_ms=50 -- make -j8")]
pub struct RunArguments {
    /// The library's settings.
    #[command(flatten)]
    pub library: LibraryOptions,
    /// Print a summary of hakmem's statistics, of all processes of the program, when it ends, on
    /// standard error
    #[arg(long)]
    pub stats: bool,
    /// Time the slow paths and the locks of hakmem, by a library that is made for that: each
    /// process prints its statistics with these when it ends, on standard error
    #[arg(long, conflicts_with = "stats")]
    pub cycles: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    #[arg(value_hint = ValueHint::CommandWithArguments, add = candidates::programs())]
    pub command: Vec<OsString>,
}

/// `hakmem doctor`
#[derive(Args, Debug)]
#[command(override_usage = "hakmem doctor [OPTIONS] -- PROGRAM [ARGUMENT]...")]
#[command(after_help = "\
The program's file is looked at; then the program runs once, watched. One that does not end by \
itself, such as a server, is stopped by Ctrl-C or at the time limit: what was seen until then is \
told, and a server that ends in order when it is asked to (SIGTERM) has its calls counted as \
well.

Exit status: 0 when hakmem serves the program (with --no-run: when nothing speaks against it), 1 \
when not, or not all of it, 2 when the doctor could not do its work, 3 when it cannot be told.

Examples:
  hakmem doctor -- git gc
  hakmem doctor --time-limit 5s -- redis-server --port 7000
  hakmem doctor --no-run -- /usr/sbin/nginx")]
pub struct DoctorArguments {
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
    /// Only look at the program's file
    #[arg(long)]
    pub no_run: bool,
    /// Stop the program after this time, and tell what was seen: a number with ms, s, m or h;
    /// seconds without
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
    pub time_limit: Duration,
    /// What the program reads.
    #[command(flatten)]
    pub input: InputOptions,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    #[arg(value_hint = ValueHint::CommandWithArguments, add = candidates::programs())]
    pub command: Vec<OsString>,
}

/// `hakmem inspect`
#[derive(Args, Debug)]
#[command(after_help = "\
The program is neither stopped nor asked: its memory is read from outside, which takes the right \
to trace it (its user, and kernel.yama.ptrace_scope 0, or CAP_SYS_PTRACE).

Exit status: 0; with --leaks 1 if something is lost; 2 when it cannot be looked at.

Examples:
  hakmem inspect 1234
  hakmem inspect 1234 --leaks
  hakmem inspect 1234 --pinned
  hakmem inspect redis-server --html redis.html
  hakmem inspect core.1234 --json
  hakmem inspect 1234 --profile live.hakprof && hakmem report live.hakprof")]
pub struct InspectArguments {
    /// Number or name of a process, or a core file
    #[arg(value_name = "PID|NAME|CORE", value_hint = ValueHint::FilePath)]
    #[arg(add = candidates::processes_and_files())]
    pub target: String,
    /// Print everything as JSON
    #[arg(long)]
    pub json: bool,
    /// Write a page with pictures to a file (`-`: standard output)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Write which code holds the memory, as far as samples tell, for hakmem report (`-`: standard
    /// output)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub profile: Option<PathBuf>,
    /// Show which live blocks keep free memory from going back, by size and by call site, and by
    /// how much the resident memory falls if they are freed
    #[arg(long, conflicts_with_all = ["leaks", "html", "profile"])]
    pub pinned: bool,
    /// Show only call sites whose blocks live longer than this, by samples: a number with ms, s, m
    /// or h; seconds without
    #[arg(long, value_name = "TIME", value_parser = duration)]
    #[arg(conflicts_with_all = ["leaks", "pinned"])]
    pub older_than: Option<Duration>,
    /// Search all memory for pointers, show the blocks to which none leads, and exit with 1 if
    /// there are any
    #[arg(long, conflicts_with_all = ["html", "profile"])]
    pub leaks: bool,
    /// How leaks are shown.
    #[command(flatten)]
    pub leak_options: LeakOptions,
    /// Draw so many superslabs in the terminal
    #[arg(long, value_name = "N", value_parser = number, default_value = "16")]
    pub map: usize,
}

/// `hakmem top`
#[derive(Args, Debug)]
#[command(after_help = "\
Keys: q ends it, s changes the order of the parts, l shows the call sites that hold most \
(samples), c slow paths (hakmem run --cycles), m the superslabs, w writes a live profile, 0 \
counts growth from now, + and - look more often and less, space looks at once. In a pipe each \
look is a line.

Exit status: 0, or 2 when the program cannot be looked at.

Examples:
  hakmem top redis-server
  hakmem top 1234 --once
  hakmem top 1234 --json --interval 10s | jq .rss_bytes")]
pub struct TopArguments {
    /// Number or name of a process
    #[arg(value_name = "PID|NAME", add = candidates::processes())]
    pub target: String,
    /// Print two looks' differences once, and end
    #[arg(long)]
    pub once: bool,
    /// Print each look as a line of JSON
    #[arg(long)]
    pub json: bool,
    /// Time between two looks: a number with ms, s, m or h; seconds without
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub interval: Duration,
}

/// `hakmem metrics`
#[derive(Args, Debug)]
#[command(after_help = "\
Those are the processes that hakmem serves and whose memory this user may read. A dashboard for \
Grafana is installed as share/hakmem/grafana/hakmem.json.

Exit status: 0, or 2 when the process cannot be looked at, the file not be written or the address \
not be used.

Examples:
  hakmem metrics
  hakmem metrics --listen 127.0.0.1:9427
  hakmem metrics --textfile /var/lib/node_exporter/hakmem.prom --interval 15s
  hakmem metrics redis-server")]
pub struct MetricsArguments {
    /// Number or name of a process [default: all that hakmem serves]
    #[arg(value_name = "PID|NAME", add = candidates::processes())]
    pub target: Option<String>,
    /// Answer at this address, HOST:PORT or :PORT, as hakmem serve does, until it is stopped
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["textfile", "once", "interval"])]
    pub listen: Option<String>,
    /// Print the figures once; the default
    #[arg(long, conflicts_with_all = ["textfile", "interval"])]
    pub once: bool,
    /// Write them to a file, for the textfile collector of node_exporter
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub textfile: Option<PathBuf>,
    /// Write the file again and again, at this interval
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "textfile")]
    pub interval: Option<Duration>,
}

/// `hakmem serve`
#[derive(Args, Debug)]
#[command(after_help = "\
Under /metrics there is what `hakmem metrics` prints, under /debug/pprof/heap and \
/debug/pprof/allocs a profile for `go tool pprof` and continuous profilers, if the program takes \
samples (HAKMEM_SAMPLE_KIB=512), and under / a page to look at. Where several processes are \
served, ?pid=1234 says which one. Whoever reaches the address may read all that: names of programs \
and functions, and what they hold.

A name leads to the next process of that name when the first has ended.

Exit status: 2 when the process cannot be looked at, or the address not be used.

Examples:
  hakmem serve redis-server
  hakmem serve redis-server --peaks /var/lib/hakmem
  go tool pprof -http=: http://127.0.0.1:6060/debug/pprof/heap
  hakmem serve all --listen 127.0.0.1:9427")]
pub struct ServeArguments {
    /// Number or name of a process, or all that hakmem serves
    #[arg(value_name = "PID|NAME|all", add = candidates::processes())]
    pub target: String,
    /// Answer at this address, HOST:PORT or :PORT
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6060")]
    pub listen: String,
    /// Keep profiles of the moments of most memory, and of those near a control group's limit
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub peaks: Option<PathBuf>,
}

/// `hakmem trim`
#[derive(Args, Debug)]
#[command(after_help = "\
What malloc_trim(0) does in a program is asked for from outside, which takes the right to trace it \
(its user, and kernel.yama.ptrace_scope 0, or CAP_SYS_PTRACE). A thread that is made for that in \
the program does the work. If no thread calls malloc, one that sleeps in a system call is stopped \
for about a millisecond, and sleeps on; only a timeout of epoll_wait or sigtimedwait begins anew. \
A program in which less than 1 MiB lies free is left alone.

Exit status: 0; 1 when one of all was not trimmed; 2 when the process could not be.

Examples:
  hakmem trim 1234
  hakmem trim redis-server --keep 64
  hakmem trim all --json")]
pub struct TrimArguments {
    /// Number or name of a process, or all that hakmem serves
    #[arg(value_name = "PID|NAME|all", add = candidates::processes())]
    pub target: String,
    /// Leave so many MiB of free memory with each process, or as 64M, 1G
    #[arg(long, value_name = "MIB", value_parser = mib, default_value = "0")]
    pub keep: usize,
    /// Print what has come of it as JSON
    #[arg(long)]
    pub json: bool,
    /// Trim also where a filter of system calls may end the process for what this needs
    #[arg(long)]
    pub force: bool,
}

/// What a program reads.
#[derive(Args, Clone, Debug, Default)]
pub struct InputOptions {
    /// File that the program reads on standard input, from its beginning in every run [default:
    /// /dev/null]
    #[arg(long = "input", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
}

/// How an experiment is run: common to `compare` and `bench`.
#[derive(Args, Clone, Debug)]
pub struct ExperimentOptions {
    /// Compare with these only, separated by commas: `system`, names of peers, `peers` for all
    /// that are found but hardened ones, `hardened` for these, or paths of libraries; `NAME=PATH`
    /// names one, and `NAME=REVISION` builds that of a commit or tag of this source tree
    #[arg(long, value_name = "LIST", value_delimiter = ',', add = candidates::allocators())]
    pub with: Vec<String>,
    /// Measured runs per allocator; fewer than 9 are too few to tell a difference
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    #[arg(conflicts_with = "time", allow_negative_numbers = true)]
    pub runs: Option<u32>,
    /// Measure for about this long per program instead: a number with ms, s, m or h; seconds
    /// without
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Unmeasured runs per allocator besides the watched one
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub warm_up: u32,
    /// Seed of the order of the runs, of the size of their environments, and of the rows that
    /// `bench` draws [default: the date there, such as 20261125, otherwise 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Count system calls by name, in the watched run
    #[arg(long)]
    pub system_calls: bool,
    /// The library's settings, for hakmem alone.
    #[command(flatten)]
    pub library: LibraryOptions,
}

/// Where the results go.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    /// Write everything as JSON, to standard output or to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "-", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Write every figure as CSV, likewise
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "-", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,
    /// Write the table as Markdown, likewise
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "-", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,
    /// Write a page with plots to a file (`-`: standard output)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
}

/// `hakmem compare`
#[derive(Args, Debug)]
#[command(override_usage = "hakmem compare [OPTIONS] -- PROGRAM [ARGUMENT]...")]
#[command(after_help = "\
The runs of the allocators take turns in random order. One run per allocator is watched first, to \
prove that the allocator serves the program; an allocator that does not is an error, not a \
figure. hakmem takes part twice: the row A/A shows how far apart equal things come out.

Exit status: 0 when every allocator was measured, 1 when one was not, 2 when nothing could be \
done, 130 after Ctrl-C (what was finished is shown).

Examples:
  hakmem compare -- sort -S 64M big.txt
  hakmem compare --with system,jemalloc,./libmine.so --runs 30 -- ./server --selftest
  hakmem compare --input words.txt -- sort
  hakmem compare --ignore-exit-status=1 -- grep -r nothing /usr/include
  hakmem compare --prepare 'rm -f out.o' --check 'cmp - expected' -- ./tool input
  hakmem compare --json=result.json --html=result.html -- ./tool input")]
pub struct CompareArguments {
    /// How to measure.
    #[command(flatten)]
    pub experiment: ExperimentOptions,
    /// What the program reads.
    #[command(flatten)]
    pub input: InputOptions,
    /// Shell command to run before each run, unmeasured
    #[arg(long, value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    pub prepare: Option<String>,
    /// Shell command that gets the program's output as input and fails when it is wrong
    #[arg(long, value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    pub check: Option<String>,
    /// Measure the program although it exits with another status than 0, or with these alone,
    /// separated by commas; the results say so
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "any", value_parser = exit_codes)]
    pub ignore_exit_status: Option<ExitCodes>,
    /// Stop a run, as an error, after this time, likewise
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
    pub time_limit: Duration,
    /// Name of the row in the results [default: the name of the program]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub name: Option<String>,
    /// Where the results go.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    #[arg(value_hint = ValueHint::CommandWithArguments, add = candidates::programs())]
    pub command: Vec<OsString>,
}

/// The kinds of rows of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Synthetic programs that do nothing but allocate
    Workloads,
    /// Real programs
    Programs,
}

/// `hakmem bench`
#[derive(Args, Debug)]
#[command(after_help = "\
A program that is not installed is skipped, and the results say so. Exit status: as for compare.

Examples:
  hakmem bench --list
  hakmem bench --quick
  hakmem bench 'random-*' larson --runs 30
  hakmem bench --group scale --with peers
  hakmem bench --kind programs --install --json=result.json")]
pub struct BenchArguments {
    /// Names of rows, or patterns such as 'random-*' [default: all]
    #[arg(value_name = "NAME", add = candidates::rows())]
    pub names: Vec<String>,
    /// Some rows, with less work and fewer runs, in a short table: a first look
    #[arg(long)]
    pub quick: bool,
    /// Only rows of this kind
    #[arg(long, value_enum)]
    pub kind: Option<Kind>,
    /// Only rows of this group; --list names the groups
    #[arg(long, value_name = "GROUP", add = candidates::groups())]
    pub group: Option<String>,
    /// List the rows and whether they can run here, and measure nothing
    #[arg(long, conflicts_with_all = ["json", "csv", "markdown", "html"])]
    pub list: bool,
    /// Add the programs of this file to the list; it looks like share/hakmem/programs.toml
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub programs: Option<PathBuf>,
    /// Install the programs that are missing first, as the list says
    #[arg(long)]
    pub install: bool,
    /// Have the workloads time each call too; slower, so not for comparing times
    #[arg(long)]
    pub latency: bool,
    /// How to measure.
    #[command(flatten)]
    pub experiment: ExperimentOptions,
    /// Where the results go.
    #[command(flatten)]
    pub output: OutputOptions,
}

/// `hakmem explain`
#[derive(Args, Debug)]
#[command(after_help = "\
Frames of the report become functions with source files and lines, as far as the files are still \
those that ran; those inside of hakmem are left out. Everything else is passed on as it comes, so \
that the output of a server may go through it.

Exit status: 0, or 2 when a file has no frames or cannot be read.

Examples:
  HAKMEM_CRASH_FILE=crash.%p hakmem run -- ./server; hakmem explain crash.4711
  HAKMEM_CRASH=1 hakmem run -- ./server 2>&1 | hakmem explain")]
pub struct ExplainArguments {
    /// What the library wrote when the program died; standard input if there is no file, or for -
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print the reports as JSON, and nothing else
    #[arg(long)]
    pub json: bool,
}

/// `hakmem record`
#[derive(Args, Debug)]
#[command(override_usage = "hakmem record [OPTIONS] -- PROGRAM [ARGUMENT]...
       hakmem record [OPTIONS] --attach PID|NAME")]
#[command(after_help = "\
Each process of the program writes a file PROGRAM.PID.hakprof, which stays even if the process is \
killed. The program prints what it always prints and keeps its exit code, signals and standard \
streams; at its end the files are named on standard error. Exit status: as for hakmem run; with \
--limit 1 if the program succeeded, and needed more.

With --attach a process that hakmem serves already is recorded from now on, until the time is \
over, Ctrl-C, or its end. It is not stopped, and goes on. Exit status: 0, or 125 when it could not \
be recorded.

Examples:
  hakmem record -- ./server --port 7000
  hakmem record --sample-kib 16 --output /tmp/recordings -- python3 script.py
  hakmem record --limit 100M -- pytest
  hakmem record --attach redis-server --for 30s
  hakmem report server.4711.hakprof --html server.html")]
pub struct RecordArguments {
    /// The library's settings.
    #[command(flatten)]
    pub library: LibraryOptions,
    /// One sample in so many KiB that are allocated, on average, or as 64K, 1M
    #[arg(
        long,
        value_name = "N",
        default_value = "64",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = sample_kib)]
    pub sample_kib: u32,
    /// Follow every allocation: exact counts and sums, for 0.6 us each
    #[arg(long, conflicts_with = "sample_kib")]
    pub every: bool,
    /// Directory that the files are written to; it is made if needed [default: the current one]
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Exit with 1 if a process of the program had more than so many MiB live at its peak, or as
    /// 100M, 2G
    #[arg(long, value_name = "MIB", value_parser = mib, conflicts_with = "attach")]
    pub limit: Option<usize>,
    /// Record a process that runs already, by its number or name
    #[arg(long, value_name = "PID|NAME", conflicts_with = "command")]
    pub attach: Option<String>,
    /// End that recording after a time: a number with ms, s, m or h; seconds without
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    #[arg(requires = "attach", conflicts_with = "command")]
    pub time: Option<Duration>,
    /// Attach also where a filter of system calls may end the process for what a recording needs
    #[arg(long, requires = "attach")]
    pub force: bool,
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        value_name = "PROGRAM",
        required_unless_present = "attach"
    )]
    #[arg(value_hint = ValueHint::CommandWithArguments, add = candidates::programs())]
    pub command: Vec<OsString>,
}

/// What a flame graph or collapsed stacks show of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Show {
    /// What lived when most did
    #[default]
    Peak,
    /// What lived at the end
    End,
    /// All that was allocated
    Allocated,
    /// What lived under a millisecond
    Short,
}

/// Formats of recordings alone.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output of recordings")]
pub struct RecordingOptions {
    /// Write a gzipped profile for `go tool pprof` and continuous profilers to a file (`-`:
    /// standard output)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub pprof: Option<PathBuf>,
    /// Write each sample as CSV, to standard output or to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "-", value_hint = ValueHint::FilePath)]
    pub samples: Option<PathBuf>,
    /// Write collapsed stacks, to standard output or to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "-", value_hint = ValueHint::FilePath)]
    pub collapsed: Option<PathBuf>,
    /// Write a flame graph as SVG to a file (`-`: standard output)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub flamegraph: Option<PathBuf>,
    /// What the collapsed stacks, the flame graph and the callers are of
    #[arg(long, value_enum, value_name = "WHAT", default_value = "peak")]
    pub show: Show,
    /// Functions that are shown of a call stack
    #[arg(long, value_name = "N", value_parser = number, default_value = "10")]
    pub frames: usize,
    /// Show who calls the functions that match, in place of the report
    #[arg(long, value_name = "REGEX", value_parser = Regex::new)]
    #[arg(conflicts_with_all = [
        "leaks", "json", "csv", "markdown", "html", "pprof", "samples", "collapsed",
    ])]
    pub callers: Option<Regex>,
    /// Show what was never freed, of each recording by itself, and exit with 1 if there is any
    #[arg(long, conflicts_with_all = [
        "csv", "markdown", "html", "pprof", "samples", "collapsed", "flamegraph",
    ])]
    pub leaks: bool,
    /// How leaks are shown.
    #[command(flatten)]
    pub leak_options: LeakOptions,
}

/// How leaks are shown.
#[derive(Args, Clone, Debug, Default)]
pub struct LeakOptions {
    /// File with a pattern a line, such as `init_*`: call sites with a function, source file or
    /// module that matches are no leaks
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "leaks")]
    pub suppressions: Option<PathBuf>,
    /// Write the leaks as SARIF, which code review and editors show, to standard output or to a
    /// file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, requires = "leaks")]
    #[arg(default_missing_value = "-", value_hint = ValueHint::FilePath)]
    pub sarif: Option<PathBuf>,
}

/// What of recordings is shown.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What of recordings is shown")]
pub struct Selection {
    /// Add up all recordings: the processes of a program, or several runs
    #[arg(long)]
    pub merge: bool,
    /// Begin at this time after the start: a number with ms, s, m or h; seconds without
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub from: Option<Duration>,
    /// End at this time after the start, likewise
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub to: Option<Duration>,
    /// Only call sites with a function, source file or module that matches
    #[arg(long, value_name = "REGEX", value_parser = Regex::new)]
    pub focus: Option<Regex>,
    /// No call sites with a function, source file or module that matches
    #[arg(long, value_name = "REGEX", value_parser = Regex::new)]
    pub ignore: Option<Regex>,
    /// Only blocks for which this holds: size, lifetime, thread or site, one of < <= > >= = !=, and
    /// a value, such as `lifetime>10s`; given several times, all have to hold
    #[arg(long = "where", value_name = "CONDITION", value_parser = str::parse::<Condition>)]
    pub conditions: Vec<Condition>,
    /// Functions that match hold no memory: their callers do, as with malloc
    #[arg(long, value_name = "REGEX", value_parser = Regex::new)]
    pub skip: Option<Regex>,
    /// File with more such functions, a pattern a line, such as `my_alloc*`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub wrappers: Option<PathBuf>,
    /// Directory below which the program's files are, to name functions: that of a container
    #[arg(long, value_name = "DIRECTORY", default_value = "/", value_hint = ValueHint::DirPath)]
    pub root: PathBuf,
}

/// `hakmem report`
#[derive(Args, Debug)]
#[command(after_help = "\
Exit status: 0; with --leaks 1 if something was never freed; 2 when nothing could be shown, or a \
recording is not whole and shows no leaks.

Examples:
  hakmem report result.json --html=result.html --markdown=result.md
  hakmem report server.4711.hakprof --html server.html
  hakmem report before.hakprof after.hakprof
  hakmem report out                all processes that were recorded to this directory, as one
  hakmem report server.4711.hakprof --from 10s --to 20s --focus parse
  hakmem report server.4711.hakprof --where 'lifetime>10s' --where 'size<256' --samples
  hakmem report out --leaks --suppressions kept.txt
  hakmem report server.4711.hakprof --pprof heap.pb.gz && go tool pprof -http=: heap.pb.gz")]
pub struct ReportArguments {
    /// The recording or result file, or a directory with recordings of the processes of a program,
    /// which are added up
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// A second recording: what changed from the first one to this; with --merge and --leaks, any
    /// number
    #[arg(value_name = "LATER", value_hint = ValueHint::FilePath)]
    pub later: Vec<PathBuf>,
    /// Where the results go.
    #[command(flatten)]
    pub output: OutputOptions,
    /// Where those of recordings go.
    #[command(flatten)]
    pub recording: RecordingOptions,
    /// What of recordings is shown.
    #[command(flatten)]
    pub selection: Selection,
}

/// `hakmem generate`
#[derive(Args, Debug)]
pub struct GenerateArguments {
    /// What to write.
    #[command(subcommand)]
    pub what: Generate,
}

/// What can be generated.
#[derive(Debug, Subcommand)]
pub enum Generate {
    /// Print the completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into man1 and man7 of a directory
    Man {
        /// The directory; it is made if needed
        #[arg(value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    /// What is broken here is broken again by a terminal that is narrower.
    #[test]
    fn sentences_of_the_help_are_broken_by_the_terminal() {
        for command in Cli::command().get_subcommands() {
            let text = command.get_after_help().map(ToString::to_string);
            let text = text.unwrap_or_default();
            let sentences = text.split("Examples:").next().unwrap_or_default();
            for paragraph in sentences.trim_end().split("\n\n") {
                assert!(
                    !paragraph.contains('\n'),
                    "{}: {paragraph}",
                    command.get_name()
                );
            }
        }
    }

    fn parse(arguments: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from([&["hakmem"], arguments].concat())
    }

    #[test]
    fn a_program_keeps_its_own_options() {
        for line in [
            &["run", "--stats", "prog", "--stats", "-x"][..],
            &["run", "--stats", "--", "prog", "--stats", "-x"],
        ] {
            let Command::Run(run) = parse(line).unwrap().command else {
                panic!("not run")
            };
            assert!(run.stats);
            assert_eq!(run.command, ["prog", "--stats", "-x"]);
        }
    }

    #[test]
    fn an_output_option_takes_no_word_that_follows() {
        let Command::Compare(compare) = parse(&["compare", "--json", "prog"]).unwrap().command
        else {
            panic!("not compare")
        };
        assert_eq!(compare.output.json, Some("-".into()));
        assert_eq!(compare.command, ["prog"]);
    }

    #[test]
    fn nonsense_is_rejected() {
        for line in [
            &["run"][..],
            &["run", "--preset", "fast", "--", "true"],
            &["run", "--option", "stats", "--", "true"],
            &["run", "--unknown", "--", "true"],
            &["compare", "--runs", "0", "--", "true"],
            &["compare", "--runs", "5", "--time", "1s", "--", "true"],
            &["compare", "--time", "soon", "--", "true"],
            &["bench", "--kind", "toys"],
            &["bench", "--list", "--json"],
            &["report"],
        ] {
            assert!(parse(line).is_err(), "{line:?}");
        }
    }
}
