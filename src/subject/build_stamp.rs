//! Decides whether a build step is up to date, using a stamp in `target/` with the commands and their inputs.
//!
//! The assumed inputs are all files in the subject's directory outside `target/`, by size and modification time, and
//! the JDK that the environment names. A build without a `target/` always runs.

use super::names;
use crate::bounded;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A build's output directory; its contents are not inputs.
const OUTPUT: &str = "target";
/// In the output directory, so that cleaning the output removes the stamp.
const STAMP: &str = ".loadline-build";
/// Directories without inputs: archives and version control.
const NO_INPUTS: [&str; 2] = ["loadline-archive", ".git"];
/// Identifies archives in other directories.
const ARCHIVE: &str = "archive.jsonl";
/// Scenarios determine when to build, not what.
const NO_INPUT_ENDS: &str = ".loadline.yaml";
/// More than any subject's sources; larger directories are always built.
const FILES_MAX: usize = 20_000;
/// Enough for that many lines.
const STAMP_BYTES_MAX: u64 = 8 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inputs {
    folder: PathBuf,
    /// Commands and environment, one per line.
    head: String,
    /// Size and modification time of each file, by relative path.
    files: BTreeMap<PathBuf, (u64, i128)>,
}

impl Inputs {
    /// Scans the directory; `None` if it cannot be read or is too large.
    pub(crate) fn read(folder: &Path, commands: &[&str]) -> Option<Self> {
        let commands = commands.iter().map(|command| format!("command {}\n", command.escape_default()));
        let variables = ["JAVA_HOME", "PATH"].map(|name| {
            let value = std::env::var_os(name).unwrap_or_default();
            format!("{name} {}\n", value.to_string_lossy().escape_default())
        });
        let head = commands.chain(variables).collect();
        let mut files = BTreeMap::new();
        collect(folder, Path::new(""), &mut files)?;
        Some(Self { folder: folder.to_owned(), head, files })
    }

    /// Whether the same commands ran on the same inputs and the output still exists.
    pub(crate) fn are_built(&self) -> bool {
        let Ok(text) = bounded::beginning(&self.stamp(), STAMP_BYTES_MAX) else { return false };
        let Some(made) = text.strip_prefix(&self.text()) else { return false };
        let output = self.folder.join(OUTPUT);
        made.lines().all(|line| line.strip_prefix("made ").is_some_and(|name| output.join(name).exists()))
    }

    /// Records that the commands succeeded on these inputs. Records nothing if an input has changed, because the
    /// output may not reflect it.
    pub(crate) fn remember(&self, commands: &[&str]) -> Result<()> {
        let output = self.folder.join(OUTPUT);
        let Ok(entries) = fs::read_dir(&output) else { return Ok(()) };
        let Some(now) = Self::read(&self.folder, commands) else { return Ok(()) };
        if self.files.iter().any(|(path, seen)| now.files.get(path) != Some(seen)) {
            return Ok(());
        }
        let mut made: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        made.retain(|name| !name.starts_with(STAMP) && !name.contains('\n'));
        made.sort();
        let made: String = made.iter().map(|name| format!("made {name}\n")).collect();
        // Another Loadline may read the stamp at the same time.
        let (stamp, new) = (self.stamp(), output.join(format!("{STAMP}-{}", names::random())));
        let written = fs::write(&new, now.text() + &made).and_then(|()| fs::rename(&new, &stamp));
        written.map_err(|cause| Error::io("write", &stamp, &cause))
    }

    fn stamp(&self) -> PathBuf {
        self.folder.join(OUTPUT).join(STAMP)
    }

    fn text(&self) -> String {
        let mut text = self.head.clone();
        for (path, (size, changed_ns)) in &self.files {
            let path = path.to_string_lossy();
            text.push_str(&format!("file {size} {changed_ns} {}\n", path.escape_default()));
        }
        text
    }
}

