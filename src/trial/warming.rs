//! Decides from the last few seconds of work whether a JVM is warm: its compilers are idle, and the cost per request
//! is stable. Pure.

use crate::weigh::Used;
use std::collections::VecDeque;
use std::time::Duration;

/// The interval between readings in a phase that can end when the subject is warm.
const LOOK_EACH: Duration = Duration::from_secs(2);
/// This many consecutive stretches must agree, because compilers pause for seconds between bursts.
const STRETCHES: usize = 4;
/// With fewer responses, the cost per request is unknown.
const ANSWERS_MIN: u64 = 50;
/// The compilers' share of CPU time. On a Netty server it was 1 to 5% once requests had reached their lowest cost, and
/// 15 to 50% before.
const JIT_SHARE_MAX: f64 = 0.05;
/// A server that has been warm for minutes shows this spread between 2 s stretches at a constant rate.
const CPU_SPREAD_MAX: f64 = 0.15;
/// Allocation per request varies less, once escape analysis is complete.
const ALLOCATION_SPREAD_MAX: f64 = 0.05;
/// Code compiled during the stretches, as a share of all code.
const CODE_GROWTH_MAX: f64 = 0.02;

/// The readings of one phase.
#[derive(Debug, Default)]
pub(super) struct Warming {
    /// Whether the phase ends when the subject is warm.
    ends_it: bool,
    next: Duration,
    last: Option<(Used, u64)>,
    stretches: VecDeque<Stretch>,
}

/// The subject's work between two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    /// The compilers' share of CPU time, 0–1; `None` if thread names do not reveal their purpose.
    jit_share: Option<f64>,
    /// CPU time per request without the compilers', in seconds.
    cpu_s: f64,
    /// Bytes allocated per request; `None` if not readable from outside the JVM.
    allocated: Option<f64>,
    /// Bytes of machine code compiled so far; `None` if the JVM does not count them.
    compiled: Option<u64>,
}

impl Warming {
    pub(super) fn new(ends_it: bool) -> Self {
        Self { ends_it, ..Self::default() }
    }

    pub(super) fn is_due(&self, now: Duration) -> bool {
        now >= self.next
    }

    /// Adds a reading: the subject's usage, and the phase's correct responses so far. A stretch with too few responses
    /// continues until the next reading.
    pub(super) fn look(&mut self, now: Duration, used: Used, answers: u64) {
        self.next = now + LOOK_EACH;
        let Some((before, answers_before)) = &self.last else {
            self.last = Some((used, answers));
            return;
        };
        let more = answers.saturating_sub(*answers_before);
        if more < ANSWERS_MIN {
            return;
        }
        let spent = used.since(before);
        let by_purpose = spent.cpu_by_purpose();
        let Some(cpu_s) = spent.cpu.map(|cpu| cpu.as_secs_f64()).filter(|cpu_s| *cpu_s > 0.0) else { return };
        let jit_s = by_purpose.map(|of| of.jit_s);
        if self.stretches.len() == STRETCHES {
            self.stretches.pop_front();
        }
        self.stretches.push_back(Stretch {
            jit_share: jit_s.map(|jit_s| jit_s / cpu_s),
            cpu_s: (cpu_s - jit_s.unwrap_or(0.0)) / more as f64,
            allocated: spent.allocated.map(|of| of.bytes as f64 / more as f64),
            compiled: used.main.compiled,
        });
        self.last = Some((used, answers));
    }

    /// Whether the phase should end now.
    pub(super) fn is_over(&self) -> bool {
        self.ends_it && self.is_steady() == Some(true)
    }

    pub(super) fn ends_it(&self) -> bool {
        self.ends_it
    }

    /// The quantities that still change; empty if the subject is warm. `None` if CPU time was not read, or the phase is
    /// too short to tell.
    pub(super) fn unsteady(&self) -> Option<Vec<String>> {
        if self.stretches.len() < STRETCHES {
            return None;
        }
        let percent = |share: f64| format!("{:.0}%", share * 100.0);
        let all = |of: fn(&Stretch) -> Option<f64>| self.stretches.iter().map(of).collect::<Option<Vec<f64>>>();
        let above = |spread: Option<f64>, max: f64| spread.filter(|spread| *spread > max).map(percent);
        let jit = all(|of| of.jit_share).map(|shares| shares.iter().sum::<f64>() / shares.len() as f64);
        let compiled = |of: &Stretch| of.compiled.map(|bytes| bytes as f64);
        let found = [
            above(jit, JIT_SHARE_MAX).map(|share| format!("the compilers used {share} of the CPU time")),
            above(spread(all(|of| Some(of.cpu_s))), CPU_SPREAD_MAX)
                .map(|spread| format!("CPU time per request varied by {spread}")),
            above(spread(all(|of| of.allocated)), ALLOCATION_SPREAD_MAX)
                .map(|spread| format!("bytes allocated per request varied by {spread}")),
            above(spread(all(compiled)), CODE_GROWTH_MAX).map(|spread| format!("compiled code grew by {spread}")),
        ];
        Some(found.into_iter().flatten().collect())
    }

