//! The pages of tunings of a simulated server: each ending, each number, hostile text, arbitrary records.

use super::super::summarize;
use super::*;
use crate::record::{Document, LinesRecord, NoiseRecord, OwnerBytes};
use crate::scenario::{Change, Objective};
use crate::terminal::render;
use crate::width::width;
use crate::{find_sample, tune_sample};
use proptest::prelude::*;

const WIDTH: usize = 80;

fn screen(document: &Document) -> String {
    render(&summarize(document, &[], Depth::default()))
}

fn tune() -> TuneRecord {
    tune_sample::proved().tune.unwrap()
}

fn fact<'a>(facts: &'a [(String, String)], label: &str) -> Option<&'a str> {
    facts.iter().find(|(of, _)| of == label).map(|(_, text)| text.as_str())
}

/// Lines that are too wide. Tables, lines to copy, and single long words may have any width.
fn too_wide(text: &str) -> Vec<&str> {
    let copied = |line: &&str| ["docker run", "JAVA_TOOL_OPTIONS", "value: "].iter().any(|word| line.contains(word));
    let one_word = |line: &&str| line.split_whitespace().any(|word| width(word) > WIDTH - 20);
    text.lines().filter(|line| width(line) > WIDTH && !copied(line) && !one_word(line)).collect()
}

#[test]
fn a_proved_tuning_is_shown() {
    insta::assert_snapshot!(screen(&tune_sample::proved()));
}

#[test]
fn a_tuning_without_proof_is_shown() {
    insta::assert_snapshot!(screen(&tune_sample::endings()[1].1));
}

#[test]
fn a_missed_target_is_shown() {
    insta::assert_snapshot!(screen(&tune_sample::endings()[2].1));
}

#[test]
fn a_dry_run_is_shown() {
    insta::assert_snapshot!(screen(&tune_sample::endings()[3].1));
}

/// The examples in the documentation match the output.
#[test]
fn the_documentation_of_tune_matches_the_output() {
    let page = include_str!("../../../../docs/tune.md");
    for (_, word, meaning) in FATES.iter().filter(|of| !matches!(of.0, Fate::Planned | Fate::NotTried)) {
        assert!(page.contains(&format!("| {word} | {meaning} |")), "{word}");
    }
    for objective in Objective::ALL {
        assert!(page.contains(&format!("`{objective}`")), "{objective}");
    }
}

