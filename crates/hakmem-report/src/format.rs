//! How figures are spelt: three significant digits, a unit, and words for verdicts.

use hakmem_results::{Metric, Ratio, RowKind, Summary, Verdict};

/// What stands where there is no figure.
pub const NOTHING: &str = "–";

/// The name of a metric for people.
pub fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Time => "time",
        Metric::Wall => "wall clock",
        Metric::User => "user CPU time",
        Metric::System => "system CPU time",
        Metric::PeakRss => "peak RSS",
        Metric::SettledRss => "settled RSS",
        Metric::RssAfter1S => "RSS after 1 s",
        Metric::RssAfter3S => "RSS after 3 s",
        Metric::LongestCall => "longest call",
        Metric::P9999Call => "p99.99 of calls",
        Metric::MinorFaults => "page faults",
        Metric::MajorFaults => "page faults with I/O",
        Metric::VoluntarySwitches => "context switches by waiting",
        Metric::InvoluntarySwitches => "context switches by the scheduler",
        Metric::Instructions => "instructions",
        Metric::Cycles => "cycles",
        Metric::CacheMisses => "cache misses",
        Metric::TlbMisses => "data TLB misses",
    }
}

/// The unit in which a result file holds a metric: `s`, `KiB` or `count`.
pub fn base_unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Time | Metric::Wall | Metric::User | Metric::System => "s",
        Metric::LongestCall | Metric::P9999Call => "s",
        Metric::PeakRss | Metric::SettledRss => "KiB",
        Metric::RssAfter1S | Metric::RssAfter3S => "KiB",
        _ => "count",
    }
}

/// The heading of a group of rows.
pub fn row_kind_name(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Workload => "Workloads",
        RowKind::Program => "Programs",
        RowKind::Command => "Commands",
    }
}

/// A unit that suits a value, and the decimals that give it three significant digits.
#[derive(Clone, Copy)]
struct Scale {
    divisor: f64,
    suffix: &'static str,
    decimals: usize,
}

impl Scale {
    fn of(metric: Metric, value: f64) -> Scale {
        // Largest first; the last one takes what is left.
        let steps: &[(f64, &str)] = match base_unit(metric) {
            "s" => &[(1.0, " s"), (1e-3, " ms"), (1e-6, " µs"), (1e-9, " ns")],
            "KiB" => &[(1024.0 * 1024.0, " GiB"), (1024.0, " MiB"), (1.0, " KiB")],
            _ => &[(1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")],
        };
        // 999.6 is shown with the next unit, because it would be rounded to 1000.
        let fits = |step: &&(f64, &str)| value.abs() >= 0.9995 * step.0;
        let smallest = steps[steps.len() - 1];
        let zero = (
            steps[0].0,
            if base_unit(metric) == "count" {
                ""
            } else {
                steps[0].1
            },
        );
        let (divisor, suffix) = match steps.iter().find(fits) {
            _ if value == 0.0 => zero,
            Some(step) => *step,
            None => smallest,
        };
        // Nanoseconds, KiB and counts may be whole numbers; then decimals would be made up.
        let shown = value / divisor;
        let whole = divisor == smallest.0 && (shown - shown.round()).abs() < 1e-9;
        let decimals = if whole {
            0
        } else {
            decimals_of(value / divisor)
        };
        Scale {
            divisor,
            suffix,
            decimals,
        }
    }

    fn number(&self, value: f64) -> String {
        format!("{:.*}", self.decimals, value / self.divisor)
    }
}

/// The decimals that show a value with three significant digits.
fn decimals_of(value: f64) -> usize {
    match value.abs() {
        v if v == 0.0 || v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    }
}

/// A value of a metric with its unit, e.g. `12.3 ms`, `34.1 MiB`, `1.23 k`.
pub fn quantity(metric: Metric, value: f64) -> String {
    let scale = Scale::of(metric, value);
    format!("{}{}", scale.number(value), scale.suffix)
}

/// Operations a second: `12.3 M/s`.
pub fn rate(per_second: f64) -> String {
    quantity(Metric::MinorFaults, per_second) + "/s"
}

/// The median of a metric with its unit.
pub fn median(metric: Metric, summary: &Summary) -> String {
    quantity(metric, summary.median)
}

/// The interval of a median, in the unit of the median, which is not repeated: `12.1–12.5`.
pub fn interval(metric: Metric, summary: &Summary) -> String {
    let scale = Scale::of(metric, summary.median);
    format!(
        "{}–{}",
        scale.number(summary.low),
        scale.number(summary.high)
    )
}

/// A ratio with three digits; on both sides of 1, and up to 2, with three decimals.
pub fn ratio(ratio: f64) -> String {
    format!("{ratio:.*}", ratio_decimals(ratio))
}

/// The interval of a ratio, with as many decimals as the ratio itself: `0.793–0.812`.
pub fn ratio_interval(ratio: &Ratio) -> String {
    let decimals = ratio_decimals(ratio.ratio);
    format!("{:.decimals$}–{:.decimals$}", ratio.low, ratio.high)
}

fn ratio_decimals(ratio: f64) -> usize {
    match ratio.abs() {
        0.0 => 0,
        v if v < 1.9995 => 3,
        _ => decimals_of(ratio),
    }
}

/// A ratio where there is room for four characters only.
pub fn short_ratio(ratio: f64) -> String {
    format!("{ratio:.*}", short_ratio_decimals(ratio))
}

fn short_ratio_decimals(ratio: f64) -> usize {
    match ratio != 0.0 && ratio.abs() < 0.0995 {
        true => 3,
        false => decimals_of(ratio),
    }
}

/// The interval of a ratio where there is little room, with as many decimals as the ratio.
pub fn short_ratio_interval(ratio: &Ratio) -> String {
    let decimals = short_ratio_decimals(ratio.ratio);
    format!("{:.decimals$}–{:.decimals$}", ratio.low, ratio.high)
}

/// A share of 1 as a percentage with at most three digits: `12%`, `3.1%`, `0.40%`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    let decimals = match value.abs() {
        v if v == 0.0 || v >= 9.95 => 0,
        v if v >= 0.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}%")
}

