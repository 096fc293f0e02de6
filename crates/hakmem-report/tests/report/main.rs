//! Results in each form that people read.

mod formats;
mod html;
mod page;
mod properties;
mod snapshots;
mod summary;
mod support;
mod verdict;
