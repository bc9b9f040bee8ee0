//! Every kind of page on a desktop and a phone, in either theme, in print, and with only the keyboard.

use super::browser::Browser;
use super::devtools::DevTools;
use super::fixtures::{self, FEW, LARGE};
use super::{browser, others};
use loadline::record::Trial;
use loadline::report;
use loadline_samples::{find, fleet, tune};
use serde_json::Value;

/// Expands everything.
const UNFOLD: &str = "document.querySelectorAll('details').forEach((details) => { details.open = true; }); 0";
/// The printable width of A4 with 1 cm margins, at 96 pixels per inch.
const PAPER: u32 = 718;

/// A page of each kind, and pages with very little or a great deal of content.
fn pages() -> Vec<(&'static str, String)> {
    let (document, evidence) = fixtures::comparison(&["g1", "serial", "parallel"], 2, FEW);
    let empty = fixtures::document(vec![Trial::new("serial", 0, 0)]);
    vec![
        ("comparison", report::html(&document, &evidence, &[])),
        ("search", report::html(&find::found(), &[], &[])),
        ("tuning", report::html(&tune::proved(), &[], &[])),
        ("fleet", report::fleet_page(&fleet::fleet())),
        ("post-mortem", others::post_mortem("orders")),
        ("explained", others::explained("Orders.export(Orders.java:88)")),
        ("no trial", report::html(&fixtures::document(Vec::new()), &[], &[])),
        ("an empty trial", report::html(&empty, &[], &[])),
    ]
}

/// Pages full of hostile names.
fn hostile_pages() -> Vec<(&'static str, String)> {
    let (document, evidence, missing) = fixtures::hostile();
    let long = "-long".repeat(400);
    let name = format!("<script>document.title='owned'</script>{long}");
    vec![
        ("hostile", report::html(&document, &evidence, &missing)),
        ("hostile tuning", report::html(&tune::hostile(&format!("-D{name}")), &[], &[])),
        ("hostile fleet", report::fleet_page(&fleet::hostile(&name))),
        ("hostile post-mortem", others::post_mortem(&name)),
        ("hostile explained", others::explained(&name)),
    ]
}

/// The lines returned by a script.
fn told(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|line| line.as_str().unwrap_or_default().to_owned()).collect()
}

/// Saves an image if `LOADLINE_SHOTS` names a directory.
fn keep(name: &str, bytes: &[u8]) {
    if let Some(folder) = std::env::var_os("LOADLINE_SHOTS").map(std::path::PathBuf::from) {
        std::fs::write(folder.join(name.replace(' ', "-")), bytes).unwrap();
    }
}

#[test]
fn every_kind_of_page_is_readable_at_any_width() {
    let Some(browser) = Browser::find() else { return };
    let mut window = DevTools::start(&browser);
    for (pages, hostile) in [(pages(), false), (hostile_pages(), true)] {
        for (kind, page) in pages {
            keep(&format!("{kind}.html"), page.as_bytes());
            for width in [400, 1280] {
                window.resize(width, 900);
                window.open(&page);
                window.evaluate(UNFOLD);
                window.evaluate(&format!("window.hostile = {hostile}"));
                let complaints = told(&window.evaluate(include_str!("reading.js")));
                assert_eq!(complaints, [""; 0], "{kind} at {width} pixels");
                assert_ne!(window.evaluate("document.title"), "owned", "{kind}");
                assert_eq!(browser::complaints(&browser.log()), [""; 0], "{kind}");
            }
        }
    }
}

#[test]
fn printed_pages_are_white_and_fit_every_table() {
    let Some(browser) = Browser::find() else { return };
    let mut window = DevTools::start(&browser);
    window.resize(PAPER, 1000);
    for (kind, page) in pages() {
        window.prefer("print", "dark");
        window.open(&page);
        window.evaluate(UNFOLD);
        let paper = window.evaluate("getComputedStyle(document.documentElement).backgroundColor");
        assert_eq!(paper, "rgb(255, 255, 255)", "{kind}");
        let wide = "[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth)\
                    .map((box) => `${box.getAttribute('aria-label')}: ${box.scrollWidth} of ${box.clientWidth}`)";
        assert_eq!(told(&window.evaluate(wide)), [""; 0], "{kind}");
        window.prefer("", "dark");
        window.open(&page);
        let folded = "document.querySelectorAll('details:not([open])').length";
        let before = window.evaluate(folded);
        let pdf = window.print();
        assert!(pdf.starts_with(b"%PDF"), "{kind}");
        keep(&format!("{kind}.pdf"), &pdf);
        assert_eq!(window.evaluate(folded), before, "{kind}: printing must not change what is folded");
    }
}

