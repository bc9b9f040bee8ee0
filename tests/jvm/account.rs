//! `loadline account`: memory that a subject is known to hold must appear with its owner, and the owners must add up to
//! the total.

use crate::invocation::{Call, all_releases, mark, newest, release, releases};
use crate::standing::{Figures, LaunchPlan, Standing, account_of};
use crate::truth::truth;
use loadline::doubt::Doubt;
use loadline::record::{ACCOUNT_SCHEMA, AccountDocument, AccountRecord, DetailRecord, DoubtRecord, RegionRecord};
use loadline::report::{render, summarize_account};
use loadline_test_support::skip;

const MIB: u64 = 1 << 20;
/// A fully resident heap, one compiler, and no dynamic compiler threads: between two measurements, only requested
/// memory grows.
const CALM: &str = "-Xms96m -Xmx96m -XX:+UseSerialGC -XX:+AlwaysPreTouch -XX:TieredStopAtLevel=1 \
    -XX:-UseDynamicNumberOfCompilerThreads";
const TRACKED: &str = "-XX:NativeMemoryTracking=summary";

/// An owner's RSS; an owner without memory has no row.
pub(crate) fn held(account: &AccountRecord, owner: &str) -> u64 {
    account.owners.iter().find(|row| row.name == owner).map_or(0, |row| row.rss_bytes)
}

/// RSS of all owners with this prefix.
pub(crate) fn held_by_all(account: &AccountRecord, beginning: &str) -> u64 {
    account.owners.iter().filter(|row| row.name.starts_with(beginning)).map(|row| row.rss_bytes).sum()
}

/// An owner's parts of this kind.
pub(crate) fn parts<'a>(
    account: &'a AccountRecord,
    owner: &'a str,
    kind: &'a str,
) -> impl Iterator<Item = &'a DetailRecord> {
    let rows = account.owners.iter().filter(move |row| row.name == owner);
    rows.flat_map(|row| &row.detail).filter(move |part| part.kind == kind)
}

/// Bytes allocated under an NMT tag, in arenas and mapped separately.
fn tagged(account: &AccountRecord, tag: &str) -> u64 {
    let owners = ["malloc.live", "malloc.mmapped", "malloc.direct"].into_iter();
    let parts = owners.flat_map(|owner| parts(account, owner, "tag")).filter(|part| part.name == tag);
    parts.map(|part| part.allocated_bytes.unwrap()).sum()
}

#[track_caller]
fn assert_near(what: &str, value: u64, truth: u64, per_mille: u64) {
    println!("{what}: {value}, actually {truth}");
    assert!(value.abs_diff(truth) <= truth * per_mille / 1000, "{what}: {value}, actually {truth}");
}

/// Asserts that no reading is missing. Changes by the JVM itself are not failures.
#[track_caller]
pub(crate) fn assert_whole(document: &AccountDocument) {
    let lacks = |doubt: &&DoubtRecord| !matches!(doubt.doubt, Doubt::AccountMoved { .. });
    let lacking: Vec<&DoubtRecord> = document.doubts.iter().filter(lacks).collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}

/// Asserts that the rows add up to the total, and that the unexplained share is at most this.
#[track_caller]
pub(crate) fn assert_closes(account: &AccountRecord, per_mille: u64) {
    let rows = &account.owners;
    let shown = |bytes: u64| format!("{bytes} of {}: {:?}", account.total_bytes, account.unexplained);
    assert_eq!(rows.iter().map(|row| row.rss_bytes).sum::<u64>(), account.total_bytes, "{rows:?}");
    assert_eq!(held(account, "unexplained"), account.unexplained_bytes);
    let remainders: u64 = account.unexplained.iter().map(|remainder| remainder.rss_bytes).sum();
    assert!(remainders <= account.unexplained_bytes, "{}", shown(remainders));
    assert!(
        account.unexplained_bytes * 1000 <= account.total_bytes * per_mille,
        "{}",
        shown(account.unexplained_bytes)
    );
    for row in rows {
        assert!(row.rss_bytes + row.swap_bytes > 0, "an owner without memory has a row: {row:?}");
        assert!(row.detail.iter().all(|part| part.rss_bytes <= row.rss_bytes), "{row:?}");
        assert_eq!(rows.iter().filter(|other| other.name == row.name).count(), 1, "{rows:?}");
    }
    // The kernel rounds down each mapping's shared pages by less than a page.
    assert!(account.pss_bytes <= account.total_bytes, "{account:?}");
}

