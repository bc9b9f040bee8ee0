//! `loadline demo`: the main job on a built-in small server, in about a minute.

use super::args::Demo;
use super::args_compare::Judging;
use super::exit::Code;
use super::judging::judgement;
use super::session::{Interrupt, Session};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::report::Progress;
use crate::scenario::{Scenario, parse};
use std::path::{Path, PathBuf};

/// The server, as `java/compile` makes it.
const JAR: &[u8] = include_bytes!("../../java/compiled/demo.jar");
/// What is asked of it; the same shape a user writes.
const SCENARIO: &str = include_str!("demo.loadline.yaml");
const JAR_NAME: &str = "loadline-demo.jar";

const NEXT: &str = "
Now your own server. Three commands to try:
  loadline weigh target/app.jar
  loadline weigh target/app.jar --heap 64m --limit 160m
  loadline init
";

pub(super) fn demo(verb: Demo, typed: String, clock: Clock, interrupt: Interrupt) -> Result<Code> {
    let quiet = verb.output.quiet || verb.output.json;
    let folder = Folder::create()?;
    let session = Session::new(verb.output, typed, clock, interrupt);
    let scenario = scenario(&folder.0, &session.releases())?;
    let code = session.run(&scenario, &judgement(&scenario, None, &Judging::default())?)?;
    if !quiet {
        Progress::new(false).step(NEXT.trim_end());
    }
    Ok(code)
}

fn scenario(folder: &Path, releases: &[u32]) -> Result<Scenario> {
    // The text is part of the program; that it parses is tested.
    parse(SCENARIO, folder, releases)
}

/// A folder for the jar, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("loadline-demo-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|cause| Error::io("create", &folder, &cause))?;
        let folder = Self(folder);
        let jar = folder.0.join(JAR_NAME);
        std::fs::write(&jar, JAR).map_err(|cause| Error::io("write", &jar, &cause))?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind in a temporary folder does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
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
