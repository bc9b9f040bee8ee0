//! The page of a history in a browser, on a phone and in the dark theme, with any names.

use crate::browser::{Browser, DARK};
use crate::page::fits;
use loadline::report::history_page;
use loadline_samples::history::{hostile, long};

#[test]
fn a_history_fits_a_phone_and_a_screen() {
    let Some(browser) = Browser::find() else { return };
    fits(&browser, &history_page(&long(60)));
    fits(&browser, &history_page(&hostile(&"</td><b onload=alert(1)>".repeat(20))));
}

#[test]
fn a_history_is_drawn_in_both_themes() {
    let Some(browser) = Browser::find() else { return };
    browser.write(&history_page(&long(60)));
    for (options, paper) in [(&[][..], [0xff, 0xff, 0xff]), (DARK, [0x14, 0x18, 0x1d])] {
        for width in [400, 1280] {
            let picture = browser.screenshot_with(width, 1500, options);
            assert!(picture.count(paper) * 2 > picture.pixels(), "the background covers too little at {width}");
            assert!(picture.count(paper) < picture.pixels() * 99 / 100, "nothing is drawn at {width}");
        }
    }
}
