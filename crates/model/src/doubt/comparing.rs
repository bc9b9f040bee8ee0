//! Doubts about compared trials and accounts: differences other than the change, or too few trials. In JSON, they are
//! among the other doubts, identified by kind.

use crate::units::{Bytes, grouped, several};
use serde::{Deserialize, Serialize};

doubts! {
    /// A reason to distrust a comparison.
    Comparing {
        /// Configurations with different settings are the same JVM in effect.
        EqualConfigurations {
            /// Their names.
            configurations: Vec<String>,
        } => {
            let names = configurations.join(", ");
            format!("identical configurations: {names} ended up with the same flags, collector, and command")
        },
            "any difference between them is noise; the doubts of their trials list the options that were ignored";
        /// The configurations did not do the same work in a phase.
        UnequalWork {
            /// The affected phase.
            phase: String,
            /// The configuration with the fewest correct responses.
            least: String,
            /// Correct responses in its median trial.
            ok_least: u64,
            /// The configuration with the most.
            most: String,
            /// Correct responses in its median trial.
            ok_most: u64,
        } => {
            let (fewer, more) = (grouped(*ok_least), grouped(*ok_most));
            format!("unequal work: in {phase}, {least} returned {fewer} successful responses, {most} {more}")
        },
            "end the phase after a number of `requests`, or use an open model: memory depends on the amount of work";
        /// A phase is too short to show whether the JVM was warm.
        WarmthUnknown {
            /// The affected phase.
            phase: String,
            /// The fewest correct responses in a trial.
            answers: u64,
            /// Number of trials with too few.
            trials: u64,
        } => {
            let (answers, trials) = (grouped(*answers), several(*trials, "trial"));
            format!("cannot tell whether {phase} was warm: {answers} responses are too few (in {trials})")
        },
            "use a phase of at least 2,000 responses: raise `--duration`, `--requests`, or the rate";
        /// Trials of one configuration ran on different JVMs.
        DifferentBuilds {
            /// The configuration.
            configuration: String,
            /// Versions, as the JVMs report them.
            versions: Vec<String>,
        } => format!("different JVM builds: {configuration} ran on {}", versions.join(", ")),
            "make each build its own configuration (`jdk`)";
        /// The load generator may have been the bottleneck in compared trials.
        GeneratorLimit {
            /// The affected phase.
            phase: String,
            /// The affected configurations.
            configurations: Vec<String>,
        } => {
            let names = configurations.join(", ");
            format!("the load generator was the bottleneck: in {phase}, it was almost always busy with {names}")
        },
            "equal rates do not mean equal speed; compare the CPU per 1,000 responses, or the times in an open \
             model";
        /// Two archives were recorded at different times, not in the same blocks.
        NotInterleaved {
            /// When the first archive began, UTC.
            first: String,
            /// When the second one began.
            second: String,
        } => format!("not interleaved: one archive was recorded at {first}, the other at {second}"),
            "the difference includes whatever changed on the machine in between: run both in one `loadline \
             compare`";
        /// An optional configuration could not run on this machine.
        LeftOut {
            /// Its name.
            configuration: String,
            /// The unmet requirement.
            why: String,
        } => format!("skipped: {configuration} could not run on this machine: {why}"),
            "install what is missing (`loadline doctor` lists the JDKs found), or remove the configuration";
        /// A requested part of a comparison could not be judged.
        NotJudged {
            /// The reasons, one sentence each.
            reasons: Vec<String>,
        } => format!("not judged: {}", reasons.join("; ")),
            "name metrics that every trial has (`--csv -` lists them)";
        /// Two archives differ in more than their configurations.
        ArchivesDiffer {
            /// The differences, with the value in each archive.
            differences: Vec<String>,
        } => format!("the archives differ in more than their configurations: {}", differences.join("; ")),
            "repeat one of them under the same conditions as the other";
        /// The archive that budgets compare with was measured under other conditions.
        BaselineDiffers {
            /// The archive.
            archive: String,
            /// The differences, with the value in the baseline and now.
            differences: Vec<String>,
        } => {
            let differences = differences.join("; ");
            format!("different conditions: this run and the baseline {archive} differ in {differences}")
        },
            "if this is not the change to judge, measure the baseline again under the same conditions";
        /// A comparison is based on fewer than five blocks.
        FewBlocks {
            /// Number of blocks that count.
            blocks: u32,
        } => format!("few blocks: the comparison is based on {}, fewer than 5", several(u64::from(*blocks), "block")),
            "run at least 5 trials of each configuration (`--trials 5`)";
        /// Trials of one configuration were weighed while some JVMs still held their compilers' working memory.
        CompilerMemory {
            /// The configuration.
            configuration: String,
            /// The affected mark.
            mark: String,
            /// Range of live malloc memory among its trials.
            spread_bytes: u64,
        } => {
            let spread = Bytes(*spread_bytes);
            format!("compiler memory: at `{mark}`, live malloc differs by {spread} among trials of \
                 {configuration}")
        },
            "rest for 12 s (`--rest 12s`), and judge `rss_in_use.rested`: HotSpot frees its compilers' working \
             memory up to 5 s after they last ran";
        /// The earlier of two accounts describes another process.
        AnotherProcess {
            /// The differences that show it.
            differences: Vec<String>,
        } => format!("the earlier account is of a different process: {}", differences.join("; ")),
            "the differences are between two processes; to see how one process changed, keep an earlier account \
             of it with `--json`";
    }
}
