//! Doubts about trials, and accounts, that are compared: what makes them unlike each other, or too few. JSON lists
//! these doubts among the others; their kind tells them apart.

use crate::units::{Bytes, grouped, several};
use serde::{Deserialize, Serialize};

doubts! {
    /// A reason to distrust a comparison.
    Comparing {
        /// Configurations that were asked for differently are the same JVM in force.
        EqualConfigurations {
            /// Their names.
            configurations: Vec<String>,
        } => {
            let names = configurations.join(", ");
            format!("equal configurations: {names} ended with the same flags, collector and command")
        },
            "read any difference between them as noise; the options that were ignored are among the doubts of \
                 their trials";
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
        } => {
            let (fewer, more) = (grouped(*ok_least), grouped(*ok_most));
            format!("unequal work: in {phase} {least} gave {fewer} correct answers, {most} {more}")
        },
            "plan the phase by `requests`, or an open model: memory depends on the work that was done";
        /// A phase is too short to see whether the JVM was warm in it.
        WarmthUnknown {
            /// The phase affected.
            phase: String,
            /// The fewest correct answers of a trial.
            answers: u64,
            /// Trials with too few of them.
            trials: u64,
        } => {
            let (answers, trials) = (grouped(*answers), several(*trials, "trial"));
            format!("warmth cannot be judged in {phase}: {answers} answers are too few (in {trials})")
        },
            "take a phase of 2,000 answers or more: `--duration`, `--requests`, or a higher rate";
        /// Trials of one configuration ran on different JVMs.
        DifferentBuilds {
            /// The configuration.
            configuration: String,
            /// Versions, as the JVMs say them.
            versions: Vec<String>,
        } => format!("different JVM builds: {configuration} ran on {}", versions.join(", ")),
            "give each build a configuration of its own (`jdk`)";
        /// The load generator may have been the limit in trials that are compared.
        GeneratorLimit {
            /// The phase affected.
            phase: String,
            /// The configurations affected.
            configurations: Vec<String>,
        } => {
            let names = configurations.join(", ");
            format!("compared at the generator's limit: in {phase} it was nearly always busy with {names}")
        },
            "do not read equal rates as equal speed; compare the CPU per 1,000 answers, or the times in an open \
                 model";
        /// Two archives were recorded at different times, not in common blocks.
        NotInterleaved {
            /// When the first archive began, UTC.
            first: String,
            /// When the second one began.
            second: String,
        } => format!("not interleaved: one archive was recorded at {first}, the other at {second}"),
            "what the machine did in between is in the difference: run both in one `loadline compare`";
        /// An optional configuration could not run here.
        LeftOut {
            /// Its name.
            configuration: String,
            /// The part that it lacks.
            why: String,
        } => format!("left out: {configuration} could not run here: {why}"),
            "install what it lacks (`loadline doctor` lists the JDKs found), or drop it";
        /// Part of a comparison was asked for and could not be judged.
        NotJudged {
            /// Why, a sentence each.
            reasons: Vec<String>,
        } => format!("not judged: {}", reasons.join("; ")),
            "name metrics that every trial has (`--csv -` lists them)";
        /// Two archives differ in more than what is compared.
        ArchivesDiffer {
            /// What, and how it was in each.
            differences: Vec<String>,
        } => format!("the archives differ in more than their configurations: {}", differences.join("; ")),
            "repeat one of them under the conditions of the other";
        /// A comparison rests on fewer than five blocks.
        FewBlocks {
            /// How many count.
            blocks: u32,
        } => format!("few blocks: the comparison rests on {}, fewer than 5", several(u64::from(*blocks), "block")),
            "run at least 5 trials of each configuration (`--trials 5`)";
        /// Trials of one configuration were weighed while some JVMs still held what their compilers had worked with.
        CompilerMemory {
            /// The configuration.
            configuration: String,
            /// The mark affected.
            mark: String,
            /// By how much live memory of malloc differs among its trials.
            spread_bytes: u64,
        } => {
            let spread = Bytes(*spread_bytes);
            format!("compiler memory: at `{mark}` live malloc differs by {spread} among trials of {configuration}")
        },
            "rest for 12 s (`--rest 12s`), and judge `rss_in_use.rested`: HotSpot gives back what its compilers \
                 worked with up to 5 s after their last work";
        /// The earlier of two accounts is of another process.
        AnotherProcess {
            /// The differences that show it.
            differences: Vec<String>,
        } => format!("the earlier account is of another process: {}", differences.join("; ")),
            "read the differences as those of two processes; an account kept with `--json` is one of this process";
    }
}
