//! The curve: how the rows would scale, as a picture.

use std::error::Error;

use plotters::prelude::*;

use crate::simulation::Prediction;

const SIZE: (u32, u32) = (900, 620);

/// So many rows may get a colour and a name.
const NAMED: usize = 8;

/// Rows that come nearer than this to what as many cores can do are grey: they go up together.
const NEAR: f64 = 0.9;

const GREY: RGBColor = RGBColor(176, 176, 176);

/// Distinct for most people who see colours otherwise (Okabe and Ito), but for the yellow, which is
/// too light on white.
const COLOURS: [RGBColor; NAMED] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(117, 76, 36),
    RGBColor(0, 0, 0),
];

/// Draws the speed of rows on many cores against one, as SVG. The slowest ones are named.
///
/// # Errors
/// The picture cannot be drawn.
pub fn draw(predictions: &[Prediction]) -> Result<String, Box<dyn Error + Send + Sync>> {
    let mut text = String::new();
    draw_into(&mut text, predictions).map_err(|error| error.to_string())?;
    Ok(text)
}

/// The most cores of all predictions, and the least speed.
fn extent(predictions: &[Prediction]) -> (usize, f64) {
    let most = predictions.iter().map(|one| last(one).0).max();
    let speedups = predictions
        .iter()
        .flat_map(|one| one.speedups.iter().map(|it| it.1));
    (most.unwrap_or(1).max(2), speedups.fold(1.0, f64::min))
}

/// Where the axes have figures.
fn powers_of_two(most: usize) -> Vec<f64> {
    let powers = -4..=most.ilog2() as i32;
    powers.map(|power| f64::from(power).exp2()).collect()
}

fn draw_into(text: &mut String, predictions: &[Prediction]) -> Result<(), Box<dyn Error>> {
    let mut sorted: Vec<&Prediction> = predictions.iter().collect();
    sorted.sort_by(|one, other| last(one).1.total_cmp(&last(other).1));
    let (most, slowest) = extent(predictions);
    let powers = powers_of_two(most);
    let (least, end) = (slowest * 0.9, most as f64 * 1.05);

    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("Predicted speed against one core", ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(
            (1.0..end).log_scale().with_key_points(powers.clone()),
            (least..end).log_scale().with_key_points(powers),
        )?;
    chart
        .configure_mesh()
        .x_desc("cores")
        .y_desc("times as fast")
        .x_label_formatter(&|value| format!("{value:.0}"))
        .y_label_formatter(&|value| value.to_string())
        .label_style(("sans-serif", 14))
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.4))
        .draw()?;

    chart
        .draw_series(DashedLineSeries::new(
            [(1.0, 1.0), (most as f64, most as f64)],
            6,
            4,
            BLACK.mix(0.6).stroke_width(1),
        ))?
        .label("as many times as there are cores")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], BLACK.mix(0.6)));
    let behind = |one: &&Prediction| last(one).1 < NEAR * last(one).0 as f64;
    let named = sorted.iter().copied().filter(behind).take(NAMED).count();
    let (named, others) = sorted.split_at(named);
    for one in others {
        chart.draw_series(LineSeries::new(points(one), GREY.stroke_width(1)))?;
    }
    for (one, colour) in named.iter().zip(COLOURS) {
        chart
            .draw_series(LineSeries::new(points(one), colour.stroke_width(2)))?
            .label(&one.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    if !others.is_empty() {
        chart
            .draw_series(LineSeries::new([(1.0, 1.0)], GREY))?
            .label(format!("{} other rows", others.len()))
            .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], GREY));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .margin(10)
        .label_font(("sans-serif", 14))
        .background_style(WHITE.mix(0.85))
        .border_style(GREY)
        .draw()?;
    area.present()?;
    drop(chart);
    Ok(())
}

fn points(one: &Prediction) -> Vec<(f64, f64)> {
    let point = |&(cores, speedup): &(usize, f64)| (cores as f64, speedup);
    one.speedups.iter().map(point).collect()
}

fn last(one: &Prediction) -> (usize, f64) {
    one.speedups.last().copied().unwrap_or((1, 1.0))
}
