//! Judges outcomes against the unchanged subject: the saving of a setting, the reason to reject it, and the result of a
//! confirmation. Pure arithmetic.

use super::fates::{CandidateFate, grew};
use super::outcome::{Means, Noise, Observed, deviation};
use super::setting::{Candidate, Setting};
use crate::comparison;
use crate::diagnosis::remedy::Group;
use crate::owner::{self, Owner, is_heap};
use crate::record::Fate;
use crate::units::{Bytes, MIB, several};
use std::fmt;

/// A difference counts if it is at least this many standard errors.
const DEVIATIONS: f64 = 1.5;
/// The number of standard errors above the price that clearly exceed it: if the confirmation can measure it, and if it
/// cannot.
const DEVIATIONS_PRICE: [f64; 2] = [1.0, 2.0];
/// Half the width of the CPU-time interval over all blocks of a confirmation, in standard deviations of one trial:
/// Student's t for 98.75% and 19 degrees of freedom, times √(2 / 20). CPU time closer to the price stays unproved.
pub(super) const PROVABLE: f64 = 0.77;
/// Three trials can underestimate the deviation of the collector's CPU time; smaller shares are raised to this one.
const COLLECTING_MIN: f64 = 0.1;
/// Memory that no candidate affects counts if it changed by this many of its standard errors.
const DEVIATIONS_OTHERS: f64 = 4.0;
/// The share by which memory that depends on the last collection can differ between identical trials. This concerns
/// the Java heap, direct memory held by garbage, and the part of it that malloc retains.
const MOMENT_SHARE: f64 = 0.25;
/// Growth by fewer bytes is ignored.
const GROWN_MIN: f64 = 2.0 * MIB as f64;
/// With five or more blocks, an interval narrows by this additional factor, because Student's t falls along with the
/// standard error. If the price would still be inside the interval after the last block, the confirmation ends.
const NARROWER: f64 = 0.75;
/// Joint confidence of all intervals at one look, for the objective and CPU time. Each uses only one end, so a look
/// errs with half the remaining probability, which allows five looks at CPU time (Pocock 1977).
const CONFIDENCE: f64 = 0.95;

/// The unchanged subject and the spread of its trials.
pub(super) struct AsItIs {
    means: Means,
    pub(super) noise: Noise,
    /// The allowed increase in CPU time per request, as a share.
    price: f64,
    /// The share of CPU time that a saved byte is worth.
    worth: f64,
    /// The collector's CPU time per request and its standard deviation; `None` if unknown.
    collecting_s: Option<(f64, f64)>,
}

/// Why a setting is rejected.
pub(super) enum Rejection {
    /// The subject did not start.
    Refused(String),
    /// It missed the target.
    Missed(String),
    /// CPU time per request relative to the unchanged subject.
    Costs(f64),
    /// Memory grew, by this many bytes.
    Grew(f64),
    /// Its memory, or the baseline's, was not measured.
    Unweighed,
}

impl AsItIs {
    pub(super) fn new(as_is: &[&Observed], price: f64, worth: f64) -> Self {
        let collecting = collecting_s(as_is);
        let collecting_s = collecting.map(|all| (all.iter().sum::<f64>() / all.len() as f64, deviation(&all)));
        Self { means: Means::of(as_is), noise: Noise::of(as_is), price, worth, collecting_s }
    }

    /// Whether memory is known per owner.
    pub(super) fn has_owners(&self) -> bool {
        !self.means.owners.is_empty()
    }

    /// The bytes of these owners, or of all memory if none is given.
    pub(super) fn held_by(&self, owners: &[Owner]) -> f64 {
        self.means.held_by(owners)
    }

    /// The memory that these owners, and others with a significant change, save in `to`. Without owners, or without an
    /// account, the difference of the objective.
    pub(super) fn saved(&self, from: &Means, to: &Means, owners: &[Owner]) -> f64 {
        if owners.is_empty() || from.owners.is_empty() || to.owners.is_empty() {
            return from.bytes - to.bytes;
        }
        let moved = |part: &[Owner]| from.held_by(part) - to.held_by(part);
        let others = parts(owners).map(|part| (moved(&part), self.by_chance(&part, from, to)));
        let beyond = others.filter(|(bytes, chance)| bytes.abs() > chance.max(MIB as f64));
        moved(owners) + beyond.map(|(bytes, _)| bytes).sum::<f64>()
    }

