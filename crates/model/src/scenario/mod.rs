//! The scenario to run as validated values: subject, configurations, load plan, and marks. They come from a scenario
//! file (`file`) or from a verb's options; all later code uses only these values.

#[macro_use]
mod worded;

mod artifact;
mod budget;
mod change;
mod compare;
mod composition;
mod configuration;
mod derived;
mod driver;
mod file;
mod find;
mod fleet;
mod fleet_file;
mod image;
mod load_alone;
mod load_file;
mod load_options;
mod load_plan;
mod load_settings;
mod matrix;
mod moved;
mod options;
mod own;
mod phase;
mod ram_share;
mod schema;
mod server;
mod short_name;
mod subject;
mod trial_plan;
mod tune;
mod url;
mod validate;
mod written;
mod yaml;

pub use budget::{Budget, Limit};
pub use change::Change;
pub use compare::{Amount, BlockOptions, Compare, CompareSettings, Confidence, Share};
pub use composition::{Answers, Kind, Ports, Processes};
pub use configuration::{Configuration, ConfigurationSettings, Cpus, Gc, Jdk, Level, Netty, Nmt, Objects};
pub use derived::{Derivation, Derived};
pub use file::{Explain, Inside, Marking, Scenario, TrialOptions, parse, parse_marks};
pub use find::{Find, FindSettings};
pub use fleet::{Fleet, Last, PAST_MAX, PastLine, SEARCH_EVERY, Service, WITHIN};
pub use fleet_file::parse_fleet;
pub use image::Image;
pub use load_alone::{LoadAlone, PhasesFile};
pub use load_file::parse_load;
pub use load_plan::LoadPlan;
pub use load_settings::LoadOptions;
pub use matrix::{axes, vary};
pub use options::{ScenarioOptions, plain_name};
pub use own::{Collect, OwnWork, PhaseMark};
pub use phase::{Driver, Model, Phase, PhaseKind, WARMUP};
pub use ram_share::RamShare;
pub use server::Server;
pub use subject::{Ready, ReadySettings, Subject, SubjectSettings};
pub use trial_plan::{Asking, Guard, LIVE_MARK, Late, Look, Pages, PhaseGuard, TrialPlan};
pub use tune::{Objective, Try, Tune, TuneSettings};
pub use url::{Url, bracketed};
pub use validate::validate_load;
// The load engine defines a phase's work.
pub use crate::load::work::{
    Arrivals, Body, Bound, Checks, Condition, ExpectStatus, Figure, Measured, Method, Pace, Pool, Protocol, Rate,
    Relation, Request, Schedule, Spacing, Statistic, Time, Tls, Until, Work,
};
pub use yaml::{YAML_BYTES_MAX, within_bounds as yaml_within_bounds};

use serde::{Deserialize, Serialize};
use std::str::FromStr;

worded! {
    /// A moment in a trial at which the subject is weighed. The moments are in chronological order.
    #[derive(PartialOrd, Ord)]
    MarkPoint {
        /// When the subject is ready, with nothing sent but the readiness probe.
        Start = "start",
        /// After the warm-up.
        Warm = "warm",
        /// At the end of the load, before any rest.
        Loaded = "loaded",
        /// After the rest.
        Rested = "rested",
        /// After a full GC.
        Collected = "collected",
        /// After the C library was asked to return the memory that it retains (`System.trim_native_heap`); only on
        /// request.
        Trimmed = "trimmed",
    }
}

impl FromStr for MarkPoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::of_word(text).map_err(|words| format!("`{text}` is not a mark; use one of {words}"))
    }
}

/// Defaults with reasons.
pub mod defaults {
    use crate::units::Span;

