//! The page of two accounts of a JVM: the time between them, which owners grew, and which parts of them grew.

use super::account::{asked_for, which};
use super::cells::{beginning, end, kib, mib, rounds_to_none, signed, sum};
use super::details::Detail;
use super::doubts::doubts;
use super::facts::jvm_text;
use super::inside::numerous;
use super::journey::between;
use super::next::{self, OWNER_GROWN_MIN};
use crate::owner::{Owner, label};
use crate::page::{Page, Part, Section, Topic};
use crate::record::{
    AccountDocument, ChangesDocument, DoubtRecord, Mark, ObjectClass, PartChangeRecord, ThreadPoolRecord,
};
use crate::table::Table;
use crate::units::{Bytes, Growth, grouped, growth, several};
use crate::words::dash;
use loadline_base::java_names::spelled;
use loadline_base::order::Order as _;
use loadline_jvm::purpose::Purpose;

/// Rows per kind of part, by default and if the kind was requested.
const ROWS_MAX: usize = 10;
const ROWS_ASKED_MAX: usize = 40;
/// Room for names, in characters: next to three numbers and an owner, and next to five numbers.
const NAME_MAX: usize = 30;
const NAME_COUNTED_MAX: usize = 25;

/// The growth of live objects, with the class that grew most; `None` unless both accounts counted them.
fn live(now: &AccountDocument) -> Option<String> {
    let objects = now.objects.as_ref()?;
    let grown = Growth(growth(objects.at_start?.bytes, objects.total.bytes));
    let named = |class: &ObjectClass| {
        let more = growth(class.at_start?.instances, class.now.instances);
        (more != 0).then(|| format!("{} ({} objects)", spelled(&class.name), signed(more, grouped)))
    };
    let most = objects.classes.first().and_then(named).map(|most| format!(", mostly {most}"));
    let numerous = numerous(objects).next().filter(|(at, _)| *at > 0).and_then(|(_, class)| named(class));
    let numerous = numerous.map(|own| format!("; outside the JDK, mostly {own}"));
    Some(format!("Live objects changed by {grown} MiB{}{}.", most.unwrap_or_default(), numerous.unwrap_or_default()))
}

/// The likely owners of malloc's growth if it is a single row, or how to split it; `None` if it hardly grew.
fn malloc(document: &ChangesDocument) -> Option<String> {
    let (then, now) = (&document.then.mark, &document.now.mark);
    let row = document.owners.iter().find(|one| one.name == Owner::MallocUnsplit.name())?;
    let grown = row.growth_bytes.filter(|bytes| *bytes >= OWNER_GROWN_MIN)?;
    let began = format!("malloc grew by {}", Bytes(grown.unsigned_abs()));
    if let (Some(before), Some(after)) = (&then.nmt, &now.nmt) {
        let of_malloc = after.categories.iter().filter(|one| !NOT_OF_MALLOC.contains(&one.name.as_str()));
        let grown = of_malloc.map(|one| {
            let then = before.categories.iter().find(|of| of.name == one.name).map_or(0, |of| of.committed_bytes);
            (growth(then, one.committed_bytes), &one.name)
        });
        let mut grown: Vec<_> = grown.filter(|(bytes, _)| !rounds_to_none(bytes.unsigned_abs())).collect();
        grown.largest_first(|(bytes, _)| *bytes);
        let named: Vec<String> =
            grown.iter().take(3).map(|(bytes, name)| format!("{name} {}", Growth(*bytes))).collect();
        let named = if named.is_empty() { "no growth".to_owned() } else { named.join(", ") };
        return Some(format!("{began}. Native Memory Tracking shows {named}."));
    }
    let is_jit = |pool: &&ThreadPoolRecord| Purpose::of(&pool.name) == Purpose::Jit;
    let cpu_s = |of: &Mark| of.pools.iter().filter(is_jit).map(|pool| pool.cpu_s).sum::<f64>();
    let compiled_s = cpu_s(now) - cpu_s(then);
    let jit = (compiled_s >= COMPILED_S_MIN).then(|| {
        format!(
            "the JIT compilers ({compiled_s:.1} s of CPU time in \
             between)"
        )
    });
    let threads = now.threads.zip(then.threads).map_or(0, |(now, then)| now.saturating_sub(then));
    let threads = (threads > 0).then(|| several(threads, "new thread"));
    let likely: Vec<String> = jit.into_iter().chain(threads).collect();
    let likely = if likely.is_empty() { String::new() } else { format!(" Likely owners: {}.", likely.join(", ")) };
    Some(format!(
        "{began}.{likely} Run `jcmd {} System.trim_native_heap` to see how much a trim releases, or restart with \
         `-XX:NativeMemoryTracking=summary` to see what is in use.",
        document.now.jvm.pid
    ))
}