    /// The bytes by which a part of memory can differ by chance between these means.
    fn by_chance(&self, part: &[Owner], from: &Means, to: &Means) -> f64 {
        let by_moment: f64 = part.iter().map(|owner| moment(*owner, from)).sum();
        (DEVIATIONS_OTHERS * self.error(from, to, part)).max(by_moment)
    }

    /// The standard error of the difference between two settings for these owners.
    pub(super) fn error(&self, from: &Means, to: &Means, owners: &[Owner]) -> f64 {
        self.noise.between(&self.means, from, to, owners) * standard_error(from, to)
    }

    /// The smallest saving of these owners that is distinguishable from noise.
    pub(super) fn least(&self, from: &Means, to: &Means, owners: &[Owner]) -> f64 {
        (DEVIATIONS * self.error(from, to, owners)).max(MIB as f64)
    }

    /// The bytes saved by a candidate's owners compared with the unchanged subject, and the least detectable
    /// difference.
    pub(super) fn saved_by(&self, candidate: Candidate<'_>, means: &Means) -> (f64, f64) {
        let owners = &candidate.owners;
        (self.means.held_by(owners) - means.held_by(owners), self.least(&self.means, means, owners))
    }

    /// Whether the noise in CPU time allows a price to be proved at all.
    pub(super) fn can_be_priced(&self) -> bool {
        PROVABLE * self.noise.cpu_believed() <= self.price
    }

    fn doubt_of_price(&self) -> f64 {
        // Three trials can agree by chance.
        DEVIATIONS_PRICE[usize::from(!self.can_be_priced() || self.noise.cpu_believed() > self.noise.cpu)]
    }

    /// The allowed increase in CPU time: the price, or the value of the bytes that these owners save.
    pub(super) fn allowed(&self, means: &Means, owners: &[Owner]) -> f64 {
        self.price.max(self.worth * self.saved(&self.means, means, owners))
    }

    /// Standard error of the CPU time per request, as a share.
    pub(super) fn cpu_error(&self, means: &Means) -> f64 {
        self.noise.cpu_believed() * standard_error(&self.means, means)
    }

    /// CPU time per request relative to the unchanged subject, if both were measured.
    pub(super) fn cpu_ratio(&self, means: &Means, outcomes: &[&Observed]) -> Option<f64> {
        let is_known = is_weighed(outcomes) && means.cpu_s.is_some() && self.means.cpu_s.is_some();
        is_known.then(|| means.cpu_ratio(&self.means))
    }

    /// The reason to reject a setting with these outcomes, if any.
    pub(super) fn rejection(&self, setting: &Setting<'_>, outcomes: &[&Observed]) -> Option<Rejection> {
        if let Some(failed) = outcomes.iter().find(|of| !of.holds) {
            let why = failed.why.join("; ");
            return Some(if failed.refused { Rejection::Refused(why) } else { Rejection::Missed(why) });
        }
        let means = Means::of(outcomes);
        if means.trials == 0 || self.means.trials == 0 {
            return Some(Rejection::Unweighed);
        }
        let (ratio, owners) = (means.cpu_ratio(&self.means), setting.owners());
        let allowed = self.allowed(&means, &owners);
        // Only a clearly exceeded price leads to a rejection.
        if ratio > 1.0 + allowed + self.doubt_of_price() * self.cpu_error(&means) {
            return Some(Rejection::Costs(ratio));
        }
        if let Some(ratio) = self.collects_too_much(setting, outcomes, allowed) {
            return Some(Rejection::Costs(ratio));
        }
        let saved = self.saved(&self.means, &means, &owners);
        if saved < -self.least(&self.means, &means, &owners) {
            return Some(Rejection::Grew(-saved));
        }
        // In a set, the growth of a single owner is caused by one candidate, whatever the others save.
        let grown = self.grown(&means).filter(|_| setting.only().is_none());
        grown.map(Rejection::Grew)
    }

    /// CPU time per request relative to the unchanged subject, if the collector's part alone exceeds the price. The
    /// collector's part varies little between trials, so it reveals a price that the program's noise hides. Does not
    /// apply to another collector, which shifts work between the two parts.
    fn collects_too_much(&self, setting: &Setting<'_>, outcomes: &[&Observed], allowed: f64) -> Option<f64> {
        let (_, deviation) = self.collecting_s.filter(|_| setting.level_of(Group::Collector).is_none())?;
        let (before, all_s) = self.collecting_s.map(|(before, _)| before).zip(self.means.cpu_s)?;
        let rise = self.collects_more(outcomes)?;
        let deviation = deviation.max(COLLECTING_MIN * before) / all_s;
        let error = deviation * (1.0 / outcomes.len() as f64 + 1.0 / self.means.trials.max(1) as f64).sqrt();
        (rise > allowed + DEVIATIONS_PRICE[1] * error).then_some(1.0 + rise)
    }

