//! Classes and their code: growing metadata, a missing archive, compiled code.

use super::facts::{COLLECTED_SHARE, Facts, alike, holds, share, sum, tagged};
use super::found::{file_name, found, listed};
use crate::owner::Owner;
use crate::record::{AccountRecord, CdsCause, Finding, FindingRecord, GrowthSpan, Mark};
use crate::remedy::changes;
use crate::scenario::MarkPoint;
use crate::units::{Bytes, grouped, several};

/// Less growth may come from features used for the first time.
const GROWTH_MIN: u64 = 1 << 20;
/// Any server compiles this much code, or this share of RSS.
const CODE_MIN: u64 = 16 << 20;
const CODE_SHARE_MIN: f64 = 0.10;
/// The share of the profiled code segment that is profiling overhead.
const PROFILING_SHARE: f64 = 0.3;
/// The JDK's archive saved 8 to 10 MB at startup, but no memory for what was resolved under load (measured).
const CDS_GAIN_MAX: u64 = 10_000_000;

/// Equal loads keep adding class metadata. Source: JEP 387 (JDK 16: metadata is freed only with its loader), measured
/// on `scenarios/class-churn`. If loaders of a type keep coming, that finding is more specific.
pub(super) fn metaspace_grows(facts: &Facts) -> Option<FindingRecord> {
    let of = |(from, to, ok): &(&Mark, &Mark, u64)| {
        let growth_bytes = metadata(to)?.saturating_sub(metadata(from)?);
        let span = GrowthSpan { from: from.name.clone(), to: to.name.clone(), ok: *ok, growth_bytes };
        (growth_bytes >= GROWTH_MIN).then_some(span)
    };
    let grown: Vec<GrowthSpan> = facts.worked().iter().filter_map(of).collect();
    let spans = alike(grown, |span| span.growth_bytes as f64 / span.ok as f64)?;
    let last = &spans.last()?.to;
    let added = sum(spans.iter().map(|span| span.growth_bytes));
    let end = facts.marks.iter().find(|mark| mark.name == *last).and_then(metadata)?;
    let collected = facts.at(MarkPoint::Collected).and_then(metadata);
    let gone = collected.map_or(0, |left| end.saturating_sub(left));
    if gone as f64 >= added as f64 * COLLECTED_SHARE {
        return None;
    }
    let of_span = |span: &GrowthSpan| {
        format!("{} over {} responses, from {} to {}", Bytes(span.growth_bytes), span.ok, span.from, span.to)
    };
    let kept = if collected.is_some() { "; a full GC freed little of it" } else { "" };
    let text = format!("class metadata grows each time the same load runs: {}{kept}", listed(&spans, of_span));
    let next = "in the class loader table, look for the loader that grows, then find what creates classes on each \
         request";
    let finding = Finding::MetaspaceKeepsGrowing { spans, kept_by_gc: collected.is_some() };
    Some(FindingRecord { costs_bytes: added, ..found(finding, text, next) })
}

/// Evidence against growing metadata: the last load added almost no class metadata.
pub(super) fn metaspace_stands(facts: &Facts) -> Option<String> {
    let (from, to, ok) = *facts.worked().last()?;
    let (had, has) = (metadata(from)?, metadata(to)?);
    let growth = has.saturating_sub(had);
    let (from, to, growth_of) = (&from.name, &to.name, Bytes(growth));
    let answers = several(ok, "response");
    (growth < GROWTH_MIN).then(|| {
        format!(
            "class metadata grew by only {growth_of} over {answers}, from {from} to \
         {to}"
        )
    })
}

/// A server loads 1,000 to 3,000 classes during warm-up, after it is ready.
const GENERATED_MIN: u64 = 4000;
const GENERATED_BYTES_MIN: u64 = 16 << 20;
const GENERATED_SHARE_MIN: f64 = 0.1;

/// The load added very many classes, and a full collection kept them: proxies, scripts, serializers, or lambdas
/// generated repeatedly in one loader. Many small loaders are another finding. Source: JEP 387 (metadata is freed
/// only with its loader); measured: 16,800 classes in the application's loader, 90 MiB.
pub(super) fn generated(facts: &Facts) -> Option<FindingRecord> {
    let (loaded, account) = facts.weighed()?;
    let first = facts.at(MarkPoint::Start)?.loaders.as_ref()?;
    let last = facts.at(MarkPoint::Collected).unwrap_or(loaded).loaders.as_ref()?;
    let classes = last.total.classes.saturating_sub(first.total.classes);
    let bytes = last.total.taken_bytes.saturating_sub(first.total.taken_bytes);
    let loaders = last.total.loaders.saturating_sub(first.total.loaders);
    let largest = last.types.iter().max_by_key(|of| of.now.taken_bytes)?;
    let is_of_few = classes >= loaders.saturating_mul(CLASSES_EACH_MIN);
    let is_heavy = bytes >= GENERATED_BYTES_MIN && share(bytes, account.total_bytes) >= GENERATED_SHARE_MIN;
    if classes < GENERATED_MIN || !is_of_few || !is_heavy {
        return None;
    }
    let loader = largest.name.clone();
    let (came, hold) = (grouped(classes), Bytes(bytes));
    let text = format!(
        "the load added {came} classes, most of them in `{loader}`. They hold {hold} of metaspace, which no GC \
         can free while that loader is alive"
    );
    let next = format!(
        "find what generates classes on each request (scripts, proxies, serializers, expressions; see {} or \
         `-Xlog:class+load`), and generate each class once. `-XX:MaxMetaspaceSize` would only make class loading fail",
        facts.jcmd("VM.classes")
    );
    let finding = Finding::ClassesGenerated { loader, classes, bytes };
    Some(FindingRecord { costs_bytes: bytes, ..found(finding, text, next) })
}

