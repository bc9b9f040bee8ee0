//! Native programs on musl, linked dynamically and statically, with known malloc use. Live memory is found to the byte,
//! and retained memory matches pagemap for freed blocks. In an Alpine-sized image, they are measured, and a server's
//! limit is found. Skipped without `musl-gcc`.

use crate::account::{assert_closes, held};
use crate::account_truth::assert_tags;
use crate::deaths::limits_work;
use crate::images::Image;
use crate::invocation::{Call, Ran, mark, newest};
use crate::standing::LaunchPlan;
use loadline::doubt::Doubt;
use loadline::record::{AccountRecord, DoubtRecord, FindOutcome, Trial, Unknowns};
use loadline_test_support::{long_tests_run, record, skip};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const LINKINGS: [&str; 2] = ["-rdynamic", "-static"];
/// The server's memory.
const SERVES_MIB: u64 = 64;
/// Maximum additional bytes of the threads in `busy`: 8 blocks each.
const BUSY_BYTES_MAX: u64 = BUSY_THREADS * 8 * 3032;
/// Allocating threads in `busy`.
const BUSY_THREADS: u64 = 2;
/// The slots of a group take less than this (`65536*16` in `alloc_group` of musl 1.2.5).
const GROUP_MAX: u64 = 1 << 20;
/// A header before each chunk, stored in the previous slot.
const HEADER: f64 = 4.0;

/// Builds one of the programs with this kind of linking.
fn build(folder: &Path, name: &str, linking: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/jvm/musl/{name}.c"));
    let program = folder.join(name);
    // A compiler that recognizes malloc would remove unused blocks.
    let options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-fno-builtin", linking, "-o"];
    match Command::new("musl-gcc").args(options).args([&program, &source]).output() {
        Ok(built) => assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr)),
        Err(why) => {
            skip("LOADLINE_MUSL", &format!("musl-gcc cannot be run ({why})"));
            return None;
        }
    }
    Some(program)
}

/// Measures the program after it has planted memory.
fn weighed(linking: &str, filling: &str) -> Option<Ran> {
    let call = Call::verb("run --json");
    let program = build(call.folder(), "appetite", linking)?;
    Some(run(call, &format!("command: [{}, {filling}]", program.display())))
}

/// The run of a planting subject.
fn run(call: Call, subject: &str) -> Ran {
    let text = format!(
        "name: musl\nsubject: {{kind: native, {subject}}}\n\
         load:\n  - work: {{phases: [planted], within: 60s}}\nmarks: []\n"
    );
    call.of_scenario("musl", &text).run().expect(0)
}

/// The planted bytes according to the program's count, and their account.
fn planted(trial: &Trial) -> (&BTreeMap<String, f64>, &AccountRecord) {
    let mark = mark(trial, "planted");
    let account = mark.account.as_ref().unwrap();
    println!("{:?}\n{:?}", mark.counters, account.malloc);
    assert_closes(account, 5);
    assert_eq!(account.owners.iter().map(|owner| owner.rss_bytes).sum::<u64>(), mark.rss_bytes);
    assert_eq!(account.would_return.trim_bytes, Some(0));
    (&mark.counters, account)
}

/// Asserts a match within two percent.
#[track_caller]
fn near(what: &str, found: u64, truth: f64) {
    assert!((found as f64 - truth).abs() <= truth * 0.02, "{what}: found {found}, actual {truth}");
}

#[test]
fn planted_musl_chunks_are_found_exactly() {
    for (linking, filling) in LINKINGS.into_iter().flat_map(|linking| [(linking, "exact"), (linking, "odd")]) {
        let Some(ran) = weighed(linking, filling) else { return };
        let trial = ran.trial();
        let (truth, account) = planted(&trial);
        let malloc = account.malloc.as_ref().unwrap();
        assert_eq!((malloc.allocator.as_str(), malloc.walk_errors, malloc.tagged), ("musl", 0, false));
        assert_eq!(held(account, "malloc.unsplit"), 0);
        let chunks = malloc.live_chunks.unwrap() + malloc.mmapped_chunks;
        assert_eq!((chunks as f64, malloc.asked_bytes.unwrap() as f64), (truth["live"], truth["live_bytes"]));
        assert!(malloc.live_bytes + malloc.mmapped_bytes >= malloc.asked_bytes.unwrap());
        let (retained, whole) = (held(account, "malloc.retained"), malloc.free_pages_bytes.unwrap());
        assert!(whole as f64 >= truth["freed_pages_bytes"] * 0.98 && whole <= retained, "{whole} of {retained}");
        assert!(retained as f64 >= truth["freed_resident_bytes"] * 0.98, "{retained}");
        assert!(held(account, "thread_stacks") < 1 << 20, "{account:?}");
        if filling == "odd" {
            continue;
        }
        let alone = truth["alone_bytes"];
        near("live", held(account, "malloc.live"), truth["live_bytes"] - alone + truth["live"] * HEADER);
        near("mmapped", held(account, "malloc.mmapped"), alone);
        near("retained", retained, truth["freed_resident_bytes"]);
    }
}

