//! Reading a JVM's tables from outside it: compared with the JVM's own reports, and with planted memory.

use crate::invocation::{Call, phase, releases, starts_with};
use crate::standing::{Figures, LaunchPlan, Standing};
use loadline::clock::Clock;
use loadline::kernel::mapping::Mapping;
use loadline::observe::hotspot::HotSpot;
use loadline::observe::hotspot::direct::{DirectCounters, DirectRecord};
use loadline::observe::hotspot::flags::Flags;
use loadline::observe::hotspot::objects::Objects;
use loadline::observe::hotspot::threads::{EndedThreads, ThreadReader, Threads};
use loadline::observe::maps;
use loadline::observe::memory::ProcessMemory;
use loadline::observe::procfs::Process;
use loadline::observe::untouched::Untouched;
use loadline::record::AllocatedBy;

const COLLECTORS: [&str; 5] =
    ["-XX:+UseSerialGC", "-XX:+UseParallelGC", "-XX:+UseG1GC", "-XX:+UseZGC", "-XX:+UseShenandoahGC"];
/// Nondefault forms of references and headers in a small heap; compact headers are new in JDK 24.
const FORMS: [&str; 4] = [
    "-XX:+UseSerialGC -XX:-UseCompressedOops",
    "-XX:+UseParallelGC -XX:-UseCompressedClassPointers",
    "-XX:+UseG1GC -XX:-UseCompressedOops -XX:-UseCompressedClassPointers",
    "-XX:+UseG1GC -XX:+UnlockExperimentalVMOptions -XX:+UseCompactObjectHeaders",
];
/// The default array length in `Allocates`.
const ARRAY_BYTES: u64 = 10_016;
/// The bytes that a subject allocates to print its line, after querying the JVM.
const LINE_BYTES_MAX: u64 = 4096;

/// A JVM with its tables.
struct OpenedJvm {
    process: Process,
    maps: Vec<Mapping>,
    hotspot: HotSpot,
    memory: ProcessMemory,
}

impl OpenedJvm {
    fn of(standing: &Standing) -> Self {
        let process = Process::open(standing.pid()).unwrap();
        let maps = maps::read(&process, &Clock::start()).unwrap().value;
        let hotspot = HotSpot::find(&process, &maps).unwrap();
        let memory = ProcessMemory::open(&process).unwrap();
        Self { process, maps, hotspot, memory }
    }

    fn untouched(&self) -> Untouched<'_> {
        Untouched::open(&self.process, &self.maps).unwrap()
    }

    fn direct(&self) -> DirectRecord {
        let memory = self.untouched();
        let flags = Flags::read(&memory, &self.hotspot.tables).unwrap();
        let objects = Objects::of(&self.hotspot.tables, &flags, &memory).unwrap();
        let mut counters = DirectCounters::of(objects);
        counters.look(&memory).unwrap();
        counters.read(&memory).unwrap()
    }
}

/// Compares the bytes between two lines of the subject: read from outside the JVM, counted by the JVM, and planted.
fn step(
    subject: &mut Standing,
    word: &str,
    reader: &mut ThreadReader,
    (inside, options): (&OpenedJvm, &str),
    before: (u64, u64),
) -> (u64, u64) {
    subject.go_on();
    let said: Figures = subject.says(word);
    let read = reader.read(&inside.memory).unwrap();
    assert_eq!(read.ended, EndedThreads::Counted);
    let (planted, total) = (said.of("planted"), said.of("total"));
    let (outside, own) = (read.bytes - before.0, total - before.1);
    assert!(outside.abs_diff(own) <= LINE_BYTES_MAX, "{word}: {outside} outside, {own} by the JVM's own count");
    // Threads are objects too, especially virtual ones.
    let most = if word == "VIRTUAL" { planted / 100 } else { planted / 1000 };
    // Without compressed class pointers, an array's header is longer.
    let longer = if options.contains("-UseCompressedClassPointers") { planted / ARRAY_BYTES * 8 } else { 0 };
    let is_planted = planted > 0 || word != "VIRTUAL";
    assert!(
        !is_planted || outside >= planted && outside - planted <= most + longer,
        "{word}: {outside} outside, {planted} planted"
    );
    (read.bytes, total)
}