    /// Whether the subject is warm; `None` as for [`Self::unsteady`].
    pub(super) fn is_steady(&self) -> Option<bool> {
        self.unsteady().map(|found| found.is_empty())
    }
}

/// The range relative to the lowest value.
fn spread(values: Option<Vec<f64>>) -> Option<f64> {
    let values = values?;
    let (low, high) = values.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), of| (low.min(*of), high.max(*of)));
    (low > 0.0 && low.is_finite()).then(|| high / low - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::thread_purposes::OwnTimes;
    use crate::record::AllocatedBy;
    use crate::weigh::Spending;
    use loadline_jvm::accounting::AllocatedSoFar;

    /// A subject's work between two readings: µs of application and compiler CPU time per request, bytes per request,
    /// bytes of new code, responses.
    #[derive(Clone, Copy)]
    struct Does {
        app_us: u64,
        jit_us: u64,
        bytes: u64,
        code: u64,
        answers: u64,
    }

    const WARM: Does = Does { app_us: 300, jit_us: 5, bytes: 2000, code: 100, answers: 400 };

    /// Readings of a subject that does this work; a subject that is not a JVM has no thread purposes.
    fn looked(all: &[Does], is_jvm: bool) -> Warming {
        let (mut warming, mut now, mut answers) = (Warming::new(true), Duration::ZERO, 0);
        let (mut cpu, mut own) = (Duration::from_secs(3), OwnTimes::default());
        let (mut bytes, mut code) = (1 << 20, 1 << 20);
        let mut look = |cpu, own, bytes, code, answers| {
            let main = Spending {
                cpu: Some(cpu),
                own: is_jvm.then_some(own),
                gc: None,
                allocated: is_jvm.then_some(AllocatedSoFar { bytes, by: AllocatedBy::AllThreads }),
                compiled: is_jvm.then_some(code),
            };
            warming.look(now, Used { main, ..Used::default() }, answers);
            now += LOOK_EACH;
        };
        look(cpu, own, bytes, code, answers);
        for of in all {
            let us = |us: u64| Duration::from_micros(us * of.answers);
            (cpu, answers) = (cpu + us(of.app_us + of.jit_us), answers + of.answers);
            own.jit += us(of.jit_us);
            (bytes, code) = (bytes + of.bytes * of.answers, code + of.code);
            look(cpu, own, bytes, code, answers);
        }
        warming
    }

    #[test]
    fn a_subject_is_warm_when_nothing_changes() {
        assert_eq!(looked(&[WARM; 3], true).is_steady(), None, "three readings are too few for a decision");
        assert_eq!(looked(&[WARM; 4], true).is_steady(), Some(true));
        assert_eq!(looked(&[WARM; 4], false).is_steady(), Some(true), "only its CPU time is known");
        let idle = Does { answers: 10, ..WARM };
        assert_eq!(looked(&[idle; 19], true).is_steady(), None, "only three intervals have 50 or more responses");
        assert_eq!(looked(&[idle; 20], true).is_steady(), Some(true));
        assert_eq!(looked(&[Does { answers: 0, ..WARM }; 9], true).is_steady(), None);
    }

    #[test]
    fn values_that_still_change_are_named() {
        let after = |young: Does| looked(&[young, WARM, WARM, WARM], true).unsteady().unwrap().join("; ");
        assert_eq!(after(Does { jit_us: 300, ..WARM }), "the compilers used 14% of the CPU time");
        assert_eq!(after(Does { app_us: 420, ..WARM }), "CPU time per request varied by 40%");
        assert_eq!(after(Does { bytes: 2200, ..WARM }), "bytes allocated per request varied by 10%");
        let compiles = Does { code: 60 << 10, ..WARM };
        let found = looked(&[WARM, compiles, compiles, WARM], true).unsteady().unwrap();
        assert_eq!(found, ["compiled code grew by 12%"]);
        // After four more stretches, none of it is visible.
        let all = [&[Does { jit_us: 300, app_us: 600, ..WARM }; 5][..], &[WARM; 4]].concat();
        assert!(looked(&all, true).is_over());
        assert!(!looked(&all[..8], true).is_over());
    }

    #[test]
    fn a_pause_in_compilation_does_not_end_the_warm_up() {
        let wave = Does { jit_us: 200, ..WARM };
        assert!(!looked(&[wave, WARM, WARM, wave, WARM, WARM, wave, WARM], true).is_over());
    }

    #[test]
    fn readings_are_due_every_two_seconds_and_end_only_adaptive_phases() {
        let mut warming = looked(&[WARM; 4], true);
        assert!(!warming.is_due(Duration::from_millis(9999)) && warming.is_due(Duration::from_secs(10)));
        warming.ends_it = false;
        assert!(!warming.is_over() && warming.is_steady() == Some(true));
    }
}
