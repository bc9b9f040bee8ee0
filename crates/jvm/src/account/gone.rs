//! Mappings that were weighed and have gone before they were looked into: chunks that a compiler at work maps and
//! unmaps within milliseconds. Nothing can be read of such a chunk, so it seems to have no owner.

use super::ledger::Account;
use crate::kernel::mapping::Mapping;
use crate::observe::smaps::Smaps;

/// Unexplained bytes in mappings that are no longer as they were weighed; `now` are the mappings after the look.
pub fn gone(account: &Account, weighed: &Smaps, now: &[Mapping]) -> u64 {
    let stands = |mapping: &Mapping| {
        let at = now.partition_point(|other| other.start < mapping.start);
        now.get(at).is_some_and(|other| (other.start, other.end) == (mapping.start, mapping.end))
    };
    let changed = |index: usize| weighed.mappings.get(index).is_some_and(|weighed| !stands(&weighed.mapping));
    let remainders = account.remainders.iter().filter(|remainder| changed(remainder.index));
    remainders.map(|remainder| remainder.rss).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Remainder;
    use crate::kernel::mapping::parse;

    const MAPS: &str = "1000-3000 rw-p 0 00:00 0\n5000-9000 rw-p 0 00:00 0\n";

    #[test]
    fn what_still_stands_is_not_gone() {
        let weighed = Smaps::parse(&MAPS.replace("00:00 0\n", "00:00 0\nRss: 4 kB\n"));
        let remainder = |index, start, rss| Remainder { start, end: start + rss, index, rss };
        let remainders = vec![remainder(0, 0x1000, 4096), remainder(1, 0x5000, 8192)];
        let account = Account { remainders, ..Account::default() };
        assert_eq!(gone(&account, &weighed, &parse(MAPS)), 0);
        assert_eq!(gone(&account, &weighed, &parse(&MAPS.replace("9000", "8000"))), 8192);
        assert_eq!(gone(&account, &weighed, &[]), 4096 + 8192);
    }
}
