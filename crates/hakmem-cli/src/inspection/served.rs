//! What `hakmem serve` answers, each time from a look at processes.
//!
//! Of each process that was seen it keeps the curve of its memory and the names of its call sites,
//! until the process ends.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::mem::take;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{anyhow, Result};
use hakmem_inspect::part::Part;
use hakmem_inspect::{Error, Report};
use hakmem_profile::analysis::Measure;
use hakmem_report::format::one_line;
use hyper::body::Bytes;
use hyper::StatusCode;
use prometheus::TEXT_FORMAT;

use super::apart::apart_for;
use super::live::{no_samples, pprof, Names};
use super::metrics::{instance_of, runs, Collector, Instance};
use super::{page, SITES};

/// What somebody wants to know, of which process if they say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// A page to look at.
    Page(Option<i32>),
    /// The figures of all.
    Metrics,
    /// A profile that shows first what lives.
    Heap(Option<i32>),
    /// The same with what was allocated first.
    Allocs(Option<i32>),
}

const PATHS: &str = "here are /metrics, /debug/pprof/heap, /debug/pprof/allocs and /\n";

impl Ask {
    /// What the path and the query of a request ask for.
    ///
    /// # Errors
    /// The answer to who asks for nothing that there is.
    pub fn parse(path: &str, query: &str) -> Result<Ask, Answer> {
        let refused = |text: &str| Err(Answer::refusal(StatusCode::BAD_REQUEST, text));
        let mut pid = None;
        for (name, value) in query.split('&').filter_map(|word| word.split_once('=')) {
            match (name, value.parse::<i32>()) {
                ("pid", Ok(number)) if number > 0 => pid = Some(number),
                ("pid", _) => return refused("pid is the number of a process\n"),
                ("seconds", _) => {
                    return refused(
                        "a profile is of all time until now: take two, and compare them by \
                         go tool pprof -diff_base\n",
                    )
                }
                ("debug", Ok(number)) if number != 0 => {
                    return refused("profiles are there for programs alone, without debug=\n")
                }
                _ => {}
            }
        }
        match path {
            "/" => Ok(Ask::Page(pid)),
            "/metrics" => Ok(Ask::Metrics),
            "/debug/pprof/heap" => Ok(Ask::Heap(pid)),
            "/debug/pprof/allocs" => Ok(Ask::Allocs(pid)),
            _ => Err(Answer::refusal(StatusCode::NOT_FOUND, PATHS)),
        }
    }
}

/// What is said to who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    pub content_type: &'static str,
    pub body: Bytes,
}

impl Answer {
    fn new(content_type: &'static str, body: impl Into<Bytes>) -> Answer {
        Answer {
            status: StatusCode::OK,
            content_type,
            body: body.into(),
        }
    }

    /// Why there is none.
    pub fn refusal(status: StatusCode, text: &str) -> Answer {
        Answer {
            status,
            ..Answer::new("text/plain; charset=utf-8", text.to_owned())
        }
    }

    fn failure(error: &anyhow::Error) -> Answer {
        let status = match error.downcast_ref() {
            Some(
                Error::NoSuchProcess(_)
                | Error::Gone(_)
                | Error::Zombie(_)
                | Error::NotServed { .. }
                | Error::Unused { .. },
            ) => StatusCode::NOT_FOUND,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Answer::refusal(status, &(one_line(&format!("{error:#}")) + "\n"))
    }
}

/// What was seen of a process at a moment, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub at: Instant,
    pub resident: u64,
    pub live: u64,
}

/// So many of a process are kept.
const MOMENTS_MAX: usize = 600;

/// What is known of a process that was seen.
#[derive(Debug, Default)]
pub struct Watched {
    start: u64,
    pub name: String,
    pub curve: VecDeque<Moment>,
    names: Names,
    /// It takes too long to find names of its code.
    is_nameless: bool,
}

/// What is known of processes, by their numbers.
type AllWatched = BTreeMap<i32, Watched>;

fn see(all: &mut AllWatched, (pid, start): Instance, report: &Report) {
    let watched = all.entry(pid).or_default();
    if watched.start != start {
        *watched = Watched {
            start,
            ..Watched::default()
        };
    }
    watched.name.clone_from(&report.source.name);
    if watched.curve.len() >= MOMENTS_MAX {
        watched.curve.pop_front();
    }
    watched.curve.push_back(Moment {
        at: Instant::now(),
        resident: report.rss_bytes,
        live: report.resident_of(Part::is_live),
    });
}

/// Times 100 ms: a large program has much to read.
const NAMING_WAITS: u32 = 200;

/// What the server knows.
#[derive(Debug)]
pub struct Served {
    collector: Collector,
    watched: AllWatched,
}

impl Served {
    /// Nothing yet.
    ///
    /// # Errors
    /// The only process that is meant cannot be looked at.
    pub fn new(mut collector: Collector) -> Result<Served> {
        if let Some(only) = collector.only()? {
            collector.look(only)?;
        }
        Ok(Served {
            collector,
            watched: AllWatched::new(),
        })
    }

