//! Complete entries on simulated servers: a node's work, its record, which of several records counts, and interrupted
//! work.

use crate::made_up::{LIMIT_MAX, MadeUpTrials, Mishap, Server, Silence, conditions, scenario};
use loadline::clock::Clock;
use loadline::error::{Error, ErrorKind, Result};
use loadline::fleet::{PlaceSeen, Plan, ServiceVersions, Started};
use loadline::record::{
    EntryOutcome, EntryResult, FindOutcome, FindRecord, Machine, PlanEntry, ProbeStage, Task, Trial, Why,
};
use loadline::result;
use loadline::scenario::{Last, PastLine, Scenario};
use loadline::series::search::{self, Search};
use loadline::series::{self, Archived, PreparedSeries};
use loadline::units::MIB;
use loadline::work::{self, Blocks, By, Done, Runner, Searched, Stopped, WorkerInput};
use loadline_test_support::write;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const INPUTS: &str = "0a";

fn service() -> Scenario {
    scenario("made-up", "configurations: {only: {gc: serial}}\ntarget: ['p99<50ms', 'failed==0']\nfind: {warm: false}")
}

/// A node whose servers are functions.
#[derive(Default)]
struct Node {
    server: Server,
    /// By archive name.
    mishaps: Vec<(&'static str, u32, Mishap)>,
    stopped: Option<Stopped>,
    cannot_limit: Option<Error>,
    cannot_prepare: Option<Error>,
    seen: ServiceVersions,
    throttled: u64,
    /// Runs during the trials.
    meanwhile: RefCell<Option<Box<dyn FnOnce()>>>,
    said: RefCell<Vec<String>>,
    /// Archives, with each one's initial number of trials.
    archives: RefCell<Vec<(String, usize)>>,
}

impl Node {
    fn with(mut self, archive: &'static str, trial: u32, mishap: Mishap) -> Self {
        self.mishaps.push((archive, trial, mishap));
        self
    }

    fn made_up(&self, archive: &Path) -> MadeUpTrials {
        let name = archive.file_name().unwrap().to_str().unwrap().to_owned();
        let mishaps = self.mishaps.iter().filter(|(of, ..)| *of == name);
        let made_up = MadeUpTrials::of(self.server.clone());
        mishaps.fold(made_up, |made_up, (_, trial, mishap)| made_up.with(*trial, mishap.clone()))
    }

    fn begin(&self, archive: &Path, trials: usize) {
        let name = archive.file_name().unwrap().to_str().unwrap().to_owned();
        self.archives.borrow_mut().push((name, trials));
        if let Some(meanwhile) = self.meanwhile.take() {
            meanwhile();
        }
    }

    fn names(&self) -> Vec<String> {
        self.archives.borrow().iter().map(|(name, _)| name.clone()).collect()
    }
}

impl Runner for Node {
    fn place_before(&self) -> PlaceSeen {
        PlaceSeen { cpus: 2, online: 2, throttled: Some(0), ..PlaceSeen::default() }
    }

    fn place_after(&self) -> PlaceSeen {
        PlaceSeen { throttled: Some(self.throttled), ..self.place_before() }
    }

    fn machine(&self) -> Machine {
        conditions(&service()).machine
    }

    fn can_limit(&self) -> Result<()> {
        self.cannot_limit.clone().map_or(Ok(()), Err)
    }

    fn prepare(&self, scenario: &Scenario) -> Result<PreparedSeries> {
        self.cannot_prepare.clone().map_or(Ok(()), Err)?;
        let mut scenario = scenario.clone();
        scenario.configurations.iter_mut().for_each(|of| of.inputs = Some(INPUTS.to_owned()));
        Ok(PreparedSeries { scenario, left_out: Vec::new() })
    }

    fn seen(&self, _: &Scenario) -> Result<ServiceVersions> {
        Ok(self.seen.clone())
    }

