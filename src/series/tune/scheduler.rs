//! The tuning scheduler: derives the next trial from the outcomes so far.
//!
//! It is a coroutine written as a replay. Each call of [`Scheduler::replay`] walks through all phases from the start
//! and answers each question from the outcomes so far. At the first unanswered question, it stops with [`Break`] and
//! the trial that would answer it.
//!
//! Every decision uses a setting's first outcomes, so later outcomes do not change it.

use super::fates::{CandidateFate, Fates, grew, no_saving, saving_at_price};
use super::judging::{AsItIs, ConfirmationPairs, PROVABLE, Rejection, Unconfirmed};
use super::outcome::{Means, Noise, Observed};
use super::setting::{Candidate, Setting};
use crate::comparison;
use crate::diagnosis::remedy::{Ceiling, Group, Offered};
use crate::record::{ConfirmationRecord, Fate, NO_TIME, PriceClass, TuneStage};
use crate::scenario::Change;
use crate::units::{Bytes, MIB};
use FirstOutcomes::{BudgetSpent, Known};
use loadline_base::order::Order as _;
use std::ops::ControlFlow::{self, Break, Continue};

/// Trials of the unchanged subject.
pub(super) const BASELINE: usize = 3;
/// Trials per setting before a decision.
const ENOUGH: usize = 2;
/// Trials of a ceiling's level before the next level is chosen; the final level gets [`ENOUGH`].
const ENOUGH_FOR_A_LEVEL: usize = 1;
/// Trials of a setting whose CPU time is within `NEAR` standard errors of the price.
const UNDECIDED: usize = 3;
const NEAR: f64 = 0.7;
/// Minimum blocks of a confirmation, then the counts at which it can end. It continues while the CPU-time interval
/// contains the price and more blocks can change that.
pub(super) const BLOCKS: u32 = 5;
const LOOKS: [u32; 4] = [BLOCKS, 7, 10, 14];
pub(super) const BLOCKS_MAX: u32 = 20;
/// Confirmation attempts.
const ATTEMPTS: u32 = 2;
/// If a confirmation misses the target, candidates that contribute at least this share of the saving stay.
const LARGE_SHARE: f64 = 0.2;

/// A tighter ceiling is tried if it could save this share of the winner's memory.
const WORTH_MORE: f64 = 0.02;
/// The first level of a ceiling should save up to this many times the least detectable saving.
const SHOWN_TIMES: f64 = 1.5;
/// Each step leaves at least the room divided by this, because the means hide short peaks.
const ROOM_PER_STEP: f64 = 2.5;

/// Memory counts as moved to an owner that holds this many times as much as in the unchanged subject, if the increase
/// is this share of that subject's memory.
const MOVED_TIMES: f64 = 2.0;
const MOVED_SHARE: f64 = 0.1;

/// Groups that are ceilings; their levels are sorted from loosest to tightest.
const CEILINGS: [Group; 2] = [Group::Heap, Group::Direct];

