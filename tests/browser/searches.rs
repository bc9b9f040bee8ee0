//! The page of a search for the load line: chart and lines to copy, at any width.

use super::browser::Browser;
use super::page::fits;
use loadline::report;
use loadline_samples::find::found;

#[test]
fn the_chart_of_a_search_is_drawn_and_fits_the_page() {
    let Some(browser) = Browser::find() else { return };
    let page = report::html(&found(), &[], &[]);
    browser.write(&page);
    for width in [400, 1280] {
        let picture = browser.screenshot(width, 4000);
        assert!(picture.count([0x00, 0x72, 0xb2]) > 300, "filled dots are missing at {width} pixels");
        assert!(picture.count([0xc4, 0x4e, 0x00]) > 50, "hollow dots are missing at {width} pixels");
    }
    fits(&browser, &page);
}

#[test]
fn the_chart_of_a_search_is_also_a_separate_file() {
    let Some(browser) = Browser::find() else { return };
    let plots = report::plots(&found(), &[]);
    assert_eq!(plots[0].name, "load-line");
    assert!(!plots[0].svg.contains("var(") && !plots[0].svg.contains("NaN") && !plots[0].svg.contains("inf"));
    let picture = browser.draw(&plots[0]);
    assert!(picture.count([0x00, 0x72, 0xb2]) > 300 && picture.count([0xc4, 0x4e, 0x00]) > 100);
}