/// A share of 1 close to all of it: rounded down, so that 100% means all.
pub fn share(share: f64) -> String {
    format!("{}%", (share * 1000.0).floor() / 10.0)
}

/// What is needed more or less of: `time`, `memory`.
pub fn need(metric: Metric) -> &'static str {
    match metric {
        Metric::PeakRss => "memory",
        Metric::SettledRss => "memory in the end",
        Metric::RssAfter1S => "memory after 1 s",
        Metric::RssAfter3S => "memory after 3 s",
        Metric::LongestCall => "time in the longest call",
        Metric::P9999Call => "time in 99.99% of calls",
        _ => metric_name(metric),
    }
}

/// A ratio in words, as the object of "A needs …": `19% less time than B`.
pub fn needs(metric: Metric, ratio: f64, than: &str) -> String {
    let what = need(metric);
    match change(ratio).as_str() {
        "the same" => format!("as much {what} as {than}"),
        change if ratio >= 2.0 => format!("{change} {what} as {than}"),
        change => format!("{change} {what} than {than}"),
    }
}

/// A ratio in words without its object: `19% less`.
pub fn change(ratio: f64) -> String {
    if (ratio - 1.0).abs() < 0.000_05 {
        "the same".to_string()
    } else if ratio >= 2.0 {
        format!("{} times as much", short_ratio(ratio))
    } else if ratio > 1.0 {
        format!("{} more", percent(ratio - 1.0))
    } else {
        format!("{} less", percent(1.0 - ratio))
    }
}

/// A verdict as a predicate of the first arm: "hakmem is …".
pub fn verdict(metric: Metric, verdict: Verdict) -> &'static str {
    match (verdict, base_unit(metric)) {
        (Verdict::Better, "s") => "faster",
        (Verdict::Worse, "s") => "slower",
        (Verdict::Better, "KiB") => "smaller",
        (Verdict::Worse, "KiB") => "larger",
        (Verdict::Better, _) => "lower",
        (Verdict::Worse, _) => "higher",
        (Verdict::NoDifference, _) => "no difference",
        (Verdict::Unclear, _) => "unclear",
        (Verdict::TooFewRounds, _) => "too few rounds",
    }
}

/// A verdict on the first arm and itself: "hakmem is …".
pub fn against_itself(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better | Verdict::Worse => "NOT ITSELF",
        Verdict::NoDifference | Verdict::Unclear | Verdict::TooFewRounds => "itself",
    }
}

/// A verdict as one character, beside a ratio in a matrix.
pub fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "▼",
        Verdict::Worse => "▲",
        Verdict::NoDifference => "=",
        Verdict::Unclear => "~",
        Verdict::TooFewRounds => "?",
    }
}