#[test]
fn collapsed_sections_are_printed() {
    let Some(browser) = Browser::find() else { return };
    let (document, evidence) = fixtures::comparison(&["g1", "serial"], 1, FEW);
    let page = report::html(&document, &evidence, &[]);
    let mut window = DevTools::start(&browser);
    window.resize(PAPER, 1000);
    // Also without the script.
    for page in [page.clone(), page.split("<script>").next().unwrap().to_owned()] {
        window.prefer("print", "light");
        window.open(&page);
        let height = "[...document.querySelectorAll('details table')].filter((table) => !table.offsetHeight).length";
        assert_eq!(window.evaluate(height), 0);
    }
}

/// The focused element: what it is, whether the focus is visible, and whether it follows the previously focused one.
const FOCUS: &str = "(() => {
    const at = document.activeElement;
    if (at === document.body || at === window.first) return null;
    window.first ??= at;
    const label = at.matches('input') ? at.nextElementSibling : at;
    const behind = !window.last || Boolean(window.last.compareDocumentPosition(at) & Node.DOCUMENT_POSITION_FOLLOWING);
    window.last = at;
    const outline = getComputedStyle(label);
    const seen = outline.outlineStyle !== 'none' && parseFloat(outline.outlineWidth) >= 1;
    return [at.tagName.toLowerCase(), seen, behind, at.getAttribute('class') ?? ''].join(' ');
})()";

/// Walks through the page with only the Tab key.
fn stops(window: &mut DevTools<'_>) -> Vec<String> {
    let mut stops = Vec::new();
    while stops.len() < 500 {
        window.press("Tab");
        match window.evaluate(FOCUS) {
            Value::String(stop) => stops.push(stop),
            _ => break,
        }
    }
    stops
}

#[test]
fn the_keyboard_reaches_everything_in_order_with_visible_focus() {
    let Some(browser) = Browser::find() else { return };
    let mut window = DevTools::start(&browser);
    window.resize(1280, 900);
    for (kind, page) in pages() {
        window.open(&page);
        let stops = stops(&mut window);
        assert!(stops.iter().all(|stop| stop.contains(" true true")), "{kind}: {stops:?}");
        // A radio button group is one stop.
        let wanted = window.evaluate(
            "[...document.querySelectorAll('a[href], summary, svg[data-group], .scroll, input:checked')]\
             .filter((element) => element.matches('input') || element.checkVisibility()).length",
        );
        let pre = window
            .evaluate("[...document.querySelectorAll('pre[tabindex]')].filter((e) => e.checkVisibility()).length");
        assert_eq!(stops.len() as u64, wanted.as_u64().unwrap() + pre.as_u64().unwrap(), "{kind}: {stops:?}");
    }
}

#[test]
fn keys_expand_trials_read_charts_and_sort_fleets() {
    let Some(browser) = Browser::find() else { return };
    let mut window = DevTools::start(&browser);
    window.resize(1280, 900);
    window.open(&pages()[0].1);
    window.evaluate("document.querySelector('#trial-2 > summary').focus()");
    window.press("Enter");
    assert_eq!(window.evaluate("document.querySelector('#trial-2').open"), true);
    window.evaluate("document.querySelector('#trial-1 svg[data-group]').focus()");
    window.press("ArrowRight");
    let read = "document.activeElement.parentElement.querySelector('.readout').textContent";
    let first = window.evaluate(read);
    window.press("ArrowRight");
    let second = window.evaluate(read);
    assert!(first.as_str().unwrap().contains(" s: ") && first != second, "{first}, then {second}");
    window.press("+");
    assert_eq!(window.evaluate("document.activeElement.classList.contains('zoomed')"), true);
    window.press("0");
    assert_eq!(window.evaluate("document.activeElement.classList.contains('zoomed')"), false);
    window.open(&report::fleet_page(&fleet::fleet()));
    let shown = "[...document.querySelectorAll('.orders > div')].findIndex((table) => table.offsetHeight > 0)";
    assert_eq!(window.evaluate(shown), 0);
    window.evaluate("document.querySelector('.orders input').focus()");
    window.press("ArrowRight");
    assert_eq!(window.evaluate(shown), 1);
}

#[test]
fn a_browser_can_open_ten_long_trials() {
    let (document, evidence) = fixtures::comparison(&["g1", "serial"], 5, LARGE);
    let page = report::html(&document, &evidence, &[]);
    assert!(page.len() <= 2 << 20, "{} bytes", page.len());
    let Some(browser) = Browser::find() else { return };
    let mut window = DevTools::start(&browser);
    window.open(&page);
    let nodes = window.evaluate("document.querySelectorAll('*').length").as_u64().unwrap();
    assert!(nodes <= 30_000, "{nodes} elements");
    assert_eq!(browser::complaints(&browser.log()), [""; 0]);
}
