//! Remedies that apply what a finding about the unchanged subject proposes. The finding provides the changes and their
//! maximum gain; without it, there is nothing to try.

use super::changes::young_of;
use super::heap::{CEILINGS, whole_mib};
use super::others::RETAINED;
use super::{Facts, NotOffered, Offer};
use crate::native::YOUNG_LEAST;
use crate::record::{Finding, FindingRecord};
use crate::scenario::Change;
use crate::units::Bytes;

/// The size of a heap with larger regions relative to its objects, with room for garbage and region tails.
const HEAP_ROOM: f64 = 1.5;

fn finding<'f>(facts: &'f Facts, kind: &str) -> Result<&'f FindingRecord, NotOffered> {
    let found = facts.findings.iter().find(|one| one.finding.kind() == kind);
    found.ok_or_else(|| NotOffered::NotHere("the diagnosis found nothing that this would fix".to_owned()))
}

/// The remedy with this prefix in a finding of this kind.
pub(super) fn proposed(facts: &Facts, kind: &str, begin: &str) -> Result<Offer, NotOffered> {
    let found = finding(facts, kind)?;
    let is_meant = |change: &&Change| change.typed().first().is_some_and(|word| word.starts_with(begin));
    let Some(change) = found.remedies.iter().find(is_meant) else {
        return Err(NotOffered::NotHere(format!("the diagnosis does not suggest `{begin}`")));
    };
    Ok(Offer::of(vec![change.clone()], found.gain_bytes_max.unwrap_or(found.costs_bytes)))
}

/// A young generation of `halves` times half the proposed size, if that is smaller than the current setting.
pub(super) fn young(facts: &Facts, halves: u64) -> Result<Offer, NotOffered> {
    let offer = proposed(facts, "native_held_by_garbage", "-Xmn")?;
    let typed = offer.changes.iter().flat_map(Change::typed).next();
    let size = typed.and_then(|option| option.strip_prefix("-Xmn")?.parse::<Bytes>().ok());
    let size = size.map_or(0, |Bytes(bytes)| bytes / 2 * halves);
    let set = facts.chosen.get("MaxNewSize").and_then(|value| value.parse::<u64>().ok());
    if size < YOUNG_LEAST || set.is_some_and(|set| size >= set) {
        let why = format!("a young generation of {} is too small, or not smaller than yours", Bytes(size));
        return Err(NotOffered::NotHere(why));
    }
    // Collected objects return their native memory to malloc, which retains most of it.
    let retained = facts.held_by(RETAINED);
    let gain_bytes_max = offer.gain_bytes_max.map(|bytes| bytes.saturating_add(retained));
    Ok(Offer { changes: vec![young_of(Bytes(size))], gain_bytes_max, ..offer })
}

/// G1 with larger regions. Also lowers the heap's ceiling unless another option bounds it, because memory falls only
/// with the ceiling.
pub(super) fn regions(facts: &Facts) -> Result<Offer, NotOffered> {
    let mut offer = proposed(facts, "humongous_tails", "-XX:G1HeapRegionSize")?;
    if let Finding::HumongousTails { object_bytes, .. } = finding(facts, "humongous_tails")?.finding
        && facts.in_the_way(CEILINGS).is_none()
    {
        let others = facts.live.unwrap_or(0).saturating_sub(object_bytes) / 2;
        let heap = whole_mib(((object_bytes.saturating_add(others)) as f64 * HEAP_ROOM) as u64);
        offer.changes.push(Change::HeapMax(Bytes(heap)));
        offer.gain_bytes_max = Some(facts.heap().saturating_sub(heap));
    }
    Ok(offer)
}

/// The requested share of memory that had no effect, if it means a smaller heap.
pub(super) fn heap_share(facts: &Facts) -> Result<Offer, NotOffered> {
    let offer = proposed(facts, "heap_share_unheeded", "-XX:MinRAMPercentage")?;
    match finding(facts, "heap_share_unheeded")?.finding {
        Finding::HeapShareUnheeded { heap_bytes_max, asked_bytes, .. } if asked_bytes >= heap_bytes_max => {
            let (heap, asked) = (Bytes(heap_bytes_max), Bytes(asked_bytes));
            Err(NotOffered::NotHere(format!("it would raise the maximum heap from {heap} to {asked}")))
        }
        _ => Ok(offer),
    }
}

/// A higher direct-memory ceiling to replace one set below the live memory.
pub(super) fn direct_ceiling(facts: &Facts) -> Result<Offer, NotOffered> {
    let offer = proposed(facts, "direct_memory_at_ceiling", "-XX:MaxDirectMemorySize")?;
    if !facts.chosen.contains_key("MaxDirectMemorySize") {
        return Err(NotOffered::NotHere("no cap that you set is too low".to_owned()));
    }
    Ok(Offer { gain_bytes_max: None, ..offer })
}

