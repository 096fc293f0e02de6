//! Call sites, or samples, as CSV: bytes, blocks, seconds and shares, without units in the cells.

use crate::analysis::{Analysis, Measure, SiteFigures};
use crate::difference::Difference;

/// One line a call site.
pub fn render(analysis: &Analysis) -> String {
    let mut table = Table::new(
        "site,function,place,peak_bytes,peak_blocks,end_bytes,end_blocks,allocated_bytes,\
         allocated_blocks,short_bytes,samples,median_lifetime_s,p99_lifetime_s,remote_share,\
         realloc_share,growth_bytes_per_s,requested_share,stack,peak_error_bytes,end_error_bytes,\
         allocated_error_bytes,short_error_bytes,temporary_blocks\n",
    );
    for site in &analysis.sites {
        table.row(&cells(analysis, site));
    }
    table.finish()
}

fn cells(analysis: &Analysis, site: &SiteFigures) -> Vec<String> {
    let number = |value: f64| format!("{value:.0}");
    let share = |value: f64| format!("{value:.4}");
    let seconds = |ns: Option<f64>| ns.map_or(String::new(), |ns| format!("{:.9}", ns / 1e9));
    let owner = analysis.symbols.owner(site.site);
    let errors = Measure::ALL
        .iter()
        .map(|it| number(site.amount(*it).error()));
    let cells = [
        site.site.to_string(),
        analysis.owner(site.site),
        owner.and_then(|frame| frame.place()).unwrap_or_default(),
        number(site.peak.bytes),
        number(site.peak.blocks),
        number(site.end.bytes),
        number(site.end.blocks),
        number(site.allocated.bytes),
        number(site.allocated.blocks),
        number(site.short.bytes),
        site.samples.to_string(),
        seconds(site.median.ns()),
        seconds(site.p99.ns()),
        share(site.remote_share),
        share(site.realloc_share),
        number(site.growth_per_second),
        share(site.requested_share),
        stack(analysis, site.site),
    ];
    let temporary = site.temporary.map(|it| number(it.blocks));
    let temporary = std::iter::once(temporary.unwrap_or_default());
    cells.into_iter().chain(errors).chain(temporary).collect()
}

/// One line a sample, in the order of their births.
pub fn render_samples(analysis: &Analysis) -> String {
    let mut table = Table::new(
        "site,function,born_s,lifetime_s,requested_bytes,usable_bytes,estimated_bytes,\
         estimated_blocks,samples,thread,freed_by_thread,by_realloc,stack\n",
    );
    let mut samples: Vec<_> = analysis.recording.samples.iter().collect();
    samples.sort_by_key(|sample| sample.birth_ns);
    let seconds = |ns: u64| format!("{:.9}", ns as f64 / 1e9);
    for sample in samples {
        let site = sample.site as usize;
        let freed = |cell: String| sample.death_ns.map_or(String::new(), |_| cell);
        let lived_ns = sample.death_ns.unwrap_or(0).saturating_sub(sample.birth_ns);
        table.row(&[
            site.to_string(),
            analysis.owner(site),
            seconds(analysis.since_start(sample.birth_ns)),
            freed(seconds(lived_ns)),
            sample.requested_bytes.to_string(),
            sample.usable_bytes.to_string(),
            format!("{:.0}", sample.weight_bytes),
            format!("{:.2}", sample.blocks()),
            sample.count.to_string(),
            sample.birth_thread.to_string(),
            freed(sample.death_thread.to_string()),
            freed(u8::from(sample.realloc).to_string()),
            stack(analysis, site),
        ]);
    }
    table.finish()
}

fn stack(analysis: &Analysis, site: usize) -> String {
    let frames = analysis.symbols.frames_of(site);
    let names: Vec<&str> = frames.map(|frame| frame.function.as_str()).collect();
    names.join(" < ")
}

/// One line a call site and measure that differ.
pub fn render_difference(difference: &Difference) -> String {
    let mut table = Table::new("measure,function,before_bytes,after_bytes,error_bytes,stack\n");
    for &measure in Measure::ALL {
        for row in difference.rows(measure) {
            table.row(&[
                measure.name().to_owned(),
                row.stack.first().cloned().unwrap_or_default(),
                format!("{:.0}", row.before),
                format!("{:.0}", row.after),
                format!("{:.0}", row.error),
                row.stack.join(" < "),
            ]);
        }
    }
    table.finish()
}

/// CSV in memory, where writing cannot fail.
struct Table(::csv::Writer<Vec<u8>>);

impl Table {
    /// With its first line.
    fn new(header: &str) -> Table {
        Table(::csv::Writer::from_writer(header.into()))
    }

    /// What spreadsheets take for a formula, as a module called `=cmd|...`, becomes text.
    fn row(&mut self, cells: &[String]) {
        let is_formula =
            |cell: &str| cell.starts_with(['=', '+', '-', '@']) && cell.parse::<f64>().is_err();
        let cells = cells.iter().map(|cell| match is_formula(cell) {
            true => format!("'{cell}"),
            false => cell.clone(),
        });
        let _ = self.0.write_record(cells);
    }

    fn finish(self) -> String {
        let bytes = self.0.into_inner().unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_no_formulas() {
        let mut table = Table::new("a,b\n");
        let cells = ["=cmd|x", "-17", "-x", "@sum", "a=b", "+1.5"].map(str::to_owned);
        table.row(&cells);
        assert_eq!(table.finish(), "a,b\n'=cmd|x,-17,'-x,'@sum,a=b,+1.5\n");
    }
}
