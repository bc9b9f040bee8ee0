//! Prepares the first trial: removes leftovers, builds the subject, and omits optional configurations that cannot run
//! here.

use super::inputs;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::record::LeftOutRecord;
use crate::scenario::{Configuration, Scenario, Subject, Tls, TrialPlan};
use crate::subject::build_stamp::Inputs;
use crate::subject::slurm_step::Job;
use crate::subject::{FoundJdk, Spawner, image, jdk, work_folder};
use crate::trial::{Event, Sink};
use std::path::Path;

/// When to rerun a build step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rebuild {
    /// Only if one of its inputs changed.
    #[default]
    IfChanged,
    /// Always.
    Always,
}

/// The resources for preparing a scenario.
pub struct Preparing<'a> {
    /// Runs build steps.
    pub spawner: &'a Spawner,
    /// The JDKs of this machine.
    pub jdks: &'a [FoundJdk],
    /// The clock.
    pub clock: Clock,
    /// When to rerun build steps.
    pub rebuild: Rebuild,
    /// Whether the user wants to stop.
    pub interrupted: &'a dyn Fn() -> bool,
    /// The source of existing hashes.
    pub hashed_by: HashedBy,
}

/// Who computed the hash that a configuration already has; the files must still match it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HashedBy {
    /// The trials of a continued archive.
    #[default]
    Trials,
    /// A fleet's plan.
    Plan,
}

impl HashedBy {
    fn refuse(self) -> Error {
        match self {
            Self::Trials => Error::request("the server's or load's files differ from those of earlier trials")
                .hint("start over; trials with different files cannot be combined"),
            Self::Plan => Error::request("the server's or load's files differ from those of the plan")
                .hint("recreate the plan with `loadline plan`, or restore its files"),
        }
    }
}

/// The configurations that can run, and those that cannot.
#[derive(Debug)]
pub struct PreparedSeries {
    /// Contains only the configurations that can run.
    pub scenario: Scenario,
    /// Those that cannot run.
    pub left_out: Vec<LeftOutRecord>,
}

