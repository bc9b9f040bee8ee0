//! From trials to a result: judges them together, as the scenario and the options require.

use super::{ArchivePart, Merged};
use crate::archive::Archive;
use crate::comparison;
use crate::doubt::{self, Doubt};
use crate::error::{Error, Result};
use crate::record::{
    BudgetRecord, BudgetVerdict, Circumstances, Conditions, DifferenceVerdict, Differing, Document, DoubtRecord,
    MetricRecord, Trial, each_once,
};
use crate::scenario::{Budget, Compare, CompareSettings, Configuration, Limit, MarkPoint, Scenario};
use std::path::Path;

/// The requested settings beyond those of a scenario.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Budgets and baseline")]
pub struct JudgementSettings {
    /// Comparison settings beyond the scenario's.
    #[arg(skip)]
    pub comparing: CompareSettings,
    /// Exit with code 1 if a metric exceeds this: `rss.loaded<=60MiB`, `p99<=20ms`, or against a baseline
    /// `rss.loaded<=+2%` (repeatable)
    #[arg(id = "budget", long = "budget", value_name = "BUDGET")]
    pub budgets: Vec<Budget>,
    /// Configuration or archive to compare with [default: the first configuration]
    #[arg(long, value_name = "NAME | ARCHIVE")]
    pub baseline: Option<String>,
    /// How to treat a budget that the trials cannot decide
    #[arg(long, value_name = "HOW", default_value = "pass")]
    pub undecided: Undecided,
    /// Exit with code 2 if a budget's metric was not measured
    #[arg(long)]
    pub strict: bool,
    /// Exit as `git bisect run` expects: 0 if all budgets are met, 1 if one is exceeded, 125 if unknown, 128 if the
    /// request is invalid. Without budgets, the verdicts decide
    #[arg(long, conflicts_with_all = ["undecided", "strict"])]
    pub bisect: bool,
}

/// How to treat a budget that the trials cannot decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Undecided {
    /// Count it as met.
    #[default]
    Pass,
    /// Count it as exceeded (exit code 1).
    Fail,
}

/// A commit's verdict for `git bisect`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bisected {
    /// All budgets are met or, without budgets, nothing is worse.
    Good,
    /// A budget is exceeded or, without budgets, something is worse.
    Bad,
    /// Undecided, with the reason.
    Unknown(String),
}

/// A baseline archive for budgets.
#[derive(Debug, Clone)]
struct Baseline {
    part: ArchivePart,
    metrics: Vec<MetricRecord>,
}

/// How to judge a result.
#[derive(Debug, Clone)]
pub struct Judgement {
    compare: Compare,
    budgets: Vec<Budget>,
    seed: u64,
    /// In scenario order.
    configurations: Vec<Configuration>,
    /// The baseline archive for budgets.
    baseline: Option<Baseline>,
    undecided: Undecided,
    strict: bool,
    bisect: bool,
}

impl Judgement {
    /// The scenario's judgment settings, modified by the requested ones. Errors: `Request` if the baseline is neither a
    /// configuration nor an archive, or if a budget needs a baseline and there is none.
    pub fn of(scenario: &Scenario, asked: JudgementSettings) -> Result<Self> {
        let mut compare = scenario.compare.clone();
        compare.apply(asked.comparing);
        let mut judgement = Self {
            compare,
            budgets: scenario.budgets.iter().cloned().chain(asked.budgets).collect(),
            seed: scenario.seed,
            configurations: scenario.configurations.clone(),
            baseline: None,
            undecided: asked.undecided,
            strict: asked.strict,
            bisect: asked.bisect,
        };
        if let Some(baseline) = &asked.baseline {
            judgement.set_baseline(baseline)?;
        }
        if judgement.compare.baseline.is_none() {
            judgement.compare.baseline = judgement.names().first().cloned();
        }
        judgement.check()?;
        Ok(judgement)
    }

    /// The judgment for the configurations that can run here. If the baseline cannot, the first that can replaces it,
    /// and the second value is a message.
    pub fn of_those_left(&self, scenario: &Scenario) -> (Self, Option<String>) {
        let mut judgement = Self { configurations: scenario.configurations.clone(), ..self.clone() };
        let names = judgement.names();
        let mut said = None;
        let compare = &mut judgement.compare;
        if let (Some(baseline), Some(first)) = (&compare.baseline, names.first())
            && !names.contains(baseline)
        {
            if names.len() > 1 {
                said = Some(format!("{baseline} was skipped, so the baseline is {first}"));
            }
            compare.baseline = Some(first.clone());
        }
        (judgement, said)
    }

