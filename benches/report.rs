//! The cost of a large report: reading trial directories, writing the page, and opening it in fresh browsers.
//! `bench/report.sh` runs it; the archive stays in the directory that `LOADLINE_LARGE_ARCHIVE` names.
#![expect(clippy::disallowed_methods, reason = "starts the browser, and bounds how long it may take")]
#![expect(clippy::print_stdout, reason = "the numbers are its result")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on should stop")]

#[path = "../tests/browser/browser.rs"]
#[expect(dead_code, reason = "the tests take pictures, too")]
mod browser;
#[path = "../tests/browser/devtools.rs"]
#[expect(dead_code, reason = "the tests press keys, too")]
mod devtools;
#[path = "../tests/browser/fixtures.rs"]
#[expect(dead_code, reason = "the tests use more pages")]
mod fixtures;
#[path = "../tests/cli/large.rs"]
mod large;

use browser::Browser;
use devtools::DevTools;
use loadline::clock::Clock;
use loadline::report;
use std::path::PathBuf;
use std::time::Duration;

/// The largest archive that must be read fast.
const ARCHIVE: large::Size = large::Size { trials: 10, seconds: 600, per_second: 167 };
/// Browser starts.
const STARTS: usize = 10;
/// Archive reads.
const READINGS: usize = 5;
/// Times in ms since navigation: end of the response, interactive DOM, load event, first paint, and a frame after it.
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

fn main() {
    let clock = Clock::start();
    read_archive(clock);
    open_page(&write_page(clock));
}

fn read_archive(clock: Clock) {
    let kept = std::env::var_os("LOADLINE_LARGE_ARCHIVE");
    let place = tempfile::tempdir().unwrap();
    let folder = kept.map_or_else(|| place.path().join("large"), PathBuf::from);
    if !folder.join("archive.jsonl").exists() {
        large::make(&folder, ARCHIVE);
    }
    for _ in 0..READINGS {
        let before = clock.now();
        let found = large::read(&folder);
        let took_ms = (clock.now() - before).as_secs_f64() * 1e3;
        large::check(&found, ARCHIVE);
        println!("read {} trials in {took_ms:.0} ms", found.len());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or(""));
}

/// Writes the page of a large comparison; returns its median time.
fn write_page(clock: Clock) -> String {
    let (document, evidence) = fixtures::comparison(&["g1", "serial"], 5, fixtures::LARGE);
    let mut made: Vec<Duration> = Vec::new();
    let mut page = String::new();
    for _ in 0..STARTS {
        let before = clock.now();
        page = report::html(&document, &evidence, &[]);
        made.push(clock.now() - before);
    }
    made.sort_unstable();
    println!("page of {} KiB, written in {:.0} ms", page.len() / 1024, made[STARTS / 2].as_secs_f64() * 1e3);
    page
}

fn open_page(page: &str) {
    for (what, page) in [("empty", "<!doctype html><title>nothing</title><p>nothing"), ("page", page)] {
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
