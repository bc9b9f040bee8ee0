//! From what was measured to the doubts about it. Pure.

use super::phase::Usage;
use crate::doubt::Doubt;
use crate::observe::vm_flags::Flags;
use crate::record::{Jvm, Machine, PhaseRecord, Trial};
use crate::units::Bytes;

/// A tenth of a core elsewhere shifts rates by more than repeated runs differ on a quiet machine.
const FOREIGN_CORES_MAX: f64 = 0.10;
/// Stolen time comes in bursts; beyond this it shows in the 99th percentile.
const STEAL_SHARE_MAX: f64 = 0.02;
/// A generator this busy has no room to send on time.
const GENERATOR_SHARE_MAX: f64 = 0.90;
/// A subject this busy is the limit itself.
const SUBJECT_SHARE_BUSY: f64 = 0.90;
/// Linux delays an acknowledgement by 40 ms at least (TCP_DELACK_MIN).
const PLATEAU_MS: std::ops::Range<f64> = 38.0..46.0;

/// Doubts about one phase of work.
pub(super) fn of_phase(phase: &PhaseRecord, usage: &Usage, subject_cpus: usize) -> Vec<Doubt> {
    let mut doubts: Vec<Doubt> = noise(phase, usage).into_iter().collect();
    doubts.extend(generator(phase, subject_cpus));
    let failed = phase.failed.total();
    if failed > 0 {
        doubts.push(Doubt::LoadFailures {
            phase: phase.name.clone(),
            failed,
            requests: phase.requests,
            kinds: kinds(phase),
        });
    }
    if let Some(why) = &phase.cut_short {
        doubts.push(Doubt::CutShort { phase: phase.name.clone(), why: why.clone() });
    }
    if let Some(times) = phase.service_ms.filter(|times| PLATEAU_MS.contains(&times.p50)) {
        doubts.push(Doubt::Plateau40Ms { phase: phase.name.clone(), p50_ms: times.p50 });
    }
    doubts
}

fn noise(phase: &PhaseRecord, usage: &Usage) -> Option<Doubt> {
    let machine = usage.machine.as_ref()?;
    let elapsed_s = usage.elapsed.as_secs_f64();
    // Ticks are 10 ms; below half a second a single one would be a doubt.
    if elapsed_s < 0.5 {
        return None;
    }
    let foreign_cores = machine.busy.saturating_sub(usage.ours).as_secs_f64() / elapsed_s;
    let steal_share = machine.share_stolen();
    let noisy = foreign_cores > FOREIGN_CORES_MAX || steal_share > STEAL_SHARE_MAX;
    noisy.then(|| Doubt::NoisyMachine { phase: phase.name.clone(), foreign_cores, steal_share })
}

fn generator(phase: &PhaseRecord, subject_cpus: usize) -> Option<Doubt> {
    let generator = phase.generator.filter(|generator| generator.cpu_share > GENERATOR_SHARE_MAX)?;
    let available_s = phase.seconds * subject_cpus as f64;
    let subject_share = phase.subject.cpu_s.filter(|_| available_s > 0.0).map(|cpu_s| cpu_s / available_s);
    if subject_share.is_some_and(|share| share > SUBJECT_SHARE_BUSY) {
        return None;
    }
    Some(Doubt::GeneratorSaturated { phase: phase.name.clone(), cpu_share: generator.cpu_share, subject_share })
}

/// `12 wrong status (404: 12), 3 reset`.
fn kinds(phase: &PhaseRecord) -> String {
    let statuses: Vec<_> = phase.wrong_statuses.iter().map(|(status, n)| format!("{n} x {status}")).collect();
    match statuses.as_slice() {
        [] => phase.failed.describe(),
        some => format!("{} ({})", phase.failed.describe(), some.join(", ")),
    }
}

/// Doubts about the machine as a whole.
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

/// A JVM that sees one CPU takes Serial, whatever it would take elsewhere.
pub(super) fn of_collector(jvm: &Jvm, asked: &[String], cpus: usize, cores: u32) -> Option<Doubt> {
    let chosen = asked.iter().any(|option| option.starts_with("-XX:+Use") && option.ends_with("GC"));
    let collector = jvm.collector.clone().filter(|collector| collector == "Serial")?;
    (!chosen && cpus < 2 && cores > 1).then_some(Doubt::CollectorByCpus { cpus, cores, collector })
}