/// The outcomes so far, and the limits of the search.
#[derive(Debug)]
pub(super) struct Scheduler<'o> {
    /// All remedies; empty until the baseline exists.
    pub(super) offered: &'o [Offered],
    /// The outcomes of valid trials, in execution order.
    pub(super) outcomes: Vec<Observed>,
    /// Whether a first trial determines constant rates for closed phases.
    pub(super) needs_reference: bool,
    /// The allowed increase in CPU time per request, as a share.
    pub(super) price: f64,
    /// The share of CPU time per request that a saved byte is worth.
    pub(super) worth: f64,
    /// Seed for the order within blocks.
    pub(super) seed: u64,
    /// The trial count that ends the search.
    pub(super) trials_max: usize,
    /// The time limit for all trials, including confirmations.
    pub(super) seconds_max: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TrialRequest<'o> {
    pub(super) stage: TuneStage,
    /// Its setting; for a training run, the setting whose archive it creates.
    pub(super) setting: Setting<'o>,
    /// Its confirmation block; otherwise 0.
    pub(super) block: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finish<'o> {
    /// The last attempt confirmed this setting.
    Proved(Setting<'o>),
    /// This setting certainly saves memory, but CPU time varies too much to price it.
    Unpriced(Setting<'o>),
    /// No setting was confirmed.
    Nothing,
    /// The unchanged subject misses the target.
    NotHeld,
}

/// The result of a replay.
#[derive(Debug)]
pub(super) enum TuneStep<'o> {
    /// The next trial.
    Next(TrialRequest<'o>),
    Done(Finish<'o>),
}

/// A replay and what it learned.
#[derive(Debug)]
pub(super) struct Replayed<'o> {
    pub(super) step: TuneStep<'o>,
    pub(super) fates: Fates<'o>,
    /// The noise of the unchanged subject, once the baseline exists.
    pub(super) noise: Option<Noise>,
}

/// An answer from the outcomes so far, or `Break` with the trial that would provide it.
type Replay<'o, T> = ControlFlow<TrialRequest<'o>, T>;

enum FirstOutcomes<'c> {
    Known(Vec<&'c Observed>),
    /// There are too few, and the search has no trials left.
    BudgetSpent,
}

impl<'o> Scheduler<'o> {
    /// Walks through all phases as far as the outcomes allow.
    pub(super) fn replay(&self) -> Replayed<'o> {
        let (mut fates, mut noise) = (Fates::default(), None);
        let step = match self.run(&mut fates, &mut noise) {
            Continue(finish) => TuneStep::Done(finish),
            Break(request) => TuneStep::Next(request),
        };
        Replayed { step, fates, noise }
    }

    fn run(&self, fates: &mut Fates<'o>, noise: &mut Option<Noise>) -> Replay<'o, Finish<'o>> {
        if self.needs_reference && !self.reference()?.holds {
            return Continue(Finish::NotHeld);
        }
        let as_is = self.baseline()?;
        *noise = Some(Noise::of(&as_is));
        if as_is.iter().any(|of| !of.holds) {
            return Continue(Finish::NotHeld);
        }
        let mut phases = Phases { scheduler: self, as_is: AsItIs::new(&as_is, self.price, self.worth), fates };
        let bundle = phases.bundle()?;
        let fewer = phases.leave_out(bundle)?;
        let winner = phases.race(fewer)?;
        phases.confirm(winner)
    }

    /// The trial that measures the rate of closed phases.
    fn reference(&self) -> Replay<'o, &Observed> {
        match self.outcomes.iter().find(|of| of.stage == TuneStage::Reference) {
            Some(outcome) => Continue(outcome),
            None => Break(TrialRequest { stage: TuneStage::Reference, setting: Setting::default(), block: 0 }),
        }
    }

    /// The first trials of the unchanged subject.
    fn baseline(&self) -> Replay<'o, Vec<&Observed>> {
        let as_is = Setting::default();
        let known: Vec<&Observed> = self.searched(&as_is).take(BASELINE).collect();
        let failed = known.iter().filter(|of| !of.holds).count();
        match known.len() >= BASELINE || failed >= ENOUGH {
            true => Continue(known),
            false => Break(TrialRequest { stage: TuneStage::Baseline, setting: as_is, block: 0 }),
        }
    }

    fn candidates(&self) -> impl Iterator<Item = Candidate<'o>> + use<'o> {
        Candidate::all(self.offered).filter(|candidate| candidate.offer.is_ok())
    }

    /// A setting's outcomes, without confirmations.
    fn searched(&self, setting: &Setting<'_>) -> impl Iterator<Item = &Observed> {
        let ids = setting.ids();
        self.outcomes.iter().filter(move |of| of.is_of_search() && of.remedies == ids)
    }

    fn confirming(&self, setting: &Setting<'o>, block: u32) -> Replay<'o, &Observed> {
        let ids = setting.ids();
        let own = |of: &&Observed| of.stage == TuneStage::Confirmation && of.block == block && of.remedies == ids;
        if let Some(outcome) = self.outcomes.iter().find(own) {
            return Continue(outcome);
        }
        self.train(setting)?;
        Break(TrialRequest { stage: TuneStage::Confirmation, setting: setting.clone(), block })
    }

    /// A setting's first `count` outcomes in the search.
    fn first(&self, setting: &Setting<'o>, count: usize, stage: TuneStage) -> Replay<'o, FirstOutcomes<'_>> {
        let known: Vec<&Observed> = self.searched(setting).take(count).collect();
        // Repeating a failing setting decides nothing.
        if known.len() >= count || known.iter().any(|of| !of.holds) {
            return Continue(Known(known));
        }
        if self.is_spent() {
            return Continue(BudgetSpent);
        }
        self.train(setting)?;
        Break(TrialRequest { stage, setting: setting.clone(), block: 0 })
    }

    /// Schedules training runs before trials that need their class archives.
    fn train(&self, setting: &Setting<'o>) -> Replay<'o, ()> {
        let is_trained = |candidate: &Candidate<'_>| {
            self.outcomes.iter().any(|of| of.stage == TuneStage::Training && of.remedies.contains(&candidate.id))
        };
        let mut needing = setting.candidates().filter(|candidate| !candidate.training().is_empty());
        match needing.find(|candidate| !is_trained(candidate)) {
            Some(untrained) => {
                Break(TrialRequest { stage: TuneStage::Training, setting: Setting::new([untrained]), block: 0 })
            }
            None => Continue(()),
        }
    }

    /// Whether the search must end to leave trials for the confirmation.
    fn is_spent(&self) -> bool {
        let searched = self.outcomes.iter().filter(|of| of.is_of_search());
        let (count, seconds) = searched.fold((0usize, 0.0), |(count, seconds), of| (count + 1, seconds + of.seconds));
        let confirming = f64::from(2 * BLOCKS + 1) * seconds / (count.max(1) as f64);
        count >= self.trials_max || self.seconds_max.is_some_and(|most| seconds + confirming > most)
    }

    /// The maximum number of blocks of an attempt; a time limit skips the last checks.
    fn blocks_max(&self) -> u32 {
        if self.seconds_max.is_some() { LOOKS[2] } else { BLOCKS_MAX }
    }

    /// Whether the remaining time allows this many more blocks after the first `done` of an attempt. A started block
    /// always completes.
    fn has_time_for(&self, blocks: u32, attempt: u32, done: u32) -> bool {
        let Some(most) = self.seconds_max else { return true };
        let next = attempt * BLOCKS_MAX + done;
        let has_begun = self.outcomes.iter().any(|of| of.stage == TuneStage::Confirmation && of.block >= next);
        let spent: f64 = self.outcomes.iter().map(|of| of.seconds).sum();
        let each = spent / self.outcomes.len().max(1) as f64;
        has_begun || spent + each * f64::from(2 * blocks) <= most
    }
}

