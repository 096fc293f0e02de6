//! Ranges of addresses.

use std::ops::Range;

/// The same addresses in ranges that are in order and apart.
pub(crate) fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// What is left of a range without others, which are in order and apart.
pub(crate) fn without(range: Range<u64>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let first = others.partition_point(|other| other.end <= range.start);
    let mut rest = Vec::new();
    let mut start = range.start;
    for other in &others[first..] {
        if other.start >= range.end {
            break;
        }
        if start < other.start {
            rest.push(start..other.start);
        }
        start = start.max(other.end);
    }
    if start < range.end {
        rest.push(start..range.end);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_range() {
        let others = [10..20, 20..30, 40..50];
        assert_eq!(without(0..60, &others), [0..10, 30..40, 50..60]);
        assert_eq!(without(15..45, &others), vec![30..40]);
        assert_eq!(without(10..30, &others), Vec::<Range<u64>>::new());
        assert_eq!(without(50..51, &others), vec![50..51]);
    }

    #[test]
    fn ranges_that_meet_are_one() {
        let ranges = vec![30..40, 0..10, 10..20, 32..35, 38..41];
        assert_eq!(merged(ranges), [0..20, 30..41]);
    }
}
