//! Budgets: what passes, fails, or is undecided, and why.

use super::*;
use crate::metrics;
use crate::simulated::{self, RSS_MIB};

fn judge(text: &str, metrics: &[MetricRecord], baseline: Option<&[MetricRecord]>) -> BudgetRecord {
    judge_budgets(&[text.parse().unwrap()], &["g1".to_owned()], metrics, baseline, &Compare::default(), 1)
        .swap_remove(0)
}

fn judged(text: &str, blocks: u32, baseline: Option<&[MetricRecord]>) -> BudgetRecord {
    judge(text, &metrics(&simulated::trials(blocks, &["g1"], 4)), baseline)
}

fn check(text: &str, blocks: u32, expect: BudgetVerdict, pieces: &[&str]) {
    let record = judged(text, blocks, None);
    assert_eq!(record.verdict, expect, "{record:?}");
    for piece in pieces {
        assert!(record.why.contains(piece), "`{}` lacks `{piece}`", record.why);
    }
}

#[test]
fn an_absolute_budget_is_judged_by_its_entire_interval() {
    for blocks in [1, 3, 5, 10] {
        check("rss.loaded<=80MiB", blocks, BudgetVerdict::Pass, &["MiB", "within"]);
        check("rss.loaded<=50MiB", blocks, BudgetVerdict::Fail, &["MiB", "entirely above 50.0 MiB"]);
        check("rate>=1000", blocks, BudgetVerdict::Pass, &["/s"]);
        check("p99<2ms", blocks, BudgetVerdict::Fail, &["ms"]);
        check("failed==0", blocks, BudgetVerdict::Pass, &["0.000%"]);
        check("failed<0.1%", blocks, BudgetVerdict::Pass, &[]);
    }
    let centre = judged("rss.loaded<=80MiB", 10, None).value.unwrap() / 1_048_576.0;
    assert!((centre - RSS_MIB).abs() < 2.0);
    check(
        &format!("rss.loaded<={}KiB", (centre * 1024.0) as u64),
        10,
        BudgetVerdict::Undecided,
        &["the interval includes"],
    );
    check(&format!("rss.loaded<={}KiB", (centre * 1024.0) as u64 + 512), 1, BudgetVerdict::Undecided, &["1 trial"]);
}

#[test]
fn an_interval_that_ends_at_an_excluded_bound_is_not_called_below_it() {
    let mut metrics = metrics(&simulated::trials(6, &["g1"], 4));
    metrics.retain(|metric| metric.metric == "rss.loaded");
    metrics[0].values.iter_mut().for_each(|value| value.value = 30.0 * 1_048_576.0);
    let record = judge("rss.loaded<30MiB", &metrics, None);
    assert_eq!(record.verdict, BudgetVerdict::Fail);
    assert!(record.why.ends_with("entirely at or beyond 30.0 MiB"), "{}", record.why);
}

/// A budget without data does not pass.
#[test]
fn a_budget_without_data_is_undecided() {
    let budgets = ["rss.loaded<=80MiB".parse().unwrap()];
    let names = ["g1", "serial"].map(str::to_owned);
    for (metrics, expect) in [
        (Vec::new(), [BudgetVerdict::Undecided; 2]),
        (metrics(&simulated::trials(5, &["g1"], 4)), [BudgetVerdict::Pass, BudgetVerdict::Undecided]),
    ] {
        let judged = judge_budgets(&budgets, &names, &metrics, None, &Compare::default(), 1);
        assert_eq!(judged.iter().map(|record| record.verdict).collect::<Vec<_>>(), expect);
        assert!(judged[1].why.contains("not measured") && judged[1].value.is_none(), "{judged:?}");
    }
}

#[test]
fn an_undecided_budget_explains_why() {
    check("p98<=5ms", 3, BudgetVerdict::Undecided, &["no metric", "`p99`"]);
    check("charge.loaded<=5MiB", 3, BudgetVerdict::Undecided, &["not measured", "--limit"]);
    check("rss<=5MiB", 3, BudgetVerdict::Undecided, &["choose one"]);
    check("rss.loaded<=20ms", 3, BudgetVerdict::Undecided, &["in bytes", "`20ms`"]);
    check("rss.loaded==60MiB", 3, BudgetVerdict::Undecided, &["never exactly equal"]);
    check("rss.loaded<=+2%", 3, BudgetVerdict::Undecided, &["no baseline"]);
    assert_eq!(judged("p98<=5ms", 3, None).metric, None);
    assert_eq!(judged("rss.loaded<=20ms", 3, None).metric.as_deref(), Some("rss.loaded"));
}

