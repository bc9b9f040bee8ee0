//! The HTML report in a real browser: the browser has no complaint and asks nothing of a network, it draws the charts,
//! hostile text does nothing, and without a script all numbers are there.
//!
//! Needs Chromium. Without it the tests say so and pass, unless `LOADLINE_BROWSER=required`.
//! `LOADLINE_SHOTS=FOLDER` keeps the pictures for a look at them.
#![expect(clippy::disallowed_methods, reason = "starts the browser, and bounds how long it may take")]
#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on should stop it")]

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