/// Loaders with fewer classes each belong to the finding on many loaders.
const CLASSES_EACH_MIN: u64 = 20;

/// Chunks used by loaders if known, otherwise resident metadata.
fn metadata(mark: &Mark) -> Option<u64> {
    let taken = mark.loaders.as_ref().map(|loaders| loaders.total.taken_bytes);
    taken.or_else(|| mark.account.as_ref().map(resident_metadata))
}

fn resident_metadata(account: &AccountRecord) -> u64 {
    holds(account, Owner::Metaspace).saturating_add(holds(account, Owner::ClassSpace))
}

/// The JVM maps no class archive, or not the requested one. Source: measured (8 to 10 MB at startup); a mismatch is
/// silent without `-Xshare:on` (man page of `java`, JDK 17 and 25).
pub(super) fn cds_missing(facts: &Facts) -> Option<FindingRecord> {
    let (_, account) = facts.weighed()?;
    let classes = resident_metadata(account);
    let cause = cause(facts, account).filter(|_| classes > 0)?;
    let bound = classes.min(CDS_GAIN_MAX);
    let none = "no class data archive (CDS) is mapped";
    let (what, next) = match &cause {
        CdsCause::SwitchedOff => (format!("{none} because it is switched off"), "remove `-Xshare:off`"),
        CdsCause::NoArchive => (
            format!("{none} because this JDK has no matching one"),
            "run `java -Xshare:dump` as the user that owns the JDK",
        ),
        CdsCause::NotMapped { file } => (
            format!("the class data archive `{file}` was specified but could not be mapped"),
            "start once with `-Xshare:on`: the JVM then prints what does not match (JDK, class path, or collector)",
        ),
    };
    let text = format!("{what}; class metadata takes up {}", Bytes(classes));
    let found = found(Finding::CdsMissing { cause }, text, next);
    Some(FindingRecord { costs_bytes: bound, gain_bytes_max: Some(bound), ..found })
}

fn cause(facts: &Facts, account: &AccountRecord) -> Option<CdsCause> {
    let flags = &facts.flags;
    let maps = account.owners.iter().find(|owner| owner.name == Owner::Cds.name() && owner.rss_bytes > 0);
    let off = flags.words("-Xshare:").last() == Some("-Xshare:off") || flags.is("UseSharedSpaces", "false");
    let given = flags.words("-XX:SharedArchiveFile=").last().and_then(|word| Some(word.split_once('=')?.1));
    match (maps, given) {
        (None, _) if off => Some(CdsCause::SwitchedOff),
        (None, None) => Some(CdsCause::NoArchive),
        (None, Some(file)) => Some(CdsCause::NotMapped { file: file.to_owned() }),
        (Some(cds), Some(files)) => {
            // In a path with several archives, the base comes first.
            let is_mapped = |file: &str| cds.detail.iter().any(|detail| file_name(&detail.name) == file_name(file));
            let missing = files.split(':').find(|file| !is_mapped(file) && !cds.detail.is_empty());
            missing.map(|file| CdsCause::NotMapped { file: file.to_owned() })
        }
        (Some(_), None) => None,
    }
}

/// Compiled code and compiler memory. Source: measured (only C1, with a trim and one arena: 74.7 to 44.0 MB at 0.775 of
/// the rate), the man page of `java` 25 (240 MB reserved with tiers, 48 without), JDK-8269555.
pub(super) fn code_large(facts: &Facts) -> Option<FindingRecord> {
    let (mark, account) = facts.weighed()?;
    let code_bytes = holds(account, Owner::CodeCache);
    let compiler_bytes = tagged(mark, "Compiler");
    let flags = &facts.flags;
    let is_tiered = flags.is_free("TieredStopAtLevel") && !flags.is("TieredCompilation", "false");
    let is_large = code_bytes >= CODE_MIN && share(code_bytes, account.total_bytes) >= CODE_SHARE_MIN;
    if !is_large || !is_tiered || flags.words("-Xint").next().is_some() {
        return None;
    }
    let segment = |name: &str| mark.code.iter().find(|heap| heap.name == name).and_then(|heap| heap.rss_bytes);
    let segments = segment("non-profiled nmethods").zip(segment("profiled nmethods"));
    let less = segments.map_or(code_bytes / 2, |(optimised, profiled)| {
        optimised.saturating_add((profiled as f64 * PROFILING_SHARE) as u64).min(code_bytes)
    });
    let gain = less.saturating_add(compiler_bytes.unwrap_or(0));
    let holds = compiler_bytes.map(|bytes| format!(", and the compilers hold {} of malloc memory", Bytes(bytes)));
    let text = format!("compiled code takes up {}{}", Bytes(code_bytes), holds.unwrap_or_default());
    let next = "`-XX:TieredStopAtLevel=1` makes it smaller but costs CPU time: compare both at a constant rate";
    let remedies = vec![changes::first_compiler()];
    let costs_bytes = code_bytes.saturating_add(compiler_bytes.unwrap_or(0));
    let found = found(Finding::CodeLarge { code_bytes, compiler_bytes }, text, next);
    Some(FindingRecord { costs_bytes, gain_bytes_max: Some(gain), remedies, ..found })
}
