//! The settings for tuning: the metric to minimize, the allowed price, and the remedies to try and to skip.

use super::Change;
use super::budget::Budget;
use super::compare::Share;
use super::schema;
use super::validate::{minutes, within};
use super::written::{each_parsed, parsed};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

worded! {
    /// The metric that tuning minimizes.
    #[derive(Default)]
    Objective {
        /// The larger of RSS after the load and after the rest.
        #[default]
        Rss = "rss",
        /// RSS after the load.
        Loaded = "rss.loaded",
        /// RSS after the idle phase.
        Rested = "rss.rested",
        /// The peak RSS.
        Peak = "rss.peak",
        /// Anonymous memory, which the kernel cannot reclaim; the result also has the smallest limits.
        Limit = "limit",
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::of_word(text).map_err(|words| {
            format!(
                "`{text}` is not something that tuning can reduce; use one of \
             {words}"
            )
        })
    }
}

/// A remedy that a user names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Try {
    /// The text as given.
    pub text: String,
    /// The change that it makes.
    pub change: Change,
}

impl FromStr for Try {
    type Err = String;

    /// `env.NAME=VALUE`, a JVM option, or `args.WORD` for an argument of the program.
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            Err(format!(
                "`{text}` cannot be tried; write a JVM option (`-Xss512k`, `-Dname=value`), an environment \
                 variable (`env.MALLOC_ARENA_MAX=2`) or a program argument (`args.--threads=50`)"
            ))
        };
        let change = match (text.strip_prefix("env."), text.strip_prefix("args.")) {
            (Some(variable), _) => match variable.split_once('=') {
                Some((name, value)) if !name.is_empty() && !name.contains(char::is_whitespace) => {
                    Change::Env(vec![(name.to_owned(), value.to_owned())])
                }
                _ => return refuse(),
            },
            (_, Some(word)) if !word.is_empty() => Change::Args(vec![word.to_owned()]),
            _ if text.starts_with('-') && text.len() > 2 && !text.contains(char::is_whitespace) => {
                Change::Jvm(vec![text.to_owned()])
            }
            _ => return refuse(),
        };
        Ok(Self { text: text.to_owned(), change })
    }
}

/// How to tune.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Tune {
    /// The metric to minimize.
    pub objective: Objective,
    /// The allowed increase in CPU time per request, as a share.
    pub price: f64,
    /// Additional CPUs that the subject may use, whatever their share; 0 if the user gave a share, and in older
    /// archives.
    #[serde(default)]
    pub price_cpus: f64,
    /// CPUs that a saved byte is worth when a result is confirmed; 0 if the user gave a share, and in older archives.
    #[serde(default)]
    pub cpus_per_byte: f64,
    /// The user's own remedies.
    pub tries: Vec<Try>,
    /// IDs of remedies to skip.
    pub skip: Vec<String>,
    /// The user's own flags that remedies may replace, as given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub may_remove: Vec<String>,
    /// The maximum tuning time in minutes; to stay within it, tuning skips candidates, but never the confirmation.
    pub minutes: Option<f64>,
    /// The maximum number of trials in the search for the winner, not counting the confirmation.
    pub trials_max: u32,
    /// Keeps closed phases closed.
    pub closed: bool,
    /// Whether to find the smallest limits as well, with the original settings and with the winner.
    pub find: bool,
    /// Allocators that the loader can find, in the form used to preload them.
    pub allocators: Vec<String>,
    /// The directory for class archives that trials make; without a directory, none are made.
    pub scratch: Option<String>,
}

impl Default for Tune {
    fn default() -> Self {
        Self {
            objective: Objective::default(),
            price: 0.02,
            price_cpus: PRICE_CPUS,
            cpus_per_byte: CPUS_PER_BYTE,
            tries: Vec::new(),
            skip: Vec::new(),
            may_remove: Vec::new(),
            minutes: None,
            trials_max: 40,
            closed: false,
            find: false,
            allocators: Vec::new(),
            scratch: None,
        }
    }
}