    fn search(&self, scenario: &Scenario, archive: &Path) -> Searched {
        let mut trials = Vec::new();
        let mut store = match result::read(archive) {
            Ok(there) => {
                assert_eq!(there.scenario, *scenario);
                trials = there.trials;
                Archived::reopen(archive, trials.len() as u32, Silence).unwrap()
            }
            Err(_) => Archived::create(archive, &conditions(scenario), scenario, Silence).unwrap(),
        };
        self.begin(archive, trials.len());
        let limit_max = Search::limit_max_of(&trials).unwrap_or(LIMIT_MAX);
        let strategy = Search::new(scenario, limit_max).unwrap();
        let done = series::run(&strategy, &mut self.made_up(archive), &mut store, &mut trials);
        store.close(done.is_err()).0.unwrap();
        Searched { find: search::found(scenario, &trials), trials, ended: done.map(drop) }
    }

    fn blocks(&self, prepared: &PreparedSeries, first: u32, archive: &Path) -> Blocks {
        self.begin(archive, 0);
        let PreparedSeries { scenario, .. } = prepared;
        let mut trials = Vec::new();
        let mut store = Archived::create(archive, &conditions(scenario), scenario, Silence).unwrap();
        let strategy = series::Blocks::new(scenario, &scenario.compare).of_part(first);
        let ended = series::run(&strategy, &mut self.made_up(archive), &mut store, &mut trials);
        store.close(ended.is_err()).0.unwrap();
        Blocks { trials, ended }
    }

    fn stopped(&self) -> Option<Stopped> {
        self.stopped
    }

    fn say(&self, words: &str) {
        self.said.borrow_mut().push(words.to_owned());
    }
}

fn entry(task: Task, last: Option<Last>, scenario: Scenario) -> PlanEntry {
    let name = scenario.name.clone();
    PlanEntry { index: 0, name, task, minutes: 30.0, declared_bytes: None, last, question: "q".to_owned(), scenario }
}

fn plan(entries: Vec<PlanEntry>) -> Plan {
    Plan::new("fleet", "2026-11-22T12:00:00Z".to_owned(), entries).unwrap()
}

fn search_plan() -> Plan {
    plan(vec![entry(Task::Search { why: Why::First }, None, service())])
}

fn prove_plan(last: Last) -> Plan {
    plan(vec![entry(Task::Prove, Some(last), service())])
}

fn work_on(plan: &Plan, index: u32, out: &Path, node: &Node) -> Result<Done> {
    let started = Started { index, node: "n1".to_owned(), restarts: 0 };
    let asked = WorkerInput { plan, folder: Path::new("/x"), out, started: &started };
    work::work(&asked, node, Clock::start())
}

fn recorded(out: &TempDir, index: u32) -> Option<EntryResult> {
    let path = out.path().join(format!("index-{index:06}/result.json"));
    std::fs::read(path).ok().map(|text| serde_json::from_slice(&text).unwrap())
}

/// Private directories, as opposed to results.
fn aside(out: &TempDir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(out.path()).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with('.')).collect()
}

/// A node's result as recorded.
fn done(plan: &Plan, node: &Node) -> (TempDir, EntryResult) {
    let out = tempfile::tempdir().unwrap();
    let Done { result, by } = work_on(plan, 0, out.path(), node).unwrap();
    assert_eq!(by, By::Us);
    assert_eq!(recorded(&out, 0), Some(result.clone()));
    assert_eq!(aside(&out), [] as [PathBuf; 0]);
    let home = out.path().join("index-000000");
    for archive in &result.archives {
        assert!(!result::read(&home.join(archive)).unwrap().trials.is_empty(), "{archive}");
    }
    (out, result)
}

fn archives(result: &EntryResult) -> Vec<&str> {
    result.archives.iter().map(|name| name.split_once('/').unwrap().1).collect()
}

fn found(result: &EntryResult) -> &FindRecord {
    result.find.as_ref().unwrap()
}

/// The simulated server's line, as a search finds it.
fn line() -> Last {
    done(&search_plan(), &Node::default()).1.line.unwrap()
}

