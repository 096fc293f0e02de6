//! How often the error of an estimate covers the truth: of programs as they are drawn here.

use super::*;

const PAGE: f64 = 4096.0;

/// Random numbers in (0, 1] (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((word ^ (word >> 31)) >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

/// What a program has kept: of so many blocks of each size one of `every`, by sites that have these
/// parts of them.
struct Program<'a> {
    sizes: &'a [(usize, usize)],
    every: f64,
    shares: &'a [f64],
}

/// So many blocks of sizes up to that, most of them short.
fn many_sizes(longest: f64, blocks: usize) -> Vec<(usize, usize)> {
    let mut sizes = BTreeMap::<usize, usize>::new();
    for step in 0..1000 {
        let size = 16.0 + longest * (f64::from(step) / 1000.0).powi(3);
        let unit = size.log2().floor().exp2() / 4.0;
        *sizes
            .entry(((size / unit).ceil() * unit) as usize)
            .or_default() += blocks / 1000;
    }
    sizes.into_iter().collect()
}

/// The kind of a page on which so many live, and what each of them holds.
fn hold(size: f64, live: f64) -> (usize, Held) {
    let alone = if live == 1.0 { ALONE } else { 0 };
    let sparse = if live * size * 2.0 < PAGE { SPARSE } else { 0 };
    let pinned = (PAGE - live * size) / live;
    (alone + sparse, Held { live: size, pinned })
}

fn chance(size: usize, mean: f64) -> f64 {
    -(-(size as f64) / mean).exp_m1()
}

/// Adds the blocks of a page, their sites and whether they are sampled, to what is told and to what
/// each site truly pins.
fn add_page(page: &[(usize, bool)], size: usize, mean: f64, pins: &mut Pins, truth: &mut [f64]) {
    let live = page.iter().filter(|(_, sampled)| !sampled).count() as f64;
    for &(site, sampled) in page {
        if sampled {
            let (kind, held) = hold(size as f64, live + 1.0);
            let mut sample = SamplePins {
                site: site as u64,
                size_class: size,
                others: 1.0 / chance(size, mean) - 1.0,
                ..SamplePins::default()
            };
            sample.other[kind] = held;
            pins.samples.push(sample);
            continue;
        }
        let (kind, held) = hold(size as f64, live);
        truth[site] += held.pinned;
        let class = pins.classes.entry(size).or_default();
        class.size = size as u64;
        class.blocks += 1;
        class.hold[kind].live += held.live;
        class.hold[kind].pinned += held.pinned;
    }
}

/// What is told of a program, and what each site truly pins.
fn draw(program: &Program, mean: f64, random: &mut Random) -> (Pins, Vec<f64>) {
    let (mut pins, mut truth) = (Pins::default(), vec![0.0; program.shares.len()]);
    for &(size, blocks) in program.sizes {
        let (mut page, mut number, mut block) = (Vec::new(), 0, 0);
        while block < blocks {
            block += 1 + (random.next().ln() / (-1.0 / program.every).ln_1p()) as usize;
            let next = block * size / PAGE as usize;
            if next != number || block >= blocks {
                add_page(&page, size, mean, &mut pins, &mut truth);
                (number, page) = (next, Vec::new());
            }
            let mut share = random.next();
            let is_of = |part: &f64| {
                share -= part;
                share <= 0.0
            };
            let site = program.shares.iter().position(is_of).unwrap_or(0);
            page.push((site, random.next() <= chance(size, mean)));
        }
    }
    (pins, truth)
}

#[test]
fn what_sites_pin_is_within_the_error_of_95_of_100_estimates() {
    const ROUNDS: u32 = 400;
    let mut random = Random(7);
    let (many, small, mid) = (many_sizes(4000.0, 50_000), [(64, 1 << 17)], [(512, 25_000)]);
    let programs: [(&[_], f64, &[f64], f64); 11] = [
        (&many, 20.0, &[1.0], 64.0),
        (&many, 20.0, &[0.7, 0.3], 64.0),
        (&many, 20.0, &[0.4, 0.3, 0.2, 0.1], 16.0),
        (&small, 64.0, &[1.0], 2.0),
        (&small, 64.0, &[1.0], 64.0),
        (&small, 40.0, &[0.7, 0.3], 8.0),
        (&small, 40.0, &[0.7, 0.3], 64.0),
        (&small, 40.0, &[0.9, 0.1], 16.0),
        (&mid, 9.0, &[0.7, 0.3], 8.0),
        (&mid, 9.0, &[0.7, 0.3], 64.0),
        (&mid, 9.0, &[0.9, 0.1], 64.0),
    ];
    let mut all = (0, 0);
    for (sizes, every, shares, mean_kib) in programs {
        let program = Program {
            sizes,
            every,
            shares,
        };
        // Of each site: how often there is an estimate of it, and how often the truth is within.
        let mut counts = vec![(0, 0); shares.len()];
        for _ in 0..ROUNDS {
            let (pins, truth) = draw(&program, mean_kib * 1024.0, &mut random);
            let sites = estimates(&pins, mean_kib * 1024.0);
            for (site, (told, right)) in counts.iter_mut().enumerate() {
                if let Some(estimate) = sites.get(&(site as u64)) {
                    let off = estimate.pinned.bytes - truth[site];
                    *told += 1;
                    *right += u32::from(off.abs() <= estimate.pinned.error());
                }
            }
        }
        for (site, (told, right)) in counts.into_iter().enumerate() {
            let what = format!(
                "{} sizes, {mean_kib} KiB, {site} of {shares:?}",
                sizes.len()
            );
            assert!(right * 100 >= told * 92, "{what}: {right} of {told}");
            all = (all.0 + told, all.1 + right);
        }
    }
    assert!(all.1 * 100 >= all.0 * 95, "{} of {}", all.1, all.0);
}
