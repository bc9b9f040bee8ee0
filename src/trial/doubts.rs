//! Derives doubts from the measurements. Pure.

use super::usage::Usage;
use super::warming::Warming;
use crate::doubt::{ANSWERS_OF_A_HALF_MIN, Allocation, Doubt, noise};
use crate::kernel::ports::{Ports, Reuse};
use crate::observe::vm_flags::Flags;
use crate::record::{AllocatedBy, FlagOrigin, Jvm, Machine, PhaseRecord, Second, Trial};
use crate::scenario::{Configuration, MarkPoint};
use crate::subject::StackTraces;
use crate::units::{Bytes, Millicpus};

/// A busier generator cannot send on time.
const GENERATOR_SHARE_MAX: f64 = 0.90;
/// A busier subject is itself the limit.
const SUBJECT_SHARE_BUSY: f64 = 0.90;
/// Linux delays an acknowledgment by at least 40 ms (TCP_DELACK_MIN).
const PLATEAU_MS: std::ops::Range<f64> = 38.0..46.0;

/// A larger shortfall from the offered rate is not due to rounding: some requests of the last second always end too
/// late.
const ACHIEVED_SHARE_MIN: f64 = 0.99;
/// Wake-ups and a shared core explain smaller lags; a fast server responds within this time.
const LAG_MS_MAX: f64 = 1.0;
/// A limit that throttles less only cuts occasional bursts. `CPUThrottlingHigh` of kubernetes-mixin has the same
/// threshold.
const THROTTLED_SHARE_MAX: f64 = 0.25;
/// A smaller heap is not a significant part of the measured memory.
const GARBAGE_MIN: u64 = 8 << 20;
/// Above this share, the kernel takes a long time to find a free port, and connects begin to fail.
const PORTS_SHARE_MAX: f64 = 0.80;

/// Programs that are expected to run during a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Beside {
    /// The subject, with known CPU time, on this many CPUs or within a limit.
    Subject {
        cpus: f64,
    },
    /// A server with unknown CPU time, which hides usage by other programs.
    ServerHere,
    Nothing,
}

/// A phase is warm if its halves agree within this share.
const WARM_SHARE: f64 = 0.01;

/// Compares the bytes allocated per request in the two halves of a phase. `seen` has allocated bytes and correct
/// responses, about once a second.
pub(super) fn not_warm(phase: &PhaseRecord, seen: &[(u64, u64)]) -> Option<Doubt> {
    let [first, .., last] = *seen else { return None };
    let middle = seen[seen.len() / 2];
    let each = |from: (u64, u64), to: (u64, u64)| {
        let answers = to.1.saturating_sub(from.1);
        (answers >= ANSWERS_OF_A_HALF_MIN).then(|| to.0.saturating_sub(from.0) as f64 / answers as f64)
    };
    let (first_bytes, second_bytes) = (each(first, middle)?, each(middle, last)?);
    let is_mix = !phase.by_request.is_empty();
    let apart = (first_bytes - second_bytes).abs() > WARM_SHARE * second_bytes.max(1.0);
    let phase_name = phase.name.clone();
    let doubt = Allocation::AllocationNotWarm { phase: phase_name, first_bytes, second_bytes };
    (apart && !is_mix && !phase.is_warmup()).then(|| doubt.into())
}

/// A warm-up that should have ended with a warm subject, but did not.
pub(super) fn never_warm(phase: &PhaseRecord, warming: &Warming) -> Option<Doubt> {
    let why = warming.unsteady();
    let is_warm = why.as_ref().is_some_and(Vec::is_empty);
    (warming.ends_it() && !is_warm).then(|| Doubt::NeverWarm { seconds: phase.seconds, why: why.unwrap_or_default() })
}