/// NMT categories that mostly bypass malloc.
const NOT_OF_MALLOC: [&str; 7] = ["Java Heap", "Class", "Metaspace", "Thread", "Code", "Shared class space", "GC"];
/// If compilers used less CPU time than this, they allocated little.
const COMPILED_S_MIN: f64 = 0.5;

/// The page of changes: only the requested parts, or the first of every kind by default.
pub fn summarize_changes(document: &ChangesDocument, asked: &[Detail]) -> Page {
    let (then, now) = (&document.then, &document.now);
    let mut sections = vec![Section::new(Topic::Conditions, "conditions", [facts(document)])];
    if let (Some(before), Some(after)) = (&then.mark.account, &now.mark.account) {
        let (table, sentence) = between(before, after);
        let next = next::of_changes(document);
        let also = live(now).into_iter().chain(malloc(document)).map(Part::Text);
        let parts = [Part::Text(nothing_grew(document).unwrap_or(sentence))].into_iter().chain(also).chain(next);
        sections.push(Section::new(Topic::Answer, "summary", parts));
        sections.push(Section::titled(Topic::Memory, "memory", [Part::Table(table)]));
    }
    let mut blocks = Vec::new();
    let rows = if asked.is_empty() { ROWS_MAX } else { ROWS_ASKED_MAX };
    for same in document.parts.chunk_by(|one, other| one.kind == other.kind) {
        if asked.is_empty() || asked.iter().any(|detail| kind_of(*detail) == Some(same[0].kind.as_str())) {
            blocks.push(Part::Table(parts(same, rows)));
        }
    }
    for detail in asked.iter().filter(|detail| !document.parts.iter().any(|part| kind_of(**detail) == Some(&part.kind)))
    {
        let (title, word) = title(kind_of(*detail).unwrap_or_default());
        blocks.push(Part::under(title, [Part::Text(format!("No {word} changed."))]));
    }
    blocks.extend(asked_for(now));
    if now.objects.as_ref().is_some_and(|objects| objects.at_start.is_none()) {
        let text = "The earlier account has no class counts to compare with. Use `--classes` for both accounts.";
        blocks.push(Part::Text(text.to_owned()));
    }
    sections.push(Section::titled(Topic::Details, "parts of owners", blocks));
    sections.push(doubts(&all_doubts(document)));
    Page::new(format!("{}, compared with an earlier account by loadline {}", which(now), document.loadline), sections)
}

/// A sentence saying that no row changed by more than noise, if that is the case.
fn nothing_grew(document: &ChangesDocument) -> Option<String> {
    let (noise, rss) = (OWNER_GROWN_MIN.unsigned_abs(), document.rss_growth_bytes);
    let mut grown = document.owners.iter().filter_map(|one| one.growth_bytes).chain([rss]);
    grown.all(|bytes| bytes.unsigned_abs() < noise).then(|| {
        let (noise, rss) = (Bytes(noise), Growth(rss));
        format!(
            "Nothing has grown since the earlier account: no row changed by {noise} or more, and RSS changed by \
            {rss} MiB."
        )
    })
}

/// The kind of part that a detail shows; `None` for mappings and flags, which are not parts of owners.
fn kind_of(detail: Detail) -> Option<&'static str> {
    match detail {
        Detail::Thread | Detail::Pool => Some("thread"),
        Detail::File => Some("file"),
        Detail::Tag => Some("tag"),
        Detail::Loader => Some("loader"),
        Detail::Code => Some("code_heap"),
        Detail::Region | Detail::Flag => None,
    }
}

