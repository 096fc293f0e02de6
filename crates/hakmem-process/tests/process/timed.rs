//! Timed runs of real programs.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{await_that, launch, processes_with, script, unique_sleep, with};
use crate::fixtures::{fixture, fixture_with, library, tools};
use hakmem_process::{hardware_counters_missing, run_timed, Exit, LaunchError, CAPTURE_LIMIT};
use nix::unistd::{sysconf, SysconfVar};

#[test]
fn codes_and_signals_pass() {
    for code in [0, 1, 3, 255] {
        let run = run_timed(&tools(), &script(&format!("exit {code}"))).unwrap();
        assert_eq!(run.exit, Exit::Code(code));
    }
    for signal in [9, 11, 15, 40] {
        let run = run_timed(&tools(), &script(&format!("kill -{signal} $$"))).unwrap();
        assert_eq!(run.exit, Exit::Signal(signal));
    }
}

#[test]
fn output_is_captured_and_input_is_empty() {
    // Far more than a pipe holds, on both at once.
    let text = "cat; head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2";
    let run = run_timed(&tools(), &script(text)).unwrap();
    assert_eq!((run.stdout.len(), run.stderr.len()), (3_000_000, 2_000_000));
}

#[test]
fn output_without_end_fills_neither_disk_nor_memory() {
    // A gigabyte on each; then the program waits until no more of it is there than shall be.
    let most = CAPTURE_LIMIT + (16 << 20);
    let launch = script(&format!(
        "head -c 1000000000 /dev/zero; head -c 1000000000 /dev/zero >&2; \
         until [ $(($(stat -L -c %b /proc/self/fd/2) * 512)) -le {most} ]; do sleep 0.1; done"
    ));
    let run = run_timed(&tools(), &launch).unwrap();
    assert_eq!(run.exit, Exit::Code(0));
    assert_eq!(run.stdout.len() as u64, CAPTURE_LIMIT);
    assert_eq!(run.stderr.len() as u64, CAPTURE_LIMIT);
}

#[test]
fn no_file_is_made_for_a_run() {
    let directory = tempfile::tempdir().unwrap();
    // What the run makes for itself would be there, whatever the name of the place.
    let place = directory.path().join("%p");
    std::fs::create_dir(&place).unwrap();
    let mut launch = with(
        script("ls -A \"$TMPDIR\"; readlink /proc/self/fd/1"),
        library(),
    );
    launch
        .environment
        .insert("TMPDIR".to_string(), place.display().to_string());
    let run = run_timed(&tools(), &launch).unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    assert_eq!(text, "/memfd:stdout (deleted)\n");
}

#[test]
fn an_input_that_can_be_read_only_once_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut launch = script("cat");
    launch.input = Some(fifo);
    let error = run_timed(&tools(), &launch).unwrap_err().to_string();
    assert!(
        error.ends_with("it can be read only once; use a file"),
        "{error}"
    );
}

#[test]
fn environment_and_directory_are_set() {
    let mut launch = script("echo \"$A\"; pwd");
    launch
        .environment
        .insert("A".to_string(), "x = y z".to_string());
    launch.directory = Some("/usr".into());
    let run = run_timed(&tools(), &launch).unwrap();
    assert_eq!(String::from_utf8(run.stdout).unwrap(), "x = y z\n/usr\n");
}

#[test]
fn signals_are_as_usual_in_the_program() {
    // Nothing blocked, and SIGPIPE (bit 13) not ignored.
    let run = run_timed(&tools(), &launch(["grep", "^Sig[BI]", "/proc/self/status"])).unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    let masks: Vec<u64> = text
        .lines()
        .map(|line| u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap())
        .collect();
    assert_eq!(masks[0], 0, "blocked: {text}");
    assert_eq!(masks[1] & (1 << 12), 0, "ignored: {text}");
}