/// Asserts that the regions match the rows.
#[track_caller]
fn assert_regions_agree(account: &AccountRecord) {
    let regions: &[RegionRecord] = account.regions.as_ref().unwrap();
    assert_eq!(regions.iter().map(|region| region.rss_bytes).sum::<u64>(), account.total_bytes);
    for region in regions {
        assert_eq!(region.owners.iter().map(|share| share.rss_bytes).sum::<u64>(), region.rss_bytes, "{region:?}");
    }
    // Not every collector reveals where the heap's used pages are.
    let whole = |name: &str| if name.starts_with("java_heap") { "java_heap".to_owned() } else { name.to_owned() };
    for row in &account.owners {
        let name = whole(&row.name);
        let shares = regions.iter().flat_map(|region| &region.owners).filter(|share| whole(&share.name) == name);
        let rows = account.owners.iter().filter(|row| whole(&row.name) == name);
        let in_rows: u64 = rows.map(|row| row.rss_bytes).sum();
        assert_eq!(shares.map(|share| share.rss_bytes).sum::<u64>(), in_rows, "{name}");
    }
}

/// The account of an idle subject: it adds up, and is within the kernel's values before and after.
#[track_caller]
fn closed(subject: &Standing, options: &str, per_mille: u64) -> AccountRecord {
    subject.wait_until_steady();
    let before = subject.rss_bytes();
    let document = subject.document(options);
    let after = subject.rss_bytes();
    assert_eq!(document.schema, ACCOUNT_SCHEMA);
    assert_eq!((document.jvm.pid, document.mark.name.as_str()), (subject.pid(), "now"));
    let account = document.mark.account.unwrap();
    let slack = (account.total_bytes / 500).max(256 << 10);
    let (least, most) = (before.min(after) - slack, before.max(after) + slack);
    assert!((least..=most).contains(&account.total_bytes), "{} instead of {before} to {after}", account.total_bytes);
    assert!(document.mark.rss_bytes.abs_diff(account.total_bytes) <= slack, "{}", document.mark.rss_bytes);
    assert_closes(&account, per_mille);
    assert_regions_agree(&account);
    account
}

/// Bytes that a subject claims to use, and the additional growth in MiB that the kernel may see.
type Claim = (u64, u64);

/// The accounts before and after the subject's work, with its figures. The first account has its own costs and does not
/// count. The kernel must confirm the subject's claim before it can judge an account.
fn before_and_after(subject: &mut Standing, claim: Option<Claim>) -> (AccountRecord, AccountRecord, [Figures; 2]) {
    let first = subject.says("BEFORE");
    let _ = subject.account();
    let before = closed(subject, "", 5);
    let rss = subject.rss_bytes();
    subject.go_on();
    let last = subject.says("AFTER");
    if let Some((bytes, more_mib)) = claim {
        let grown = subject.rss_bytes() - rss;
        println!("by the kernel: {grown} of {bytes}");
        assert!((bytes - bytes / 100..bytes + bytes / 100 + more_mib * MIB).contains(&grown), "{grown}, not {bytes}");
    }
    (before, closed(subject, "", 5), [first, last])
}