#[test]
fn every_tuning_outcome_has_its_own_sentence() {
    let answer = |(outcome, document): (TuneOutcome, Document)| {
        format!("{outcome:?}: {}", told(document.tune.as_ref().unwrap()))
    };
    insta::assert_snapshot!(tune_sample::endings().into_iter().map(answer).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_missing_answer_is_shown_first() {
    for (outcome, document) in tune_sample::endings() {
        let text = screen(&document);
        let first = text.lines().next().unwrap();
        assert_eq!(first.starts_with("tiny-db, "), is_answered(outcome), "{outcome:?}: {first}");
        let to_copy = ["docker run", "for a change request"].map(|piece| text.contains(piece));
        assert_eq!(to_copy, [outcome == TuneOutcome::Proved; 2], "{outcome:?}");
        assert!(text.contains("spent "), "{outcome:?}");
    }
}

#[test]
fn every_tuning_outcome_fits_the_screen() {
    for (outcome, document) in tune_sample::endings() {
        for depth in [Depth::default(), Depth { details: true, ..Depth::default() }] {
            let text = render(&summarize(&document, &[], depth));
            assert_eq!(too_wide(&text), [""; 0], "{outcome:?}");
        }
    }
}

#[test]
fn details_are_shown_on_request() {
    let document = tune_sample::proved();
    let text = |depth: Depth| render(&summarize(&document, &[], depth));
    let plain = text(Depth::default());
    assert!(!plain.contains("search path"));
    let detailed = text(Depth { details: true, ..Depth::default() });
    let rows = detailed.split("search path").nth(1).unwrap().split("\n\n").next().unwrap().lines().count();
    assert_eq!(rows, 2 + document.tune.as_ref().unwrap().path.len(), "{detailed}");
    let each = text(Depth { each: true, ..Depth::default() });
    let trials = each.lines().filter(|line| line.starts_with("tiny-db (trial ")).count();
    assert_eq!(trials, document.trials.len());
}

#[test]
fn a_saving_has_its_interval_and_a_loss_is_not_a_saving() {
    let mut tune = tune();
    let saves = |tune: &TuneRecord| fact(&answer(tune), "saves").unwrap().to_owned();
    assert_eq!(saves(&tune), "412.3 MiB of 1413.0 MiB RSS (29.2%), 398.0 MiB to 427.1 MiB at 95% confidence");
    (tune.gains[0].low, tune.objective) = (None, Objective::Rested);
    assert_eq!(saves(&tune), "412.3 MiB of 1413.0 MiB RSS rested (29.2%)");
    tune.gains[0].difference = 3.0 * MIB as f64;
    assert!(told(&tune).contains(": it takes 3.0 MiB more than the 1413.0 MiB RSS rested (0.2%)."), "{}", told(&tune));
}

#[test]
fn cpu_time_is_shown_as_a_change_per_request() {
    let mut tune = tune();
    let costs = |tune: &TuneRecord| fact(&answer(tune), "costs").map(str::to_owned);
    let expect = "CPU per request +0.4% (-0.6 … +1.4); p99.steady 8.12 ms before, 8.17 ms after";
    assert_eq!(costs(&tune).as_deref(), Some(expect));
    // Seconds per 1,000 requests are milliseconds per request.
    let row = gains(&tune).unwrap().rows.remove(1);
    assert_eq!(row[1..5], ["CPU per request", "1.25 ms", "1.25 ms", "+0.4%"]);
    // With several phases, each is named, and the warm-up is omitted.
    let of = |metric: &str, tune: &TuneRecord| ComparisonRecord {
        metric: metric.to_owned(),
        ratio: None,
        primary: false,
        ..tune.gains[1].clone()
    };
    tune.gains.extend([of("cpu_per_1000.spike", &tune), of("cpu_per_1000.warmup", &tune)]);
    let told = costs(&tune).unwrap();
    let begins = "CPU steady +0.4% (-0.6 … +1.4); CPU spike 1.25 ms before, 1.25 ms after; p99";
    assert!(told.starts_with(begins), "{told}");
    assert_eq!(gains(&tune).unwrap().rows.len(), 5);
    // If the JIT's CPU time is known separately, the price applies to the rest.
    tune.gains.truncate(2);
    tune.gains.push(of("cpu_jit_per_1000.steady", &tune));
    tune.gains[1].metric = "cpu_without_jit_per_1000.steady".to_owned();
    let told = costs(&tune).unwrap();
    assert_eq!(told, "CPU without JIT +0.4% (-0.6 … +1.4); JIT per request 1.25 ms before, 1.25 ms after");
    tune.gains.truncate(1);
    assert_eq!(costs(&tune), None);
}

#[test]
fn the_objective_is_always_listed_first() {
    let mut tune = tune();
    tune.gains.reverse();
    assert!(told(&tune).contains(": it saves 412.3 MiB of 1413.0 MiB RSS"), "{}", told(&tune));
    let metrics: Vec<Cell> = gains(&tune).unwrap().rows.into_iter().map(|mut row| row.remove(1)).collect();
    assert_eq!(metrics, ["RSS", "CPU per request", "rate.steady", "p99.steady"]);
}

#[test]
fn owners_with_the_largest_change_come_first_and_others_are_summed() {
    let mut tune = tune();
    let rows = owners(&tune, 2).unwrap().rows;
    assert_eq!(rows[0][..2], ["malloc retained", "358.2"]);
    assert_eq!(rows[2][0], "7 other owners");
    let column = |at: usize| rows.iter().map(|row| row[at].to_string().parse::<f64>().unwrap()).sum::<f64>();
    assert!((column(1) - 1413.0).abs() < 0.2 && (column(2) - 1000.7).abs() < 0.2, "{rows:?}");
    tune.owners.clear();
    assert_eq!(owners(&tune, 2), None);
}

#[test]
fn reasons_are_shortened() {
    let mut tune = tune();
    tune.remedies.iter_mut().for_each(|of| of.why = "Unrecognized\noption ".repeat(1000));
    let longest = fates(&tune).iter().map(|(_, text)| text.chars().count()).max();
    assert!(longest.is_some_and(|most| most < 600), "{longest:?}");
}

#[test]
fn every_remedy_is_listed_once_under_its_fate() {
    for (outcome, document) in tune_sample::endings() {
        let tune = document.tune.as_ref().unwrap();
        let told = fates(tune);
        for of in &tune.remedies {
            let begins = |text: &str| text.split(['(', ':']).next().unwrap_or_default().contains(&of.id);
            assert_eq!(told.iter().filter(|(_, text)| begins(text)).count(), 1, "{outcome:?}, {}", of.id);
        }
        assert_eq!(remedies(tune).unwrap().rows.len(), tune.remedies.len());
    }
    let words: Vec<&str> = FATES.iter().map(|of| of.1).collect();
    assert_eq!(words.len(), each_once(words.iter().copied()).len(), "each fate has its own word");
}

#[test]
fn planned_remedies_are_ordered_by_maximum_gain() {
    let (_, document) = tune_sample::endings().remove(3);
    let tune = document.tune.unwrap();
    let bounds: Vec<Option<u64>> = ranked(&tune, Fate::Planned).iter().map(|of| of.gain_bytes_max).collect();
    assert!(bounds.windows(2).all(|pair| pair[0] >= pair[1]), "{bounds:?}");
    let (word, first) = fates(&tune).remove(0);
    assert_eq!(word, "to try");
    assert!(first.ends_with("makes all threads share one malloc arena; could save up to 286.0 MiB, free"), "{first}");
}

#[test]
fn remedies_with_the_same_reason_share_a_line() {
    let told = fates(&tune());
    let lines: Vec<&str> =
        told.iter().skip_while(|(label, _)| label != "not tried").map(|(_, text)| text.as_str()).collect();
    assert_eq!(lines[0], "gc.shenandoah, heap.soft_max: this JVM has no such flag");
    assert_eq!(lines.len(), 3);
}

#[test]
fn limits_are_shown_if_found() {
    let mut tune = tune();
    let expect = "load line 873.0 MiB (5 of 5 starts passed), 0.72 times that of the baseline, 1212.0 MiB (5 of 5 \
        starts passed); with 10% headroom, set 960.0 MiB";
    assert_eq!(fact(&answer(&tune), "limit"), Some(expect));
    let lines = tune.lines.as_mut().unwrap();
    lines.as_is = None;
    let alone = "load line 873.0 MiB (5 of 5 starts passed); with 10% headroom, set 960.0 MiB";
    assert_eq!(limits(lines).as_deref(), Some(alone));
    assert_eq!(limits(&LinesRecord { as_is: None, tuned: None }), None);
    // The unchanged server's limit, without a tuned one, is not an answer. It is listed with the request.
    let (_, document) = tune_sample::endings().remove(1);
    let nothing = TuneRecord {
        lines: Some(LinesRecord { as_is: find_sample::found().find, tuned: None }),
        ..document.tune.unwrap()
    };
    assert!(fact(&method(&nothing), "limit").unwrap().starts_with(
        "baseline load line 95.1 MiB (5 of 5 starts \
        passed)"
    ));
}

#[test]
fn a_change_request_states_its_evidence() {
    let document = tune_sample::proved();
    let text = request(&document, document.tune.as_ref().unwrap()).unwrap().join(" ");
    for piece in [
        "Set `MALLOC_ARENA_MAX=1 -XX:TrimNativeHeapInterval=2000 -Xmx128m`: it saves 412.3 MiB",
        "398.0 MiB to 427.1 MiB at 95% confidence",
        "+0.4% (-0.6 … +1.4)",
        "p99<50ms, rate>=98%, failed==0",
        "5 blocks of fresh JVMs",
        "31 trials",
        "GET /query, open, 200/s, 30s",
        "25.0.3+9-LTS, G1 GC, glibc 2.36",
        "2 cores, 8.0 GiB, Linux 6.1.0-35-amd64",
        "including JDK updates",
        "loadline tune tiny-db.loadline.yaml --seed 1",
    ] {
        assert!(text.contains(piece), "{piece}: {text}");
    }
    for (outcome, document) in tune_sample::endings().into_iter().skip(1) {
        assert_eq!(request(&document, document.tune.as_ref().unwrap()), None, "{outcome:?}");
    }
}

#[test]
fn doubts_about_the_answer_are_listed_with_the_others() {
    let mut document = tune_sample::proved();
    let told = "\ndoubts\n  ! the load was closed; the first trial set the constant rate of steady to\n    200/s\n";
    assert!(screen(&document).ends_with(told));
    document.doubts.push(crate::doubt::Doubt::SharedCpus.into());
    let text = screen(&document);
    let (own, other) = text.split_once("\ndoubts\n").unwrap().1.split_once("200/s\n").unwrap();
    assert!(own.contains("the load was closed") && other.contains("    -> "), "{text}");
    document.doubts.clear();
    document.tune.as_mut().unwrap().doubts.clear();
    assert!(!screen(&document).contains("\ndoubts\n"));
}

#[test]
fn a_record_without_lists_is_still_shown() {
    for (outcome, mut document) in tune_sample::endings() {
        let tune = document.tune.as_mut().unwrap();
        (tune.as_is, tune.noise, tune.lines) = (None, None, None);
        (tune.remedies, tune.path, tune.front) = (Vec::new(), Vec::new(), Vec::new());
        (tune.gains, tune.owners, tune.confirmations) = (Vec::new(), Vec::new(), Vec::new());
        (tune.target, tune.rates, tune.doubts) = (Vec::new(), Vec::new(), Vec::new());
        document.trials.clear();
        let text = screen(&document);
        assert!(text.contains("spent "), "{outcome:?}: {text}");
        assert!(!text.contains("\nremedies\n") && !text.contains("by owner"), "{outcome:?}: {text}");
    }
}

#[test]
fn hostile_text_in_a_tuning_is_escaped() {
    for text in ["\u{1b}[2J\nx", "\u{202e}gnp", "", " ", "`", &"x".repeat(10_000), &"a b ".repeat(3_000)] {
        for depth in [Depth::default(), Depth { each: true, details: true, ..Depth::NONE }] {
            let shown = render(&summarize(&tune_sample::hostile(text), &[], depth));
            assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        }
    }
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), -1e13..1e13f64, any::<f64>()]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z.]{0,14}", "\\PC{0,40}", any::<String>()]
}