/// Adds the files in and below `folder`; `None` if there are too many, or if one is unreadable.
fn collect(folder: &Path, below: &Path, files: &mut BTreeMap<PathBuf, (u64, i128)>) -> Option<()> {
    let mut folders = vec![below.to_owned()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(folder.join(&below)).ok()? {
            let entry = entry.ok()?;
            let (name, path) = (entry.file_name(), below.join(entry.file_name()));
            let kind = entry.file_type().ok()?;
            let skipped = || name == OUTPUT || NO_INPUTS.iter().any(|skipped| name == *skipped);
            if kind.is_dir() {
                if !skipped() && !entry.path().join(ARCHIVE).exists() {
                    folders.push(path);
                }
                continue;
            }
            if name.to_string_lossy().ends_with(NO_INPUT_ENDS) {
                continue;
            }
            // A link counts as its target; linked directories are skipped to avoid cycles.
            let Ok(found) = fs::metadata(entry.path()) else { continue };
            if found.is_file() {
                let changed_ns = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
                files.insert(path, (found.len(), changed_ns));
            }
            if files.len() > FILES_MAX {
                return None;
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILD: [&str; 1] = ["javac -d target src/*.java"];

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            let folder = Self(tempfile::tempdir().unwrap());
            folder.write("src/A.java", "a");
            folder
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn write(&self, path: &str, text: &str) {
            loadline_test_support::write(self.at(path), text);
        }

        fn inputs(&self) -> Inputs {
            Inputs::read(self.0.path(), &BUILD).unwrap()
        }

        /// Simulates a build: reads the inputs, writes output, and records the stamp.
        fn build(&self) {
            let inputs = self.inputs();
            self.write("target/A.class", "a");
            inputs.remember(&BUILD).unwrap();
        }
    }

    #[test]
    fn a_build_is_reused_until_an_input_changes() {
        let folder = Folder::new();
        assert!(!folder.inputs().are_built());
        let breaks: [(&str, &dyn Fn()); 5] = [
            ("a longer source", &|| folder.write("src/A.java", "aa")),
            ("a new source", &|| folder.write("src/deep/B.java", "b")),
            ("a deleted source", &|| fs::remove_dir_all(folder.at("src/deep")).unwrap()),
            ("a deleted part of the output", &|| fs::remove_file(folder.at("target/A.class")).unwrap()),
            ("the deleted output directory", &|| fs::remove_dir_all(folder.at("target")).unwrap()),
        ];
        for (what, change) in breaks {
            folder.build();
            assert!(folder.inputs().are_built(), "the build must be up to date before {what}");
            change();
            assert!(!folder.inputs().are_built(), "{what}");
        }
    }

    #[test]
    fn only_sources_and_the_command_are_build_inputs() {
        let folder = Folder::new();
        folder.build();
        folder.write("x.loadline.yaml", "name: x");
        folder.write("loadline-archive/x/trial.json", "{}");
        folder.write("results/archive.jsonl", "{}");
        folder.write("target/more/log", "written by the server");
        assert!(folder.inputs().are_built());
        assert!(!Inputs::read(folder.0.path(), &["javac --release 17"]).unwrap().are_built());
        assert!(!Inputs::read(folder.0.path(), &[BUILD[0], "mvn package"]).unwrap().are_built());
        folder.write("target/.loadline-build", "command x\nfile");
        assert!(!folder.inputs().are_built());
    }

    #[test]
    fn builds_with_edits_during_the_build_or_no_output_are_not_reused() {
        let folder = Folder::new();
        let inputs = folder.inputs();
        folder.write("target/A.class", "a");
        folder.write("src/A.java", "edited");
        inputs.remember(&BUILD).unwrap();
        assert!(!folder.inputs().are_built());
        fs::remove_dir_all(folder.at("target")).unwrap();
        folder.inputs().remember(&BUILD).unwrap();
        assert!(!folder.at("target").exists() && !folder.inputs().are_built());
        assert_eq!(Inputs::read(&folder.at("nowhere"), &BUILD), None);
    }

    #[test]
    fn links_count_by_their_target_and_cycles_are_not_followed() {
        let folder = Folder::new();
        std::os::unix::fs::symlink(folder.0.path(), folder.at("src/circle")).unwrap();
        std::os::unix::fs::symlink("/nowhere", folder.at("src/dangling")).unwrap();
        std::os::unix::fs::symlink(folder.at("src/A.java"), folder.at("link.java")).unwrap();
        let names: Vec<_> = folder.inputs().files.into_keys().collect();
        assert_eq!(names, [Path::new("link.java"), Path::new("src/A.java")]);
    }
}
