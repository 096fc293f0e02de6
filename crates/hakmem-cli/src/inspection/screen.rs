//! What `hakmem top` draws.

use std::time::Duration;

use hakmem_inspect::report::PartReport;
use hakmem_profile::units::shortened;
use hakmem_report::format::one_line;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};
use ratatui::Frame;

use super::fit::{draw_table, figure, whole_words, wrapped};
use super::parts::{draw_parts, scopes};
use super::slow;
use super::text::{self, count};
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
const NO_CYCLES: &str = "Slow paths are not timed: start the program by hakmem run --cycles";

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
    pub(super) fn growth(&self, part: &PartReport) -> (u64, u64) {
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

/// Rows of what is below, at least, before the calls are shown as well.
const BELOW: u16 = 6;

/// Draws everything, or, where the screen is small, what matters most.
pub fn draw(frame: &mut Frame, view: &View) {
    let area = frame.area();
    let parts = view.parts();
    let (head, foot) = (head(view, area.width), foot(view, area.width));
    let rows = parts.len() + scopes(&view.look.report).len();
    let fixed = [head.len() as u16, rows as u16 + 2, foot.len() as u16];
    let mut room = area.height.saturating_sub(fixed.iter().sum());
    let mut take = |rows: u16| {
        let taken = if rows <= room { rows } else { 0 };
        room -= taken;
        taken
    };
    if view.below != Below::Nothing {
        take(BELOW);
    }
    let [calls, bar, curve] = [7, 2, 3].map(take);
    let [head_area, curve, bar, table, calls, below, foot_area] = Layout::vertical([
        Constraint::Length(fixed[0]),
        Constraint::Length(curve),
        Constraint::Length(bar),
        Constraint::Length(fixed[1]),
        Constraint::Length(calls),
        Constraint::Min(0),
        Constraint::Length(fixed[2]),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(head), head_area);
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
    frame.render_widget(Paragraph::new(foot), foot_area);
}

pub(super) fn colour_of(part: &PartReport) -> Color {
    Color::Indexed(colour(part.part).0)
}

fn head(view: &View, width: u16) -> Vec<Line<'static>> {
    let report = &view.look.report;
    let who = format!(
        "{}  {}",
        report.source.pid.unwrap_or(0),
        report.source.command
    );
    let facts = [
        format!("hakmem {},", report.library.version),
        format!("preset {},", report.settings.preset_name()),
        count(report.statistics.threads, "thread heap") + ",",
        count(view.look.usage.threads, "thread") + ",",
        count(report.superslabs, "superslab"),
    ];
    let facts = facts.map(|fact| Span::from(fact).dim());
    let seconds = view.look.at.duration_since(view.begin.at).as_secs();
    let accounted = share(report.accounted_bytes, report.rss_bytes);
    let memory = vec![
        Span::from(bytes(report.rss_bytes)).bold(),
        Span::from("resident,"),
        Span::from(change(view.begin.report.rss_bytes, report.rss_bytes)).bold(),
        Span::from(format!("in {seconds} s;")),
        Span::from(format!("accounted for {accounted};")),
        Span::from(format!("read in {:.0} ms", report.seconds * 1000.0)),
    ];
    let who = shortened(&one_line(&who), usize::from(width.max(1)));
    let mut lines = vec![Line::from(who).bold()];
    lines.extend(wrapped(facts.to_vec(), " ", width));
    lines.extend(wrapped(memory, " ", width));
    lines
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

fn draw_calls(frame: &mut Frame, area: Rect, view: &View) {
    let tiers = view.look.report.statistics.tiers.iter().enumerate();
    let rows = tiers.map(|(place, tier)| {
        [
            Line::from(tier.name.to_string()),
            figure(rate(view.rates.tier_mallocs_per_second[place])),
            figure(rate(view.rates.tier_frees_per_second[place])),
            figure(share(tier.malloc_hits, tier.malloc_calls)),
            figure(bytes(tier.live_bytes)),
            figure(bytes(tier.cached_bytes)),
        ]
    });
    let columns = match area.width {
        ..66 => [(5, 0), (8, 0), (8, 0), (7, 1), (8, 0), (8, 2)],
        _ => [(8, 0), (11, 0), (11, 0), (9, 0), (11, 0), (11, 1)],
    };
    let [table, line] =
        Layout::vertical([Constraint::Length(6), Constraint::Length(1)]).areas(area);
    let titles = ["Tier", "malloc", "free", "Hits", "Live", "Cached"];
    draw_table(frame, table, titles, columns, rows.collect());
    let others = [
        ("page faults", rate(view.rates.page_faults_per_second)),
        (
            "system calls of hakmem",
            rate(view.rates.system_calls_per_second),
        ),
        (
            "given back",
            bytes(view.rates.purged_bytes_per_second as u64) + "/s",
        ),
    ];
    let others = others.map(|(name, figure)| Span::from(format!("{name} {figure}")));
    // Those that have no room are left out.
    let others = wrapped(others.to_vec(), "   ", area.width);
    frame.render_widget(Paragraph::new(others), line);
}

fn draw_sites(frame: &mut Frame, area: Rect, view: &View) {
    let rows = view.look.sites.iter().map(|site| {
        [
            figure(bytes(site.live_bytes)),
            figure(number(site.live_blocks)),
            figure(bytes(site.allocated_bytes)),
            Line::from(one_line(&site.owner)),
        ]
    });
    let titles = ["Live", "Blocks", "Allocated", "Call site"];
    let columns = [(10, 0), (11, 2), (10, 1), (20, 0)];
    draw_table(frame, area, titles, columns, rows.collect());
}

fn draw_cycles(frame: &mut Frame, area: Rect, view: &View) {
    let text = match &view.look.report.cycles {
        Some(cycles) => slow::render(cycles),
        None => String::new(),
    };
    let lines = text.trim_start_matches('\n').lines();
    let lines = lines.map(|line| Line::from(whole_words(line, area.width).to_string()));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

fn draw_map(frame: &mut Frame, area: Rect, view: &View) {
    let style = text::Style {
        colour: false,
        superslabs: 0,
        columns: Some(usize::from(area.width)),
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

fn foot(view: &View, width: u16) -> Vec<Line<'static>> {
    if let Some(message) = &view.message {
        let words = message.split(' ').map(|word| Span::from(word.to_string()));
        let lines = wrapped(words.collect(), " ", width).into_iter();
        return lines
            .map(|line| line.add_modifier(Modifier::REVERSED))
            .collect();
    }
    let keys = [
        "q quit".into(),
        format!("s sort ({})", view.order.name()),
        "l sites".into(),
        "c cycles".into(),
        "m map".into(),
        "w profile".into(),
        "0 growth".into(),
        format!("+/- every {:.1} s", view.interval.as_secs_f64()),
    ];
    let keys = keys.map(|key: String| Span::from(key).dim());
    wrapped(keys.to_vec(), "  ", width)
}
