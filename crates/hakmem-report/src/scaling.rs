//! What more threads gain: the cells of the table that several formats have.

use hakmem_results::{Arm, Scaling, Verdict};

use crate::format;

/// Heading of the table.
pub const TITLE: &str = "More threads: calls per second over those with fewer";

/// The numbers of threads that are compared: `1 → 2`.
pub fn threads(pair: &Scaling) -> String {
    format!("{} → {}", pair.fewer, pair.more)
}

/// What an arm gains: `1.94`.
pub fn gain(pair: &Scaling, arm: &str) -> String {
    let gain = pair.gains.get(arm);
    gain.map_or_else(
        || format::NOTHING.to_string(),
        |&gain| format::short_ratio(gain),
    )
}

/// What the best of the others gains, and its name: `1.97 (rpmalloc)`.
pub fn best(pair: &Scaling) -> String {
    match &pair.best {
        Some(arm) => format!("{} ({})", gain(pair, arm), format::one_line(arm)),
        None => format::NOTHING.to_string(),
    }
}

/// The gain of the first arm over that of the best, with a mark. As everywhere, ▲ is bad: unlike
/// elsewhere, that is where the ratio is below 1.
pub fn against_best(pair: &Scaling) -> String {
    let ratio = pair.ratio.as_ref();
    ratio.map_or_else(|| format::NOTHING.to_string(), format::marked)
}

/// The verdict as a predicate of the first arm: "hakmem …".
pub fn verdict(pair: &Scaling) -> &'static str {
    match pair.ratio.map(|ratio| ratio.verdict) {
        Some(Verdict::Better) => "gains more",
        Some(Verdict::Worse) => "gains less",
        Some(Verdict::NoDifference) => "no difference",
        Some(Verdict::Unclear) => "unclear",
        Some(Verdict::TooFewRounds) => "too few rounds",
        None => format::NOTHING,
    }
}

/// How to read the table.
pub fn explanation(first: &Arm) -> String {
    let first = format::one_line(&first.name);
    format!(
        "The ratio is what {first} gains over what the best gains: 0.80 means that the same \
         threads gain it 20% less."
    )
}
