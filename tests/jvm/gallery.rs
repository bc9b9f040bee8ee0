//! What the tests of the gallery share: its scenarios run where they stand.

use crate::invocation::Call;
use loadline::record::{Document, Trial};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name)
}

/// A call of `loadline run` on a scenario of the gallery.
pub(crate) fn run(folder_: &str, scenario: &str) -> Call {
    let call = Call::verb("run").with_argument(&folder(folder_).join(format!("{scenario}.loadline.yaml")));
    let out = format!("--out {}", call.archive().display());
    call.with(&out).with("--json")
}

/// Whether a missing tool is an error here, and not a reason to skip a test.
pub(crate) fn is_required() -> bool {
    std::env::var("LOADLINE_GALLERY").is_ok_and(|word| word == "required")
}

/// Whether Maven is here; says so where it is not.
pub(crate) fn has_maven() -> bool {
    let there = Command::new("mvn").arg("--version").output().is_ok_and(|ran| ran.status.success());
    assert!(there || !is_required(), "Maven (mvn) was not found");
    if !there {
        println!("skipped, because Maven (mvn) was not found");
    }
    there
}

pub(crate) fn trial<'a>(document: &'a Document, configuration: &str) -> &'a Trial {
    let found = document.trials.iter().find(|trial| trial.configuration == configuration);
    found.unwrap_or_else(|| panic!("no trial of {configuration}"))
}
