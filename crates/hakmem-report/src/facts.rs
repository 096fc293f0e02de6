//! The machine, the settings and the proofs of a result file as names and values.

use hakmem_results::{Metric, Proof, ResultFile};
use hakmem_statistics::verdict::{MARGIN, WRONG_SHARE};

use crate::format;

/// The machine as pairs of a name and what is known, `not available here` included.
pub fn machine(file: &ResultFile) -> Vec<(&'static str, String)> {
    let machine = &file.machine;
    let unknown = || "not available here".to_string();
    let text = |value: &Option<String>| value.clone().unwrap_or_else(unknown);
    let memory = |kib: Option<u64>| {
        kib.map_or_else(unknown, |kib| format::quantity(Metric::PeakRss, kib as f64))
    };
    let number = |value: Option<u64>| value.map_or_else(unknown, |value| value.to_string());
    let counters = match &machine.hardware_counters_missing {
        Some(reason) => format!("not available here: {reason}"),
        None => "available".to_string(),
    };
    vec![
        ("CPU", text(&machine.cpu)),
        ("CPUs in use", machine.cpus.to_string()),
        ("Memory", memory(machine.memory_kib)),
        ("Swap", memory(machine.swap_kib)),
        ("Architecture", machine.architecture.clone()),
        ("Distribution", text(&machine.distribution)),
        ("Kernel", text(&machine.kernel)),
        ("C library", text(&machine.libc)),
        ("Page size", memory(Some(machine.page_size / 1024))),
        (
            "Transparent huge pages",
            text(&machine.transparent_hugepage),
        ),
        (
            "Overcommit (vm.overcommit_memory)",
            number(machine.overcommit_memory.map(u64::from)),
        ),
        (
            "Most mappings (vm.max_map_count)",
            number(machine.max_map_count),
        ),
        ("CPU governor", text(&machine.cpu_governor)),
        (
            "Load average at the start",
            machine
                .load_average
                .map_or_else(unknown, |load| format!("{load:.2}")),
        ),
        ("Hardware counters", counters),
    ]
}

/// The settings and origin of a run as pairs of a name and a value.
pub fn run(file: &ResultFile) -> Vec<(&'static str, String)> {
    let settings = &file.settings;
    let length = match (settings.rounds, settings.time_s) {
        (Some(rounds), _) => format!("{rounds} rounds"),
        (None, Some(seconds)) => format!("as many rounds as fit in {}", format::duration(seconds)),
        (None, None) => "rounds not recorded".to_string(),
    };
    let end = match file.interrupted {
        true => "; stopped before that",
        false => "",
    };
    let quick = if settings.quick {
        "yes: less work per program"
    } else {
        "no"
    };
    let mut facts = vec![("Command", file.command.join(" "))];
    facts.extend(environment(file).map(|variables| ("Environment of all", variables)));
    facts.extend([
        ("Started", file.started.clone()),
        ("Took", format::duration(file.duration_s)),
        (
            "Length",
            format!("{length}, after {} unmeasured{end}", settings.warm_up),
        ),
        ("Quick run", quick.to_string()),
        (
            "Intervals",
            format!("{}, signed ranks", format::share(settings.confidence)),
        ),
        (
            "Verdicts",
            format!(
                "{} on either side of 1 does not matter; at most {} of the differences of a \
                 table are wrong",
                format::share(MARGIN),
                format::share(WRONG_SHARE)
            ),
        ),
        ("Seed", settings.seed.to_string()),
        ("hakmem command", file.version.clone()),
        (
            "Commit",
            file.commit
                .clone()
                .unwrap_or_else(|| "not known".to_string()),
        ),
    ]);
    facts
}

/// The variables that reached every arm and may have changed its figures, if there were any.
pub fn environment(file: &ResultFile) -> Option<String> {
    let variables = file.environment.iter();
    let variables: Vec<String> = variables
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    (!variables.is_empty()).then(|| variables.join(" "))
}

/// The proof of a cell in one line: who served the calls, and how that is known.
pub fn proof(proof: &Proof) -> String {
    let mut line = format!(
        "malloc resolves into {}, mapped in {} of {} processes",
        format::one_line(&proof.malloc_object),
        proof.processes_served,
        proof.processes,
    );
    if let Some(share) = proof.share {
        line += &format!(
            "; by its own count it served {} of the calls",
            format::share(share)
        );
    }
    line
}
