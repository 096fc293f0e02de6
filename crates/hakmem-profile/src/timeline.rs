//! Live bytes over time, stacked by call site or by size.

use crate::analysis::Analysis;
use crate::file::Sample;

/// What the layers of a timeline are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layers {
    /// The sites with most at the peak, and the others.
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

/// Layers with a name of their own.
const SITES: usize = 7;

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
        let (names, layer_of) = layers(analysis, kind);
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
            let layer = layer_of(sample);
            timeline.add(layer, sample, analysis);
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

    fn add(&mut self, layer: usize, sample: &Sample, analysis: &Analysis) {
        let position = |time: u64| {
            let time = analysis.since_start(time);
            self.times_ns.partition_point(|moment| *moment < time)
        };
        let birth = position(sample.birth_ns);
        let death = sample.death_ns.map(position);
        let bytes = &mut self.layers[layer].bytes;
        if let Some(at) = bytes.get_mut(birth) {
            *at += sample.weight_bytes;
        }
        if let Some(at) = death.and_then(|death| bytes.get_mut(death)) {
            *at -= sample.weight_bytes;
        }
    }
}

type LayerOf = Box<dyn Fn(&Sample) -> usize>;

/// Names, and the layer of a sample.
fn layers(analysis: &Analysis, kind: Layers) -> (Vec<String>, LayerOf) {
    match kind {
        Layers::Sizes => (
            SIZES.iter().map(|(_, name)| (*name).to_owned()).collect(),
            Box::new(|sample| {
                let fits = |(size, _): &(u64, &str)| sample.usable_bytes <= *size;
                SIZES.iter().position(fits).unwrap_or(SIZES.len() - 1)
            }),
        ),
        Layers::Sites => {
            // Sites of one function are one layer.
            let mut names: Vec<String> = Vec::new();
            let mut numbers = vec![None; analysis.recording.sites.len().max(1)];
            for site in &analysis.sites {
                let owner = analysis.owner(site.site);
                let known = names.iter().position(|name| *name == owner);
                numbers[site.site] = known.or_else(|| {
                    (names.len() < SITES && site.peak.bytes > 0.0).then(|| {
                        names.push(owner);
                        names.len() - 1
                    })
                });
            }
            let others = names.len();
            names.push("others".to_owned());
            (
                names,
                Box::new(move |sample| numbers[sample.site as usize].unwrap_or(others)),
            )
        }
    }
}
