//! The page: well-formed, self-contained, complete, and safe whatever the names are.

use hakmem_report::html;

use crate::page::Page;
use crate::support;

#[test]
fn it_is_well_formed() {
    for broken in ["<p><b></p>", "<p>", "</p>", "<p class=a\"b>1 < 2 <3</p>"] {
        assert!(!Page::parse(broken).errors.is_empty(), "{broken}");
    }
    for file in [
        support::small(),
        support::compared(),
        support::with_latency(),
        support::synthetic::large(),
    ] {
        let page = Page::parse(&html::render(&file));
        assert_eq!(page.errors, Vec::<String>::new());
    }
}

#[test]
fn it_loads_nothing() {
    let text = html::render(&support::synthetic::large());
    let page = Page::parse(&text);
    assert!(page
        .select("script, link, img, iframe, object, embed, [src]")
        .is_empty());
    for link in page.select("[href]") {
        assert!(link.attribute("href").unwrap().starts_with('#'));
    }
    for style in page.select("style") {
        assert!(!style.text.contains("url(") && !style.text.contains("@import"));
    }
    assert!(text.len() < 6 << 20, "{} bytes", text.len());
}

#[test]
fn links_lead_somewhere() {
    let page = Page::parse(&html::render(&support::synthetic::large()));
    for link in page.select("[href]") {
        let target = link.attribute("href").unwrap();
        assert_eq!(page.select(target).len(), 1, "{target}");
    }
}

#[test]
fn it_names_every_row_arm_and_error() {
    let file = support::synthetic::large();
    let page = Page::parse(&html::render(&file));
    let text = &page.select("html")[0].text;
    for name in file
        .rows
        .iter()
        .map(|row| &row.name)
        .chain(file.arms.iter().map(|arm| &arm.name))
    {
        assert!(text.contains(name.as_str()), "{name} is missing");
    }
    let problems = &page.select("#problems")[0].text;
    for (_, _, reason) in hakmem_report::summary::errors(&file) {
        assert!(problems.contains(reason), "{reason} is missing");
    }
    for (_, reason) in hakmem_report::summary::skipped(&file) {
        assert!(problems.contains(reason), "{reason} is missing");
    }
    let cells = |rows| page.select(&format!("#time .heat tbody {rows} td")).len();
    assert_eq!(
        cells("tr") - cells("tr.means"),
        38 * 12,
        "rows that were run x (arms but the first, and the best peer)"
    );
    assert_eq!(page.select(".memory").len(), 38);
}

#[test]
fn hostile_text_stays_text() {
    let evil = "<script>alert(1)</script>\"'><img src=x>";
    let mut file = support::small();
    file.arms[3].name = evil.into();
    file.arms[2].environment.insert(evil.into(), evil.into());
    file.arms[2].digest = Some("é".repeat(20));
    file.machine.cpu = Some(evil.into());
    file.started = "é".repeat(9);
    for row in &mut file.rows {
        row.name += evil;
        row.summary = evil.into();
        row.command = vec![evil.into()];
        for cell in row.cells.iter_mut().skip(3) {
            cell.arm = evil.into();
        }
    }
    let text = html::render(&file);
    assert!(text.contains("&lt;script&gt;"));
    let page = Page::parse(&text);
    assert!(page.select("script, img").is_empty());
    assert_eq!(page.errors, Vec::<String>::new());
}
