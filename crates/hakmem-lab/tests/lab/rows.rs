//! Every row of the lists runs: a row that cannot is found here, and not by whoever measures.

use std::fs;
use std::path::{Path, PathBuf};

use hakmem_lab::catalogue::{drawn_rows, input_directory, read_programs, read_workloads, Places};
use hakmem_lab::executor::{describe_end, Executor, Programs};
use hakmem_lab::plan::{Output, Task};
use hakmem_process::Tools;

use crate::support;

/// The list of this name, of the source tree.
fn list(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../lab")
        .join(name)
}

/// What is wrong with a run of the task under hakmem, if anything.
fn run(programs: &mut Programs, task: &Task) -> Result<(), String> {
    let library = support::build().join("libhakmem.so");
    let mut arm = support::arm("hakmem");
    arm.library = Some(library.to_string_lossy().into_owned());
    programs.prepare(task).map_err(|error| error.to_string())?;
    let run = programs
        .timed(task, &arm)
        .map_err(|error| error.to_string())?;
    if !task.exit_codes.allow(run.exit) {
        return Err(describe_end(run.exit, &run.stderr));
    }
    let checked = match &task.output {
        Output::Check(command) => programs.check(task, command, &run.stdout),
        Output::Product(file) => programs.product_digest(task, file).map(drop),
        Output::Report | Output::Stdout | Output::Any => Ok(()),
    };
    checked.map_err(|error| error.to_string())
}

/// Runs the tasks that can be run here, and names those that fail.
fn assert_all_run(tasks: impl Iterator<Item = Task>) {
    let mut programs = Programs::new(Tools {
        measure: support::build().join("libexec/hakmem/measure"),
    });
    let failures: Vec<String> = tasks
        .filter(|task| task.skipped.is_none())
        .filter_map(|task| {
            let reason = run(&mut programs, &task).err()?;
            Some(format!("{}: {reason} ({:?})", task.name, task.command))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// As it is measured, since arguments may contradict each other, and in its quick form.
#[test]
fn every_workload_runs() {
    let workloads = support::build().join("libexec/hakmem/workloads");
    let rows = read_workloads(&list("")).unwrap();
    let forms = [false, true].into_iter();
    let tasks = forms.flat_map(|quick| {
        let rows = rows.iter().filter(move |row| row.is_quick() || !quick);
        rows.map(|row| {
            let mut task = row.task(&workloads, quick);
            // Not every machine has gigabytes to spare for a test, or a test the time to sleep.
            let less: &[&str] = match row.workload.as_str() {
                "key-value" | "fragment" => &["--live", "16M"],
                "phase-change" => &["--peak", "16M", "--wait-ms", "100"],
                _ => &[],
            };
            task.command.extend(less.iter().map(|it| it.to_string()));
            task
        })
        .collect::<Vec<_>>()
    });
    assert_all_run(tasks.inspect(|task| assert_eq!(task.skipped, None)));
}

/// Rows that are drawn, as short as they can be.
#[test]
fn what_some_seeds_draw_runs() {
    let workloads = support::build().join("libexec/hakmem/workloads");
    assert_all_run([1, 20_261_125].into_iter().flat_map(drawn_rows).map(|row| {
        let mut task = row.task(&workloads, false);
        task.command.extend(["--operations".into(), "40000".into()]);
        task
    }));
}

/// In its quick form, or with a twentieth of the work.
#[test]
fn every_program_that_is_here_runs() {
    let file = list("programs.toml");
    let input = input_directory(&file);
    let scratch = tempfile::tempdir().unwrap();
    let rows = read_programs(&file).unwrap().into_iter();
    assert_all_run(rows.map(|mut row| {
        row.quick_size = row.quick_size.or(row.size.map(|size| (size / 20).max(1)));
        let work = scratch.path().join(&row.name);
        fs::create_dir(&work).unwrap();
        let (input, work) = (&input, &work);
        row.task(&Places { input, work }, true)
    }));
}
