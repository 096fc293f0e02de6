//! What more threads gain: the rate of a row over that of its sibling with fewer threads.
//!
//! Two rows of a series are measured one after the other, so a round of one has nothing to do with
//! a round of the other. But within a round of either, the arms come in random order. So the
//! difference of the logarithms of first / other in the two rows lies on either side of 0 alike if
//! both arms gain the same, and the same test serves that serves ratios.

use std::collections::BTreeMap;

use hakmem_results::{Arm, ArmKind, Metric, Ratio, Row, Scaling};

use crate::combine::{best_peer, confidence_of_best};
use crate::samples::log_ratios;
use crate::signed_rank;
use crate::verdict::judge;

/// Every pair of neighbouring numbers of threads of every series, in the order of the rows. The
/// verdicts are those of one table.
pub fn scaling(arms: &[Arm], rows: &[Row], confidence: f64) -> Vec<Scaling> {
    let mut table: Vec<Scaling> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let Some(series) = &row.series else { continue };
        let siblings = rows[..index].iter().filter_map(|sibling| {
            let other = sibling.series.as_ref()?;
            let is_fewer = other.name == series.name && other.threads < series.threads;
            is_fewer.then_some((other.threads, sibling))
        });
        if let Some((_, fewer)) = siblings.max_by_key(|(threads, _)| *threads) {
            table.extend(pair(arms, fewer, row, confidence));
        }
    }
    let ratios = table.iter_mut().filter_map(|pair| pair.ratio.as_mut());
    judge(&mut ratios.collect::<Vec<_>>());
    // The test is about what is needed, the table about what is gained.
    for pair in &mut table {
        pair.ratio = pair.ratio.as_ref().and_then(inverse);
    }
    table
}

/// The same the other way round; `None` where that is no number.
fn inverse(ratio: &Ratio) -> Option<Ratio> {
    let inverse = Ratio {
        ratio: 1.0 / ratio.ratio,
        low: 1.0 / ratio.high,
        high: 1.0 / ratio.low,
        ..*ratio
    };
    let parts = [inverse.ratio, inverse.low, inverse.high];
    parts.iter().all(|part| part.is_finite()).then_some(inverse)
}

/// Two rows of a series; `None` where nothing was measured in both. The ratio is as yet that of
/// the growth of time, so that below 1 the first arm is better.
fn pair(arms: &[Arm], fewer: &Row, more: &Row, confidence: f64) -> Option<Scaling> {
    let (fewer_series, series) = (fewer.series.as_ref()?, more.series.as_ref()?);
    let gains = arms.iter().filter_map(|arm| {
        let gain = rate(more, &arm.name)? / rate(fewer, &arm.name)?;
        gain.is_finite().then_some((arm.name.clone(), gain))
    });
    let gains: BTreeMap<String, f64> = gains.collect();
    let first = arms.first()?;
    let growth = |arm: &Arm| {
        let [more, fewer] =
            [more, fewer].map(|row| log_ratios(row, &first.name, &arm.name, Metric::Time));
        let rounds = more?.into_iter().zip(fewer?);
        Some(
            rounds
                .map(|(more, fewer)| more - fewer)
                .collect::<Vec<f64>>(),
        )
    };
    let peers = arms
        .iter()
        .skip(1)
        .filter(|arm| arm.kind != ArmKind::Control);
    let compared = |arm| Some((arm, growth(arm)?));
    let (peers, growths): (Vec<&Arm>, Vec<Vec<f64>>) = peers.filter_map(compared).unzip();
    let best = best_peer(&growths);
    let ratio = best
        .as_ref()
        .and_then(|best| signed_rank::ratio(&best.log_ratios, confidence_of_best(confidence)));
    (!gains.is_empty()).then(|| Scaling {
        series: series.name.clone(),
        fewer: fewer_series.threads,
        more: series.threads,
        gains,
        best: best.map(|best| peers[best.index].name.clone()),
        ratio,
    })
}

/// Operations a second of a row under an arm: the median of its rounds.
fn rate(row: &Row, arm: &str) -> Option<f64> {
    Some(row.measured(arm)?.operations_per_s?.median)
}
