//! The summary's tables: memory per mark, load per phase, native memory by category, trials side by side.

use super::account::direct_text;
use super::cells::{kib, mib, signed, weight, weight_word};
use super::journey::{LATER, tells_growth};
use super::{drivers, own};
use crate::quantity::Quantity;
use crate::record::{Heap, Mark, NmtCategory, NmtRecord, Observer, PhaseRecord, SubjectWork, Trial, Unit};
use crate::scenario::MarkPoint;
use crate::table::Table;
use crate::units::{Bytes, Growth, grouped, milliseconds, several};
use crate::words::dash;
use std::collections::BTreeSet;

/// A row per mark, without empty columns.
pub(crate) fn weights(trial: &Trial) -> Table {
    let any = |has: fn(&Mark) -> bool| trial.marks.iter().any(has);
    let (nmt, charge) = (any(|mark| mark.nmt.is_some()), any(|mark| mark.charge_bytes.is_some()));
    let several = any(|mark| !mark.processes.is_empty());
    // The size that is judged comes first.
    let sizes = if several { ["PSS", "RSS"] } else { ["RSS", "PSS"] };
    let mut head = vec!["mark", "at s", sizes[0], sizes[1], "heap used", "committed", "threads"];
    let more = [(several, "processes"), (nmt, "NMT total"), (charge, "charge")];
    head.extend(more.into_iter().filter(|(has, _)| *has).map(|(_, word)| word));
    let row = |mark: &Mark| {
        let Heap { used_bytes, committed_bytes, .. } = mark.heap;
        let mut sizes = [mib(mark.rss_bytes), mib(mark.pss_bytes)];
        if several {
            sizes.reverse();
        }
        let mut row = vec![mark.name.clone(), format!("{:.1}", mark.at_s)];
        row.extend(sizes);
        row.extend([mib(used_bytes), mib(committed_bytes)]);
        row.push(mark.threads.map_or_else(dash, |n| n.to_string()));
        row.extend(several.then(|| mark.processes.len().to_string()));
        row.extend(nmt.then(|| mib(mark.nmt.as_ref().map(|nmt| nmt.total_committed_bytes))));
        row.extend(charge.then(|| mib(mark.charge_bytes)));
        row
    };
    let peak = trial.rss_bytes_peak.map(|peak| format!("Peak RSS: {}.", Bytes(peak)));
    let mut notes: Vec<String> = match tells_growth(trial) {
        true => vec![peak.into_iter().chain(live_set(trial)).collect::<Vec<_>>().join(" ")],
        false => peak.into_iter().chain(what_changed(trial)).collect(),
    };
    notes.retain(|note| !note.is_empty());
    notes.extend(own::told(&trial.marks));
    if several {
        notes.push(
            "All values are sums over the processes; RSS counts shared pages once for each process, PSS \
             only once."
                .to_owned(),
        );
    }
    if nmt {
        notes.push("NMT counts committed memory, which is not all resident.".to_owned());
    }
    notes.extend(direct(trial));
    notes.extend(own_weight(&trial.observer));
    Table::new("memory at each mark, MiB", head, trial.marks.iter().map(row)).noted(notes)
}

/// A sentence on the memory that the load added, and on how much rest, a full collection, and a trim returned.
fn what_changed(trial: &Trial) -> Option<String> {
    let at = |point: MarkPoint| weight(trial.at(point));
    let (start, loaded) = (at(MarkPoint::Start)?, at(MarkPoint::Loaded)?);
    let change = |from: u64, to: u64| Growth::between(Bytes(from), Bytes(to)).to_string();
    let mut text = format!("{} changed by {} MiB during the load", weight_word(trial), change(start, loaded));
    let mut before = loaded;
    for (name, what) in LATER {
        if let Some(after) = weight(trial.mark(name)) {
            text.push_str(&format!(", then by {} {what}", change(before, after)));
            before = after;
        }
    }
    text.push('.');
    Some(text + &live_set(trial).map(|live| format!(" {live}")).unwrap_or_default())
}

fn live_set(trial: &Trial) -> Option<String> {
    trial.at(MarkPoint::Collected)?.heap.live_bytes.map(|live| format!("Live set: {}.", Bytes(live)))
}

/// Direct memory at the mark with the most of it, if significant.
fn direct(trial: &Trial) -> Option<String> {
    let marks = trial.marks.iter().filter_map(|mark| Some((mark, mark.direct.as_ref()?)));
    let (mark, direct) = marks.max_by_key(|(_, direct)| direct.bytes())?;
    (direct.bytes() >= DIRECT_BYTES_MIN).then(|| format!("Direct memory at {}: {}.", mark.name, direct_text(direct)))
}

/// Every server uses this much direct memory for its sockets.
const DIRECT_BYTES_MIN: u64 = 1 << 20;

