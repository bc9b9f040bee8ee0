//! Tunes a real server with known problems and remedies. The tuning finds and confirms the remedies, and reports any
//! that are harmful, break the server, or are rejected. Differences are tens of MiB, and bounds are seconds: nothing
//! depends on timing.

use crate::invocation::{Call, Ran, newest};
use loadline::record::{Fate, RemedyRecord, TuneOutcome, TuneRecord, TuneStage};
use loadline_test_support::long_tests_run;

const MIB: f64 = 1_048_576.0;
/// The remedies to exclude.
const SKIPPED: &str = "heap direct nio netty gc compiler headers cds malloc.trim malloc.arenas+trim \
    malloc.thresholds malloc.jemalloc malloc.mimalloc";

/// A tuning with little load, for a server that retains and holds memory as its arguments specify.
fn tune(release: u32) -> Call {
    let call = Call::verb("tune --json --rate 30 -d 500ms --warmup 200ms --rest 100ms -c 2 --price 100%");
    let call = call.with("--url http://127.0.0.1:{port}/").archiving().with(&format!("--jdk {release}"));
    let call = call.with("--target failed==0").with("--target p99<1s").with("--gc serial").with("--heap 24m");
    call.with("--jvm -XX:MaxDirectMemorySize=128m").skipping(SKIPPED)
}

fn record(ran: &Ran) -> TuneRecord {
    ran.document().tune.unwrap()
}

fn remedy<'a>(record: &'a TuneRecord, id: &str) -> &'a RemedyRecord {
    record.remedies.iter().find(|of| of.id == id).unwrap()
}

#[test]
fn effective_remedies_are_proved_and_others_reported() {
    if !long_tests_run() {
        return;
    }
    for release in newest() {
        let tried = ["-Dhelps=true", "-Dhurts=40", "-Dbreaks=2500", "-XX:+NoSuchFlagAtAll"];
        let call = tried.iter().fold(tune(release), |call, option| call.with(&format!("--try {option}")));
        let ran = call.subject("Curable", "{port} arenas=64 direct=32").of_many_trials().run().expect(0);
        let record = record(&ran);
        assert_eq!(record.outcome, TuneOutcome::Proved, "{}", record.text);
        assert_eq!(record.answer, ["MALLOC_ARENA_MAX=1", "-Dhelps=true"]);
        let saved = -record.gains[0].difference / MIB;
        println!("JDK {release}: {:?} saves {saved:.1} MiB in {} trials", record.answer, record.trials);
        // The arenas of eight threads: glibc's maximum for so few CPUs, some of them shared.
        assert!((45.0..105.0).contains(&saved), "{saved}: {:?}", record.gains[0]);
        assert!(record.gains[0].high.unwrap() < 0.0);
        let owners: Vec<&str> = record.owners.iter().map(|of| of.owner.as_str()).collect();
        assert!(owners.contains(&"malloc.retained"), "{owners:?}");
        let fates = ["try.1", "try.2", "try.3", "try.4"].map(|id| remedy(&record, id).fate);
        assert_eq!(fates, [Fate::Kept, Fate::Harmful, Fate::Harmful, Fate::Refused], "{:?}", record.remedies);
        let grew = remedy(&record, "try.2").saved_bytes.unwrap() / MIB;
        assert!((-55.0..-20.0).contains(&grew), "{grew}");
        assert!(remedy(&record, "try.3").why.contains("p99"), "{:?}", remedy(&record, "try.3"));
        assert!(remedy(&record, "heap.max").why.contains("--skip"));
        let document = ran.document();
        let stages = document.trials.iter().filter_map(|trial| trial.tuned.as_ref()).map(|of| of.stage);
        assert!(stages.filter(|stage| *stage == TuneStage::Confirmation).count() >= 10);
        // The archive gives the same result without a JVM.
        let again = Call::verb("report --json").with_argument(&ran.archive).run().expect(0);
        assert_eq!(again.document().tune, Some(record));
    }
}

#[test]
fn a_dry_run_only_measures_the_baseline() {
    for release in newest() {
        let call = tune(release).with("--dry-run").subject("Curable", "{port} arenas=48").of_many_trials();
        let ran = call.run().expect(0);
        let planned = record(&ran);
        assert_eq!((planned.outcome, planned.trials), (TuneOutcome::Planned, 3));
        let arenas = remedy(&planned, "malloc.arenas");
        assert_eq!((arenas.fate, arenas.options.as_slice()), (Fate::Planned, &["MALLOC_ARENA_MAX=1".to_owned()][..]));
        let most = arenas.gain_bytes_max.unwrap() as f64 / MIB;
        assert!((12.0..60.0).contains(&most), "{most}");
        let broken = tune(release).with("--target p99<1us").with("--skip malloc");
        let ran = broken.subject("Curable", "{port}").of_many_trials().run().expect(1);
        let record = record(&ran);
        assert_eq!(record.outcome, TuneOutcome::NotHeld, "{}", record.text);
        // Two trials count; disturbed ones are repeated.
        assert!(record.text.contains("p99") && record.trials <= 8, "{}", record.text);
    }
}