impl Preparing<'_> {
    /// Prepares a scenario. Errors: `Subject` if a build fails; `Machine` if no configuration is left; `Interrupted`.
    pub fn prepare(&self, scenario: &Scenario, sink: &mut dyn Sink) -> Result<PreparedSeries> {
        check_certificates(scenario.subject.tls.as_ref())?;
        sweep(sink);
        self.sweep_steps(sink);
        let mut prepared = PreparedSeries { scenario: scenario.clone(), left_out: Vec::new() };
        prepared.leave_out(sink, |configuration| self.missing_jdk(configuration))?;
        self.build(&mut prepared, sink)?;
        check_artifact(&prepared.scenario.subject)?;
        prepared.leave_out(sink, |configuration| Ok(missing_code(configuration)))?;
        self.look_at_image(&mut prepared.scenario, sink)?;
        prepared.hash_inputs(self.hashed_by, &mut inputs::KnownFiles::default())?;
        Ok(prepared)
    }

    /// Ends Slurm steps that an earlier Loadline left in the current job.
    fn sweep_steps(&self, sink: &mut dyn Sink) {
        match Job::here().map_or(0, |job| job.sweep(self.clock)) {
            0 => {}
            1 => sink.receive(&Event::Note("stopped 1 step left by a killed Loadline process")),
            n => sink.receive(&Event::Note(&format!("stopped {n} steps left by killed Loadline processes"))),
        }
    }

    /// Prepares a scenario for other machines: runs the builds and hashes the trials' inputs. Checks nothing else,
    /// because this machine need not be able to run a trial. Errors: `Subject` if a build fails; `Interrupted`.
    pub fn seal(&self, scenario: &Scenario, known: &mut inputs::KnownFiles, sink: &mut dyn Sink) -> Result<Scenario> {
        let mut prepared = PreparedSeries { scenario: scenario.clone(), left_out: Vec::new() };
        self.build(&mut prepared, sink)?;
        check_artifact(&prepared.scenario.subject)?;
        prepared.leave_out(sink, |configuration| Ok(missing_code(configuration)))?;
        prepared.hash_inputs(self.hashed_by, known)?;
        Ok(prepared.scenario)
    }

    /// Finds the image before the first trial, removes leftover containers, and reads the image's heap options.
    fn look_at_image(&self, scenario: &mut Scenario, sink: &mut dyn Sink) -> Result<()> {
        let Some(image) = &mut scenario.subject.image else { return Ok(()) };
        let found = image::find(&image.name, self.clock)?;
        match found.tool.sweep() {
            0 => {}
            1 => sink.receive(&Event::Note("removed 1 container left by a killed Loadline process")),
            n => sink.receive(&Event::Note(&format!("removed {n} containers left by killed Loadline processes"))),
        }
        image.heap_options = found.heap_options(&scenario.subject.command);
        if !image.heap_options.is_empty() {
            let (name, options) = (&image.name, image.heap_options.join(" "));
            sink.receive(&Event::Note(&format!(
                "the image {name} sets {options} itself, which overrides other heap options"
            )));
        }
        Ok(())
    }

    /// Why an optional configuration has no JDK. Errors: `Machine` if a required configuration has none.
    fn missing_jdk(&self, configuration: &Configuration) -> Result<Option<Error>> {
        let wanted = configuration.jdk.as_ref();
        match wanted.and_then(|wanted| jdk::choose(wanted, self.jdks, self.clock).err()) {
            Some(error) if !configuration.optional => Err(error.at(format!("configuration: {}", configuration.name))),
            error => Ok(error),
        }
    }

    /// Runs the build steps in order, unless all are up to date.
    fn build(&self, prepared: &mut PreparedSeries, sink: &mut dyn Sink) -> Result<()> {
        let subject = prepared.scenario.subject.clone();
        let own = prepared.scenario.configurations.iter().filter_map(|configuration| configuration.build.clone());
        let steps: Vec<String> = subject.build.iter().cloned().chain(own).collect();
        let commands: Vec<&str> = steps.iter().map(String::as_str).collect();
        if commands.is_empty() {
            return Ok(());
        }
        let folder = subject.dir.as_deref().unwrap_or(Path::new("."));
        let inputs = Inputs::read(folder, &commands);
        // A tool that an earlier build lacked might be installed now.
        let mut codes = prepared.scenario.configurations.iter().filter_map(|configuration| configuration.code.as_ref());
        let built = codes.all(|code| code.exists()) && inputs.as_ref().is_some_and(Inputs::are_built);
        if self.rebuild == Rebuild::IfChanged && built {
            sink.receive(&Event::Note("build: skipped, because nothing has changed (--rebuild runs it again)"));
            return Ok(());
        }
        let mut run = |command: &str| {
            sink.receive(&Event::Note(&format!("build: {command}")));
            self.spawner.build(command, subject.dir.as_deref(), self.interrupted)
        };
        if let Some(command) = &subject.build {
            run(command)?;
        }
        let mut failed = Vec::new();
        for configuration in &prepared.scenario.configurations {
            let Some(Err(error)) = configuration.build.as_deref().map(&mut run) else { continue };
            match configuration.optional && !(self.interrupted)() {
                true => failed.push((configuration.name.clone(), error)),
                false => return Err(error.at(format!("configuration: {}", configuration.name))),
            }
        }
        if let (Some(inputs), true) = (inputs, failed.is_empty())
            && let Err(trouble) = inputs.remember(&commands)
        {
            sink.receive(&Event::Warning(&format!("the build will run again next time: {}", trouble.what)));
        }
        prepared.leave_out(sink, |configuration| {
            let at = failed.iter().position(|(name, _)| *name == configuration.name);
            Ok(at.map(|at| failed.swap_remove(at).1))
        })
    }
}