/// The walk separates groups and stacks that share a mapping, and does not count a moving chunk twice. Each of the two
/// busy threads may be stopped inside malloc while it creates or frees a group; only that group is unsplit.
#[test]
fn a_busy_program_is_measured_while_it_allocates() {
    for linking in LINKINGS {
        let Some(ran) = weighed(linking, "busy") else { return };
        let trial = ran.trial();
        let (truth, account) = planted(&trial);
        let malloc = account.malloc.as_ref().unwrap();
        near("asked", malloc.asked_bytes.unwrap(), truth["live_bytes"]);
        let alone = truth["alone_bytes"];
        let (live, planted) = (held(account, "malloc.live"), truth["live_bytes"] - alone + truth["live"] * HEADER);
        near("live", live.min(live.saturating_sub(BUSY_BYTES_MAX).max(planted as u64)), planted);
        near("mmapped", held(account, "malloc.mmapped"), alone);
        near("retained", held(account, "malloc.retained"), truth["freed_resident_bytes"]);
        assert!(held(account, "thread_stacks") < 1 << 20, "{account:?}");
        let (torn, unsplit) = (malloc.walk_errors, held(account, "malloc.unsplit"));
        assert!(torn <= BUSY_THREADS && unsplit <= torn * GROUP_MAX, "{unsplit} bytes in {torn} groups");
    }
}

/// An image with only Alpine's C library and this program.
fn image(folder: &Path, name: &str) -> Option<Image> {
    let root = folder.join("root");
    for name in ["lib", "etc", "tmp", "proc", "sys", "dev"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    build(&root, name, LINKINGS[0])?;
    let libraries = std::fs::read_dir("/lib").unwrap().map(|file| file.unwrap());
    for loader in libraries.filter(|file| file.file_name().to_string_lossy().starts_with("ld-musl-")) {
        if loader.path().is_file() {
            std::fs::copy(loader.path(), root.join("lib").join(loader.file_name())).unwrap();
        }
    }
    Image::of_folder(&root, &format!("/{name}"))
}

/// Its parts run serially, because both images have the same name.
#[test]
fn a_musl_program_in_an_image_is_measured_and_its_limit_found() {
    if !long_tests_run() {
        return;
    }
    let call = Call::verb("run --json");
    let Some(image) = image(call.folder(), "appetite") else { return };
    let ran = run(call, &format!("image: '{}', command: [exact]", image.name()));
    let trial = ran.trial();
    let (truth, account) = planted(&trial);
    assert_eq!(account.malloc.as_ref().unwrap().asked_bytes.unwrap() as f64, truth["live_bytes"]);
    near("retained", held(account, "malloc.retained"), truth["freed_resident_bytes"]);
    drop(image);
    if limits_work() {
        the_limit_of_a_server_is_found();
    }
}

fn the_limit_of_a_server_is_found() {
    let call = Call::verb("find --json --no-warm --proofs 2 --step 10% --soak 3s --limit-max 256m").alone();
    let Some(image) = image(call.folder(), "serves") else { return };
    let text = format!(
        "name: musl\nsubject: {{kind: native, image: '{}', command: ['{{port}}', '{SERVES_MIB}']}}\nload:\n  \
         - steady: {{constant: {{rate: 50, duration: 1s, connections: 4}}, get: /}}\ntarget: [failed==0]\n",
        image.name()
    );
    let find = call.of_scenario("musl", &text).run().expect(0).document().find.unwrap();
    assert_eq!((find.outcome, find.unknowns), (FindOutcome::Found, Unknowns::Limit), "{}", find.text);
    let line = find.line.unwrap();
    let (limit, below) = (line.limit_bytes >> 20, line.below_bytes.unwrap() >> 20);
    // The server needs little more than its memory, and a search step is 10%.
    assert!(below < SERVES_MIB + 8 && (SERVES_MIB..SERVES_MIB + 16).contains(&limit), "{below} {limit}");
}

/// The variable that specifies a `java` built for musl, which these tests cannot obtain themselves.
const JAVA: &str = "LOADLINE_MUSL_JAVA";

#[test]
fn a_musl_jvm_is_accounted_for_like_a_glibc_jvm() {
    let Ok(java) = std::env::var(JAVA) else { return record(JAVA, "no JVM for musl was specified") };
    for (release, gc) in newest().into_iter().flat_map(|release| [(release, "Serial"), (release, "G1")]) {
        let options = format!("-Xmx64m -XX:+Use{gc}GC -Xint -XX:NativeMemoryTracking=summary");
        let trim = "-XX:+IgnoreUnrecognizedVMOptions -XX:TrimNativeHeapInterval=5000";
        let subject = LaunchPlan::on(release, &format!("{options} {trim}")).java(&java).serving("DemoServer");
        assert_tags(&subject);
        let document = subject.document("");
        let account = document.mark.account.unwrap();
        assert_closes(&account, 5);
        let malloc = account.malloc.as_ref().unwrap();
        println!("{malloc:?}");
        assert_eq!((malloc.allocator.as_str(), malloc.walk_errors, malloc.tagged), ("musl", 0, true));
        assert_eq!((account.would_return.trim_bytes, held(&account, "malloc.unsplit")), (Some(0), 0));
        let said = |doubt: &DoubtRecord| matches!(&doubt.doubt, Doubt::AllocatorIgnores { .. });
        assert!(document.doubts.iter().any(said), "{:?}", document.doubts);
    }
}
