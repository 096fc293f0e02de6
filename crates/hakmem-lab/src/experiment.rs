//! An experiment: every row under every arm, in rounds, in random order.
//!
//! Per row, every arm first has a witnessed run, which proves who serves the calls and warms the
//! caches. Then come the rounds. In each, every arm runs once, in an order that is drawn anew, so
//! that neither a drift of the machine nor a neighbour in the order favours an arm, and in an
//! environment whose size is drawn anew. An arm that fails drops out of its row; the others go on.

use std::collections::BTreeMap;

use hakmem_results::{Machine, Metric, ResultFile, Row, FORMAT};
use hakmem_statistics::assess::judge_rows;
use hakmem_statistics::scaling::scaling;

use crate::executor::Executor;
use crate::observer::Observer;
use crate::plan::Plan;
use crate::row::{row, Interrupted, RowRun};

/// What the result file says besides what the experiment finds out.
#[derive(Clone, Debug)]
pub struct Header {
    /// Version of the `hakmem` command.
    pub version: String,
    /// Commit of the source tree, if known.
    pub commit: Option<String>,
    /// When the experiment began, RFC 3339, UTC.
    pub started: String,
    /// The command line.
    pub command: Vec<String>,
    /// See [`ResultFile::environment`].
    pub environment: BTreeMap<String, String>,
    /// Where it runs.
    pub machine: Machine,
}

/// Does what the plan says. What goes wrong is told in the cells.
pub fn run(
    plan: &Plan,
    header: Header,
    executor: &mut dyn Executor,
    observer: &mut dyn Observer,
) -> ResultFile {
    let began = executor.now();
    let mut arms = plan.arms_with_control();
    let mut rows = Vec::with_capacity(plan.tasks.len());
    let mut done = 0;
    for (index, task) in plan.tasks.iter().enumerate() {
        let row = match &task.skipped {
            Some(reason) => row(task, Some(reason.clone()), Vec::new()),
            None => {
                let (arms, done) = (&mut arms[..], &mut done);
                let mut run = RowRun {
                    plan,
                    task,
                    arms,
                    executor,
                    observer,
                    done,
                };
                match run.run(index) {
                    Ok(row) => row,
                    Err(Interrupted) => break,
                }
            }
        };
        observer.row(&row);
        rows.push(row);
        if observer.interrupted() {
            break;
        }
    }
    // Until here each row was judged alone.
    judge_rows(&arms, &mut rows);
    let mut machine = header.machine;
    if !have_counters(&rows) {
        machine.hardware_counters_missing = executor.hardware_counters_missing();
    }
    ResultFile {
        format: FORMAT,
        version: header.version,
        commit: header.commit,
        started: header.started,
        duration_s: (executor.now() - began).as_secs_f64(),
        command: header.command,
        environment: header.environment,
        machine,
        settings: plan.settings(),
        scaling: scaling(&arms, &rows, plan.confidence),
        interrupted: observer.interrupted(),
        arms,
        rows,
    }
}

/// Whether a run had hardware counters.
fn have_counters(rows: &[Row]) -> bool {
    let mut cells = rows.iter().flat_map(|row| &row.cells);
    cells.any(|cell| {
        let measured = cell.outcome.measured();
        measured.is_some_and(|it| it.figures.contains_key(&Metric::Instructions))
    })
}
