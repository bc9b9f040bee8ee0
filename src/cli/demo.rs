//! `loadline demo`: measures a small built-in server in about half a minute.

use super::exit::Code;
use super::session::{Call, Output, Session};
use crate::error::{Error, Result};
use crate::report::Progress;
use crate::result::{Judgement, JudgementSettings};
use crate::scenario::{Scenario, parse};
use crate::subject::WorkFolder;
use clap::Parser;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// `loadline demo`
#[derive(Debug, Parser)]
pub(super) struct Verb {
    #[command(flatten)]
    output: Output,
}

/// The server, built by `java/compile`.
const JAR: &[u8] = include_bytes!("../../java/compiled/demo.jar");
/// The demo's scenario, in the format that users write.
const SCENARIO: &str = include_str!("demo.loadline.yaml");
const JAR_NAME: &str = "loadline-demo.jar";

const NEXT: &str = "
Now try your own server:
  loadline weigh target/app.jar
  loadline weigh target/app.jar --heap 64m --limit 160m
  loadline init
";

pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    let quiet = verb.output.quiet || verb.output.json;
    // Signals are handled from here on, so that an interrupted demo leaves no directory behind.
    let session = Session::new(verb.output, call)?;
    let folder = with_jar()?;
    let scenario = scenario(folder.path(), &session.releases())?;
    let code = session.run(&scenario, &Judgement::of(&scenario, JudgementSettings::default())?)?;
    if !quiet {
        Progress::new(false).step(NEXT.trim_end());
    }
    Ok(code)
}

fn scenario(folder: &Path, releases: &[u32]) -> Result<Scenario> {
    // A test checks that the built-in text parses.
    parse(SCENARIO, folder, releases)
}

/// Puts the jar into a directory that only this user can enter, because the demo executes it.
fn with_jar() -> Result<WorkFolder> {
    let folder = WorkFolder::create()?;
    let jar = folder.path().join(JAR_NAME);
    let written = File::create_new(&jar).and_then(|mut file| file.write_all(JAR));
    written.map_err(|cause| Error::io("write", &jar, &cause))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_parses_and_names_the_jar() {
        let scenario = scenario(Path::new("/x"), &[17]).unwrap();
        assert_eq!(scenario.configurations.len(), 2);
        assert!(scenario.subject.command.iter().any(|word| word.contains(JAR_NAME)));
    }
}
