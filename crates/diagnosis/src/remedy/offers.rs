//! The remedies of the table that would be tried on a subject, and the reasons against the others.

use super::facts::subject_of;
use super::table::{Need, Offering};
use super::{Facts, Group, Remedy, TABLE};
use crate::owner::Owner;
use crate::record::PriceClass;
use crate::scenario::{Change, Tune};
use crate::units::{Bytes, MIB};
use loadline_jvm::observe::vm_flags::short_name;
use std::fmt;

/// The changes that a remedy would make here.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The changes; they win over what was there.
    pub changes: Vec<Change>,
    /// The most bytes that it can save; `None` if nothing bounds it but RSS itself.
    pub gain_bytes_max: Option<u64>,
    /// The changes of a run that has to come first and is not measured.
    pub training: Vec<Change>,
}

impl Offer {
    pub(super) fn of(changes: Vec<Change>, gain_bytes_max: u64) -> Self {
        Self { changes, gain_bytes_max: Some(gain_bytes_max), training: Vec::new() }
    }

    /// Changes whose gain is not known before they are tried.
    pub(super) fn unknown(changes: Vec<Change>) -> Self {
        Self { changes, gain_bytes_max: None, training: Vec::new() }
    }
}

/// One value of a ceiling that is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling {
    /// The ceiling in bytes.
    pub value: u64,
    /// The bytes between it and what is needed.
    pub room: u64,
}

/// A ceiling with its changes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Level {
    pub(super) ceiling: Ceiling,
    /// Whether a search begins with it.
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
    /// It could save this at most, in bytes, which is less than matters.
    NoGain(u64),
    /// The JVM has no such flag.
    NoFlag(&'static str),
    /// The user set it.
    Chosen(String),
    /// The user set it, and the diagnosis blames it; with the most bytes that a remedy in its place can save.
    Blamed(String, Option<u64>),
    /// It acts on glibc's malloc, and the subject has another.
    Allocator(String),
    /// A fact that it would be judged by is not known.
    Unknown(&'static str),
    /// It does nothing here.
    NotHere(String),
    /// A known fault forbids it.
    Fault(&'static str),
    /// Only a warm JVM shows its price, and a trial was none.
    Young,
    /// It is not to be tried.
    Skipped,
}

impl fmt::Display for NotOffered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGain(0) => write!(f, "nothing here that it could save"),
            Self::NoGain(bytes) => write!(f, "it could save {} at most", Bytes(*bytes)),
            Self::NoFlag(flag) => write!(f, "this JVM has no flag `{flag}`"),
            Self::Chosen(text) => write!(f, "`{text}` is set, and stays"),
            Self::Blamed(text, gain) => {
                let gain = gain.map(|bytes| format!(", up to {} less", Bytes(bytes))).unwrap_or_default();
                let name = short_name(text).unwrap_or_else(|| subject_of(text));
                write!(f, "`{text}` is your own: `--may-remove {name}` tries without it{gain}")
            }
            Self::Allocator(name) => write!(f, "it acts on glibc's malloc, and the subject has {name}"),
            Self::Unknown(what) => write!(f, "{what} is not known"),
            Self::NotHere(why) => write!(f, "{why}"),
            Self::Fault(fault) => write!(f, "{fault}; `--try` tries it all the same"),
            Self::Young => {
                write!(f, "only a warm JVM shows its cost, and the baseline was not warm: `--warmup steady:5m`")
            }
            Self::Skipped => write!(f, "it was to be skipped (`--skip`)"),
        }
    }
}

/// A remedy and what it would change here.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    /// Its id; `try.1` for the first of the user's own.
    pub id: String,
    /// Its effect, in plain words.
    pub what: String,
    /// The setting whose level it is.
    pub group: Group,
    /// The owners of the pages that it moves; empty where they are not known.
    pub owners: Vec<Owner>,
    /// The cost that it may have.
    pub price: PriceClass,
    /// See [`Remedy::rank`].
    pub rank: u8,
    /// See [`Remedy::share_min`].
    pub share_min: f64,
    /// Its value, where it is one level of a ceiling that is searched.
    pub ceiling: Option<Ceiling>,
    /// The changes that it would make, or the reason why it is not tried.
    pub offer: Result<Offer, NotOffered>,
}

/// Whether an id is meant by how it begins: `malloc` means all of malloc.
pub fn begins(id: &str, meant: &str) -> bool {
    id.strip_prefix(meant.trim_end_matches('.')).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// All remedies: those of the table, then the removals that the user allows and no remedy makes, then the user's own.
/// None may save less than `least` bytes.
pub fn offers(facts: &Facts, tune: &Tune, least: u64) -> Vec<Offered> {
    let skips = |id: &str| tune.skip.iter().any(|skip| begins(id, skip));
    let of_table = TABLE.iter().flat_map(|remedy| {
        let offers = if skips(remedy.id) { Err(NotOffered::Skipped) } else { offers_of(remedy, facts, least) };
        offers.unwrap_or_else(|why| vec![offered(remedy, None, Err(why))])
    });
    let mut offers: Vec<Offered> = of_table.collect();
    let removals = removals(facts, &offers).into_iter().enumerate().map(|(place, word)| {
        let what = format!("without `{word}`, as allowed");
        (format!("remove.{}", place + 1), what, Change::Without(vec![word]))
    });
    let tries = tune.tries.iter().enumerate().map(|(place, tried)| {
        (format!("try.{}", place + 1), format!("`{}`, as asked", tried.text), tried.change.clone())
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

/// The options and flags that may go and that no offer takes out.
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

/// A remedy as it would be tried here; a ceiling at each level that can save enough to matter.
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

/// Returns the changes of a remedy, if they can save enough to matter. The first change removes the options that the
/// user set and allows to go.
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

/// Ids of remedies that a finding of the diagnosis asks for begin so.
const CURE: &str = "cure.";