#[test]
fn a_small_server_is_accounted_for_with_every_collector() {
    for release in all_releases() {
        for gc in ["Serial", "G1", "Parallel", "Z"] {
            for nmt in ["", TRACKED] {
                let subject = LaunchPlan::on(release, &format!("-Xmx128m -XX:+Use{gc}GC {nmt}")).serving("DemoServer");
                let account = closed(&subject, "", 1);
                let share = 100.0 * account.unexplained_bytes as f64 / account.total_bytes as f64;
                println!("JDK {release}, {gc} {nmt}: {} B, {share:.3}% unexplained", account.total_bytes);
                for owner in ["cds", "metaspace", "code_cache", "thread_stacks", "libjvm", "libraries"] {
                    assert!(held(&account, owner) > 0, "JDK {release}, {gc}: no {owner}: {:?}", account.owners);
                }
                assert!(held_by_all(&account, "java_heap") > 0 && held_by_all(&account, "malloc.") > 0);
                assert_eq!(account.malloc.as_ref().unwrap().tagged, !nmt.is_empty());
                assert!(account.pause_ms.is_some());
                subject.answers();
            }
        }
    }
}

#[test]
fn a_jdk_11_account_is_nearly_complete() {
    for release in release(11) {
        for nmt in ["", TRACKED] {
            let mut subject = LaunchPlan::on(release, &format!("-Xmx64m {nmt}")).start("DirectBuffers", "");
            let _ = subject.says("BEFORE");
            let _ = closed(&subject, "", 30);
        }
    }
}

#[test]
fn direct_buffers_are_counted_as_malloc() {
    let direct = truth("DirectBuffers", "direct_bytes");
    for release in all_releases() {
        let mut subject = LaunchPlan::on(release, &format!("{CALM} {TRACKED}")).start("DirectBuffers", "");
        let (before, after, _) = before_and_after(&mut subject, Some((direct, 2)));
        // The memory's location depends on the largest mapping ever freed, which sets glibc's threshold.
        assert_near("direct buffers by tag", tagged(&after, "Other") - tagged(&before, "Other"), direct, 20);
        drop(subject);

        let fixed = LaunchPlan::on(release, CALM).env("MALLOC_MMAP_THRESHOLD_", "131072");
        let mut subject = fixed.start("DirectBuffers", "");
        let (before, after, _) = before_and_after(&mut subject, Some((direct, 2)));
        let mapped = |account: &AccountRecord| held(account, "malloc.mmapped") + held(account, "malloc.direct");
        assert_near("direct buffers by mapping", mapped(&after) - mapped(&before), direct, 20);
        if release >= 17 {
            let grown = held(&after, "malloc.direct") - held(&before, "malloc.direct");
            assert_eq!(grown, direct, "the JDK's counter must agree");
        }
        let chunks = |account: &AccountRecord| account.malloc.as_ref().unwrap().mmapped_chunks;
        assert!(chunks(&after) - chunks(&before) >= truth("DirectBuffers", "buffers"));
    }
}

/// RSS of the mappings with the stack pointers of threads named `deep-…`; `None` if unreadable.
fn deep_stacks(subject: &Standing) -> Option<u64> {
    let smaps = subject.smaps();
    let mut rss = 0;
    for task in std::fs::read_dir(format!("/proc/{}/task", subject.pid())).unwrap() {
        let task = task.unwrap().path();
        if std::fs::read_to_string(task.join("comm")).unwrap().starts_with("deep-") {
            // `202 0x7f… 0x189 …`: the call, its arguments, then stack pointer and program counter.
            let call = std::fs::read_to_string(task.join("syscall")).ok()?;
            let pointer = call.split_whitespace().rev().nth(1)?.strip_prefix("0x")?;
            let pointer = u64::from_str_radix(pointer, 16).ok()?;
            let holds = |range: (u64, u64)| range.0 <= pointer && pointer < range.1;
            let mut found = smaps.mappings.iter();
            let found = found.find(|weighed| holds((weighed.mapping.start, weighed.mapping.end)))?;
            rss += found.weight.rss.0;
        }
    }
    Some(rss)
}

