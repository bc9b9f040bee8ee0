//! Runs as points of a history: the data kept per run, which runs form a point, and the order of points. Also finds
//! differences between points in anything but the subject.

use super::commits::{Commits, SHORT_MIN};
use crate::comparison;
use crate::record::{
    Circumstances, Conditions, Differing, HistoryBy, MetricRecord, Outcome, PointRecord, Trial, each_once,
};
use crate::units::{clipped, unix_s};
use loadline_base::order::Order as _;
use std::collections::{BTreeMap, BTreeSet};

/// A name that is not a hash is truncated, because it can be anything.
const NAME_CHARS: usize = 40;
/// The maximum length of a commit's subject line.
const SUBJECT_CHARS: usize = 120;

/// The data that a history needs from one configuration of a run.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) scenario: String,
    pub(super) configuration: String,
    archive: String,
    started: String,
    commit: Option<String>,
    build: Option<String>,
    circumstances: Circumstances,
    pub(super) trials: u32,
    pub(super) metrics: Vec<MetricRecord>,
    /// Bytes by owner for each trial, by mark.
    pub(super) accounts: BTreeMap<String, Vec<comparison::Holdings>>,
    /// Its position in the list of commits.
    rank: usize,
}

impl Run {
    /// A run's configurations with a completed trial, with the metrics that `asked` selects and the accounts at these
    /// marks.
    pub(super) fn of(
        archive: &str,
        conditions: &Conditions,
        trials: &[Trial],
        asked: &dyn Fn(&str) -> bool,
        marks: &dyn Fn(&str) -> bool,
    ) -> Vec<Self> {
        let metrics = comparison::measured(trials, &[], asked);
        let completed: Vec<&Trial> = trials.iter().filter(|trial| trial.outcome == Outcome::Completed).collect();
        let source = conditions.source.clone().unwrap_or_default();
        let one = |name: &str| {
            let own: Vec<&&Trial> = completed.iter().filter(|trial| trial.configuration == name).collect();
            let mut accounts: BTreeMap<String, Vec<comparison::Holdings>> = BTreeMap::new();
            for mark in own.iter().flat_map(|trial| &trial.marks).filter(|mark| marks(&mark.name)) {
                let held = mark.account.as_ref().map(comparison::Holdings::of);
                accounts.entry(mark.name.clone()).or_default().extend(held);
            }
            Self {
                scenario: conditions.scenario.clone(),
                configuration: name.to_owned(),
                archive: archive.to_owned(),
                started: conditions.started.clone(),
                commit: source.commit.clone(),
                build: source.build.clone(),
                circumstances: Circumstances::of(conditions, own.first().copied().copied()),
                trials: own.len() as u32,
                metrics: metrics.iter().filter(|metric| metric.configuration == name).cloned().collect(),
                accounts,
                rank: 0,
            }
        };
        each_once(completed.iter().map(|trial| trial.configuration.as_str())).into_iter().map(one).collect()
    }

    fn key(&self, by: HistoryBy) -> Option<&str> {
        match by {
            HistoryBy::Date => Some(&self.archive),
            HistoryBy::Commit => self.commit.as_deref(),
            HistoryBy::Build => self.build.as_deref(),
        }
    }
}

/// A point with its runs, earliest first.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) runs: Vec<Run>,
}

/// The default key of a point: the commit if all runs have one, else the build, else the run.
pub(super) fn usual(runs: &[Run]) -> HistoryBy {
    let all = |by: &HistoryBy| runs.iter().all(|run| run.key(*by).is_some());
    [HistoryBy::Commit, HistoryBy::Build].into_iter().find(all).unwrap_or(HistoryBy::Date)
}

/// A history's runs as points in order: by commit list, or else by date.
pub(super) fn points(runs: Vec<Run>, by: HistoryBy, commits: &Commits, left_out: &mut Vec<String>) -> Vec<Point> {
    let mut kept = Vec::new();
    for run in runs {
        match rank(&run, by, commits) {
            Ok(rank) => kept.push(Run { rank, ..run }),
            Err(why) => left_out.push(format!("{} {why}", run.archive)),
        }
    }
    kept.order_by(|one, other| {
        let key = |run: &Run| (run.rank, unix_s(&run.started).unwrap_or(i64::MIN));
        (key(one), &one.archive).cmp(&(key(other), &other.archive))
    });
    let mut points: Vec<Point> = Vec::new();
    for run in kept {
        let same = |point: &&mut Point| {
            point.runs[0].key(by) == run.key(by) && point.runs[0].circumstances == run.circumstances
        };
        match points.iter_mut().rev().find(same) {
            Some(point) => point.runs.push(run),
            None => points.push(Point { runs: vec![run] }),
        }
    }
    points
}

/// A run's position in the list of commits (constant without a list), or the reason why it is not a point.
fn rank(run: &Run, by: HistoryBy, commits: &Commits) -> Result<usize, &'static str> {
    let no_commit = "does not name its commit";
    match (run.key(by), &run.commit) {
        (None, _) if by == HistoryBy::Build => Err("does not name its build"),
        (None, _) => Err(no_commit),
        (Some(_), _) if commits.is_empty() => Ok(0),
        (Some(_), None) => Err(no_commit),
        (Some(_), Some(own)) => commits.rank(own).ok_or("is from a commit that is not in the list"),
    }
}

pub(super) fn records(points: &[Point], by: HistoryBy, commits: &Commits) -> Vec<PointRecord> {
    let digits = digits(points);
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut before: Option<&Run> = None;
    let mut found = Vec::new();
    for point in points {
        let first = &point.runs[0];
        let name = match by {
            HistoryBy::Commit => short(first.commit.as_deref().unwrap_or_default(), digits),
            HistoryBy::Build => clipped(first.build.as_deref().unwrap_or_default(), NAME_CHARS),
            HistoryBy::Date => clipped(&first.started, NAME_CHARS),
        };
        let times = seen.entry(name.clone()).or_insert(0);
        *times += 1;
        let changed = before.map(|before| before.circumstances.differing(&first.circumstances));
        found.push(PointRecord {
            name: if *times > 1 { format!("{name} ({times})") } else { name },
            commit: first.commit.clone(),
            subject: commits.subject(first.rank).map(|subject| clipped(subject, SUBJECT_CHARS)),
            build: first.build.clone(),
            started: first.started.clone(),
            archives: point.runs.iter().map(|run| run.archive.clone()).collect(),
            trials: point.runs.iter().map(|run| run.trials).sum(),
            conditions_changed: changed.iter().flatten().map(Differing::to_string).collect(),
        });
        before = Some(first);
    }
    found
}

/// How many digits make the commits unique.
fn digits(points: &[Point]) -> usize {
    let commits: BTreeSet<&str> = points.iter().filter_map(|point| point.runs[0].commit.as_deref()).collect();
    let differ = |digits: &usize| {
        let short: BTreeSet<String> = commits.iter().map(|commit| commit.chars().take(*digits).collect()).collect();
        short.len() == commits.len()
    };
    (SHORT_MIN..NAME_CHARS).find(differ).unwrap_or(NAME_CHARS)
}

/// A short hash; a name that is not a hash stays unchanged.
fn short(commit: &str, digits: usize) -> String {
    match commit.len() >= 16 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => commit[..digits.min(commit.len())].to_owned(),
        false => clipped(commit, NAME_CHARS),
    }
}
