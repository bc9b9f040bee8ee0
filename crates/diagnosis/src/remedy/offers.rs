//! The remedies to try on a subject, and the reasons not to try the others.

use super::facts::subject_of;
use super::table::{Need, Offering};
use super::{Facts, Group, Remedy, TABLE};
use crate::owner::Owner;
use crate::record::PriceClass;
use crate::scenario::{Change, Tune};
use crate::units::{Bytes, MIB};
use loadline_jvm::observe::vm_flags::short_name;
use std::fmt;

/// A remedy's changes for this subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The changes, which override existing settings.
    pub changes: Vec<Change>,
    /// The maximum saving in bytes; `None` if only RSS bounds it.
    pub gain_bytes_max: Option<u64>,
    /// The changes of an unmeasured training run that must come first.
    pub training: Vec<Change>,
}

impl Offer {
    pub(super) fn of(changes: Vec<Change>, gain_bytes_max: u64) -> Self {
        Self { changes, gain_bytes_max: Some(gain_bytes_max), training: Vec::new() }
    }

    /// Changes with unknown gain.
    pub(super) fn unknown(changes: Vec<Change>) -> Self {
        Self { changes, gain_bytes_max: None, training: Vec::new() }
    }
}

/// A value of a ceiling in a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling {
    /// The ceiling in bytes.
    pub value: u64,
    /// The bytes beyond those that are needed.
    pub room: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Level {
    pub(super) ceiling: Ceiling,
    /// Whether a search starts with it.
    pub(super) is_first: bool,
    pub(super) offer: Offer,
}

impl Level {
    pub(super) fn of(value: u64, need: u64, offer: Offer) -> Self {
        Self { ceiling: Ceiling { value, room: value.saturating_sub(need) }, is_first: false, offer }
    }
}

/// Why a remedy is not tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotOffered {
    /// Its maximum saving, in bytes, is insignificant.
    NoGain(u64),
    /// The JVM lacks this flag.
    NoFlag(&'static str),
    /// The user set it.
    Chosen(String),
    /// The user set it, and the diagnosis blames it; with the maximum saving of a replacement.
    Blamed(String, Option<u64>),
    /// It affects glibc's malloc, and the subject uses another.
    Allocator(String),
    /// A fact needed to judge it is unknown.
    Unknown(&'static str),
    /// It has no effect on this subject.
    NotHere(String),
    /// A known bug forbids it.
    Fault(&'static str),
    /// Only a warm JVM shows its price, and at least one trial was not warm.
    Young,
    /// It is excluded.
    Skipped,
}

impl fmt::Display for NotOffered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGain(0) => write!(f, "it would save nothing here"),
            Self::NoGain(bytes) => write!(f, "it could save at most {}", Bytes(*bytes)),
            Self::NoFlag(flag) => write!(f, "this JVM has no flag `{flag}`"),
            Self::Chosen(text) => write!(f, "you set `{text}`, so Loadline keeps it"),
            Self::Blamed(text, gain) => {
                let gain = gain.map(|bytes| format!(", which may save up to {}", Bytes(bytes))).unwrap_or_default();
                let name = short_name(text).unwrap_or_else(|| subject_of(text));
                write!(f, "you set `{text}` yourself: `--may-remove {name}` tries removing it{gain}")
            }
            Self::Allocator(name) => write!(f, "it works only with glibc's malloc, and the server uses {name}"),
            Self::Unknown(what) => write!(f, "{what} is unknown"),
            Self::NotHere(why) => write!(f, "{why}"),
            Self::Fault(fault) => write!(f, "{fault}; use `--try` to try it anyway"),
            Self::Young => {
                write!(
                    f,
                    "only a warm JVM shows its cost, and the baseline was not warm: use `--warmup \
                     steady:5m`"
                )
            }
            Self::Skipped => write!(f, "you asked to skip it (`--skip`)"),
        }
    }
}

/// A remedy and its changes for this subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    /// Its ID; `try.1` for the first user-defined one.
    pub id: String,
    /// A plain description of its effect.
    pub what: String,
    /// The group of alternatives that it belongs to.
    pub group: Group,
    /// The owners of the affected pages; empty if unknown.
    pub owners: Vec<Owner>,
    /// Its possible cost.
    pub price: PriceClass,
    /// See [`Remedy::rank`].
    pub rank: u8,
    /// See [`Remedy::share_min`].
    pub share_min: f64,
    /// Its value, if it is a level of a searched ceiling.
    pub ceiling: Option<Ceiling>,
    /// Its changes, or the reason why it is not tried.
    pub offer: Result<Offer, NotOffered>,
}