#[test]
fn thread_stacks_are_attributed_to_their_threads() {
    let (threads, least) = (truth("DeepStacks", "threads"), truth("DeepStacks", "touched_bytes_min"));
    for release in all_releases() {
        let mut subject = LaunchPlan::on(release, CALM).start("DeepStacks", "");
        let (before, after, _) = before_and_after(&mut subject, Some((threads * least, 10)));
        let grown = held(&after, "thread_stacks") - held(&before, "thread_stacks");
        assert!(grown >= threads * least, "JDK {release}: {grown}");
        let deep: Vec<&DetailRecord> =
            parts(&after, "thread_stacks", "thread").filter(|part| part.name.starts_with("deep-")).collect();
        assert_eq!(deep.iter().map(|part| part.count).sum::<u64>(), threads, "{deep:?}");
        let named: u64 = deep.iter().map(|part| part.rss_bytes).sum();
        match deep_stacks(&subject) {
            Some(truly) => {
                assert_near("deep stacks by name", named, truly, 1);
                assert_near("growth of the stacks", grown, truly, 20);
            }
            None => skip("LOADLINE_MACHINE", "the stack pointers of threads are not readable"),
        }
    }
}

#[test]
fn deflaters_are_malloc_unknown_to_nmt() {
    let asked = truth("LiveDeflaters", "deflaters") * truth("LiveDeflaters", "tables_bytes_each");
    // Each deflater also has a state of about 6 KB, and its blocks are not measured by page.
    let (least, most) = (asked, asked * 104 / 100);
    for release in all_releases() {
        for nmt in ["", TRACKED] {
            let mut subject = LaunchPlan::on(release, &format!("{CALM} {nmt}")).start("LiveDeflaters", "");
            let (before, after, _) = before_and_after(&mut subject, Some((asked, 4)));
            // Without tags, a chunk's owner is unknown.
            let owners: &[&str] = match nmt {
                "" => &["malloc.live", "malloc.non_hotspot", "malloc.mmapped"],
                _ => &["malloc.non_hotspot"],
            };
            let of = |account: &AccountRecord| owners.iter().map(|owner| held(account, owner)).sum::<u64>();
            let grown = of(&after) - of(&before);
            println!("JDK {release} {nmt}: {grown} of at least {asked}");
            // Without tags, it includes the JVM's compiler memory.
            let most = most + if nmt.is_empty() { 2 * MIB } else { 0 };
            assert!((least..=most).contains(&grown), "JDK {release} {nmt}: {grown}, not {least} to {most}");
            // The rest of the process did not change.
            let weight = after.total_bytes - before.total_bytes;
            assert!(weight + MIB >= grown && weight <= grown + 3 * MIB, "JDK {release} {nmt}: {weight} and {grown}");
        }
    }
}

#[test]
fn classes_are_metaspace_and_class_space() {
    for release in all_releases() {
        let mut subject = LaunchPlan::on(release, CALM).start("ManyClasses", "");
        let (before, after, [first, last]) = before_and_after(&mut subject, None);
        let grown = |owner: &str| held(&after, owner) - held(&before, owner);
        let of_pool = |name: &str| last.of(name) - first.of(name);
        // The JVM counts class space in its pool Metaspace, commits by 64 KiB, and writes nearly all of it.
        let all = grown("metaspace") + grown("class_space");
        assert_near("classes", all, of_pool("metaspace_committed"), 20);
        assert_near("class space", grown("class_space"), of_pool("class_space_committed"), 20);
    }
}

#[test]
fn a_mapped_file_is_named() {
    for release in all_releases() {
        let mut subject = LaunchPlan::on(release, CALM).start("MappedFile", "{folder}");
        let _ = subject.says("READY");
        let account = closed(&subject, "", 5);
        let files: Vec<&DetailRecord> =
            parts(&account, "mapped_files", "file").filter(|part| part.name.ends_with("/mapped.bin")).collect();
        assert_eq!(files.len(), 1, "{:?}", account.owners);
        assert_eq!(files[0].rss_bytes, truth("MappedFile", "touched_bytes"));
    }
}

