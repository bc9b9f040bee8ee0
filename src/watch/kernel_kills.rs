//! OOM kills from the kernel's log alone, without an earlier watch.

use crate::kernel::oom_report;
use crate::observe::Unavailable;
use crate::observe::kernel_log;

pub(crate) use crate::kernel::oom_report::OomReport;

pub(crate) fn own_log() -> Result<String, Unavailable> {
    kernel_log::whole()
}

/// The reports in a log, latest first.
pub(crate) fn reports(log: &str) -> Vec<OomReport> {
    let mut reports = oom_report::parse(log);
    reports.reverse();
    reports
}