fn facts(document: &ChangesDocument) -> Part {
    let moment = |of: &AccountDocument| {
        let heap = of.mark.heap;
        format!(
            "{}: RSS {} MiB, PSS {}, heap used {} of {} committed, {} threads",
            of.taken,
            mib(of.mark.rss_bytes),
            mib(of.mark.pss_bytes),
            mib(heap.used_bytes),
            mib(heap.committed_bytes),
            of.mark.threads.map_or_else(dash, grouped)
        )
    };
    let backwards = " backward: the clock was set back, or the accounts come from different machines";
    let backwards = if document.seconds < 0 { backwards } else { "" };
    let span = format!("{}{backwards}", span_text(document.seconds.unsigned_abs()));
    Part::facts([
        ("jvm", jvm_text(&document.now.jvm)),
        ("then", moment(&document.then)),
        ("now", moment(&document.now)),
        ("between", span),
    ])
}

/// `3 d 4 h`, `2 h 5 min`, `7 min 30 s`, `12 s`: the two largest units.
fn span_text(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(of, _)| seconds >= *of).unwrap_or(units.len() - 1);
    let (of, unit) = units[first];
    let rest = units.get(first + 1).map(|(smaller, unit)| (seconds % of / smaller, unit));
    let rest = rest.filter(|(number, _)| *number > 0).map(|(number, unit)| format!(" {number} {unit}"));
    format!("{} {unit}{}", grouped(seconds / of), rest.unwrap_or_default())
}

/// The title of a kind's table, and the head of its names.
fn title(kind: &str) -> (String, &'static str) {
    let (title, word) = match kind {
        "thread" => ("stacks by thread pool, resident KiB", "pool"),
        "file" => ("files, resident KiB", "file"),
        "tag" => ("malloc by NMT tag, KiB", "tag"),
        "loader" => ("class loaders by type, KiB taken", "loader"),
        "code_heap" => ("code heaps, resident KiB", "code heap"),
        "table" => ("GC tables, resident KiB", "table"),
        "node" => ("metaspace nodes, resident KiB", "node"),
        other => return (format!("parts by {other}, resident KiB"), "part"),
    };
    (title.to_owned(), word)
}

/// Parts of one kind: with counts if any has several, with allocated bytes if known.
fn parts(parts: &[PartChangeRecord], rows: usize) -> Table {
    let counted = parts.iter().any(|part| part.then_count.max(part.now_count) > 1);
    let allocated = parts.iter().any(|part| part.then_allocated_bytes.is_some());
    let kind = parts[0].kind.as_str();
    let (title, word) = title(kind);
    let (shown, left) = parts.split_at(parts.len().min(rows));
    let amounts = |part: &PartChangeRecord| match allocated {
        true => (part.then_allocated_bytes.unwrap_or(0), part.now_allocated_bytes.unwrap_or(0)),
        false => (part.then_bytes, part.now_bytes),
    };
    // The end of a path or class is more informative.
    let cut = if ["file", "loader"].contains(&kind) { end } else { beginning };
    let row = |part: &PartChangeRecord| {
        let (then, now) = amounts(part);
        let mut row = vec![cut(&part.name, if counted { NAME_COUNTED_MAX } else { NAME_MAX })];
        row.extend(counted.then(|| [part.then_count, part.now_count].map(grouped)).into_iter().flatten());
        row.extend([kib(then), kib(now), signed(growth(then, now), kib)]);
        row.extend((!counted).then(|| label(&part.owner).to_owned()));
        row
    };
    let mut head = vec![word];
    head.extend(if counted { &["count then", "now"][..] } else { &[] });
    let amount = match (allocated, kind) {
        (false, _) => "RSS then",
        (true, "loader") => "taken then",
        (true, _) => "requested then",
    };
    head.extend([amount, "now", "change"]);
    head.extend((!counted).then_some("owner"));
    let moved = sum(left.iter().map(amounts).map(|(then, now)| then.abs_diff(now)));
    let note = format!("and {} more, which changed by {} KiB in total (--json)", left.len(), kib(moved));
    let table = Table::new(title, head, shown.iter().map(row)).worded(1, usize::from(!counted));
    table.noted((!left.is_empty()).then_some(note))
}

