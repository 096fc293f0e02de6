//! Renders made-up results, to look at a format while changing it:
//! `cargo run -p hakmem-report --example synthetic -- large html > page.html`

use hakmem_report::{csv, html, json, markdown, table};

#[path = "../tests/report/support/mod.rs"]
mod support;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let file = match arguments.first().map(String::as_str) {
        Some("small") => support::small(),
        Some("single") => support::synthetic::single(),
        _ => support::synthetic::large(),
    };
    let text = match arguments.get(1).map(String::as_str) {
        Some("html") => html::render(&file),
        Some("csv") => csv::render(&file),
        Some("json") => json::render(&file),
        Some("markdown") => markdown::render(&file),
        _ => table::render(&file, &table::TableOptions::for_stdout()),
    };
    print!("{text}");
}
