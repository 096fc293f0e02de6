//! Witnessed runs of real programs, honest ones and planted fakes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use crate::common::{launch, processes_with, script, unique_sleep, with};
use crate::fixtures::{fixture, fixture_with, library, tools};
use hakmem_process::{
    run_timed, run_witnessed, Exit, Launch, LaunchError, Probe, ProcessRecord, Watch, WitnessedRun,
};

const WATCH: Watch = Watch {
    rss_interval: Duration::from_millis(5),
    system_calls: false,
    stopped_counts: false,
};

fn witness(launch: &Launch) -> WitnessedRun {
    let run = run_witnessed(&tools(), launch, &WATCH).unwrap();
    assert!(
        run.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    run
}

fn under_hakmem(command: &[&str]) -> WitnessedRun {
    witness(&with(launch(command), library()))
}

fn base_name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

fn name(record: &ProcessRecord) -> &str {
    base_name(&record.executable)
}

fn real(path: &Option<PathBuf>) -> Option<PathBuf> {
    path.as_deref().map(|path| fs::canonicalize(path).unwrap())
}

fn probe(record: &ProcessRecord) -> &Probe {
    let probe = record.probe.as_ref();
    probe.unwrap_or_else(|| panic!("not asked: {record:?}"))
}

/// The record says that hakmem was there and served the calls.
fn assert_proven(record: &ProcessRecord) {
    assert!(record.dynamic && record.library_mapped, "{record:?}");
    let probe = probe(record);
    assert_eq!(real(&probe.malloc), Some(library()), "{record:?}");
    assert_eq!(real(&probe.free), Some(library()), "{record:?}");
    assert_eq!(probe.served_by_libc, Some(false), "{record:?}");
    assert_eq!(probe.watched_by_libc, 0, "{record:?}");
    // It counts what the inquiry knows that it did.
    let counted = |name| {
        let [before, after] =
            [&probe.statistics_before, &probe.statistics_after].map(|it| calls(it, name));
        after - before
    };
    assert_eq!(counted("malloc_calls"), probe.mallocs, "{record:?}");
    assert_eq!(counted("free_calls"), probe.frees, "{record:?}");
    assert!(probe.mallocs >= 54 && probe.frees >= 40, "{record:?}");
}

/// The sum of a counter over all tiers.
fn calls(statistics: &Option<serde_json::Value>, name: &str) -> u64 {
    let statistics = statistics.as_ref().expect("there are statistics");
    let tiers = statistics["tiers"].as_object().unwrap().values();
    tiers.map(|tier| tier[name].as_u64().unwrap()).sum()
}

/// All calls that hakmem counted but those of the inquiry.
fn calls_served(record: &ProcessRecord) -> u64 {
    let probe = probe(record);
    let end = &probe.statistics_at_end;
    calls(end, "malloc_calls") + calls(end, "free_calls") - probe.mallocs - probe.frees
}

#[test]
fn a_c_program_is_proven() {
    let program = fixture("allocate");
    let run = under_hakmem(&[program.to_str().unwrap()]);
    assert_eq!(run.exit, Exit::Code(0));
    let [record] = run.processes.as_slice() else {
        panic!("{:?}", run.processes)
    };
    assert_eq!((&record.executable, record.replaced), (&program, false));
    assert_proven(record);
    assert!(calls_served(record) >= 2000);
}

#[test]
fn the_c_library_serves_when_nothing_is_preloaded() {
    let run = witness(&launch([fixture("allocate")]));
    let [record] = run.processes.as_slice() else {
        panic!("{:?}", run.processes)
    };
    assert!(record.dynamic && !record.library_mapped, "{record:?}");
    let probe = probe(record);
    let object = real(&probe.malloc).unwrap();
    assert!(base_name(&object).starts_with("libc"), "{object:?}");
    assert_eq!(probe.served_by_libc, Some(true));
    assert_eq!(probe.statistics_at_end, None);
}

#[test]
fn every_process_of_a_pipeline_is_proven() {
    let program = fixture("allocate");
    let text = format!(
        "{0} | cat | {0} && sed --version >/dev/null",
        program.display()
    );
    let run = under_hakmem(&["sh", "-c", &text]);
    let shell = fs::canonicalize("/bin/sh").unwrap();
    let mut names: Vec<_> = run.processes.iter().map(name).collect();
    names.sort_unstable();
    let mut expected = ["allocate", "allocate", "cat", "sed", base_name(&shell)];
    expected.sort_unstable();
    assert_eq!(names, expected);
    run.processes.iter().for_each(assert_proven);
    assert!(run
        .processes
        .iter()
        .filter(|it| name(it) == "allocate")
        .all(|it| calls_served(it) >= 2000));
}

#[test]
fn the_compiler_and_its_helpers_are_proven() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let source = directory.path().join("hello.cpp");
    fs::write(
        &source,
        "#include <vector>\nint main() { return std::vector<int>(3).size() - 3; }\n",
    )
    .unwrap();
    let program = directory.path().join("hello");
    let mut launch = with(launch(["g++", "hello.cpp", "-o", "hello"]), library());
    launch.directory = Some(directory.path().to_path_buf());
    let run = witness(&launch);
    assert_eq!(run.exit, Exit::Code(0));
    assert!(program.exists());
    assert!(run.processes.len() >= 5, "{:?}", run.processes);
    run.processes.iter().for_each(assert_proven);
    let compiler = run
        .processes
        .iter()
        .find(|record| name(record) == "cc1plus")
        .unwrap();
    assert!(calls_served(compiler) > 10_000);
}

