//! What was seen of a program that had to be stopped.

use std::time::Duration;

use crate::common::{launch, processes_with, unique_sleep, with};
use crate::fixtures::{library, tools};
use hakmem_process::{run_witnessed, Exit, Watch};

#[test]
fn what_was_seen_counts_if_it_shall() {
    let time = unique_sleep();
    let mut launch = with(launch(["sleep", &time]), library());
    launch.time_limit = Duration::from_secs(2); // in which a busy machine starts it
    let watch = Watch {
        rss_interval: Duration::from_millis(100),
        system_calls: false,
        stopped_counts: true,
    };
    let run = run_witnessed(&tools(), &launch, &watch).unwrap();
    assert_eq!(run.exit, Exit::Stopped);
    assert_eq!(processes_with(&time), 0);
    let [process] = &run.processes[..] else {
        panic!("{:?}", run.processes)
    };
    assert!(process.library_mapped, "{process:?}");
    assert!(
        process.anonymous_kib.is_some_and(|kib| kib > 0),
        "{process:?}"
    );
}
