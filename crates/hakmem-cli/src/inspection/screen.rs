//! What `hakmem top` draws.

use std::time::Duration;

use hakmem_inspect::report::PartReport;
use hakmem_report::format::one_line;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Sparkline, Table};
use ratatui::Frame;

use super::slow;
use super::text;
use super::watch::{Look, Rates};
use super::words::{bytes, change, colour, number, rate, share};

/// How the parts are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As in the table of `inspect`.
    Table,
    /// The largest first.
    Resident,
    /// What has grown most first.
    Growth,
}

impl Order {
    /// The next one.
    pub fn next(self) -> Order {
        match self {
            Order::Table => Order::Resident,
            Order::Resident => Order::Growth,
            Order::Growth => Order::Table,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Order::Table => "kind",
            Order::Resident => "size",
            Order::Growth => "growth",
        }
    }
}

/// What is below the parts and the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// Nothing.
    Nothing,
    /// Call sites that hold most.
    Sites,
    /// Slow paths and locks.
    Cycles,
    /// Superslabs.
    Map,
}

/// What is on the screen.
#[derive(Clone, Debug)]
pub struct View {
    /// The first look: growth counts from here.
    pub begin: Look,
    /// The last one.
    pub look: Look,
    /// Between the last two.
    pub rates: Rates,
    /// Resident KiB of the last looks.
    pub history: Vec<u64>,
    /// The order of the parts.
    pub order: Order,
    /// What is below the rest.
    pub below: Below,
    /// What a key was answered with.
    pub message: Option<String>,
    /// Time between two looks.
    pub interval: Duration,
}

/// Why there are no call sites, and no cycles.
const NO_SAMPLES: &str = "No samples are taken: start the program with HAKMEM_SAMPLE_KIB=512";
const NO_CYCLES: &str = "Slow paths are not timed: start the program with HAKMEM_CYCLES=1";

/// Looks that are remembered.
const HISTORY: usize = 400;

impl View {
    /// The view of a first look.
    pub fn new(look: Look) -> View {
        let below = match (&look.sites[..], &look.report.cycles) {
            ([], None) => Below::Nothing,
            ([], Some(_)) => Below::Cycles,
            _ => Below::Sites,
        };
        View {
            begin: look.clone(),
            rates: Rates::default(),
            history: vec![look.report.rss_bytes / 1024],
            look,
            order: Order::Table,
            below,
            message: None,
            interval: Duration::from_secs(1),
        }
    }

    /// Shows it, or nothing if it is there already.
    pub fn toggle(&mut self, below: Below) {
        self.below = match self.below == below {
            true => Below::Nothing,
            false => below,
        };
        self.message = match below {
            Below::Sites if self.look.sites.is_empty() => Some(NO_SAMPLES.into()),
            Below::Cycles if self.look.report.cycles.is_none() => Some(NO_CYCLES.into()),
            _ => None,
        };
    }

    /// The next look.
    pub fn push(&mut self, look: Look) {
        self.rates = Rates::between(&self.look, &look);
        self.history.push(look.report.rss_bytes / 1024);
        if self.history.len() > HISTORY {
            self.history.remove(0);
        }
        self.look = look;
    }

    /// Resident bytes of a part now and at the beginning.
    fn growth(&self, part: &PartReport) -> (u64, u64) {
        (self.begin.report.resident(part.part), part.resident_bytes)
    }

    fn parts(&self) -> Vec<&PartReport> {
        let mut parts: Vec<&PartReport> = self.look.report.parts.iter().collect();
        parts.retain(|part| part.resident_bytes > 0 || self.growth(part).0 > 0);
        match self.order {
            Order::Table => {}
            Order::Resident => parts.sort_by_key(|part| std::cmp::Reverse(part.resident_bytes)),
            Order::Growth => parts.sort_by_key(|part| {
                let (before, now) = self.growth(part);
                std::cmp::Reverse(now as i128 - i128::from(before))
            }),
        }
        parts
    }
}

/// Draws everything.
pub fn draw(frame: &mut Frame, view: &View) {
    let parts = view.parts();
    let [head, curve, bar, table, calls, below, foot] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(3),
        Constraint::Length(2),
        Constraint::Length(parts.len() as u16 + 2),
        Constraint::Length(7),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_head(frame, head, view);
    draw_curve(frame, curve, view);
    draw_bar(frame, bar, view);
    draw_parts(frame, table, view, &parts);
    draw_calls(frame, calls, view);
    match view.below {
        Below::Nothing => {}
        Below::Sites => draw_sites(frame, below, view),
        Below::Cycles => draw_cycles(frame, below, view),
        Below::Map => draw_map(frame, below, view),
    }
    draw_foot(frame, foot, view);
}

fn colour_of(part: &PartReport) -> Color {
    Color::Indexed(colour(part.part).0)
}

