//! Slow paths as text, as the library prints them itself.

use std::fmt::Write as _;

use hakmem_inspect::cycles::Cycles;

/// The table.
pub fn render(cycles: &Cycles) -> String {
    let mut text = String::from(
        "\nSlow paths                   count    total us      own us   mean ns    p50 ns    p99 ns\
         \x20     max ns\n",
    );
    let ns = |ticks: u64| cycles.ns(ticks);
    for span in &cycles.spans {
        let _ = writeln!(
            text,
            "{:<7}{:<15}{:>12}{:>12.0}{:>12.0}{:>10.0}{:>10.0}{:>10.0}{:>12.0}",
            span.side,
            span.kind,
            span.count,
            ns(span.ticks) / 1000.0,
            ns(span.own_ticks) / 1000.0,
            ns(span.ticks) / span.count.max(1) as f64,
            ns(span.quantile(500)),
            ns(span.quantile(990)),
            ns(span.max_ticks),
        );
    }
    text
}