    /// Sets the baseline: a configuration of this run, or an archive.
    fn set_baseline(&mut self, baseline: &str) -> Result<()> {
        if self.names().iter().any(|name| name == baseline) {
            self.compare.baseline = Some(baseline.to_owned());
            return Ok(());
        }
        let archive = super::read(Path::new(baseline)).map_err(|error| {
            let hint = format!("specify a configuration ({}) or an archive directory", self.names().join(", "));
            Error::request(format!("the baseline `{baseline}` is neither a configuration nor an archive"))
                .at(error.what)
                .hint(hint)
        })?;
        if super::is_search(&archive.trials) || super::is_tuning(&archive.trials) {
            return Err(Error::request(format!("the trials of {baseline} differ in their limits or options"))
                .hint("measure the baseline with `loadline run SCENARIO --out DIR`, and specify that archive"));
        }
        let metrics = comparison::metrics(&archive.trials);
        self.baseline = Some(Baseline { part: ArchivePart { path: baseline.into(), archive }, metrics });
        Ok(())
    }

    /// Rejects `--bisect` without anything to judge, and a budget on a change without a baseline.
    fn check(&self) -> Result<()> {
        if self.bisect && self.budgets.is_empty() && self.configurations.len() < 2 {
            return Err(Error::request("`--bisect` needs a budget to tell good from bad")
                .hint("specify one, such as `--budget 'rss.loaded<=180MiB'`"));
        }
        let change = self.budgets.iter().find(|budget| matches!(budget.limit, Limit::Change(..)));
        match change {
            Some(budget) if self.baseline.is_none() && self.configurations.len() < 2 => Err(Error::request(format!(
                "the budget `{budget}` compares with a baseline, but none was given"
            ))
            .hint("specify an archive with `--baseline ARCHIVE`, or an absolute bound such as `rss.loaded<=60MiB`")),
            _ => Ok(()),
        }
    }

    /// Checks the requested metrics against those that a scenario's trials with these marks can have. Errors:
    /// `Request`, suggesting the closest metric or the syntax for its unit.
    pub fn check_metrics(&self, scenario: &Scenario, marks: &[MarkPoint]) -> Result<()> {
        let marks: Vec<&str> = marks.iter().map(|mark| mark.word()).chain(scenario.load.marks()).collect();
        let possible = &comparison::possible(&marks, &scenario.load.works(), &scenario.figures);
        for word in &self.compare.metrics {
            comparison::foresee(word, possible).map_err(Error::request)?;
        }
        for budget in &self.budgets {
            let unit = comparison::foresee(&budget.metric, possible)
                .map_err(|why| Error::request(format!("the budget `{budget}` cannot be judged: {why}")))?;
            unit.map_or(Ok(()), |unit| comparison::check_budget(budget, unit)).map_err(Error::request)?;
        }
        Ok(())
    }

    /// Checks the scenario's derived figures against its trials' marks. Errors: `Request`, naming the figure and the
    /// available marks.
    pub fn check_figures(scenario: &Scenario) -> Result<()> {
        comparison::check_figures(&scenario.figures, &scenario.mark_names()).map_err(Error::request)
    }

    /// How to compare configurations.
    pub fn compare(&self) -> &Compare {
        &self.compare
    }

    /// The names of the configurations, in scenario order.
    fn names(&self) -> Vec<String> {
        self.configurations.iter().map(|configuration| configuration.name.clone()).collect()
    }

    /// In scenario order, because a block runs its configurations in any order.
    fn metrics(&self, trials: &[Trial]) -> Vec<MetricRecord> {
        comparison::metrics_in_order(trials, &self.names())
    }

    /// The result document of these trials.
    pub fn document(&self, conditions: &Conditions, trials: &[Trial]) -> Document {
        let metrics = self.metrics(trials);
        let blocks = comparison::blocks(trials);
        let comparisons = comparison::compare(&metrics, &self.compare, self.seed);
        let effects = comparison::effects(&metrics, &self.configurations, &self.compare, self.seed);
        let mut doubts = comparison::doubts(trials, &blocks, &comparisons);
        doubts.extend(self.not_judged(&metrics, trials));
        doubts.extend(self.baseline_differs(conditions, trials));
        doubts.extend(conditions.left_out.iter().map(|out| {
            let (configuration, why) = (out.configuration.clone(), out.why.clone());
            Doubt::Comparing(doubt::Comparing::LeftOut { configuration, why })
        }));
        let ran = self.ran(trials);
        let mut budgets = self.judge_budgets(&ran, &metrics);
        self.say_refusals(&mut budgets, trials);
        let pareto = comparison::pareto(&metrics);
        let doubts = doubts.into_iter().map(DoubtRecord::from).collect();
        let bare = super::document(conditions, trials);
        Document { metrics, blocks, comparisons, effects, pareto, doubts, budgets, ..bare }
    }

