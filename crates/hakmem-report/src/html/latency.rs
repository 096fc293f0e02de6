//! What calls take and what a sleeping process keeps, where rows tell.

use maud::{html, Markup};

use super::{verdict_class, Page};
use crate::latency::{EXPLANATION, TITLE};
use crate::summary;

pub fn render(page: &Page) -> Markup {
    let arms: Vec<_> = summary::without_control(&page.file.arms).collect();
    html! {
        section #latency {
            h2 { (TITLE) }
            p.lead { (EXPLANATION) " ▼ " (page.first) " needs less, ▲ it needs more." }
            div.scroll {
                table.list {
                    thead { tr { th { "row" } @for arm in &arms { th { (arm.name) } } } }
                    tbody {
                        @for line in &page.latency {
                            tr {
                                td title=(line.row.summary) {
                                    a href={ "#row-" (page.row_number(line.row)) } {
                                        (line.title())
                                    }
                                }
                                @for arm in &arms {
                                    @match summary::ratio(line.row, &arm.name, line.metric) {
                                        Some(ratio) => td class=(verdict_class(ratio.verdict))
                                            title=(page.sentence(line.metric, &ratio, &arm.name)) {
                                            (line.cell(arm))
                                        },
                                        None => td { (line.cell(arm)) },
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