#[test]
fn a_line_is_searched_and_recorded_for_the_next_plan() {
    let node = Node { throttled: 3, ..Node::default() };
    let (_out, result) = done(&search_plan(), &node);
    assert_eq!((result.outcome, archives(&result)), (EntryOutcome::Answered, vec!["search"]));
    let (find, line) = (found(&result), result.line.as_ref().unwrap());
    assert_eq!(find.outcome, FindOutcome::Found);
    let searched = find.line.as_ref().unwrap();
    assert_eq!((line.limit_bytes, line.heap_bytes), (searched.limit_bytes, searched.heap_bytes));
    assert_eq!((line.question.as_deref(), line.inputs.as_deref()), (Some("q"), Some(INPUTS)));
    assert!(line.proved_at.is_some() && line.proved_at == line.searched_at);
    assert_eq!((result.node.name.as_str(), result.node.cpus), ("n1", 2));
    assert_eq!(result.doubts.len(), 1);
    assert!(result.doubts[0].text.contains("was throttled 3 times"), "{}", result.doubts[0].text);
}

#[test]
fn a_target_that_is_never_met_is_an_answer() {
    let never = scenario("made-up", "configurations: {only: {gc: serial}}\ntarget: ['p99<1ms']\nfind: {warm: false}");
    let plan = plan(vec![entry(Task::Search { why: Why::First }, None, never)]);
    let (_out, result) = done(&plan, &Node::default());
    assert_eq!((result.outcome, found(&result).outcome), (EntryOutcome::Answered, FindOutcome::NotHeld));
    assert_eq!(result.line, None);
}

#[test]
fn a_proof_confirms_the_line_and_refutes_the_step_below() {
    let known = line();
    let before = Last { past: vec![PastLine { at: "earlier".to_owned(), limit_bytes: 1 }], ..known.clone() };
    let node = Node::default();
    let (_out, result) = done(&prove_plan(before.clone()), &node);
    assert_eq!((&result.task, archives(&result)), (&Task::Prove, vec!["proof", "below"]));
    let (find, proved) = (found(&result), result.line.as_ref().unwrap());
    let said = find.line.as_ref().unwrap();
    assert_eq!((said.limit_bytes, said.heap_bytes, said.held), (known.limit_bytes, known.heap_bytes, 4));
    let below = said.below_bytes.unwrap();
    assert!(below < known.limit_bytes && known.limit_bytes as f64 / below as f64 <= 1.0201, "{below}");
    assert!(said.cause.is_some() && find.text.contains("the target was missed"), "{said:?}");
    assert!(find.limit_bytes.unwrap() > known.limit_bytes && find.headroom == 0.1);
    assert_eq!(proved.searched_at, known.searched_at);
    assert_eq!(proved.past.iter().map(|past| past.limit_bytes).collect::<Vec<_>>(), [1, known.limit_bytes]);
    // Its trials: one with ample memory, the confirmations, and one or two below.
    assert!(find.trials <= 9, "{}", find.trials);
}

#[test]
fn a_line_that_fails_or_is_too_high_is_searched_again() {
    let known = line();
    let limits = |limit| Last { limit_bytes: limit, ..known.clone() };
    let check = |last: Last, seen: ServiceVersions, why: Why, expect: &[&str]| {
        let node = Node { seen, ..Node::default() };
        let (_out, result) = done(&prove_plan(last.clone()), &node);
        assert_eq!((&result.task, archives(&result)), (&Task::Search { why }, expect.to_vec()), "{last:?}");
        let line = result.line.unwrap();
        assert_eq!((line.limit_bytes, line.heap_bytes), (known.limit_bytes, known.heap_bytes));
        assert_eq!(line.past.last().map(|past| past.limit_bytes), Some(last.limit_bytes));
    };
    check(limits(known.limit_bytes * 2), ServiceVersions::default(), Why::StepBelowHeld, &["proof", "below", "search"]);
    check(limits(known.limit_bytes / 2), ServiceVersions::default(), Why::LineFailed, &["proof", "search"]);
    // With so little heap, it dies even with an ample limit.
    let starved = Last { heap_bytes: Some(4 * MIB), ..known.clone() };
    check(starved, ServiceVersions::default(), Why::LineFailed, &["proof", "search"]);
    let newer = ServiceVersions { jdk: Some("21.0.4".to_owned()), ..ServiceVersions::default() };
    let on_17 = Last { jdk: Some("17.0.15".to_owned()), ..known.clone() };
    check(on_17, newer, Why::JdkChanged, &["search"]);
    let other = ServiceVersions { image_digest: Some("sha256:2".to_owned()), ..ServiceVersions::default() };
    let image = Last { image_digest: Some("sha256:1".to_owned()), ..known.clone() };
    check(image, other, Why::ImageChanged, &["search"]);
}

