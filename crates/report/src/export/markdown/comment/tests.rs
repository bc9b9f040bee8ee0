//! Comments on sample documents.

use super::super::super::{consumers::check_comment, samples};
use super::*;
use crate::record::{ComparisonRecord, TuneOutcome};

/// The verdict in the second line.
fn verdict(text: &str) -> &str {
    let line = text.lines().nth(1).unwrap();
    line.strip_prefix("<!-- loadline-verdict: ").unwrap().strip_suffix(" -->").unwrap()
}

/// `compared` without differences and exceeded budgets.
fn alike() -> Document {
    let mut document = samples::compared();
    document.comparisons.iter_mut().for_each(|of| of.verdict = DifferenceVerdict::Equivalent);
    document.budgets.retain(|of| of.verdict == BudgetVerdict::Pass);
    document
}

/// `compared` as two archives, `main` and `this`, with accounts.
fn archives() -> Document {
    let mut document = samples::compared();
    let owner = |metric: &str, [before, after]: [f64; 2], sure: f64| ComparisonRecord {
        primary: false,
        metric: metric.to_owned(),
        baseline_median: before * samples::MIB,
        candidate_median: after * samples::MIB,
        difference: (after - before) * samples::MIB,
        low: Some((after - before - sure) * samples::MIB),
        high: Some((after - before + sure) * samples::MIB),
        ..document.comparisons[0].clone()
    };
    let owners = [
        owner("metaspace.loaded", [10.0, 17.5], 0.25),
        owner("malloc.retained.loaded", [8.0, 12.0], 1.5),
        owner("java_heap.used.loaded", [6.0, 5.5], 0.125),
        owner("code_cache.loaded", [5.0, 6.0], 2.0),
        owner("metaspace.start", [1.0, 9.0], 0.25),
        owner("gc.loaded", [1.0, 1.0], 0.0),
    ];
    document.comparisons.extend(owners);
    let whole = |name: &str| match name {
        "serial" => "main/app".to_owned(),
        _ => "this/app".to_owned(),
    };
    for of in &mut document.comparisons {
        (of.baseline, of.candidate) = (whole(&of.baseline), whole(&of.candidate));
    }
    document.trials.iter_mut().for_each(|trial| trial.configuration = whole(&trial.configuration));
    for (index, trial) in document.trials.iter_mut().enumerate() {
        let jvm = trial.jvm.as_mut().unwrap();
        if trial.configuration == "this/app" {
            jvm.version = Some("25.0.3+9-LTS".to_owned());
            jvm.flags = Some(vec!["-XX:+UseG1GC".to_owned(), "-XX:MaxHeapSize=6291456".to_owned()]);
        } else {
            jvm.flags = Some(vec!["-XX:+UseSerialGC".to_owned(), "-XX:MaxHeapSize=6291456".to_owned()]);
        }
        trial.index = index as u32;
    }
    let mut conditions = document.conditions.clone();
    conditions.machine.cpu_model = Some("EPYC 7763".to_owned());
    let archive = |name: &str, index_from: u32, conditions| crate::record::ArchiveRecord {
        name: name.to_owned(),
        index_from,
        conditions,
    };
    let before = archive("main", 0, conditions.clone());
    conditions.machine.cpu_model = Some("EPYC 9V74".to_owned());
    conditions.started = "2026-11-22T08:00:00Z".to_owned();
    document.archives = vec![before, archive("this", 3, conditions)];
    document
}

