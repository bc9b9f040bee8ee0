//! The course of a tuning: bundle, attribute, leave one out, race, confirm. It is written as one goes through it, and
//! gone through anew after each trial: where an outcome is missing, the way ends with the trial that would bring it.
//! So what comes next follows from the outcomes so far and from nothing else.
//!
//! Every decision rests on the first outcomes of a setting, so that later ones change none that was made.

use super::outcome::{Means, Noise, Observed};
use super::setting::Setting;
use super::story::{Story, Told};
use crate::comparison;
use crate::owner::{Owner, is_heap};
use crate::record::{Fate, PriceClass, TuneStage};
use crate::remedy::{Group, Offered};
use crate::units::{Bytes, MIB};
use std::fmt;

/// Trials of the subject as it is.
pub const BASELINE: usize = 3;
/// Trials of a setting on which a decision rests.
const ENOUGH: usize = 2;
/// Blocks of a confirmation, and twice and four times as many where the interval of CPU time has the price in it.
pub const BLOCKS: u32 = 5;
const LOOKS: [u32; 2] = [BLOCKS, 2 * BLOCKS];
const BLOCKS_MAX: u32 = 4 * BLOCKS;
/// How often a confirmation is tried.
const ATTEMPTS: u32 = 2;
/// A difference of so many of its standard errors is one.
const DEVIATIONS: f64 = 1.5;
/// What is no remedy's own row counts where it moved by so many of its standard errors.
const DEVIATIONS_OTHERS: f64 = 4.0;
/// Of what the Java heap holds, what two trials may differ by for no reason.
const HEAP_SHARE: f64 = 0.25;
/// An owner that grew by less is not looked into, in bytes.
const GROWN_MIN: f64 = 2.0 * MIB as f64;
/// Trials of a setting whose CPU time lies nearer to the price than so many of its standard errors.
const UNDECIDED: usize = 3;
const NEAR: f64 = 0.7;
/// Half of the interval of CPU time over all blocks of a confirmation, in standard deviations of one trial: Student's t
/// of 98.75 % and 19 degrees of freedom, times √(2 / 20). What lies nearer to the price is not proved by them.
const PROVABLE: f64 = 0.77;
/// The interval of more blocks, as a share of what it is: of twice as many, and of four times as many. Where the price
/// would lie within that, too, they are not made.
const NARROWER: [f64; 2] = [0.6, 0.35];
/// After the target broke in a confirmation, a remedy stays that saves this share of all that is saved.
const LARGE_SHARE: f64 = 0.2;
/// All intervals of a look hold together with this probability, for the objective and for CPU time. Of each only one
/// end decides, so a look is wrong in half of what is left. That has room for three looks at CPU time (Pocock 1977).
const CONFIDENCE: f64 = 0.95;

/// What is known, and what may be asked.
#[derive(Debug)]
pub struct Course<'a> {
    /// All remedies.
    pub offered: &'a [Offered],
    /// What trials said, in the order in which they were made.
    pub outcomes: &'a [Observed],
    /// What the CPU time of a request may rise by, as a share.
    pub price: f64,
    /// Draws the order within blocks.
    pub seed: u64,
    /// Trials after which nothing more is looked for.
    pub trials_max: usize,
    /// Seconds for all trials, those of the confirmation among them.
    pub seconds_max: Option<f64>,
}

/// The trial that is needed to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// What it is for.
    pub stage: TuneStage,
    /// What is set in it; in a training run whose archive is made.
    pub setting: Setting,
    /// Its block in a confirmation; 0 elsewhere.
    pub block: u32,
}

/// How a tuning ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// This setting was confirmed, in the last attempt.
    Proved(Setting),
    /// Nothing was.
    Nothing,
    /// The target does not hold as it is.
    NotHeld,
}

/// Known already, or the trial that would tell it.
type OrAsk<T> = Result<T, Ask>;