    /// The result document of several archives, each compared with the first.
    pub fn of_archives(&self, merged: &Merged) -> Document {
        let metrics = self.metrics(&merged.trials);
        let comparisons = comparison::compare_apart(&metrics, &merged.pairs, &self.compare, self.seed);
        let of = |name: &str| -> Vec<MetricRecord> {
            metrics.iter().filter(|record| record.configuration == name).cloned().collect()
        };
        let judge = |(first, second): &(String, String)| {
            let (before, after) = (of(first), of(second));
            let baseline = self.baseline_metrics().unwrap_or(&before);
            let name = std::slice::from_ref(second);
            comparison::judge_budgets(&self.budgets, name, &after, Some(baseline), &self.compare, self.seed)
        };
        let mut budgets: Vec<BudgetRecord> = merged.pairs.iter().flat_map(judge).collect();
        self.say_refusals(&mut budgets, &merged.trials);
        let compared = comparison::doubts(&merged.trials, &[], &comparisons);
        let doubts = merged.doubts.iter().cloned().chain(compared).map(DoubtRecord::from).collect();
        let (archives, pareto) = (merged.archives.clone(), comparison::pareto(&metrics));
        let bare = super::document(&merged.conditions, &merged.trials);
        Document { archives, metrics, comparisons, pareto, doubts, budgets, ..bare }
    }

    /// A result compared with a baseline archive, by configuration name; `None` without such an archive. Budgets are
    /// the result's. `folder` is its archive's directory.
    pub fn against_archive(&self, result: &Document, scenario: &Scenario, folder: &Path) -> Option<Result<Document>> {
        let before = self.baseline.as_ref()?.part.clone();
        let (conditions, trials) = (result.conditions.clone(), result.trials.clone());
        let archive = Archive { conditions, scenario: scenario.clone(), trials, missing: Vec::new() };
        let own = ArchivePart { path: folder.to_owned(), archive };
        let against = |merged: Merged| {
            let alone = Self { budgets: Vec::new(), ..self.clone() };
            // The archive's name precedes the names of its configurations.
            let whole = |budget: &BudgetRecord| {
                let name = merged.archives.last().map_or("", |archive| archive.name.as_str());
                BudgetRecord { configuration: format!("{name}/{}", budget.configuration), ..budget.clone() }
            };
            let budgets = result.budgets.iter().map(whole).collect();
            Document { budgets, conditions: result.conditions.clone(), ..alone.of_archives(&merged) }
        };
        Some(Merged::of(vec![before, own], result.conditions.command.clone()).map(against))
    }

    fn baseline_metrics(&self) -> Option<&[MetricRecord]> {
        self.baseline.as_ref().map(|baseline| baseline.metrics.as_slice())
    }

    /// A doubt that names the conditions that differ from those of the baseline archive, if any.
    fn baseline_differs(&self, conditions: &Conditions, trials: &[Trial]) -> Option<Doubt> {
        let before = &self.baseline.as_ref()?.part;
        let of = |conditions: &Conditions, trials: &[Trial]| {
            Circumstances::of(conditions, trials.iter().find(|trial| trial.jvm.is_some()))
        };
        let differing = of(&before.archive.conditions, &before.archive.trials).differing(&of(conditions, trials));
        let differences: Vec<String> = differing.iter().map(Differing::to_string).collect();
        let archive = before.path.display().to_string();
        (!differences.is_empty() && !trials.is_empty())
            .then_some(Doubt::Comparing(doubt::Comparing::BaselineDiffers { archive, differences }))
    }

    /// A doubt that names the requested parts that these trials cannot answer, if any.
    fn not_judged(&self, metrics: &[MetricRecord], trials: &[Trial]) -> Option<Doubt> {
        let mut asked = self.compare.clone();
        let mut reasons = Vec::new();
        asked.metrics.retain(|word| match comparison::refusal(trials, word, None) {
            Some(why) => {
                reasons.push(why);
                false
            }
            None => true,
        });
        reasons.extend(comparison::plan(metrics, &asked).refused);
        (!reasons.is_empty() && !metrics.is_empty())
            .then_some(Doubt::Comparing(doubt::Comparing::NotJudged { reasons }))
    }

