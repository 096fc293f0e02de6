//! What stands out, in plain sentences, the weightiest first.

use indexmap::IndexMap;

use crate::analysis::{Analysis, Lifetime, Measure, SiteFigures, SHORT_NS};
use crate::units::{bytes, duration, many, percent, share};
use crate::waterfall;

/// Estimates of fewer samples say little.
const ENOUGH_SAMPLES: u64 = 10;

/// One finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What is so.
    pub what: String,
    /// What one could do about it.
    pub advice: &'static str,
    /// Bytes that it is about.
    pub bytes: f64,
}

/// All that stands out.
pub fn find(analysis: &Analysis) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(holder(analysis));
    findings.extend(churn(analysis));
    findings.extend(temporary(analysis));
    findings.extend(growth(analysis));
    findings.extend(remote(analysis));
    findings.extend(realloc(analysis));
    findings.extend(rounding(analysis));
    findings.extend(overhead(analysis));
    findings.sort_by(|a, b| b.bytes.total_cmp(&a.bytes));
    findings
}

/// Sums by the function that holds the memory, each with the site of it that has most, most first:
/// sites differ in their callers alone.
fn by_owner(analysis: &Analysis, amount: impl Fn(&SiteFigures) -> f64) -> Vec<(f64, &SiteFigures)> {
    let mut owners: IndexMap<String, (f64, &SiteFigures)> = IndexMap::new();
    for site in &analysis.sites {
        let bytes = amount(site);
        if bytes <= 0.0 {
            continue;
        }
        let owner = owners.entry(analysis.owner(site.site));
        let (sum, most) = owner.or_insert((0.0, site));
        if bytes > amount(most) {
            *most = site;
        }
        *sum += bytes;
    }
    let mut owners: Vec<(f64, &SiteFigures)> = owners.into_values().collect();
    owners.sort_by(|a, b| b.0.total_cmp(&a.0));
    owners
}

fn holder(analysis: &Analysis) -> Option<Finding> {
    let peak = analysis.total(Measure::Peak).bytes;
    let owners = by_owner(analysis, |site| site.peak.bytes);
    let (most, site) = owners.first()?;
    let share = share(*most, peak, 0.0);
    (share >= 0.2).then(|| Finding {
        what: format!(
            "{} {} of the {} that lived came from {}.",
            match analysis.recording.header.is_look {
                true => "When it was looked at,".to_owned(),
                false => format!(
                    "At the peak, after {},",
                    duration(analysis.since_start(analysis.peak_ns) as f64)
                ),
            },
            percent(share),
            bytes(peak),
            analysis.owner_with_place(site.site)
        ),
        advice: "Memory that is saved there lowers the peak.",
        bytes: *most,
    })
}

fn churn(analysis: &Analysis) -> Option<Finding> {
    let all = analysis.total(Measure::Allocated);
    let short = analysis.total(Measure::Short);
    let owners = by_owner(analysis, |site| site.short.bytes);
    let (most, site) = owners.first()?;
    let share = share(short.bytes, all.bytes, 0.0);
    (share >= 0.2 && site.samples >= ENOUGH_SAMPLES).then(|| Finding {
        what: format!(
            "{} of all allocated bytes, {}, live under {}; {} of these come from {}.",
            percent(share),
            short.text_with_blocks(),
            duration(SHORT_NS as f64),
            percent(most / short.bytes),
            analysis.owner_with_place(site.site)
        ),
        advice: "A buffer that is kept, or on the stack, would save the calls.",
        bytes: short.bytes * 0.1,
    })
}

/// What a recording of every block tells.
fn temporary(analysis: &Analysis) -> Option<Finding> {
    let blocks = |site: &SiteFigures| site.temporary.map_or(0.0, |it| it.blocks);
    let all = analysis.total(Measure::Allocated).blocks;
    let owners = by_owner(analysis, blocks);
    let (most, site) = owners.first()?;
    let temporary: f64 = owners.iter().map(|(blocks, _)| blocks).sum();
    let share = share(temporary, all, 0.0);
    (share >= 0.2).then(|| Finding {
        what: format!(
            "{} of all {}, {}, are temporary: their thread frees them before it allocates \
             another; {} of these come from {}.",
            percent(share),
            many(all, "block"),
            many(temporary, "block"),
            percent(most / temporary),
            analysis.owner_with_place(site.site)
        ),
        advice: "A buffer that is kept, or on the stack, would save the calls.",
        bytes: analysis.total(Measure::Short).bytes * 0.1,
    })
}

