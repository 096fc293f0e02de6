//! The metrics that `hakmem metrics` tells, by the conventions of Prometheus.

use std::collections::HashMap;

use anyhow::Result;
use hakmem_inspect::standing::Standing;
use hakmem_inspect::Report;
use hakmem_report::format::one_line;
use prometheus::{Encoder, Gauge, GaugeVec, IntCounterVec, Opts, Registry, TextEncoder};

/// A metric: its name, what it is, and its labels besides those of the process.
type Metric = (&'static str, &'static str, &'static [&'static str]);

/// The labels of every process.
const PROCESS: [&str; 2] = ["pid", "program"];

const GAUGES: [Metric; 12] = [
    (
        "hakmem_process_info",
        "A process that hakmem serves: version and preset of the library; control group, start in \
         seconds since 1970, and state of the process.",
        &["version", "preset", "cgroup", "start_time", "state"],
    ),
    (
        "hakmem_process_resident_bytes",
        "Resident memory of the process, as the kernel says.",
        &[],
    ),
    (
        "hakmem_resident_bytes",
        "Resident memory by what it is for; all parts together are that of the process.",
        &["part"],
    ),
    (
        "hakmem_without_memory_bytes",
        "Address space of hakmem that has no memory: given back, or never touched.",
        &[],
    ),
    (
        "hakmem_live_blocks",
        "Blocks handed out and not freed.",
        &["tier"],
    ),
    (
        "hakmem_live_bytes",
        "Usable bytes of the blocks that are handed out.",
        &["tier"],
    ),
    (
        "hakmem_cached_bytes",
        "Free blocks in magazines and transfer caches.",
        &["tier"],
    ),
    ("hakmem_thread_heaps", "Heaps that threads have.", &[]),
    (
        "hakmem_scope_live_blocks",
        "Blocks of a scope, with those inside it, handed out and not freed.",
        &["scope"],
    ),
    (
        "hakmem_scope_live_bytes",
        "Usable bytes of the blocks of a scope, with those inside it.",
        &["scope"],
    ),
    (
        "hakmem_scope_resident_bytes",
        "Resident memory of a scope, with those inside it.",
        &["scope"],
    ),
    (
        "hakmem_scope_limit_bytes",
        "Bytes that the blocks of a scope may have, if it has a limit.",
        &["scope"],
    ),
];

const COUNTERS: [Metric; 6] = [
    (
        "hakmem_mallocs_total",
        "Allocations since the process began.",
        &["tier"],
    ),
    (
        "hakmem_malloc_misses_total",
        "Allocations that took a slow path.",
        &["tier"],
    ),
    ("hakmem_frees_total", "Blocks freed.", &["tier"]),
    (
        "hakmem_free_misses_total",
        "Blocks whose free took a slow path.",
        &["tier"],
    ),
    (
        "hakmem_purged_bytes_total",
        "Memory given back to the system.",
        &[],
    ),
    (
        "hakmem_system_calls_total",
        "System calls of the allocator.",
        &["call"],
    ),
];

/// The metrics, each for all processes.
pub struct Figures {
    registry: Registry,
    gauges: HashMap<&'static str, GaugeVec>,
    counters: HashMap<&'static str, IntCounterVec>,
    /// Processes that hakmem serves.
    pub processes: Gauge,
    /// Those of which nothing may be read.
    pub unreadable: Gauge,
    /// Those whose library cannot be read here.
    pub unknown: Gauge,
    /// How long it took.
    pub duration: Gauge,
}