/// The subject without agents, if Loadline starts it with them.
pub(super) fn agents(facts: &Facts) -> Result<Offer, NotOffered> {
    // No finding is needed if the user allowed an agent's removal.
    if facts.removable(AGENTS).is_empty() {
        finding(facts, "observers_on")?;
    }
    let is_agent = |word: &String| AGENTS.iter().any(|kind| word.starts_with(kind));
    match facts.words.iter().any(is_agent) {
        true => Ok(Offer::unknown(Vec::new())),
        false => Err(NotOffered::NotHere("the command line has no agent".to_owned())),
    }
}

/// Prefixes of options that load an agent (man java).
pub(super) const AGENTS: &[&str] = &["-javaagent", "-agentlib", "-agentpath"];

#[cfg(test)]
mod tests {
    use super::super::offers;
    use super::*;
    use crate::scenario::Tune;

    const MIB: u64 = 1 << 20;

    /// A JVM with garbage-held native memory, and an explicit young generation.
    fn facts(may_remove: &[&str]) -> Facts {
        let finding = Finding::NativeHeldByGarbage { freed_bytes: 275 * MIB, owners: Vec::new(), collections: None };
        let found = FindingRecord {
            gain_bytes_max: Some(275 * MIB),
            remedies: vec![young_of(Bytes::mib(8))],
            ..crate::found::found(finding, String::new(), "")
        };
        Facts {
            findings: vec![found],
            chosen: [("MaxNewSize".to_owned(), (12 * MIB).to_string())].into(),
            may_remove: may_remove.iter().map(|&flag| flag.to_owned()).collect(),
            ..Facts::default()
        }
    }

    fn offer(facts: &Facts, id: &str) -> Result<Offer, NotOffered> {
        offers(facts, &Tune::default(), MIB).into_iter().find(|of| of.id == id).unwrap().offer
    }

    #[test]
    fn a_flag_is_removed_only_with_permission() {
        let told = offer(&facts(&[]), "cure.young").unwrap_err().to_string();
        let expect = "you set `-XX:MaxNewSize=12m` yourself: `--may-remove MaxNewSize` tries removing it, which may \
                      save up to 275.0 MiB";
        assert_eq!(told, expect);
        let offered = offer(&facts(&["-Xmn"]), "cure.young").unwrap();
        let gone = Change::Without(vec!["-XX:MaxNewSize=12m".to_owned()]);
        assert_eq!(offered.changes, [gone, young_of(Bytes::mib(8))]);
        assert_eq!(offered.gain_bytes_max, Some(275 * MIB));
    }

    #[test]
    fn proposed_levels_are_below_the_set_value_but_not_too_small() {
        let facts = facts(&["-Xmn"]);
        let typed = |id| offer(&facts, id).map(|of| of.changes.iter().flat_map(Change::typed).collect::<Vec<_>>());
        assert_eq!(typed("cure.young.half"), Ok(vec!["-Xmn4m".to_owned()]));
        assert!(typed("cure.young.double").is_err(), "16m is more than the 12m that were set");
    }

    #[test]
    fn cures_need_a_finding() {
        let facts = Facts::default();
        for remedy in super::super::TABLE.iter().filter(|remedy| remedy.id.starts_with("cure.")) {
            assert!(offer(&facts, remedy.id).unwrap_err().to_string().contains("found nothing"), "{remedy:?}");
        }
    }

    #[test]
    fn a_removable_agent_is_tried_without_a_finding() {
        let facts = |may_remove: &[&str]| Facts {
            words: vec!["-javaagent:otel.jar".to_owned(), "-Xss4m".to_owned()],
            findings: Vec::new(),
            ..facts(may_remove)
        };
        assert!(offer(&facts(&[]), "cure.agents").is_err());
        let without = |word: &str| vec![Change::Without(vec![word.to_owned()])];
        let both = facts(&["-javaagent", "-Xss"]);
        assert_eq!(offer(&both, "cure.agents").unwrap().changes, without("-javaagent:otel.jar"));
        // Removals that no remedy includes are tried separately.
        assert_eq!(offer(&both, "remove.1").unwrap().changes, without("-Xss4m"));
        assert!(!offers(&both, &Tune::default(), MIB).iter().any(|of| of.id == "remove.2"));
    }

    #[test]
    fn remedies_with_a_hidden_startup_cost_need_a_warm_jvm() {
        let offered = |is_warm| offer(&Facts { is_warm, ..Facts::default() }, "compiler.c1");
        assert!(offered(Some(false)).unwrap_err().to_string().contains("the baseline was not warm"));
        assert_eq!(offered(Some(true)), offered(None));
        assert_ne!(offered(Some(true)), Err(NotOffered::Young));
    }
}