#[test]
fn allocation_is_read_exactly() {
    for release in releases() {
        let compact = |options: &str| options.contains("UseCompactObjectHeaders");
        let forms = FORMS.iter().filter(|options| release >= 24 || !compact(options));
        for options in COLLECTORS.iter().chain(forms).filter(|options| starts_with(release, options)) {
            // Newer releases print deprecation warnings.
            let options = &format!("-Xmx320m -Xlog:disable -XX:-PrintWarnings {options}");
            let mut subject = LaunchPlan::on(release, options).start("Allocates", "{folder}/mapped");
            subject.says("STARTED");
            subject.go_on();
            let total = subject.says("READY").of("total");
            let inside = OpenedJvm::of(&subject);
            let mut reader = Threads::of(&inside.hotspot.tables, inside.hotspot.exited_allocated_at).unwrap().reader();
            let mut before = (reader.read(&inside.memory).unwrap().bytes, total);
            for word in ["MAIN", "THREADS", "ENDED", "HUGE", "VIRTUAL"] {
                before = step(&mut subject, word, &mut reader, (&inside, options), before);
            }
            subject.go_on();
            let said = subject.says("DIRECT");
            let direct = inside.direct();
            let told = (said.of("reserved"), said.of("buffers"), said.of("mapped"), said.of("mapped_buffers"));
            let read = (direct.reserved_bytes, direct.buffers, direct.mapped_bytes, direct.mapped_buffers);
            assert_eq!(read, told, "JDK {release}, {options}");
            let document = subject.document("");
            let direct = document.mark.direct.unwrap();
            assert_eq!((direct.reserved_bytes, direct.buffers), (told.0, told.1));
            // Buffers are zeroed on allocation, so all are resident.
            let owners = document.mark.account.unwrap().owners;
            let held = owners.iter().find(|owner| owner.name == "malloc.direct").unwrap();
            assert_eq!(held.rss_bytes, direct.reserved_bytes, "JDK {release}, {options}");
        }
    }
}

#[test]
fn each_threads_allocation_is_listed_with_its_stack() {
    for release in releases() {
        let mut subject = LaunchPlan::on(release, "-Xmx320m -XX:+UseSerialGC").start("Allocates", "{folder}/mapped");
        for word in ["STARTED", "READY", "MAIN"] {
            subject.says(word);
            subject.go_on();
        }
        // The figures remain with the threads that planted the memory.
        let planted = subject.says("THREADS").of("planted");
        let document = subject.document("--by thread");
        let threads = document.mark.account.unwrap().threads.unwrap();
        let own = Process::open(subject.pid()).unwrap().threads().unwrap();
        assert!(threads.len() > 8 && threads.iter().all(|one| own.contains(&one.tid)), "JDK {release}: {threads:?}");
        let each = planted / 4;
        let of = |low: u64, high: u64| {
            threads.iter().filter(move |one| one.allocated_bytes.is_some_and(|bytes| (low..high).contains(&bytes)))
        };
        assert_eq!(of(each, each + each / 100).count(), 4, "JDK {release}, {each} planted: {threads:?}");
        let main = of(256 << 20, 270 << 20).next().unwrap_or_else(|| panic!("JDK {release}: {threads:?}"));
        assert!(main.stack_bytes.is_some_and(|bytes| (8 << 10..1 << 20).contains(&bytes)), "{main:?}");
        assert_eq!(threads[0], *main, "JDK {release}: {threads:?}");
        // Non-Java threads allocate nothing in the heap.
        let vm = threads.iter().find(|one| one.name == "VM Thread").unwrap();
        assert_eq!(vm.allocated_bytes, None, "JDK {release}");
        let text = subject.account_call("--by thread").run().expect(0).stdout;
        assert!(text.contains("allocated MiB") && text.contains(&main.tid.to_string()), "{text}");
    }
}

