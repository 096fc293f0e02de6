//! Result files as table, CSV, JSON, Markdown and HTML.
//!
//! One module per format, each with a `render` that takes a
//! [`ResultFile`](hakmem_results::ResultFile) and returns text. What more than one of them shows
//! is computed in [`summary`] and [`mod@matrix`] and spelt in [`format`](mod@format), so that they
//! cannot disagree.

pub mod brief;
pub mod csv;
pub mod facts;
pub mod format;
pub mod html;
pub mod json;
pub mod latency;
mod legend;
pub mod markdown;
pub mod matrix;
pub mod scaling;
pub mod summary;
pub mod table;
pub mod verdict;
