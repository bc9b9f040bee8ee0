//! Shared by the gallery tests: runs its scenarios in their directories.

use crate::invocation::Call;
use loadline::record::{Document, Trial};
use loadline_test_support::{on_path, skip};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name)
}

/// A call to `loadline run` on a gallery scenario.
pub(crate) fn run(folder_: &str, scenario: &str) -> Call {
    let file = folder(folder_).join(format!("{scenario}.loadline.yaml"));
    Call::verb("run --json").with_argument(&file).archiving()
}

/// Copies a scenario's files to a new directory, which also serves as a `PATH` with only these programs.
pub(crate) fn bare(name: &str, files: &[&str], programs: &[&str]) -> TempDir {
    let bare = tempfile::tempdir().unwrap();
    for file in files {
        let copy = bare.path().join(file);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        let _ = std::fs::copy(folder(name).join(file), copy).unwrap();
    }
    for program in programs {
        symlink(on_path(program).unwrap(), bare.path().join(program)).unwrap();
    }
    bare
}

/// Runs `loadline run` in such a directory.
pub(crate) fn run_bare(bare: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.arg("run").args(arguments).current_dir(bare.path()).env("PATH", bare.path()).output().unwrap()
}

/// Whether Maven is installed.
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
