//! The pages of searches on a simulated server: each ending, each number, hostile text.

use super::super::summarize;
use super::super::tried::reached;
use super::*;
use crate::doubt::Doubt;
use crate::find_sample;
use crate::record::{CgroupRecord, Document, FlagOrigin, FlagRecord, FlagsRecord, Jvm, Pages, Quantiles};
use crate::terminal::render;
use crate::units::MIB;
use proptest::prelude::*;

const WIDTH: usize = 80;

/// Whether a search found the requested value.
fn is_answered(outcome: FindOutcome) -> bool {
    outcome.is_found()
}

fn shown(document: &Document) -> String {
    render(&summarize(document, &[], Depth::default()))
}

fn told_of(document: &Document) -> String {
    told(document.find.as_ref().unwrap(), &document.trials)
}

fn fact(document: &Document, label: &str) -> Option<String> {
    let all = answer_facts(document.find.as_ref().unwrap(), &document.trials);
    all.into_iter().find(|(of, _)| of == label).map(|(_, text)| text)
}

#[test]
fn a_found_line_is_shown() {
    insta::assert_snapshot!(shown(&find_sample::found()));
}

#[test]
fn a_heap_set_by_the_server_is_named() {
    let mut document = find_sample::found();
    let find = document.find.as_mut().unwrap();
    find.unknowns = Unknowns::AsIs;
    find.line.as_mut().unwrap().heap_bytes = None;
    assert!(told_of(&document).contains("with the JVM's default heap"));
    let flag = |origin| FlagRecord { name: "MaxHeapSize".to_owned(), value: (96 * MIB).to_string(), origin };
    let mut with = |origin| {
        let flags_kept = Some(FlagsRecord { set: vec![flag(origin)], ..FlagsRecord::default() });
        document.trials[0].jvm = Some(Jvm { flags_kept, ..Jvm::default() });
        told_of(&document)
    };
    assert!(with(FlagOrigin::CommandLine).contains("with the server's own -Xmx96m"));
    assert!(with(FlagOrigin::Ergonomic).contains("with the JVM's default heap"));
}

#[test]
fn every_search_outcome_says_what_it_is_and_what_to_do() {
    for (outcome, document) in find_sample::endings() {
        let text = shown(&document);
        assert_eq!(document.find.as_ref().unwrap().outcome, outcome);
        // A missing answer comes before everything else; an answer follows the heading.
        let first = text.lines().next().unwrap();
        assert_eq!(first.starts_with("tiny-http, load line found"), is_answered(outcome), "{outcome:?}: {first}");
        let piece = match outcome {
            FindOutcome::Found => "one start passed",
            FindOutcome::Grows => "so something keeps growing",
            FindOutcome::AtLowerBound => "`--limit-min`",
            FindOutcome::NotHeld => "A larger limit will not help",
            FindOutcome::Never => "`--limit-max`",
            FindOutcome::GivenUp => "`--trials-max`",
        };
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(piece), "{outcome:?}: {text}");
        assert_eq!(plain.contains("docker run"), is_answered(outcome), "{outcome:?}");
    }
}

#[test]
fn every_search_outcome_has_its_own_sentence() {
    let answer = |(outcome, document): (FindOutcome, Document)| format!("{outcome:?}: {}", told_of(&document));
    insta::assert_snapshot!(find_sample::endings().into_iter().map(answer).collect::<Vec<_>>().join("\n"));
}

#[test]
fn every_search_outcome_fits_the_screen() {
    for (outcome, document) in find_sample::endings() {
        for line in shown(&document).lines() {
            let copied = line.contains("docker run") || line.contains("--prove") || line.contains("JAVA_TOOL_OPTIONS");
            assert!(copied || line.chars().count() <= WIDTH, "{outcome:?}: {line}");
        }
    }
}

#[test]
fn each_trial_has_a_row_and_long_summaries_are_optional() {
    let document = find_sample::found();
    assert_eq!(tried(&document.trials).rows.len(), document.trials.len());
    let count = |depth: Depth| render(&summarize(&document, &[], depth)).matches("load, times in ms").count();
    assert_eq!(count(Depth::default()), 0);
    assert_eq!(count(Depth { each: true, ..Depth::default() }), document.trials.len());
}

