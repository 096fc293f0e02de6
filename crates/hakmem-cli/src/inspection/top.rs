//! `hakmem top`: a process, again and again.

use std::io::{stdout, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hakmem_inspect::part::Part;
use hakmem_inspect::Error;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::style::Color;
use ratatui::DefaultTerminal;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::live::{write_beside, NamedSite, Names};
use super::pinned;
use super::screen::{draw, Below, Order, View};
use super::text;
use super::watch::{Look, Rates, Watch};
use super::words::{bytes, rate, share};
use super::SITES;
use crate::cli::TopArguments;
use crate::interrupt::is_ignored;
use crate::locale::{ascii, has_colours, is_plain, spelt};
use crate::output::{print, print_bytes, print_if_read};

/// One look, for programs.
#[derive(Debug, Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    report: &'a hakmem_inspect::Report,
    rates: Rates,
    /// Call sites that hold most, if there are samples.
    sites: &'a [NamedSite],
}

/// Watches a process until it ends, unless it was named, or somebody has seen enough.
///
/// # Errors
/// It cannot be read, or hakmem does not serve it.
pub fn top(arguments: &TopArguments) -> Result<ExitCode> {
    let mut watch = Watch::of(&arguments.target)?;
    if arguments.once {
        let (look, rates) = watch.look_twice(arguments.interval)?;
        let text = whole(&look, rates, arguments.json)?;
        match arguments.json {
            true => print_bytes(text.as_bytes())?,
            false => print(&text)?,
        }
    } else if arguments.json || !stdout().is_terminal() {
        lines(&mut watch, arguments)?;
    } else {
        let look = watch.look()?;
        restore_when_ended().context("cannot catch signals")?;
        let mut terminal = ratatui::try_init().context("cannot use the terminal")?;
        let result = interact(&mut terminal, &mut watch, look, arguments.interval);
        ratatui::restore();
        if let Some(end) = result? {
            print(&format!("{end}\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn json(look: &Look, rates: Rates) -> Result<String> {
    let line = Line {
        report: &look.report,
        rates,
        sites: &look.sites,
    };
    Ok(serde_json::to_string(&line)? + "\n")
}

fn whole(look: &Look, rates: Rates, as_json: bool) -> Result<String> {
    if as_json {
        return json(look, rates);
    }
    let style = text::Style::for_output(0);
    let pinned = pinned::named(&look.report, &mut Names::default(), SITES);
    Ok(text::render(&look.report, &look.sites, &pinned, &style) + "\n" + &rates_in_words(&rates))
}

fn rates_in_words(rates: &Rates) -> String {
    format!(
        "In the last {:.1} s: {} malloc ({} missed), {} free, {} page faults, {} system calls, \
         {}/s given back\n",
        rates.seconds,
        rate(rates.mallocs_per_second),
        rate(rates.misses_per_second),
        rate(rates.frees_per_second),
        rate(rates.page_faults_per_second),
        rate(rates.system_calls_per_second),
        bytes(rates.purged_bytes_per_second as u64),
    )
}

/// A line for each look, until the process ends or nobody reads. By its name the next one is
/// waited for.
fn lines(watch: &mut Watch, arguments: &TopArguments) -> Result<()> {
    let mut before = watch.look()?;
    loop {
        sleep(arguments.interval);
        let look = match watch.look() {
            Ok(look) => look,
            Err(error) if is_end(&error) && watch.follows() => {
                before = watch.follow().unwrap_or(before);
                continue;
            }
            Err(error) if is_end(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let rates = Rates::between(&before, &look);
        let line = match arguments.json {
            true => json(&look, rates)?,
            false => spelt(&line(&look, &rates)).into_owned(),
        };
        if !print_if_read(line.as_bytes())? {
            return Ok(());
        }
        before = look;
    }
}

fn line(look: &Look, rates: &Rates) -> String {
    let report = &look.report;
    let kept = report.resident_of(Part::is_kept);
    format!(
        "rss {:>9}  live {:>9}  kept {:>9} ({:>6})  malloc {:>9}  free {:>9}  faults {:>9}\n",
        bytes(report.rss_bytes),
        bytes(report.resident_of(Part::is_live)),
        bytes(kept),
        share(kept, report.rss_bytes),
        rate(rates.mallocs_per_second),
        rate(rates.frees_per_second),
        rate(rates.page_faults_per_second),
    )
}

fn is_end(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<Error>(),
        Some(Error::Gone(_) | Error::NoSuchProcess(_) | Error::Zombie(_))
    )
}

/// What a key asks for.
enum Wish {
    Nothing,
    Draw,
    Look,
    End,
}

/// What gives free memory back.
const HOW_TO_PURGE: &str =
    "hakmem trim PID gives free memory back now, as malloc_trim(0) does in the program; \
     HAKMEM_PURGE_DELAY_MS=50 gives it back sooner";

fn wish(view: &mut View, interval: &mut Duration, key: KeyEvent) -> Wish {
    view.message = None;
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if control => return Wish::End,
        KeyCode::Char('q') | KeyCode::Esc => return Wish::End,
        KeyCode::Char('s') => view.order = view.order.next(),
        KeyCode::Char('o') => view.order = Order::Table,
        KeyCode::Char('r') => view.order = Order::Resident,
        KeyCode::Char('g') => view.order = Order::Growth,
        KeyCode::Char('m') => view.toggle(Below::Map),
        KeyCode::Char('l') => view.toggle(Below::Sites),
        KeyCode::Char('c') => view.toggle(Below::Cycles),
        KeyCode::Char('w') => {
            view.message = Some(
                match write_beside(&view.look.report, Path::new(""), "live") {
                    Ok(path) => format!("Written: {}; see it with hakmem report", path.display()),
                    Err(error) => format!("{error:#}"),
                },
            )
        }
        KeyCode::Char('p') => view.message = Some(HOW_TO_PURGE.into()),
        KeyCode::Char('0') => view.begin = view.look.clone(),
        KeyCode::Char('+') => *interval = (*interval / 2).max(Duration::from_millis(100)),
        KeyCode::Char('-') => *interval = (*interval * 2).min(Duration::from_secs(60)),
        KeyCode::Char(' ') => return Wish::Look,
        _ => return Wish::Nothing,
    }
    Wish::Draw
}

/// Lets a signal that ends the command leave the terminal as it was. The thread that draws may wait
/// for a terminal that is gone.
fn restore_when_ended() -> Result<()> {
    let ends = [SIGINT, SIGTERM, SIGHUP].into_iter();
    let mut signals = Signals::new(ends.filter(|signal| !is_ignored(*signal)))?;
    thread::spawn(move || {
        for signal in signals.forever() {
            ratatui::restore();
            let _ = emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// Puts letters of ASCII in the place of others.
fn spell(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if let Some(letter) = cell.symbol().chars().next().filter(|it| !it.is_ascii()) {
            let letters = ascii(letter);
            cell.set_symbol(&letters[..letters.chars().next().map_or(0, char::len_utf8)]);
        }
    }
}

const ENDED: &str = "It has ended: the next one of its name is waited for";
const RESTARTED: &str = "It was started anew";

/// Shows the process until it ends, which is said, or a key asks for the end.
fn interact(
    terminal: &mut DefaultTerminal,
    watch: &mut Watch,
    look: Look,
    mut interval: Duration,
) -> Result<Option<String>> {
    let mut view = View::new(look);
    loop {
        view.interval = interval;
        terminal.draw(|frame| {
            draw(frame, &view);
            if is_plain() {
                spell(frame.buffer_mut());
            }
            if !has_colours() {
                let cells = &mut frame.buffer_mut().content;
                cells.iter_mut().for_each(|cell| cell.fg = Color::Reset);
            }
        })?;
        let next = view.look.at + interval;
        let pause = next.saturating_duration_since(Instant::now());
        let wish = match event::poll(pause)? {
            false => Wish::Look,
            true => match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    wish(&mut view, &mut interval, key)
                }
                Event::Resize(..) => Wish::Draw,
                _ => Wish::Nothing,
            },
        };
        match wish {
            Wish::End => return Ok(None),
            Wish::Nothing | Wish::Draw => {}
            Wish::Look => match watch.look() {
                Ok(look) => view.push(look),
                Err(error) if is_end(&error) && watch.follows() => {
                    view.look.at = Instant::now();
                    view.message = Some(match watch.follow() {
                        Some(look) => {
                            view.push(look);
                            view.begin = view.look.clone();
                            RESTARTED.into()
                        }
                        None => ENDED.into(),
                    });
                }
                Err(error) if is_end(&error) => return Ok(Some("The process has ended.".into())),
                Err(error) => return Err(error),
            },
        }
    }
}