#[test]
fn reading_a_jvm_does_not_increase_its_rss() {
    for release in releases() {
        let mut subject =
            LaunchPlan::on(release, "-Xmx64m -XX:+UseSerialGC -Xint").start("Allocates", "{folder}/mapped");
        subject.says("STARTED");
        subject.go_on();
        subject.says("READY");
        let before = subject.rss_bytes();
        let inside = OpenedJvm::of(&subject);
        let direct = inside.direct();
        let read = Threads::of(&inside.hotspot.tables, inside.hotspot.exited_allocated_at)
            .unwrap()
            .reader()
            .by_thread(&inside.memory)
            .unwrap();
        assert_eq!(direct, DirectRecord { max_bytes: direct.max_bytes, ..DirectRecord::default() });
        let threads = inside.process.threads().unwrap();
        assert!(read.len() > 3 && read.iter().all(|one| one.tid.is_some_and(|tid| threads.contains(&tid))), "{read:?}");
        assert!(read.iter().any(|one| one.bytes > 100_000), "{read:?}");
        let grown = subject.rss_bytes().cast_signed() - before.cast_signed();
        // The JVM's own threads wake up occasionally.
        assert!(grown <= 64 << 10, "JDK {release}: {grown} bytes");
    }
}

#[test]
fn flags_match_those_the_jvm_reports() {
    for release in releases() {
        let options = "-Xmx64m -XX:+UseSerialGC -XX:MaxRAMPercentage=12.5 -Xss300k";
        let mut subject = LaunchPlan::on(release, options).start("Allocates", "{folder}/mapped");
        subject.says("STARTED");
        subject.go_on();
        subject.says("READY");
        let inside = OpenedJvm::of(&subject);
        let flags = Flags::read(&inside.untouched(), &inside.hotspot.tables).unwrap();
        assert!(flags.list.len() > 500, "{}", flags.list.len());
        let Some(told) = subject.jcmd("VM.flags -all") else { continue };
        // `     bool UseSerialGC          = true      {product} {command line}`
        let mut compared = 0;
        for line in told.lines() {
            let mut words = line.split_whitespace();
            let (Some(_), Some(name), Some("="), Some(value)) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Some(read) = flags.get(name).filter(|_| !value.starts_with('{')) else { continue };
            // This compares only the first word of a string.
            assert!(read.split(' ').next() == Some(value), "JDK {release}: {name}: read `{read}`, reported {value}");
            compared += 1;
        }
        assert!(compared > 400, "JDK {release}: {compared} of {}", flags.list.len());
        let changed = flags.changed();
        assert_eq!(changed.get("ThreadStackSize"), Some("300"));
        assert_eq!(changed.get("MaxRAMPercentage"), Some("12.500000"));
    }
}

#[test]
fn allocation_per_request_is_measured() {
    for release in releases() {
        let trial = |churn_kib: u32| {
            let call = Call::on(release).with("--warmup 4000").with("-n 4000").with("--rest 1s").with("--heap 64m");
            call.subject("Appetite", &format!("{{port}} live=1 churn={churn_kib}")).run().expect(0).trial()
        };
        let trials = [4, 260].map(trial);
        let [less, more] = trials.each_ref().map(|trial| phase(trial, "steady").alloc_per_request().unwrap());
        // The planted arrays have 1 KiB each, plus a header.
        let planted = f64::from(256 * (1024 + 16));
        assert!(((more - less) / planted - 1.0).abs() < 0.005, "JDK {release}: {less} and {more} B per request");
        let steady = phase(&trials[1], "steady").subject;
        assert_eq!(steady.allocated_by, Some(AllocatedBy::AllThreads));
        assert!(steady.allocated_idle_bytes.unwrap() < steady.allocated_bytes.unwrap() / 100, "{steady:?}");
    }
}
