//! Dumps of real JVMs, one for each installed release, that run a program with known amounts in known places.

#![expect(clippy::disallowed_methods, reason = "starts the JVMs whose dumps it tests")]

use loadline_heap_dump::{Header, Holder, HolderKind, Layout, References, Settings, Summary, read};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "tests/real/Planted.java";
const NEEDED: &str = "LOADLINE_JDKS";

/// The machine's JDKs, one per release: from `JAVA_HOME`, from `javac` on `PATH`, and from `/usr/lib/jvm`.
fn jdks() -> BTreeMap<u32, PathBuf> {
    let home = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("javac"));
    let on_path = on_path.filter_map(|javac| javac.canonicalize().ok()?.ancestors().nth(2).map(Path::to_path_buf));
    let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found = BTreeMap::new();
    for jdk in home.into_iter().chain(on_path).chain(installed).filter(|jdk| jdk.join("bin/javac").exists()) {
        let about = std::fs::read_to_string(jdk.join("release")).unwrap_or_default();
        let version = about.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\"")).unwrap_or_default();
        if let Ok(release) = version.split(['.', '"', '-', '+']).next().unwrap_or_default().parse() {
            found.entry(release).or_insert(jdk);
        }
    }
    found.retain(|release, _| *release >= 11);
    found
}

/// The numbers that the program declares.
fn truths() -> HashMap<String, u64> {
    let source = std::fs::read_to_string(SOURCE).expect("the source of the program");
    let lines = source.lines().filter_map(|line| line.strip_prefix("// truth:"));
    let pairs = lines.flat_map(str::split_whitespace).filter_map(|truth| truth.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.parse().expect("a number"))).collect()
}

/// Parses the JVM's own counts: instances and bytes by the JVM's class name, and total bytes.
fn counted(text: &str) -> (HashMap<String, (u64, u64)>, u64) {
    let number = |word: &str| word.parse::<u64>().expect("a number");
    let (mut classes, mut all) = (HashMap::new(), 0);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [rank, count, bytes, class, ..] if rank.ends_with(':') => {
                classes.insert(class.to_owned(), (number(count), number(bytes)));
            }
            ["Total", _, bytes] => all = number(bytes),
            _ => {}
        }
    }
    (classes, all)
}

#[track_caller]
fn near(what: &str, found: u64, planted: u64) {
    let off = (found as f64 / planted as f64 - 1.0).abs();
    assert!(off <= 0.02, "{what}: {found} bytes found, {planted} planted");
}

#[track_caller]
fn holder<'a>(summary: &'a Summary, text: &str) -> &'a Holder {
    let all: Vec<String> = summary.holders.iter().map(ToString::to_string).collect();
    let at = all.iter().position(|holder| holder == text);
    &summary.holders[at.unwrap_or_else(|| panic!("no `{text}` among {all:#?}"))]
}

fn check_planted(summary: &Summary) {
    let truths = truths();
    let truth = |name: &str| truths[name];
    let spool = holder(summary, "Planted.SPOOL -> java.util.ArrayList.elementData");
    near("spool", spool.retained.bytes, truth("spool_arrays") * truth("spool_bytes"));
    assert_eq!((&spool.kind, &*spool.consists_of[0].class), (&HolderKind::StaticField, "byte[]"));
    assert_eq!(spool.consists_of[0].amount.objects, truth("spool_arrays"));
    let buffers = holder(summary, "40 threads planted-*, thread-local Planted.BUFFER");
    near("buffers", buffers.retained.bytes, truth("threads") * truth("buffer_bytes"));
    assert_eq!((buffers.members, buffers.consists_of[0].amount.objects), (truth("threads"), truth("threads")));
    let line = "40 threads planted-* in Planted.work:";
    let local = summary.holders.iter().find(|holder| holder.to_string().starts_with(line)).expect(line);
    near("locals", local.retained.bytes, truth("threads") * truth("local_bytes"));
    let pool = holder(summary, "Planted.POOL -> Planted$Pool.idle -> java.util.HashMap.table");
    let items = pool.consists_of.iter().find(|part| part.class == "Planted$Item").expect("items");
    assert_eq!(items.amount.objects, truth("items"));
    let arrays = pool.consists_of.iter().find(|part| part.class == "byte[]").expect("arrays");
    assert_eq!(arrays.amount.objects, truth("items"));
    near("contents", arrays.amount.bytes, truth("items") * (truth("item_bytes") + 20));
    let soft = holder(summary, "Planted.SOFT -> java.lang.ref.Reference.referent");
    near("soft", soft.retained.bytes, truth("soft_bytes"));
    let joint = summary.holders.iter().find(|holder| {
        let name = holder.name.as_str();
        holder.kind == HolderKind::Jointly && (name == "Planted.LEFT" || name == "Planted$Other.RIGHT")
    });
    near("jointly", joint.expect("an object held by two fields").retained.bytes, truth("joint_bytes"));
    let (named, all) = (summary.covered_by_name(), summary.covered());
    assert!(named >= 0.9 && all >= 0.98, "share of the heap covered by names {named}, by all holders {all}");
}

