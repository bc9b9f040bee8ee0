//! Whose a configuration is, where archives are held against each other: theirs are named `ARCHIVE/CONFIGURATION`.

use crate::record::{ArchiveRecord, Conditions, Document, Trial};

/// What is compared, and what it is compared against.
pub(super) struct Sides<'a> {
    pub(super) baseline: Side<'a>,
    pub(super) candidate: Side<'a>,
}

/// One of the two.
pub(super) struct Side<'a> {
    archive: Option<(usize, &'a ArchiveRecord)>,
    /// As the document names it.
    pub(super) whole: &'a str,
    /// Without the name of its archive.
    pub(super) configuration: &'a str,
}

impl<'a> Side<'a> {
    pub(super) fn of(document: &'a Document, whole: &'a str) -> Self {
        let own = |(at, archive): (usize, &'a ArchiveRecord)| {
            let configuration = whole.strip_prefix(archive.name.as_str())?.strip_prefix('/')?;
            Some(Self { archive: Some((at, archive)), whole, configuration })
        };
        let found = document.archives.iter().enumerate().find_map(own);
        found.unwrap_or(Self { archive: None, whole, configuration: whole })
    }

    /// What a reader calls it: the archive, or the configuration where there is one archive.
    pub(super) fn name(&self) -> &'a str {
        self.archive.map_or(self.configuration, |(_, archive)| &archive.name)
    }

    /// Whether it is of the archive that others are held against.
    pub(super) fn is_baseline_archive(&self) -> bool {
        matches!(self.archive, Some((0, _)))
    }

    pub(super) fn conditions(&self, document: &'a Document) -> &'a Conditions {
        self.archive.map_or(&document.conditions, |(_, archive)| &archive.conditions)
    }

    /// Its first trial in which a JVM was seen, or else its first.
    pub(super) fn trial(&self, document: &'a Document) -> Option<&'a Trial> {
        let own = || document.trials.iter().filter(|trial| trial.configuration == self.whole);
        own().find(|trial| trial.jvm.is_some()).or(own().next())
    }
}