/// Doubts about one phase of work.
pub(super) fn of_phase(phase: &PhaseRecord, usage: &Usage, beside: Beside) -> Vec<Doubt> {
    let mut doubts: Vec<Doubt> = below_offered(phase).into_iter().collect();
    doubts.extend(noisy_machine(phase, usage, beside));
    doubts.extend(generator(phase, beside));
    doubts.extend(saturated(phase, beside));
    doubts.extend(lag(phase));
    let failed = phase.failed.total();
    if failed > 0 && phase.is_own() {
        let operations = phase.requests;
        doubts.push(Doubt::OperationsFailed { phase: phase.name.clone(), failed, operations });
    } else if failed > 0 {
        doubts.push(Doubt::LoadFailures {
            phase: phase.name.clone(),
            failed,
            requests: phase.requests,
            kinds: kinds(phase),
        });
    }
    if let Some(by) = phase.subject.allocated_by.filter(|by| *by != AllocatedBy::AllThreads) {
        doubts.push(Allocation::AllocationRough { phase: phase.name.clone(), by }.into());
    }
    if let Some(why) = &phase.cut_short {
        doubts.push(Doubt::CutShort { phase: phase.name.clone(), why: why.clone() });
    }
    if let Some(times) = phase.service_ms.filter(|times| PLATEAU_MS.contains(&times.p50)) {
        doubts.push(Doubt::Plateau40Ms { phase: phase.name.clone(), p50_ms: times.p50 });
    }
    doubts
}

/// Whether a server that responded in this phase later refused connections; `seconds` covers all phases.
pub(super) fn server_gone(phase: &PhaseRecord, seconds: &[Second]) -> Option<Doubt> {
    let refused = phase.failed.refused;
    if refused == 0 || phase.ok == 0 {
        return None;
    }
    let own = || seconds.iter().filter(|second| second.phase == phase.name);
    let fails = |least: fn(&Second) -> bool| own().find(|second| second.failed > 0 && least(second));
    let from = fails(|second| second.failed > second.ok).or_else(|| fails(|_| true));
    let after_s = from.map_or(phase.seconds, |second| (second.at_s - phase.at_s).max(0.0));
    Some(Doubt::ServerGone { phase: phase.name.clone(), after_s, refused })
}

fn below_offered(phase: &PhaseRecord) -> Option<Doubt> {
    let (share, offered_per_s) = (phase.share_of_offered()?, phase.offered_per_s?);
    (share < ACHIEVED_SHARE_MIN).then(|| Doubt::AchievedBelowOffered {
        phase: phase.name.clone(),
        offered_per_s,
        achieved_per_s: phase.achieved_per_s,
    })
}

fn lag(phase: &PhaseRecord) -> Option<Doubt> {
    let lag_ms_p99 = phase.generator?.lag_ms_p99.filter(|lag| *lag > LAG_MS_MAX)?;
    Some(Doubt::GeneratorLag { phase: phase.name.clone(), lag_ms_p99 })
}

/// Local ports at the end of a phase.
///
/// If a port is free again after a second, the connects of one second count. Otherwise all ports in TIME_WAIT count,
/// from this phase and from other programs on this machine.
pub(super) fn of_ports(phase: &PhaseRecord, ports: &Ports, loopback: bool) -> Option<Doubt> {
    let connections = phase.connections?;
    let connects_per_s = if phase.seconds > 0.0 { connections.opened as f64 / phase.seconds } else { 0.0 };
    let tw_reuse = match ports.reuse {
        Reuse::On => true,
        Reuse::Loopback => loopback,
        Reuse::Off => false,
    };
    // Persistent connections do not use up ports; other programs left those in TIME_WAIT.
    if connections.opened <= connections.asked {
        return None;
    }
    let used = if tw_reuse { connects_per_s } else { ports.time_wait as f64 };
    (used >= ports.range as f64 * PORTS_SHARE_MAX).then(|| Doubt::PortsNearExhaustion {
        phase: phase.name.clone(),
        time_wait: ports.time_wait,
        ports: ports.range,
        tw_reuse,
        connects_per_s,
    })
}

