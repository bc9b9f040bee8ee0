//! Kills for lack of memory by the kernel's log alone, without a watch before.

use crate::kernel::oom_report;
use crate::observe::Unavailable;
use crate::observe::kernel_log;

pub(crate) use crate::kernel::oom_report::OomReport;

/// What the log of this machine still has.
///
/// # Errors
/// If it may not be read.
pub(crate) fn own_log() -> Result<String, Unavailable> {
    kernel_log::whole()
}

/// The reports in a log, the latest first.
pub(crate) fn reports(log: &str) -> Vec<OomReport> {
    let mut reports = oom_report::parse(log);
    reports.reverse();
    reports
}