#[test]
fn what_cannot_start_says_why() {
    let reason = |launch| match run_timed(&tools(), &launch).unwrap_err() {
        LaunchError::CannotStart { reason, .. } => reason,
        other => panic!("{other}"),
    };
    assert_eq!(
        reason(launch(["no-such-program"])),
        "No such file or directory"
    );
    assert_eq!(reason(launch(["/etc/passwd"])), "Permission denied");
    let mut elsewhere = launch(["true"]);
    elsewhere.directory = Some("/no/such/directory".into());
    assert_eq!(reason(elsewhere), "/no/such/directory is not a directory");
    let nothing = run_timed(&tools(), &launch::<&str>([])).unwrap_err();
    assert_eq!(nothing.to_string(), "there is no program to run");
}

#[test]
fn a_missing_helper_is_named() {
    let mut tools = tools();
    tools.measure = "/no/measure".into();
    let error = run_timed(&tools, &launch(["true"]))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot start /no/measure: No such file"),
        "{error}"
    );
}

#[test]
fn the_time_limit_ends_the_whole_tree() {
    let time = unique_sleep();
    // A child, a grandchild that nobody waits for, a daemon, and one that does not heed SIGTERM.
    let mut launch = script(&format!(
        "sleep {time} & sh -c 'sleep {time} & sleep {time}' & setsid sh -c 'sleep {time} &' \n\
         sh -c 'trap \"\" TERM; sleep {time}; sleep {time}' & wait"
    ));
    launch.time_limit = Duration::from_millis(500);
    let start = Instant::now();
    let error = run_timed(&tools(), &launch).unwrap_err();
    assert_eq!(
        error.to_string(),
        "sh had not ended after 500ms and was stopped"
    );
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!(processes_with(&time), 0);
}

#[test]
fn daemons_do_not_survive() {
    let time = unique_sleep();
    let text = format!("(setsid sleep {time} &); (trap '' TERM; sleep {time}) & sleep 0.2; exit 5");
    let run = run_timed(&tools(), &script(&text)).unwrap();
    assert_eq!(run.exit, Exit::Code(5));
    assert!(run.cost.wall_s < 60.0);
    assert_eq!(processes_with(&time), 0);
}

#[test]
fn daemons_may_end_in_peace() {
    let directory = tempfile::tempdir().unwrap();
    let text = "(setsid sh -c 'trap \"echo bye; exit\" TERM; echo up >&2; : >up; while :; do \
                sleep 0.01; done' &) ; until [ -e up ]; do sleep 0.01; done";
    let mut launch = script(text);
    launch.directory = Some(directory.path().into());
    let run = run_timed(&tools(), &launch).unwrap();
    assert_eq!(
        (run.stdout.as_slice(), run.stderr.as_slice()),
        (&b"bye\n"[..], &b"up\n"[..])
    );
}