/// The cost of measuring: attaching adds memory to the subject, and Loadline itself uses memory on the machine.
fn own_weight(observer: &Observer) -> Option<String> {
    let own = observer.own_rss_bytes_peak?;
    let added = observer.attach_rss_bytes.and_then(|bytes| u64::try_from(bytes).ok());
    let added = added.map_or_else(String::new, |bytes| {
        format!(
            "Weighing added at most {} to the server. \
        ",
            Bytes(bytes)
        )
    });
    Some(format!("{added}Loadline's own peak RSS: {}.", Bytes(own)))
}

pub(crate) fn load(trial: &Trial) -> Table {
    let head = ["phase", "requests", "failed", "req/s", "p50", "p90", "p99", "p99.9", "max", "GC", "GC ms"];
    let row = |phase: &PhaseRecord| {
        let mut row = vec![phase.name.clone()];
        if !phase.works() || phase.is_own() && !phase.is_counted() {
            row.extend(vec![dash(); 8]);
        } else if let Some(driver) = &phase.driver {
            row.extend(drivers::cells(phase, driver));
        } else {
            let rate = phase.achieved_per_s.round() as u64;
            row.extend([phase.requests, phase.failed.total(), rate].map(grouped));
            let times = phase.usual_ms().map(|q| [q.p50, q.p90, q.p99, q.p999, q.max].map(milliseconds));
            row.extend(times.unwrap_or_else(|| std::array::from_fn(|_| dash())));
        }
        row.extend(collections(&phase.subject));
        row
    };
    let mut notes = Vec::new();
    if trial.phases.iter().any(PhaseRecord::is_closed) {
        notes.push("Closed model: times are service times, from the actual start to the last byte.".to_owned());
    }
    if trial.phases.iter().any(PhaseRecord::is_open) {
        notes.push("Open model: times are response times, from the intended start to the last byte.".to_owned());
    }
    notes.extend(drivers::notes(&trial.phases));
    notes.extend(own::work(&trial.phases));
    notes.extend(throttling(trial));
    notes.extend(costs(trial));
    notes.extend(allocation(trial));
    Table::new("load, times in ms", head, trial.phases.iter().map(row)).noted(notes)
}

/// The number of collections, and their total time in ms.
fn collections(subject: &SubjectWork) -> [String; 2] {
    [subject.gc_count.map_or_else(dash, grouped), subject.gc_ms.map_or_else(dash, |ms| format!("{ms:.0}"))]
}

/// How the CPU limit throttled the subject in each work phase.
fn throttling(trial: &Trial) -> Option<String> {
    let each = |phase: &PhaseRecord| {
        let (share, held_s) = (phase.throttled_share()?, phase.subject.throttling?.throttled_s);
        phase.works().then(|| format!("{:.0}% of periods in {} ({held_s:.1} s)", share * 100.0, phase.name))
    };
    let phases: Vec<String> = trial.phases.iter().filter_map(each).collect();
    let limit = trial.cpu_limit().filter(|_| !phases.is_empty())?;
    Some(format!("The CPU limit of {limit} throttled the server in {}.", phases.join(", ")))
}

/// Java heap allocated per response in each phase, and at rest.
fn allocation(trial: &Trial) -> Option<String> {
    let each = |phase: &PhaseRecord| {
        let bytes = phase.alloc_per_request()?;
        Some(format!("{} {}", phase.name, Quantity::new(Unit::BytesPerRequest, bytes)))
    };
    let phases: Vec<String> = trial.phases.iter().filter_map(each).collect();
    let idle = |phase: &PhaseRecord| Some(phase.subject.allocated_idle_bytes? as f64 / phase.seconds);
    let idle = trial
        .phases
        .iter()
        .rev()
        .find_map(idle)
        .map_or("idle allocation is not subtracted, because there was no rest phase".to_owned(), |rate| {
            format!("minus {} B/s allocated when idle", grouped(rate as u64))
        });
    (!phases.is_empty()).then(|| format!("Allocated per request: {} ({idle}).", phases.join(", ")))
}

/// CPU of subject and load generator in the last work phase.
fn costs(trial: &Trial) -> Option<String> {
    let phase = trial.phases.iter().rev().find(|phase| phase.requests > 0)?;
    let per_request = |cpu_s: f64| cpu_s * 1e6 / phase.requests as f64;
    let by_purpose = phase.subject.cpu_by_purpose.map_or_else(String::new, |of| {
        let [app, jit, gc, vm] = [of.app_s, of.jit_s, of.gc_s, of.vm_s].map(per_request);
        format!(" (application {app:.1}, JIT {jit:.1}, GC {gc:.1}, VM {vm:.1})")
    });
    if phase.is_own() {
        let each_us = per_request(phase.subject.cpu_s?);
        return Some(format!("CPU per operation in {}: {each_us:.1} us{by_purpose}.", phase.name));
    }
    let driver = phase.driver.as_ref().and_then(|driver| driver.cpu_s).map(per_request);
    let generator = driver.or_else(|| phase.generator.map(|generator| generator.cpu_us_per_request));
    let both = [phase.subject.cpu_s.map(per_request), generator];
    let [subject, generator] = both.map(|us| us.map_or_else(dash, |us| format!("{us:.1}")));
    Some(format!("CPU per request in {}: server {subject} us{by_purpose}, load generator {generator} us.", phase.name))
}