impl PreparedSeries {
    /// Hashes all files that trials will read, each only once. An earlier hash must match.
    fn hash_inputs(&mut self, before: HashedBy, known: &mut inputs::KnownFiles) -> Result<()> {
        let scenario = &self.scenario;
        let plans = scenario.configurations.iter().map(|configuration| TrialPlan::of(scenario, configuration));
        let hashes: Vec<_> = plans.map(|plan| inputs::hash_of(&plan, known)).collect();
        for (configuration, found) in self.scenario.configurations.iter_mut().zip(hashes) {
            if configuration.inputs.is_some() && configuration.inputs != found {
                return Err(before.refuse().at(format!("configuration: {}", configuration.name)));
            }
            configuration.inputs = found;
        }
        Ok(())
    }

    fn leave_out(
        &mut self,
        sink: &mut dyn Sink,
        mut lacks: impl FnMut(&Configuration) -> Result<Option<Error>>,
    ) -> Result<()> {
        let mut left = Vec::new();
        for configuration in std::mem::take(&mut self.scenario.configurations) {
            let Some(error) = lacks(&configuration)? else {
                left.push(configuration);
                continue;
            };
            let why = std::iter::once(&error.what).chain(error.said.last()).cloned().collect::<Vec<_>>().join(": ");
            sink.receive(&Event::Note(&format!("{} is skipped: {why}", configuration.name)));
            self.left_out.push(LeftOutRecord { configuration: configuration.name, why });
        }
        self.scenario.configurations = left;
        match self.scenario.configurations.is_empty() {
            true => Err(self
                .left_out
                .iter()
                .fold(Error::machine("no configurations are left to run"), |error, out| {
                    error.at(format!("{}: {}", out.configuration, out.why))
                })
                .hint(
                    "`loadline doctor` lists the JDKs found; `optional: true` skips a configuration that cannot \
                       run",
                )),
            false => Ok(()),
        }
    }
}

/// The error for a configuration whose `{code}` an optional build did not produce.
fn missing_code(configuration: &Configuration) -> Option<Error> {
    let code = configuration.code.as_ref().filter(|code| configuration.optional && !code.exists())?;
    Some(Error::machine(format!("its code {} does not exist", code.display())))
}

/// Rejects an `{artifact}` that is not named, or is missing after all builds.
fn check_artifact(subject: &Subject) -> Result<()> {
    subject.check_artifact()?;
    match subject.artifact.as_deref().filter(|file| !file.is_file()) {
        Some(file) if file.is_dir() => {
            Err(Error::request(format!("the artifact {} is a directory", file.display())).hint("specify the jar in it"))
        }
        Some(file) => Err(Error::request(format!("the artifact {} does not exist", file.display()))
            .hint("build it first: `mvn package` creates `target/NAME-VERSION.jar`")),
        None => Ok(()),
    }
}

/// Removes trial directories that a killed Loadline left.
fn sweep(sink: &mut dyn Sink) {
    let swept = work_folder::sweep();
    match swept.removed {
        0 => {}
        1 => sink.receive(&Event::Note("removed 1 trial directory left by a killed Loadline process")),
        n => sink.receive(&Event::Note(&format!("removed {n} trial directories left by killed Loadline processes"))),
    }
    for (folder, why) in swept.left {
        sink.receive(&Event::Warning(&format!("the leftover {} could not be removed: {why}", folder.display())));
    }
}

