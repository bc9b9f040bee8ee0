//! A configuration's archive, if archives are compared (configurations are then named `ARCHIVE/CONFIGURATION`), and
//! the conditions that differ between the two sides of a comparison.

use crate::record::{ArchiveRecord, Circumstances, Document, Trial};
use crate::words::{Pair, gathered, pairs};

#[derive(Debug)]
struct Side<'a> {
    archive: Option<&'a ArchiveRecord>,
    trial: Option<&'a Trial>,
}

impl<'a> Side<'a> {
    /// A configuration's side, with its first trial that has a JVM, or else its first trial.
    fn of(document: &'a Document, name: &str) -> Self {
        let own = || document.trials.iter().filter(|trial| trial.configuration == name);
        let archive = document.archives.iter().find(|archive| is_of(archive, name));
        Self { archive, trial: own().find(|trial| trial.jvm.is_some()).or(own().next()) }
    }

    fn circumstances(&self, document: &Document) -> Circumstances {
        let conditions = self.archive.map_or(&document.conditions, |archive| &archive.conditions);
        Circumstances::of(conditions, self.trial)
    }
}

fn is_of(archive: &ArchiveRecord, configuration: &str) -> bool {
    configuration.strip_prefix(archive.name.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

pub(crate) fn is_of_baseline_archive(document: &Document, configuration: &str) -> bool {
    document.archives.iter().position(|archive| is_of(archive, configuration)) == Some(0)
}

/// Conditions, other than the change itself, that differ between candidates and their baseline, and may explain a
/// measured difference. For archives, includes when each was measured. Of several candidates, the affected are named.
pub(super) fn differing(document: &Document) -> Vec<(String, String)> {
    let pairs = pairs(document, true);
    let told = pairs.iter().flat_map(|pair| of_pair(document, pair).into_iter().map(|told| (told, pair.candidate)));
    let told = gathered(told, |one, other| one == other).into_iter();
    let told = told.map(|((label, text), candidates)| match candidates.len() == pairs.len() {
        true => (label, text),
        false => (label, format!("{text} ({})", candidates.join(", "))),
    });
    told.collect()
}

fn of_pair(document: &Document, pair: &Pair<'_>) -> Vec<(String, String)> {
    let [before, after] = [pair.baseline, pair.candidate].map(|name| Side::of(document, name));
    let measured = before.archive.zip(after.archive);
    let measured = measured.map(|(before, after)| [&before.conditions.started, &after.conditions.started]);
    let measured = measured.filter(|[before, after]| before != after);
    let measured = measured.map(|[before, after]| ("measured".to_owned(), format!("{before} → {after}")));
    let differing = before.circumstances(document).differing(&after.circumstances(document));
    let told = differing.into_iter().map(|of| (of.label.to_owned(), format!("`{}` → `{}`", of.before, of.after)));
    told.chain(measured).collect()
}