#[test]
fn a_change_is_judged_against_the_same_name_or_the_only_one() {
    let before = |names: &[&str]| metrics(&simulated::trials(10, names, 9));
    let against = |names: &[&str]| judged("rss.loaded<=+20%", 10, Some(&before(names)));
    for names in [&["g1", "zgc"][..], &["serial"]] {
        let record = against(names);
        assert_eq!((record.verdict, record.relative, record.trials), (BudgetVerdict::Pass, true, 10), "{record:?}");
        assert_eq!(record.bound, Some(0.2));
    }
    assert!(against(&["a", "b"]).why.contains("no `rss.loaded` for `g1`"));
    assert!(against(&[]).why.contains("no `rss.loaded` for `g1`"));
    assert_eq!(judged("rss.loaded<=-10MiB", 10, Some(&before(&["g1"]))).verdict, BudgetVerdict::Fail);
    assert_eq!(judged("rss.loaded<=+10MiB", 10, Some(&before(&["g1"]))).bound, Some(10_485_760.0));
    let few = judged("rss.loaded<=+20%", 2, Some(&before(&["g1"])));
    assert_eq!((few.verdict, few.low), (BudgetVerdict::Undecided, None));
    assert!(few.why.contains("at least 3 on each side"), "{}", few.why);
    let none = judged("failed<=+0.1%", 10, Some(&before(&["g1"])));
    assert_eq!((none.verdict, none.relative), (BudgetVerdict::Pass, false));
    assert!(judged("gc_count<=+2%", 10, Some(&before(&["g1"]))).verdict != BudgetVerdict::Fail);
}

/// A certain but negligible change does not fail a build, even if no change was allowed.
#[test]
fn a_negligible_change_does_not_fail() {
    let constant = |mib: f64| {
        let mut metrics = metrics(&simulated::trials(10, &["g1"], 1));
        metrics.retain(|metric| metric.metric == "rss.loaded");
        for (place, value) in metrics[0].values.iter_mut().enumerate() {
            value.value = (mib + place as f64 / 100.0) * 1_048_576.0;
        }
        metrics
    };
    let judge = |rss_mib: f64| judge("rss.loaded<=+0MiB", &constant(60.0 + rss_mib), Some(&constant(60.0)));
    assert_eq!(judge(0.5).verdict, BudgetVerdict::Undecided);
    assert!(judge(0.5).why.contains("smallest difference that matters"), "{}", judge(0.5).why);
    assert_eq!(judge(1.5).verdict, BudgetVerdict::Fail);
    assert_eq!(judge(-0.5).verdict, BudgetVerdict::Pass);
}

#[test]
fn a_single_miss_of_an_exact_bound_fails() {
    let mut trials = simulated::trials(6, &["g1"], 4);
    trials[2].phases[1].failed.reset = 1;
    assert_eq!(judge("failed==0", &metrics(&trials), None).verdict, BudgetVerdict::Undecided);
    trials.iter_mut().for_each(|trial| trial.phases[1].failed.reset = 5);
    assert_eq!(judge("failed==0", &metrics(&trials), None).verdict, BudgetVerdict::Fail);
}

#[test]
fn a_bound_must_fit_the_unit_of_its_metric() {
    let check = |text: &str, unit| check_budget(&text.parse().unwrap(), unit).is_ok();
    assert!(check("x<=60MiB", Unit::Bytes) && check("x<=+2%", Unit::Bytes) && check("x<=-1MiB", Unit::Bytes));
    assert!(check("x<20ms", Unit::Milliseconds) && check("x<20ms", Unit::Seconds) && check("x==0", Unit::Share));
    assert!(check("x>=1000", Unit::PerSecond) && check("x<=30", Unit::Count) && check("x==30", Unit::Count));
    assert!(!check("x<=60", Unit::Bytes) && !check("x<=60", Unit::Milliseconds) && !check("x>=99%", Unit::PerSecond));
    assert!(!check("x<=+5ms", Unit::Bytes) && !check("x==60MiB", Unit::Bytes) && !check("x==+1", Unit::Count));
    let why = check_budget(&"rss.loaded<=20ms".parse().unwrap(), Unit::Bytes).unwrap_err();
    assert_eq!(why, "`rss.loaded<=20ms`: it is measured in bytes (`60MiB`), so `20ms` does not apply");
}

#[test]
fn values_are_shown_in_their_unit() {
    assert_eq!(shown(Unit::Bytes, -1_572_864.0), "-1.5 MiB");
    assert_eq!(shown(Unit::Seconds, 0.3), "300 ms");
    assert_eq!(shown(Unit::Share, 0.001), "0.100%");
    // Bytes per request are printed as everywhere else.
    assert_eq!(shown(Unit::BytesPerRequest, 5042.2), "4.9 KiB");
    assert_eq!(shown(Unit::BytesPerRequest, 500.0), "500.0 B");
    assert_eq!(shown(Unit::BytesPer, 5042.2), "5042.2 B");
}

#[test]
fn a_signed_bound_applies_to_the_change() {
    let before = metrics(&simulated::trials(5, &["g1"], 4));
    for (text, of_change) in [("rss.loaded<=80MiB", false), ("rss.loaded<=+4MiB", true), ("rss.loaded<=+2%", true)] {
        assert_eq!(judged(text, 5, Some(&before)).of_change, of_change, "{text}");
    }
}