fn compared(more: &str) -> Scenario {
    scenario("made-up", &format!("configurations: {{small: {{heap: 64m}}, large: {{heap: 128m}}}}\n{more}"))
}

#[test]
fn planned_blocks_run_with_a_different_order_in_each_part() {
    let of =
        |first: u32| entry(Task::Block { first, count: 2 }, None, compared("trials: 12\ncompare: {until_sure: 30}"));
    let plan = plan((0..6).map(|part| of(part * 2)).collect());
    let out = tempfile::tempdir().unwrap();
    let mut orders = Vec::new();
    for index in 0..6 {
        let Done { result, .. } = work_on(&plan, index, out.path(), &Node::default()).unwrap();
        assert_eq!((result.outcome, result.find, result.line), (EntryOutcome::Answered, None, None));
        let folder = out.path().join(format!("index-{index:06}")).join(&result.archives[0]);
        let trials = result::read(&folder).unwrap().trials;
        assert_eq!(trials.iter().map(|trial| trial.block).collect::<Vec<_>>(), [0, 0, 1, 1]);
        orders.extend(trials.chunks(2).map(|block| block[0].configuration.clone()));
    }
    assert!(orders.contains(&"small".to_owned()) && orders.contains(&"large".to_owned()), "{orders:?}");
    // The orders are the same as in one run of all blocks.
    let whole = compared("trials: 12");
    let all = series::Blocks::new(&whole, &whole.compare);
    let mut trials = Vec::new();
    let mut store = Archived::create(&out.path().join("whole"), &conditions(&whole), &whole, Silence).unwrap();
    series::run(&all, &mut MadeUpTrials::of(Server::default()), &mut store, &mut trials).unwrap();
    let expect: Vec<_> = trials.chunks(2).take(12).map(|block| block[0].configuration.clone()).collect();
    assert_eq!(orders, expect);
}

#[test]
fn a_failed_configuration_is_an_answer_unless_all_fail() {
    let starved = |small: &str, large: &str| {
        scenario("made-up", &format!("configurations: {{small: {{heap: {small}}}, large: {{heap: {large}}}}}"))
    };
    let of = |scenario| plan(vec![entry(Task::Block { first: 0, count: 1 }, None, scenario)]);
    let (_out, result) = done(&of(starved("4m", "64m")), &Node::default());
    assert_eq!(result.outcome, EntryOutcome::Answered);
    let out = tempfile::tempdir().unwrap();
    let error = work_on(&of(starved("4m", "5m")), 0, out.path(), &Node::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Subject);
    let result = recorded(&out, 0).unwrap();
    assert_eq!(result.outcome, EntryOutcome::SubjectFailed);
    assert!(result.why[0].contains("OutOfMemoryError"), "{:?}", result.why);
}

#[test]
fn existing_results_are_kept_and_those_of_other_plans_rejected() {
    let (out, result) = done(&search_plan(), &Node::default());
    let idle = Node { cannot_prepare: Some(Error::bug("it works again")), ..Node::default() };
    let again = work_on(&search_plan(), 0, out.path(), &idle).unwrap();
    assert_eq!((again.by, again.result), (By::Earlier, result));
    let other = plan(vec![entry(Task::Search { why: Why::Asked }, None, service())]);
    let error = work_on(&other, 0, out.path(), &idle).unwrap_err();
    assert_eq!((error.kind, error.what.as_str()), (ErrorKind::Request, "the directory is for a different plan"));
    let error = work_on(&search_plan(), 1, out.path(), &idle).unwrap_err();
    assert_eq!((error.kind, error.what.as_str()), (ErrorKind::Request, "the plan has no entry 1"));
}

#[test]
fn a_failed_subject_is_recorded_permanently() {
    let died = Node::default().with("search", 0, Mishap::Dies);
    let out = tempfile::tempdir().unwrap();
    let error = work_on(&search_plan(), 0, out.path(), &died).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Subject);
    assert_eq!(recorded(&out, 0).unwrap().outcome, EntryOutcome::SubjectFailed);
    let again = work_on(&search_plan(), 0, out.path(), &Node::default()).unwrap();
    assert_eq!((again.by, again.result.outcome), (By::Earlier, EntryOutcome::SubjectFailed));
    assert_eq!(again.result.why[0], error.what);
}