/// Matches an ID by prefix: `malloc` means all of malloc.
pub fn begins(id: &str, meant: &str) -> bool {
    id.strip_prefix(meant.trim_end_matches('.')).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// All remedies: those in the table, then removals that no remedy includes, then the user's own. Each must be able to
/// save at least `least` bytes.
pub fn offers(facts: &Facts, tune: &Tune, least: u64) -> Vec<Offered> {
    let skips = |id: &str| tune.skip.iter().any(|skip| begins(id, skip));
    let of_table = TABLE.iter().flat_map(|remedy| {
        let offers = if skips(remedy.id) { Err(NotOffered::Skipped) } else { offers_of(remedy, facts, least) };
        offers.unwrap_or_else(|why| vec![offered(remedy, None, Err(why))])
    });
    let mut offers: Vec<Offered> = of_table.collect();
    let removals = removals(facts, &offers).into_iter().enumerate().map(|(place, word)| {
        let what = format!("without `{word}`, as allowed by `--may-remove`");
        (format!("remove.{}", place + 1), what, Change::Without(vec![word]))
    });
    let tries = tune.tries.iter().enumerate().map(|(place, tried)| {
        (format!("try.{}", place + 1), format!("`{}`, as you asked", tried.text), tried.change.clone())
    });
    let asked = removals.chain(tries).enumerate().map(|(place, (id, what, change))| Offered {
        offer: if skips(&id) { Err(NotOffered::Skipped) } else { Ok(Offer::unknown(vec![change])) },
        id,
        what,
        group: Group::Own(place),
        owners: Vec::new(),
        price: PriceClass::Cpu,
        rank: 0,
        share_min: 0.0,
        ceiling: None,
    });
    offers.extend(asked.collect::<Vec<_>>());
    offers
}

/// Removable options and flags that no offer includes.
fn removals(facts: &Facts, offers: &[Offered]) -> Vec<String> {
    let taken = |word: &String| {
        let changes = offers.iter().filter_map(|of| of.offer.as_ref().ok()).flat_map(|offer| &offer.changes);
        changes.into_iter().any(|change| matches!(change, Change::Without(words) if words.contains(word)))
    };
    facts.may_all_go().into_iter().filter(|word| !taken(word)).collect()
}

fn offered(remedy: &Remedy, level: Option<&Level>, offer: Result<Offer, NotOffered>) -> Offered {
    let of_level = |text: &str, between: &str| {
        let value = level.map(|level| format!("{between}{}", Bytes(level.ceiling.value).java()));
        format!("{text}{}", value.unwrap_or_default())
    };
    Offered {
        id: of_level(remedy.id, "."),
        what: of_level(remedy.what, ": "),
        group: remedy.group,
        owners: remedy.owners.to_vec(),
        price: remedy.price,
        rank: level.map_or(remedy.rank, |level| level.is_first.into()),
        share_min: remedy.share_min,
        ceiling: level.map(|level| level.ceiling),
        offer,
    }
}

/// A remedy for this subject; for a ceiling, every level with a significant saving.
fn offers_of(remedy: &Remedy, facts: &Facts, least: u64) -> Result<Vec<Offered>, NotOffered> {
    let levels = match remedy.offering {
        Offering::One(of) => return Ok(vec![offered(remedy, None, offer(remedy, facts, least, || of(facts)))]),
        Offering::Levels(of) => {
            remedy.needs.iter().try_for_each(|need| need.check(facts))?;
            of(facts)?
        }
    };
    let at = |level: &Level| offer(remedy, facts, least, || Ok(level.offer.clone())).map(|of| (level.clone(), of));
    let offers: Result<Vec<_>, _> =
        levels.iter().map(at).filter(|of| !matches!(of, Err(NotOffered::NoGain(_)))).collect();
    match offers? {
        none if none.is_empty() => Err(NotOffered::NoGain(0)),
        some => Ok(some.into_iter().map(|(level, offer)| offered(remedy, Some(&level), Ok(offer))).collect()),
    }
}

/// A remedy's changes, if the possible saving is significant. The first change removes conflicting user options that
/// may be removed.
fn offer(
    remedy: &Remedy,
    facts: &Facts,
    least: u64,
    changes: impl FnOnce() -> Result<Offer, NotOffered>,
) -> Result<Offer, NotOffered> {
    let needed = remedy.needs.iter().try_for_each(|need| need.check(facts));
    let is_blamed = remedy.id.starts_with(CURE) && matches!(needed, Err(NotOffered::Chosen(_)));
    if !is_blamed {
        needed.clone()?;
    }
    let mut offer = changes()?;
    match (offer.gain_bytes_max, needed) {
        (Some(gain), _) if gain < least.max(MIB) => return Err(NotOffered::NoGain(gain)),
        (gain, Err(NotOffered::Chosen(text))) => return Err(NotOffered::Blamed(text, gain)),
        _ => {}
    }
    let typed: Vec<String> = offer.changes.iter().flat_map(Change::typed).collect();
    let unset = remedy.needs.iter().flat_map(|need| if let Need::Unset(names) = need { *names } else { &[] });
    let names: Vec<&str> = unset.copied().chain(typed.iter().map(|option| subject_of(option))).collect();
    let removed = facts.removable(&names);
    if !removed.is_empty() {
        offer.changes.insert(0, Change::Without(removed));
    }
    Ok(offer)
}

/// Prefix of IDs of remedies that a finding proposes.
const CURE: &str = "cure.";