/// Doubts about a trial as a whole.
pub(super) fn of_trial(trial: &Trial) -> Vec<Doubt> {
    let swap_bytes = trial.marks.iter().filter_map(|mark| mark.swap_bytes).max().unwrap_or(0);
    if swap_bytes > 0 { vec![Doubt::SwapInUse { swap_bytes }] } else { Vec::new() }
}

/// A JVM that may use a larger heap than its limit, without having been told to, does not see the limit.
pub(super) fn of_limit(limit: Option<Bytes>, options: &[String], flags: &Flags) -> Option<Doubt> {
    let told = options.iter().any(|option| option.starts_with("-Xmx") || option.starts_with("-XX:MaxHeapSize"));
    let heap: u64 = flags.get("MaxHeapSize")?.parse().ok()?;
    let limit = limit?;
    (!told && heap > limit.0).then_some(Doubt::LimitNotSeen { limit_bytes: limit.0, heap_bytes_max: heap })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::machine::CpuTimes;
    use crate::record::{Failures, Generator, Quantiles, SubjectWork};
    use std::time::Duration;

    fn phase() -> PhaseRecord {
        PhaseRecord { name: "steady".into(), seconds: 10.0, requests: 100, ok: 100, ..PhaseRecord::default() }
    }

    fn usage(busy_s: u64) -> Usage {
        let machine = CpuTimes {
            busy: Duration::from_secs(busy_s),
            idle: Duration::from_secs(20 - busy_s),
            ..CpuTimes::default()
        };
        Usage { machine: Some(machine), ours: Duration::from_secs(10), elapsed: Duration::from_secs(10) }
    }

    #[test]
    fn a_quiet_phase_raises_none() {
        assert_eq!(of_phase(&phase(), &usage(10), 1), []);
    }

    #[test]
    fn other_programs_raise_one() {
        let doubts = of_phase(&phase(), &usage(15), 1);
        let [Doubt::NoisyMachine { foreign_cores, .. }] = doubts.as_slice() else { panic!("{doubts:?}") };
        assert!((foreign_cores - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_busy_generator_is_a_doubt_only_beside_an_idle_subject() {
        let busy = Generator { cpu_share: 0.97, ..Generator::default() };
        let with = |cpu_s| PhaseRecord {
            generator: Some(busy),
            subject: SubjectWork { cpu_s: Some(cpu_s), ..SubjectWork::default() },
            ..phase()
        };
        assert_eq!(of_phase(&with(9.8), &usage(10), 1), []);
        assert!(matches!(of_phase(&with(5.0), &usage(10), 1)[..], [Doubt::GeneratorSaturated { .. }]));
    }

    #[test]
    fn failures_and_plateau_are_named() {
        let failed = Failures { status: 3, ..Failures::default() };
        let times = Quantiles { p50: 40.2, ..Quantiles::default() };
        let wrong_statuses = [(404, 3)].into();
        let phase = PhaseRecord { failed, wrong_statuses, service_ms: Some(times), ..phase() };
        let doubts = of_phase(&phase, &usage(10), 1);
        assert_eq!(doubts[0].text(), "3 of 100 requests failed in steady: 3 wrong status (3 x 404)");
        assert!(matches!(doubts[1], Doubt::Plateau40Ms { .. }));
    }

    #[test]
    fn serial_by_itself_on_one_cpu_is_a_doubt() {
        let jvm = Jvm { collector: Some("Serial".into()), ..Jvm::default() };
        assert!(of_collector(&jvm, &["-Xmx6m".into()], 1, 2).is_some());
        assert!(of_collector(&jvm, &["-XX:+UseSerialGC".into()], 1, 2).is_none());
        assert!(of_collector(&jvm, &[], 1, 1).is_none());
    }

    #[test]
    fn a_limit_is_unseen_only_by_a_jvm_left_to_itself() {
        let flags = Flags::parse("-XX:MaxHeapSize=8589934592");
        assert!(of_limit(Some(Bytes::mib(512)), &[], &flags).is_some());
        assert!(of_limit(Some(Bytes::mib(512)), &["-Xmx8g".into()], &flags).is_none());
        assert!(of_limit(None, &[], &flags).is_none());
    }
}
