//! Formatting numbers in cells, sums, and a subject's memory.

use crate::record::{AccountRecord, Mark, Trial};
use crate::scenario::MarkPoint;
use crate::units::{Bytes, grouped, visible};
use crate::width::{first, last, width};
use crate::words::dash;

/// The mark for a trial's answer: `loaded`, else the last mark.
pub(super) fn told_mark(trial: &Trial) -> Option<&Mark> {
    trial.at(MarkPoint::Loaded).or(trial.marks.last())
}

/// A size in MiB with one decimal.
pub(crate) fn mib(bytes: impl Into<Option<u64>>) -> String {
    bytes.into().map_or_else(dash, |bytes| format!("{:.1}", Bytes(bytes).as_mib()))
}

/// A size with its unit; a dash if unknown.
pub(super) fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(dash, |bytes| Bytes(bytes).to_string())
}

pub(super) fn share(part: Option<u64>, whole: Option<u64>) -> String {
    let percent = |(part, whole): (u64, u64)| part.saturating_mul(100).checked_div(whole);
    part.zip(whole).and_then(percent).map_or_else(dash, |percent| format!("{percent}%"))
}

pub(super) fn kib(bytes: u64) -> String {
    grouped(bytes / 1024)
}

/// A signed change; a change that rounds to 0 has no sign.
pub(super) fn signed(growth: i64, show: fn(u64) -> String) -> String {
    let shown = show(growth.unsigned_abs());
    match growth {
        _ if shown == show(0) => shown,
        ..0 => format!("-{shown}"),
        0.. => format!("+{shown}"),
    }
}

/// Text truncated to leave room for its row's numbers, with control characters escaped.
pub(super) fn beginning(text: &str, most: usize) -> String {
    let text = visible(text);
    if width(&text) > most { format!("{}...", first(&text, most.saturating_sub(3))) } else { text }
}

/// Like [`beginning`], but keeps the more informative end of a path or class.
pub(super) fn end(text: &str, most: usize) -> String {
    let text = visible(text);
    if width(&text) > most { format!("...{}", last(&text, most.saturating_sub(3))) } else { text }
}

/// Whether a size prints as 0.0.
pub(super) fn rounds_to_none(bytes: u64) -> bool {
    Bytes(bytes).as_mib() < 0.05
}

/// A saturating sum, because a damaged archive may contain numbers that overflow.
pub(super) fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

/// A mark's account, if it lists any owners.
pub(crate) fn account_of(mark: &Mark) -> Option<&AccountRecord> {
    mark.account.as_ref().filter(|account| !account.owners.is_empty())
}

/// The subject's memory at a mark: RSS, or PSS for several processes.
pub(super) fn weight(mark: Option<&Mark>) -> Option<u64> {
    mark.map(|mark| mark.weight().1)
}

pub(super) fn weight_word(trial: &Trial) -> &'static str {
    trial.marks.first().map_or("RSS", |mark| mark.weight().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_a_sign_unless_it_rounds_to_zero() {
        let told = [4095 << 10, -4 << 10, 1023, -1023, 0, i64::MIN].map(|bytes| signed(bytes, kib));
        assert_eq!(told, ["+4,095", "-4", "0", "0", "0", "-9,007,199,254,740,992"]);
        assert_eq!([signed(7, grouped), signed(-1000, grouped)], ["+7", "-1,000"]);
    }
}
