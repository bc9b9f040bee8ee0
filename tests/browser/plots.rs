//! Charts as separate files: well-formed, without references, rendered with text.

use super::browser::Browser;
use super::fixtures::{self, FEW, SMALL};
use loadline::report;
use quick_xml::events::Event;

#[test]
fn every_plot_is_a_standalone_svg() {
    let (document, evidence) = fixtures::comparison(&["g1", "serial", "parallel"], 2, SMALL);
    let plots = report::plots(&document, &evidence);
    let mut names: Vec<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
    assert_eq!(names.len(), 2 + 4 + 2 + 2 + 3 * 6);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), plots.len(), "each name must be unique");
    for plot in &plots {
        assert!(plot.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{}", plot.name);
        assert_eq!(plot.svg.matches("://").count(), 1, "the only address must be the namespace: {}", plot.name);
        assert!(!plot.svg.contains("var(") && !plot.svg.contains("NaN") && !plot.svg.contains("inf"), "{}", plot.name);
    }
}

#[test]
fn a_plot_shows_lines_and_text() {
    let Some(browser) = Browser::find() else { return };
    let (document, evidence) = fixtures::comparison(&["g1", "serial"], 1, FEW);
    let plots = report::plots(&document, &evidence);
    let timeline = plots.iter().find(|plot| plot.name == "timeline-trial-1").unwrap();
    let picture = browser.draw(timeline);
    assert!(picture.count([0x1c, 0x21, 0x27]) > 2000, "RSS or titles are missing");
    // Apart from guides, only the axis labels have this color.
    let text = picture.count_near([0x59, 0x62, 0x6d], 12);
    assert!(text > 500, "{text}");
}

#[test]
fn hostile_text_gives_valid_plots() {
    let (document, evidence, _) = fixtures::hostile();
    for plot in report::plots(&document, &evidence).iter().take(12) {
        assert!(!plot.svg.contains("<script") && plot.svg.len() < 1 << 20, "{}", plot.name);
        let mut reader = quick_xml::Reader::from_str(&plot.svg);
        while reader.read_event().unwrap_or_else(|error| panic!("{}: {error}", plot.name)) != Event::Eof {}
    }
}
