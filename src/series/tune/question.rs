//! The request for a tuning: its configuration, target, candidates, and the limits to find afterward.

use super::strategy::Tuner;
use crate::comparison;
use crate::diagnosis::remedy::{TABLE, begins};
use crate::error::{Error, Result};
use crate::scenario::{Change, Kind, MarkPoint, Scenario, TuneSettings};
use crate::series::search;

/// Subdirectories of the tuning for its two load lines.
pub(crate) const LINE_AS_IS: &str = "line-as-it-is";
/// See [`LINE_AS_IS`].
pub(crate) const LINE_TUNED: &str = "line-tuned";

/// Applies tuning options to a scenario and checks the result. Errors: `Request`, as [`Scenario::validate`] and
/// [`check`].
pub(crate) fn settle(scenario: &mut Scenario, typed: TuneSettings) -> Result<()> {
    if !typed.target.is_empty() {
        scenario.find.target.clone_from(&typed.target);
    }
    scenario.tune.apply(typed);
    if scenario.find.target.is_empty() {
        let opens = scenario.load.is_open() || !scenario.tune.closed;
        scenario.find.target = search::usual_target(opens)?;
    }
    scenario.marks = scenario.marks_possible().into_iter().filter(|mark| *mark != MarkPoint::Trimmed).collect();
    scenario.validate()?;
    check(scenario)
}

/// Checks that a scenario can be tuned. Errors: `Request`, naming the problem in its configurations, load, target, or
/// remedies.
pub(crate) fn check(scenario: &Scenario) -> Result<()> {
    if let [_, _, ..] = scenario.configurations.as_slice() {
        let names: Vec<&str> = scenario.configurations.iter().map(|of| of.name.as_str()).collect();
        return Err(Error::request("tuning allows only one configuration")
            .hint(format!("choose one of them with `--only`: {}", names.join(", "))));
    }
    Tuner::new(scenario)?;
    if scenario.subject.kind == Kind::Native {
        return Err(Error::request("remedies apply only to JVMs, but the server is `kind: native`")
            .hint("`loadline compare --vary` can vary a native program's variables and preloaded libraries"));
    }
    let phases = scenario.load.works();
    for target in &scenario.find.target {
        comparison::check_target(target, &phases).map_err(Error::request)?;
    }
    for skip in &scenario.tune.skip {
        let known = TABLE.iter().any(|remedy| begins(remedy.id, skip));
        if !known {
            let near = TABLE.iter().min_by_key(|remedy| strsim::damerau_levenshtein(skip, remedy.id));
            let near = near.map_or_else(String::new, |remedy| format!("; did you mean `{}`?", remedy.id));
            return Err(
                Error::request(format!("no remedy is named `{skip}`{near}")).hint("`loadline tune --list` lists them")
            );
        }
    }
    Ok(())
}

/// The scenarios whose smallest limits are to be found, with their directories: unchanged, and with the confirmed
/// settings.
pub(crate) fn lines(scenario: &Scenario, proved: Option<&[Change]>) -> Vec<(&'static str, Scenario)> {
    let Some(changes) = proved else { return Vec::new() };
    let mut as_is = scenario.clone();
    as_is.load.drop_last_rest();
    let mut tuned = as_is.clone();
    let configuration = tuned.configurations.iter_mut();
    configuration.for_each(|of| changes.iter().cloned().for_each(|change| change.apply(of)));
    vec![(LINE_AS_IS, as_is), (LINE_TUNED, tuned)]
}