/// The doubts of the comparison and the later account, then those only in the earlier account.
fn all_doubts(document: &ChangesDocument) -> Vec<DoubtRecord> {
    let now = document.doubts.iter().chain(&document.now.doubts);
    let told = |other: &DoubtRecord| document.now.doubts.iter().any(|doubt| doubt.doubt.is_like(&other.doubt));
    let then = document.then.doubts.iter().filter(|other| !told(other));
    let then = then.map(|doubt| DoubtRecord { text: format!("then: {}", doubt.text), ..doubt.clone() });
    now.cloned().chain(then).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{NmtCategory, NmtRecord, OwnerChangeRecord};

    #[test]
    fn growth_of_unsplit_malloc_names_likely_owners() {
        let owner = OwnerChangeRecord {
            name: Owner::MallocUnsplit.name().to_owned(),
            growth_bytes: Some(3 << 20),
            ..OwnerChangeRecord::default()
        };
        let mut document = ChangesDocument { owners: vec![owner], ..ChangesDocument::default() };
        let pid = document.now.jvm.pid;
        let would = format!(
            "Run `jcmd {pid} System.trim_native_heap` to see how much a trim releases, or restart with \
             `-XX:NativeMemoryTracking=summary` to see what is in use."
        );
        assert_eq!(malloc(&document).unwrap(), format!("malloc grew by 3.0 MiB. {would}"));
        assert_eq!(nothing_grew(&document), None);
        let pool = |cpu_s| ThreadPoolRecord { name: "C* CompilerThre*".to_owned(), cpu_s, ..Default::default() };
        (document.then.mark.threads, document.now.mark.threads) = (Some(20), Some(21));
        (document.then.mark.pools, document.now.mark.pools) = (vec![pool(1.0)], vec![pool(3.0)]);
        let likely = "the JIT compilers (2.0 s of CPU time in between), 1 new thread";
        assert_eq!(malloc(&document).unwrap(), format!("malloc grew by 3.0 MiB. Likely owners: {likely}. {would}"));
        let nmt = |committed_bytes| {
            let categories = ["Compiler", "Java Heap"].map(|name| NmtCategory {
                name: name.to_owned(),
                committed_bytes,
                ..NmtCategory::default()
            });
            Some(NmtRecord { categories: categories.to_vec(), ..NmtRecord::default() })
        };
        (document.then.mark.nmt, document.now.mark.nmt) = (nmt(1 << 20), nmt(3 << 20));
        let told = malloc(&document).unwrap();
        assert!(told.ends_with("Native Memory Tracking shows Compiler +2.0."), "{told}");
        (document.owners[0].growth_bytes, document.rss_growth_bytes) = (Some(1 << 10), -(1 << 10));
        assert_eq!(malloc(&document), None);
        let none = "Nothing has grown since the earlier account: no row changed by 1.0 MiB or more, and RSS changed by \
                    0.0 MiB.";
        assert_eq!(nothing_grew(&document).as_deref(), Some(none));
        document.rss_growth_bytes = 1 << 20;
        assert_eq!(nothing_grew(&document), None, "RSS grew, although no single row did");
    }

    #[test]
    fn a_span_shows_its_two_largest_units() {
        for (seconds, text) in [
            (0, "0 s"),
            (12, "12 s"),
            (60, "1 min"),
            (450, "7 min 30 s"),
            (7_500, "2 h 5 min"),
            (7_259, "2 h"),
            (90_000, "1 d 1 h"),
            (86_400 * 4_000, "4,000 d"),
        ] {
            assert_eq!(span_text(seconds), text);
        }
        assert!(span_text(u64::MAX).ends_with('h'));
    }
}