#[test]
fn a_proof_is_shown_with_its_limitations() {
    let document = find_sample::found();
    let proof = fact(&document, "evidence").unwrap();
    let begins =
        "5 of 5 starts passed at 95.1 MiB (1 to choose it, 4 fresh ones to confirm it); fewer than 60% of starts fail";
    assert!(proof.starts_with(begins), "{proof}");
    let proved = find_sample::proved(400 * MIB);
    let proof = fact(&proved, "evidence").unwrap();
    assert!(proof.starts_with("5 of 5 starts passed at 400.0 MiB; fewer than 45% of starts fail"));
    let mut mishap = find_sample::found();
    let line = mishap.find.as_mut().and_then(|find| find.line.as_mut()).unwrap();
    line.proof = Some(ProofRecord { tried: 6, choosing: 1, candidates: 2 });
    let proof = fact(&mishap, "evidence").unwrap();
    assert!(proof.starts_with(
        "5 of 6 starts passed at 95.1 MiB (1 to choose it, 5 fresh ones to confirm it, after 1 \
            other candidate failed"
    ));
    let once = super::proof("95.1 MiB", 1, Some(ProofRecord { tried: 1, choosing: 1, candidates: 1 }), Some(1.0));
    assert!(once.contains("too few to tell how often a start fails"), "{once}");
    let shares = "-XX:MaxRAMPercentage=7.6 -XX:MinRAMPercentage=7.6 set the same heap as -Xmx at 105.0 MiB";
    assert!(fact(&document, "percentage").unwrap().starts_with(shares), "{:?}", fact(&document, "percentage"));
    assert!(proof.ends_with("on this host (95% confidence)"), "{proof}");
    let below = fact(&document, "below").unwrap();
    assert!(below.contains("file pages were repeatedly evicted and reread (p99.steady was 812 ms"), "{below}");
    assert!(fact(&document, "headroom").unwrap().starts_with(
        "10% (`--headroom`) on top of the load line: set the \
            limit to 105.0 MiB with -Xmx8m"
    ));
    assert!(fact(&document, "knee").unwrap().ends_with("18% less CPU per request (calculated, not tested)"));
    assert_eq!(fact(&document, "edge"), None);
    assert_eq!(fact(&document, "file pages"), None);
}

#[test]
fn pages_charged_to_other_cgroups_add_a_note_to_the_line() {
    let mut document = find_sample::found();
    let cold = document.trials.iter_mut().filter(|trial| is_at(trial, ProbeStage::Limit));
    for cgroup in cold.filter_map(|trial| trial.cgroup.as_mut()) {
        cgroup.foreign_file_bytes = Some(12 * MIB);
    }
    let text = fact(&document, "file pages").unwrap();
    assert!(text.starts_with("up to 12.0 MiB of its mapped file pages were charged to another cgroup"), "{text}");
}

#[test]
fn a_large_read_ahead_adds_a_note_to_the_line() {
    let mut document = find_sample::found();
    let mut told = |bytes| {
        document.trials[0].probe.as_mut().unwrap().read_ahead_bytes = bytes;
        fact(&document, "read-ahead")
    };
    assert_eq!((told(None), told(Some(128 << 10))), (None, None));
    assert!(told(Some(8 << 20)).unwrap().starts_with("8.0 MiB on the JDK's disk"));
}

#[test]
fn a_random_edge_is_shown_with_its_width() {
    let mut document = find_sample::found();
    document.find.as_mut().unwrap().line.as_mut().unwrap().edge_width = 0.031;
    assert!(fact(&document, "edge").unwrap().contains("3.1%"));
}

#[test]
fn the_worst_phase_counts_but_the_warm_up_does_not() {
    let document = find_sample::found();
    let mut trial = document.trials[0].clone();
    let alone = reached(&trial);
    assert_eq!((alone.rate_per_s, alone.p99_ms), (Some(200.0), Some(12.1)));
    let mut spike = trial.phases[1].clone();
    (spike.name, spike.seconds, spike.achieved_per_s) = ("spike".to_owned(), 30.0, 400.0);
    spike.response_ms = Some(Quantiles { p99: 71.0, ..Quantiles::default() });
    trial.phases.push(spike);
    let both = reached(&trial);
    assert_eq!((both.rate_per_s, both.p99_ms), (Some(350.0), Some(71.0)));
    trial.phases.truncate(1);
    assert_eq!((reached(&trial).rate_per_s, reached(&trial).p99_ms, reached(&trial).cpu_us), (None, None, None));
}

#[test]
fn the_peak_is_the_best_known_charge() {
    let trial = find_sample::found().trials[0].clone();
    let peak = |cgroup: Option<CgroupRecord>, rss: Option<u64>| {
        reached(&Trial { cgroup, rss_bytes_peak: rss, ..trial.clone() }).peak_bytes
    };
    let full =
        CgroupRecord { peak_bytes: Some(9), anon_peak_bytes: Some(5), file_bytes: Some(3), ..CgroupRecord::default() };
    assert_eq!(peak(Some(full), Some(7)), Some(9));
    assert_eq!(peak(Some(CgroupRecord { peak_bytes: None, ..full }), Some(7)), Some(8));
    assert_eq!(peak(Some(CgroupRecord::default()), Some(7)), Some(7));
    assert_eq!(peak(None, None), None);
}

