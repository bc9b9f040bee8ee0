//! Trials as in a search, through the library: read only from outside, guarded, in a cgroup with counters. Records
//! reveal the cause of a failure.

use crate::deaths::limits_work;
use crate::invocation::{Permit, newest, releases};
use crate::test_subjects::test_subjects;
use loadline::clock::Clock;
use loadline::doubt::Doubt;
use loadline::error::ErrorKind;
use loadline::record::{CgroupRecord, EndCause, FailureCause, Machine, Outcome, PhaseRecord, Trial};
use loadline::scenario::{Cpus, Guard, Late, Look, PhaseGuard, Scenario, Time, TrialPlan, parse};
use loadline::series::search::cause_of;
use loadline::subject::Spawner;
use loadline::subject::jdk::{FoundJdk, Places, discover};
use loadline::trial::{Conducted, Event, Sink, Tools, conduct};
use std::path::Path;
use std::sync::atomic::AtomicBool;

const MIB: u64 = 1 << 20;

/// A short warm-up, a measured phase, and a rest, which shows whether a trial continued.
const LOAD: &str = "
  - warmup: {closed: {connections: 2, requests: 100}, get: /hello}
  - steady: {closed: {connections: 2, requests: 200}, get: /hello}
  - rest: {idle: 100ms}";
/// The measured phase would last many minutes.
const LONG_LOAD: &str = "
  - warmup: {closed: {connections: 2, requests: 20}, get: /hello}
  - steady: {closed: {connections: 2, requests: 100000}, get: /hello}
  - rest: {idle: 100ms}";

/// The varying settings of these tests' trials.
struct TrialSettings<'a> {
    release: u32,
    /// After `java`, at the end of the command.
    subject: &'a str,
    /// Configuration keys.
    configuration: &'a str,
    load: &'a str,
    look: Look,
    guard: Option<PhaseGuard>,
}

impl<'a> TrialSettings<'a> {
    fn of(release: u32, subject: &'a str) -> Self {
        let (configuration, look, guard) = ("heap: 16m", Look::Outside, None);
        Self { release, subject, configuration, load: LOAD, look, guard }
    }

    fn scenario(&self) -> Scenario {
        self.scenario_ready("{http: /hello}")
    }

    fn scenario_ready(&self, ready: &str) -> Scenario {
        let jar = test_subjects();
        let subject = format!("loadline.subjects.{}", self.subject);
        let words: Vec<String> = subject.split_whitespace().map(|word| format!("'{word}'")).collect();
        self.parse(&format!("[java, '{{jvm}}', -cp, '{jar}', {}]", words.join(", ")), ready)
    }

