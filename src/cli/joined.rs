//! Two archives as one result: their configurations under names that tell them apart, and what makes them differ.

use super::exports::Folder;
use crate::archive::Archive;
use crate::doubt::{Comparing, Doubt};
use crate::error::{Error, Result};
use crate::record::{Conditions, Trial, each_once};
use crate::scenario::Scenario;
use std::path::Path;

/// Two archives, the baseline first.
pub(super) struct Pair<'a> {
    pub(super) paths: [&'a Path; 2],
    pub(super) archives: [Archive; 2],
}

/// Two archives as one.
pub(super) struct Joined {
    /// Of the first archive, with the configurations of both.
    pub(super) scenario: Scenario,
    /// Of the first archive, with the command that compares them.
    pub(super) conditions: Conditions,
    /// Of both, numbered on.
    pub(super) trials: Vec<Trial>,
    /// Which configurations are compared: baseline and candidate.
    pub(super) pairs: Vec<(String, String)>,
    /// What makes a difference of the archives something else than one of the configurations.
    pub(super) doubts: Vec<Doubt>,
    /// Where the folders of the trials lie.
    pub(super) folders: Vec<Folder>,
    /// What the archives lack.
    pub(super) missing: Vec<String>,
}

impl Pair<'_> {
    /// Puts them side by side.
    ///
    /// # Errors
    /// `Request` where no configuration of the one can be compared with one of the other.
    pub(super) fn join(self, command: String) -> Result<Joined> {
        let pairs = self.pairs()?;
        let doubts = self.differences();
        let labels = self.labels();
        let Self { paths, archives: [before, after] } = self;
        let missing = [&before, &after]
            .iter()
            .zip(&labels)
            .flat_map(|(archive, label)| archive.missing.iter().map(move |what| format!("{label}: {what}")))
            .collect();
        let (offset, blocks) = (next(&before.trials, |trial| trial.index), next(&before.trials, |trial| trial.block));
        let mut trials = Vec::new();
        let mut folders = Vec::new();
        let shifts = [(0, 0), (offset, blocks)];
        let mut scenario = before.scenario.clone();
        scenario.configurations.clear();
        for (at, archive) in [before.clone(), after].into_iter().enumerate() {
            let (label, (index, block)) = (&labels[at], shifts[at]);
            folders.push(Folder { path: paths[at].to_owned(), index_from: index });
            for mut configuration in archive.scenario.configurations {
                configuration.name = named(label, &configuration.name);
                scenario.configurations.push(configuration);
            }
            for mut trial in archive.trials {
                trial.configuration = named(label, &trial.configuration);
                trial.index += index;
                trial.block += block;
                trial.repeats = trial.repeats.map(|repeated| repeated + block);
                trials.push(trial);
            }
        }
        let pair = |(first, second): (String, String)| (named(&labels[0], &first), named(&labels[1], &second));
        let pairs = pairs.into_iter().map(pair).collect();
        // The archives' own baselines name configurations by their old names.
        scenario.compare.baseline = None;
        let conditions = Conditions { command, ..before.conditions };
        Ok(Joined { scenario, conditions, trials, pairs, doubts, folders, missing })
    }

    /// Configurations of the same name; where each archive has one only, those.
    fn pairs(&self) -> Result<Vec<(String, String)>> {
        let [before, after] = [0, 1].map(|at| configurations(&self.archives[at].trials));
        if let ([first], [second]) = (before.as_slice(), after.as_slice()) {
            return Ok(vec![(first.clone(), second.clone())]);
        }
        let same: Vec<_> = before.iter().filter(|name| after.contains(name)).cloned().collect();
        if same.is_empty() {
            return Err(Error::request("the archives have no configuration in common")
                .at(format!("{}: {}", self.paths[0].display(), before.join(", ")))
                .at(format!("{}: {}", self.paths[1].display(), after.join(", ")))
                .hint("compare archives of one scenario, or of one configuration each"));
        }
        Ok(same.into_iter().map(|name| (name.clone(), name)).collect())
    }

    /// The names of the folders; `before` and `after` where they are the same.
    fn labels(&self) -> [String; 2] {
        let name = |path: &Path| {
            let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            whole.file_name().map(|name| name.to_string_lossy().into_owned())
        };
        match (name(self.paths[0]), name(self.paths[1])) {
            (Some(first), Some(second)) if first != second => [first, second],
            _ => ["before".to_owned(), "after".to_owned()],
        }
    }

    /// What else differs than what is compared.
    fn differences(&self) -> Vec<Doubt> {
        let [before, after] = [&self.archives[0], &self.archives[1]];
        let (old, new) = (&before.conditions, &after.conditions);
        let mut differences = Vec::new();
        let mut differ = |what: &str, first: String, second: String| {
            if first != second {
                differences.push(format!("{what}: {first} | {second}"));
            }
        };
        let machine = |conditions: &Conditions| {
            let machine = &conditions.machine;
            format!("{} cores, {} bytes, Linux {}", machine.cores, machine.memory_bytes, machine.kernel)
        };
        differ("scenario", old.scenario.clone(), new.scenario.clone());
        differ("load", old.load.join("; "), new.load.join("; "));
        differ("machine", machine(old), machine(new));
        differ("loadline", old.loadline.clone(), new.loadline.clone());
        let marks =
            |archive: &Archive| archive.scenario.marks.iter().map(|mark| mark.word()).collect::<Vec<_>>().join(",");
        differ("marks", marks(before), marks(after));
        let mut doubts = vec![Doubt::Comparing(Comparing::NotInterleaved {
            first: old.started.clone(),
            second: new.started.clone(),
        })];
        if !differences.is_empty() {
            doubts.push(Doubt::Comparing(Comparing::ArchivesDiffer { differences }));
        }
        doubts
    }
}

fn named(label: &str, configuration: &str) -> String {
    format!("{label}/{configuration}")
}

/// Each configuration once, in the order they ran.
fn configurations(trials: &[Trial]) -> Vec<String> {
    let names = each_once(trials.iter().map(|trial| trial.configuration.as_str()));
    names.into_iter().map(str::to_owned).collect()
}

/// The first number that none of them has.
fn next(trials: &[Trial], number: impl Fn(&Trial) -> u32) -> u32 {
    trials.iter().map(number).max().map_or(0, |most| most + 1)
}
