//! A watched JVM's values that have their own labels.

use super::super::points::Points;
use crate::record::{GrowthWord, WATCH_OWNERS_MAX, WatchOwner, WatchedJvm};

pub(super) fn info(of: &WatchedJvm, to: &mut Points) {
    let pid = of.pid.to_string();
    let [version, collector] = [&of.version, &of.collector].map(|text| text.as_deref().unwrap_or(""));
    let mut labels = vec![("pid", pid.as_str()), ("version", version), ("collector", collector)];
    labels.extend(of.labels.iter().map(|label| (label.name.as_str(), label.value.as_str())));
    to.at(&labels, 1.0);
}

pub(super) fn rss(of: &WatchedJvm) -> [(&'static str, Option<u64>); 3] {
    [("anon", of.now.rss_anon_bytes), ("file", of.now.rss_file_bytes), ("shmem", of.now.rss_shmem_bytes)]
}

pub(super) fn rss_by_kind(of: &WatchedJvm, to: &mut Points) {
    for (kind, bytes) in rss(of) {
        to.at(&[("kind", kind)], bytes.map(|bytes| bytes as f64));
    }
}

pub(super) fn rss_in_all(of: &WatchedJvm, to: &mut Points) {
    let known = rss(of).into_iter().filter_map(|(_, bytes)| bytes);
    to.whole(known.reduce(|sum, bytes| sum + bytes));
}

pub(super) fn owners<'a>(of: impl IntoIterator<Item = &'a WatchOwner>, to: &mut Points) {
    of.into_iter().for_each(|owner| to.at(&[("owner", &owner.name)], owner.bytes as f64));
}

pub(super) fn weighed(of: &WatchedJvm, to: &mut Points) {
    owners(of.account.iter().flat_map(|account| &account.owners).take(WATCH_OWNERS_MAX), to);
}

pub(super) fn headroom(of: &WatchedJvm, to: &mut Points) {
    let limit = of.limit.as_ref().zip(of.now.unreclaimable_bytes);
    to.whole(limit.map(|(limit, held)| limit.bytes.saturating_sub(held)));
}

pub(super) fn slope(of: &WatchedJvm, to: &mut Points) {
    let (of, owner) = (&of.growth, of.growth.owner.as_deref().unwrap_or(""));
    let slopes = [("low", of.bytes_per_hour_low), ("estimate", of.bytes_per_hour), ("high", of.bytes_per_hour_high)];
    for (bound, slope) in slopes {
        to.at(&[("bound", bound), ("owner", owner)], slope.map(|slope| slope / 3600.0));
    }
}

/// A hint has a single pace without an interval, so alerts must not treat it as a time to the limit.
pub(super) fn eta(of: &WatchedJvm, to: &mut Points) {
    for (bound, seconds) in [("soonest", of.growth.limit_in_s), ("latest", of.growth.limit_in_s_latest)] {
        to.at(&[("bound", bound)], seconds.filter(|_| of.growth.verdict == GrowthWord::Grows));
    }
}

pub(super) fn growth(of: &WatchedJvm, to: &mut Points) {
    let all = [GrowthWord::Steady, GrowthWord::Warming, GrowthWord::Grows, GrowthWord::CannotTell];
    to.states(&[], &all, of.growth.verdict);
}
