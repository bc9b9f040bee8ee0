//! How long the engine sleeps before it looks for answers, so that the server need not wake it for each.
//!
//! A generator that is faster than the server sleeps between answers, and over loopback it is the *server* that pays
//! for waking it: 3 µs for every few requests, a tenth of what nginx needs for a small file. No client across a
//! network costs a server that. A nap that ends by the clock spares it, and the answers of the meantime are taken at
//! once.
//!
//! A nap must not make answers look later than they are. In a closed model it cannot without being caught: every
//! connection has a request under way, so the mean service time is connections / rate (Little 1961). Once a second
//! short stretches with naps and without alternate, and naps are taken only while the rate with them is no lower.

/// Never longer: what a network card that coalesces its interrupts takes.
const NAP_NS_MAX: u64 = 40_000;
/// Shorter ones cost more than they spare.
const NAP_NS_MIN: u64 = 5_000;
/// A nap takes at most this part of the mean service time.
const PART_OF_SERVICE: u64 = 8;
/// One stretch of a comparison: hundreds of requests, and short enough for what else changes to hit both sides.
const STRETCH_NS: u64 = 4_000_000;
/// Stretches of a comparison: without, with, with, without, and again.
const STRETCHES: u32 = 12;
/// Where fewer answers come in a stretch, waking is a small part of what they cost, and a comparison would be chance.
const ANSWERS_MIN: u64 = 40;
/// From one comparison to the next.
const PERIOD_NS: u64 = 1_000_000_000;
/// Until the first one, so that connections are open and servers awake.
const WARM_UP_NS: u64 = 20_000_000;

/// Naps of one thread.
#[derive(Debug)]
pub(super) struct Naps {
    nap_ns: u64,
    /// The length that is compared with none.
    candidate_ns: u64,
    /// When the stretch under way, or the pause between comparisons, ends; `u64::MAX` where naps are never taken.
    until_ns: u64,
    /// Which stretch is under way; [`STRETCHES`] between comparisons.
    stretch: u32,
    since_ns: u64,
    answers_before: u64,
    with: Stretches,
    without: Stretches,
}

/// What stretches of one kind came to.
#[derive(Debug, Default)]
struct Stretches {
    answers: u64,
    ns: u64,
}

impl Stretches {
    fn per_s(&self) -> f64 {
        if self.ns == 0 { 0.0 } else { self.answers as f64 * 1e9 / self.ns as f64 }
    }
}

impl Naps {
    /// `allowed` in a closed model without thinking only: elsewhere a nap would be seen in the response times.
    pub(super) fn new(allowed: bool) -> Self {
        Self {
            nap_ns: 0,
            candidate_ns: 0,
            until_ns: if allowed { WARM_UP_NS } else { u64::MAX },
            stretch: STRETCHES,
            since_ns: 0,
            answers_before: 0,
            with: Stretches::default(),
            without: Stretches::default(),
        }
    }

    /// The phase begins.
    pub(super) fn start(&mut self, start_ns: u64) {
        (self.since_ns, self.until_ns) = (start_ns, self.until_ns.saturating_add(start_ns));
    }

    /// How long to sleep now; 0 for not at all. `answers` came since the phase began, `busy` requests are under way.
    #[inline]
    pub(super) fn next(&mut self, now_ns: u64, answers: u64, busy: u64) -> u64 {
        if now_ns >= self.until_ns {
            self.go_on(now_ns, answers, busy);
        }
        self.nap_ns
    }

    /// Ends a stretch, or the pause between two comparisons.
    #[cold]
    fn go_on(&mut self, now_ns: u64, answers: u64, busy: u64) {
        let (came, took_ns) = (answers - self.answers_before, now_ns - self.since_ns);
        (self.answers_before, self.since_ns) = (answers, now_ns);
        if self.stretch == STRETCHES {
            self.candidate_ns = candidate(came, took_ns, busy);
            (self.with, self.without) = (Stretches::default(), Stretches::default());
            self.stretch = 0;
        } else {
            let stretches = if self.nap_ns > 0 { &mut self.with } else { &mut self.without };
            stretches.answers += came;
            stretches.ns += took_ns;
            self.stretch += 1;
        }
        if self.candidate_ns == 0 {
            self.stretch = STRETCHES;
        }
        let helps = if self.stretch < STRETCHES {
            matches!(self.stretch % 4, 1 | 2)
        } else {
            self.with.per_s() >= self.without.per_s()
        };
        self.nap_ns = if helps { self.candidate_ns } else { 0 };
        self.until_ns = now_ns + if self.stretch < STRETCHES { STRETCH_NS } else { PERIOD_NS };
    }
}

/// The nap to try after so many answers in so long, with as many requests under way; 0 for none.
fn candidate(answers: u64, took_ns: u64, busy: u64) -> u64 {
    if answers * STRETCH_NS < ANSWERS_MIN * took_ns {
        return 0;
    }
    let service_ns = u128::from(took_ns) * u128::from(busy) / u128::from(answers);
    let nap_ns = u64::try_from(service_ns / u128::from(PART_OF_SERVICE)).unwrap_or(u64::MAX).min(NAP_NS_MAX);
    if nap_ns < NAP_NS_MIN { 0 } else { nap_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets seconds pass on a server that answers at one rate with naps and at another without; how much of the last
    /// second was spent with naps.
    fn share_with_naps(rate_with: f64, rate_without: f64, busy: u64) -> f64 {
        let mut naps = Naps::new(true);
        let (mut answers, mut napped, mut nap) = (0.0, 0u64, 0);
        for us in 0..3_000_000u64 {
            if us % 50 == 0 {
                nap = naps.next(us * 1000, answers as u64, busy);
            }
            answers += if nap > 0 { rate_with } else { rate_without } / 1e6;
            napped += u64::from(nap > 0 && us >= 2_000_000);
        }
        napped as f64 / 1e6
    }

    #[test]
    fn naps_are_taken_only_where_the_rate_is_no_lower() {
        assert!(share_with_naps(120_000.0, 100_000.0, 25) > 0.9);
        assert!(share_with_naps(100_000.0, 101_000.0, 25) < 0.1);
    }

    #[test]
    fn a_nap_is_short_beside_the_service_time() {
        assert_eq!(candidate(100_000, 1_000_000_000, 1), 0, "10 us each: nothing to spare");
        assert_eq!(candidate(100_000, 1_000_000_000, 25), 31_250, "250 us each");
        assert_eq!(candidate(20_000, 1_000_000_000, 100), NAP_NS_MAX);
        assert_eq!(candidate(9_000, 1_000_000_000, 100), 0, "too few to compare");
        assert_eq!(candidate(0, 1_000_000_000, 100), 0);
        assert!(share_with_naps(100_000.0, 100_000.0, 1) == 0.0);
    }

    #[test]
    fn where_they_are_not_allowed_none_is_taken() {
        let mut naps = Naps::new(false);
        assert!((0..100).all(|s| naps.next(s * 100_000_000, s * 10_000, 25) == 0));
    }
}
