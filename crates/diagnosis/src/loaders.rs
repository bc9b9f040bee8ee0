//! Class loaders that keep accumulating.

use super::facts::{COLLECTED_SHARE, Facts, alike, share, sum};
use super::found::{found, listed};
use crate::record::{Finding, FindingRecord, LoaderChange, LoaderSpan, LoaderSum, Mark, each_once};
use crate::scenario::MarkPoint;
use crate::units::{Bytes, grouped, several};

/// Fewer new loaders in a span may come from features used for the first time.
const LOADERS_MIN: i64 = 5;

const NEXT: &str = "in a heap dump (`--heap-dump FILE`), find what keeps one of them alive. Whatever creates one \
     per request should create only one, and drop its references to the others";

/// Loader types that add about as many loaders per request in each of two work spans, and whose loaders no collection
/// frees. Source: measured on `LeaksLoaders` and `scenarios/class-churn`.
pub(super) fn keep_coming(facts: &Facts) -> Vec<FindingRecord> {
    let spans = facts.worked();
    let types = spans.iter().flat_map(|(_, to, _)| to.loaders.iter().flat_map(|loaders| &loaders.types));
    let names = each_once(types.map(|of| of.name.as_str()));
    names.into_iter().filter_map(|name| keeps_coming(facts.marks, name, &spans)).collect()
}

/// Fewer loaders of a type are not worth a finding.
const MANY_MIN: u64 = 100;
/// Loaders with more classes each are probably applications.
const CLASSES_EACH_MAX: u64 = 4;
/// A smaller share of RSS is not worth a finding.
const MANY_SHARE_MIN: f64 = 0.05;

/// Types with very many live loaders of one or two classes each: every loader has its own chunks. Source: JEP 387
/// (chunks of a loader), mustangproject #1158 (17,072 loaders = 91 threads × 188 scripts); measured: 4,800 loaders with
/// one class each take 66 MiB of metaspace, 14 KiB each.
pub(super) fn many(facts: &Facts, known: &[FindingRecord]) -> Vec<FindingRecord> {
    let Some((mark, account)) = facts.weighed() else { return Vec::new() };
    let is_known = |name: &str| {
        known.iter().any(|of| matches!(&of.finding, Finding::LoadersKeepComing { loader, .. } if loader == name))
    };
    let types = mark.loaders.iter().flat_map(|loaders| &loaders.types).filter(|of| !is_known(&of.name));
    let crowds = types.filter(|of| {
        of.now.loaders >= MANY_MIN
            && of.now.classes <= of.now.loaders.saturating_mul(CLASSES_EACH_MAX)
            && share(of.now.taken_bytes, account.total_bytes) >= MANY_SHARE_MIN
    });
    let told = crowds.map(|of| {
        let came_last = of.change.map(|change| change.added.loaders).filter(|_| !facts.phases.is_empty());
        let came = came_last.map(|came| match came {
            0 => "; none were added in the last load phase, so their number is no longer growing".to_owned(),
            came => format!("; {} of them were added in the last load phase", grouped(came)),
        });
        let LoaderSum { loaders, classes, taken_bytes, .. } = of.now;
        let (loaders, classes, taken) = (grouped(loaders), several(classes, "class"), Bytes(taken_bytes));
        let (name, came) = (&of.name, came.unwrap_or_default());
        let text = format!(
            "{loaders} class loaders of type `{name}`, with {classes}, hold {taken} of \
             metaspace{came}"
        );
        let finding = Finding::LoadersMany { loader: name.clone(), now: of.now, came_last };
        FindingRecord { costs_bytes: taken_bytes, ..found(finding, text, MANY_NEXT) }
    });
    told.collect()
}

const MANY_NEXT: &str = "share compiled or generated code among threads and requests (one cache, one loader), or \
     interpret it: every loader gets its own chunks of metaspace, however little it loads. `--heap-dump FILE` \
     shows what keeps them alive; `-XX:MaxMetaspaceSize` would only make class loading fail";