#[test]
fn a_stub_is_not_taken_for_the_function() {
    for flags in [&["-no-pie", "-fno-pie"][..], &["-pie", "-fPIE"][..]] {
        let run = under_hakmem(&[fixture_with("pointer", flags).to_str().unwrap()]);
        run.processes.iter().for_each(assert_proven);
    }
}

#[test]
fn a_program_with_threads_is_proven() {
    let run = under_hakmem(&[fixture("allocate").to_str().unwrap(), "8"]);
    let [record] = run.processes.as_slice() else {
        panic!("{:?}", run.processes)
    };
    assert_proven(record);
    assert!(calls_served(record) >= 9 * 2000);
}

#[test]
fn a_forked_process_has_its_parents_image() {
    let run = under_hakmem(&[fixture("fork_only").to_str().unwrap()]);
    assert_eq!(run.exit, Exit::Code(3));
    let [child, parent] = run.processes.as_slice() else {
        panic!("{:?}", run.processes)
    };
    assert_ne!(child.pid, parent.pid);
    assert_eq!(child.executable, parent.executable);
    assert_proven(child);
    assert_proven(parent);
    // It counts on from where its parent was.
    assert_eq!((calls_served(child), calls_served(parent)), (1, 0));
}

#[test]
fn an_end_by_underscore_exit_leaves_the_count() {
    // A shell ends so; and so does the child that it made to run a program that is not there, in
    // its own memory.
    for (text, code) in [("exit 0", 0), ("/no/such/program 2>/dev/null; exit 4", 4)] {
        let run = under_hakmem(&["sh", "-c", text]);
        assert_eq!(run.exit, Exit::Code(code), "{text}");
        let shell = run.processes.last().unwrap();
        assert_proven(shell);
        assert!(calls_served(shell) > 0, "{shell:?}");
    }
}

#[test]
fn a_watched_program_has_what_a_timed_one_has() {
    // Its variables, the files that are mapped, and its descriptors.
    let look = "env | sort; ls /proc/self/fd; sed -n 's/^[^/]*//p' /proc/self/maps | sort -u";
    let launch = with(script(look), library());
    let timed = run_timed(&tools(), &launch).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(text(&witness(&launch).stdout), text(&timed.stdout));
}

#[test]
fn a_busy_program_is_asked_without_harm() {
    let run = under_hakmem(&[fixture("busy").to_str().unwrap()]);
    assert_eq!(run.exit, Exit::Code(7));
    assert_eq!(run.processes.len(), 31);
    run.processes.iter().for_each(assert_proven);
    let probe = probe(run.processes.last().unwrap());
    assert!(probe.calls_watched > 16, "{probe:?}");
}

