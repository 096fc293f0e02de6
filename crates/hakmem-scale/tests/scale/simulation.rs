//! The simulation against what is known of such queues.

use hakmem_scale::load::Load;
use hakmem_scale::simulation::{Outcome, Parts, Spread, Station, Workload};

const SEED: u64 = 1;

fn shared(hold_ns: f64) -> Station {
    Station {
        share: 1.0,
        hold_ns,
        locks: 1,
        parts: None,
    }
}

fn workload(work_ns: f64, stations: Vec<Station>) -> Workload {
    Workload {
        work_ns,
        calls: 1.0,
        stations,
    }
}

fn simulate(workload: &Workload, cores: usize, spread: Spread) -> Outcome {
    workload.simulate(cores, spread, 0.0, SEED)
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    let difference = (value / expected - 1.0).abs();
    assert!(difference <= tolerance, "{value} is not {expected}");
}

#[test]
fn one_core_never_waits() {
    let workload = workload(900.0, vec![shared(100.0)]);
    // Its own lock needs no transfer either.
    let outcome = workload.simulate(1, Spread::Exponential, 1e6, SEED);
    assert_eq!(outcome.wait_ns, 0.0);
    assert_near(outcome.calls_per_ns, 1.0 / 1000.0, 0.01);
    assert_near(outcome.busiest, 0.1, 0.02);
}

#[test]
fn a_lock_serves_no_more_than_one_after_another() {
    let workload = workload(900.0, vec![shared(100.0)]);
    for spread in [Spread::Exponential, Spread::Constant] {
        let outcome = simulate(&workload, 128, spread);
        assert_near(outcome.calls_per_ns, 1.0 / 100.0, 0.01);
        assert!(outcome.busiest > 0.999, "{outcome:?}");
    }
}

#[test]
fn a_lock_that_changes_hands_serves_less() {
    let workload = workload(900.0, vec![shared(100.0)]);
    let outcome = workload.simulate(128, Spread::Constant, 50.0, SEED);
    // With 128 cores in the queue it is hardly ever the same one that comes next.
    assert_near(outcome.calls_per_ns, 1.0 / 150.0, 0.01);
}

#[test]
fn below_saturation_cores_add_up() {
    let workload = workload(99_900.0, vec![shared(100.0)]);
    for cores in [2, 8, 32] {
        let outcome = simulate(&workload, cores, Spread::Exponential);
        assert_near(outcome.calls_per_ns, cores as f64 / 100_000.0, 0.01);
    }
}

/// The machine repairman: the exact throughput of a closed queue with exponential times.
fn repairman(cores: usize, work_ns: f64, hold_ns: f64) -> f64 {
    let mut probability = 1.0;
    let (mut idle, mut sum) = (1.0, 0.0);
    for waiting in 0..=cores {
        if waiting > 0 {
            probability *= (cores - waiting + 1) as f64 * hold_ns / work_ns;
        }
        if waiting == 0 {
            idle = probability;
        }
        sum += probability;
    }
    (1.0 - idle / sum) / hold_ns
}

#[test]
fn a_closed_queue_is_the_machine_repairman() {
    for cores in [1, 2, 4, 8, 10, 12, 16, 32, 64] {
        let workload = workload(900.0, vec![shared(100.0)]);
        let outcome = simulate(&workload, cores, Spread::Exponential);
        assert_near(outcome.calls_per_ns, repairman(cores, 900.0, 100.0), 0.015);
    }
}

#[test]
fn many_rare_visitors_wait_as_in_an_open_queue() {
    // 2000 cores that seldom come: nearly Poisson arrivals. M/D/1 waits half as long as M/M/1.
    for load in [0.3, 0.5, 0.7] {
        let hold_ns = 100.0;
        let work_ns = 2000.0 * hold_ns / load;
        let workload = workload(work_ns, vec![shared(hold_ns)]);
        let open_ns = load * hold_ns / (1.0 - load);
        let exponential = simulate(&workload, 2000, Spread::Exponential);
        let constant = simulate(&workload, 2000, Spread::Constant);
        assert_near(exponential.wait_ns, open_ns, 0.08);
        assert_near(constant.wait_ns, open_ns / 2.0, 0.08);
    }
}

#[test]
fn half_busy_is_where_the_model_says() {
    let load = Load {
        shared: 0.01,
        own: 0.0,
        parts: 1.0,
    };
    let cores = load.half_busy_cores() as usize;
    assert_eq!(cores, 50);
    let workload = workload(9_900.0, vec![shared(100.0)]);
    let outcome = simulate(&workload, cores, Spread::Constant);
    // Waiting cores come a little more seldom.
    assert!((0.49..0.505).contains(&outcome.busiest), "{outcome:?}");
}

#[test]
fn locks_of_a_shard_do_not_meet() {
    let station = |foreign| Station {
        parts: Some(Parts { most: 64, foreign }),
        ..shared(500.0)
    };
    let own = workload(500.0, vec![station(0.0)]);
    let alone = own.simulate(1, Spread::Exponential, 100.0, SEED);
    for cores in [2, 16, 64] {
        let outcome = own.simulate(cores, Spread::Exponential, 100.0, SEED);
        assert_eq!(outcome.wait_ns, 0.0);
        assert_near(
            outcome.calls_per_ns,
            cores as f64 * alone.calls_per_ns,
            0.015,
        );
    }
    // Two cores a shard meet there.
    assert!(own.simulate(128, Spread::Exponential, 100.0, SEED).wait_ns > 50.0);
    // So do those that visit others.
    let visiting = workload(500.0, vec![station(0.1)]);
    let outcome = visiting.simulate(64, Spread::Exponential, 100.0, SEED);
    assert!(outcome.wait_ns > 10.0, "{outcome:?}");
}

#[test]
fn visits_spread_over_the_locks_of_a_station() {
    let many = workload(
        100.0,
        vec![Station {
            locks: 1000,
            ..shared(100.0)
        }],
    );
    let outcome = simulate(&many, 8, Spread::Exponential);
    assert_near(outcome.calls_per_ns, 8.0 / 200.0, 0.02);
    let two = workload(
        0.0,
        vec![
            Station {
                share: 0.25,
                ..shared(100.0)
            },
            Station {
                share: 0.75,
                ..shared(100.0)
            },
        ],
    );
    // The one that gets three of four visits is the bottleneck.
    let outcome = simulate(&two, 64, Spread::Constant);
    assert_near(outcome.calls_per_ns, 1.0 / 75.0, 0.01);
}

#[test]
fn without_locks_cores_add_up() {
    let outcome = simulate(&workload(100.0, Vec::new()), 128, Spread::Exponential);
    assert_eq!(outcome.calls_per_ns, 1.28);
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let workload = workload(900.0, vec![shared(100.0)]);
    let run = |seed| workload.simulate(16, Spread::Exponential, 100.0, seed);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    assert_near(run(1).calls_per_ns, run(2).calls_per_ns, 0.02);
}
