//! A fake runner: a work directory, a program that replays archives instead of measuring, and variables.

use super::api::Api;
use crate::archive_halves::half;
use crate::called::{Called, root};
use loadline_test_support::{executable, has, write};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The runner.
pub(crate) struct Runner {
    place: TempDir,
    variables: BTreeMap<String, String>,
}

/// Replaces a measurement: copies the archive in `$MADE_UP` to `--out`, and prints it like `loadline run`.
const PROGRAM: &str = r#"#!/usr/bin/env bash
set -euo pipefail
case $1 in
    run) ;;
    *) exec "$REAL" "$@" ;;
esac
printf '%s\n' "$@" >"$ASKED"
if [[ -n ${SEEN:-} ]]; then
    # A process of the server could read all of this: its own environment, and that of each process above.
    for ((pid = $$; pid > 1; pid = $(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status"))); do
        tr '\0' '\n' <"/proc/$pid/environ" >>"$SEEN" 2>/dev/null || break
    done
fi
if [[ -n ${ENDS_WITH:-} ]]; then
    printf 'error: made up\n' >&2
    exit "$ENDS_WITH"
fi
shift 2
options=() out=
while (($#)); do
    case $1 in
        --out) out=$2 && shift ;;
        --quiet) ;;
        --trials) shift ;;
        *) options+=("$1") ;;
    esac
    shift
done
mkdir -p "$out"
cp "$MADE_UP/archive.jsonl" "$out/"
exec "$REAL" report "$out" "${options[@]}"
"#;

impl Runner {
    /// `None` if a tool that every runner has is missing.
    pub(crate) fn new() -> Option<Self> {
        for tool in ["bash", "curl", "jq", "unzip", "zip"] {
            if !has("LOADLINE_ACTION", tool) {
                return None;
            }
        }
        let place = tempfile::tempdir().unwrap();
        let mut runner = Self { place, variables: BTreeMap::new() };
        let bin = runner.path("bin");
        executable(bin.join("loadline"), PROGRAM);
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        for (name, value) in [
            ("PATH", path.as_str()),
            ("REAL", env!("CARGO_BIN_EXE_loadline")),
            ("LOADLINE_SCENARIO", "app.loadline.yaml"),
            ("RUNNER_OS", "Linux"),
            ("RUNNER_ARCH", "X64"),
            ("GITHUB_REPOSITORY", "o/r"),
            ("GITHUB_BASE_REF", "main"),
            ("GITHUB_SHA", "0123456789012345678901234567890123456789"),
            ("LOADLINE_TOKEN", "ghs_secret"),
            ("NO_PROXY", "*"),
        ] {
            runner.set(name, value);
        }
        for (name, file) in [
            ("ASKED", "asked"),
            ("GITHUB_OUTPUT", "output"),
            ("GITHUB_PATH", "path"),
            ("GITHUB_STEP_SUMMARY", "summary"),
            ("GITHUB_EVENT_PATH", "event"),
            ("RUNNER_TEMP", "temp"),
            ("MADE_UP", "made-up"),
        ] {
            let path = runner.path(file).display().to_string();
            runner.set(name, &path);
        }
        fs::create_dir(runner.path("work")).unwrap();
        runner.write("event", r#"{"pull_request": {"number": 7}}"#);
        Some(runner)
    }

    /// A runner with a small baseline and a change that increases memory, for a scenario with this name; and an API.
    pub(crate) fn with_change(scenario: &str) -> Option<(Api, Self)> {
        let (api, mut runner) = (Api::start(), Self::new()?);
        half("lean", scenario, &runner.path("main"));
        half("stout", scenario, &runner.path("made-up"));
        runner.set("LOADLINE_AGAINST", &runner.path("main").display().to_string());
        runner.set("GITHUB_API_URL", &api.url());
        runner.set("CI_API_V4_URL", &api.url());
        Some((api, runner))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.variables.remove(name);
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write(self.path(name), text);
    }

    /// The text of a file; empty if it is missing.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The last value of an output.
    pub(crate) fn output(&self, name: &str) -> String {
        let output = self.read("output");
        let mut own = output.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        own.next_back().unwrap_or_default().to_owned()
    }

    /// Checks that the job's summary contains these words.
    #[track_caller]
    pub(crate) fn summary_says(&self, words: &str) {
        let summary = self.read("summary");
        assert!(summary.contains(words), "the summary lacks `{words}`: {summary}");
    }

    /// Runs one of the repository's scripts with only these variables.
    pub(crate) fn run(&self, script: &str, arguments: &[&str]) -> Called {
        self.run_at(&root().join(script), arguments)
    }

    pub(crate) fn run_at(&self, script: &Path, arguments: &[&str]) -> Called {
        let mut command = Command::new("bash");
        command.arg(script).args(arguments).current_dir(self.path("work")).env_clear().envs(&self.variables);
        Called::of(command.output().unwrap())
    }

    /// Like `run`, but the script must succeed.
    #[track_caller]
    pub(crate) fn done(&self, script: &str, arguments: &[&str]) -> Called {
        let ran = self.run(script, arguments);
        assert_eq!(ran.code, 0, "{script}: {ran:?}");
        ran
    }

    /// Measures, and comments on the result.
    #[track_caller]
    pub(crate) fn weighed_and_commented(&mut self) -> Called {
        self.done("action/run", &[]);
        let file = self.path("work").join(self.output("comment")).display().to_string();
        self.set("LOADLINE_COMMENT_FILE", &file);
        self.done("action/comment", &[])
    }
}

/// A zip file with the contents of a directory.
pub(crate) fn packed(folder: &Path) -> Vec<u8> {
    let to = tempfile::tempdir().unwrap();
    let file = to.path().join("a.zip");
    let done = Command::new("zip").args(["-q", "-r"]).arg(&file).arg(".").current_dir(folder).status().unwrap();
    assert!(done.success());
    fs::read(file).unwrap()
}
