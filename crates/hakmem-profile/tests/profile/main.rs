//! Recordings and profiles, from reading to each format.

mod foreign_files;
mod formats;
mod many;
#[path = "../../../hakmem-report/tests/report/page.rs"]
mod page;
mod reading;
mod scopes;
mod selection;
mod support;
