//! Several archives as one result: unique configuration names, and differences between the archives.

use crate::archive::Archive;
use crate::doubt::{Comparing, Doubt};
use crate::error::{Error, Result};
use crate::record::{ArchiveRecord, Circumstances, Conditions, Differing, Trial, each_once};
use crate::scenario::Scenario;
use std::path::{Path, PathBuf};

/// An archive with its directory.
#[derive(Debug, Clone)]
pub struct ArchivePart {
    /// Its directory.
    pub path: PathBuf,
    /// The archive.
    pub archive: Archive,
}

/// Several archives as one.
#[derive(Debug, Clone)]
pub struct Merged {
    /// The first archive's scenario, with the configurations of all.
    pub scenario: Scenario,
    /// The first archive's conditions, with the command that compares them.
    pub conditions: Conditions,
    /// The archives, baseline first.
    pub archives: Vec<ArchiveRecord>,
    /// The renumbered trials of all archives.
    pub trials: Vec<Trial>,
    /// Pairs to compare: baseline and candidate.
    pub pairs: Vec<(String, String)>,
    /// Reasons why a difference between archives may not be due to the configurations.
    pub doubts: Vec<Doubt>,
    /// Descriptions of missing data.
    pub missing: Vec<String>,
}

impl Merged {
    /// Combines archives, baseline first; `command` compares them. Errors: `Request` if there are fewer than two, or if
    /// no configuration of the first is comparable with one of another.
    pub fn of(parts: Vec<ArchivePart>, command: String) -> Result<Self> {
        let [first, others @ ..] = parts.as_slice() else { return Err(too_few()) };
        if others.is_empty() {
            return Err(too_few());
        }
        let names = names(&parts);
        let (mut pairs, mut doubts) = (Vec::new(), Vec::new());
        for (name, other) in names[1..].iter().zip(others) {
            let alike = alike(first, other)?;
            doubts.extend(differences(&first.archive, &other.archive, &alike));
            pairs.extend(alike.into_iter().map(|(one, same)| (named(&names[0], &one), named(name, &same))));
        }
        let missing = parts
            .iter()
            .zip(&names)
            .flat_map(|(part, name)| part.archive.missing.iter().map(move |what| format!("{name}: {what}")));
        let mut merged = Self {
            scenario: Scenario { configurations: Vec::new(), ..first.archive.scenario.clone() },
            conditions: Conditions { command, ..first.archive.conditions.clone() },
            archives: Vec::new(),
            trials: Vec::new(),
            pairs,
            doubts,
            missing: missing.collect(),
        };
        // The archives' own baselines use the old configuration names.
        merged.scenario.compare.baseline = None;
        parts.into_iter().zip(names).for_each(|(part, name)| merged.add(part, name));
        Ok(merged)
    }

    /// Adds an archive's trials and configurations, prefixed by its name.
    fn add(&mut self, part: ArchivePart, name: String) {
        let ArchivePart { archive, .. } = part;
        let index_from = next(&self.trials, |trial| trial.index);
        let block_from = next(&self.trials, |trial| trial.block);
        for mut configuration in archive.scenario.configurations {
            configuration.name = named(&name, &configuration.name);
            self.scenario.configurations.push(configuration);
        }
        for mut trial in archive.trials {
            trial.configuration = named(&name, &trial.configuration);
            trial.index += index_from;
            trial.block += block_from;
            trial.repeats = trial.repeats.map(|repeated| repeated + block_from);
            self.trials.push(trial);
        }
        self.archives.push(ArchiveRecord { name, index_from, conditions: archive.conditions });
    }
}

fn too_few() -> Error {
    Error::request("one archive cannot be compared").hint("`loadline report ARCHIVE` shows one alone")
}

/// Pairs of configurations with the same name, or the only ones of each archive.
fn alike(first: &ArchivePart, other: &ArchivePart) -> Result<Vec<(String, String)>> {
    let [before, after] = [first, other].map(|part| configurations(&part.archive.trials));
    if let ([one], [same]) = (before.as_slice(), after.as_slice()) {
        return Ok(vec![(one.clone(), same.clone())]);
    }
    let same: Vec<_> = before.iter().filter(|name| after.contains(name)).cloned().collect();
    if same.is_empty() {
        return Err(Error::request("the archives have no configuration in common")
            .at(format!("{}: {}", first.path.display(), before.join(", ")))
            .at(format!("{}: {}", other.path.display(), after.join(", ")))
            .hint("compare archives of the same scenario, or with one configuration each"));
    }
    Ok(same.into_iter().map(|name| (name.clone(), name)).collect())
}

/// The directories' names; if they collide, `before` and `after`, or numbers.
fn names(parts: &[ArchivePart]) -> Vec<String> {
    let name = |path: &Path| {
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        whole.file_name().map(|name| name.to_string_lossy().into_owned())
    };
    let names: Vec<Option<String>> = parts.iter().map(|part| name(&part.path)).collect();
    let is_single = |name: &Option<String>| name.is_some() && names.iter().filter(|other| *other == name).count() == 1;
    match (names.iter().all(is_single), parts.len()) {
        (true, _) => names.into_iter().flatten().collect(),
        (false, 2) => vec!["before".to_owned(), "after".to_owned()],
        (false, count) => (1..=count).map(|number| number.to_string()).collect(),
    }
}

/// Doubts about two archives: they ran at different times, and may have other differences.
fn differences(before: &Archive, after: &Archive, alike: &[(String, String)]) -> Vec<Doubt> {
    let (old, new) = (&before.conditions, &after.conditions);
    let differing = Circumstances::of(old, None).differing(&Circumstances::of(new, None));
    let mut differences: Vec<String> = differing.iter().map(Differing::to_string).collect();
    let mut differ = |what: &str, first: String, second: String| {
        if first != second {
            differences.push(format!("{what}: {first} | {second}"));
        }
    };
    let marks = |archive: &Archive| archive.scenario.marks.iter().map(|mark| mark.word()).collect::<Vec<_>>().join(",");
    differ("marks", marks(before), marks(after));
    for (one, same) in alike {
        // An archive without input hashes has no known difference.
        if let (Some(first), Some(second)) = (inputs(before, one), inputs(after, same)) {
            differ(&format!("files of {same} (SHA-256)"), first, second);
        }
    }
    let (first, second) = (old.started.clone(), new.started.clone());
    let mut doubts = vec![Doubt::Comparing(Comparing::NotInterleaved { first, second })];
    if !differences.is_empty() {
        doubts.push(Doubt::Comparing(Comparing::ArchivesDiffer { differences }));
    }
    doubts
}

/// Short hashes of the files that a configuration's trials read; `None` if any trial lacks them.
fn inputs(archive: &Archive, configuration: &str) -> Option<String> {
    let own = archive.trials.iter().filter(|trial| trial.configuration == configuration);
    let hashes = own.map(|trial| trial.inputs.as_deref()).collect::<Option<Vec<_>>>()?;
    let short = each_once(hashes.into_iter()).into_iter().map(|hash| hash.get(..12).unwrap_or(hash));
    Some(short.collect::<Vec<_>>().join(", "))
}

fn named(archive: &str, configuration: &str) -> String {
    format!("{archive}/{configuration}")
}

/// Distinct configurations in execution order.
fn configurations(trials: &[Trial]) -> Vec<String> {
    let names = each_once(trials.iter().map(|trial| trial.configuration.as_str()));
    names.into_iter().map(str::to_owned).collect()
}

fn next(trials: &[Trial], number: impl Fn(&Trial) -> u32) -> u32 {
    trials.iter().map(number).max().map_or(0, |most| most + 1)
}
