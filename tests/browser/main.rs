//! The HTML report in a real browser: nothing is complained of, nothing is asked of a network, charts are drawn, hostile
//! text does nothing, and without a script all numbers are there.
//!
//! Needs Chromium; where there is none the tests say so and pass, unless `LOADLINE_BROWSER=required`.

mod browser;
mod fixtures;
mod page;
mod plots;