fn noisy_machine(phase: &PhaseRecord, usage: &Usage, beside: Beside) -> Option<Doubt> {
    let machine = usage.machine.as_ref()?;
    let elapsed_s = usage.elapsed.as_secs_f64();
    // Ticks are 10 ms; in less than half a second, a single tick would raise a doubt.
    if elapsed_s < 0.5 {
        return None;
    }
    let foreign_cores = machine.busy.saturating_sub(usage.ours).as_secs_f64() / elapsed_s;
    let foreign_cores = (beside != Beside::ServerHere).then_some(foreign_cores);
    let steal_share = machine.share_stolen();
    let memory_stall_share = usage.memory_stalled.map(|stalled| stalled.as_secs_f64() / elapsed_s);
    let noisy = noise::takes_cpu(foreign_cores, steal_share) || noise::waits_for_memory(memory_stall_share);
    let phase = || phase.name.clone();
    noisy.then(|| Doubt::NoisyMachine { phase: phase(), foreign_cores, steal_share, memory_stall_share })
}

/// The share of its CPUs' time that a known subject used in a phase.
fn subject_share(phase: &PhaseRecord, beside: Beside) -> Option<f64> {
    match beside {
        Beside::Subject { cpus } if phase.seconds > 0.0 && cpus > 0.0 => {
            phase.subject.cpu_s.map(|cpu_s| cpu_s / (phase.seconds * cpus))
        }
        _ => None,
    }
}

/// A closed model uses all CPU time that the subject has; at a fixed rate, the subject should have time to spare.
fn saturated(phase: &PhaseRecord, beside: Beside) -> Option<Doubt> {
    phase.offered_per_s.filter(|_| !phase.is_warmup())?;
    let subject_share = subject_share(phase, beside).filter(|share| *share > SUBJECT_SHARE_BUSY)?;
    Some(Doubt::SubjectSaturated { phase: phase.name.clone(), subject_share })
}

fn generator(phase: &PhaseRecord, beside: Beside) -> Option<Doubt> {
    let generator = phase.generator.filter(|generator| generator.cpu_share > GENERATOR_SHARE_MAX)?;
    let subject_share = subject_share(phase, beside);
    if subject_share.is_some_and(|share| share > SUBJECT_SHARE_BUSY) {
        return None;
    }
    Some(Doubt::GeneratorSaturated { phase: phase.name.clone(), cpu_share: generator.cpu_share, subject_share })
}

/// A CPU limit throttled the subject in a large share of a measured phase's periods.
pub(super) fn throttled(phase: &PhaseRecord, limit: Millicpus) -> Option<Doubt> {
    let share = phase.throttled_share().filter(|share| *share > THROTTLED_SHARE_MAX && !phase.is_warmup())?;
    Some(Doubt::Throttled { phase: phase.name.clone(), share, cpu_limit_millicpus: limit.0 })
}

/// `12 wrong status (404: 12), 3 reset`.
fn kinds(phase: &PhaseRecord) -> String {
    let statuses: Vec<_> = phase.wrong_statuses.iter().map(|(status, n)| format!("{n} x {status}")).collect();
    match statuses.as_slice() {
        [] => phase.failed.describe(),
        some => format!("{} ({})", phase.failed.describe(), some.join(", ")),
    }
}

/// Doubts about the whole machine. `cpus_shared`: Loadline's load runs on the subject's CPUs.
pub(super) fn of_machine(machine: &Machine, cpus_shared: bool) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if cpus_shared {
        doubts.push(Doubt::SharedCpus);
    }
    if machine.transparent_huge_pages.as_deref() == Some("always") {
        doubts.push(Doubt::HugePagesAlways);
    }
    doubts
}

/// A JVM that sees only one CPU defaults to Serial. A script may also have chosen it; only the flag's
/// origin distinguishes the two cases.
pub(super) fn of_collector(jvm: &Jvm, asked: &[String], cpus: usize, cores: u32) -> Option<Doubt> {
    let chosen = asked.iter().any(|option| option.starts_with("-XX:+Use") && option.ends_with("GC"));
    let mut set = jvm.flags_kept.iter().flat_map(|flags| &flags.set);
    let chosen = chosen || set.any(|flag| flag.name == "UseSerialGC" && flag.origin != FlagOrigin::Ergonomic);
    let collector = jvm.collector.clone().filter(|collector| collector == "Serial")?;
    (!chosen && cpus < 2 && cores > 1).then_some(Doubt::CollectorByCpus { cpus, cores, collector })
}

