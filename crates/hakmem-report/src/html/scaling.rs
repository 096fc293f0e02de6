//! What more threads gain, where rows tell.

use hakmem_results::Scaling;
use maud::{html, Markup};

use super::{verdict_class, Page};
use crate::scaling;
use crate::summary;

pub fn render(page: &Page) -> Markup {
    let Some(first) = page.file.arms.first() else {
        return html! {};
    };
    let peers: Vec<_> = summary::peers(&page.file.arms).collect();
    html! {
        section #scaling {
            h2 { (scaling::TITLE) }
            p.lead { (scaling::explanation(first)) }
            div.scroll {
                table.list {
                    thead {
                        tr {
                            th { "series" } th { "threads" } th { (page.first) }
                            @for peer in &peers { th { (peer.name) } }
                            th { "best" } th { (page.first) " ÷ best" } th { (page.first) }
                        }
                    }
                    tbody {
                        @for pair in &page.file.scaling {
                            tr {
                                td { (pair.series) }
                                td { (scaling::threads(pair)) }
                                td { (scaling::gain(pair, &first.name)) }
                                @for peer in &peers { td { (scaling::gain(pair, &peer.name)) } }
                                td { (pair.best.as_deref().unwrap_or("")) }
                                (against_best(pair))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn against_best(pair: &Scaling) -> Markup {
    let class = pair.ratio.map_or("", |ratio| verdict_class(ratio.verdict));
    html! {
        td class=(class) { (scaling::against_best(pair)) }
        td { (scaling::verdict(pair)) }
    }
}