#[test]
fn the_peak_is_that_of_the_program_alone() {
    let program = fixture("peak");
    let large = std::hint::black_box(vec![1u8; 300 << 20]);
    let run = run_timed(&tools(), &launch([&program])).unwrap();
    drop(large);
    let own: u64 = String::from_utf8(run.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(own < 10_000, "a small program has {own} KiB");
    assert!(
        run.cost.peak_rss_kib.abs_diff(own) <= counting_error_kib(),
        "{} KiB reported, {own} KiB by its own account",
        run.cost.peak_rss_kib
    );
}

/// How far apart two readings of the kernel may lie: it counts pages of memory and of files apart,
/// and each CPU keeps up to a batch of either to itself.
fn counting_error_kib() -> u64 {
    let cpus = sysconf(SysconfVar::_NPROCESSORS_ONLN).unwrap().unwrap() as u64;
    let batch = 32.max(2 * cpus);
    2 * 2 * cpus * batch * 4
}

#[test]
fn the_cost_covers_children_that_were_waited_for() {
    let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let run = run_timed(&tools(), &script(&format!("sh -c '{work}'; true"))).unwrap();
    let cost = run.cost;
    assert!(cost.user_s > 0.01, "{cost:?}");
    assert!(
        cost.wall_s >= 0.9 * cost.user_s && cost.wall_s < 30.0,
        "{cost:?}"
    );
    assert!(
        cost.minor_faults > 50 && cost.voluntary_switches > 0,
        "{cost:?}"
    );
    let largest = fixture("grow");
    let run = run_timed(&tools(), &script(&format!("{}; true", largest.display()))).unwrap();
    assert!(run.cost.peak_rss_kib > 64 << 10, "{:?}", run.cost);
}

#[test]
fn hardware_counters_are_there_or_missing_for_a_reason() {
    let reason = hardware_counters_missing(&tools()).unwrap();
    let cost = run_timed(&tools(), &launch(["true"])).unwrap().cost;
    assert_eq!(
        cost.instructions.is_none(),
        reason.is_some(),
        "{reason:?} {cost:?}"
    );
    assert!(
        cost.instructions.is_none_or(|count| count > 10_000),
        "{cost:?}"
    );
    assert!(reason.is_none_or(|reason| !reason.is_empty()));
}

#[test]
fn the_library_is_preloaded_before_others() {
    let forward = fixture_with("forward", &["-shared", "-fPIC"]);
    let mut launch = with(
        script("echo $LD_PRELOAD; grep -m1 -o libhakmem /proc/self/maps"),
        library(),
    );
    launch
        .environment
        .insert("LD_PRELOAD".to_string(), forward.display().to_string());
    let run = run_timed(&tools(), &launch).unwrap();
    let expected = format!("{}:{}\nlibhakmem\n", library().display(), forward.display());
    assert_eq!(String::from_utf8(run.stdout).unwrap(), expected);
}

#[test]
fn a_library_that_cannot_be_preloaded_is_an_error() {
    let error = run_timed(&tools(), &with(launch(["true"]), "/no/such.so".into())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the dynamic linker did not preload /no/such.so: cannot open shared object file"
    );
}

/// Runs `measure` with a command that sleeps for half a second, and sends it signals meanwhile; the
/// answer is its report.
fn report_despite(ignored: &str, signals: &[&str], pause: Duration) -> serde_json::Value {
    let (mut line, other_end) = UnixStream::pair().unwrap();
    let time = unique_sleep().replace("3600.", "2.");
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(format!(
            "exec env --ignore-signal={ignored} \"$0\" 10000 /dev/null -- sleep {time}"
        ))
        .arg(tools().measure)
        .stdin(OwnedFd::from(other_end))
        .spawn()
        .unwrap();
    line.write_all(b"\n").unwrap();
    // When the shell has become measure, which has the argument as well.
    await_that("the command runs", || processes_with(&time) == 2);
    for (number, signal) in signals.iter().enumerate() {
        if number > 0 {
            std::thread::sleep(pause);
        }
        let pid = child.id().to_string();
        let sent = Command::new("kill").args([*signal, &pid]).status().unwrap();
        assert!(sent.success());
    }
    let mut text = String::new();
    line.read_to_string(&mut text).unwrap();
    child.wait().unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_signal_that_is_ignored_ends_no_run() {
    let report = report_despite("HUP", &["-HUP"], Duration::ZERO);
    assert_eq!(report["end"]["code"], 0, "{report}");
    let report = report_despite("INT", &["-HUP"], Duration::ZERO);
    assert_eq!(report["end"], "interrupted", "{report}");
}

#[test]
fn a_caller_that_ignores_its_children_gets_figures() {
    let report = report_despite("CHLD", &[], Duration::ZERO);
    assert_eq!(report["end"]["code"], 0, "{report}");
    assert!(report["wall_s"].as_f64().unwrap() < 8.0, "{report}");
}

#[test]
fn the_clock_goes_on_while_the_job_is_stopped() {
    let report = report_despite("HUP", &["-TSTP", "-CONT"], Duration::from_secs(5));
    let wall_s = report["wall_s"].as_f64().unwrap();
    assert!(wall_s < 4.8, "{report}");
}

#[test]
fn the_input_is_read_from_its_beginning_in_every_run() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("input");
    std::fs::write(&input, "hello").unwrap();
    let mut launch = launch(["cat"]);
    launch.input = Some(input.clone());
    for _ in 0..2 {
        assert_eq!(run_timed(&tools(), &launch).unwrap().stdout, b"hello");
    }
    std::fs::remove_file(&input).unwrap();
    let error = run_timed(&tools(), &launch).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the input"), "{error}");
    launch.input = None;
    assert_eq!(run_timed(&tools(), &launch).unwrap().stdout, b"");
}