    fn parse(&self, command: &str, ready: &str) -> Scenario {
        let (release, configuration, load) = (self.release, self.configuration, self.load);
        let text = format!(
            "name: outside\nsubject: {{command: {command}, ready: {ready}}}\n\
             configurations: {{serial: {{{configuration}, gc: serial, jdk: {release}}}}}\nload:{load}\n"
        );
        let mut scenario = parse(&text, Path::new("."), &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        // A trial pins its thread, and this thread runs several trials.
        (scenario.load_cpus, scenario.configurations[0].cpus) = (Cpus::All, Cpus::All);
        scenario
    }

    fn conduct(&self) -> Conducted {
        self.conduct_scenario(&self.scenario())
    }

    fn conduct_scenario(&self, scenario: &Scenario) -> Conducted {
        let _permit = Permit::one();
        let clock = Clock::start();
        let jdks: Vec<FoundJdk> = discover(&Places::usual(), clock);
        let plan = TrialPlan {
            look: self.look,
            guard: Guard { phases: self.guard.clone().into_iter().collect() },
            list_files: true,
            ..TrialPlan::of(scenario, &scenario.configurations[0])
        };
        // A remote trial is made from the serialized plan.
        let plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        let tools = Tools {
            clock,
            spawner: &Spawner::with_program(env!("CARGO_BIN_EXE_loadline"), clock),
            jdks: &jdks,
            machine: &machine(),
            interrupt: &AtomicBool::new(false),
        };
        conduct(&plan, &tools, &mut Nobody)
    }
}

/// A sink that ignores every event.
struct Nobody;

impl Sink for Nobody {
    fn receive(&mut self, _event: &Event<'_>) {}
}

/// The machine does not matter here.
fn machine() -> Machine {
    Machine {
        cores: 2,
        cpu_model: Some("made up".to_owned()),
        memory_bytes: 8 << 30,
        cgroup: "v1".to_owned(),
        ..Machine::default()
    }
}

fn steady(trial: &Trial) -> &PhaseRecord {
    trial.phases.iter().find(|phase| phase.name == "steady").unwrap()
}

fn cgroup(trial: &Trial) -> CgroupRecord {
    trial.cgroup.unwrap_or_else(|| panic!("no cgroup: {:?}", trial.why))
}

/// The cause of failure as judged by a search.
fn broken(trial: &Trial) -> FailureCause {
    cause_of(trial, trial.hopeless.as_slice())
}

#[test]
fn a_jvm_observed_from_outside_gets_no_commands() {
    for release in releases() {
        let configuration = "heap: 16m, nmt: summary, netty: true";
        let asked = TrialSettings { configuration, ..TrialSettings::of(release, "DemoServer {port}") };
        let Conducted { trial, error } = asked.conduct();
        assert!(error.is_none(), "{error:?}");
        assert_eq!((trial.outcome, trial.marks.len(), trial.phases.len()), (Outcome::Completed, 0, 3));
        assert_eq!((trial.observer.attach_ms, trial.observer.attach_rss_bytes), (None, None));
        assert!(trial.observer.samples > 0);
        assert!(!trial.command.iter().any(|word| word.contains("-javaagent")), "{:?}", trial.command);
        let of_asking = |doubt: &Doubt| {
            matches!(doubt, Doubt::AttachMissing { .. } | Doubt::ReadFailed { .. } | Doubt::LimitNotSeen { .. })
        };
        assert!(!trial.doubts.iter().any(|of| of_asking(&of.doubt)), "{:?}", trial.doubts);
        let jvm = trial.jvm.as_ref().unwrap();
        assert!(jvm.version.as_ref().is_some_and(|version| version.starts_with(&release.to_string())), "{jvm:?}");
        assert!(jvm.flags.is_none() && jvm.options.contains(&"-Xmx16m".to_owned()), "{jvm:?}");
        assert_eq!((jvm.options_through.as_str(), jvm.allocator.as_deref()), ("placeholder", Some("glibc")));
        assert_eq!(trial.cgroup, None, "a trial without a limit has no cgroup record");
        assert!(steady(&trial).subject.cpu_s.is_some_and(|cpu_s| cpu_s > 0.0), "{:?}", steady(&trial));
    }
}

#[test]
fn files_held_by_a_subject_are_listed() {
    for release in newest() {
        let trial = TrialSettings::of(release, "DemoServer {port}").conduct().trial;
        let files = &trial.files;
        assert!(files.windows(2).all(|pair| pair[0] < pair[1]) && files.len() < 4096, "{files:?}");
        assert!(files.iter().all(|file| Path::new(file).is_absolute() && Path::new(file).is_file()), "{files:?}");
        for end in ["/lib/server/libjvm.so", "/lib/modules", "/bin/java", "/test-subjects.jar"] {
            assert!(files.iter().any(|file| file.ends_with(end)), "no {end} in {files:?}");
        }
        assert!(!files.iter().any(|file| file.contains("hsperfdata")), "{files:?}");
    }
}

#[test]
fn a_full_look_takes_accounts_at_marks() {
    for release in newest() {
        let trial =
            TrialSettings { look: Look::Full, ..TrialSettings::of(release, "DemoServer {port}") }.conduct().trial;
        let marks: Vec<_> = trial.marks.iter().map(|mark| mark.name.as_str()).collect();
        assert_eq!(marks, ["start", "warm", "loaded", "rested", "collected"]);
        assert!(trial.observer.attach_ms.is_some() && trial.jvm.is_some_and(|jvm| jvm.flags.is_some()));
    }
}

#[test]
fn own_phases_are_followed_from_outside_without_marks() {
    const WORK: &str = "\n  - churn: {phases: [empty, full, gone], within: 30s, collect: 2, settle: 200ms}";
    for release in newest() {
        let asked =
            TrialSettings { configuration: "heap: 96m", load: WORK, ..TrialSettings::of(release, "OwnPhases late") };
        let scenario = asked.scenario_ready("{phase: empty}");
        let Conducted { trial, error } = asked.conduct_scenario(&scenario);
        assert!(error.is_none(), "{error:?}");
        let phases: Vec<_> = trial.phases.iter().map(|phase| (phase.name.as_str(), phase.requests)).collect();
        assert_eq!((phases, trial.marks.len()), (vec![("empty", 300), ("full", 0)], 0));
        let awaited = trial.doubts.iter().any(|of| matches!(of.doubt, Doubt::MarkersNotAwaited { .. }));
        assert!(!awaited, "{:?}", trial.doubts);

        let guard = PhaseGuard { name: "full".to_owned(), seconds_max: Some(0.3), ..PhaseGuard::default() };
        let asked = TrialSettings { guard: Some(guard), ..asked };
        let Conducted { trial, error } = asked.conduct_scenario(&scenario);
        let error = error.unwrap();
        assert!(error.what.starts_with("the trial was stopped early: rate.full: "), "{error}");
        assert!(trial.phases[1].cut_short.as_ref().is_some_and(|why| why.starts_with("stopped early: rate.full")));
    }
}

#[test]
fn a_hopeless_trial_is_ended_early() {
    // Requests take 20 ms each, on two connections: 100 per second.
    let late = |requests_max| Late { bound_ms: 10.0, time: Time::Usual, requests_max };
    let steady_guard = PhaseGuard { name: "steady".to_owned(), ..PhaseGuard::default() };
    let cases = [
        (PhaseGuard { late: vec![late(30)], ..steady_guard.clone() }, "service.steady: ", FailureCause::Times),
        (PhaseGuard { rate_min_per_s: Some(150.0), ..steady_guard.clone() }, "rate.steady: ", FailureCause::Rate),
        (PhaseGuard { seconds_max: Some(1.0), ..steady_guard }, "rate.steady: ", FailureCause::Rate),
    ];
    for release in newest() {
        for (guard, metric, expect) in cases.clone() {
            let asked = TrialSettings {
                load: LONG_LOAD,
                guard: Some(guard),
                ..TrialSettings::of(release, "Answers20Ms {port}")
            };
            let Conducted { trial, error } = asked.conduct();
            let error = error.unwrap();
            assert_eq!(error.kind, ErrorKind::Subject);
            assert!(error.what.starts_with(&format!("the trial was stopped early: {metric}")), "{error}");
            assert_eq!(error.context.first().map(String::as_str), Some("in phase steady"));
            assert_eq!((trial.outcome, trial.why.as_ref()), (Outcome::SubjectFailed, Some(&error.what)));
            assert_eq!(trial.end.as_ref().unwrap().cause, EndCause::AsAsked);
            assert_eq!(broken(&trial), expect);
            // Completed work is kept, and the rest phase does not begin.
            let steady = trial.phases.last().unwrap();
            assert!(steady.name == "steady" && steady.ok > 30 && steady.seconds < 30.0, "{steady:?}");
            assert!(steady.cut_short.as_ref().is_some_and(|why| why.starts_with("stopped early: ")), "{steady:?}");
            assert!(!trial.files.is_empty());
        }
    }
}

#[test]
fn the_cgroup_of_a_limited_trial_is_kept() {
    if !limits_work() {
        return;
    }
    for (release, look) in newest().into_iter().flat_map(|release| [(release, Look::Full), (release, Look::Outside)]) {
        let configuration = "heap: 16m, limit: 160m";
        let asked = TrialSettings { configuration, look, ..TrialSettings::of(release, "DemoServer {port}") };
        let trial = asked.conduct().trial;
        let seen = cgroup(&trial);
        println!("JDK {release}: {seen:?}");
        assert_eq!((seen.limit_bytes, seen.oom_kills), (160 * MIB, 0));
        let (peak, anon) = (seen.peak_bytes.unwrap(), seen.anon_peak_bytes.unwrap());
        let file = seen.file_bytes.unwrap();
        assert!(anon > 16 * MIB && anon <= trial.rss_bytes_peak.unwrap() + 20 * MIB, "{seen:?}");
        // Kernel counters lag by a few pages per CPU.
        assert!(peak + 2 * MIB >= anon && peak + 2 * MIB >= file && peak <= seen.limit_bytes, "{seen:?}");
        // The JVM's libraries take about 40 MiB, whichever cgroup is charged.
        assert!(seen.foreign_file_bytes.unwrap() + file > 10 * MIB, "{seen:?}");
        assert!(seen.foreign_file_bytes.unwrap() < trial.rss_bytes_peak.unwrap(), "{seen:?}");
    }
}

#[test]
fn every_process_of_a_cgroup_counts() {
    if !limits_work() {
        return;
    }
    for release in newest() {
        // The shell keeps running, and runs another program besides the JVM.
        let asked = TrialSettings { configuration: "limit: 160m", ..TrialSettings::of(release, "") };
        let jar = test_subjects();
        let script = format!(
            "sleep 100 & java -XX:+UseSerialGC -Xmx16m -cp {jar} loadline.subjects.DemoServer {{port}}; exit $?"
        );
        let scenario = asked.parse(&format!("[sh, -c, '{script}']"), "{http: /hello}");
        let Conducted { trial, error } = asked.conduct_scenario(&scenario);
        assert!(error.is_none(), "{error:?}");
        let seen = cgroup(&trial);
        assert!(seen.foreign_file_bytes.is_some() && seen.anon_peak_bytes.unwrap() > 16 * MIB, "{seen:?}");
        let ends = |end: &str| trial.files.iter().any(|file| file.ends_with(end));
        assert!(ends("/sleep") && ends("/libjvm.so"), "{:?}", trial.files);
    }
}

#[test]
fn an_oom_kill_is_recognized_through_a_shell() {
    if !limits_work() {
        return;
    }
    for release in newest() {
        let configuration = "limit: 80m";
        let load = &LONG_LOAD.replace("requests: 20}", "requests: 100}");
        let asked = TrialSettings { configuration, load, ..TrialSettings::of(release, "") };
        let jar = test_subjects();
        let java = format!("java -XX:+UseSerialGC -Xmx400m -cp {jar} loadline.subjects.OutOfMemory {{port}} 150");
        let ways = [(format!("exec {java}"), None, Some(9)), (format!("{java}; exit $?"), Some(137), None)];
        for (script, code, signal) in ways {
            let scenario = asked.parse(&format!("[sh, -c, '{script}']"), "{http: /hello}");
            let Conducted { trial, error } = asked.conduct_scenario(&scenario);
            assert!(error.unwrap().what.contains("its memory limit was reached"));
            let end = trial.end.as_ref().unwrap();
            assert_eq!((trial.outcome, end.cause), (Outcome::Killed, EndCause::OomKill));
            assert_eq!((end.exit_code, end.signal), (code, signal), "{end:?}");
            let seen = cgroup(&trial);
            assert!(seen.oom_kills > 0 && seen.limit_hits > 0, "{seen:?}");
            assert_eq!(seen.foreign_file_bytes, None, "all processes that mapped files have ended");
            assert!(seen.peak_bytes.unwrap() + MIB > seen.limit_bytes, "{seen:?}");
            assert!((1..=seen.limit_bytes).contains(&seen.anon_peak_bytes.unwrap()), "{seen:?}");
            assert_eq!(broken(&trial), FailureCause::OomKill);
        }
    }
}

#[test]
fn a_limit_too_small_to_start_leaves_a_cgroup_record() {
    if !limits_work() {
        return;
    }
    for release in newest() {
        let asked =
            TrialSettings { configuration: "heap: 16m, limit: 16m", ..TrialSettings::of(release, "DemoServer {port}") };
        let trial = asked.conduct().trial;
        assert_eq!((trial.outcome, trial.ready_s), (Outcome::Killed, None));
        let seen = cgroup(&trial);
        assert!(seen.limit_bytes == 16 * MIB && seen.oom_kills > 0, "{seen:?}");
        assert_eq!(broken(&trial), FailureCause::OomKill);
    }
}

#[test]
fn a_jvms_own_out_of_memory_error_is_not_a_kill() {
    for release in newest() {
        let configuration = "heap: 16m, limit: 200m, jvm: ['-XX:+ExitOnOutOfMemoryError']";
        let without_limit = configuration.replace("limit: 200m, ", "");
        let configuration = if limits_work() { configuration } else { without_limit.as_str() };
        let load = &LONG_LOAD.replace("requests: 20}", "requests: 100}");
        let asked = TrialSettings { configuration, load, ..TrialSettings::of(release, "OutOfMemory {port} 150") };
        let Conducted { trial, error } = asked.conduct();
        assert!(error.unwrap().what.contains("java.lang.OutOfMemoryError"));
        let end = trial.end.as_ref().unwrap();
        assert_eq!((end.cause, end.exit_code), (EndCause::OutOfMemoryError, Some(3)));
        assert_eq!(trial.cgroup.map_or(0, |cgroup| cgroup.oom_kills), 0);
        assert_eq!(broken(&trial), FailureCause::OutOfMemoryError);
    }
}
