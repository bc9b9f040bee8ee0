//! The page: its size and its behavior in the browser.

use super::browser::{Browser, DARK};
use super::fixtures::{self, FEW, LARGE, SMALL, Size, hostile_texts};
use loadline::report;

const NAMES: [&str; 3] = ["g1", "serial", "parallel"];

/// A browser with the page of a comparison of this many blocks.
fn compared(blocks: u32, size: Size) -> Option<Browser> {
    let browser = Browser::find()?;
    let (document, evidence) = fixtures::comparison(&NAMES, blocks, size);
    browser.write(&report::html(&document, &evidence, &[]));
    Some(browser)
}

#[test]
fn a_page_with_hundreds_of_trials_can_be_opened() {
    let (document, evidence) = fixtures::comparison(&["g1", "serial"], 100, LARGE);
    let page = report::html(&document, &evidence, &[]);
    assert!(page.len() < 12 << 20, "{} bytes", page.len());
    assert!(page.contains("(trial 200): ") && page.contains("charts are left out"));
}

#[test]
fn a_page_is_reproducible_and_contains_no_addresses() {
    let (document, evidence) = fixtures::comparison(&NAMES, 2, FEW);
    let page = report::html(&document, &evidence, &[]);
    assert_eq!(page, report::html(&document, &evidence, &[]));
    let addresses: Vec<&str> = page.match_indices("://").map(|(at, _)| &page[at - 5..at + 25]).collect();
    assert_eq!(addresses, ["\"http://www.w3.org/2000/svg\";\n"], "the only address must be the namespace");
    for attribute in [" src=", "srcset=", "<link", "<iframe", "<object", " style=", "javascript:"] {
        assert!(!page.contains(attribute), "{attribute}");
    }
}

#[test]
fn the_browser_draws_the_charts_without_errors() {
    let Some(browser) = Browser::find() else { return };
    let (document, evidence) = fixtures::comparison(&NAMES, 5, SMALL);
    browser.write(&report::html(&document, &evidence, &["a histogram of trial 3 was cut short".to_owned()]));
    let picture = browser.screenshot(1280, 9000);
    // The light theme's colors.
    for (what, colour, least) in [
        ("ink of RSS", [0x1c, 0x21, 0x27], 500),
        ("heap", [0x2f, 0x79, 0xb9], 2000),
        ("libjvm", [0x55, 0xab, 0x9c], 2000),
        ("malloc", [0xd0, 0x60, 0x2a], 1000),
        ("first configuration", [0x00, 0x72, 0xb2], 300),
        ("second configuration", [0xd5, 0x5e, 0x00], 300),
        ("many answers", [0x0b, 0x4a, 0x78], 300),
        ("rate", [0x00, 0x87, 0x5f], 100),
    ] {
        let count = picture.count(colour);
        assert!(count >= least, "{what}: {count} pixels, expected {least}");
    }
    assert!(picture.count([0xff, 0xff, 0xff]) * 2 > picture.pixels(), "most of the page must be white");
}

#[test]
fn the_dark_theme_has_a_dark_background() {
    let Some(browser) = compared(2, FEW) else { return };
    let picture = browser.screenshot_with(1280, 9000, DARK);
    assert!(picture.count([0x14, 0x18, 0x1d]) * 2 > picture.pixels());
}

#[test]
fn content_is_never_wider_than_the_page() {
    let Some(browser) = Browser::find() else { return };
    let (document, evidence) = fixtures::comparison(&NAMES, 5, SMALL);
    let (hostile, hostile_evidence, missing) = fixtures::hostile();
    for page in [report::html(&document, &evidence, &[]), report::html(&hostile, &hostile_evidence, &missing)] {
        fits(&browser, &page);
    }
}

fn title(dom: &str) -> &str {
    dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap_or_default()
}

/// Checks that a page is not wider than a phone, or than a screen.
pub(crate) fn fits(browser: &Browser, page: &str) {
    for width in [400, 1280] {
        let frame = format!(
            "<!doctype html><title>?</title><iframe id=f width={width} height=800 src=report.html></iframe><script>\
             f.onload = () => {{ const d = f.contentDocument.documentElement; \
             document.title = `${{d.scrollWidth}} of ${{d.clientWidth}}`; }}</script>"
        );
        browser.write(page);
        let dom = browser.dump_frame(&frame);
        let title = title(&dom);
        let (content, window) = title.split_once(" of ").unwrap_or_else(|| panic!("{title}"));
        assert_eq!(content, window, "the page must fit {width} pixels");
    }
}