#[test]
fn an_unfit_node_is_recorded_until_another_succeeds() {
    let out = tempfile::tempdir().unwrap();
    let unfit = || Node { cannot_limit: Some(Error::machine("cannot set a memory limit")), ..Node::default() };
    for _ in 0..2 {
        let error = work_on(&search_plan(), 0, out.path(), &unfit()).unwrap_err();
        assert_eq!((error.kind, error.what.as_str()), (ErrorKind::Machine, "cannot set a memory limit"));
        let result = recorded(&out, 0).unwrap();
        assert_eq!((result.outcome, result.archives.len()), (EntryOutcome::NodeUnfit, 0));
        assert_eq!(result.why, ["cannot set a memory limit"]);
    }
    let broken = Node::default().with("search", 3, Mishap::MachineFails);
    assert_eq!(work_on(&search_plan(), 0, out.path(), &broken).unwrap_err().kind, ErrorKind::Machine);
    let done = work_on(&search_plan(), 0, out.path(), &Node::default()).unwrap();
    assert_eq!((done.by, done.result.outcome), (By::Us, EntryOutcome::Answered));
    assert_eq!(recorded(&out, 0), Some(done.result));
    assert!(aside(&out).is_empty());
    // For an image, the container tool sets the limit.
    let mut image = service();
    image.subject.image = Some(loadline::scenario::Image { name: "app:1".to_owned(), heap_options: Vec::new() });
    image.subject.command.clear();
    let plan = plan(vec![entry(Task::Search { why: Why::First }, None, image)]);
    assert_eq!(self::done(&plan, &unfit()).1.outcome, EntryOutcome::Answered);
}

#[test]
fn an_invalid_request_records_nothing() {
    let out = tempfile::tempdir().unwrap();
    let refused = |node: &Node, plan: &Plan| {
        let error = work_on(plan, 0, out.path(), node).unwrap_err();
        assert!(recorded(&out, 0).is_none() && aside(&out).is_empty());
        error
    };
    let other = Error::request("the files are not those of the plan");
    assert_eq!(
        refused(&Node { cannot_prepare: Some(other), ..Node::default() }, &search_plan()).kind,
        ErrorKind::Request
    );
    let bug = Error::bug("of ours");
    assert_eq!(refused(&Node { cannot_prepare: Some(bug), ..Node::default() }, &search_plan()).kind, ErrorKind::Bug);
    let without = plan(vec![entry(Task::Prove, None, service())]);
    assert_eq!(refused(&Node::default(), &without).what, "entry 0 should confirm a load line, but has none");
}

#[test]
fn partial_results_are_recorded_when_time_runs_out() {
    let out_of_time = |archive, trial| Node {
        stopped: Some(Stopped::TimeUp),
        ..Node::default().with(archive, trial, Mishap::Interrupted)
    };
    let (out, result) = done(&search_plan(), &out_of_time("search", 4));
    assert_eq!((result.outcome, archives(&result)), (EntryOutcome::OutOfTime, vec!["search"]));
    assert_eq!((found(&result).outcome, found(&result).trials), (FindOutcome::GivenUp, 5));
    assert_eq!(result.line, None);
    // This result is final, too.
    assert_eq!(work_on(&search_plan(), 0, out.path(), &Node::default()).unwrap().by, By::Earlier);
    // A line is confirmed if its confirmation completed in time.
    let (_out, result) = done(&prove_plan(line()), &out_of_time("below", 1));
    assert_eq!((&result.task, result.outcome), (&Task::Prove, EntryOutcome::Answered));
    assert_eq!(result.line.map(|line| line.limit_bytes), Some(line().limit_bytes));
    let (_out, result) = done(&prove_plan(line()), &out_of_time("proof", 3));
    assert_eq!((result.outcome, result.line), (EntryOutcome::OutOfTime, None));
}

