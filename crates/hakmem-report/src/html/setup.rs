//! The end of the page: what failed, what was compared, where and how.

use hakmem_results::Arm;
use maud::{html, Markup};

use super::Page;
use crate::facts;
use crate::format;
use crate::summary;

pub fn render(page: &Page) -> Markup {
    html! {
        (problems(page))
        section #setup {
            h2 { "Setup" }
            div.columns {
                div { h3 { "Run" } (list(facts::run(page.file))) }
                div { h3 { "Machine" } (list(facts::machine(page.file))) }
            }
            h3 { "Allocators" }
            (arms(&page.file.arms))
            h3 { "What the words mean" }
            (words(page))
        }
    }
}

fn problems(page: &Page) -> Markup {
    let errors = summary::errors(page.file);
    let skipped = summary::skipped(page.file);
    if errors.is_empty() && skipped.is_empty() {
        return html! {};
    }
    html! {
        section #problems {
            h2 { "Errors and gaps" }
            p.lead { "No mean contains any of these." }
            div.scroll {
                table.list {
                    thead { tr { th { "row" } th { "allocator" } th { "what happened" } } }
                    tbody {
                        @for (row, arm, reason) in errors {
                            tr { td { (row.name) } td { (arm) } td { (reason) } }
                        }
                        @for (row, reason) in skipped {
                            tr { td { (row.name) } td.missing { "not run" } td { (reason) } }
                        }
                    }
                }
            }
        }
    }
}

fn list(facts: Vec<(&str, String)>) -> Markup {
    html! { dl { @for (name, value) in facts { dt { (name) } dd { (value) } } } }
}

fn arms(arms: &[Arm]) -> Markup {
    html! {
        div.scroll {
            table.list {
                thead {
                    tr {
                        th { "name" } th { "version" } th { "library" } th { "SHA-256" }
                        th { "environment and options" }
                    }
                }
                tbody {
                    @for arm in arms {
                        tr {
                            td { (arm.name) }
                            td { (arm.version.as_deref().unwrap_or("not known")) }
                            td { code { (arm.library.as_deref().unwrap_or("nothing preloaded")) } }
                            td { @if let Some(digest) = &arm.digest {
                                code title=(digest) { (digest.get(..12).unwrap_or(digest)) "…" }
                            } }
                            td { (environment(arm)) }
                        }
                    }
                }
            }
        }
    }
}

fn environment(arm: &Arm) -> Markup {
    html! {
        @for (name, value) in &arm.environment { code { (name) "=" (value) } " " }
        @if let Some(options) = &arm.options { code.options { (options) } }
    }
}

fn words(page: &Page) -> Markup {
    let confidence = format::share(page.file.settings.confidence);
    html! {
        dl.words {
            dt { "time" }
            dd {
                "What a workload measured of itself, without its start; of a program, the wall "
                "clock of the whole process."
            }
            dt { "peak RSS" }
            dd { "The largest resident set of the largest process." }
            dt { "ratio" }
            dd {
                (page.first) " ÷ the other allocator: the median over the rounds, with its "
                (confidence) " bootstrap interval."
            }
            dt { "no difference" }
            dd { "The interval holds 1, or the distance from 1 is within the noise floor." }
            dt { (summary::BEST_PEER) }
            dd {
                "In each row and for each metric the allocator with the largest ratio, the "
                "system's malloc included. Being best at everything would take all of them."
            }
            dt { "proof" }
            dd {
                "A figure is shown only if the library was mapped in the program's processes and "
                "malloc resolved into it, observed in a run of its own before the measured ones. "
                "hakmem must also account for 99% of the calls by its own count."
            }
        }
    }
}