/// The phases after the baseline.
struct Phases<'c, 'o> {
    scheduler: &'c Scheduler<'o>,
    as_is: AsItIs,
    fates: &'c mut Fates<'o>,
}

/// A candidate compared with the winner, after some trials of both.
enum Contest {
    /// The candidate is better.
    Better,
    NotBetter(CandidateFate),
    /// They cannot run together.
    Rejected(Rejection),
    /// One more trial is needed.
    Open,
}

/// The winner after a race against a candidate.
enum Raced<'o> {
    /// With the candidate.
    Won(Setting<'o>),
    /// Without the candidate.
    Lost(CandidateFate),
    /// The winner itself misses the target; this part of it remains.
    WinnerBroke(Setting<'o>),
}

impl<'c, 'o> Phases<'c, 'o> {
    fn first(&self, setting: &Setting<'o>, count: usize, stage: TuneStage) -> Replay<'o, FirstOutcomes<'c>> {
        self.scheduler.first(setting, count, stage)
    }

    // Bundle: all free remedies at once.

    /// All free remedies together, if they are harmless and save memory.
    fn bundle(&mut self) -> Replay<'o, Setting<'o>> {
        let mut all = Setting::default();
        for candidate in self.scheduler.candidates().filter(|candidate| candidate.rank > 0) {
            if all.level_of(candidate.group).is_none_or(|level| level.rank < candidate.rank) {
                all = all.with(candidate);
            }
        }
        let sound = self.sound(&all, ENOUGH)?;
        let Known(outcomes) = self.first(&sound, ENOUGH, TuneStage::Bundle)? else { return Continue(sound) };
        Continue(self.savers(&sound, &outcomes))
    }

    /// The harmless part of a set, found by bisecting it.
    fn sound(&mut self, set: &Setting<'o>, count: usize) -> Replay<'o, Setting<'o>> {
        if set.is_as_it_is() {
            return Continue(set.clone());
        }
        let Known(outcomes) = self.first(set, count, TuneStage::Bundle)? else { return Continue(Setting::default()) };
        if let Some(candidate) = not_in_force(set, &outcomes) {
            self.fates.set(candidate, CandidateFate::not_in_force());
            return self.sound(&set.without(candidate), count);
        }
        let Some(rejection) = self.as_is.rejection(set, &outcomes) else { return Continue(set.clone()) };
        if let Some(only) = set.only() {
            self.fates.set(only, self.as_is.fate(only, &rejection, &outcomes));
            return Continue(Setting::default());
        }
        // Whatever the reason for the rejection, a candidate that saved nothing is unnecessary.
        let savers = self.savers(set, &outcomes);
        if savers != *set {
            return self.sound(&savers, 1);
        }
        let (first, second) = set.halves();
        let (first, second) = (self.sound(&first, 1)?, self.sound(&second, 1)?);
        let both = first.and(&second);
        if both == *set {
            // Each half is harmless on its own. Candidates of the discarded half can return one by one.
            return self.lighter(first, second);
        }
        self.sound(&both, 1)
    }

    /// The candidates of a set that saved memory of their own owners, or share these owners with others. Pages that
    /// moved to other owners are due to other candidates.
    fn savers(&mut self, set: &Setting<'o>, outcomes: &[&Observed]) -> Setting<'o> {
        let has_owners = self.as_is.has_owners() && outcomes.iter().all(|of| !of.owners.is_empty());
        if set.is_as_it_is() || !has_owners {
            return set.clone();
        }
        let means = Means::of(outcomes);
        let mut kept = set.clone();
        for candidate in set.candidates() {
            let (saved, least) = self.as_is.saved_by(candidate, &means);
            self.fates.set_saving(candidate, saved, None);
            if candidate.owners.is_empty() || saved >= least || set.shares_owners(candidate) {
                continue;
            }
            let (fate, why) = match saved < -least {
                true => (Fate::Harmful, format!("the memory it should reduce grew by {}", Bytes(-saved as u64))),
                false => (Fate::NoEffect, no_saving(saved, least)),
            };
            self.fates.set(candidate, CandidateFate::measured(fate, why, saved, None));
            kept = kept.without(candidate);
        }
        kept
    }

    /// The smaller of two sets that are harmful only together.
    fn lighter(&self, first: Setting<'o>, second: Setting<'o>) -> Replay<'o, Setting<'o>> {
        let Known(one) = self.first(&first, 1, TuneStage::Bundle)? else { return Continue(first) };
        let Known(other) = self.first(&second, 1, TuneStage::Bundle)? else { return Continue(first) };
        Continue(if Means::of(&one).bytes <= Means::of(&other).bytes { first } else { second })
    }

    // Leave out: candidates whose removal costs nothing.

    /// Drops candidates that share an owner with others, and levels that a simpler one matches.
    fn leave_out(&mut self, mut winner: Setting<'o>) -> Replay<'o, Setting<'o>> {
        for candidate in winner.clone().candidates() {
            for simpler in self.simpler(candidate) {
                let variant = winner.with(simpler);
                if !self.is_missed(candidate, &winner, &variant)? {
                    self.fates.set_saving(simpler, self.fates.saved(candidate), None);
                    winner = variant;
                    break;
                }
            }
        }
        let mut sharing: Vec<Candidate<'o>> = winner.candidates().filter(|of| winner.shares_owners(*of)).collect();
        sharing.order_by_key(|candidate| candidate.gain_bytes_max());
        for candidate in sharing {
            let variant = winner.without(candidate);
            let is_shared = winner.shares_owners(candidate) && !variant.is_as_it_is();
            if is_shared && !self.is_missed(candidate, &winner, &variant)? {
                winner = variant;
            }
        }
        Continue(winner)
    }

    /// Levels of the same group that change less, simplest first.
    fn simpler(&self, candidate: Candidate<'o>) -> Vec<Candidate<'o>> {
        let is_lower =
            |level: &Candidate<'_>| level.group == candidate.group && level.rank > 0 && level.rank < candidate.rank;
        let levels = self.scheduler.candidates().filter(is_lower);
        let mut simpler: Vec<_> = levels.filter(|of| of.changes().len() < candidate.changes().len()).collect();
        simpler.order_by_key(|level| level.changes().len());
        simpler
    }

    /// Whether the winner is worse with a variant that lacks this candidate.
    fn is_missed(&mut self, candidate: Candidate<'o>, winner: &Setting<'o>, variant: &Setting<'o>) -> Replay<'o, bool> {
        let Known(with) = self.first(winner, ENOUGH, TuneStage::LeaveOut)? else { return Continue(true) };
        let with = Means::of(&with);
        let owners = &candidate.owners;
        let (mut lost, mut least) = (0.0, MIB as f64);
        for count in 1..=ENOUGH {
            let Known(outcomes) = self.first(variant, count, TuneStage::LeaveOut)? else { return Continue(true) };
            let without = Means::of(&outcomes);
            lost = self.as_is.saved(&without, &with, owners);
            least = self.as_is.error(&without, &with, owners).max(MIB as f64);
            if self.as_is.rejection(variant, &outcomes).is_some() || lost > least {
                return Continue(true);
            }
        }
        let [lost_bytes, least_bytes] = [lost, least].map(|bytes| Bytes(bytes.max(0.0) as u64));
        let why = format!("without it, memory is {lost_bytes} higher; less than {least_bytes} cannot be measured");
        self.fates.set(candidate, CandidateFate::measured(Fate::NotMissed, why, lost, None));
        Continue(false)
    }

    // Race: add one candidate at a time while it wins.

    /// Tightens each ceiling first, then adds one candidate at a time, the most promising first.
    fn race(&mut self, mut winner: Setting<'o>) -> Replay<'o, Setting<'o>> {
        for group in CEILINGS {
            self.tighten(group, &mut winner)?;
        }
        let mut others: Vec<_> = self.scheduler.candidates().filter(|of| !CEILINGS.contains(&of.group)).collect();
        others.largest_first(|candidate| candidate.gain_bytes_max());
        for candidate in &others {
            self.race_with(*candidate, &mut winner)?;
        }
        for candidate in others {
            self.race_again(candidate, &mut winner)?;
        }
        Continue(winner)
    }

    /// Retries a candidate that saved nothing before the winner moved memory to its owners.
    fn race_again(&mut self, candidate: Candidate<'o>, winner: &mut Setting<'o>) -> Replay<'o, ()> {
        let is_dropped = |of: &&CandidateFate| matches!(of.fate, Fate::NoEffect | Fate::Harmful) && of.saved.is_some();
        let Some(before) = self.fates.get(candidate).filter(is_dropped).cloned() else { return Continue(()) };
        let Known(outcomes) = self.first(winner, ENOUGH, TuneStage::Race)? else { return Continue(()) };
        let (held, first) = (Means::of(&outcomes).held_by(&candidate.owners), self.as_is.held_by(&candidate.owners));
        if held < MOVED_TIMES * first || held - first < MOVED_SHARE * self.as_is.held_by(&[]) {
            return Continue(());
        }
        self.fates.forget(candidate);
        self.race_with(candidate, winner)?;
        if self.fates.get(candidate).is_some_and(|of| of.why == NO_TIME) {
            self.fates.set(candidate, before);
        }
        Continue(())
    }

    /// Finds the tightest winning level of a ceiling. The next level is the one where the collector's cost is expected
    /// to reach the price. If that is unknown, or a level lost, the remaining levels are bisected.
    fn tighten(&mut self, group: Group, winner: &mut Setting<'o>) -> Replay<'o, ()> {
        let levels: Vec<_> = self.scheduler.candidates().filter(|candidate| candidate.group == group).collect();
        let set = winner.level_of(group);
        // Levels before `open` have won or are looser than a winner. Those from `lost` on have lost or are tighter.
        let mut open = levels.iter().take_while(|level| set.is_some_and(|set| **level <= set)).count();
        let lost = levels[open..].iter().position(|level| self.fates.get(*level).is_some());
        let mut lost = lost.map_or(levels.len(), |further| open + further);
        while open < lost && self.is_worth_more(&levels[..lost], winner)? {
            let middle = open + (lost - open) / 2;
            let is_first = winner.level_of(group).is_none() && lost == levels.len();
            let next = match self.near_price(&levels, winner)? {
                Some(near) if lost == levels.len() => near,
                Some(near) => near.min(middle),
                None if is_first => self.loosest_that_shows(&levels, winner)?.unwrap_or(middle),
                None => middle,
            };
            if next < open {
                break;
            }
            match self.race_with(levels[next], winner)? {
                true => open = next + 1,
                false => lost = next,
            }
        }
        Continue(())
    }

    /// Whether the tightest of these levels could save enough more than the level already set.
    fn is_worth_more(&self, levels: &[Candidate<'o>], winner: &Setting<'o>) -> Replay<'o, bool> {
        let tightest = levels.last().and_then(|level| level.ceiling);
        let Some((set, tightest)) = set_among(levels, winner).zip(tightest) else { return Continue(true) };
        let Known(outcomes) = self.first(winner, 1, TuneStage::Race)? else { return Continue(false) };
        Continue(set.value.saturating_sub(tightest.value) as f64 >= WORTH_MORE * Means::of(&outcomes).bytes)
    }

    fn loosest_that_shows(&self, levels: &[Candidate<'o>], winner: &Setting<'o>) -> Replay<'o, Option<usize>> {
        let Known(outcomes) = self.first(winner, 1, TuneStage::Race)? else { return Continue(None) };
        let means = Means::of(&outcomes);
        let shows = |level: &Candidate<'o>| {
            let least = self.as_is.least(&means, &means, &level.owners);
            level.gain_bytes_max() as f64 >= SHOWN_TIMES * least
        };
        Continue(levels.iter().position(shows))
    }

    /// Index of the tightest level at which the collector stays within the price. Its work is assumed to be inversely
    /// proportional to the room above the live set, because each collection frees that room. `None` if no level is set
    /// or the work is unknown. The index is below `open` if the last winner is already at the price.
    fn near_price(&self, levels: &[Candidate<'o>], winner: &Setting<'o>) -> Replay<'o, Option<usize>> {
        let Some(set) = set_among(levels, winner).filter(|_| self.scheduler.price > 0.0) else { return Continue(None) };
        let Known(outcomes) = self.first(winner, 1, TuneStage::Race)? else { return Continue(None) };
        let Some(extra) = self.as_is.collects_more(&outcomes) else { return Continue(None) };
        let room = set.room as f64 * (extra / self.scheduler.price).max(1.0 / ROOM_PER_STEP);
        let has_room = |level: &Candidate<'o>| level.ceiling.is_some_and(|ceiling| ceiling.room as f64 >= room);
        Continue(levels.iter().rposition(has_room).or(Some(0)))
    }

    /// Races a candidate against the winner unless its fate is known; returns whether the winner now contains it.
    fn race_with(&mut self, candidate: Candidate<'o>, winner: &mut Setting<'o>) -> Replay<'o, bool> {
        if winner.has(candidate) {
            return Continue(true);
        }
        if self.fates.get(candidate).is_some() {
            return Continue(false);
        }
        let mut raced = self.challenge(candidate, winner)?;
        if let Raced::WinnerBroke(sound) = raced {
            *winner = sound;
            raced = self.challenge(candidate, winner)?;
        }
        match raced {
            Raced::Won(better) => {
                *winner = better;
                return Continue(true);
            }
            Raced::Lost(fate) => self.fates.set(candidate, fate),
            Raced::WinnerBroke(_) => {}
        }
        Continue(false)
    }

    /// Runs trials of the winner with and without a candidate until one of them is better.
    fn challenge(&mut self, candidate: Candidate<'o>, winner: &Setting<'o>) -> Replay<'o, Raced<'o>> {
        let no_time = || Continue(Raced::Lost(CandidateFate::no_time()));
        let enough = enough_for(candidate);
        let Known(outcomes) = self.first(winner, enough, TuneStage::Race)? else { return no_time() };
        let incumbent = Means::of(&outcomes);
        let held = incumbent.held_by(&candidate.owners);
        let bound = held.min(candidate.gain_bytes_max() as f64);
        if bound < MIB as f64 || held < candidate.share_min * incumbent.bytes {
            let why = format!("in addition to the others, it could save only {}", Bytes(bound.max(0.0) as u64));
            return Continue(Raced::Lost(CandidateFate::unmeasured(Fate::NotTried, why)));
        }
        let variant = winner.with(candidate);
        for count in 1..=UNDECIDED {
            let Known(outcomes) = self.first(&variant, count, TuneStage::Race)? else { return no_time() };
            match self.compare(candidate, &incumbent, &variant, &outcomes, count) {
                Contest::Better => break,
                Contest::Open => {}
                Contest::NotBetter(fate) => return Continue(Raced::Lost(fate)),
                Contest::Rejected(rejection) => {
                    // The winner itself can occasionally miss the target.
                    if matches!(rejection, Rejection::Missed(_))
                        && let Some(sound) = self.without_breakers(winner)?
                    {
                        return Continue(Raced::WinnerBroke(sound));
                    }
                    return Continue(Raced::Lost(self.as_is.fate(candidate, &rejection, &outcomes)));
                }
            }
        }
        for level in winner.candidates().filter(|level| !variant.has(*level)) {
            let (saved, cpu) = self.fates.saving(candidate).unwrap_or_default();
            self.fates.set_saving(candidate, saved + self.fates.saved(level), cpu);
            self.fates.replace(level, candidate);
            let why = format!("`{}` saves more", candidate.id);
            self.fates.set(level, CandidateFate::measured(Fate::NotMissed, why, self.fates.saved(level), None));
        }
        Continue(Raced::Won(variant))
    }

    /// Compares a variant with the current winner, based on its first `count` outcomes.
    fn compare(
        &mut self,
        candidate: Candidate<'o>,
        incumbent: &Means,
        variant: &Setting<'o>,
        outcomes: &[&Observed],
        count: usize,
    ) -> Contest {
        if not_in_force(&Setting::new([candidate]), outcomes).is_some() {
            return Contest::NotBetter(CandidateFate::not_in_force());
        }
        let means = Means::of(outcomes);
        let saved = self.as_is.saved(incumbent, &means, &candidate.owners);
        let least = self.as_is.least(incumbent, &means, &candidate.owners);
        let cpu = self.as_is.cpu_ratio(&means, outcomes);
        let not_better = |fate, why| Contest::NotBetter(CandidateFate::measured(fate, why, saved, cpu));
        match self.as_is.rejection(variant, outcomes) {
            // Memory is judged against the winner, not against the unchanged subject.
            None | Some(Rejection::Grew(_)) => {}
            Some(Rejection::Costs(ratio)) if saved >= least => {
                return not_better(Fate::TooCostly, saving_at_price(saved, ratio));
            }
            Some(Rejection::Costs(_)) => return not_better(Fate::NoEffect, no_saving(saved, least)),
            Some(rejection) => return Contest::Rejected(rejection),
        }
        if saved < -least {
            return not_better(Fate::Harmful, grew(-saved));
        }
        // The first trial drops a candidate that cannot win; later ones also drop one that has not won.
        let hope = if count >= ENOUGH { 0.0 } else { least };
        if saved + hope < least.max(MIB as f64) || saved < 0.0 {
            return not_better(Fate::NoEffect, no_saving(saved, least));
        }
        self.fates.set_saving(candidate, saved, cpu);
        let enough = if saved < least { ENOUGH } else { enough_for(candidate) };
        if cpu.is_none() && self.as_is.noise.has_cpu {
            // Without a price of its own, it would make the whole set unpriced.
            return not_better(Fate::TooCostly, "its CPU time was not measured, so its cost is unknown".to_owned());
        }
        let allowed = self.as_is.allowed(&means, &variant.owners());
        let beyond_price = cpu.map_or(-1.0, |ratio| ratio - 1.0 - allowed);
        if !self.as_is.can_be_priced() {
            // Prices cannot be proved here. Only a clearly exceeded one counts against a candidate.
            return if count >= enough { Contest::Better } else { Contest::Open };
        }
        if count == UNDECIDED && beyond_price > -PROVABLE * self.as_is.noise.cpu_believed() {
            let near = if beyond_price > 0.0 { "" } else { ", too close to the price limit to confirm" };
            return not_better(Fate::TooCostly, saving_at_price(saved, cpu.unwrap_or(1.0)) + near);
        }
        let is_clear = beyond_price < -NEAR * self.as_is.cpu_error(&means);
        if count >= enough && is_clear { Contest::Better } else { Contest::Open }
    }

    /// The part of the winner that remains if another trial shows that the winner itself misses the target.
    fn without_breakers(&mut self, winner: &Setting<'o>) -> Replay<'o, Option<Setting<'o>>> {
        if winner.is_as_it_is() {
            return Continue(None);
        }
        let Known(outcomes) = self.first(winner, ENOUGH + 1, TuneStage::Race)? else { return Continue(None) };
        let Some(broken) = outcomes.iter().find(|of| !of.holds) else { return Continue(None) };
        let why = broken.why.join("; ");
        let mut sound = winner.clone();
        for candidate in self.suspects(winner, &Unconfirmed::Broke(why.clone())) {
            let why = format!("a combination that includes it missed the target: {why}");
            self.fates.set(candidate, CandidateFate::unmeasured(Fate::Harmful, why));
            sound = sound.without(candidate);
        }
        Continue(Some(sound))
    }

    // Confirm: the winner against the unchanged subject, in fresh blocks.

    /// Confirms the winner, or the rest of it after a failed attempt.
    fn confirm(&mut self, mut winner: Setting<'o>) -> Replay<'o, Finish<'o>> {
        let mut unpriced = None;
        for attempt in 0..ATTEMPTS {
            if winner.is_as_it_is() {
                break;
            }
            let (unconfirmed, price) = self.run_blocks(&winner, attempt)?;
            self.note_attempt(&winner, attempt, unconfirmed.as_ref(), price);
            let Some(unconfirmed) = unconfirmed else { return Continue(Finish::Proved(winner)) };
            if unconfirmed.is_unpriced() {
                unpriced.get_or_insert_with(|| winner.clone());
            }
            let is_last = attempt + 1 == ATTEMPTS || !self.scheduler.has_time_for(BLOCKS, attempt + 1, 0);
            if is_last {
                break;
            }
            if unpriced.is_some() && !self.as_is.can_be_priced() {
                let Some((before, stand_in)) = self.stand_in(&winner) else { break };
                let why = format!("its CPU cost is too noisy to confirm; `{}` was confirmed instead", stand_in.id);
                self.fates.set(before, CandidateFate::unmeasured(Fate::NotConfirmed, why));
                winner = winner.without(before).with(stand_in);
                continue;
            }
            let suspects = self.suspects(&winner, &unconfirmed);
            if suspects.is_empty() {
                // Another set would be equally unproved; retrying would only give luck a second chance.
                break;
            }
            for candidate in suspects {
                self.fates.set(candidate, CandidateFate::not_confirmed());
                winner = match self.fates.restore(candidate) {
                    Some(before) => winner.with(before),
                    None => winner.without(candidate),
                };
            }
        }
        if let Some(setting) = unpriced {
            return Continue(Finish::Unpriced(setting));
        }
        for candidate in winner.candidates() {
            self.fates.set(candidate, CandidateFate::not_confirmed());
        }
        Continue(Finish::Nothing)
    }

    /// The part of a winner that saves the most, and a candidate of a different kind. On its own, it may save
    /// as much of the same owners. It added little to that part, or was not tried. Its price may be clearer.
    fn stand_in(&self, winner: &Setting<'o>) -> Option<(Candidate<'o>, Candidate<'o>)> {
        let saved = |candidate: &Candidate<'o>| self.fates.saved(*candidate);
        let heaviest = winner.candidates().max_by(|one, other| saved(one).total_cmp(&saved(other)))?;
        let is_idle = |candidate: &Candidate<'o>| match self.fates.get(*candidate) {
            _ if winner.has(*candidate) => *candidate != heaviest,
            Some(of) => {
                let is_dropped = of.fate == Fate::NoEffect || of.fate == Fate::NotTried && of.why != NO_TIME;
                is_dropped && winner.level_of(candidate.group).is_none()
            }
            None => false,
        };
        let may_do = |candidate: &Candidate<'o>| {
            Setting::new([heaviest, *candidate]).shares_owners(*candidate)
                && candidate.gain_bytes_max() as f64 >= saved(&heaviest)
        };
        let others = self.scheduler.candidates().filter(|of| is_idle(of) && may_do(of));
        others.max_by_key(|of| of.gain_bytes_max()).map(|stand_in| (heaviest, stand_in))
    }

    fn note_attempt(&mut self, winner: &Setting<'o>, attempt: u32, unconfirmed: Option<&Unconfirmed>, price: f64) {
        let remedies = winner.ids();
        let blocks = self.scheduler.outcomes.iter().filter(|of| {
            of.stage == TuneStage::Confirmation && of.block / BLOCKS_MAX == attempt && of.remedies == remedies
        });
        let blocks = blocks.count() as u32;
        let why = unconfirmed.map_or_else(String::new, ToString::to_string);
        self.fates.attempts.push(ConfirmationRecord { remedies, confirmed: unconfirmed.is_none(), blocks, price, why });
    }

    /// Candidates to drop after a failed attempt. If CPU time was the reason, the one that costs the most for its
    /// saving. If the target was missed, all with small savings, because the cause is unknown. Otherwise, the one that
    /// saves the least. Empty if the noise in CPU time is the reason.
    fn suspects(&self, winner: &Setting<'o>, unconfirmed: &Unconfirmed) -> Vec<Candidate<'o>> {
        let saved = |candidate: &Candidate<'o>| self.fates.saved(*candidate);
        let by_saving = |one: &Candidate<'o>, other: &Candidate<'o>| saved(one).total_cmp(&saved(other));
        let least = winner.candidates().min_by(by_saving);
        match unconfirmed {
            Unconfirmed::Broke(_) => {
                let all: f64 = winner.candidates().map(|candidate| saved(&candidate).max(0.0)).sum();
                let small: Vec<_> = winner.candidates().filter(|of| saved(of) < LARGE_SHARE * all).collect();
                if small.is_empty() { least.into_iter().collect() } else { small }
            }
            Unconfirmed::Costs { low, price, .. } => {
                let costs = winner.candidates().filter(|candidate| candidate.price != PriceClass::Free);
                let least = least.filter(|_| *low > 1.0 + price);
                costs.min_by(by_saving).or(least).into_iter().collect()
            }
            Unconfirmed::Saves { .. } | Unconfirmed::Unweighed => least.into_iter().collect(),
            Unconfirmed::CpuUnmeasured => Vec::new(),
        }
    }

    /// Runs the blocks of an attempt; returns the reason if they do not confirm the setting, and the price used.
    fn run_blocks(&self, winner: &Setting<'o>, attempt: u32) -> Replay<'o, (Option<Unconfirmed>, f64)> {
        let Scheduler { price, worth, seed, .. } = *self.scheduler;
        let mut pairs = ConfirmationPairs { pairs: Vec::new(), price, worth, seed };
        let most = self.scheduler.blocks_max();
        for block in (attempt * BLOCKS_MAX..).take(most as usize) {
            let done = pairs.pairs.len() as u32;
            let next_look = LOOKS.into_iter().find(|look| *look > done).unwrap_or(BLOCKS_MAX);
            let has_time = || self.scheduler.has_time_for(next_look - done, attempt, done);
            if LOOKS.contains(&done) && !(pairs.may_cost_less(most) && has_time()) {
                break;
            }
            let settings = [Setting::default(), winner.clone()];
            let mut outcomes = [None, None];
            for which in comparison::order(seed, block, settings.len()) {
                let outcome = self.scheduler.confirming(&settings[which], block)?;
                if which == 1 && !outcome.holds {
                    return Continue((Some(Unconfirmed::Broke(outcome.why.join("; "))), pairs.allowed()));
                }
                outcomes[which] = Some(outcome);
            }
            if let [Some(as_is), Some(with)] = outcomes {
                pairs.pairs.push((as_is, with));
            }
        }
        Continue((pairs.unproved(), pairs.allowed()))
    }
}

fn set_among(levels: &[Candidate<'_>], winner: &Setting<'_>) -> Option<Ceiling> {
    levels.first().and_then(|level| winner.level_of(level.group)?.ceiling)
}

fn enough_for(candidate: Candidate<'_>) -> usize {
    if candidate.ceiling.is_some() { ENOUGH_FOR_A_LEVEL } else { ENOUGH }
}

/// A candidate whose changes did not take effect in the process.
fn not_in_force<'o>(set: &Setting<'o>, outcomes: &[&Observed]) -> Option<Candidate<'o>> {
    let lacks = |word: &String| outcomes.iter().any(|of| of.not_in_force.contains(word));
    set.candidates().find(|candidate| candidate.changes().iter().flat_map(Change::typed).any(|word| lacks(&word)))
}
