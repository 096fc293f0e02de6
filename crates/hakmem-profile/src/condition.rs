//! Conditions on blocks, such as `lifetime>10s`: which of a recording are shown.

use std::str::FromStr;

use crate::file::{Recording, Sample};
use crate::select::forget_sums;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    /// Bytes that were asked for.
    Size,
    /// Seconds; of what lives at the end, without end.
    Lifetime,
    /// The number of the thread that allocated it.
    Thread,
    /// The number of the call site.
    Site,
}

/// With which result of the comparison with the value a block is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Comparison {
    less: bool,
    equal: bool,
    greater: bool,
}

/// One condition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    quantity: Quantity,
    comparison: Comparison,
    value: f64,
}

const EXPECTED: &str =
    "expected size, lifetime, thread or site, one of < <= > >= = !=, and a value: \
                        size<256, size>=1MiB, lifetime>10s, thread=3";

/// Longer ones come first.
const COMPARISONS: [(&str, [bool; 3]); 6] = [
    ("<=", [true, true, false]),
    (">=", [false, true, true]),
    ("!=", [true, false, true]),
    ("<", [true, false, false]),
    (">", [false, false, true]),
    ("=", [false, true, false]),
];

/// Units, and how many of the smallest they are; no unit is one.
type Units = &'static [(&'static str, f64)];

const SIZES: Units = &[
    ("", 1.0),
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1024.0 * 1024.0),
    ("GiB", 1024.0 * 1024.0 * 1024.0),
];
const TIMES: Units = &[
    ("", 1.0),
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];
const NUMBERS: Units = &[("", 1.0)];

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        let found = text.find(['<', '>', '=', '!']).map(|at| text.split_at(at));
        let (name, rest) = found.ok_or(EXPECTED)?;
        let comparisons = COMPARISONS.iter();
        let (value, [less, equal, greater]) = comparisons
            .filter_map(|(sign, results)| Some((rest.strip_prefix(sign)?, *results)))
            .next()
            .ok_or(EXPECTED)?;
        let (quantity, units) = match name.trim() {
            "size" => (Quantity::Size, SIZES),
            "lifetime" => (Quantity::Lifetime, TIMES),
            "thread" => (Quantity::Thread, NUMBERS),
            "site" => (Quantity::Site, NUMBERS),
            _ => return Err(EXPECTED.into()),
        };
        Ok(Condition {
            quantity,
            comparison: Comparison {
                less,
                equal,
                greater,
            },
            value: amount(value.trim(), units).ok_or(EXPECTED)?,
        })
    }
}

fn amount(text: &str, units: Units) -> Option<f64> {
    let is_unit = |letter: char| !letter.is_ascii_digit() && letter != '.';
    let (number, unit) = text.split_at(text.find(is_unit).unwrap_or(text.len()));
    let factor = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    Some(number.parse::<f64>().ok()? * factor)
}

impl Condition {
    /// Whether it holds for a block.
    pub fn holds(&self, sample: &Sample) -> bool {
        let value = match self.quantity {
            Quantity::Size => sample.requested_bytes as f64,
            Quantity::Lifetime => sample.death_ns.map_or(f64::INFINITY, |death| {
                death.saturating_sub(sample.birth_ns) as f64 / 1e9
            }),
            Quantity::Thread => f64::from(sample.birth_thread),
            Quantity::Site => f64::from(sample.site),
        };
        let comparison = self.comparison;
        (comparison.less && value < self.value)
            || (comparison.equal && value == self.value)
            || (comparison.greater && value > self.value)
    }
}

/// Keeps the blocks for which all conditions hold.
pub fn keep(recording: &mut Recording, conditions: &[Condition]) {
    if conditions.is_empty() {
        return;
    }
    recording
        .samples
        .retain(|sample| conditions.iter().all(|condition| condition.holds(sample)));
    // They are of all blocks.
    recording.snapshots.clear();
    forget_sums(recording);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_or_not() {
        let sample = Sample {
            requested_bytes: 4096,
            birth_ns: 1_000_000_000,
            death_ns: Some(3_500_000_000),
            birth_thread: 3,
            site: 7,
            ..Sample::default()
        };
        let lives = Sample {
            death_ns: None,
            ..sample
        };
        for (text, of_sample, of_living) in [
            ("size=4KiB", true, true),
            ("size != 4096", false, false),
            ("size<4096B", false, false),
            ("size<=0.5MiB", true, true),
            ("lifetime>2.5s", false, true),
            ("lifetime>=2.5s", true, true),
            ("lifetime<1h", true, false),
            ("lifetime < 2500ms", false, false),
            ("thread=3", true, true),
            ("thread>3", false, false),
            ("site=7", true, true),
            ("site!=7", false, false),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.holds(&sample), of_sample, "{text}");
            assert_eq!(condition.holds(&lives), of_living, "{text}");
        }
    }

    #[test]
    fn nonsense_is_told() {
        for text in [
            "",
            "size",
            "size<",
            "size<x",
            "<5",
            "weight>5",
            "size<5kg",
            "size=>5",
            "size==5",
            "lifetime>-1s",
            "thread=3s",
            "size<1<2",
            "size!5",
            "size<nan",
            "size<inf",
        ] {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
    }
}