    /// The configurations of these trials, including those without measurements, in scenario order.
    fn ran(&self, trials: &[Trial]) -> Vec<String> {
        let ran = each_once(trials.iter().map(|trial| trial.configuration.as_str()));
        let own = self.configurations.iter().map(|of| of.name.as_str());
        let known = own.filter(|name| ran.contains(name));
        each_once(known.chain(ran.iter().copied())).into_iter().map(str::to_owned).collect()
    }

    /// Judges bounds on a change against the baseline archive, or else the baseline configuration.
    fn judge_budgets(&self, ran: &[String], metrics: &[MetricRecord]) -> Vec<BudgetRecord> {
        let judge = |budgets: &[Budget], names: &[String], baseline: Option<&[MetricRecord]>| {
            comparison::judge_budgets(budgets, names, metrics, baseline, &self.compare, self.seed)
        };
        if let Some(baseline) = self.baseline_metrics() {
            return judge(&self.budgets, ran, Some(baseline));
        }
        let (changes, absolutes): (Vec<Budget>, Vec<Budget>) =
            self.budgets.iter().cloned().partition(|budget| matches!(budget.limit, Limit::Change(..)));
        let is_own = |name: &String| self.compare.baseline.as_ref() == Some(name);
        let own: Vec<MetricRecord> = metrics.iter().filter(|record| is_own(&record.configuration)).cloned().collect();
        let others: Vec<String> = ran.iter().filter(|name| !is_own(name)).cloned().collect();
        let mut judged = judge(&absolutes, ran, None);
        judged.extend(judge(&changes, &others, Some(&own)));
        judged
    }

    /// Gives each budget on a rejected figure the reason for the rejection.
    fn say_refusals(&self, judged: &mut [BudgetRecord], trials: &[Trial]) {
        for record in judged.iter_mut().filter(|record| record.value.is_none()) {
            let asked = self.budgets.iter().find(|budget| budget.to_string() == record.expression);
            let why = asked.and_then(|budget| comparison::refusal(trials, &budget.metric, Some(&record.configuration)));
            record.why = why.unwrap_or(std::mem::take(&mut record.why));
        }
    }

    /// Whether the result is for `git bisect`.
    pub fn is_for_bisect(&self) -> bool {
        self.bisect
    }

    /// The verdict for `git bisect`: an exceeded budget is bad, whatever else is unknown.
    pub fn bisected(&self, document: &Document) -> Bisected {
        let budgets = &document.budgets;
        if let Some(open) = budgets.iter().find(|budget| budget.verdict == BudgetVerdict::Undecided)
            && budgets.iter().all(|budget| budget.verdict != BudgetVerdict::Fail)
        {
            return Bisected::Unknown(format!("the budget `{}` is undecided: {}", open.expression, open.why));
        }
        if !budgets.is_empty() {
            let is_broken = budgets.iter().any(|budget| budget.verdict == BudgetVerdict::Fail);
            return if is_broken { Bisected::Bad } else { Bisected::Good };
        }
        let judged: Vec<_> = document.comparisons.iter().filter(|of| of.primary).collect();
        let open = judged.iter().find(|of| of.verdict == DifferenceVerdict::CannotTell);
        match open {
            _ if judged.iter().any(|of| of.verdict == DifferenceVerdict::Worse) => Bisected::Bad,
            Some(of) => Bisected::Unknown(format!("`{}` of {} is unknown", of.metric, of.candidate)),
            None if judged.is_empty() => Bisected::Unknown("nothing was judged".to_owned()),
            None => Bisected::Good,
        }
    }

    /// Whether no budget is exceeded. Errors: `Request` for a budget on an unmeasured metric, if that should be an
    /// error.
    pub fn passes(&self, document: &Document) -> Result<bool> {
        let unmeasured = document.budgets.iter().find(|budget| budget.value.is_none());
        if let Some(budget) = unmeasured.filter(|_| self.strict) {
            return Err(Error::request(format!(
                "the budget `{}` could not be judged: {}",
                budget.expression, budget.why
            )));
        }
        let any = |verdict: BudgetVerdict| document.budgets.iter().any(|budget| budget.verdict == verdict);
        let undecided = self.undecided == Undecided::Fail && any(BudgetVerdict::Undecided);
        Ok(!any(BudgetVerdict::Fail) && !undecided)
    }
}
