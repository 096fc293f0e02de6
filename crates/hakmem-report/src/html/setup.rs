//! The end of the page: what failed, what was compared, where and how.

use hakmem_results::Arm;
use hakmem_statistics::signed_rank::FEWEST_ROUNDS;
use hakmem_statistics::verdict::MARGIN;
use maud::{html, Markup};

use super::Page;
use crate::facts;
use crate::format;
use crate::matrix::BEST_PEER;
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
            p.lead {
                "No mean contains any of these, and a best peer is one of those that did not fail."
            }
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
    let margin = format::share(MARGIN);
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
                (page.first) " ÷ the other allocator, estimated from the ratios of the rounds "
                "(Hodges and Lehmann), with its " (confidence) " interval (signed ranks)."
            }
            dt { "faster, slower, smaller, larger" }
            dd {
                "The whole interval is more than " (margin) " from 1, and so it stays when it "
                "counts how many ratios the table has."
            }
            dt { "no difference" }
            dd { "The whole interval is nearer to 1 than " (margin) "." }
            dt { "unclear" }
            dd { "Neither. More rounds may tell." }
            dt { "too few rounds" }
            dd { "Fewer than " (FEWEST_ROUNDS) " cannot tell a difference from chance." }
            dt { (BEST_PEER) }
            dd {
                "In each row and for each metric the allocator with the largest ratio, the "
                "system's malloc included, chosen by other rounds than those it is compared in. "
                "Being best at everything would take all of them. With *: another one failed."
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
