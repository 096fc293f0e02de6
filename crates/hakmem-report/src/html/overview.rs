//! The top of the page: what came out, in words, and how to read the rest.

use hakmem_results::{Arm, ArmKind, Metric, Ratio, Verdict};
use hakmem_statistics::verdict::MARGIN;
use maud::{html, Markup};

use super::{example_class, heat_map, strength, verdict_class, Page};
use crate::format;
use crate::matrix::{Matrix, Mean, Tally, Versus};
use crate::summary;

pub fn render(page: &Page) -> Markup {
    let system = summary::peers(&page.file.arms).find(|arm| arm.kind == ArmKind::System);
    let best = page
        .time
        .columns
        .contains(&Versus::BestPeer)
        .then_some(Versus::BestPeer);
    let only = summary::peers(&page.file.arms).next().map(Versus::Arm);
    let mut against: Vec<Versus> = system.map(Versus::Arm).into_iter().chain(best).collect();
    if against.is_empty() {
        against.extend(only);
    }
    let metrics = [&page.time, &page.memory];
    html! {
        section #summary {
            div.tiles {
                @for matrix in metrics {
                    @for versus in &against { (tile(page, matrix, *versus)) }
                }
            }
            @if summary::has_ratios(page.file) {
                @if !page.time.groups.is_empty() { (noise(page)) }
                (how_to_read(page))
            }
        }
    }
}

fn tile(page: &Page, matrix: &Matrix, versus: Versus) -> Markup {
    match (matrix.single(versus), matrix.column(versus)) {
        (Some((ratio, arm)), _) => tile_of_row(page, matrix.metric, versus, &ratio, arm),
        (None, Some((mean, tally))) => tile_of_rows(page, matrix.metric, versus, mean, tally),
        (None, None) => html! {},
    }
}

fn tile_of_row(page: &Page, metric: Metric, versus: Versus, ratio: &Ratio, arm: &Arm) -> Markup {
    let than = match versus {
        Versus::BestPeer => format!("the best peer, {}", format::one_line(&arm.name)),
        Versus::Arm(arm) => format::one_line(&arm.name),
    };
    html! {
        div.tile {
            div class={ "figure " (verdict_class(ratio.verdict)) } {
                @match ratio.verdict {
                    Verdict::Better | Verdict::Worse => { (format::change(ratio.ratio)) " " }
                    Verdict::NoDifference | Verdict::Unclear | Verdict::TooFewRounds => {
                        (format::verdict(metric, ratio.verdict)) ", "
                    }
                }
                span { (format::need(metric)) }
            }
            div.than { (page.first) " against " (than) }
            div.note {
                "ratio " (format::ratio(ratio.ratio)) ", "
                (format::share(page.file.settings.confidence)) " interval "
                (format::ratio_interval(ratio))
            }
        }
    }
}

fn tile_of_rows(page: &Page, metric: Metric, versus: Versus, mean: Mean, tally: Tally) -> Markup {
    let parts = [
        (tally.better, Verdict::Better),
        (tally.same, Verdict::NoDifference),
        (tally.unclear, Verdict::Unclear),
        (tally.undecided, Verdict::TooFewRounds),
        (tally.worse, Verdict::Worse),
    ];
    let shown = || parts.iter().filter(|part| part.0 > 0);
    let word = |verdict: &Verdict| format::verdict(metric, *verdict);
    let than = match versus {
        Versus::BestPeer => "the best peer of each row".to_string(),
        Versus::Arm(_) => versus.title(),
    };
    html! {
        div.tile {
            div class={ "figure " (verdict_class(mean.ratio.verdict)) } {
                (format::change(mean.ratio.ratio)) " " span { (format::need(metric)) }
            }
            div.than { (page.first) " against " (than) }
            div.stack {
                @for (number, verdict) in shown() {
                    i class=(verdict_class(*verdict)) style={ "flex-grow:" (number) }
                        title={ (word(verdict)) " in " (format::count(*number, "row")) } {}
                }
            }
            div.counts {
                @for (number, verdict) in shown() {
                    span class=(verdict_class(*verdict)) { b { (number) } " " (word(verdict)) }
                }
            }
            div.note {
                "geometric mean " (format::ratio(mean.ratio.ratio)) ", "
                (format::share(page.file.settings.confidence)) " interval "
                (format::ratio_interval(&mean.ratio)) ", of "
                (format::count(mean.rows, "row")) (heat_map::missing(&mean))
            }
        }
    }
}

fn noise(page: &Page) -> Markup {
    let noise = |metric| summary::noise(page.file, metric);
    let (Some(time), Some(control)) = (noise(Metric::Time), summary::control(&page.file.arms))
    else {
        return html! {
            p.noise { b { "No control: " } (page.first) " was not compared with itself." }
        };
    };
    let text = |noise: summary::Noise| match noise.rows {
        1 => format::percent(noise.median),
        _ => format!(
            "{} (median of the rows; largest {})",
            format::percent(noise.median),
            format::percent(noise.largest)
        ),
    };
    html! {
        p.noise {
            b { "Noise. " }
            (page.first) " was also run against itself, as " (control.name)
            ". In time it is within " (text(time)) " of itself"
            @if let Some(memory) = noise(Metric::PeakRss) {
                "; in peak RSS, within " (text(memory))
            }
            "."
            @for alarm in summary::alarms(page.file) {
                " " b.alarm { "Alarm: it differs from itself in " (alarm.text()) "." }
            }
        }
    }
}

fn how_to_read(page: &Page) -> Markup {
    let examples = [0.5, 0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0];
    html! {
        div.key {
            div {
                b { "How to read a ratio. " }
                "It is " (page.first) " ÷ the other allocator, paired round by round. "
                "0.80 means that " (page.first) " needs 20% less; 1.25, that it needs 25% more. "
                "Without colour: no difference above "
                (format::share(MARGIN)) ", or none that the measurement can tell from noise."
            }
            div.scale {
                span.better { (page.first) " needs less" }
                @for ratio in examples {
                    i class=(example_class(ratio)) style=(strength(ratio)) {
                        (format::short_ratio(ratio))
                    }
                }
                span.worse { (page.first) " needs more" }
            }
        }
    }
}