#[test]
fn fork_and_exec_in_a_thread_are_followed() {
    let run = under_hakmem(&[fixture("thread_exec").to_str().unwrap()]);
    assert_eq!(run.exit, Exit::Code(0));
    let [child, first, last] = run.processes.as_slice() else {
        panic!("{:?}", run.processes)
    };
    assert_eq!(
        [name(child), name(first), name(last)],
        ["true", "thread_exec", "true"]
    );
    assert_eq!(
        (first.pid, first.replaced, last.replaced),
        (last.pid, true, false)
    );
    run.processes.iter().for_each(assert_proven);
}

#[test]
fn the_last_thread_counts() {
    let run = under_hakmem(&[fixture("leader_leaves").to_str().unwrap()]);
    assert_eq!(run.exit, Exit::Code(4));
    let [record] = run.processes.as_slice() else {
        panic!("{:?}", run.processes)
    };
    assert_proven(record);
}

#[test]
fn a_library_that_forwards_is_seen() {
    let forward = fixture_with("forward", &["-shared", "-fPIC"]);
    let run = witness(&with(launch([fixture("allocate")]), forward.clone()));
    let [record] = run.processes.as_slice() else {
        panic!("{:?}", run.processes)
    };
    assert!(record.library_mapped);
    assert_eq!(real(&probe(record).malloc), Some(forward));
    assert_eq!(probe(record).served_by_libc, Some(true), "{record:?}");
}

#[test]
fn hakmem_that_passes_calls_on_is_seen() {
    let mut launch = with(launch([fixture("allocate")]), library());
    launch
        .environment
        .insert("HAKMEM_FALLBACK".to_string(), "libc".to_string());
    let run = witness(&launch);
    let [record] = run.processes.as_slice() else {
        panic!("{:?}", run.processes)
    };
    let probe = probe(record);
    assert_eq!(real(&probe.malloc), Some(library()));
    assert_eq!(probe.served_by_libc, Some(true), "{record:?}");
    assert!(probe.watched_by_libc > 0, "{record:?}");
}

#[test]
fn a_program_that_drops_the_preload_is_seen() {
    let (outer, inner) = (fixture("drop_preload"), fixture("allocate"));
    let run = under_hakmem(&[outer.to_str().unwrap(), inner.to_str().unwrap()]);
    let [first, last] = run.processes.as_slice() else {
        panic!("{:?}", run.processes)
    };
    assert_eq!((&first.executable, &last.executable), (&outer, &inner));
    assert_eq!(
        (first.pid, first.replaced, last.replaced),
        (last.pid, true, false)
    );
    assert_proven(first);
    assert!(last.dynamic && !last.library_mapped, "{last:?}");
    let object = real(&probe(last).malloc).unwrap();
    assert!(base_name(&object).starts_with("libc"), "{object:?}");
}

#[test]
fn a_static_program_is_seen() {
    for flags in [&["-static"][..], &["-static-pie"][..]] {
        let run = under_hakmem(&[fixture_with("static", flags).to_str().unwrap()]);
        let [record] = run.processes.as_slice() else {
            panic!("{:?}", run.processes)
        };
        assert!(!record.dynamic && !record.library_mapped, "{record:?}");
        assert_eq!(record.probe, None);
    }
}

#[test]
fn signals_and_suspension_work_as_without_tracer() {
    let run = under_hakmem(&[fixture("signals").to_str().unwrap()]);
    assert_eq!(run.exit, Exit::Code(3));
    let run = under_hakmem(&["sh", "-c", "kill -11 $$"]);
    assert_eq!(run.exit, Exit::Signal(11));
    run.processes.iter().for_each(assert_proven);
}