/// The finding for a type; its weight is the memory of the new loaders.
fn keeps_coming(marks: &[Mark], name: &str, spans: &[(&Mark, &Mark, u64)]) -> Option<FindingRecord> {
    let of = |(from, to, ok): &(&Mark, &Mark, u64)| {
        let change = at(to, name)?.1?;
        let (from, to, LoaderChange { added, ended, .. }) = (from.name.clone(), to.name.clone(), change);
        let span = LoaderSpan { from, to, ok: *ok, added, ended };
        Some((change.loaders_growth(), span)).filter(|(growth, _)| *growth >= LOADERS_MIN)
    };
    let grown: Vec<(i64, LoaderSpan)> = spans.iter().filter_map(of).collect();
    let grown = alike(grown, |(growth, span)| *growth as f64 / span.ok as f64)?;
    let spans: Vec<LoaderSpan> = grown.into_iter().map(|(_, span)| span).collect();
    let added: u64 = spans.iter().map(|span| span.added.loaders.saturating_sub(span.ended.loaders)).sum();
    let last = &spans.last()?.to;
    let end = marks.iter().position(|mark| mark.name == *last)?;
    let collected = marks[end + 1..].iter().find(|mark| mark.name == MarkPoint::Collected.word());
    let gone = collected.and_then(|mark| at(mark, name)?.1).map_or(0, |change| change.ended.loaders);
    if gone as f64 >= added as f64 * COLLECTED_SHARE {
        return None;
    }
    let live_after_gc = collected.and_then(|mark| at(mark, name)).map(|(now, _)| now);
    let taken = sum(spans.iter().map(|span| span.added.taken_bytes));
    let costs_bytes = live_after_gc.map_or(taken, |live| live.taken_bytes);
    let of_span = |span: &LoaderSpan| {
        let (loaders, bytes) = (grouped(span.added.loaders), Bytes(span.added.taken_bytes));
        let (ok, classes) = (grouped(span.ok), several(span.added.classes, "class"));
        format!("{loaders} with {classes}, {bytes}, over {ok} responses from {} to {}", span.from, span.to)
    };
    let live = match live_after_gc {
        Some(live) => format!("; {} survive a full GC, with {}", grouped(live.loaders), Bytes(live.taken_bytes)),
        None => "; no full GC was run to see whether it would unload them".to_owned(),
    };
    let text = format!(
        "class loaders of type `{name}` pile up each time the same load runs: {}{live}",
        listed(&spans, of_span)
    );
    let finding = Finding::LoadersKeepComing { loader: name.to_owned(), spans, live_after_gc };
    Some(FindingRecord { costs_bytes, ..found(finding, text, NEXT) })
}

fn at(mark: &Mark, name: &str) -> Option<(LoaderSum, Option<LoaderChange>)> {
    let types = &mark.loaders.as_ref()?.types;
    types.iter().find(|of| of.name == name).map(|of| (of.now, of.change))
}

#[cfg(test)]
mod tests {
    use super::super::of_trials;
    use super::*;
    use crate::record::{LoaderType, LoadersRecord, PhaseRecord, Trial};

    fn sum(loaders: u64) -> LoaderSum {
        LoaderSum { loaders, classes: loaders, taken_bytes: loaders << 14, ..LoaderSum::default() }
    }

    fn mark(name: &str, at_s: f64, now: u64, added: u64, ended: u64) -> Mark {
        let change = LoaderChange { added: sum(added), ended: sum(ended), ..LoaderChange::default() };
        let of = LoaderType { name: "g.GroovyClassLoader".to_owned(), now: sum(now), change: Some(change) };
        let loaders = Some(LoadersRecord { types: vec![of], ..LoadersRecord::default() });
        Mark { name: name.to_owned(), at_s, loaders, ..Mark::default() }
    }

    fn trial(oks: [u64; 2], added: [u64; 2], collected: Option<(u64, u64)>) -> Trial {
        let phase =
            |(name, at_s, ok): (&str, f64, u64)| PhaseRecord { name: name.to_owned(), at_s, ok, ..<_>::default() };
        let mut marks = vec![
            mark("start", 1.0, 0, 0, 0),
            mark("warm", 3.0, added[0], added[0], 0),
            mark("loaded", 5.0, added[0] + added[1], added[1], 0),
        ];
        marks.extend(collected.map(|(now, ended)| mark("collected", 6.0, now, 0, ended)));
        let phases = [("warmup", 2.0, oks[0]), ("steady", 4.0, oks[1])].map(phase).to_vec();
        Trial { marks, phases, ..Trial::new("a", 0, 0) }
    }

    #[test]
    fn loaders_added_by_each_equal_load_are_a_finding() {
        let found =
            of_trials(&[trial([400, 800], [412, 790], Some((1_202, 0))), trial([400, 800], [400, 800], None)]).findings;
        let of = found[0].of.clone().unwrap();
        assert_eq!((found.len(), of.trials_alike, of.trial), (1, 2, 0));
        let text = &found[0].text;
        for part in [
            "`g.GroovyClassLoader` pile up each time the same load runs: 412 with 412 classes, 6.4 MiB, over 400 \
             responses from start to warm",
            "790 with 790 classes, 12.3 MiB, over 800 responses from warm to loaded",
            "1,202 survive a full GC, with 18.8 MiB",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let alone = of_trials(&[trial([400, 800], [400, 800], None)]).findings;
        assert!(alone[0].text.ends_with("no full GC was run to see whether it would unload them"), "{}", alone[0].text);
    }

    #[test]
    fn loaders_from_first_use_garbage_or_idle_spans_are_not_a_finding() {
        let none = |trial: Trial| assert_eq!(of_trials(&[trial]).findings, []);
        none(trial([400, 400], [412, 100], None));
        none(trial([400, 400], [412, 3], None));
        none(trial([400, 400], [3, 3], None));
        none(trial([400, 400], [412, 412], Some((4, 820))));
        none(trial([0, 400], [412, 412], None));
        none(Trial::default());
    }
}
