//! Progress of an experiment, on standard error: a bar on a terminal, else a line now and then.

use std::time::{Duration, Instant};

use hakmem_lab::observer::{Observer, Phase, Step};
use hakmem_report::format;
use hakmem_report::table::{self, TableOptions};
use hakmem_results::{Arm, Row};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::interrupt::Interrupt;
use crate::output::{print, say};

/// Time between two lines when there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(30);

/// Shows how far an experiment is.
pub struct Progress<'a> {
    bar: ProgressBar,
    /// Runs of the whole experiment; `None` when time decides.
    steps: Option<u64>,
    started: Instant,
    /// When the last line was written, for want of a terminal.
    last_line: Option<Instant>,
    /// The arms, when finished rows are to be shown.
    rows_of: Option<Vec<Arm>>,
    interrupt: &'a Interrupt,
}

impl<'a> Progress<'a> {
    /// Begins. With `rows_of`, each finished row goes to standard output at once.
    pub fn new(
        steps: Option<u64>,
        rows_of: Option<Vec<Arm>>,
        interrupt: &'a Interrupt,
    ) -> Progress<'a> {
        let template = match steps {
            Some(_) => "{wide_bar} {pos}/{len}, {eta} left\n{wide_msg}",
            None => "{spinner} {elapsed}, {wide_msg}",
        };
        let style = ProgressStyle::with_template(template).expect("the template is well-formed");
        let bar = ProgressBar::with_draw_target(steps, ProgressDrawTarget::stderr());
        bar.set_style(style);
        let started = Instant::now();
        Progress {
            bar,
            steps,
            started,
            last_line: None,
            rows_of,
            interrupt,
        }
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }

    fn write_line(&mut self, done: u64, what: &str) {
        let now = Instant::now();
        if self
            .last_line
            .is_some_and(|last| now - last < LINE_INTERVAL)
        {
            return;
        }
        self.last_line = Some(now);
        say(line(done, self.steps, now - self.started, what));
    }
}

/// `12 of 480, about 3 min 5 s left: redis, mimalloc3, round 2`.
fn line(done: u64, steps: Option<u64>, elapsed: Duration, what: &str) -> String {
    match steps {
        Some(steps) if done > 0 => {
            let per_step = elapsed.as_secs_f64() / done as f64;
            let left = format::duration(per_step * steps.saturating_sub(done) as f64);
            format!("{done} of {steps}, about {left} left: {what}")
        }
        Some(steps) => format!("{done} of {steps}: {what}"),
        None => format!(
            "{done} runs, {}: {what}",
            format::duration(elapsed.as_secs_f64())
        ),
    }
}

impl Observer for Progress<'_> {
    fn step(&mut self, step: &Step) {
        let phase = match step.phase {
            Phase::Witnessed => "watched".to_owned(),
            Phase::WarmUp => "warm-up".to_owned(),
            Phase::Round(round) => format!("round {round}"),
        };
        let what = format::one_line(&format!("{}, {}, {phase}", step.row, step.arm));
        if self.bar.is_hidden() {
            return self.write_line(step.done, &what);
        }
        self.bar.set_message(what);
        self.bar.set_position(step.done);
        self.bar.tick();
    }

    fn row(&mut self, row: &Row) {
        let Some(arms) = &self.rows_of else { return };
        let block = table::render_row(arms, row, &TableOptions::for_stdout());
        // What goes wrong with standard output is said when the whole table is written.
        self.bar.suspend(|| drop(print(&format!("{block}\n"))));
    }

    fn interrupted(&self) -> bool {
        self.interrupt.was_asked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_is_left() {
        let elapsed = Duration::from_secs(10);
        assert_eq!(line(0, Some(20), elapsed, "a"), "0 of 20: a");
        assert_eq!(
            line(5, Some(20), elapsed, "a"),
            "5 of 20, about 30 s left: a"
        );
        assert_eq!(line(5, None, elapsed, "a"), "5 runs, 10 s: a");
    }
}