/// What only grows: leaks, and caches without a bound.
fn growth(analysis: &Analysis) -> Vec<Finding> {
    let end = analysis.total(Measure::End).bytes;
    let seconds = analysis.duration_ns() as f64 / 1e9;
    let grows = |site: &&SiteFigures| {
        let half = seconds / 2.0;
        site.samples >= ENOUGH_SAMPLES
            && site.end.bytes >= 0.05 * end
            && site.growth_per_second * half >= 0.3 * site.end.bytes
            && site.median == Lifetime::Longer
    };
    // Of the sites of one function, the one with most stands for all.
    let owners = by_owner(analysis, |site| match grows(&site) {
        true => site.end.bytes,
        false => 0.0,
    });
    let sites = owners.into_iter().map(|(_, site)| site);
    let finding = |site: &SiteFigures| Finding {
        what: format!(
            "{} grew to the end, by {} a second, to {}, and hardly any of it was freed.",
            analysis.owner_with_place(site.site),
            bytes(site.growth_per_second),
            site.end.text_with_blocks()
        ),
        advice: "If it is not meant to be kept, it leaks.",
        bytes: site.end.bytes,
    };
    sites.take(3).map(finding).collect()
}

fn remote(analysis: &Analysis) -> Option<Finding> {
    let all: f64 = analysis.sites.iter().map(SiteFigures::freed).sum();
    let owners = by_owner(analysis, |site| site.freed() * site.remote_share);
    let part: f64 = owners.iter().map(|(bytes, _)| bytes).sum();
    let (_, site) = owners.first()?;
    let share = share(part, all, 0.0);
    (share >= 0.2 && site.samples >= ENOUGH_SAMPLES).then(|| Finding {
        what: format!(
            "{} of the freed bytes were freed by another thread than the one that allocated them, \
             most of those from {}.",
            percent(share),
            analysis.owner_with_place(site.site)
        ),
        advice: "Such blocks travel between threads' caches; batches make that cheap.",
        bytes: part * 0.05,
    })
}

fn realloc(analysis: &Analysis) -> Option<Finding> {
    let all = analysis.total(Measure::Allocated).bytes;
    let owners = by_owner(analysis, |site| site.freed() * site.realloc_share);
    let (most, site) = owners.first()?;
    let share = share(*most, all, 0.0);
    (share >= 0.15 && site.samples >= ENOUGH_SAMPLES).then(|| Finding {
        what: format!(
            "{} of all allocated bytes were outgrown by realloc, at {}.",
            percent(share),
            analysis.owner_with_place(site.site)
        ),
        advice: "If the final size is known, or can be guessed, reserve it at once.",
        bytes: most * 0.1,
    })
}

fn rounding(analysis: &Analysis) -> Option<Finding> {
    let held: f64 = analysis.sites.iter().map(SiteFigures::held_at_peak).sum();
    let owners = by_owner(analysis, |site| site.held_at_peak() - site.peak.bytes);
    let lost: f64 = owners.iter().map(|(bytes, _)| bytes).sum();
    let (_, site) = owners.first()?;
    let share = share(lost, held, 0.0);
    (share >= 0.12).then(|| Finding {
        what: format!(
            "{} of the blocks that lived at the peak, {}, are rounding to sizes of blocks, most at \
             {}.",
            percent(share),
            bytes(lost),
            analysis.owner_with_place(site.site)
        ),
        advice: "Sizes just above a power of two, or a quarter more, waste most.",
        bytes: lost,
    })
}

/// What the allocator holds beside live blocks.
fn overhead(analysis: &Analysis) -> Option<Finding> {
    let end = waterfall::at_end(analysis)?;
    let live = analysis.recording.snapshots.last()?.live as f64;
    let held = [
        "magazines",
        "transfer caches",
        "free in slabs",
        "free pages",
        "BigCache",
    ];
    let parts = end.steps.iter().filter(|step| held.contains(&step.name));
    let most = parts.clone().max_by(|a, b| a.bytes.total_cmp(&b.bytes))?;
    let sum: f64 = parts.map(|step| step.bytes).sum();
    (sum >= 0.3 * live && sum >= 4e6).then(|| Finding {
        what: format!(
            "At the end hakmem held {} of free memory beside {} of live blocks, most as: {} ({}).",
            bytes(sum),
            bytes(live),
            most.name,
            bytes(most.bytes)
        ),
        advice: "The preset lean keeps less; hakmem_purge() gives it back at a moment of choice.",
        bytes: sum,
    })
}