    /// Answers, after a look.
    pub fn answer(&mut self, ask: Ask) -> Answer {
        let answer = match ask {
            Ask::Metrics => self.collect().map(|text| Answer::new(TEXT_FORMAT, text)),
            Ask::Page(pid) => self.page(pid),
            Ask::Heap(pid) => self.profile(pid, Measure::End),
            Ask::Allocs(pid) => self.profile(pid, Measure::Allocated),
        };
        answer.unwrap_or_else(|error| Answer::failure(&error))
    }

    fn collect(&mut self) -> Result<String> {
        let watched = &mut self.watched;
        let figures = self.collector.collect(|at, it| see(watched, at, it));
        watched.retain(|&pid, watched| runs((pid, watched.start)));
        figures
    }

    /// The process that is meant; `None`: it may be any of several, or there is none.
    fn meant(&mut self, pid: Option<i32>) -> Result<Option<i32>> {
        let only = self.collector.only()?.map(|(pid, _)| pid);
        if pid.is_none() && only.is_none() {
            self.collect()?;
            let mut all = self.watched.keys().copied();
            return Ok(all.next().filter(|_| all.next().is_none()));
        }
        Ok(pid.or(only))
    }

    fn look(&mut self, pid: i32) -> Result<Arc<Report>> {
        let instance = instance_of(pid)?;
        let report = self.collector.look(instance)?;
        see(&mut self.watched, instance, &report);
        Ok(Arc::new(report))
    }

    /// Has names found for a process that was seen, by one who is given those that are known.
    fn named<T: Send + 'static>(
        &mut self,
        pid: i32,
        find: impl FnOnce(&mut Names) -> T + Send + 'static,
    ) -> Result<T> {
        let too_long = || anyhow!("it takes too long to find names of the code of {pid}");
        let watched = self.watched.entry(pid).or_default();
        if watched.is_nameless {
            return Err(too_long());
        }
        let mut names = take(&mut watched.names);
        let found = apart_for(NAMING_WAITS, move || (find(&mut names), names));
        watched.is_nameless = found.is_none();
        let (found, names) = found.ok_or_else(too_long)?;
        watched.names = names;
        Ok(found)
    }

    fn page(&mut self, pid: Option<i32>) -> Result<Answer> {
        let text = match self.meant(pid)? {
            None => page::index(&self.watched),
            Some(pid) => {
                let report = self.look(pid)?;
                let shown = report.clone();
                let sites = self.named(pid, move |names| names.largest(&shown, SITES));
                let curve = &self.watched[&pid].curve;
                page::process(&report, &sites.unwrap_or_default(), curve)
            }
        };
        Ok(Answer::new("text/html; charset=utf-8", text))
    }

    fn profile(&mut self, pid: Option<i32>, first: Measure) -> Result<Answer> {
        let Some(pid) = self.meant(pid)? else {
            return Ok(self.which());
        };
        let report = self.look(pid)?;
        // Where the first sample is still to come, nothing is true as well.
        if report.sites.is_empty() && report.settings.sample_kib == 0 {
            let text = no_samples(&report) + "\n";
            return Ok(Answer::refusal(StatusCode::SERVICE_UNAVAILABLE, &text));
        }
        let profile = self.named(pid, move |_| pprof(&report, first))?;
        Ok(Answer::new("application/octet-stream", profile))
    }

    fn which(&self) -> Answer {
        /// That are told.
        const MOST: usize = 100;
        if self.watched.is_empty() {
            let text = "hakmem serves no process that may be looked at\n";
            return Answer::refusal(StatusCode::NOT_FOUND, text);
        }
        let mut text = String::from("of which process? Ask with one of these:\n");
        for (pid, watched) in self.watched.iter().take(MOST) {
            let _ = writeln!(text, "?pid={pid}  {}", one_line(&watched.name));
        }
        Answer::refusal(StatusCode::BAD_REQUEST, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for() {
        assert_eq!(Ask::parse("/", ""), Ok(Ask::Page(None)));
        assert_eq!(Ask::parse("/metrics", "pid=7"), Ok(Ask::Metrics));
        let heap = "/debug/pprof/heap";
        assert_eq!(
            Ask::parse(heap, "gc=1&pid=7&debug=0"),
            Ok(Ask::Heap(Some(7)))
        );
        assert_eq!(Ask::parse("/debug/pprof/allocs", ""), Ok(Ask::Allocs(None)));
        for query in ["pid=", "pid=-1", "pid=99999999999", "seconds=1", "debug=1"] {
            let refused = Ask::parse(heap, query).unwrap_err();
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}");
        }
        for path in ["", "/debug/pprof/", "/debug/pprof/profile", "//"] {
            let refused = Ask::parse(path, "").unwrap_err();
            assert_eq!(refused.status, StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn names_are_no_tags() {
        let watched = Watched {
            name: "<script>\u{1b}[31m".into(),
            ..Watched::default()
        };
        let text = page::index(&AllWatched::from([(7, watched)]));
        assert!(
            !text.contains("<script") && !text.contains('\u{1b}'),
            "{text}"
        );
        assert!(text.contains("&lt;script&gt;"), "{text}");
    }
}
