//! The size of a comparison before it begins.

use crate::scenario::{PhaseKind, Scenario};
use crate::units::several;
use std::fmt;

/// Fewer blocks rarely decide anything; more take longer.
pub const BLOCKS: u32 = 5;
/// A comparison that takes longer than this needs the user's consent.
const ASK_MINUTES: f64 = 30.0;
/// More trials than this need the user's consent, however short they seem.
const ASK_TRIALS: u64 = 60;
/// Minimum time per trial in addition to its load (start, marks, end), measured on small servers.
const TRIAL_SECONDS: f64 = 1.0;

/// The trials to come, and their minimum duration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extent {
    configurations: u64,
    blocks: u32,
    trials: u64,
    minutes: f64,
}

impl Extent {
    /// The extent of the planned blocks. Work defined by a request count adds nothing: its duration depends on the
    /// subject.
    pub fn of(scenario: &Scenario) -> Self {
        let seconds = |kind: &PhaseKind| match kind {
            PhaseKind::Idle(span) => span.as_s(),
            PhaseKind::Work(work) => work.schedule.seconds().unwrap_or(0.0),
            PhaseKind::Driver(_) | PhaseKind::Own(_) => 0.0,
        };
        let of_trial = TRIAL_SECONDS + scenario.load.iter().map(|phase| seconds(&phase.kind)).sum::<f64>();
        let configurations = scenario.configurations.len() as u64;
        let trials = configurations * u64::from(scenario.trials);
        Self { configurations, blocks: scenario.trials, trials, minutes: trials as f64 * of_trial / 60.0 }
    }

    /// The minimum duration in minutes.
    pub fn minutes(&self) -> f64 {
        self.minutes
    }

    /// The number of trials.
    pub fn trials(&self) -> u64 {
        self.trials
    }

    /// The minimum duration in words.
    pub fn span(&self) -> String {
        match self.minutes < 1.0 {
            true => several((self.minutes * 60.0) as u64, "second"),
            false => several(self.minutes as u64, "minute"),
        }
    }

    /// Whether to ask the user before starting.
    pub fn is_long(&self) -> bool {
        self.minutes > ASK_MINUTES || self.trials > ASK_TRIALS
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { configurations, blocks, trials, .. } = *self;
        let (configurations, blocks) = (several(configurations, "configuration"), several(blocks.into(), "block"));
        write!(f, "{configurations} in {blocks}: {}, at least {}", several(trials, "trial"), self.span())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;
    use std::path::Path;

    #[test]
    fn long_or_numerous_trials_need_confirmation() {
        let of = |trials: u32, load: &str| {
            let text = format!(
                "name: x\nsubject: {{command: [x], port: 80}}\nconfigurations: {{a: {{}}, b: {{}}}}\ntrials: {trials}\n\
                 load: [{{steady: {{closed: {{{load}}}, get: /}}}}, {{rest: {{idle: 6s}}}}]\n"
            );
            Extent::of(&parse(&text, Path::new("."), &[]).unwrap())
        };
        let short = of(2, "requests: 1");
        assert_eq!(short.to_string(), "2 configurations in 2 blocks: 4 trials, at least 28 seconds");
        assert!(!short.is_long());
        let slow = of(30, "duration: 20s");
        assert_eq!((slow.to_string().ends_with("60 trials, at least 27 minutes"), slow.is_long()), (true, false));
        assert!(of(30, "duration: 24s").is_long() && of(31, "requests: 1").is_long());
    }
}
