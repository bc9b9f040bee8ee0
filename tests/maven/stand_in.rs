//! A script that replaces Loadline: exits as a file specifies, and records its call.

use crate::build::VERSION;
use loadline_test_support::executable;
use std::fs;
use std::path::{Path, PathBuf};

/// Responds with files from its directory. `report` always gives the same output.
const SCRIPT: &str = r#"#!/bin/sh
here=$(dirname "$0")
if [ "$1" = --version ]; then cat "$here/version"; exit; fi
if [ "$1" = report ]; then echo '{"made": "up"}'; exit; fi
{ pwd; echo "$JAVA_HOME"; } >"$here/place"
for word; do
    printf '%s\n' "$word"
    case $before in
    --junit) cp "$here/budgets.xml" "$word" ;;
    --comment) echo "metaspace +8.0 MiB" >"$word" ;;
    --out) mkdir -p "$word" ;;
    esac
    before=$word
done >"$here/called"
echo "what was measured"
cat "$here/words" >&2
exit "$(cat "$here/exit")"
"#;

/// The script in its directory.
pub(crate) struct StandIn {
    pub(crate) folder: PathBuf,
}

/// A budget's outcome.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BudgetOutcome {
    Kept,
    Broken,
    Undecided,
}

impl StandIn {
    /// One that exits with this code after this output.
    pub(crate) fn new(folder: &Path, exit: i32, words: &str, budgets: &[BudgetOutcome]) -> Self {
        fs::create_dir_all(folder).unwrap();
        let stand_in = Self { folder: folder.to_owned() };
        stand_in.version(VERSION);
        for (name, text) in
            [("exit", exit.to_string()), ("words", format!("{words}\n")), ("budgets.xml", report(budgets))]
        {
            fs::write(folder.join(name), text).unwrap();
        }
        executable(stand_in.program(), SCRIPT);
        stand_in
    }

    /// Changes its version.
    pub(crate) fn version(&self, version: &str) {
        fs::write(self.folder.join("version"), format!("loadline {version}\n")).unwrap();
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join("loadline")
    }

    /// As a Maven option.
    pub(crate) fn option(&self) -> String {
        format!("-Dloadline.executable={}", self.program().display())
    }

    /// A PATH on which it comes first.
    pub(crate) fn path(&self) -> String {
        format!("{}:{}", self.folder.display(), std::env::var("PATH").unwrap())
    }

    /// The arguments of its last call; empty if it was not called.
    pub(crate) fn called(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join("called")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The working directory and JDK of its call.
    pub(crate) fn place(&self) -> (String, String) {
        let text = fs::read_to_string(self.folder.join("place")).unwrap();
        let (folder, home) = text.trim_end().split_once('\n').unwrap();
        (folder.to_owned(), home.to_owned())
    }
}

/// As written by `loadline --junit`, whose format is in the snapshots of `replay`.
fn report(budgets: &[BudgetOutcome]) -> String {
    let cases = budgets.iter().enumerate().map(|(at, verdict)| {
        let inside = match verdict {
            BudgetOutcome::Kept => "<system-out>trials=5</system-out>".to_owned(),
            BudgetOutcome::Broken => {
                let why = "from 70.2 MiB to 81.4 MiB in 5 trials: all of it misses 60.0 MiB";
                format!("<failure message=\"{why}\" type=\"budget failed\">{why}</failure>")
            }
            BudgetOutcome::Undecided => {
                "<skipped message=\"from 59.2 MiB to 80.2 MiB in 5 trials: 60.0 MiB lies within\"/>".to_owned()
            }
        };
        format!("<testcase classname=\"loadline.budget\" name=\"ci {at}: rss.loaded&lt;=60MiB\">{inside}</testcase>\n")
    });
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites><testsuite name=\"loadline.budget\">\n{}</testsuite>\n\
         <testsuite name=\"loadline.trial\"><testcase classname=\"loadline.trial\" name=\"trial 1: ci\"/></testsuite>\n\
         </testsuites>\n",
        cases.collect::<String>()
    )
}