#[test]
fn a_comment_attributes_changes_against_an_archive_to_owners() {
    let text = comment(&archives(), Unchanged::Silent);
    check_comment(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn a_comment_reports_changes_against_a_configuration() {
    let mut document = samples::compared();
    document.budgets.clear();
    let text = comment(&document, Unchanged::Silent);
    check_comment(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn a_comment_reports_a_broken_budget_without_a_comparison() {
    let mut document = samples::compared();
    document.comparisons.clear();
    let text = comment(&document, Unchanged::Silent);
    check_comment(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn a_broken_budget_names_owners_even_without_a_verdict() {
    let mut document = archives();
    document.comparisons.iter_mut().for_each(|of| of.verdict = DifferenceVerdict::CannotTell);
    let rss = document.comparisons.iter().find(|of| of.metric == "rss.loaded").unwrap().candidate.clone();
    document.budgets.retain(|of| of.verdict == BudgetVerdict::Fail);
    for budget in &mut document.budgets {
        (budget.configuration, budget.metric) = (rss.clone(), Some("rss.loaded".to_owned()));
    }
    let text = comment(&document, Unchanged::Silent);
    check_comment(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn a_comment_without_changes_is_empty_unless_requested() {
    let document = alike();
    assert_eq!(comment(&document, Unchanged::Silent), "");
    let text = comment(&document, Unchanged::Told);
    check_comment(&text);
    assert_eq!(verdict(&text), "unchanged");
    let said = "No clear change from `serial`: 4 metrics equivalent, 1 budget met.";
    assert_eq!(text.lines().nth(2), Some(said));
    assert_eq!(comment(&samples::empty(), Unchanged::Silent), "");
    check_comment(&comment(&samples::empty(), Unchanged::Told));
}

#[test]
fn undecided_verdicts_are_counted_but_cause_no_comment() {
    let mut document = alike();
    document.comparisons[2].verdict = DifferenceVerdict::CannotTell;
    document.budgets[0].verdict = BudgetVerdict::Undecided;
    assert_eq!(comment(&document, Unchanged::Silent), "");
    let said = "No clear change from `serial`: 3 metrics equivalent, 1 metric undecided, 1 budget undecided. \
                Settling this would take about 18 blocks in total.";
    let text = comment(&document, Unchanged::Told);
    assert_eq!(text.lines().nth(2), Some(said), "{text}");
}

#[test]
fn each_verdict_has_its_word_in_a_comment() {
    let mut document = alike();
    document.comparisons[1].verdict = DifferenceVerdict::Better;
    let of = |document: &Document| verdict(&comment(document, Unchanged::Silent)).to_owned();
    assert_eq!(of(&document), "better");
    document.comparisons[0].verdict = DifferenceVerdict::Worse;
    assert_eq!(of(&document), "worse");
    document.budgets[0].verdict = BudgetVerdict::Fail;
    assert_eq!(of(&document), "broken");
    assert_eq!(of(&samples::failing()), "failed");
    let ranks = [Change::Unchanged, Change::Better, Change::Worse, Change::Broken, Change::Failed];
    assert!(ranks.is_sorted());
}

#[test]
fn a_failed_baseline_trial_is_not_blamed_on_the_change() {
    let mut document = archives();
    document.budgets.clear();
    document.trials[0].outcome = crate::record::Outcome::SubjectFailed;
    assert_eq!(verdict(&comment(&document, Unchanged::Silent)), "worse");
    document.trials[1].outcome = crate::record::Outcome::SubjectFailed;
    let text = comment(&document, Unchanged::Silent);
    assert_eq!(verdict(&text), "failed");
    let said = "trial 2 of this/app: the server failed: reason unknown. ";
    assert!(text.lines().nth(2).unwrap().starts_with(said), "{text}");
}

#[test]
fn a_search_is_commented_on_only_if_the_target_is_missed() {
    let of_search = |outcome: FindOutcome| matches!(outcome, FindOutcome::NotHeld | FindOutcome::Never);
    let of_tuning = |outcome: TuneOutcome| outcome == TuneOutcome::NotHeld;
    for (speaks, document) in samples::endings(of_search, of_tuning) {
        let outcomes = (document.find.as_ref().map(|of| of.outcome), document.tune.as_ref().map(|of| of.outcome));
        assert_eq!(comment(&document, Unchanged::Silent).is_empty(), !speaks, "{outcomes:?}");
        check_comment(&comment(&document, Unchanged::Told));
    }
}

#[test]
fn long_comments_drop_entire_rows() {
    let mut document = samples::compared();
    let row = document.comparisons[0].clone();
    document.comparisons.extend(std::iter::repeat_n(row, 5_000));
    let text = comment(&document, Unchanged::Told);
    check_comment(&text);
    let note = text.lines().find(|line| line.contains("more rows did not fit")).unwrap();
    let left_out: usize = note.split(' ').next().unwrap().replace(',', "").parse().unwrap();
    let shown = text.lines().filter(|line| line.starts_with("| **worse**") || line.starts_with("| better")).count();
    assert!(left_out + shown >= 5_001 && shown > 300, "{left_out} {shown}");
    assert!(text.chars().count() > 64_000);
}