#[test]
fn compiled_methods_are_code_cache() {
    let least = truth("CodeFiller", "code_bytes_min");
    for release in releases() {
        let mut subject = LaunchPlan::on(release, CALM).start("CodeFiller", "");
        let (before, after, [first, last]) = before_and_after(&mut subject, Some((least, 12)));
        let grown = held(&after, "code_cache") - held(&before, "code_cache");
        assert!(grown >= least, "JDK {release}: {grown}");
        // Pretouched like the heap, so committed is resident.
        assert_near("code cache", grown, last.of("code_committed") - first.of("code_committed"), 20);
        // In addition to the code, there is a byte per 128-byte segment.
        assert_near("whole code cache", held(&after, "code_cache"), last.of("code_committed"), 30);
    }
}

#[test]
fn freed_malloc_kept_by_glibc_is_retained() {
    let freed = truth("RetainedMalloc", "freed_bytes");
    for release in all_releases() {
        for nmt in ["", TRACKED] {
            let mut subject = LaunchPlan::on(release, &format!("{CALM} {nmt}")).start("RetainedMalloc", "");
            let (before, after, _) = before_and_after(&mut subject, Some((freed, 2)));
            let grown = held(&after, "malloc.retained") - held(&before, "malloc.retained");
            assert_near("retained", grown, freed, 20);
            let predicted = after.would_return.trim_bytes.unwrap();
            let heavy = subject.rss_bytes();
            if subject.jcmd("System.trim_native_heap").is_some() {
                assert_near("returned by a trim", predicted, heavy - subject.rss_bytes(), 100);
                let trimmed = closed(&subject, "", 5);
                assert!(trimmed.would_return.trim_bytes.unwrap() < freed / 20, "{:?}", trimmed.would_return);
            }
        }
    }
}

#[test]
fn a_heap_is_divided_into_used_and_free() {
    let both = truth("LiveAndGarbage", "live_bytes") + truth("LiveAndGarbage", "garbage_bytes");
    for release in all_releases() {
        // Allocation buffers count as fully used; by default, they would be several MiB here.
        let options = "-Xms320m -Xmx320m -Xmn240m -XX:+UseSerialGC -XX:TLABSize=64k -XX:-ResizeTLAB";
        for (touch, free) in [("", 0), ("-XX:+AlwaysPreTouch", (320 - 2) * MIB - both)] {
            let mut subject = LaunchPlan::on(release, &format!("{options} {touch}")).start("LiveAndGarbage", "");
            let _ = subject.says("READY");
            let account = closed(&subject, "", 5);
            let used = held(&account, "java_heap.used");
            // Its own objects and the JDK's.
            assert!((both..both + 16 * MIB).contains(&used), "JDK {release} {touch}: {used}");
            let slack = 16 * MIB;
            let found = held(&account, "java_heap.free");
            assert!(found <= free + slack && found + slack >= free, "JDK {release} {touch}: {found} and {free}");
            assert_eq!(held(&account, "java_heap.live"), 0, "without a collection, the live set is unknown");
        }
    }
}

#[test]
fn a_trial_shows_the_heap_left_by_a_collection() {
    let (live, garbage) = (truth("LiveAndGarbage", "live_bytes"), truth("LiveAndGarbage", "garbage_bytes"));
    for release in all_releases() {
        let call = Call::on(release).with("--heap 320m").with("--gc serial").with("--jvm -Xmn240m");
        let call = call.with("--marks rested,collected").with("--expect-status 204");
        // The live set is read right after the collection, the account when RSS is stable. An allocation buffer handed
        // out in between counts as used; by default, it would be 2 MiB here.
        let call = call.with("--jvm -XX:TLABSize=64k").with("--jvm -XX:-ResizeTLAB");
        let trial = call.subject("LiveAndGarbage", "{port}").run().expect(0).trial();
        let (rested, collected) = (mark(&trial, "rested"), mark(&trial, "collected"));
        let [before, after] = [rested, collected].map(|mark| mark.account.as_ref().unwrap());
        for account in [before, after] {
            assert_closes(account, 5);
            assert!(account.regions.is_none(), "an archive must not contain regions");
        }
        let used = held(before, "java_heap.used");
        assert!((live + garbage..live + garbage + 16 * MIB).contains(&used), "JDK {release}: {used}");
        assert_eq!((held(before, "java_heap.live"), held(after, "java_heap.used")), (0, 0));
        let left = held(after, "java_heap.live");
        assert!((live..live + 6 * MIB).contains(&left), "JDK {release}: {left}");
        assert_near("live set", left, collected.heap.live_bytes.unwrap(), 20);
        // Serial keeps the pages of emptied spaces.
        assert!(held(after, "java_heap.free") >= live + garbage - 8 * MIB, "JDK {release}: {:?}", after.owners);
        let returns = &before.would_return;
        assert!(returns.gc_bytes.is_none_or(|bytes| bytes <= MIB) && !returns.gc_why.is_empty(), "{returns:?}");
    }
}

