//! The common part of the tests of the gallery: its scenarios run where they stand.

use crate::invocation::Call;
use loadline::record::{Document, Trial};
use loadline_test_support::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name)
}

/// A call of `loadline run` on a scenario of the gallery.
pub(crate) fn run(folder_: &str, scenario: &str) -> Call {
    let file = folder(folder_).join(format!("{scenario}.loadline.yaml"));
    Call::verb("run --json").with_argument(&file).archiving()
}

/// Whether Maven is here.
pub(crate) fn has_maven() -> bool {
    let there = Command::new("mvn").arg("--version").output().is_ok_and(|ran| ran.status.success());
    if !there {
        skip("LOADLINE_GALLERY", "there is no Maven (mvn)");
    }
    there
}

pub(crate) fn trial<'a>(document: &'a Document, configuration: &str) -> &'a Trial {
    let found = document.trials.iter().find(|trial| trial.configuration == configuration);
    found.unwrap_or_else(|| panic!("no trial of {configuration}"))
}