    /// The collector's additional CPU time per request, relative to the total CPU time per request of the unchanged
    /// subject; `None` if unknown.
    pub(super) fn collects_more(&self, outcomes: &[&Observed]) -> Option<f64> {
        let ((before, _), all_s) = self.collecting_s.zip(self.means.cpu_s.filter(|cpu| *cpu > 0.0))?;
        let after = collecting_s(outcomes)?;
        Some((after.iter().sum::<f64>() / after.len() as f64 - before) / all_s)
    }

    /// The largest significant growth of a part of memory.
    fn grown(&self, means: &Means) -> Option<f64> {
        if means.owners.is_empty() || !self.has_owners() {
            return None;
        }
        let grown = parts(&[]).map(|part| {
            let bytes = means.held_by(&part) - self.means.held_by(&part);
            (bytes, self.by_chance(&part, &self.means, means))
        });
        grown.filter(|(bytes, chance)| *bytes > chance.max(GROWN_MIN)).map(|(bytes, _)| bytes).reduce(f64::max)
    }

    pub(super) fn fate(
        &self,
        candidate: Candidate<'_>,
        rejection: &Rejection,
        outcomes: &[&Observed],
    ) -> CandidateFate {
        let means = Means::of(outcomes);
        let saved = self.saved(&self.means, &means, &candidate.owners);
        let (fate, why) = match rejection {
            Rejection::Refused(why) => (Fate::Refused, format!("the server did not start with it: {why}")),
            Rejection::Missed(why) => (Fate::Harmful, format!("the target was missed: {why}")),
            Rejection::Costs(ratio) => {
                (Fate::TooCostly, format!("CPU time per request {:+.1}%", (ratio - 1.0) * 100.0))
            }
            Rejection::Grew(bytes) => (Fate::Harmful, grew(*bytes)),
            Rejection::Unweighed => {
                (Fate::NoEffect, "its memory was not measured, so its savings are unknown".to_owned())
            }
        };
        let saved = Some(saved).filter(|_| is_weighed(outcomes));
        CandidateFate { fate, why, saved, cpu_ratio: self.cpu_ratio(&means, outcomes) }
    }
}

/// The parts of memory, without some owners. Owners within a part exchange bytes: malloc chunks live in one trial are
/// retained in the next.
fn parts(without: &[Owner]) -> impl Iterator<Item = Vec<Owner>> {
    let parts = Owner::ALL.chunk_by(|one, next| owner::family(one.name()) == owner::family(next.name()));
    let parts: Vec<Vec<Owner>> =
        parts.map(|part| part.iter().copied().filter(|owner| !without.contains(owner)).collect()).collect();
    parts.into_iter().filter(|part| !part.is_empty())
}

/// Bytes by which this owner can differ by chance, depending on the time of the last collection.
fn moment(owner: Owner, means: &Means) -> f64 {
    let is_of_moment = is_heap(owner.name()) || matches!(owner, Owner::MallocDirect | Owner::MallocRetained);
    if is_of_moment { MOMENT_SHARE * means.held_by(&[owner]) } else { 0.0 }
}

/// The collector's CPU time per request in each outcome; `None` if any lacks it.
fn collecting_s(outcomes: &[&Observed]) -> Option<Vec<f64>> {
    let all: Option<Vec<f64>> = outcomes.iter().map(|of| of.gc_s).collect();
    all.filter(|all| !all.is_empty())
}

fn is_weighed(outcomes: &[&Observed]) -> bool {
    !outcomes.is_empty() && outcomes.iter().all(|of| of.bytes.is_some())
}

/// The standard error of the difference between two means, in standard deviations of one trial.
fn standard_error(one: &Means, other: &Means) -> f64 {
    let of = |trials: usize| 1.0 / trials.max(1) as f64;
    (of(one.trials) + of(other.trials)).sqrt()
}

/// Pairs of trials, unchanged and with the winner, one pair per block.
pub(super) struct ConfirmationPairs<'c> {
    pub(super) pairs: Vec<(&'c Observed, &'c Observed)>,
    pub(super) price: f64,
    /// The share of CPU time that a saved byte is worth; the price is at least the value of the whole saving.
    pub(super) worth: f64,
    pub(super) seed: u64,
}