#[test]
fn a_phone_shows_the_same_content() {
    let Some(browser) = compared(2, FEW) else { return };
    for options in [&[][..], DARK] {
        let picture = browser.screenshot_with(400, 9000, options);
        assert!(picture.count_near([0x1d, 0x8a, 0x78], 80) > 300, "the account lacks the CDS archive");
    }
}

#[test]
fn charts_of_a_trial_zoom_together_and_show_values() {
    let Some(browser) = compared(1, SMALL) else { return };
    let dom = browser.dump_frame(include_str!("zoom.html"));
    let told: Vec<&str> = dom.split("<li>").skip(1).filter_map(|rest| rest.split("</li>").next()).collect();
    assert_eq!(told.len(), 8, "{dom}");
    // The cursor starts in the middle of 62 s, where the fixture's configurations have 62 to 63 MiB of RSS.
    assert!(told[0].starts_with("31.") && told[0].contains("RSS 6"), "{}", told[0]);
    assert!(told[0].contains("direct memory 2.0 MiB"), "{}", told[0]);
    assert!(told[0].contains("heap committed 6.0 MiB") && told[0].contains("successful responses "), "{}", told[0]);
    // Zoomed by two in both charts of the trial; a spectrum does not zoom.
    assert_eq!(told[1], "200.000% 200.000% 100%");
    assert_eq!(told[2], "100.000% 100.000% 100%");
    // Selects the second quarter with the mouse, then uses the wheel, then resets with a double click.
    assert_eq!(told[3], "400.000% 400.000% 100%");
    assert_eq!(told[4], "500.000% 500.000% 100%");
    assert_eq!(told[5], "100.000% 100.000% 100%");
    assert!(told[6].starts_with("15.6 s: "), "{}", told[6]);
    assert!(told[7].starts_with("at least 9") && told[7].contains("g1, trial 1"), "{}", told[7]);
}

#[test]
fn every_number_is_shown_without_scripts() {
    let Some(browser) = compared(2, FEW) else { return };
    // A frame without scripts; the page around it copies its text.
    let frame = "<!doctype html><title>?</title><iframe id=f sandbox=allow-same-origin src=report.html></iframe><pre id=p>\
                 </pre><script>f.onload = () => { const d = f.contentDocument; p.textContent = d.body.textContent; \
                 document.title = `classes: ${d.documentElement.className}`; }</script>";
    let dom = browser.dump_frame(frame);
    assert!(dom.contains("<title>classes: </title>"), "the frame must load without running the script");
    // Its charts are drawn, too.
    let frame = "<!doctype html><style>*{margin:0;border:0}</style><iframe width=1280 height=6000 \
                 sandbox=allow-same-origin src=report.html></iframe>";
    let picture = browser.screenshot_frame(frame, 1280, 6000);
    assert!(picture.count([0x55, 0xab, 0x9c]) > 1000, "the account lacks libjvm");
    assert!(picture.count([0x1c, 0x21, 0x27]) > 1000, "ink");
    for text in [
        "serial vs. g1:",
        "loadline compare scenarios/tiny-http/tiny-http.loadline.yaml --seed 1",
        "Timeline as a table",
        "Requests as a table",
        "Account as a table, MiB",
        "Service times as a table, ms",
        "Differences as a table",
        "Every trial as a table",
        "Medians as a table",
        "rss.loaded&lt;=60MiB",
        "malloc retained",
    ] {
        assert!(dom.contains(text), "{text}");
    }
    let dom = browser.dump();
    assert!(dom.contains("class=\"interactive\""), "the script did not run");
}

#[test]
fn hostile_text_is_escaped_in_a_real_page() {
    let (document, evidence, missing) = fixtures::hostile();
    let page = report::html(&document, &evidence, &missing);
    assert!(page.len() < 3 << 20, "{} bytes", page.len());
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("<img").count() + page.matches("<b>long-").count(), 0);
    assert!(!page.chars().any(|c| (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}')));
    let Some(browser) = Browser::find() else { return };
    browser.write(&page);
    let dom = browser.dump();
    let title = title(&dom);
    assert!(title.starts_with("&lt;script&gt;document.title"), "{title}");
    assert!(title.ends_with(" - loadline"), "{title}");
    for text in hostile_texts().iter().take(2) {
        assert!(dom.contains(&text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")), "{text}");
    }
    let picture = browser.screenshot(400, 4000);
    assert!(picture.count([0xff, 0xff, 0xff]) * 2 > picture.pixels());
}
