//! The page of a tuning: charts, tables, and lines to copy, at any width.

use super::browser::Browser;
use super::page::fits;
use loadline::report;
use loadline_samples::tune::{hostile, proved};

#[test]
fn the_charts_of_a_tuning_are_drawn_and_fit_the_page() {
    let Some(browser) = Browser::find() else { return };
    let page = report::html(&proved(), &[], &[]);
    browser.write(&page);
    for width in [400, 1280] {
        let picture = browser.screenshot(width, 4000);
        assert!(picture.count([0x00, 0x72, 0xb2]) > 150, "points of the front are missing at {width} pixels");
        // Heap objects, in the bars.
        assert!(picture.count([0x2f, 0x79, 0xb9]) > 1000, "the heap is missing at {width} pixels");
    }
    fits(&browser, &page);
    // A long option; its markup must have no effect.
    let option = format!("-D<script>document.title='run'</script>={}", "x".repeat(300));
    fits(&browser, &report::html(&hostile(&option), &[], &[]));
}

#[test]
fn the_charts_of_a_tuning_are_also_separate_files() {
    let Some(browser) = Browser::find() else { return };
    let plots = report::plots(&proved(), &[]);
    let names: Vec<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
    assert_eq!(names, ["tuning-steps", "tuning-front"]);
    for plot in &plots {
        assert!(!plot.svg.contains("var(") && !plot.svg.contains("NaN") && !plot.svg.contains("inf"), "{}", plot.name);
        assert!(browser.draw(plot).count([0x1c, 0x21, 0x27]) > 100, "{}: titles or names are missing", plot.name);
    }
}