#[test]
fn interrupted_entries_resume_in_their_archives() {
    let known = line();
    let plans =
        [search_plan(), prove_plan(known.clone()), prove_plan(Last { limit_bytes: known.limit_bytes * 2, ..known })];
    let cuts = [("search", 5), ("below", 1), ("search", 2)];
    for (plan, (archive, trial)) in plans.iter().zip(cuts) {
        let (_out, expect) = done(plan, &Node::default());
        let out = tempfile::tempdir().unwrap();
        let cut = Node::default().with(archive, trial, Mishap::Interrupted);
        let cut = Node { stopped: Some(Stopped::Asked), ..cut };
        let error = work_on(plan, 0, out.path(), &cut).unwrap_err();
        assert_eq!((error.kind, recorded(&out, 0)), (ErrorKind::Interrupted, None));
        assert_eq!(aside(&out).len(), 1);
        let node = Node::default();
        let Done { result, by } = work_on(plan, 0, out.path(), &node).unwrap();
        assert_eq!((by, &result.task, archives(&result)), (By::Us, &expect.task, archives(&expect)));
        let line = |of: &EntryResult| of.line.as_ref().map(|line| (line.limit_bytes, line.heap_bytes));
        assert_eq!(line(&result), line(&expect));
        // Completed trials are not repeated.
        let begun = node.archives.borrow().iter().find(|(name, _)| name == archive).unwrap().1;
        assert_eq!(begun, trial as usize + 1);
        assert!(aside(&out).is_empty() && recorded(&out, 0) == Some(result));
    }
}

#[test]
fn interrupted_blocks_start_over() {
    let plan = plan(vec![entry(Task::Block { first: 0, count: 3 }, None, compared(""))]);
    let out = tempfile::tempdir().unwrap();
    let cut = Node::default().with("blocks", 4, Mishap::Interrupted);
    let cut = Node { stopped: Some(Stopped::Asked), ..cut };
    assert_eq!(work_on(&plan, 0, out.path(), &cut).unwrap_err().kind, ErrorKind::Interrupted);
    let Done { result, .. } = work_on(&plan, 0, out.path(), &Node::default()).unwrap();
    let archive = out.path().join("index-000000").join(&result.archives[0]);
    assert_eq!(result::read(&archive).unwrap().trials.len(), 6);
    assert!(aside(&out).is_empty());
}

/// Another worker finishes while this one works.
fn beside(plan: &Plan, ours: Node, theirs: Node) -> (TempDir, Result<Done>) {
    let out = tempfile::tempdir().unwrap();
    let (other, folder) = (plan.clone(), out.path().to_owned());
    let meanwhile = move || drop(work_on(&other, 0, &folder, &theirs));
    let ours = Node { meanwhile: RefCell::new(Some(Box::new(meanwhile))), ..ours };
    let done = work_on(plan, 0, out.path(), &ours);
    assert!(aside(&out).is_empty());
    (out, done)
}

#[test]
fn the_first_result_of_two_concurrent_workers_counts() {
    let tries = |out: &TempDir| std::fs::read_dir(out.path().join("index-000000")).unwrap().count() - 1;
    let (out, done) = beside(&search_plan(), Node::default(), Node::default());
    let done = done.unwrap();
    assert_eq!((done.by, recorded(&out, 0)), (By::Meanwhile, Some(done.result)));
    assert_eq!(tries(&out), 1, "the losing attempt is removed");
    let dies = || Node::default().with("search", 0, Mishap::Dies);
    let (out, done) = beside(&search_plan(), dies(), Node::default());
    assert_eq!(done.unwrap().by, By::Meanwhile, "a result of the other worker outweighs our failure");
    assert_eq!(recorded(&out, 0).unwrap().outcome, EntryOutcome::Answered);
    let (out, done) = beside(&search_plan(), Node::default(), dies());
    assert_eq!(done.unwrap().by, By::Us, "our result outweighs the other worker's failure");
    let result = recorded(&out, 0).unwrap();
    assert_eq!(result.outcome, EntryOutcome::Answered);
    assert!(out.path().join("index-000000").join(&result.archives[0]).is_dir());
}