impl Figures {
    /// Without any process yet.
    ///
    /// # Errors
    /// A name is not allowed, or there twice.
    pub fn new() -> Result<Figures> {
        let registry = Registry::new();
        let (mut gauges, mut counters) = (HashMap::new(), HashMap::new());
        for (name, help, labels) in GAUGES {
            let gauge = GaugeVec::new(Opts::new(name, help), &[&PROCESS, labels].concat())?;
            registry.register(Box::new(gauge.clone()))?;
            gauges.insert(name, gauge);
        }
        for (name, help, labels) in COUNTERS {
            let labels = [&PROCESS, labels].concat();
            let counter = IntCounterVec::new(Opts::new(name, help), &labels)?;
            registry.register(Box::new(counter.clone()))?;
            counters.insert(name, counter);
        }
        let gauge = |name: &str, help: &str| -> Result<Gauge> {
            let gauge = Gauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        Ok(Figures {
            processes: gauge("hakmem_processes", "Processes that hakmem serves.")?,
            unreadable: gauge(
                "hakmem_unreadable_processes",
                "Processes whose memory may not be read, or that lie: of these nothing is known.",
            )?,
            unknown: gauge(
                "hakmem_unknown_layout_processes",
                "Processes on a version of hakmem that this command cannot read.",
            )?,
            duration: gauge(
                "hakmem_collect_duration_seconds",
                "Time that it took to look at all processes.",
            )?,
            registry,
            gauges,
            counters,
        })
    }

    /// Adds a process.
    pub fn add(&self, report: &Report) {
        let pid = report.source.pid.unwrap_or(0).to_string();
        let labels = [pid.as_str(), &report.source.name];
        let statistics = &report.statistics;
        let (version, preset) = (
            report.library.version.as_str(),
            report.settings.preset_name(),
        );
        let set = |name: &str, more: &[&str], value: u64| {
            let labels = [&labels, more].concat();
            self.gauges[name]
                .with_label_values(&labels)
                .set(value as f64);
        };
        let count = |name: &str, more: &[&str], value: u64| {
            let labels = [&labels, more].concat();
            self.counters[name].with_label_values(&labels).inc_by(value);
        };
        let standing = report.source.pid.map(Standing::of).unwrap_or_default();
        let (group, start) = (
            one_line(&standing.control_group),
            standing.start_unix_s.to_string(),
        );
        let standing = [group.as_str(), &start, &standing.state];
        self.processes.inc();
        let more = [&[version, preset][..], &standing].concat();
        set("hakmem_process_info", &more, 1);
        set("hakmem_process_resident_bytes", &[], report.rss_bytes);
        set(
            "hakmem_without_memory_bytes",
            &[],
            report.without_memory_bytes,
        );
        set("hakmem_thread_heaps", &[], statistics.threads);
        count("hakmem_purged_bytes_total", &[], statistics.purged_bytes);
        for part in &report.parts {
            let name = part.part.name();
            set("hakmem_resident_bytes", &[name], part.resident_bytes);
        }
        self.add_scopes(&labels, report);
        for tier in &statistics.tiers {
            let more = [tier.name];
            set("hakmem_live_blocks", &more, tier.live_blocks);
            set("hakmem_live_bytes", &more, tier.live_bytes);
            set("hakmem_cached_bytes", &more, tier.cached_bytes);
            count("hakmem_mallocs_total", &more, tier.malloc_calls);
            count("hakmem_frees_total", &more, tier.free_calls);
            let missed = tier.malloc_calls.saturating_sub(tier.malloc_hits);
            count("hakmem_malloc_misses_total", &more, missed);
            let missed = tier.free_calls.saturating_sub(tier.free_hits);
            count("hakmem_free_misses_total", &more, missed);
        }
        for (call, calls) in statistics.system_calls.by_name() {
            count("hakmem_system_calls_total", &[call], calls);
        }
    }

    /// Scopes of one name count together: a program may have one for each request.
    fn add_scopes(&self, labels: &[&str], report: &Report) {
        for scope in &report.scopes {
            let name = one_line(&scope.name);
            let labels = [labels, &[&name]].concat();
            let add = |metric: &str, value: u64| {
                self.gauges[metric]
                    .with_label_values(&labels)
                    .add(value as f64);
            };
            add("hakmem_scope_live_blocks", scope.live_blocks);
            add("hakmem_scope_live_bytes", scope.live_bytes);
            add("hakmem_scope_resident_bytes", scope.resident_bytes);
            if scope.limit_bytes != 0 {
                add("hakmem_scope_limit_bytes", scope.limit_bytes);
            }
        }
    }

    /// All of it as text.
    ///
    /// # Errors
    /// It cannot be written as text.
    pub fn text(&self) -> Result<String> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8(text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions() {
        let figures = Figures::new().unwrap();
        let labels = ["1", "program"];
        figures.gauges["hakmem_process_resident_bytes"]
            .with_label_values(&labels)
            .set(1.0);
        figures.counters["hakmem_purged_bytes_total"]
            .with_label_values(&labels)
            .inc_by(2);
        let text = figures.text().unwrap();
        assert!(
            text.contains("# TYPE hakmem_purged_bytes_total counter\n"),
            "{text}"
        );
        assert!(text.contains("hakmem_purged_bytes_total{pid=\"1\",program=\"program\"} 2\n"));
        assert!(text.contains("# TYPE hakmem_process_resident_bytes gauge\n"));
        assert!(text.contains("\nhakmem_processes 0\n"));
    }
}