    /// Enough to keep a core busy, and few enough for any server.
    pub const CONNECTIONS: u32 = 25;
    /// Long enough for C2 to compile a small server's hot paths after an equal warm-up, but not tedious.
    pub const DURATION: Span = Span::seconds(10);
    /// A Netty server was warm after half of this at 200 requests/s; a server not warm by the end takes minutes.
    pub const STEADY_WITHIN: Span = Span::seconds(60);
    /// Slow application servers need half a minute on one core.
    pub const READY_WITHIN: Span = Span::seconds(60);
    /// Docker's default grace period.
    pub const END_WITHIN: Span = Span::seconds(10);
    pub use crate::load::work::TIMEOUT;
    /// G1 and ZGC start to uncommit later, but by then most freeing after a load is complete.
    pub const REST: Span = Span::seconds(5);
    /// 10 Hz costs 0.1% of a core and shows every phase.
    pub const SAMPLE_HZ: u32 = 10;
    /// Enough for a slow schedule, but bounded in case of a typo.
    pub const DRIVER_WITHIN: Span = Span::seconds(600);
    /// Longer than a step of any known subject, but bounded in case one hangs.
    pub const MARKER_WITHIN: Span = Span::seconds(300);
    /// Fixed, so that runs are repeatable.
    pub const SEED: u64 = 1;
}

/// Whether a value can be omitted.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Arguments as a line that a POSIX shell splits into the same arguments.
pub fn shell_words(words: &[String]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for `sh` if necessary.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+:./,@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Schemas of user-written files: scenarios and fleets.
#[cfg(test)]
pub(crate) fn schemas_of_files() -> [schemars::Schema; 2] {
    let generator = || schemars::generate::SchemaSettings::draft2020_12().into_generator();
    [generator().into_root_schema_for::<file::File>(), generator().into_root_schema_for::<fleet_file::FleetFile>()]
}

/// A scenario with this subject, additional keys, and a minimal load.
#[cfg(test)]
fn scenario_of(subject: &str, others: &str) -> crate::error::Result<Scenario> {
    let load = "[steady: {closed: {connections: 1, requests: 1}, get: /}]";
    let text = format!("name: x\nsubject: {{{subject}}}\n{others}\nload: {load}\n");
    parse(&text, std::path::Path::new("/base"), &[11, 17, 25])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_expects_the_same_status_as_the_load() {
        let check = |ready: &str, request: &str, expect: Option<u16>| {
            let text = format!(
                "name: x\nsubject: {{command: [x], port: 1{ready}}}\n\
                 load: [steady: {{closed: {{connections: 1, requests: 1}}, {request}}}]\n"
            );
            let scenario =
                parse(&text, std::path::Path::new("."), &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(scenario.load.ready_status(&scenario.subject.ready), expect, "{text}");
        };
        check("", "get: /x, expect: 404", Some(404));
        check("", "get: /x", None);
        check(", ready: {http: /x}", "get: /x, expect: 404", Some(404));
        check(", ready: {http: /health}", "get: /x, expect: 404", None);
        check(", ready: {tcp: true}", "get: /x, expect: 404", None);
        check("", "post: /x, body: {text: a}, expect: 404", None);
    }

    #[test]
    fn an_argument_with_two_options_is_rejected() {
        let check = |option: &str, expect: Option<&str>| {
            let configurations = format!("configurations: {{a: {{jvm: [-Xmx8m, '{option}']}}}}");
            let refused = scenario_of("command: [java, -jar, x.jar], port: 1", &configurations).err();
            let hint = refused.as_ref().and_then(|error| error.hint.as_deref());
            assert_eq!(refused.is_some(), expect.is_some(), "{option}: {refused:?}");
            assert!(hint.unwrap_or_default().contains(expect.unwrap_or_default()), "{option}: {hint:?}");
        };
        check("-XX:+A -Xss512k", Some("`--jvm -XX:+A --jvm -Xss512k`"));
        check("-Xss512k  -XX:+A -Dname=a -b", Some("`--jvm -Xss512k --jvm -XX:+A --jvm '-Dname=a -b'`"));
        check("-Dname=a -b", None);
        check("-XX:OnOutOfMemoryError=kill -9 %p", None);
        check("-XX:OnError=gdb -p %p", None);
        check("-Xlog:gc:file=/a b - c.log", None);
        check("-javaagent:/a.jar=x -y", None);
        check("--add-opens java.base/java.lang=ALL-UNNAMED", None);
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let check = |word, expect| assert_eq!(shell_word(word), expect);
        check("-Xmx6m", "-Xmx6m");
        check("", "''");
        check("-Da=b c", "'-Da=b c'");
        check("it's", r"'it'\''s'");
        check("$(x)", "'$(x)'");
    }
}