#[test]
fn partially_written_directories_are_not_results() {
    let whole = |out: &TempDir| {
        let done = work_on(&search_plan(), 0, out.path(), &Node::default()).unwrap();
        assert_eq!((done.by, recorded(out, 0)), (By::Us, Some(done.result)));
    };
    for text in ["", "{", "{}", "[]", "null", "{\"schema\": \"loadline.fleet-entry/1\"}"] {
        let out = tempfile::tempdir().unwrap();
        write(out.path().join("index-000000/result.json"), text);
        whole(&out);
    }
    let out = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(out.path().join("index-000000/try-n.1.1/search")).unwrap();
    whole(&out);
    let out = tempfile::tempdir().unwrap();
    write(out.path().join("index-000000/result.json"), "{\"schema\": \"loadline.fleet-entry/9\"}");
    let error = work_on(&search_plan(), 0, out.path(), &Node::default()).unwrap_err();
    assert!(error.kind == ErrorKind::Request && error.what.contains("loadline.fleet-entry/9"), "{}", error.what);
}

#[test]
fn a_result_is_recovered_after_a_kill_before_the_last_step() {
    let (out, result) = done(&search_plan(), &Node::default());
    std::fs::remove_file(out.path().join("index-000000/result.json")).unwrap();
    let again = work_on(&search_plan(), 0, out.path(), &Node::default()).unwrap();
    assert_eq!((again.by, &again.result), (By::Earlier, &result));
    assert_eq!(recorded(&out, 0), Some(result));
}

/// Completed trials took hours, so a later error deletes nothing.
#[test]
fn a_late_disk_error_keeps_all_trials() {
    let plan = search_plan();
    let trials = |path: &Path| result::read(&path.join("search")).unwrap().trials.len();
    let in_the_way = |out: &TempDir, make: fn(&Path)| {
        let path = out.path().join("index-000000");
        Node { meanwhile: RefCell::new(Some(Box::new(move || make(&path)))), ..Node::default() }
    };
    // The result cannot be published: the attempt is in place, and counts when the entry is next read.
    let out = tempfile::tempdir().unwrap();
    let node = in_the_way(&out, |home| std::fs::create_dir_all(home.join("result.json")).unwrap());
    let error = work_on(&plan, 0, out.path(), &node).unwrap_err();
    let home = out.path().join("index-000000");
    assert!(error.kind == ErrorKind::Machine && error.to_string().contains("the measurements are in"), "{error}");
    std::fs::remove_dir(home.join("result.json")).unwrap();
    let own = std::fs::read_dir(&home).unwrap().next().unwrap().unwrap().path();
    assert!(trials(&own) > 5);
    let again = Node::default();
    let Done { result, by } = work_on(&plan, 0, out.path(), &again).unwrap();
    assert_eq!((by, result.outcome, again.names().len()), (By::Earlier, EntryOutcome::Answered, 0));
    // The attempt cannot be moved into place: its private directory stays, and the next worker continues with all of
    // its trials.
    let out = tempfile::tempdir().unwrap();
    let node = in_the_way(&out, |home| std::fs::write(home, "").unwrap());
    let error = work_on(&plan, 0, out.path(), &node).unwrap_err();
    let [left] = &aside(&out)[..] else { panic!("{:?}", aside(&out)) };
    assert!(error.to_string().contains(left.to_str().unwrap()), "{error}");
    let made = trials(left);
    std::fs::remove_file(out.path().join("index-000000")).unwrap();
    let again = Node::default();
    assert_eq!(work_on(&plan, 0, out.path(), &again).unwrap().by, By::Us);
    assert_eq!(again.archives.borrow()[..], [("search".to_owned(), made)]);
    assert!(aside(&out).is_empty() && recorded(&out, 0).is_some());
}

#[test]
fn an_unwritable_directory_is_a_machine_error() {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("file");
    std::fs::write(&file, "").unwrap();
    let node = Node::default();
    let error = work_on(&search_plan(), 0, &file, &node).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Machine);
    assert!(node.names().is_empty(), "no trial runs if its record cannot be kept");
}

#[test]
fn a_proof_does_not_search_the_heap() {
    let (out, result) = done(&prove_plan(line()), &Node::default());
    for archive in &result.archives {
        let trials: Vec<Trial> = result::read(&out.path().join("index-000000").join(archive)).unwrap().trials;
        let stages: Vec<_> = trials.iter().filter_map(|trial| trial.probe.as_ref()).map(|probe| probe.stage).collect();
        assert_eq!(stages[0], ProbeStage::Reference);
        assert!(stages[1..].iter().all(|stage| *stage == ProbeStage::Limit), "{stages:?}");
    }
}