/// NMT by category: committed at each mark from `start`, and growth up to `loaded`.
pub(crate) fn by_category(trial: &Trial) -> Option<Table> {
    let marks: Vec<(&str, &NmtRecord)> =
        trial.marks.iter().filter_map(|mark| Some((mark.name.as_str(), mark.nmt.as_ref()?))).collect();
    let shown = marks.iter().find(|(name, _)| *name == MarkPoint::Loaded.word()).or(marks.last())?;
    let first = marks.first()?;
    let growth = |growth: Option<i64>| growth.map_or_else(dash, |bytes| signed(bytes, kib));
    let committed = |nmt: &NmtRecord, name: &str| {
        let found = nmt.categories.iter().find(|category| category.name == name);
        found.map_or_else(dash, |category| kib(category.committed_bytes))
    };
    let totals = [first.1, shown.1].map(|nmt| kib(nmt.total_committed_bytes));
    let total = [vec!["Total".to_owned()], totals.to_vec(), vec![growth(shown.1.total_growth_bytes)]].concat();
    let row = |category: &NmtCategory| {
        let (name, bytes) = (category.name.clone(), kib(category.committed_bytes));
        vec![name, committed(first.1, &category.name), bytes, growth(category.growth_bytes)]
    };
    let rows = std::iter::once(total).chain(shown.1.categories.iter().map(row));
    let head = ["category", first.0, shown.0, "growth"];
    Some(Table::new("native memory by category, committed KiB", head, rows))
}

const ONE_EACH: &str = "One trial of each configuration cannot show a difference. Repeat the trials before you choose.";

/// A row per trial.
///
/// The rate is that of the plan's last work phase with counts; a trial that did not reach it has none.
pub(super) fn side_by_side<'a>(trials: &'a [Trial]) -> Table {
    let weighed = own::columns(trials);
    let brief = |name: &&'a str| if *name == MarkPoint::Collected.word() { "coll." } else { *name };
    let head = std::iter::once("configuration").chain(weighed.iter().map(brief));
    let head = head.chain(["peak RSS", "req/s", "p50", "p99", "GC", "GC ms"]);
    let working = |trial: &'_ Trial| trial.phases.iter().filter(|phase| phase.works()).count();
    let furthest = trials.iter().max_by_key(|trial| working(trial));
    let counts = |phase: &&PhaseRecord| phase.works() && (phase.is_counted() || !phase.is_own());
    let last = furthest.and_then(|trial| trial.phases.iter().rev().find(counts));
    let last = last.map(|phase| phase.name.as_str());
    let row = |trial: &Trial| {
        let mut row = vec![trial.configuration.clone()];
        row.extend(weighed.iter().map(|name| mib(weight(trial.mark(name)))));
        row.push(mib(trial.rss_bytes_peak));
        let phase = trial.phases.iter().find(|phase| Some(phase.name.as_str()) == last);
        let counted = phase.filter(|phase| phase.is_counted());
        row.push(counted.map_or_else(dash, |phase| grouped(phase.achieved_per_s.round() as u64)));
        let own = phase.and_then(PhaseRecord::usual_ms).map(|q| [Some(q.p50), Some(q.p99)]);
        let [p50, p99] = phase.and_then(drivers::times).map(|times| [times.p50, times.p99]).or(own).unwrap_or_default();
        row.extend([p50, p99].map(|time| time.map_or_else(dash, milliseconds)));
        row.extend(collections(&phase.map(|phase| phase.subject).unwrap_or_default()));
        row
    };
    let doubts = trials.iter().filter(|trial| !trial.doubts.is_empty()).count();
    let open = furthest
        .is_some_and(|trial| trial.phases.iter().any(|phase| Some(phase.name.as_str()) == last && phase.is_open()));
    let times = if open { "response" } else { "service" };
    let of = last.unwrap_or("no phase");
    let word = trials.first().map_or("RSS", weight_word);
    let mut notes = vec![format!("{word} at each mark; rate, {times} times, and GC from {of}.")];
    let names: BTreeSet<&str> = trials.iter().map(|trial| trial.configuration.as_str()).collect();
    notes.extend((names.len() == trials.len()).then(|| ONE_EACH.to_owned()));
    if doubts > 0 {
        notes.push(match trials.len() {
            all if all == doubts && all > 1 => format!("All {all} trials have doubts (see below)."),
            all => format!("{doubts} of {} have doubts (see below).", several(all as u64, "trial")),
        });
    }
    Table::new(format!("side by side, {word} in MiB, times in ms"), head, trials.iter().map(row)).noted(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_on_single_trials_needs_several_configurations() {
        let notes = |names: &[&str]| {
            let trials: Vec<Trial> = (0..).zip(names).map(|(index, name)| Trial::new(name, 0, index)).collect();
            side_by_side(&trials).notes
        };
        assert!(notes(&["a", "b"]).iter().any(|note| note == ONE_EACH));
        assert!(!notes(&["a", "a", "a"]).iter().any(|note| note == ONE_EACH));
    }
}
