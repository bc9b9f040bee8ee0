//! What changed, as a comment on a pull request: one sentence, only what is worse, better or broken, who holds the
//! difference, which conditions differ, and the command that repeats it. A hidden marker in the first line tells a
//! poster which comment is this scenario's, a second one what it said; posting is left to others.

mod command;
mod marker;
mod owners;
mod said;
mod sides;

use super::super::super::quantity::{Estimate, budget_number, shown};
use super::super::super::words::{Pair, name_of, pairs};
use super::super::inert::clipped;
use super::escape::{code, prose};
use crate::record::{
    ArchiveRecord, BudgetRecord, BudgetVerdict, Circumstances, ComparisonRecord, DifferenceVerdict, Differing,
    Document, FindOutcome, Trial, TuneOutcome, Unit,
};
use crate::units::{grouped, several};
use marker::marker;
use serde::Serialize;
use sides::{Side, Sides};

/// GitHub refuses a comment above 65,536 characters; the rest is for what a poster adds.
const CHARACTERS_MAX: usize = 65_000;
/// What says how many rows are left out.
const NOTE_CHARACTERS: usize = 200;
/// A command above this length is none that somebody would copy.
const COMMAND_CHARACTERS: usize = 2_000;
/// A sentence above this length is no sentence: names may be as long as somebody likes.
const SENTENCE_CHARACTERS: usize = 10_000;

/// What a comment holds where nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unchanged {
    /// Nothing at all: an empty text, which nobody should post.
    Silent,
    /// That nothing changed.
    Told,
}

/// What a comment says in a word, which its second line holds; a later one is a worse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    Unchanged,
    Better,
    Worse,
    Broken,
    Failed,
}

/// The comment; empty where nothing changed and that is not to be told. At most 65,000 characters.
pub fn comment(document: &Document, unchanged: Unchanged) -> String {
    let of = Changes::of(document);
    let standing = of.standing();
    if standing == Standing::Unchanged && unchanged == Unchanged::Silent {
        return String::new();
    }
    let mut sentence = said::sentence(&of);
    if sentence.chars().count() > SENTENCE_CHARACTERS {
        sentence = said::counts(&of);
    }
    let begin = format!(
        "{}\n<!-- loadline-verdict: {} -->\n{sentence}\n",
        marker(&document.conditions.scenario),
        name_of(standing)
    );
    let owners = of.owners();
    let end = of.end(owners.is_some());
    assembled(begin, &of.blocks(owners), &end)
}

/// What of a document somebody should look at.
struct Changes<'a> {
    document: &'a Document,
    /// Every candidate with the metrics that were judged.
    pairs: Vec<Pair<'a>>,
    /// Comparisons that say worse or better: worse ones first, of memory before others, the largest change first.
    rows: Vec<&'a ComparisonRecord>,
    broken: Vec<&'a BudgetRecord>,
    failed: Vec<&'a Trial>,
    /// Trials of what is commented on, those that failed among them.
    trials: usize,
}

impl<'a> Changes<'a> {
    fn of(document: &'a Document) -> Self {
        let pairs = pairs(document, true);
        let told = |of: &&ComparisonRecord| {
            of.primary && matches!(of.verdict, DifferenceVerdict::Worse | DifferenceVerdict::Better)
        };
        let mut rows: Vec<&ComparisonRecord> = document.comparisons.iter().filter(told).collect();
        rows.sort_by(|one, other| {
            let rank = |of: &ComparisonRecord| (of.verdict == DifferenceVerdict::Better, of.unit != Unit::Bytes);
            let change = |of: &ComparisonRecord| of.ratio.map_or(0.0, |ratio| ratio.ln().abs());
            rank(one).cmp(&rank(other)).then(change(other).total_cmp(&change(one)))
        });
        let broken = document.budgets.iter().filter(|of| of.verdict == BudgetVerdict::Fail).collect();
        // In a search and in a tuning what breaks is an answer.
        let searched = document.find.is_some() || document.tune.is_some();
        let own = |trial: &&Trial| !searched && !Side::of(document, &trial.configuration).is_baseline_archive();
        let failed = document.trials.iter().filter(own).filter(|trial| trial.is_failed()).collect();
        let trials = document.trials.iter().filter(own).count();
        Self { document, pairs, rows, broken, failed, trials }
    }

