//! Doubts about trials, and accounts, that are compared: what makes them unlike each other, or too few. In JSON they
//! stand among the others, told apart by their kind.

use crate::units::{Bytes, grouped, several};
use serde::{Deserialize, Serialize};

/// A reason to distrust a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Comparing {
    /// Configurations that were asked for differently are the same JVM in force.
    EqualConfigurations {
        /// Their names.
        configurations: Vec<String>,
    },
    /// The configurations did not do the same work in a phase.
    UnequalWork {
        /// The phase affected.
        phase: String,
        /// The configuration with the fewest correct answers.
        least: String,
        /// How many, in its median trial.
        ok_least: u64,
        /// The configuration with the most.
        most: String,
        /// How many, in its median trial.
        ok_most: u64,
    },
    /// Trials of one configuration ran on different JVMs.
    DifferentBuilds {
        /// The configuration.
        configuration: String,
        /// Versions, as the JVMs say them.
        versions: Vec<String>,
    },
    /// The load generator may have been the limit in trials that are compared.
    GeneratorLimit {
        /// The phase affected.
        phase: String,
        /// The configurations affected.
        configurations: Vec<String>,
    },
    /// Two archives were recorded at different times, not in common blocks.
    NotInterleaved {
        /// When the first archive began, UTC.
        first: String,
        /// When the second one began.
        second: String,
    },
    /// An optional configuration could not run here.
    LeftOut {
        /// Its name.
        configuration: String,
        /// The part that it lacks.
        why: String,
    },
    /// Part of a comparison was asked for and could not be judged.
    NotJudged {
        /// Why, a sentence each.
        reasons: Vec<String>,
    },
    /// Two archives differ in more than what is compared.
    ArchivesDiffer {
        /// What, and how it was in each.
        differences: Vec<String>,
    },
    /// A comparison rests on fewer than five blocks.
    FewBlocks {
        /// How many count.
        blocks: u32,
    },
    /// Trials of one configuration were weighed while some JVMs still held what their compilers had worked with.
    CompilerMemory {
        /// The configuration.
        configuration: String,
        /// The mark affected.
        mark: String,
        /// By how much live memory of malloc differs among its trials.
        spread_bytes: u64,
    },
    /// The earlier of two accounts is of another process.
    AnotherProcess {
        /// The differences that show it.
        differences: Vec<String>,
    },
}

impl Comparing {
    /// Returns what was seen, in one sentence.
    pub(super) fn text(&self) -> String {
        match self {
            Self::EqualConfigurations { configurations } => {
                let names = configurations.join(", ");
                format!("equal configurations: {names} ended with the same flags, collector and command")
            }
            Self::UnequalWork { phase, least, ok_least, most, ok_most } => {
                let (fewer, more) = (grouped(*ok_least), grouped(*ok_most));
                format!("unequal work: in {phase} {least} gave {fewer} correct answers, {most} {more}")
            }
            Self::DifferentBuilds { configuration, versions } => {
                format!("different JVM builds: {configuration} ran on {}", versions.join(", "))
            }
            Self::GeneratorLimit { phase, configurations } => {
                let names = configurations.join(", ");
                format!("compared at the generator's limit: in {phase} it was nearly always busy with {names}")
            }
            Self::NotInterleaved { first, second } => {
                format!("not interleaved: one archive was recorded at {first}, the other at {second}")
            }
            Self::LeftOut { configuration, why } => format!("left out: {configuration} could not run here: {why}"),
            Self::NotJudged { reasons } => format!("not judged: {}", reasons.join("; ")),
            Self::ArchivesDiffer { differences } => {
                format!("the archives differ in more than their configurations: {}", differences.join("; "))
            }
            Self::FewBlocks { blocks } => {
                format!("few blocks: the comparison rests on {}, fewer than 5", several(u64::from(*blocks), "block"))
            }
            Self::CompilerMemory { configuration, mark, spread_bytes } => {
                let spread = Bytes(*spread_bytes);
                format!("compiler memory: at `{mark}` live malloc differs by {spread} among trials of {configuration}")
            }
            Self::AnotherProcess { differences } => {
                format!("the earlier account is of another process: {}", differences.join("; "))
            }
        }
    }

    /// One thing to do about it.
    pub(super) fn next(&self) -> &'static str {
        match self {
            Self::EqualConfigurations { .. } => {
                "read any difference between them as noise; the options that were ignored are among the doubts of \
                 their trials"
            }
            Self::UnequalWork { .. } => {
                "plan the phase by `requests`, or an open model: memory depends on the work that was done"
            }
            Self::DifferentBuilds { .. } => "give each build a configuration of its own (`jdk`)",
            Self::GeneratorLimit { .. } => {
                "do not read equal rates as equal speed; compare the CPU per 1,000 answers, or the times in an open \
                 model"
            }
            Self::NotInterleaved { .. } => {
                "what the machine did in between is in the difference: run both in one `loadline compare`"
            }
            Self::LeftOut { .. } => "install what it lacks (`loadline doctor` lists the JDKs found), or drop it",
            Self::NotJudged { .. } => "name metrics that every trial has (`--csv -` lists them)",
            Self::ArchivesDiffer { .. } => "repeat one of them under the conditions of the other",
            Self::FewBlocks { .. } => "run at least 5 trials of each configuration (`--trials 5`)",
            Self::CompilerMemory { .. } => {
                "rest for 12 s (`--rest 12s`), and judge `rss_in_use.rested`: HotSpot gives back what its compilers \
                 worked with up to 5 s after their last work"
            }
            Self::AnotherProcess { .. } => {
                "read the differences as those of two processes; an account kept with `--json` is one of this process"
            }
        }
    }
}