/// Checks that the dump matches the JVM's own counts. The dump is written after the histogram.
fn check_sizes(summary: &Summary, histogram: &str) {
    let (classes, all) = counted(histogram);
    near("all objects", summary.live.bytes + summary.unreachable.bytes, all);
    let mut sums: HashMap<&str, (u64, u64)> = HashMap::new();
    for part in summary.classes.iter().chain(&summary.unreachable_classes) {
        let sum = sums.entry(&part.class).or_default();
        *sum = (sum.0 + part.amount.objects, sum.1 + part.amount.bytes);
    }
    let alike = classes.iter().filter_map(|(class, counted)| Some((class, *counted, *sums.get(class.as_str())?)));
    let alike: Vec<_> = alike.filter(|(_, counted, found)| counted.0 == found.0).collect();
    let off: Vec<_> =
        alike.iter().filter(|(class, counted, found)| *class != "java.lang.Class" && counted.1 != found.1).collect();
    assert!(
        alike.len() > 200 && off.len() * 100 <= alike.len(),
        "{} of {} sizes are off: {off:?}",
        off.len(),
        alike.len()
    );
}

#[test]
fn planted_holders_are_found_by_name() {
    let jdks = jdks();
    let Some(compiler) = jdks.values().next() else {
        loadline_test_support::skip(NEEDED, "no JDK of release 11 or newer was found");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut javac = Command::new(compiler.join("bin/javac"));
    let compiled = javac.args(["--release", "11", "-d"]).arg(folder.path()).arg(SOURCE).status();
    assert!(compiled.expect("javac starts").success());
    let plain = Layout::default();
    for (release, jdk) in &jdks {
        let compact = ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseCompactObjectHeaders"];
        let ways: [(u32, &[&str], Layout); 3] = [
            (11, &["-XX:+UseSerialGC"], plain),
            (11, &["-XX:+UseParallelGC", "-XX:-UseCompressedOops"], Layout { references: References::Whole, ..plain }),
            (24, &compact, Layout { header: Header::Compact, ..plain }),
        ];
        for (_, flags, layout) in ways.into_iter().filter(|(since, ..)| since <= release) {
            let (live, all) = (folder.path().join("live.hprof"), folder.path().join("all.hprof"));
            for file in [&live, &all] {
                let _ = std::fs::remove_file(file);
            }
            let mut java = Command::new(jdk.join("bin/java"));
            java.args(flags).arg("-Xmx256m").arg("-cp").arg(folder.path()).arg("Planted").arg(&live).arg(&all);
            let output = java.output().expect("java starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "JDK {release} {flags:?}: {said}");
            println!("JDK {release} {flags:?}");
            let settings = Settings { layout, ..Settings::default() };
            let summary = |file: &Path| read(&File::open(file).expect("a dump"), &settings).expect("a summary");
            let live = summary(&live);
            assert_eq!(live.incomplete, None);
            check_planted(&live);
            check_sizes(&live, &String::from_utf8_lossy(&output.stdout));
            let all = summary(&all);
            let garbage = all.unreachable_classes.iter().find(|part| part.class == "byte[]").expect("garbage");
            assert!(garbage.amount.bytes >= truths()["garbage_bytes"], "{garbage:?}");
        }
    }
}