    fn standing(&self) -> Standing {
        let find = self.document.find.as_ref().map(|find| find.outcome);
        let tune = self.document.tune.as_ref().map(|tune| tune.outcome);
        let not_held = matches!(find, Some(FindOutcome::NotHeld | FindOutcome::Never));
        match self.rows.first().map(|row| row.verdict) {
            _ if !self.failed.is_empty() => Standing::Failed,
            _ if !self.broken.is_empty() || not_held || tune == Some(TuneOutcome::NotHeld) => Standing::Broken,
            Some(DifferenceVerdict::Worse) => Standing::Worse,
            Some(_) => Standing::Better,
            None => Standing::Unchanged,
        }
    }

    /// The difference whose owners are told: the first of the table, or else that of a broken budget's metric, even
    /// where it is too unsure for a verdict.
    fn moved(&self) -> Option<&'a ComparisonRecord> {
        let of_budget = |budget: &&BudgetRecord| {
            let same = |of: &&ComparisonRecord| {
                of.candidate == budget.configuration && Some(&of.metric) == budget.metric.as_ref()
            };
            self.document.comparisons.iter().find(same)
        };
        self.rows.first().copied().or_else(|| self.broken.iter().find_map(of_budget))
    }

    /// The sides of the comparison that is told first.
    fn sides(&self) -> Option<Sides<'a>> {
        let (baseline, candidate) = match (self.moved(), self.pairs.first()) {
            (Some(row), _) => (row.baseline.as_str(), row.candidate.as_str()),
            (None, Some(pair)) => (pair.baseline, pair.candidate),
            (None, None) => return None,
        };
        Some(Sides { baseline: Side::of(self.document, baseline), candidate: Side::of(self.document, candidate) })
    }

    /// Whether a row must say which configuration it is of.
    fn has_several(&self) -> bool {
        self.pairs.len() > 1
    }

    /// Who holds the change that is told first.
    fn owners(&self) -> Option<Block> {
        owners::table(self.document, &self.sides()?, self.moved()?, self.has_several())
    }

    fn blocks(&self, owners: Option<Block>) -> Vec<Block> {
        let differing = |sides: Sides<'_>| Block::list("Conditions that differ:", differing(self.document, &sides));
        let mut blocks = vec![self.differences(), self.budgets()];
        blocks.extend(owners);
        blocks.extend(self.sides().map(differing));
        blocks
    }

    fn differences(&self) -> Block {
        let Some(sides) = self.sides() else { return Block::default() };
        let one = |read: fn(&ComparisonRecord) -> &str| {
            let mut names = self.rows.iter().map(|row| Side::of(self.document, read(row)).name());
            names.next().is_some_and(|first| names.all(|name| name == first))
        };
        let head = |same: bool, side: &Side<'_>, word: &str| if same { code(side.name()) } else { word.to_owned() };
        let head = format!(
            "| verdict | metric | {} | {} | difference |\n|:--|:--|--:|--:|--:|\n",
            head(one(|row| &row.baseline), &sides.baseline, "baseline"),
            head(one(|row| &row.candidate), &sides.candidate, "candidate"),
        );
        Block { head, rows: self.rows.iter().map(|row| self.difference(row)).collect() }
    }

    fn difference(&self, row: &ComparisonRecord) -> String {
        let verdict = if row.verdict == DifferenceVerdict::Worse { "**worse**" } else { "better" };
        let candidate = Side::of(self.document, &row.candidate);
        let whose = if self.has_several() { format!("{}: ", code(candidate.configuration)) } else { String::new() };
        let medians = [row.baseline_median, row.candidate_median];
        let [before, after] = medians.map(|median| shown(row.unit, Some(median)));
        let difference = Estimate::judged(row);
        format!("| {verdict} | {whose}{} | {before} | {after} | {difference} |\n", code(&row.metric))
    }

    fn budgets(&self) -> Block {
        let row = |of: &&BudgetRecord| {
            let measured = Estimate::of_budget(of).map_or("-".to_owned(), |measured| measured.to_string());
            let bound = budget_number(of, of.bound);
            let whose = code(Side::of(self.document, &of.configuration).configuration);
            format!("| **broken** | {} | {whose} | {measured} | {bound} |\n", code(&of.expression))
        };
        let head = "| verdict | budget | configuration | measured | bound |\n|:--|:--|:--|--:|--:|\n";
        Block { head: head.to_owned(), rows: self.broken.iter().map(row).collect() }
    }

    /// What is not decided, what the intervals promise, when it was measured, and how to repeat it.
    fn end(&self, has_owners: bool) -> String {
        let of = &self.document.conditions;
        let how = [owners::promise(self.document, has_owners), self.measured()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ");
        let paragraphs = self.undecided().into_iter().chain(Some(how).filter(|how| !how.is_empty()));
        let paragraphs = paragraphs.map(|text| format!("\n{text}\n"));
        // The block is one line that begins with `$`, so nothing in it can end it.
        let command = clipped(&command::shorter(&of.command), COMMAND_CHARACTERS);
        format!("{}\nRepeat it with:\n\n```console\n$ {command}\n```\n", paragraphs.collect::<String>())
    }

    /// What more trials would decide.
    fn undecided(&self) -> Option<String> {
        let rows = self.document.comparisons.iter();
        let open: Vec<_> = rows.filter(|of| of.primary && of.verdict == DifferenceVerdict::CannotTell).collect();
        let undecided = self.document.budgets.iter().filter(|of| of.verdict == BudgetVerdict::Undecided);
        let (unmeasured, near): (Vec<_>, Vec<_>) = undecided.partition(|of| of.value.is_none());
        let counted = |count: usize, what: &str| (count > 0).then(|| several(count as u64, what));
        let counts: Vec<String> =
            [counted(open.len(), "metric"), counted(near.len(), "budget")].into_iter().flatten().collect();
        let each = if self.document.archives.is_empty() { "blocks" } else { "trials of each" };
        let needed = open.iter().filter_map(|of| of.blocks_needed).max();
        let mut said = Vec::new();
        if !counts.is_empty() {
            let cure = match needed {
                Some(needed) => format!("about {} {each} would decide", grouped(u64::from(needed))),
                None => "more trials (`--trials`) narrow the interval".to_owned(),
            };
            said.push(format!("{} undecided; {cure}.", counts.join(" and ")));
        }
        if let Some(count) = counted(unmeasured.len(), "budget") {
            said.push(format!("{count} not judged, because the metric was not measured."));
        }
        (!said.is_empty()).then(|| said.join(" "))
    }

    /// When archives that are held against each other were measured.
    fn measured(&self) -> Option<String> {
        let [before, after] = self.document.archives.as_slice() else { return None };
        let when = |of: &ArchiveRecord| prose(&of.conditions.started);
        let counts = [before, after].map(|archive| {
            let own = |trial: &&Trial| Side::of(self.document, &trial.configuration).name() == archive.name;
            several(self.document.trials.iter().filter(own).count() as u64, "trial")
        });
        Some(format!(
            "{} was measured {} ({}), {} {} ({}).",
            code(&before.name),
            when(before),
            counts[0],
            code(&after.name),
            when(after),
            counts[1]
        ))
    }
}