fn remedy() -> impl Strategy<Value = RemedyRecord> {
    let fate = (0..FATES.len()).prop_map(|at| FATES[at].0);
    let numbers = (proptest::option::of(any::<u64>()), proptest::option::of(number()), proptest::option::of(number()));
    (text(), text(), text(), fate, numbers).prop_map(|(id, option, why, fate, (bound, saved, cpu))| RemedyRecord {
        what: why.clone(),
        options: vec![option],
        price: PriceClass::Cpu,
        gain_bytes_max: bound,
        saved_bytes: saved,
        cpu_ratio: cpu,
        id,
        fate,
        why,
        blames: None,
    })
}

fn setting() -> impl Strategy<Value = SettingRecord> {
    (proptest::collection::vec(text(), 0..4), proptest::option::of(number()), proptest::option::of(number()), text())
        .prop_map(|(remedies, bytes, cpu_ratio, owner)| SettingRecord {
            options: remedies.clone(),
            stage: TuneStage::Race,
            trials: 2,
            holds: cpu_ratio.is_some(),
            owners: vec![OwnerBytes { owner, bytes: bytes.unwrap_or(1.0) }],
            why: remedies.clone(),
            remedies,
            bytes,
            cpu_ratio,
        })
}

proptest! {
    // Each case renders a whole page with charts.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_tuning_record_can_be_shown(
        remedies in proptest::collection::vec(remedy(), 0..60),
        settings in proptest::collection::vec(setting(), 0..12),
        numbers in proptest::collection::vec(number(), 8),
        outcome in 0usize..6,
    ) {
        let (_, mut document) = tune_sample::endings().remove(outcome);
        let tune = document.tune.as_mut().unwrap();
        tune.changes = remedies.iter().map(|of| Change::Jvm(of.options.clone())).collect();
        (tune.front, tune.as_is) = (settings.clone(), settings.first().cloned());
        (tune.remedies, tune.path) = (remedies, settings);
        (tune.price, tune.seconds) = (numbers[0], numbers[1]);
        tune.noise = Some(NoiseRecord { bytes: numbers[2], cpu: Some(numbers[3]) });
        for gain in &mut tune.gains {
            (gain.difference, gain.low, gain.ratio) = (numbers[4], Some(numbers[5]), Some(numbers[6]));
            gain.baseline_median = numbers[7];
        }
        for of in &mut tune.owners {
            (of.before_bytes, of.after_bytes) = (numbers[6], numbers[7]);
        }
        for depth in [Depth::default(), Depth { details: true, ..Depth::default() }] {
            render(&summarize(&document, &[], depth));
        }
        crate::html(&document, &[], &[]);
        crate::plots(&document, &[]);
        crate::export::markdown(&document);
    }

    #[test]
    fn valid_numbers_with_any_names_fit_the_screen(
        remedies in proptest::collection::vec(remedy(), 0..60),
        bytes in 0.0..9.9e9f64,
        ratio in 0.2..3.0f64,
    ) {
        let mut document = tune_sample::proved();
        let tune = document.tune.as_mut().unwrap();
        tune.remedies = remedies;
        for of in &mut tune.remedies {
            (of.saved_bytes, of.cpu_ratio, of.gain_bytes_max) = (Some(bytes), Some(ratio), Some(bytes as u64));
        }
        for of in tune.path.iter_mut().chain(&mut tune.front) {
            of.remedies.iter_mut().zip(&tune.remedies).for_each(|(id, of)| id.clone_from(&of.id));
            (of.bytes, of.cpu_ratio) = (Some(bytes), Some(ratio));
        }
        for gain in &mut tune.gains[..1] {
            (gain.baseline_median, gain.candidate_median, gain.difference) = (bytes, bytes * ratio, bytes);
        }
        for (of, remedy) in tune.owners.iter_mut().zip(&tune.remedies) {
            of.owner.clone_from(&remedy.id);
            of.after_bytes = bytes;
        }
        let text = render(&summarize(&document, &[], Depth { details: true, ..Depth::default() }));
        prop_assert_eq!(too_wide(&text), [""; 0]);
    }
}