fn draw_head(frame: &mut Frame, area: Rect, view: &View) {
    let report = &view.look.report;
    let who = format!(
        "{}  {}",
        report.source.pid.unwrap_or(0),
        report.source.command
    );
    let facts = format!(
        "hakmem {}, preset {}, {} thread heaps, {} threads, {} superslabs",
        report.library.version,
        report.settings.preset_name(),
        report.statistics.threads,
        view.look.usage.threads,
        report.superslabs
    );
    let seconds = view.look.at.duration_since(view.begin.at).as_secs();
    let memory = Line::from(vec![
        Span::from(bytes(report.rss_bytes)).bold(),
        Span::from(" resident, "),
        Span::from(change(view.begin.report.rss_bytes, report.rss_bytes)).bold(),
        Span::from(format!(
            " in {seconds} s; accounted for {}; read in {:.0} ms",
            share(report.accounted_bytes, report.rss_bytes),
            report.seconds * 1000.0
        )),
    ]);
    let lines = vec![
        Line::from(one_line(&who)).bold(),
        Line::from(facts).dim(),
        memory,
    ];
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_curve(frame: &mut Frame, area: Rect, view: &View) {
    let shown = view.history.len().saturating_sub(area.width as usize);
    let curve = Sparkline::default()
        .data(&view.history[shown..])
        .style(Style::new().fg(Color::Indexed(33)));
    frame.render_widget(curve, area);
}

/// All parts in one line.
fn draw_bar(frame: &mut Frame, area: Rect, view: &View) {
    let report = &view.look.report;
    let width = u128::from(area.width);
    let all = u128::from(report.accounted_bytes.max(1));
    let (mut before, mut cells) = (0, 0);
    let spans = report.parts.iter().map(|part| {
        before += u128::from(part.resident_bytes);
        let end = before * width / all;
        let length = (end - cells) as usize;
        cells = end;
        Span::styled("█".repeat(length), Style::new().fg(colour_of(part)))
    });
    let line = Line::from(spans.collect::<Vec<_>>());
    frame.render_widget(Paragraph::new(vec![Line::default(), line]), area);
}

fn draw_parts(frame: &mut Frame, area: Rect, view: &View, parts: &[&PartReport]) {
    let header = Row::new(["", "Part", "Resident", "Share", "Growth", "Blocks"]);
    let rows = parts.iter().map(|part| {
        let (before, now) = view.growth(part);
        let blocks = match part.blocks {
            0 => String::new(),
            blocks => blocks.to_string(),
        };
        Row::new([
            Span::styled("■", Style::new().fg(colour_of(part))).into(),
            Line::from(part.title),
            Line::from(bytes(part.resident_bytes)).right_aligned(),
            Line::from(share(part.resident_bytes, view.look.report.accounted_bytes))
                .right_aligned(),
            Line::from(if before == now {
                String::new()
            } else {
                change(before, now)
            })
            .right_aligned(),
            Line::from(blocks).right_aligned(),
        ])
    });
    let widths = [1, 26, 10, 8, 11, 12].map(Constraint::Length);
    let table = Table::new(rows, widths).header(header.dim());
    frame.render_widget(
        table,
        Rect {
            y: area.y + 1,
            height: area.height - 1,
            ..area
        },
    );
}

fn draw_calls(frame: &mut Frame, area: Rect, view: &View) {
    let header = Row::new(["Tier", "malloc", "free", "Hits", "Live", "Cached"]);
    let tiers = view.look.report.statistics.tiers.iter().enumerate();
    let rows = tiers.map(|(place, tier)| {
        let cells = [
            rate(view.rates.tier_mallocs_per_second[place]),
            rate(view.rates.tier_frees_per_second[place]),
            share(tier.malloc_hits, tier.malloc_calls),
            bytes(tier.live_bytes),
            bytes(tier.cached_bytes),
        ];
        let cells = cells.map(|cell| Line::from(cell).right_aligned());
        Row::new(std::iter::once(Line::from(tier.name)).chain(cells))
    });
    let widths = [8, 11, 11, 9, 11, 11].map(Constraint::Length);
    let [table, faults] =
        Layout::vertical([Constraint::Length(6), Constraint::Length(1)]).areas(area);
    frame.render_widget(Table::new(rows, widths).header(header.dim()), table);
    let line = format!(
        "page faults {}   system calls of hakmem {}   given back {}/s",
        rate(view.rates.page_faults_per_second),
        rate(view.rates.system_calls_per_second),
        bytes(view.rates.purged_bytes_per_second as u64)
    );
    frame.render_widget(Paragraph::new(line), faults);
}

fn draw_sites(frame: &mut Frame, area: Rect, view: &View) {
    let header = Row::new(["Live", "Blocks", "Allocated", "Call site"]);
    let rows = view.look.sites.iter().map(|site| {
        let figures = [
            bytes(site.live_bytes),
            number(site.live_blocks),
            bytes(site.allocated_bytes),
        ];
        let figures = figures.map(|figure| Line::from(figure).right_aligned());
        let owner = Line::from(one_line(&site.owner));
        Row::new(figures.into_iter().chain([owner]))
    });
    let widths = [
        Constraint::Length(10),
        Constraint::Length(11),
        Constraint::Length(10),
        Constraint::Min(20),
    ];
    frame.render_widget(Table::new(rows, widths).header(header.dim()), area);
}

fn draw_cycles(frame: &mut Frame, area: Rect, view: &View) {
    let text = match &view.look.report.cycles {
        Some(cycles) => slow::render(cycles),
        None => String::new(),
    };
    frame.render_widget(Paragraph::new(text.trim_start_matches('\n')), area);
}

fn draw_map(frame: &mut Frame, area: Rect, view: &View) {
    let style = text::Style {
        colour: false,
        superslabs: 0,
    };
    let superslabs = view
        .look
        .report
        .account
        .map
        .iter()
        .take(area.height as usize);
    let lines = superslabs.map(|superslab| {
        let line = text::line(superslab, &style);
        Line::from(format!("{:>12x} {line}", superslab.base))
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

fn draw_foot(frame: &mut Frame, area: Rect, view: &View) {
    let keys = format!(
        "q quit  s sort ({})  l sites  c cycles  m map  w profile  0 growth  +/- every {:.1} s",
        view.order.name(),
        view.interval.as_secs_f64()
    );
    let line = match &view.message {
        Some(message) => Line::from(message.as_str()).add_modifier(Modifier::REVERSED),
        None => Line::from(keys).dim(),
    };
    frame.render_widget(Paragraph::new(line), area);
}