/// A line for each condition in which the two sides differ: what may explain a difference that the change does not.
fn differing(document: &Document, sides: &Sides<'_>) -> Vec<String> {
    let [before, after] = [&sides.baseline, &sides.candidate]
        .map(|side| Circumstances::of(side.conditions(document), side.trial(document)));
    let line = |of: Differing| format!("{}: {} → {}", of.label, code(&of.before), code(&of.after));
    before.differing(&after).into_iter().map(line).collect()
}

/// A table or a list, row by row, so that it can be cut.
#[derive(Debug, Default)]
struct Block {
    /// What stands above the rows.
    head: String,
    /// Whole lines.
    rows: Vec<String>,
}

impl Block {
    fn list(title: &str, lines: Vec<String>) -> Self {
        Self { head: format!("{title}\n\n"), rows: lines.into_iter().map(|line| format!("- {line}\n")).collect() }
    }
}

/// All of it as far as it fits, cut at whole rows; what stands at the end is always there.
fn assembled(begin: String, blocks: &[Block], end: &str) -> String {
    let length = |text: &str| text.chars().count();
    let mut out = begin;
    let mut room = CHARACTERS_MAX.saturating_sub(length(&out) + length(end) + NOTE_CHARACTERS);
    let mut left_out = 0;
    for Block { head, rows } in blocks {
        let fits = rows.first().is_some_and(|row| length(head) + 1 + length(row) <= room);
        if !fits {
            left_out += rows.len();
            continue;
        }
        out.push_str(&format!("\n{head}"));
        room -= length(head) + 1;
        for (at, row) in rows.iter().enumerate() {
            if length(row) > room {
                left_out += rows.len() - at;
                break;
            }
            out.push_str(row);
            room -= length(row);
        }
    }
    if left_out > 0 {
        let rows = several(left_out as u64, "row");
        out.push_str(&format!("\n{rows} more did not fit into a comment; `loadline report` shows all.\n"));
    }
    out + end
}

#[cfg(test)]
#[path = "comment/tests.rs"]
mod tests;
