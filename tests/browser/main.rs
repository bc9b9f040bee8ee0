//! The HTML report in a real browser: no complaints, no network access, charts are drawn, hostile text has no effect,
//! and all numbers are present without a script.
//!
//! Needs Chromium. Without it, the tests report a skip and pass, unless `LOADLINE_BROWSER=required`.
//! `LOADLINE_SHOTS=FOLDER` saves screenshots.
#![expect(clippy::disallowed_methods, reason = "starts the browser, and bounds how long it may take")]
#![expect(clippy::unwrap_used, reason = "a test helper that cannot continue should fail the test")]

mod browser;
mod devtools;
mod fixtures;
mod histories;
mod others;
mod page;
mod plots;
mod reading;
mod searches;
mod tunings;