impl ConfirmationPairs<'_> {
    fn saved(&self) -> Option<(f64, Option<(f64, f64)>)> {
        let saved: Vec<f64> = self.pairs.iter().filter_map(|(as_is, with)| Some(as_is.bytes? - with.bytes?)).collect();
        comparison::of_pairs(&saved, self.seed, CONFIDENCE, 2)
    }

    /// The allowed increase in CPU time: the price, or the value of the bytes certainly saved.
    pub(super) fn allowed(&self) -> f64 {
        let least = self.saved().and_then(|(_, ends)| ends).map_or(0.0, |(low, _)| low);
        self.price.max(self.worth * least)
    }

    /// Why the pairs do not prove that the winner saves memory within the price; `None` if they do.
    pub(super) fn unproved(&self) -> Option<Unconfirmed> {
        let ratio = |(as_is, with): &(&Observed, &Observed)| Some(with.cpu_s? / as_is.cpu_s.filter(|cpu| *cpu > 0.0)?);
        let ratios: Vec<f64> = self.pairs.iter().filter_map(ratio).collect();
        let Some((centre, Some((low, _)))) = self.saved() else { return Some(Unconfirmed::Unweighed) };
        if low <= 0.0 || centre < MIB as f64 {
            return Some(Unconfirmed::Saves { centre, low });
        }
        let of_cpu = comparison::of_pairs(&ratios, self.seed, CONFIDENCE, 2);
        let Some((ratio, Some((low, high)))) = of_cpu else { return Some(Unconfirmed::CpuUnmeasured) };
        let price = self.allowed();
        // Only the upper end proves a price: the mean can be below it by chance.
        let blocks = self.blocks_to_prove(1.0 + price - ratio, high - ratio);
        (high > 1.0 + price).then_some(Unconfirmed::Costs { ratio, low, high, price, blocks })
    }

    /// The number of pairs that would prove a mean this far below the price, given the current half width, which
    /// shrinks with the square root of that number; `None` if the mean is not below the price.
    fn blocks_to_prove(&self, room: f64, half: f64) -> Option<u32> {
        (room > 0.0).then(|| (self.pairs.len() as f64 * (half / room).powi(2)).ceil() as u32)
    }

    /// Whether the pairs prove a saving but not its price, and up to `blocks_max` pairs might.
    pub(super) fn may_cost_less(&self, blocks_max: u32) -> bool {
        let Some(Unconfirmed::Costs { ratio, low, high, price, .. }) = self.unproved() else { return false };
        let narrower = NARROWER * (self.pairs.len() as f64 / f64::from(blocks_max)).sqrt();
        low <= 1.0 + price && ratio + narrower * (high - ratio) <= 1.0 + price
    }
}

/// Why a setting was not confirmed.
pub(super) enum Unconfirmed {
    /// It missed the target.
    Broke(String),
    /// Its saving and the lower end of its interval, in bytes, are not evidence of a saving.
    Saves { centre: f64, low: f64 },
    /// CPU time per request relative to the unchanged subject; the upper end of its interval exceeds the price.
    /// `blocks` is the number that would prove the mean, if the mean is below the price.
    Costs { ratio: f64, low: f64, high: f64, price: f64, blocks: Option<u32> },
    /// Too few trials have memory measurements.
    Unweighed,
    /// CPU time was measured in too few trials.
    CpuUnmeasured,
}

impl Unconfirmed {
    /// Whether memory clearly falls, but the CPU-time interval contains the price.
    pub(super) fn is_unpriced(&self) -> bool {
        matches!(self, Self::Costs { low, price, .. } if *low <= 1.0 + price)
    }
}

