//! What lived between two moments that the reader of the page chooses: a flame graph that a script
//! draws, of the mean over that time.

use maud::{html, Markup, PreEscaped};
use serde_json::{json, Value};

use crate::analysis::Analysis;
use crate::file::{Sample, FRAMES_MAX};

/// The time is cut into so many steps.
const STEPS: usize = 120;
/// Call sites with a stack; the others are one.
const SITES: usize = 300;

/// Mean live bytes of each call site in each step, those first that held most.
fn means(analysis: &Analysis) -> Vec<(usize, Vec<f64>)> {
    let mut sites: Vec<(usize, Vec<f64>)> = Vec::new();
    let mut places = vec![None; analysis.recording.sites.len().max(1)];
    let step_ns = analysis.duration_ns().max(1) as f64 / STEPS as f64;
    for sample in &analysis.recording.samples {
        let Some(place) = places.get_mut(sample.site as usize) else {
            continue;
        };
        let place = *place.get_or_insert_with(|| {
            sites.push((sample.site as usize, vec![0.0; STEPS]));
            sites.len() - 1
        });
        add(analysis, sample, step_ns, &mut sites[place].1);
    }
    let sum = |means: &[f64]| means.iter().sum::<f64>();
    sites.sort_by(|a, b| sum(&b.1).total_cmp(&sum(&a.1)));
    sites
}

fn add(analysis: &Analysis, sample: &Sample, step_ns: f64, means: &mut [f64]) {
    let time = |ns: u64| analysis.since_start(ns) as f64 / step_ns;
    let from = time(sample.birth_ns);
    let to = sample.left_ns().map_or(STEPS as f64, time);
    let first = (from as usize).min(STEPS - 1);
    let last = (to.ceil() as usize).clamp(first + 1, STEPS);
    for (step, mean) in (first..last).zip(&mut means[first..last]) {
        let part = to.min((step + 1) as f64) - from.max(step as f64);
        *mean += sample.weight_bytes * part.max(0.0);
    }
}

/// Functions by number, stacks of these from the outermost on, and what they held in each step.
fn data(analysis: &Analysis) -> Value {
    let sites = means(analysis);
    let mut names: Vec<String> = vec!["other call sites".into(), "… deeper".into()];
    let mut numbers = std::collections::HashMap::new();
    let mut shown = Vec::new();
    for (site, means) in sites.iter().take(SITES) {
        let mut stack = Vec::new();
        let recorded = analysis.recording.sites.get(*site);
        if recorded.is_some_and(|site| site.frames.len() == FRAMES_MAX) {
            stack.push(1);
        }
        for frame in analysis.symbols.frames_of(*site).rev() {
            let number = numbers.entry(frame.brief()).or_insert_with_key(|name| {
                names.push(name.clone());
                names.len() - 1
            });
            stack.push(*number);
        }
        shown.push((stack, means.clone()));
    }
    if sites.len() > SITES {
        let mut rest = vec![0.0; STEPS];
        for (_, means) in &sites[SITES..] {
            rest.iter_mut()
                .zip(means)
                .for_each(|(sum, mean)| *sum += mean);
        }
        shown.push((vec![0], rest));
    }
    let whole = |means: &[f64]| means.iter().map(|mean| mean.round()).collect::<Vec<_>>();
    json!({
        "duration_ns": analysis.duration_ns(),
        "steps": STEPS,
        "names": names,
        "stacks": shown.iter().map(|(stack, _)| stack).collect::<Vec<_>>(),
        "live": shown.iter().map(|(_, means)| whole(means)).collect::<Vec<_>>(),
    })
}

/// The handles below the chart, and the graph; only scripts show them.
pub fn render(analysis: &Analysis) -> Markup {
    // No text in it may end the element.
    let data = data(analysis).to_string().replace('<', "\\u003c");
    html! {
        div #between hidden {
            div.handles {
                input type="range" min="0" max=(STEPS) value="0" aria-label="From";
                input type="range" min="0" max=(STEPS) value=(STEPS) aria-label="To";
            }
            p.note { "Between the handles, on average: " b {} }
            div.flamebox {
                svg.flame role="img" aria-label="What lived between the handles"
                    preserveAspectRatio="none" data-height="0" {}
            }
        }
        script #lived type="application/json" { (PreEscaped(data)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Header, Recording, Site};
    use crate::symbols::Symbols;

    fn analysis() -> Analysis {
        let sample = |site, birth_ns, death_ns, weight_bytes| Sample {
            site,
            birth_ns,
            death_ns,
            weight_bytes,
            count: 1,
            requested_bytes: 1,
            ..Sample::default()
        };
        let recording = Recording {
            header: Header {
                start_ns: 1000,
                last_ns: 1000 + 120 * 10,
                sample_mean_bytes: 1,
                ..Header::default()
            },
            sites: (0..3)
                .map(|number| Site {
                    frames: vec![number],
                    ..Site::default()
                })
                .collect(),
            samples: vec![
                // From the middle of the first step to that of the third; to the end; a moment.
                sample(1, 1005, Some(1025), 1000.0),
                sample(2, 1000 + 119 * 10, None, 500.0),
                sample(2, 1100, Some(1101), 100.0),
            ],
            ..Recording::default()
        };
        let symbols = Symbols {
            stacks: vec![vec![]; 3],
            ..Symbols::default()
        };
        Analysis::new(recording, symbols)
    }

    #[test]
    fn a_step_has_the_mean_of_its_time() {
        let means = means(&analysis());
        let sum = |step: usize| means.iter().map(|(_, means)| means[step]).sum::<f64>();
        assert_eq!([0, 1, 2, 3].map(sum), [500.0, 1000.0, 500.0, 0.0]);
        assert_eq!([10, 118, 119].map(sum).map(f64::round), [10.0, 0.0, 500.0]);
    }

    #[test]
    fn no_name_ends_the_data() {
        let page = render(&analysis()).into_string();
        let data = page.split("application/json\">").nth(1).unwrap();
        let data = data.strip_suffix("</script>").unwrap();
        assert!(!data.contains('<'));
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["live"][0].as_array().unwrap().len(), STEPS);
    }
}