/// A short ratio with the mark of its verdict: `0.80 ▼`.
pub fn marked(ratio: &Ratio) -> String {
    format!("{} {}", short_ratio(ratio.ratio), mark(ratio.verdict))
}

/// Whether a letter steers a terminal, or the order in which others are shown.
pub fn steers(letter: char) -> bool {
    let turns = matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}');
    letter.is_control() || turns
}

/// Text from outside on one line and without control characters, which could steer a terminal.
pub fn one_line(text: &str) -> String {
    let plain = text.replace(steers, " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A count of seconds for people: `48 s`, `3 min 20 s`, `1 h 5 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, min, s) => format!("{min} min {s} s"),
        (h, min, _) => format!("{h} h {min} min"),
    }
}

/// A count with a noun: `1 row`, `2 rows`.
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_three_significant_digits_and_a_unit() {
        let cases = [
            (Metric::Time, 0.0, "0 s"),
            (Metric::Time, 0.0123456, "12.3 ms"),
            (Metric::Time, 1.0, "1.00 s"),
            (Metric::Time, 0.99961, "1.00 s"),
            (Metric::Time, 99.96, "100 s"),
            (Metric::Time, 123.4, "123 s"),
            (Metric::Time, 2.5e-8, "25 ns"),
            (Metric::Time, 2.55e-8, "25.5 ns"),
            (Metric::PeakRss, 512.0, "512 KiB"),
            (Metric::PeakRss, 34_918.4, "34.1 MiB"),
            (Metric::PeakRss, 3_145_728.0, "3.00 GiB"),
            (Metric::MinorFaults, 0.0, "0"),
            (Metric::MinorFaults, 7.0, "7"),
            (Metric::MinorFaults, 7.5, "7.50"),
            (Metric::MinorFaults, 12_345.0, "12.3 k"),
            (Metric::Instructions, 4.567e9, "4.57 G"),
        ];
        for (metric, value, expected) in cases {
            assert_eq!(quantity(metric, value), expected);
        }
    }

    #[test]
    fn rates_have_three_significant_digits_and_a_unit() {
        assert_eq!(rate(123_456_789.0), "123 M/s");
        assert_eq!(rate(1234.5), "1.23 k/s");
        assert_eq!(rate(7.0), "7/s");
    }

    #[test]
    fn an_interval_keeps_the_unit_of_its_median() {
        let summary = Summary {
            median: 0.9,
            low: 0.85,
            high: 1.1,
            minimum: 0.8,
            maximum: 1.2,
        };
        assert_eq!(interval(Metric::Time, &summary), "850–1100");
        assert_eq!(median(Metric::Time, &summary), "900 ms");
    }

    #[test]
    fn ratios_near_one_show_their_side() {
        let cases = [
            (0.0, "0"),
            (0.0123, "0.012"),
            (0.8, "0.800"),
            (0.996, "0.996"),
            (1.004, "1.004"),
            (1.25, "1.250"),
            (2.5, "2.50"),
            (12.34, "12.3"),
            (123.4, "123"),
        ];
        for (value, expected) in cases {
            assert_eq!(ratio(value), expected);
        }
    }

    #[test]
    fn words_say_who_needs_less() {
        assert_eq!(
            needs(Metric::Time, 0.81, "system"),
            "19% less time than system"
        );
        assert_eq!(
            needs(Metric::PeakRss, 1.031, "system"),
            "3.1% more memory than system"
        );
        assert_eq!(
            needs(Metric::Time, 2.5, "system"),
            "2.50 times as much time as system"
        );
        assert_eq!(needs(Metric::Time, 1.0, "system"), "as much time as system");
        assert_eq!(verdict(Metric::PeakRss, Verdict::Better), "smaller");
        assert_eq!(verdict(Metric::Time, Verdict::Better), "faster");
    }

    #[test]
    fn a_share_is_never_rounded_up_to_all() {
        assert_eq!(share(0.99999), "99.9%");
        assert_eq!(share(1.0), "100%");
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(one_line("a\u{1b}[31mb\n  c"), "a [31mb c");
    }

    #[test]
    fn durations_are_spelt_in_the_two_largest_units() {
        assert_eq!(duration(48.2), "48 s");
        assert_eq!(duration(200.0), "3 min 20 s");
        assert_eq!(duration(3900.0), "1 h 5 min");
    }
}
