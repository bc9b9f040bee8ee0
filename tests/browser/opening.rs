//! How long a large page takes to open: `bench/report.sh` runs it, and no test depends on it.

use super::browser::Browser;
use super::devtools::DevTools;
use super::fixtures::{self, LARGE};
use loadline::clock::Clock;
use loadline::report;
use std::time::Duration;

/// Fresh browsers.
const STARTS: usize = 10;
/// Times in ms since the page was asked for: of its load event, of its first paint, of the second frame after both.
const TIMES: &str = "new Promise((done) => {
    const told = () => {
        const [navigation] = performance.getEntriesByType('navigation');
        const [paint] = performance.getEntriesByName('first-contentful-paint');
        const settled = performance.now();
        if (!paint) return requestAnimationFrame(told);
        done([navigation.responseEnd, navigation.domInteractive, navigation.loadEventEnd, paint.startTime, settled]);
    };
    requestAnimationFrame(() => requestAnimationFrame(told));
})";

#[test]
#[ignore = "a measurement: bench/report.sh runs it"]
fn the_largest_page_in_fresh_browsers() {
    let (document, evidence) = fixtures::comparison(&["g1", "serial"], 5, LARGE);
    let clock = Clock::start();
    let mut made: Vec<Duration> = Vec::new();
    let mut page = String::new();
    for _ in 0..STARTS {
        let before = clock.now();
        page = report::html(&document, &evidence, &[]);
        made.push(clock.now() - before);
    }
    made.sort_unstable();
    println!("page of {} KiB, written in {:.0} ms", page.len() / 1024, made[STARTS / 2].as_secs_f64() * 1e3);
    for (what, page) in [("empty", "<!doctype html><title>nothing</title><p>nothing"), ("page", page.as_str())] {
        let mut all: Vec<Vec<f64>> = Vec::new();
        for _ in 0..STARTS {
            let Some(browser) = Browser::find() else { return };
            let mut window = DevTools::start(&browser);
            window.resize(1280, 900);
            window.open(page);
            let times = window.evaluate(TIMES);
            all.push(times.as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect());
            if all.len() == STARTS {
                println!("{what}: {} elements", window.evaluate("document.querySelectorAll('*').length"));
            }
        }
        for (at, name) in ["read", "parsed", "load event", "first paint", "settled"].iter().enumerate() {
            let mut times: Vec<f64> = all.iter().map(|times| times[at]).collect();
            times.sort_by(f64::total_cmp);
            let median = f64::midpoint(times[STARTS / 2 - 1], times[STARTS / 2]);
            println!("{what}: {name} after {median:.0} ms, at most {:.0}", times[STARTS - 1]);
        }
    }
}
