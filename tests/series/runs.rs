//! Complete runs on simulated servers: from the first trial through the archive to the document and the screen.

use crate::made_up::{LIMIT_MAX, MadeUpTrials, Mishap, Server, Silence, conditions, scenario};
use loadline::error::{ErrorKind, Result};
use loadline::record::{BudgetVerdict, Document, FindOutcome, Trial};
use loadline::report::{self, Depth};
use loadline::result::{self, ArchivePart, Judgement, JudgementSettings, Merged};
use loadline::scenario::Scenario;
use loadline::series::search::Search;
use loadline::series::{self, Archived, Blocks, Strategy};
use loadline::units::MIB;
use tempfile::TempDir;

fn searched() -> Scenario {
    scenario("made-up", "configurations: {only: {gc: serial}}\ntarget: ['p99<50ms', 'failed==0']\nfind: {warm: false}")
}

/// Runs a strategy with an archive with this name.
fn archived(
    place: &TempDir,
    name: &str,
    scenario: &Scenario,
    strategy: &dyn Strategy,
    made_up: &mut MadeUpTrials,
) -> Result<()> {
    let folder = place.path().join(name);
    let mut store = Archived::create(&folder, &conditions(scenario), scenario, Silence).unwrap();
    let mut trials = Vec::new();
    let done = series::run(strategy, made_up, &mut store, &mut trials);
    let interrupted = matches!(&done, Err(error) if error.kind == ErrorKind::Interrupted);
    store.close(interrupted).0.unwrap();
    let read = result::read(&folder).unwrap();
    assert_eq!(read.trials, trials, "the archive has the run's trials");
    assert_eq!(read.missing.len(), usize::from(interrupted), "{:?}", read.missing);
    for trial in &trials {
        assert!(trial.folder.as_ref().is_some_and(|name| folder.join(name).is_dir()), "{:?}", trial.folder);
    }
    done.map(drop)
}

