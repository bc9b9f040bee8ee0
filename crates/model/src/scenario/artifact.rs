//! A build tool's output file, used as `{artifact}`. A scenario leaves it open; `--artifact` names it.

use super::Subject;
use crate::error::{Error, Result};
use std::path::Path;

const PLACEHOLDER: &str = "{artifact}";

impl Subject {
    /// Applies `--artifact`. Checks that `{artifact}` has a file, and that a file, if given, has an `{artifact}` to
    /// replace. Errors: `Request`, as for [`Subject::check_artifact`], or if the file has no effect.
    pub(super) fn take_artifact(&mut self, typed: Option<&Path>) -> Result<()> {
        if typed.is_some() && !self.names_artifact() {
            return Err(Error::request("`--artifact` has no effect: the command does not contain `{artifact}`")
                .hint("write it instead of the jar: `[java, -jar, \"{artifact}\"]`"));
        }
        self.artifact = typed.map(Path::to_owned).or(self.artifact.take());
        self.check_artifact()
    }

    /// Checks that `{artifact}` has a file if the command or an environment variable contains it. Errors: `Request` if
    /// the file is missing.
    pub fn check_artifact(&self) -> Result<()> {
        match self.artifact {
            None if self.names_artifact() => Err(Error::request(
                "the command contains `{artifact}`, which is not \
                 defined",
            )
            .hint("specify the file that the build creates: `--artifact target/app.jar`")),
            _ => Ok(()),
        }
    }

    fn names_artifact(&self) -> bool {
        let values = self.env.iter().map(|(_, value)| value);
        self.command.iter().chain(values).any(|word| word.contains(PLACEHOLDER))
    }
}

#[cfg(test)]
mod tests {
    use super::super::scenario_of;
    use super::*;

    #[test]
    fn an_artifact_and_its_placeholder_require_each_other() {
        let take = |subject: &str, typed: Option<&str>| {
            let mut subject = scenario_of(subject, "").unwrap().subject;
            subject.take_artifact(typed.map(Path::new)).map(|()| subject.artifact)
        };
        let (with, by_env) = ("command: [java, -jar, '{artifact}']", "command: [./start], env: {JAR: '{artifact}'}");
        for subject in [with, by_env] {
            assert_eq!(take(subject, Some("a.jar")).unwrap().as_deref(), Some(Path::new("a.jar")));
            let error = take(subject, None).unwrap_err().to_string();
            assert!(error.contains("is not defined") && error.contains("--artifact"), "{error}");
        }
        let error = take("command: [java, -jar, a.jar]", Some("a.jar")).unwrap_err().to_string();
        assert!(error.contains("`--artifact` has no effect"), "{error}");
        assert_eq!(take("command: [java, -jar, a.jar]", None).unwrap(), None);
    }

    #[test]
    fn a_plan_includes_the_artifact_and_its_contents_as_an_input() {
        let mut scenario = scenario_of("command: [java, -jar, '{artifact}']", "").unwrap();
        scenario.subject.take_artifact(Some(Path::new("/base/target/a.jar"))).unwrap();
        let plan = super::super::TrialPlan::of(&scenario, &scenario.configurations[0]);
        assert!(plan.files().contains(&"/base/target/a.jar".into()), "{:?}", plan.files());
        let handed = plan.clone().seen_from(Path::new("/base"));
        assert_eq!(handed.subject.artifact.as_deref(), Some(Path::new("target/a.jar")));
        let text = serde_json::to_string(&handed).unwrap();
        let read: super::super::TrialPlan = serde_json::from_str(&text).unwrap();
        assert_eq!(read.put_into(Path::new("/base")), plan);
    }
}
