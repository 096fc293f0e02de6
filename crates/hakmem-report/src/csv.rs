//! The figures as CSV for other programs: one line per row, arm and metric.

use ::csv::WriterBuilder;
use hakmem_results::{Metric, Outcome, ResultFile, Verdict};
use serde::Serialize;

use crate::format;

/// One line. Values are in `unit`, unrounded; the ratio is first arm / this arm.
#[derive(Default, Serialize)]
struct Line<'a> {
    row: &'a str,
    arm: &'a str,
    metric: Option<Name>,
    unit: &'a str,
    median: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    p: Option<f64>,
    verdict: Option<Verdict>,
    error: &'a str,
}

/// What a line is about.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum Name {
    Metric(Metric),
    Rate(&'static str),
}

/// The name of operations a second, which are no metric: more of them is better.
const RATE: Name = Name::Rate("operations_per_s");

/// It stands apart, because it shall be there without any record, too.
const HEADER: &str = "\
    row,arm,metric,unit,median,low,high,ratio,ratio_low,ratio_high,p,verdict,error\n";

/// The file as CSV with a header. A cell without figures, and a row that was not run, are one
/// line each with the reason in `error`.
pub fn render(file: &ResultFile) -> String {
    let mut writer = WriterBuilder::new()
        .has_headers(false)
        .from_writer(HEADER.as_bytes().to_vec());
    for line in lines(file) {
        writer
            .serialize(line)
            .expect("writing a flat record to memory cannot fail");
    }
    let bytes = writer.into_inner().expect("flushing to memory cannot fail");
    String::from_utf8(bytes).expect("every field is UTF-8")
}

fn lines(file: &ResultFile) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for row in &file.rows {
        if let Some(reason) = &row.skipped {
            lines.push(Line {
                row: &row.name,
                error: reason,
                ..Line::default()
            });
        }
        for cell in &row.cells {
            let base = || Line {
                row: &row.name,
                arm: &cell.arm,
                ..Line::default()
            };
            match &cell.outcome {
                Outcome::Error(reason) => lines.push(Line {
                    error: reason,
                    ..base()
                }),
                Outcome::Measured(measured) => {
                    lines.extend(measured.figures.iter().map(|(&metric, figure)| {
                        let ratio = measured.ratios.get(&metric);
                        Line {
                            metric: Some(Name::Metric(metric)),
                            unit: format::base_unit(metric),
                            median: Some(figure.median),
                            low: Some(figure.low),
                            high: Some(figure.high),
                            ratio: ratio.map(|ratio| ratio.ratio),
                            ratio_low: ratio.map(|ratio| ratio.low),
                            ratio_high: ratio.map(|ratio| ratio.high),
                            p: ratio.and_then(|ratio| ratio.p),
                            verdict: ratio.map(|ratio| ratio.verdict),
                            ..base()
                        }
                    }));
                    lines.extend(measured.operations_per_s.iter().map(|rate| Line {
                        metric: Some(RATE),
                        unit: "1/s",
                        median: Some(rate.median),
                        low: Some(rate.low),
                        high: Some(rate.high),
                        ..base()
                    }));
                }
            }
        }
    }
    lines
}