impl Course<'_> {
    /// Goes as far as is known, and tells what became of each remedy on the way.
    ///
    /// # Errors
    /// The trial that is needed to go on.
    pub fn go(&self, story: &mut Story) -> OrAsk<Finish> {
        let as_is = self.baseline()?;
        if as_is.iter().any(|of| !of.holds) {
            return Ok(Finish::NotHeld);
        }
        let (base, noise) = (Means::of(&as_is), Noise::of(&as_is));
        let way = Way { course: self, base, noise };
        let mut winner = way.bundle(story)?;
        winner = way.leave_out(winner, story)?;
        winner = way.race(winner, story)?;
        way.confirm(winner, story)
    }

    /// The first trials as it is.
    ///
    /// # Errors
    /// The trial that is missing.
    pub fn baseline(&self) -> OrAsk<Vec<&Observed>> {
        let as_is = Setting::default();
        let known: Vec<&Observed> = self.searched(&as_is).take(BASELINE).collect();
        let failed = known.iter().filter(|of| !of.holds).count();
        match known.len() >= BASELINE || failed >= ENOUGH {
            true => Ok(known),
            false => Err(Ask { stage: TuneStage::Baseline, setting: as_is, block: 0 }),
        }
    }

    /// What the search has of a setting, the confirmation apart.
    pub fn searched(&self, setting: &Setting) -> impl Iterator<Item = &Observed> {
        let ids = setting.ids(self.offered);
        self.outcomes.iter().filter(move |of| is_of_search(of) && of.remedies == ids)
    }

    /// Whether nothing more may be looked for: the confirmation needs what is left.
    fn is_spent(&self) -> bool {
        let (count, seconds) = self
            .outcomes
            .iter()
            .filter(|of| is_of_search(of))
            .fold((0usize, 0.0), |(count, seconds), of| (count + 1, seconds + of.seconds));
        let confirming = f64::from(2 * BLOCKS + 1) * seconds / (count.max(1) as f64);
        count >= self.trials_max || self.seconds_max.is_some_and(|most| seconds + confirming > most)
    }
}

fn is_of_search(outcome: &Observed) -> bool {
    !matches!(outcome.stage, TuneStage::Confirmation | TuneStage::Reference | TuneStage::Training)
}

/// A course whose baseline is known.
struct Way<'a> {
    course: &'a Course<'a>,
    base: Means,
    noise: Noise,
}

/// Why a setting is not gone on with.
enum Harm {
    /// The subject did not start.
    Refused(String),
    /// The target did not hold.
    Missed(String),
    /// CPU time of a request over that as it is.
    Costs(f64),
    /// Memory grew, by so many bytes.
    Grew(f64),
    /// Its memory was not measured, or that of the baseline was not.
    Unweighed,
}

