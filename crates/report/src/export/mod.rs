//! Converts results and fleets to other tools' formats: tables, Markdown, JUnit, JMH, GitHub, OpenMetrics, Bencher.
//! Pure; `docs/exports.md` shows each format. Names and messages in a document are untrusted.

mod bencher;
mod csv;
mod format;
mod github;
mod inert;
mod jmh;
mod junit;
mod markdown;
mod metric_name;
mod metrics;
mod openmetrics;
mod otlp;
mod points;

#[cfg(test)]
mod consumers;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod order;
#[cfg(test)]
pub(super) use loadline_samples::documents as samples;

pub use bencher::bencher;
pub use csv::{comparisons_csv, csv, fleet_csv, history_csv};
pub use format::Format;
pub use github::{github_annotations, github_summary};
pub use jmh::jmh;
pub use junit::junit;
pub use markdown::{Unchanged, comment, fleet_markdown, history_markdown, markdown};
pub use openmetrics::{Exposition, fleet_openmetrics, openmetrics, scrape};
pub use otlp::otlp;
