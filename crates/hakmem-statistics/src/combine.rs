//! From several ratios to one: the best of several peers, and the mean over rows. Both give a
//! logarithm per round again, so that the same test serves them.

use crate::signed_rank::estimate;

/// The peer that the first arm fares worst against.
#[derive(Clone, Debug, PartialEq)]
pub struct BestPeer {
    /// Which of the peers it is, by all rounds.
    pub index: usize,
    /// Of each round the logarithm of the ratio to the peer that the *other* half of the rounds
    /// chose. Its intervals are to be taken at [`confidence_of_best`].
    pub log_ratios: Vec<f64>,
}

/// The best of several peers, each given by its logarithms of first / peer, all with the same
/// number of rounds. `None` without any.
///
/// The largest of several estimates is too large: equal peers differ by noise, and the maximum
/// picks the noise out. So the odd rounds are judged by the peer that the even ones chose, and the
/// other way round: no round has a say in the choice of the peer that it judges.
pub fn best_peer(peers: &[Vec<f64>]) -> Option<BestPeer> {
    let index = choose(peers, |_| true)?;
    // One round alone leaves nothing to choose by.
    let by_the_others = [0, 1].map(|half| choose(peers, |round| round % 2 != half));
    let rounds = 0..peers[index].len();
    let log_ratio = |round: usize| peers[by_the_others[round % 2].unwrap_or(index)][round];
    Some(BestPeer {
        index,
        log_ratios: rounds.map(log_ratio).collect(),
    })
}

/// The level at which the interval of the best peer is computed so that it holds `confidence`: at
/// half of the error. Each half judges what the other chose, so that the two err together a
/// little more often than by chance.
pub fn confidence_of_best(confidence: f64) -> f64 {
    1.0 - (1.0 - confidence) / 2.0
}

/// The peer with the largest estimate over these rounds.
fn choose(peers: &[Vec<f64>], is_one: impl Fn(usize) -> bool) -> Option<usize> {
    let of_peer = |peer: &Vec<f64>| {
        let rounds = peer.iter().enumerate();
        let rounds = rounds.filter(|(round, _)| is_one(*round));
        estimate(&rounds.map(|(_, &it)| it).collect::<Vec<f64>>())
    };
    let estimates = peers.iter().map(of_peer).collect::<Option<Vec<f64>>>()?;
    (0..peers.len()).max_by(|&one, &other| estimates[one].total_cmp(&estimates[other]))
}

/// The geometric mean of rows, each given by its logarithms of first / other: of each round the
/// logarithm of its mean. A row with more rounds than another is cut into as many parts as that
/// one has rounds. Empty when there are no rows.
pub fn mean(rows: &[Vec<f64>]) -> Vec<f64> {
    let rounds = rows.iter().map(Vec::len).min().unwrap_or(0);
    let mut sums = vec![0.0; rounds];
    for row in rows {
        for (sum, part) in sums.iter_mut().zip(parts(row.len(), rounds)) {
            *sum += row[part.clone()].iter().sum::<f64>() / part.len() as f64;
        }
    }
    sums.into_iter()
        .map(|sum| sum / rows.len() as f64)
        .collect()
}

/// So many rounds, cut into this many parts of about the same length; none is empty.
fn parts(rounds: usize, most: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let count = rounds.min(most);
    (0..count).map(move |part| rounds * part / count..rounds * (part + 1) / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_every_round_once() {
        for (rounds, most) in [(0, 3), (1, 3), (7, 3), (10, 10), (31, 30), (1000, 30)] {
            let parts: Vec<_> = parts(rounds, most).collect();
            assert_eq!(parts.len(), rounds.min(most));
            assert!(parts.iter().all(|part| !part.is_empty()));
            let all: Vec<usize> = parts.into_iter().flatten().collect();
            assert_eq!(all, (0..rounds).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_mean_of_rows_of_unequal_length_uses_all_of_their_rounds() {
        let rows = [vec![1.0, 3.0], vec![1.0, 2.0, 3.0, 4.0, 5.0]];
        assert_eq!(mean(&rows), [(1.0 + 1.5) / 2.0, (3.0 + 4.0) / 2.0]);
        assert_eq!(mean(&[]), Vec::<f64>::new());
    }

    #[test]
    fn no_round_judges_the_peer_that_it_chose() {
        // The odd rounds speak for one peer and the even ones for the other.
        let peers = [vec![0.9, 0.0, 0.9, 0.0], vec![0.1, 0.2, 0.1, 0.2]];
        let best = best_peer(&peers).unwrap();
        assert_eq!(best.index, 0);
        assert_eq!(best.log_ratios, [0.1, 0.0, 0.1, 0.0]);
        assert_eq!(best_peer(&[]), None);
        assert_eq!(
            best_peer(&[vec![0.3], vec![0.5]]).unwrap().log_ratios,
            [0.5]
        );
    }
}