#[test]
fn doubts_that_are_part_of_the_answer_are_not_repeated() {
    let mut document = find_sample::found();
    let cut = Doubt::CutShort { phase: "steady".to_owned(), why: "hopeless: 22 answers were late".to_owned() };
    for trial in &mut document.trials {
        trial.doubts = vec![cut.clone().into(), Doubt::SharedCpus.into()];
    }
    let held = document.trials.iter().filter(|trial| trial.probe.as_ref().unwrap().cause.is_none()).count();
    let plain = shown(&document).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains(&format!("hopeless: 22 answers were late (in {held} of {} trials)", document.trials.len())));
    for trial in document.trials.iter_mut().filter(|trial| trial.probe.as_ref().unwrap().cause.is_none()) {
        trial.doubts.clear();
    }
    let left = shown(&document);
    assert!(!left.contains("hopeless") && left.contains("\ndoubts\n"), "{left}");
}

#[test]
fn a_discarded_trial_is_marked_and_explained() {
    let mut trials = find_sample::found().trials;
    trials[2].probe.as_mut().unwrap().verdict = ProbeVerdict::Discarded;
    let table = tried(&trials);
    assert_eq!(table.rows[2][8], "discarded");
    assert!(table.notes.iter().any(|note| note.starts_with("discarded:")));
}

#[test]
fn the_answer_of_a_rate_search_is_a_rate() {
    let document = find_sample::highest_rate(512 * MIB);
    insta::assert_snapshot!(shown(&document));
    // With a limit that is too small, no rate passes.
    let text = told_of(&find_sample::highest_rate(64 * MIB));
    assert!(text.starts_with("With 64.0 MiB, the target was missed at every rate tried, down to 0."), "{text}");
    assert!(text.ends_with("Use more memory or a looser target."), "{text}");
}

#[test]
fn checking_one_limit_is_not_shown_as_a_search() {
    let text = |limit: u64| {
        let document = find_sample::proved(limit * MIB);
        (told_of(&document), fact(&document, "headroom"), shown(&document))
    };
    let (held, headroom, screen) = text(160);
    assert_eq!(held, "The target is met at 160.0 MiB: 5 of 5 starts passed.");
    assert_eq!(headroom.unwrap(), "none: set the limit to 160.0 MiB");
    assert!(screen.contains("--memory=160m") && screen.contains("\nlimit tested\n"), "{screen}");
    let (cause, headroom, _) = text(130);
    assert!(cause.starts_with("The target is missed at 130.0 MiB: p99.steady was 812 ms"), "{cause}");
    assert_eq!(headroom, None);
}

#[test]
fn phrases_become_sentences_with_one_period() {
    for (phrase, expect) in [
        ("no line", "No line."),
        ("5 of 5 held", "5 of 5 held."),
        ("done.", "Done."),
        ("", ""),
        ("\u{e9}t\u{e9}", "\u{c9}t\u{e9}."),
    ] {
        assert_eq!(sentence(phrase), expect);
    }
    assert_eq!([0.02, 0.105, 0.1].map(percent), ["2%", "10.5%", "10%"]);
    assert_eq!([95.2, 190.5].map(span), ["95 s", "3.2 minutes"]);
}

proptest! {
    #[test]
    fn any_search_record_is_shown(limit: u64, heap: Option<u64>, held: u32, share: f64, width: f64, below: Option<u64>,
                            seconds: f64, headroom: f64, ratio: f64) {
        let mut document = find_sample::found();
        let find = document.find.as_mut().unwrap();
        let line = LineRecord {
            limit_bytes: limit,
            heap_bytes: heap,
            held,
            failing_share_max: share,
            below_bytes: below,
            edge_width: width,
            ..LineRecord::default()
        };
        (find.line, find.warm, find.limit_bytes) = (Some(line.clone()), Some(line), Some(limit));
        (find.seconds, find.headroom) = (seconds, headroom);
        if let Some(knee) = &mut find.knee {
            (knee.cpu_ratio, knee.limit_bytes) = (ratio, limit / 2);
        }
        for trial in &mut document.trials {
            trial.limit_bytes = Some(limit);
            if let Some(probe) = &mut trial.probe {
                (probe.heap_bytes, probe.pages) = (heap, Pages::Warm);
            }
        }
        shown(&document);
    }
}