fn said(document: &Document) -> String {
    let text = report::render(&report::summarize(document, &[], Depth::default()));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_search_gives_the_same_result_from_its_archive() {
    let place = tempfile::tempdir().unwrap();
    let scenario = searched();
    let search = Search::new(&scenario, LIMIT_MAX).unwrap();
    archived(&place, "a", &scenario, &search, &mut MadeUpTrials::of(Server::default())).unwrap();
    let read = result::read(&place.path().join("a")).unwrap();
    assert!(result::is_search(&read.trials) && read.scenario == scenario);
    let document = result::of_search(&read.conditions, &read.scenario, &read.trials);
    let line = document.find.as_ref().unwrap().line.as_ref().unwrap();
    let limit = loadline::units::Bytes(line.limit_bytes).to_string();
    let text = said(&document);
    assert!(text.contains(&format!("load line {limit} with -Xmx{}m", line.heap_bytes.unwrap() / MIB)), "{text}");
    assert!(text.contains("evidence 5 of 5 starts passed"), "{text}");
    assert!(text.contains("file pages were repeatedly evicted and reread"), "{text}");
}

/// A search interrupted at any trial and resumed from its archive has the same result as an uninterrupted one.
#[test]
fn an_archived_search_resumes_after_any_interruption() {
    let place = tempfile::tempdir().unwrap();
    let scenario = searched();
    let search = Search::new(&scenario, LIMIT_MAX).unwrap();
    archived(&place, "whole", &scenario, &search, &mut MadeUpTrials::of(Server::default())).unwrap();
    let whole = result::read(&place.path().join("whole")).unwrap();
    let line = |trials: &[Trial]| {
        let found = result::of_search(&whole.conditions, &scenario, trials).find.unwrap();
        assert_eq!(found.outcome, FindOutcome::Found);
        let line = found.line.unwrap();
        (line.limit_bytes, line.heap_bytes, line.held)
    };
    let expect = line(&whole.trials);
    for cut in 0..whole.trials.len() as u32 {
        let name = format!("cut-{cut}");
        let mut made_up = MadeUpTrials::of(Server::default()).with(cut, Mishap::Interrupted);
        assert!(archived(&place, &name, &scenario, &search, &mut made_up).is_err());
        let folder = place.path().join(&name);
        let mut trials = result::read(&folder).unwrap().trials;
        let mut store = Archived::reopen(&folder, trials.len() as u32, Silence).unwrap();
        let limit_max = Search::limit_max_of(&trials).unwrap_or(LIMIT_MAX);
        let again = Search::new(&scenario, limit_max).unwrap();
        series::run(&again, &mut MadeUpTrials::of(Server::default()), &mut store, &mut trials).unwrap();
        store.close(false).0.unwrap();
        let read = result::read(&folder).unwrap();
        assert_eq!(read.trials, trials, "cut: {cut}");
        assert_eq!(line(&read.trials), expect, "cut: {cut}");
    }
}

#[test]
fn a_budget_is_judged_over_all_trials_and_sets_the_exit_code() {
    let place = tempfile::tempdir().unwrap();
    let more = "configurations: {small: {heap: 64m}, large: {heap: 128m}}\ntrials: 5\nbudgets: ['rss.loaded<=200MiB']";
    let scenario = scenario("made-up", more);
    let judgement = Judgement::of(&scenario, JudgementSettings::default()).unwrap();
    let blocks = Blocks::new(&scenario, judgement.compare());
    archived(&place, "a", &scenario, &blocks, &mut MadeUpTrials::of(Server { noise: 0.002, ..Server::default() }))
        .unwrap();
    let read = result::read(&place.path().join("a")).unwrap();
    let document = judgement.document(&read.conditions, &read.trials);
    let verdicts: Vec<_> = document.budgets.iter().map(|of| (of.configuration.as_str(), of.verdict)).collect();
    assert_eq!(verdicts, [("small", BudgetVerdict::Pass), ("large", BudgetVerdict::Fail)]);
    assert!(!judgement.passes(&document).unwrap());
    let text = said(&document);
    assert!(text.contains("budget rss.loaded<=200MiB was exceeded by large: "), "{text}");
    assert!(text.contains("large vs. small: worse in rss.loaded"), "{text}");
}

/// Three archives side by side, each with its own conditions.
#[test]
fn archives_are_merged_with_the_conditions_of_each() {
    let place = tempfile::tempdir().unwrap();
    let mut scenario = scenario("made-up", "configurations: {only: {heap: 64m}}\ntrials: 5");
    let parts: Vec<ArchivePart> = [("a", 60), ("b", 60), ("c", 90)]
        .into_iter()
        .map(|(name, native)| {
            scenario.configurations[0].inputs = Some(format!("{native}{}", "0".repeat(62)));
            let of = Server { native: native * MIB, noise: 0.002, ..Server::default() };
            let mut made_up = MadeUpTrials { seed: native, ..MadeUpTrials::of(of) };
            archived(&place, name, &scenario, &Blocks::new(&scenario, &scenario.compare), &mut made_up).unwrap();
            let path = place.path().join(name);
            ArchivePart { archive: result::read(&path).unwrap(), path }
        })
        .collect();
    let merged = Merged::of(parts, "loadline compare a b c".to_owned()).unwrap();
    let document = Judgement::of(&merged.scenario, JudgementSettings::default()).unwrap().of_archives(&merged);
    let archives: Vec<_> = document.archives.iter().map(|of| (of.name.as_str(), of.index_from)).collect();
    assert_eq!(archives, [("a", 0), ("b", 5), ("c", 10)]);
    assert!(document.archives.iter().all(|of| of.conditions.scenario == "made-up"));
    assert_eq!(document.trials.iter().map(|trial| trial.index).collect::<Vec<_>>(), (0..15).collect::<Vec<_>>());
    let other_files = "the archives differ in more than their configurations: files of only (SHA-256): 600000000000 | \
                       900000000000";
    let said: Vec<&str> = document.doubts.iter().map(|doubt| doubt.text.as_str()).collect();
    assert_eq!(said.iter().filter(|text| text.contains("files of")).collect::<Vec<_>>(), [&other_files], "{said:?}");
    let rss = |candidate: &str| {
        let of = |row: &&loadline::record::ComparisonRecord| row.candidate == candidate && row.metric == "rss.loaded";
        document.comparisons.iter().find(of).map(|row| (row.baseline.clone(), row.verdict)).unwrap()
    };
    use loadline::record::DifferenceVerdict::{Equivalent, Worse};
    assert_eq!([rss("b/only"), rss("c/only")], [("a/only".to_owned(), Equivalent), ("a/only".to_owned(), Worse)]);
    assert!(Merged::of(Vec::new(), String::new()).is_err());
}