/// Fewer stack traces do not matter for the measurement.
const STACK_TRACES_MIN: u64 = 10;

/// The doubt that a subject handled errors rather than requests.
pub(super) fn of_stack_traces(traces: StackTraces) -> Option<Doubt> {
    let StackTraces { count, first } = traces;
    (count >= STACK_TRACES_MIN).then_some(Doubt::StackTraces { count, first })
}

/// Doubts about a whole trial.
pub(super) fn of_trial(trial: &Trial) -> Vec<Doubt> {
    let swap_bytes = trial.marks.iter().filter_map(|mark| mark.swap_bytes).max().unwrap_or(0);
    let swapped = (swap_bytes > 0).then_some(Doubt::SwapInUse { swap_bytes });
    swapped.into_iter().chain(no_collection(trial)).collect()
}

/// Without a collection during the load, garbage grows with the length of the load.
fn no_collection(trial: &Trial) -> Option<Doubt> {
    let heap_bytes = trial.at(MarkPoint::Loaded)?.heap.used_bytes.filter(|bytes| *bytes >= GARBAGE_MIN)?;
    let works = || trial.phases.iter().filter(|phase| phase.works());
    let never = works().next().is_some() && works().all(|phase| phase.subject.gc_count == Some(0));
    never.then(|| Doubt::NoCollection { seconds: works().map(|phase| phase.seconds).sum(), heap_bytes })
}

/// Variables whose values in a process differ from the configuration.
pub(super) fn of_environment(configuration: &Configuration, variables: &[String]) -> Option<Doubt> {
    // Placeholders are expanded, and Loadline adds its JVM options to existing ones.
    let fixed = |(name, value): &(String, String)| {
        !value.contains('{') && !name.ends_with("JAVA_OPTIONS") && name != "JAVA_TOOL_OPTIONS"
    };
    let asked: Vec<&(String, String)> = configuration.env.iter().filter(|of| fixed(of)).collect();
    // The last value wins.
    let last = asked.iter().enumerate().filter(|(at, of)| asked[at + 1..].iter().all(|later| later.0 != of.0));
    let asked = last.map(|(_, (name, value))| format!("{name}={value}"));
    let lost: Vec<String> = asked.filter(|variable| !variables.contains(variable)).collect();
    (!lost.is_empty()).then_some(Doubt::VariablesLost { variables: lost })
}