/// Checks that the trusted certificates are readable. The load engine checks too, but only after the server has
/// started. Errors: `Request` if they are not.
pub fn check_certificates(tls: Option<&Tls>) -> Result<()> {
    let Some(ca) = tls.and_then(|tls| tls.ca.as_ref()) else { return Ok(()) };
    std::fs::metadata(ca).map(drop).map_err(|cause| {
        Error::request(format!("cannot read the certificates {}: {}", ca.display(), crate::error::plain(&cause)))
            .hint("specify a PEM file with `--ca`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;

    #[test]
    fn a_missing_artifact_is_rejected() {
        let text = "name: x\nsubject: {command: [java, -jar, '{artifact}']}\n\
            load: [steady: {closed: {connections: 1, requests: 1}, get: /}]\n";
        let mut subject = parse(text, Path::new("/x"), &[17]).unwrap().subject;
        let place = tempfile::tempdir().unwrap();
        let mut check = |file: Option<&Path>| {
            subject.artifact = file.map(Path::to_owned);
            check_artifact(&subject).map_err(|error| error.to_string())
        };
        let jar = place.path().join("a.jar");
        assert!(check(None).unwrap_err().contains("is not defined"));
        assert!(check(Some(&jar)).unwrap_err().contains("a.jar does not exist"));
        assert!(check(Some(place.path())).unwrap_err().contains("is a directory"));
        std::fs::write(&jar, "jar").unwrap();
        assert_eq!(check(Some(&jar)), Ok(()));
    }

    #[test]
    fn only_optional_code_may_be_missing() {
        let place = tempfile::tempdir().unwrap();
        let missing = |code: &str, optional: bool| {
            let code = Some(place.path().join(code));
            missing_code(&Configuration { code, optional, ..Configuration::default() }).is_some()
        };
        assert!(missing("absent", true));
        assert!(!missing("absent", false) && !missing(".", true) && !missing(".", false));
        assert!(missing_code(&Configuration { optional: true, ..Configuration::default() }).is_none());
    }

    #[test]
    fn omitted_configurations_are_noted_and_omitting_all_is_an_error() {
        struct Said(Vec<String>);
        impl Sink for Said {
            fn receive(&mut self, event: &Event<'_>) {
                if let Event::Note(text) = event {
                    self.0.push((*text).to_owned());
                }
            }
        }
        let text = "name: x\nsubject: {command: [java, -jar, a.jar]}\nconfigurations: {a: {}, b: {}}\n\
                    load: [{steady: {closed: {requests: 1}, get: /}}]\n";
        let mut prepared =
            PreparedSeries { scenario: parse(text, Path::new("/x"), &[]).unwrap(), left_out: Vec::new() };
        let mut said = Said(Vec::new());
        let lacks = |name: &'static str| {
            move |of: &Configuration| {
                let error = Error::machine("no JDK 99").said(vec!["first".to_owned(), "last".to_owned()]);
                Ok((of.name == name).then_some(error))
            }
        };
        prepared.leave_out(&mut said, lacks("a")).unwrap();
        assert_eq!(said.0, ["a is skipped: no JDK 99: last"]);
        let names: Vec<_> = prepared.scenario.configurations.iter().map(|of| of.name.as_str()).collect();
        assert_eq!((names, prepared.left_out[0].configuration.as_str()), (vec!["b"], "a"));
        let error = prepared.leave_out(&mut said, lacks("b")).unwrap_err();
        assert_eq!(error.what, "no configurations are left to run");
        assert_eq!(error.context, ["a: no JDK 99: last", "b: no JDK 99: last"]);
    }

    #[test]
    fn a_series_resumes_only_with_unchanged_files() {
        let place = tempfile::tempdir().unwrap();
        let jar = place.path().join("a.jar");
        std::fs::write(&jar, "one").unwrap();
        let text = "name: x\nsubject: {command: [java, -jar, a.jar], port: 80}\n\
                    load: [{steady: {closed: {requests: 1}, get: /}}]\n";
        let mut prepared = PreparedSeries { scenario: parse(text, place.path(), &[]).unwrap(), left_out: Vec::new() };
        prepared.hash_inputs(HashedBy::Trials, &mut inputs::KnownFiles::default()).unwrap();
        let hash = prepared.scenario.configurations[0].inputs.clone();
        assert!(hash.is_some());
        prepared.hash_inputs(HashedBy::Trials, &mut inputs::KnownFiles::default()).unwrap();
        assert_eq!(prepared.scenario.configurations[0].inputs, hash);
        std::fs::write(&jar, "two").unwrap();
        let error = prepared.hash_inputs(HashedBy::Trials, &mut inputs::KnownFiles::default()).unwrap_err();
        assert!(error.what.contains("differ from those of earlier trials"), "{error}");
        let error = prepared.hash_inputs(HashedBy::Plan, &mut inputs::KnownFiles::default()).unwrap_err();
        assert!(error.what.contains("differ from those of the plan"), "{error}");
    }
}