#[test]
fn every_mark_of_a_trial_has_an_account() {
    for release in newest() {
        let trial = Call::on(release).with("-n 100").with("--nmt summary").subject("DemoServer", "{port}");
        let trial = trial.run().expect(0).trial();
        for mark in &trial.marks {
            let account = mark.account.as_ref().unwrap();
            assert_closes(account, 5);
            let slack = (mark.rss_bytes / 500).max(256 << 10);
            assert!(mark.rss_bytes.abs_diff(account.total_bytes) <= slack, "{}: {}", mark.name, mark.rss_bytes);
        }
    }
}

/// The rows of the owners table up to the sum: name and RSS in MiB. `  CDS archive   1.0   0.5   0.6  classes …`.
fn rows(text: &str) -> Vec<(String, f64)> {
    let table = text.lines().skip_while(|line| !line.starts_with("  owner ")).skip(1);
    let row = |line: &str| {
        let (name, rest) = line.trim_start().split_once("  ").or_else(|| line.trim_start().split_once(' '))?;
        Some((name.to_owned(), rest.split_whitespace().next()?.parse().ok()?))
    };
    let mut rows: Vec<(String, f64)> = Vec::new();
    for line in table {
        // An owner's description may continue on its own line.
        rows.extend(row(line));
        if line.starts_with("  RSS ") {
            break;
        }
    }
    rows
}

#[test]
fn the_text_has_the_same_rows_as_the_document() {
    for release in newest() {
        let subject = LaunchPlan::on(release, "-Xmx64m -XX:+UseSerialGC").serving("DemoServer");
        // The first account has its own costs, as in `before_and_after`.
        let _ = subject.account();
        let ran = subject.account_call("").run().expect(0);
        let document = account_of(&subject.account_call("--json").run().expect(0));
        let (shown, expected) = (rows(&ran.stdout), rows(&render(&summarize_account(&document, &[]))));
        let names = |rows: &[(String, f64)]| rows.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&shown), names(&expected), "{}", ran.stdout);
        // Between the two accounts, only the JVM itself was active.
        for ((name, mib), (_, again)) in shown.iter().zip(&expected) {
            assert!((mib - again).abs() <= 1.0 + again / 50.0, "{name}: {mib} and {again} MiB:\n{}", ran.stdout);
        }
        let account = document.mark.account.as_ref().unwrap();
        let of_some_size = account.owners.iter().filter(|row| row.rss_bytes > 64 << 10).count();
        assert!(shown.len() > of_some_size && of_some_size >= 8, "{of_some_size} owners:\n{}", ran.stdout);
        let total: f64 = shown.iter().filter(|(name, _)| name != "RSS").map(|(_, mib)| mib).sum();
        let rss = shown.last().filter(|(name, _)| name == "RSS").unwrap().1;
        assert!((total - rss).abs() < 0.05 * shown.len() as f64 + 0.05, "{total} of {rss}:\n{}", ran.stdout);
        assert!(document.command.contains("account") && !document.subject_command.is_empty());
        assert!(document.jvm.version.unwrap().starts_with(&release.to_string()));
    }
}