/// A JVM whose maximum heap exceeds its limit, without an explicit option, does not see the limit.
pub(super) fn of_limit(limit: Option<Bytes>, options: &[String], flags: &Flags) -> Option<Doubt> {
    let told = options.iter().any(|option| option.starts_with("-Xmx") || option.starts_with("-XX:MaxHeapSize"));
    let heap: u64 = flags.get("MaxHeapSize")?.parse().ok()?;
    let limit = limit?;
    // A heap with a larger initial size than the JVM would choose does not grow further.
    let starts_so = options.iter().any(|option| option.starts_with("-Xms"));
    let told = told || starts_so && flags.get("InitialHeapSize") == flags.get("MaxHeapSize");
    (!told && heap > limit.0).then_some(Doubt::LimitNotSeen { limit_bytes: limit.0, heap_bytes_max: heap })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::machine::CpuTimes;
    use crate::record::{
        ConnectionsRecord, Failures, FlagRecord, FlagsRecord, Generator, Heap, Mark, Quantiles, SubjectWork,
    };
    use std::time::Duration;

    const SUBJECT: Beside = Beside::Subject { cpus: 1.0 };

    fn phase() -> PhaseRecord {
        PhaseRecord { name: "steady".into(), seconds: 10.0, requests: 100, ok: 100, ..PhaseRecord::default() }
    }

    fn usage(busy_s: u64) -> Usage {
        let machine = CpuTimes {
            busy: Duration::from_secs(busy_s),
            idle: Duration::from_secs(20 - busy_s),
            ..CpuTimes::default()
        };
        Usage {
            machine: Some(machine),
            ours: Duration::from_secs(10),
            elapsed: Duration::from_secs(10),
            ..Usage::default()
        }
    }

    #[test]
    fn a_quiet_phase_raises_no_doubts() {
        assert_eq!(of_phase(&phase(), &usage(10), SUBJECT), []);
    }

    #[test]
    fn other_programs_raise_a_doubt() {
        let doubts = of_phase(&phase(), &usage(15), SUBJECT);
        let [Doubt::NoisyMachine { foreign_cores: Some(cores), .. }] = doubts.as_slice() else { panic!("{doubts:?}") };
        assert!((cores - 0.5).abs() < 1e-9);
        assert_eq!(of_phase(&phase(), &usage(15), Beside::ServerHere), [], "they may belong to the server");
    }

    #[test]
    fn a_machine_short_of_memory_raises_a_doubt() {
        let stalled = |ms| Usage { memory_stalled: Some(Duration::from_millis(ms)), ..usage(10) };
        assert_eq!(of_phase(&phase(), &stalled(100), SUBJECT), []);
        let doubts = of_phase(&phase(), &stalled(310), SUBJECT);
        let texts: Vec<_> = doubts.iter().map(Doubt::text).collect();
        let expect = "noisy machine: during steady, other programs used 0.00 cores, and programs waited for memory \
            3.1% of the time";
        assert_eq!(texts, [expect]);
    }

    #[test]
    fn an_uncollected_heap_raises_a_doubt() {
        let found = |used_mib: u64, collections: &[Option<u64>]| {
            let heap = Heap { used_bytes: Some(used_mib << 20), ..Heap::default() };
            let phase = |gc_count: &Option<u64>| {
                let subject = SubjectWork { gc_count: *gc_count, ..SubjectWork::default() };
                PhaseRecord { subject, ..phase() }
            };
            let trial = Trial {
                marks: vec![Mark { name: "loaded".to_owned(), heap, ..Mark::default() }],
                phases: collections.iter().map(phase).collect(),
                ..Trial::default()
            };
            of_trial(&trial).iter().map(Doubt::text).collect::<Vec<_>>()
        };
        let text = "no GC ran during 20 s of load, so the 48.0 MiB heap still holds everything that was allocated";
        assert_eq!(found(48, &[Some(0), Some(0)]), [text]);
        assert_eq!(found(48, &[Some(0), Some(1)]), [""; 0]);
        assert_eq!(found(48, &[Some(0), None]), [""; 0], "an unknown count does not raise the doubt");
        assert_eq!(found(4, &[Some(0)]), [""; 0]);
        assert_eq!(found(48, &[]), [""; 0]);
    }

    #[test]
    fn a_busy_generator_raises_a_doubt_only_with_an_idle_subject() {
        let busy = Generator { cpu_share: 0.97, ..Generator::default() };
        let with = |cpu_s| PhaseRecord {
            generator: Some(busy),
            subject: SubjectWork { cpu_s: Some(cpu_s), ..SubjectWork::default() },
            ..phase()
        };
        assert_eq!(of_phase(&with(9.8), &usage(10), SUBJECT), []);
        assert!(matches!(of_phase(&with(5.0), &usage(10), SUBJECT)[..], [Doubt::GeneratorSaturated { .. }]));
    }

    #[test]
    fn failures_and_a_latency_plateau_raise_doubts() {
        let failed = Failures { status: 3, ..Failures::default() };
        let times = Quantiles { p50: 40.2, ..Quantiles::default() };
        let wrong_statuses = [(404, 3)].into();
        let phase = PhaseRecord { failed, wrong_statuses, service_ms: Some(times), ..phase() };
        let doubts = of_phase(&phase, &usage(10), SUBJECT);
        assert_eq!(doubts[0].text(), "3 of 100 requests failed in steady: 3 wrong status (3 x 404)");
        assert!(matches!(doubts[1], Doubt::Plateau40Ms { .. }));
    }

    #[test]
    fn a_low_achieved_rate_or_late_generator_raises_a_doubt() {
        let late = Generator { lag_ms_p99: Some(1.5), ..Generator::default() };
        let with = |achieved_per_s, generator| PhaseRecord {
            offered_per_s: Some(5000.0),
            achieved_per_s,
            generator: Some(generator),
            ..phase()
        };
        assert_eq!(of_phase(&with(4951.0, Generator::default()), &usage(10), SUBJECT), []);
        let doubts = of_phase(&with(4312.0, late), &usage(10), SUBJECT);
        let texts: Vec<_> = doubts.iter().map(Doubt::text).collect();
        assert_eq!(texts[0], "the load offered 5,000/s in steady, but only 4,312/s was achieved (86.2%)");
        assert_eq!(texts[1], "the load generator sent requests late in steady (99th percentile: 1.50 ms)");
    }

    #[test]
    fn port_exhaustion_depends_on_time_wait_or_connection_rate() {
        let with = |opened| {
            let connections = ConnectionsRecord { asked: 25, opened, open_max: 25 };
            PhaseRecord { connections: Some(connections), ..phase() }
        };
        let ports = |time_wait, reuse| Ports { time_wait, range: 1000, reuse };
        let doubted = |phase: &PhaseRecord, ports: Ports, loopback| of_ports(phase, &ports, loopback).is_some();
        assert!(doubted(&with(900), ports(850, Reuse::Off), true));
        assert!(!doubted(&with(900), ports(700, Reuse::Off), true));
        assert!(!doubted(&with(25), ports(850, Reuse::Off), true), "connections kept open do not exhaust ports");
        assert!(!doubted(&with(900), ports(850, Reuse::On), true), "90 connections per second are too few");
        assert!(doubted(&with(9000), ports(850, Reuse::On), false));
        assert!(doubted(&with(900), ports(850, Reuse::Loopback), false));
        assert!(!doubted(&with(900), ports(850, Reuse::Loopback), true));
    }

    #[test]
    fn serial_chosen_by_the_jvm_raises_a_doubt() {
        let jvm = Jvm { collector: Some("Serial".into()), ..Jvm::default() };
        assert!(of_collector(&jvm, &["-Xmx6m".into()], 1, 2).is_some());
        assert!(of_collector(&jvm, &["-XX:+UseSerialGC".into()], 1, 2).is_none());
        assert!(of_collector(&jvm, &[], 1, 1).is_none());
        let by = |origin| {
            let flag = FlagRecord { name: "UseSerialGC".into(), value: "true".into(), origin };
            let flags_kept = Some(FlagsRecord { set: vec![flag], ..FlagsRecord::default() });
            of_collector(&Jvm { flags_kept, ..jvm.clone() }, &[], 1, 2)
        };
        assert!(by(FlagOrigin::Ergonomic).is_some());
        assert!(by(FlagOrigin::CommandLine).is_none(), "a flag set by a script raises no doubt");
    }

    #[test]
    fn a_limit_is_unseen_only_if_no_heap_is_set() {
        let flags = Flags::parse("-XX:MaxHeapSize=8589934592");
        assert!(of_limit(Some(Bytes::mib(512)), &[], &flags).is_some());
        assert!(of_limit(Some(Bytes::mib(512)), &["-Xmx8g".into()], &flags).is_none());
        assert!(of_limit(None, &[], &flags).is_none());
        let share = of_limit(Some(Bytes::mib(512)), &["-XX:MaxRAMPercentage=75".into()], &flags);
        assert!(share.is_some(), "a heap set as a percentage depends on the limit");
        let begins = Flags::parse("-XX:InitialHeapSize=8589934592 -XX:MaxHeapSize=8589934592");
        assert!(of_limit(Some(Bytes::mib(512)), &["-Xms8g".into()], &begins).is_none());
    }
}
