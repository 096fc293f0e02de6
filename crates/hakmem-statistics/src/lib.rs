//! What the samples of an experiment allow to say.
//!
//! Two arms are compared round by round: what slows a round down as a whole hits both and cancels
//! out in the logarithm of their ratio. Within a round the order is drawn at random, so two arms
//! that cost the same give logarithms that lie as often and as far below 0 as above it, whatever
//! the noise of either looks like. That is all that a signed-rank test assumes: its errors are
//! known exactly, also where one arm is noisier than the other.
//!
//! | Module | Question |
//! |---|---|
//! | [`signed_rank`] | How large is a ratio, how well is it known? |
//! | [`median`] | How large is a figure, how well is it known? |
//! | [`verdict`] | Is that a difference, alone and among all of a table? |
//! | [`samples`] | What do the rounds of a row say, by arm and metric? |
//! | [`combine`] | How do rows, and the best of several peers, come to one ratio? |
//! | [`assess`] | All of this for the rows of a result file. |
//! | [`scaling`] | What do more threads gain, compared with what others gain? |
//!
//! Nothing here is random and nothing knows of programs or of time.

pub mod assess;
pub mod combine;
pub mod median;
pub mod samples;
pub mod scaling;
pub mod signed_rank;
pub mod verdict;

/// The largest `count` up to `most` whose probability is at most `bound`. `None` when not even
/// that of 0 is. The probability must not fall with the count.
fn largest_within(bound: f64, most: u64, probability: impl Fn(u64) -> f64) -> Option<u64> {
    if probability(0) > bound {
        return None;
    }
    // Within at `low`; beyond above `high`.
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if probability(middle) <= bound {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(low)
}
