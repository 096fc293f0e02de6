//! Live bytes over time, stacked by call site or by size.

use indexmap::IndexSet;

use crate::analysis::Analysis;
use crate::file::{Recording, Sample};

/// What the layers of a timeline are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layers {
    /// The functions that hold most at any moment, or at the end, and the others.
    Sites,
    /// Sizes of blocks.
    Sizes,
}

/// One layer: live bytes at each time.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Call site or size.
    pub name: String,
    /// Bytes, by the position in [`Timeline::times_ns`].
    pub bytes: Vec<f64>,
}

/// Live bytes over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Since the start of the recording.
    pub times_ns: Vec<u64>,
    /// The lowest first.
    pub layers: Vec<Layer>,
}

/// Layers with a name of their own, and how many of these hold most at the end.
const SITES: usize = 7;
const SITES_AT_END: usize = 3;

const SIZES: [(u64, &str); 5] = [
    (128, "up to 128 B"),
    (1024, "129 B to 1 KiB"),
    (32 << 10, "1 to 32 KiB"),
    (2 << 20, "32 KiB to 2 MiB"),
    (u64::MAX, "above 2 MiB"),
];

impl Timeline {
    /// The timeline at so many moments, that of the peak and that of the end among them.
    pub fn new(analysis: &Analysis, kind: Layers, moments: usize) -> Timeline {
        let duration = analysis.duration_ns().max(1);
        let moments = moments.max(2) as u64;
        let step =
            |index| (u128::from(duration) * u128::from(index) / u128::from(moments - 1)) as u64;
        let mut times_ns: Vec<u64> = (0..moments).map(step).collect();
        times_ns.push(analysis.since_start(analysis.peak_ns));
        times_ns.sort_unstable();
        times_ns.dedup();
        let (names, layer_of) = layers(analysis, kind, &times_ns);
        let mut timeline = Timeline {
            layers: names
                .into_iter()
                .map(|name| Layer {
                    name,
                    bytes: vec![0.0; times_ns.len()],
                })
                .collect(),
            times_ns,
        };
        for sample in &analysis.recording.samples {
            let layer = &mut timeline.layers[layer_of(sample)];
            add(&mut layer.bytes, &timeline.times_ns, sample, analysis);
        }
        for layer in &mut timeline.layers {
            // Changes become sums.
            let mut live = 0.0;
            for bytes in &mut layer.bytes {
                live += *bytes;
                *bytes = f64::max(live, 0.0);
            }
        }
        timeline
            .layers
            .retain(|layer| layer.bytes.iter().any(|bytes| *bytes > 0.0));
        timeline
    }
}

/// Adds the changes that a sample makes to live bytes.
fn add(bytes: &mut [f64], times_ns: &[u64], sample: &Sample, analysis: &Analysis) {
    let position = |time: u64| {
        let time = analysis.since_start(time);
        times_ns.partition_point(|moment| *moment < time)
    };
    if let Some(at) = bytes.get_mut(position(sample.birth_ns)) {
        *at += sample.weight_bytes;
    }
    let left = sample.left_ns().map(position);
    if let Some(at) = left.and_then(|left| bytes.get_mut(left)) {
        *at -= sample.weight_bytes;
    }
}

/// Names of layers, the last one that of all others, and the layer of each site.
fn owners(analysis: &Analysis, times_ns: &[u64]) -> (Vec<String>, Vec<Option<usize>>) {
    // Sites of one function are one layer.
    let mut names: IndexSet<String> = IndexSet::new();
    let mut numbers = vec![None; analysis.recording.sites.len().max(1)];
    for site in &analysis.sites {
        let owner = analysis.owner(site.site);
        numbers[site.site] = Some(names.insert_full(owner).0);
    }
    let owner_of = |sample: &Sample| numbers[sample.site as usize];
    let mut samples: Vec<&Sample> = analysis.recording.samples.iter().collect();
    samples.sort_by_key(|sample| owner_of(sample));
    let mut most_and_last = vec![(0.0, 0.0); names.len()];
    let mut changes = vec![0.0; times_ns.len()];
    for samples in samples.chunk_by(|a, b| owner_of(a) == owner_of(b)) {
        let Some(owner) = owner_of(samples[0]) else {
            continue;
        };
        changes.fill(0.0);
        for sample in samples {
            add(&mut changes, times_ns, sample, analysis);
        }
        let (mut live, mut most) = (0.0, 0.0);
        for change in &changes {
            live += change;
            most = f64::max(most, live);
        }
        most_and_last[owner] = (most, live);
    }
    let order = |value: &dyn Fn(usize) -> f64| {
        let mut order: Vec<usize> = (0..names.len())
            .filter(|owner| value(*owner) > 0.5)
            .collect();
        order.sort_by(|a, b| value(*b).total_cmp(&value(*a)));
        order
    };
    let by_most = order(&|owner| most_and_last[owner].0);
    let at_end = order(&|owner| most_and_last[owner].1);
    let mut shown: Vec<usize> = at_end.into_iter().take(SITES_AT_END).collect();
    for owner in &by_most {
        if shown.len() < SITES && !shown.contains(owner) {
            shown.push(*owner);
        }
    }
    // The largest one is the lowest.
    shown.sort_by_key(|owner| by_most.iter().position(|other| other == owner));
    let layer = |owner: usize| shown.iter().position(|other| *other == owner);
    let numbers = numbers.into_iter().map(|number| number.and_then(layer));
    let numbers = numbers.collect();
    let mut named: Vec<String> = shown.iter().map(|owner| names[*owner].clone()).collect();
    named.push("others".to_owned());
    (named, numbers)
}

type LayerOf = Box<dyn Fn(&Sample) -> usize>;

/// Names, and the layer of a sample.
fn layers(analysis: &Analysis, kind: Layers, times_ns: &[u64]) -> (Vec<String>, LayerOf) {
    match kind {
        Layers::Sizes => (
            SIZES.iter().map(|(_, name)| (*name).to_owned()).collect(),
            Box::new(|sample| {
                let fits = |(size, _): &(u64, &str)| sample.usable_bytes <= *size;
                SIZES.iter().position(fits).unwrap_or(SIZES.len() - 1)
            }),
        ),
        Layers::Sites => {
            let (names, numbers) = owners(analysis, times_ns);
            let others = names.len() - 1;
            (
                names,
                Box::new(move |sample| numbers[sample.site as usize].unwrap_or(others)),
            )
        }
    }
}

/// When most lived. Samples tell it to the moment; when they were thinned out, snapshots tell it
/// better.
pub(crate) fn find_peak(recording: &Recording) -> Option<u64> {
    if recording.header.thinned_samples > 0 && !recording.snapshots.is_empty() {
        let highest = recording
            .snapshots
            .iter()
            .max_by_key(|snapshot| snapshot.live);
        return highest.map(|snapshot| snapshot.time_ns);
    }
    let mut events: Vec<(u64, f64)> = Vec::new();
    for sample in &recording.samples {
        events.push((sample.birth_ns, sample.weight_bytes));
        if let Some(left) = sample.left_ns() {
            events.push((left, -sample.weight_bytes));
        }
    }
    // At one moment deaths come first: memory is used again.
    events.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let (mut live, mut most, mut peak) = (0.0, 0.0, None);
    for (time, change) in events {
        live += change;
        if live > most {
            (most, peak) = (live, Some(time));
        }
    }
    peak
}