#[test]
fn records_do_not_depend_on_directory_or_user() {
    let program = fixture("allocate");
    let mut launch = with(launch([&program]), library());
    launch.directory = Some("/".into());
    witness(&launch).processes.iter().for_each(assert_proven);

    let setpriv = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    // From root's home others cannot load the library.
    let others_reach_it = library()
        .ancestors()
        .skip(1)
        .all(|directory| fs::metadata(directory).unwrap().mode() & 1 != 0);
    if is_root() && others_reach_it {
        let command: Vec<_> = setpriv.into_iter().chain(program.to_str()).collect();
        let run = under_hakmem(&command);
        assert_eq!(
            run.processes.iter().map(name).collect::<Vec<_>>(),
            ["setpriv", "allocate"]
        );
        run.processes.iter().for_each(assert_proven);
        assert!(calls_served(&run.processes[1]) >= 2000);
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn memory_is_sampled_over_time() {
    let run = under_hakmem(&[fixture("grow").to_str().unwrap()]);
    let samples = run.rss_over_time;
    assert!((10..=500).contains(&samples.len()), "{}", samples.len());
    let peak = samples.iter().map(|sample| sample.rss_kib).max().unwrap();
    assert!((64 << 10..80 << 10).contains(&peak), "{peak} KiB");
    assert!(samples.last().unwrap().time_ms >= 700);
}

#[test]
fn system_calls_are_counted_in_all_threads() {
    let watch = Watch {
        system_calls: true,
        stopped_counts: false,
        ..WATCH
    };
    let program = fixture("allocate");
    let launch = with(launch([program.to_str().unwrap(), "8"]), library());
    let run = run_witnessed(&tools(), &launch, &watch).unwrap();
    let calls = run.system_calls.unwrap();
    let count = |name: &str| calls.get(name).copied().unwrap_or(0);
    assert_eq!(count("clone3") + count("clone"), 8, "{calls:?}");
    assert_eq!(count("exit") + count("exit_group"), 9, "{calls:?}");
    assert!(count("mmap") > 8, "{calls:?}");
    assert!(
        calls.keys().all(|name| !name.starts_with("number")),
        "{calls:?}"
    );
    assert_eq!(under_hakmem(&["true"]).system_calls, None);
}

#[test]
fn the_time_limit_ends_the_whole_tree() {
    let time = unique_sleep();
    let mut launch = with(
        script(&format!(
            "(setsid sh -c 'trap \"\" TERM; sleep {time}' &)\n kill -STOP $$; sleep {time}"
        )),
        library(),
    );
    launch.time_limit = Duration::from_millis(400);
    let error = run_witnessed(&tools(), &launch, &WATCH).unwrap_err();
    let message = "sh had not ended after 400ms and was stopped";
    assert_eq!(error.to_string(), message);
    assert_eq!(processes_with(&time), 0);
}

#[test]
fn daemons_do_not_survive_and_are_recorded() {
    let time = unique_sleep();
    let run = under_hakmem(&[
        "sh",
        "-c",
        // As soon as that sleeps.
        &format!(
            "setsid sleep {time} & name= state=; until [ \"$name $state\" = '(sleep) S' ]; do \
             read -r _ name state _ </proc/$!/stat; done; sleep 0.2; exit 6"
        ),
    ]);
    assert_eq!(run.exit, Exit::Code(6));
    assert_eq!(processes_with(&time), 0);
    assert_eq!(
        run.processes
            .iter()
            .filter(|record| name(record) == "sleep")
            .count(),
        2
    );
    run.processes.iter().for_each(assert_proven);
}

#[test]
fn what_cannot_start_says_why() {
    match run_witnessed(&tools(), &launch(["no-such-program"]), &WATCH).unwrap_err() {
        LaunchError::CannotStart { reason, .. } => assert_eq!(reason, "No such file or directory"),
        other => panic!("{other}"),
    }
    let missing = with(launch(["true"]), "/no/such.so".into());
    let error = run_witnessed(&tools(), &missing, &WATCH).unwrap_err();
    assert!(matches!(error, LaunchError::NotPreloaded { .. }), "{error}");
}

#[test]
fn many_short_processes_leave_nothing_behind() {
    let run = under_hakmem(&["sh", "-c", "for i in $(seq 200); do /bin/true & done; wait"]);
    assert_eq!(
        run.processes
            .iter()
            .filter(|record| name(record) == "true")
            .count(),
        200
    );
    run.processes.iter().for_each(assert_proven);
    assert!(run.processes.iter().all(|record| !record.replaced));
    // Each came to its end as ever, made by vfork or not.
    let has_left_count = |it: &ProcessRecord| probe(it).statistics_at_end.is_some();
    assert!(run.processes.iter().all(has_left_count));
}