impl Way<'_> {
    fn offered(&self, place: usize) -> &Offered {
        &self.course.offered[place]
    }

    /// The first `count` outcomes of a setting; `None` where they are not there and nothing more may be asked.
    fn first(&self, setting: &Setting, count: usize, stage: TuneStage) -> OrAsk<Option<Vec<&Observed>>> {
        let known: Vec<&Observed> = self.course.searched(setting).take(count).collect();
        // A setting that failed decides nothing by failing again.
        if known.len() >= count || known.iter().any(|of| !of.holds) {
            return Ok(Some(known));
        }
        if self.course.is_spent() {
            return Ok(None);
        }
        self.trained(setting)?;
        Err(Ask { stage, setting: setting.clone(), block: 0 })
    }

    /// Archives of classes are made before the trials that use them.
    fn trained(&self, setting: &Setting) -> OrAsk<()> {
        let needs = |place: &&usize| self.offered(**place).offer.as_ref().is_ok_and(|offer| !offer.training.is_empty());
        let is_trained = |id: &String| {
            self.course.outcomes.iter().any(|of| of.stage == TuneStage::Training && of.remedies.contains(id))
        };
        let mut needing = setting.places().iter().filter(needs);
        let untrained = needing.find(|place| !is_trained(&self.offered(**place).id));
        match untrained {
            Some(place) => Err(Ask { stage: TuneStage::Training, setting: Setting::of([*place]), block: 0 }),
            None => Ok(()),
        }
    }

    /// By how much less memory there is in `to`: of these owners, and of others that moved beyond doubt. Where no owner
    /// is named, of the objective.
    fn saved(&self, from: &Means, to: &Means, owners: &[Owner]) -> f64 {
        if owners.is_empty() || from.owners.is_empty() || to.owners.is_empty() {
            return from.bytes - to.bytes;
        }
        let error = standard_error(from, to);
        let moved = |owner: Owner| from.held_by(&[owner]) - to.held_by(&[owner]);
        let others = Owner::ALL.into_iter().filter(|owner| !owners.contains(owner)).map(|owner| (owner, moved(owner)));
        let beyond = others.filter(|(owner, bytes)| {
            // How far the heap is filled is a matter of the moment.
            let moment = if is_heap(owner.name()) { HEAP_SHARE * from.held_by(&[*owner]) } else { 0.0 };
            bytes.abs() > (DEVIATIONS_OTHERS * self.noise.of_owners(&[*owner]) * error).max(MIB as f64).max(moment)
        });
        owners.iter().map(|owner| moved(*owner)).sum::<f64>() + beyond.map(|(_, bytes)| bytes).sum::<f64>()
    }

    /// The least saving of these owners that is one.
    fn least(&self, from: &Means, to: &Means, owners: &[Owner]) -> f64 {
        (DEVIATIONS * self.noise.of_owners(owners) * standard_error(from, to)).max(MIB as f64)
    }

    /// What CPU time may be, over that as it is, before it is too much beyond doubt.
    fn cpu_max(&self, means: &Means) -> f64 {
        1.0 + self.course.price + self.noise.cpu * standard_error(&self.base, means)
    }

    fn harm(&self, setting: &Setting, outcomes: &[&Observed]) -> Option<Harm> {
        if let Some(failed) = outcomes.iter().find(|of| !of.holds) {
            let why = failed.why.join("; ");
            return Some(if failed.refused { Harm::Refused(why) } else { Harm::Missed(why) });
        }
        let means = Means::of(outcomes);
        if means.trials == 0 || self.base.trials == 0 {
            return Some(Harm::Unweighed);
        }
        let ratio = means.cpu_ratio(&self.base);
        if ratio > self.cpu_max(&means) {
            return Some(Harm::Costs(ratio));
        }
        let owners = setting.owners(self.course.offered);
        let saved = self.saved(&self.base, &means, &owners);
        if saved < -self.least(&self.base, &means, &owners) {
            return Some(Harm::Grew(-saved));
        }
        // Among several a single owner that grows is the doing of one of them, whatever the others save.
        let grown = self.grown(&means).filter(|_| setting.places().len() > 1);
        grown.map(Harm::Grew)
    }

    /// By how much the owner grew that grew most, where that is beyond doubt.
    fn grown(&self, means: &Means) -> Option<f64> {
        if means.owners.is_empty() || self.base.owners.is_empty() {
            return None;
        }
        let error = standard_error(&self.base, means);
        let grown = Owner::ALL.into_iter().map(|owner| (owner, means.held_by(&[owner]) - self.base.held_by(&[owner])));
        let beyond = grown.filter(|(owner, bytes)| {
            *bytes > (DEVIATIONS_OTHERS * self.noise.of_owners(&[*owner]) * error).max(GROWN_MIN)
        });
        beyond.map(|(_, bytes)| bytes).reduce(f64::max)
    }

    fn tell_harm(&self, place: usize, harm: &Harm, outcomes: &[&Observed], story: &mut Story) {
        let means = Means::of(outcomes);
        let saved = self.saved(&self.base, &means, &self.offered(place).owners);
        let weighed = outcomes.iter().all(|of| of.bytes.is_some()) && !outcomes.is_empty();
        let (fate, why) = match harm {
            Harm::Refused(why) => (Fate::Refused, format!("the subject did not start with it: {why}")),
            Harm::Missed(why) => (Fate::Harmful, format!("the target broke: {why}")),
            Harm::Costs(ratio) => (Fate::TooCostly, format!("CPU time of a request {:+.1} %", (ratio - 1.0) * 100.0)),
            Harm::Grew(bytes) => (Fate::Harmful, format!("memory grew by {}", Bytes(*bytes as u64))),
            Harm::Unweighed => (Fate::NoEffect, "its memory was not measured, so no saving can be told".to_owned()),
        };
        let told = Told { fate, why, saved: Some(saved).filter(|_| weighed), cpu_ratio: self.cpu(&means, weighed) };
        story.tell(place, told);
    }

    fn cpu(&self, means: &Means, weighed: bool) -> Option<f64> {
        (weighed && means.cpu_s.is_some() && self.base.cpu_s.is_some()).then(|| means.cpu_ratio(&self.base))
    }

    /// All free remedies at once, as far as they do no harm and do something.
    fn bundle(&self, story: &mut Story) -> OrAsk<Setting> {
        let mut set = Setting::default();
        for (place, offered) in self.course.offered.iter().enumerate().filter(|(_, of)| of.rank > 0 && of.offer.is_ok())
        {
            let same = set.places().iter().find(|other| self.offered(**other).group == offered.group);
            if same.is_none_or(|other| self.offered(*other).rank < offered.rank) {
                set = set.with(place, self.course.offered);
            }
        }
        let sound = self.sound(&set, ENOUGH, story)?;
        let Some(outcomes) = self.first(&sound, ENOUGH, TuneStage::Bundle)? else { return Ok(sound) };
        Ok(self.attributed(&sound, &outcomes, story))
    }

    /// The part of a set that saved something of its own, or shares its owners with others. What a remedy saves is what
    /// its owners hold less; what moved elsewhere is the doing of others.
    fn attributed(&self, set: &Setting, outcomes: &[&Observed], story: &mut Story) -> Setting {
        if set.is_as_it_is() || self.base.owners.is_empty() || outcomes.iter().any(|of| of.owners.is_empty()) {
            return set.clone();
        }
        let means = Means::of(outcomes);
        let mut kept = set.clone();
        for place in set.places() {
            let owners = &self.offered(*place).owners;
            let saved = self.base.held_by(owners) - means.held_by(owners);
            story.weighed(*place, saved, None);
            let least = self.least(&self.base, &means, owners);
            if owners.is_empty() || saved >= least || !set.sharing(*place, self.course.offered).is_empty() {
                continue;
            }
            let (fate, why) = match saved < -least {
                true => (Fate::Harmful, format!("what it should lower grew by {}", Bytes(-saved as u64))),
                false => (Fate::NoEffect, nothing(saved, least)),
            };
            story.tell(*place, Told { fate, why, saved: Some(saved), cpu_ratio: None });
            kept = kept.without(*place);
        }
        kept
    }

    /// The part of a set that does no harm: halves of it, where all of it does.
    fn sound(&self, set: &Setting, count: usize, story: &mut Story) -> OrAsk<Setting> {
        if set.is_as_it_is() {
            return Ok(set.clone());
        }
        let Some(outcomes) = self.first(set, count, TuneStage::Bundle)? else { return Ok(Setting::default()) };
        if let Some(place) = self.not_in_force(set, &outcomes) {
            story.tell(place, Told::of(Fate::NotInForce, "it was set, and the process does not have it"));
            return self.sound(&set.without(place), count, story);
        }
        let Some(harm) = self.harm(set, &outcomes) else { return Ok(set.clone()) };
        if let [place] = set.places() {
            self.tell_harm(*place, &harm, &outcomes, story);
            return Ok(Setting::default());
        }
        // Whatever the reason, what saved nothing need not be there.
        let savers = self.attributed(set, &outcomes, story);
        if savers != *set {
            return self.sound(&savers, 1, story);
        }
        let (first, second) = set.halves();
        let (first, second) = (self.sound(&first, 1, story)?, self.sound(&second, 1, story)?);
        let both = first.and(&second);
        if both == *set {
            // Each half alone does no harm: the one that saves more is gone on with.
            return self.better(first, second);
        }
        self.sound(&both, 1, story)
    }

    /// Of two sets that do harm together, the one that saves more.
    fn better(&self, first: Setting, second: Setting) -> OrAsk<Setting> {
        let (Some(one), Some(other)) =
            (self.first(&first, 1, TuneStage::Bundle)?, self.first(&second, 1, TuneStage::Bundle)?)
        else {
            return Ok(first);
        };
        // The others may come back one by one.
        Ok(if Means::of(&one).bytes <= Means::of(&other).bytes { first } else { second })
    }

    /// A remedy of which the process has nothing, although it was set.
    fn not_in_force(&self, set: &Setting, outcomes: &[&Observed]) -> Option<usize> {
        let lacks = |word: &String| outcomes.iter().any(|of| of.not_in_force.contains(word));
        let is_lacking = |place: &&usize| {
            let offer = self.offered(**place).offer.as_ref();
            offer.is_ok_and(|offer| {
                offer.changes.iter().flat_map(crate::scenario::Change::typed).any(|word| lacks(&word))
            })
        };
        set.places().iter().find(is_lacking).copied()
    }

    /// Drops what is not missed: remedies that share an owner with others, and levels that a simpler one equals.
    fn leave_out(&self, mut winner: Setting, story: &mut Story) -> OrAsk<Setting> {
        for place in winner.places().to_vec() {
            for simpler in self.simpler(place) {
                let variant = winner.with(simpler, self.course.offered);
                if !self.is_missed(&winner, &variant, story, place)? {
                    story.weighed(simpler, story.saved(place), None);
                    winner = variant;
                    break;
                }
            }
        }
        // Whom fewest pages speak for comes first.
        let mut shared: Vec<usize> = winner.places().to_vec();
        shared.retain(|place| !winner.sharing(*place, self.course.offered).is_empty());
        shared.sort_by_key(|place| self.gain_max(*place));
        for place in shared {
            if winner.sharing(place, self.course.offered).is_empty() {
                continue;
            }
            let variant = winner.without(place);
            if !variant.is_as_it_is() && !self.is_missed(&winner, &variant, story, place)? {
                winner = variant;
            }
        }
        Ok(winner)
    }

    /// Levels of the same group that change less, the simplest first.
    fn simpler(&self, place: usize) -> Vec<usize> {
        let changes = |place: usize| self.offered(place).offer.as_ref().map_or(0, |offer| offer.changes.len());
        let own = self.offered(place);
        let levels = self.course.offered.iter().enumerate();
        let levels =
            levels.filter(|(_, of)| of.group == own.group && of.rank > 0 && of.rank < own.rank && of.offer.is_ok());
        let mut simpler: Vec<usize> =
            levels.map(|(place, _)| place).filter(|of| changes(*of) < changes(place)).collect();
        simpler.sort_by_key(|place| changes(*place));
        simpler
    }

    /// Whether a setting loses something by a variant that changes less; what was left out is told where it does not.
    fn is_missed(&self, winner: &Setting, variant: &Setting, story: &mut Story, place: usize) -> OrAsk<bool> {
        let Some(with) = self.first(winner, ENOUGH, TuneStage::LeaveOut)? else { return Ok(true) };
        let with = Means::of(&with);
        let owners = &self.offered(place).owners;
        for count in 1..=ENOUGH {
            let Some(without) = self.first(variant, count, TuneStage::LeaveOut)? else { return Ok(true) };
            if self.harm(variant, &without).is_some() {
                return Ok(true);
            }
            let without = Means::of(&without);
            let lost = self.saved(&without, &with, owners);
            let error = self.noise.of_owners(owners) * standard_error(&without, &with);
            if lost > error.max(MIB as f64) {
                return Ok(true);
            }
            if count == ENOUGH {
                let saved = Some(lost);
                story.tell(place, Told { fate: Fate::NotMissed, why: not_missed(lost), saved, cpu_ratio: None });
            }
        }
        Ok(false)
    }

    /// One remedy more, whoever promises most first, as long as it wins.
    fn race(&self, mut winner: Setting, story: &mut Story) -> OrAsk<Setting> {
        let mut order: Vec<usize> =
            (0..self.course.offered.len()).filter(|place| self.offered(*place).offer.is_ok()).collect();
        order.sort_by_key(|place| std::cmp::Reverse(self.gain_max(*place)));
        // Levels of the heap are in the order of their tightness: a tighter one comes only after the looser one won.
        let (heap, others): (Vec<usize>, Vec<usize>) =
            order.into_iter().partition(|place| self.offered(*place).group == Group::Heap);
        let mut heap = heap;
        heap.sort_unstable();
        let mut tightens = true;
        for place in heap {
            if tightens && !self.is_looser(place, &winner) {
                tightens = self.race_with(place, &mut winner, story)?;
            }
        }
        for place in others {
            self.race_with(place, &mut winner, story)?;
        }
        Ok(winner)
    }

    /// Whether one more is in the winner, now or already.
    fn race_with(&self, place: usize, winner: &mut Setting, story: &mut Story) -> OrAsk<bool> {
        if winner.places().contains(&place) {
            return Ok(true);
        }
        if story.is_told(place) {
            return Ok(false);
        }
        match self.challenge(winner, place, story)? {
            Challenge::Won(better) => {
                *winner = better;
                return Ok(true);
            }
            Challenge::Lost => {}
            // The one that was raced with is tried again beside those that are left.
            Challenge::Unsound(sound) => {
                *winner = sound;
                if let Challenge::Won(better) = self.challenge(winner, place, story)? {
                    *winner = better;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a tighter level of the same group is there already.
    fn is_looser(&self, place: usize, winner: &Setting) -> bool {
        winner.places().iter().any(|other| self.offered(*other).group == self.offered(place).group && *other > place)
    }

    /// One more beside the winner; what became of it is told.
    fn challenge(&self, winner: &Setting, place: usize, story: &mut Story) -> OrAsk<Challenge> {
        let Some(incumbent) = self.first(winner, ENOUGH, TuneStage::Race)? else {
            story.tell(place, Told::of(Fate::NotTried, NO_TIME));
            return Ok(Challenge::Lost);
        };
        let incumbent = Means::of(&incumbent);
        let offered = self.offered(place);
        let held = incumbent.held_by(&offered.owners);
        let bound = self.gain_max(place).map_or(held, |gain| held.min(gain as f64));
        if bound < MIB as f64 || held < offered.share_min * incumbent.bytes {
            let why = format!("beside the others there is {} left that it could save", Bytes(bound.max(0.0) as u64));
            story.tell(place, Told::of(Fate::NotTried, &why));
            return Ok(Challenge::Lost);
        }
        let variant = winner.with(place, self.course.offered);
        for count in 1..=UNDECIDED {
            let Some(outcomes) = self.first(&variant, count, TuneStage::Race)? else {
                story.tell(place, Told::of(Fate::NotTried, NO_TIME));
                return Ok(Challenge::Lost);
            };
            if self.not_in_force(&Setting::of([place]), &outcomes).is_some() {
                story.tell(place, Told::of(Fate::NotInForce, "it was set, and the process does not have it"));
                return Ok(Challenge::Lost);
            }
            let means = Means::of(&outcomes);
            let saved = self.saved(&incumbent, &means, &offered.owners);
            let least = self.least(&incumbent, &means, &offered.owners);
            let cpu = self.cpu(&means, outcomes.iter().all(|of| of.bytes.is_some()));
            let told = |fate, why| Told { fate, why, saved: Some(saved), cpu_ratio: cpu };
            match self.harm(&variant, &outcomes) {
                // Memory is judged against the others, not against as it is.
                None | Some(Harm::Grew(_)) => {}
                Some(Harm::Costs(ratio)) => {
                    let (fate, why) = costly(saved, least, ratio);
                    story.tell(place, told(fate, why));
                    return Ok(Challenge::Lost);
                }
                Some(harm) => {
                    // It may be the others that break it, now and then.
                    if let Some(sound) = self.sound_part(winner, &harm, story)? {
                        return Ok(Challenge::Unsound(sound));
                    }
                    self.tell_harm(place, &harm, &outcomes, story);
                    return Ok(Challenge::Lost);
                }
            }
            if saved < -least {
                story.tell(place, told(Fate::Harmful, format!("memory grew by {}", Bytes(-saved as u64))));
                return Ok(Challenge::Lost);
            }
            // The first trial drops what cannot win, the last one also what did not.
            let hope = if count >= ENOUGH { 0.0 } else { least };
            if saved + hope < least.max(MIB as f64) || saved < 0.0 {
                story.tell(place, told(Fate::NoEffect, nothing(saved, least)));
                return Ok(Challenge::Lost);
            }
            story.weighed(place, saved, cpu);
            let beyond = cpu.map_or(-1.0, |ratio| ratio - 1.0 - self.course.price);
            let error = self.noise.cpu * standard_error(&self.base, &means);
            if count == UNDECIDED && beyond > -PROVABLE * self.noise.cpu {
                story.tell(place, told(Fate::TooCostly, above_or_near(saved, cpu.unwrap_or(1.0), beyond)));
                return Ok(Challenge::Lost);
            }
            if count >= ENOUGH && beyond < -NEAR * error {
                break;
            }
        }
        self.tell_replaced(winner, &variant, story);
        Ok(Challenge::Won(variant))
    }

    /// What is left of a winner that breaks the target itself, in one more trial after something else seemed to.
    fn sound_part(&self, winner: &Setting, harm: &Harm, story: &mut Story) -> OrAsk<Option<Setting>> {
        if !matches!(harm, Harm::Missed(_)) || winner.is_as_it_is() {
            return Ok(None);
        }
        let Some(outcomes) = self.first(winner, ENOUGH + 1, TuneStage::Race)? else { return Ok(None) };
        let Some(broken) = outcomes.iter().find(|of| !of.holds) else { return Ok(None) };
        let why = broken.why.join("; ");
        let mut sound = winner.clone();
        for place in self.suspects(winner, &Refuted::Broke(why.clone()), story) {
            story.tell(place, Told::of(Fate::Harmful, &format!("the target broke in a set with it: {why}")));
            sound = sound.without(place);
        }
        Ok(Some(sound))
    }

    /// A level in whose place a better one came.
    fn tell_replaced(&self, winner: &Setting, variant: &Setting, story: &mut Story) {
        for place in winner.places().iter().filter(|place| !variant.places().contains(place)) {
            let by = variant.places().iter().find(|other| self.offered(**other).group == self.offered(*place).group);
            by.into_iter().for_each(|by| story.replace(*by, *place));
            let by = by.map_or("another", |by| &self.offered(*by).id);
            let saved = Some(story.saved(*place));
            let told = Told { fate: Fate::NotMissed, why: format!("`{by}` saves more"), saved, cpu_ratio: None };
            story.tell(*place, told);
        }
    }

    fn gain_max(&self, place: usize) -> Option<u64> {
        // What the user asked for has no bound, and goes first.
        self.offered(place).offer.as_ref().map_or(Some(0), |offer| Some(offer.gain_bytes_max.unwrap_or(u64::MAX)))
    }

    /// The winner against as it is, in fresh blocks of which the search has seen nothing.
    fn confirm(&self, mut winner: Setting, story: &mut Story) -> OrAsk<Finish> {
        for attempt in 0..ATTEMPTS {
            if winner.is_as_it_is() {
                break;
            }
            let ids = winner.ids(self.course.offered);
            let refuted = self.refuted(&winner, attempt)?;
            let blocks = self.course.outcomes.iter().filter(|of| {
                of.stage == TuneStage::Confirmation && of.block / BLOCKS_MAX == attempt && of.remedies == ids
            });
            story.attempt(ids.clone(), refuted.as_ref().map(ToString::to_string), blocks.count() as u32);
            let Some(refuted) = refuted else { return Ok(Finish::Proved(winner)) };
            if attempt + 1 < ATTEMPTS {
                let suspects = self.suspects(&winner, &refuted, story);
                if suspects.is_empty() {
                    // Another set would be as unproved: a second attempt would be a second chance for luck.
                    break;
                }
                for place in suspects {
                    story.tell(place, Told::of(Fate::NotConfirmed, "the set with it was not confirmed"));
                    // The level in whose place it came is there again.
                    winner = match story.replaced(place) {
                        Some(before) => winner.with(before, self.course.offered),
                        None => winner.without(place),
                    };
                }
            }
        }
        for place in winner.places() {
            story.tell(*place, Told::of(Fate::NotConfirmed, "the set with it was not confirmed"));
        }
        Ok(Finish::Nothing)
    }

    /// What goes after an attempt that failed: what costs most for what it saves where CPU time was the reason, what
    /// saves little where the target broke, whose breaker nobody knows, and else the least. Nothing where the measure
    /// of CPU time is the reason, and no remedy.
    fn suspects(&self, winner: &Setting, refuted: &Refuted, story: &Story) -> Vec<usize> {
        let saved = |place: &usize| story.saved(*place);
        let by_saving = |one: &usize, other: &usize| saved(one).total_cmp(&saved(other));
        let least = winner.places().iter().copied().min_by(by_saving);
        let all: f64 = winner.places().iter().map(|place| saved(place).max(0.0)).sum();
        match refuted {
            Refuted::Broke(_) => {
                let small = winner.places().iter().copied().filter(|place| saved(place) < LARGE_SHARE * all);
                let small: Vec<usize> = small.collect();
                if small.is_empty() { least.into_iter().collect() } else { small }
            }
            Refuted::Costs { low, price, .. } => {
                let costs =
                    winner.places().iter().copied().filter(|place| self.offered(*place).price != PriceClass::Free);
                let least = least.filter(|_| *low > 1.0 + price);
                costs.min_by(by_saving).or(least).into_iter().collect()
            }
            Refuted::Saves { .. } | Refuted::Unweighed => least.into_iter().collect(),
            Refuted::CpuUnmeasured => Vec::new(),
        }
    }

    /// Why an attempt does not confirm its setting, if it does not.
    fn refuted(&self, winner: &Setting, attempt: u32) -> OrAsk<Option<Refuted>> {
        let mut pairs = Vec::new();
        let most = self.blocks_max();
        for block in (attempt * BLOCKS_MAX..).take(most as usize) {
            if LOOKS.contains(&(pairs.len() as u32)) && !self.may_cost_less(&pairs) {
                break;
            }
            let settings = [Setting::default(), winner.clone()];
            let mut of_block = [None, None];
            for which in comparison::order(self.course.seed, block, settings.len()) {
                let setting = &settings[which];
                let ids = setting.ids(self.course.offered);
                let own =
                    |of: &&Observed| of.stage == TuneStage::Confirmation && of.block == block && of.remedies == ids;
                let Some(outcome) = self.course.outcomes.iter().find(own) else {
                    self.trained(setting)?;
                    return Err(Ask { stage: TuneStage::Confirmation, setting: setting.clone(), block });
                };
                if which == 1 && !outcome.holds {
                    return Ok(Some(Refuted::Broke(outcome.why.join("; "))));
                }
                of_block[which] = Some(outcome);
            }
            if let [Some(as_is), Some(with)] = of_block {
                pairs.push((as_is, with));
            }
        }
        Ok(self.unproved(&pairs))
    }

    /// Whether pairs of trials prove a saving, and leave open on which side of the price their CPU time is, where more
    /// of them may tell.
    fn may_cost_less(&self, pairs: &[(&Observed, &Observed)]) -> bool {
        let Some(Refuted::Costs { ratio, low, high, price }) = self.unproved(pairs) else { return false };
        let narrower = NARROWER[usize::from(pairs.len() as u32 * 4 <= self.blocks_max())];
        low <= 1.0 + price && ratio + narrower * (high - ratio) <= 1.0 + price
    }

    /// Blocks of an attempt at most: a bound of time leaves room for one look more than the first.
    fn blocks_max(&self) -> u32 {
        if self.course.seconds_max.is_some() { LOOKS[1] } else { BLOCKS_MAX }
    }

    /// Why pairs of trials do not prove that the second of each is better at no more than the price.
    fn unproved(&self, pairs: &[(&Observed, &Observed)]) -> Option<Refuted> {
        let of = |values: &[f64]| comparison::of_pairs(values, self.course.seed, CONFIDENCE, 2);
        let saved: Vec<f64> = pairs.iter().filter_map(|(as_is, with)| Some(as_is.bytes? - with.bytes?)).collect();
        let ratio = |(as_is, with): &(&Observed, &Observed)| Some(with.cpu_s? / as_is.cpu_s.filter(|cpu| *cpu > 0.0)?);
        let ratios: Vec<f64> = pairs.iter().filter_map(ratio).collect();
        let Some((centre, Some((low, _)))) = of(&saved) else { return Some(Refuted::Unweighed) };
        if low <= 0.0 || centre < MIB as f64 {
            return Some(Refuted::Saves { centre, low });
        }
        let Some((ratio, Some((low, high)))) = of(&ratios) else { return Some(Refuted::CpuUnmeasured) };
        let price = self.course.price;
        // Below the price is proved by the upper end alone: a mean below it may be luck.
        (high > 1.0 + price).then_some(Refuted::Costs { ratio, low, high, price })
    }
}

/// Why a set of remedies is not confirmed.
enum Refuted {
    /// The target broke.
    Broke(String),
    /// Its saving in bytes, and the end of its interval, prove nothing.
    Saves { centre: f64, low: f64 },
    /// CPU time of a request, over that as it is, with its interval, whose upper end is above the price.
    Costs { ratio: f64, low: f64, high: f64, price: f64 },
    /// Too few trials were weighed.
    Unweighed,
    /// CPU time was measured in too few trials.
    CpuUnmeasured,
}

impl fmt::Display for Refuted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signed = |bytes: f64| format!("{}{}", if bytes < 0.0 { "-" } else { "" }, Bytes(bytes.abs() as u64));
        match self {
            Self::Broke(why) => write!(f, "the target broke: {why}"),
            Self::Saves { centre, low } => {
                write!(f, "it saved {}, and {} is not ruled out", signed(*centre), signed(*low))
            }
            Self::Costs { ratio, low, high, price } => {
                let [ratio, low, high] = [ratio, low, high].map(|ratio| (ratio - 1.0) * 100.0);
                let price = price * 100.0;
                write!(f, "CPU time of a request {ratio:+.1} %, and {price:.1} % is the price")?;
                if low <= price { write!(f, ": up to {high:+.1} % is not ruled out") } else { Ok(()) }
            }
            Self::Unweighed => write!(f, "too few trials were weighed"),
            Self::CpuUnmeasured => {
                write!(f, "the CPU time of a request was measured in too few trials, so its price is unproved")
            }
        }
    }
}

/// How one more remedy fared.
enum Challenge {
    /// This setting has it, and is better.
    Won(Setting),
    /// It is worse with it.
    Lost,
    /// The setting it was to join breaks the target itself; this is what is left of it.
    Unsound(Setting),
}

const NO_TIME: &str = "there was no time left for it";

fn nothing(saved: f64, least: f64) -> String {
    let saved = if saved < 0.0 { "nothing".to_owned() } else { Bytes(saved as u64).to_string() };
    format!("it saved {saved}, where {} is the least that can be told", Bytes(least as u64))
}

fn not_missed(lost: f64) -> String {
    format!("without it there is {} more, which is nothing", Bytes(lost.max(0.0) as u64))
}

/// What costs more than its price, and saves enough to be worth saying so or does not.
fn costly(saved: f64, least: f64, ratio: f64) -> (Fate, String) {
    if saved >= least { (Fate::TooCostly, costs(saved, ratio)) } else { (Fate::NoEffect, nothing(saved, least)) }
}

fn costs(saved: f64, ratio: f64) -> String {
    let saved = Bytes(saved.max(0.0) as u64);
    format!("it saves {saved} at {:+.1} % of the CPU time of a request", (ratio - 1.0) * 100.0)
}

/// As [`costs`], of what costs more than the price by `beyond`, or too little less.
fn above_or_near(saved: f64, ratio: f64, beyond: f64) -> String {
    let near = if beyond > 0.0 { "" } else { ", too near to the price to be proved" };
    costs(saved, ratio) + near
}

/// Of the difference of two means, in standard deviations of one trial.
fn standard_error(one: &Means, other: &Means) -> f64 {
    let of = |trials: usize| 1.0 / trials.max(1) as f64;
    (of(one.trials) + of(other.trials)).sqrt()
}
