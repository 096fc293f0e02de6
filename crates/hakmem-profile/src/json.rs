//! A recording as JSON, for programs. Members are added and never changed, or `format` counts up.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{json, Map, Value};

use crate::analysis::{Amount, Analysis, Measure, SiteFigures};
use crate::difference::Difference;
use crate::findings;
use crate::symbols::Frame;
use crate::timeline::{Layers, Timeline};
use crate::waterfall::{self, Waterfall};

/// Moments of the timelines.
const MOMENTS: usize = 200;

/// Everything, with the samples added up by site.
pub fn render(analysis: &Analysis) -> String {
    let header = &analysis.recording.header;
    let value = json!({
        "format": 1,
        "kind": "recording",
        "program": header.program,
        "command": header.command,
        "process": header.process,
        "parent": header.parent,
        "writer": header.writer,
        "ended": header.ended,
        "attached": header.attached,
        "start_unix_ns": header.start_unix_ns,
        "duration_ns": analysis.duration_ns(),
        "look": header.is_look,
        "processes": analysis.recording.processes.iter().map(|(name, process)| json!({
            "program": name, "process": process,
        })).collect::<Vec<_>>(),
        "sample_mean_bytes": header.sample_mean_bytes,
        "peak_ns": analysis.since_start(analysis.peak_ns),
        "totals": totals(analysis),
        "findings": findings::find(analysis).iter().map(|finding| json!({
            "what": finding.what, "advice": finding.advice,
        })).collect::<Vec<_>>(),
        "live_by_site": timeline(analysis, Layers::Sites),
        "live_by_size": timeline(analysis, Layers::Sizes),
        "snapshots": snapshots(analysis),
        "waterfall_at_peak": waterfall::at_peak(analysis).map(|fall| steps(&fall)),
        "waterfall_at_end": waterfall::at_end(analysis).map(|fall| steps(&fall)),
        "pinned": analysis.recording.pinned,
        "problems": analysis.problems().collect::<Vec<_>>(),
    });
    let members = value.as_object().into_iter().flatten();
    let members = members.map(|(name, value)| (name.as_str(), Member::Value(value)));
    let sites = [("sites", Member::Sites(analysis))];
    let document: BTreeMap<&str, Member> = members.chain(sites).collect();
    let text = serde_json::to_string_pretty(&document);
    text.expect("names are texts, and nothing is written") + "\n"
}

/// Of the document. Sites are many: they are made one by one.
enum Member<'a> {
    Value(&'a Value),
    Sites(&'a Analysis),
}

impl Serialize for Member<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Member::Value(value) => value.serialize(serializer),
            Member::Sites(analysis) => {
                let sites = analysis.sites.iter();
                serializer.collect_seq(sites.map(|site| site_value(analysis, site)))
            }
        }
    }
}

/// Bytes, by how many they may be off at 95%, and blocks by measure.
fn amounts(amount: impl Fn(Measure) -> Amount) -> Map<String, Value> {
    let mut amounts = Map::new();
    for measure in Measure::ALL {
        let (name, amount) = (measure.name(), amount(*measure));
        amounts.insert(format!("{name}_bytes"), json!(amount.bytes.round()));
        amounts.insert(format!("{name}_error_bytes"), json!(amount.error().round()));
        amounts.insert(format!("{name}_blocks"), json!(amount.blocks.round()));
    }
    amounts
}

fn totals(analysis: &Analysis) -> Map<String, Value> {
    amounts(|measure| analysis.total(measure))
}

fn site_value(analysis: &Analysis, site: &SiteFigures) -> Value {
    let mut value = Map::new();
    value.insert("site".into(), json!(site.site));
    value.extend(amounts(|measure| site.amount(measure)));
    let stack: Vec<&Frame> = analysis.symbols.frames_of(site.site).collect();
    for (name, member) in [
        ("samples", json!(site.samples)),
        ("median_lifetime_ns", json!(site.median.ns())),
        ("p99_lifetime_ns", json!(site.p99.ns())),
        ("remote_share", json!(site.remote_share)),
        ("realloc_share", json!(site.realloc_share)),
        ("growth_bytes_per_s", json!(site.growth_per_second)),
        ("requested_share", json!(site.requested_share)),
        (
            "temporary_blocks",
            json!(site.temporary.map(|it| it.blocks.round())),
        ),
        ("stack", json!(stack)),
    ] {
        value.insert(name.into(), member);
    }
    Value::Object(value)
}

fn timeline(analysis: &Analysis, kind: Layers) -> Value {
    let timeline = Timeline::new(analysis, kind, MOMENTS);
    json!({
        "times_ns": timeline.times_ns,
        "layers": timeline.layers.iter().map(|layer| json!({
            "name": layer.name,
            "bytes": layer.bytes.iter().map(|bytes| bytes.round()).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}

fn snapshots(analysis: &Analysis) -> Vec<Value> {
    let snapshots = analysis.recording.snapshots.iter();
    snapshots
        .map(|now| {
            json!({
                "time_ns": analysis.since_start(now.time_ns),
                "rss": now.rss,
                "rss_highest": now.rss_highest,
                "live_blocks": now.live_blocks,
                "live": now.live,
                "magazines": now.magazines,
                "transfer": now.transfer,
                "slabs_free": now.slabs_free,
                "page_heap_free": now.page_heap_free,
                "big_cache": now.big_cache,
                "metadata": now.metadata,
                "mapped": now.mapped,
                "committed": now.committed,
                "purged": now.purged,
                "threads": now.threads,
                "malloc_calls": now.malloc_calls,
                "free_calls": now.free_calls,
                "tier_live": now.tier_live,
            })
        })
        .collect()
}

fn steps(fall: &Waterfall) -> Value {
    json!({
        "time_ns": fall.time_ns,
        "rss": fall.rss,
        "steps": fall.steps.iter().map(|step| json!({
            "name": step.name, "bytes": step.bytes.round(),
        })).collect::<Vec<_>>(),
    })
}

/// Two recordings: totals of both, and the call sites that differ.
pub fn render_difference(difference: &Difference) -> String {
    let measures: Map<String, Value> = Measure::ALL
        .iter()
        .map(|&measure| {
            let rows = difference.rows(measure).into_iter().map(|row| {
                json!({
                    "stack": row.stack,
                    "before_bytes": row.before.round(),
                    "after_bytes": row.after.round(),
                    "error_bytes": row.error.round(),
                    "within_error": row.is_within_error(),
                })
            });
            (measure.name().to_owned(), Value::Array(rows.collect()))
        })
        .collect();
    let value = json!({
        "format": 1,
        "kind": "difference",
        "before": {"program": difference.before.recording.header.program,
                   "totals": totals(difference.before)},
        "after": {"program": difference.after.recording.header.program,
                  "totals": totals(difference.after)},
        "sites": measures,
        "problems": difference.problems(),
    });
    format!("{value:#}\n")
}