/// How to tune a scenario.
#[derive(Debug, Clone, Default, Deserialize, clap::Args, schemars::JsonSchema)]
#[schemars(rename = "TuneFile")]
#[command(next_help_heading = "Tuning")]
#[serde(deny_unknown_fields, default)]
pub struct TuneSettings {
    /// Condition that every trial must meet: `p99<50ms`, `rate>=98%`, `failed==0` (repeatable) [default: failed==0 and
    /// rate>=98%; rate>=90% with `--closed`]
    #[arg(long, value_name = "TARGET")]
    #[serde(skip)]
    pub target: Vec<Budget>,
    /// Metric to minimize: the larger of RSS after the load and after the rest, either of them, the peak, or anonymous
    /// memory, which the kernel cannot reclaim.
    #[arg(long, value_name = "WHAT", help = OBJECTIVE)]
    #[schemars(with = "Option<Objective>", extend("default" = "rss"))]
    pub objective: Option<Objective>,
    /// Maximum increase in CPU time per request, as a share. Default: the largest of 2%, 10 millicores, and one core
    /// per 4 GiB saved.
    #[arg(long, value_name = "PERCENT", value_parser = price)]
    #[arg(help = PRICE)]
    #[schemars(with = "Option<schema::Step>")]
    #[serde(deserialize_with = "parsed")]
    pub price: Option<Share>,
    /// Your own remedies: a JVM option, `env.NAME=VALUE`, or `args.WORD`.
    #[arg(long = "try", value_name = "CHANGE", allow_hyphen_values = true)]
    #[arg(help = "Also try your own remedy: a JVM option, `env.NAME=VALUE`, or `args.WORD` (repeatable)")]
    #[schemars(with = "Vec<String>")]
    #[serde(rename = "try", deserialize_with = "each_parsed")]
    pub tries: Vec<Try>,
    /// IDs of remedies to skip, or ID prefixes.
    #[arg(long, value_name = "ID", help = SKIP)]
    pub skip: Vec<String>,
    /// Your own flags that remedies can remove, such as `-Xmn` or `DisableExplicitGC`.
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true, help = MAY_REMOVE)]
    pub may_remove: Vec<String>,
    /// Maximum tuning time in minutes; skips the least promising remedies.
    #[arg(long, value_name = "N", help = MINUTES)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub minutes: Option<f64>,
    /// Maximum number of trials, not counting the confirmation.
    #[arg(long, value_name = "N", help = TRIALS_MAX)]
    #[schemars(extend("minimum" = 1, "maximum" = 1000, "default" = 40))]
    pub trials_max: Option<u32>,
    /// Keep closed phases closed instead of holding them at the rate of the first trial.
    #[arg(long, help = "Keep closed phases closed instead of holding them at the rate of the first trial")]
    pub closed: bool,
    /// Also find the smallest limits, with the original and with the confirmed settings.
    #[arg(long, help = "Also find the smallest limits, with the original and with the confirmed settings")]
    pub find: bool,
}

const OBJECTIVE: &str = "Metric to reduce: rss (the larger of loaded and rested), rss.loaded, rss.rested, rss.peak, \
     or limit [default: rss]";
const PRICE: &str = "Maximum increase in CPU time per request [default: 2%, 10 millicores, or one core per 4 GiB \
     saved, whichever is largest]";
const SKIP: &str = "Skip a remedy, by id or id prefix as in `--list` (repeatable)";
const MAY_REMOVE: &str =
    "Let remedies remove this flag from your command: `-Xmn`, `DisableExplicitGC`, `-javaagent` (repeatable)";
const MINUTES: &str = "Maximum tuning time in minutes; skips the least promising remedies, never the confirmation";
const TRIALS_MAX: &str = "Maximum number of trials, not counting the confirmation [default: 40]";

fn price(text: &str) -> std::result::Result<Share, String> {
    let price = text.parse().ok().filter(|share: &Share| (0.0..=1.0).contains(&share.value()));
    price.ok_or_else(|| format!("`{text}` is not a percentage between 0% and 100%; write it as `2%`"))
}

/// The smallest increment in which CPU is requested and billed: 10 millicores. If a server uses less than half a core,
/// 2% of its CPU time is less than this, and no memory saving should be rejected for so little CPU.
const PRICE_CPUS: f64 = 0.010;
/// CPUs per byte: general-purpose machines are sold with 4 GiB per core (AWS m7, Azure Dv5, Google Cloud n2-standard,
/// 2026).
const CPUS_PER_BYTE: f64 = 1.0 / (4096.0 * crate::units::MIB as f64);

impl Tune {
    /// Applies the given settings; others keep their values.
    pub fn apply(&mut self, of: TuneSettings) {
        self.objective = of.objective.unwrap_or(self.objective);
        if let Some(price) = of.price {
            (self.price, self.price_cpus, self.cpus_per_byte) = (price.value(), 0.0, 0.0);
        }
        self.tries.extend(of.tries);
        self.skip.extend(of.skip);
        self.may_remove.extend(of.may_remove);
        self.minutes = of.minutes.or(self.minutes);
        self.trials_max = of.trials_max.unwrap_or(self.trials_max);
        self.closed |= of.closed;
        self.find |= of.find || self.objective == Objective::Limit;
    }

    /// Checks constraints beyond types. Errors: `Request`, naming the first invalid value and its valid range.
    pub(super) fn validate(&self) -> Result<()> {
        within("tune.trials_max", u64::from(self.trials_max), 1, 1000)?;
        minutes(self.minutes)?;
        match (0.0..=1.0).contains(&self.price) {
            true => Ok(()),
            false => {
                Err(Error::request(format!("`tune.price` is {}%; it must be between 0% and 100%", self.price * 100.0)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_is_an_option_variable_or_argument() {
        let of = |text: &str| text.parse::<Try>().map(|of| of.change);
        assert_eq!(of("-Da.b=50"), Ok(Change::Jvm(vec!["-Da.b=50".to_owned()])));
        assert_eq!(
            of("env.MALLOC_ARENA_MAX=2"),
            Ok(Change::Env(vec![("MALLOC_ARENA_MAX".to_owned(), "2".to_owned())]))
        );
        assert_eq!(of("args.--threads=50"), Ok(Change::Args(vec!["--threads=50".to_owned()])));
        for wrong in ["", "-", "-X y", "env.", "env.A", "env.=1", "args.", "MALLOC_ARENA_MAX=2", "env.A B=1"] {
            assert!(of(wrong).unwrap_err().contains("cannot be tried"), "{wrong}");
        }
    }

    #[test]
    fn every_objective_round_trips() {
        for objective in Objective::ALL {
            assert_eq!(objective.word().parse(), Ok(objective));
            assert_eq!(serde_json::to_string(&objective).unwrap(), format!("\"{objective}\""));
        }
        assert!("weight".parse::<Objective>().unwrap_err().contains("rss.loaded"));
    }
}