impl fmt::Display for Unconfirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signed = |bytes: f64| format!("{}{}", if bytes < 0.0 { "-" } else { "" }, Bytes(bytes.abs() as u64));
        match self {
            Self::Broke(why) => write!(f, "the target was missed: {why}"),
            Self::Saves { centre, low } => {
                write!(f, "it saved {}, but {} is possible", signed(*centre), signed(*low))
            }
            Self::Costs { ratio, low, high, price, blocks } => {
                let [ratio, low, high] = [ratio, low, high].map(|ratio| (ratio - 1.0) * 100.0);
                let price = price * 100.0;
                write!(f, "CPU time per request {ratio:+.1}%")?;
                if low <= price {
                    write!(f, " (up to {high:+.1}% is possible)")?;
                }
                write!(f, ", but the price limit is {price:.1}%")?;
                blocks.map_or(Ok(()), |blocks| {
                    write!(f, "; confirming it would take about {} of two trials", several(blocks.into(), "block"))
                })
            }
            Self::Unweighed => write!(f, "too few trials were weighed"),
            Self::CpuUnmeasured => {
                write!(f, "CPU time per request was measured in too few trials, so the cost is not confirmed")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::TuneStage;

    fn observed(app_us: f64, gc_us: f64) -> Observed {
        Observed {
            stage: TuneStage::Baseline,
            remedies: Vec::new(),
            block: 0,
            holds: true,
            refused: false,
            why: Vec::new(),
            not_in_force: Vec::new(),
            bytes: Some(100.0 * MIB as f64),
            owners: Default::default(),
            cpu_s: Some((app_us + gc_us) * 1e-6),
            gc_s: Some(gc_us * 1e-6),
            young: false,
            seconds: 25.0,
        }
    }

    #[test]
    fn excessive_gc_time_is_detected_despite_noisy_application_time() {
        let as_is = [observed(770.0, 19.0), observed(1062.0, 23.0), observed(674.0, 18.0)];
        let as_is = AsItIs::new(&as_is.each_ref(), 0.06, 0.0);
        let ratio = |outcomes: &[Observed]| {
            let rejection = as_is.rejection(&Setting::default(), &outcomes.iter().collect::<Vec<_>>());
            if let Some(Rejection::Costs(ratio)) = rejection { Some((ratio * 100.0).round()) } else { None }
        };
        // Total CPU time is lower by chance, but the collector takes 220 us more, which is 26% of the unchanged 855 us.
        assert_eq!(ratio(&[observed(429.0, 239.0), observed(572.0, 241.0)]), Some(126.0));
        assert_eq!(ratio(&[observed(632.0, 40.0), observed(620.0, 45.0)]), None);
        let untold = Observed { gc_s: None, ..observed(429.0, 239.0) };
        assert_eq!(ratio(&[untold]), None);
    }

    #[test]
    fn saved_memory_can_justify_cpu_cost() {
        let pair = |saved_mib: f64, cpu: f64| {
            let with = |mib: f64, us: f64| Observed { bytes: Some(mib * MIB as f64), ..observed(us, 0.0) };
            (with(200.0, 1000.0), with(200.0 - saved_mib, cpu))
        };
        let unproved = |saved_mib: f64, worth: f64| {
            let each = [950.0, 1100.0, 1020.0, 1060.0, 990.0].map(|cpu| pair(saved_mib, cpu));
            let pairs = each.iter().map(|(as_is, with)| (as_is, with)).collect();
            let pairs = ConfirmationPairs { pairs, price: 0.02, worth, seed: 1 };
            (pairs.unproved().is_some(), pairs.allowed())
        };
        assert_eq!(unproved(100.0, 0.0), (true, 0.02));
        // At 50 millicores and one core per 4 GiB, 100 MiB is worth 49% of CPU time.
        let worth = 1.0 / (4096.0 * MIB as f64) / 0.05;
        let (is_open, allowed) = unproved(100.0, worth);
        assert!(!is_open && (allowed - 0.488).abs() < 0.01, "{allowed}");
        // The value of 1 MiB is below the price.
        assert_eq!(unproved(1.0, worth), (true, 0.02));
    }

    #[test]
    fn three_similar_young_jvms_are_not_enough_to_reject_a_remedy() {
        let young = |app: f64| Observed { young: true, ..observed(app, 1.0) };
        let as_is = [388.0, 427.0, 380.0].map(young);
        let with = [596.0, 664.0].map(|app| Observed { bytes: Some(10.0 * MIB as f64), ..young(app) });
        let is_rejected = |young: bool, worth: f64| {
            let of = as_is.each_ref().map(|of| Observed { young, ..of.clone() });
            let as_is = AsItIs::new(&of.each_ref(), 0.12, worth);
            as_is.rejection(&Setting::default(), &with.each_ref()).is_some()
        };
        assert!(is_rejected(false, 0.0), "warm JVMs that agree within 6% justify a rejection");
        assert!(!is_rejected(true, 0.28 / (90.0 * MIB as f64)), "90 MiB are worth 28% here; 20% is within noise");
    }
}
