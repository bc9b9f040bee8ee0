//! Thread pools over a trial's marks: which of them worked and allocated, and how much.

use super::cells::{beginning, kib, mib};
use crate::record::{Mark, ThreadPoolRecord, Trial, pool_names};
use crate::table::Table;
use crate::units::grouped;
use crate::words::dash;
use loadline_base::order::Order as _;
use std::collections::BTreeMap;

const POOLS_MAX: usize = 40;
/// Room in characters for names next to numbers.
const NAME_MAX: usize = 30;

const ENDED: &str = "The table leaves out threads that have exited.";

#[derive(Debug, Default)]
struct Pair<'a> {
    names: Vec<&'a str>,
    from: ThreadPoolRecord,
    to: ThreadPoolRecord,
}

impl Pair<'_> {
    /// Bytes allocated by the pool between the marks; `None` if unknown, or if ended threads had allocated more.
    fn allocated(&self) -> Option<u64> {
        self.to.allocated_bytes?.checked_sub(self.from.allocated_bytes.unwrap_or(0))
    }

    /// `exec-*` if one mark has `exec-1` and the other `exec-*`.
    fn name(&self, pool: &str) -> String {
        let with_any = self.names.iter().find(|name| name.contains('*'));
        with_any.filter(|_| !pool.contains('*')).map_or_else(|| pool.to_owned(), |name| (*name).to_owned())
    }
}

/// Threads by pool for the last two adjacent marks with a lot of allocation between them; `None` if no marks show it.
pub(crate) fn of_trial(trial: &Trial) -> Option<Table> {
    let spans = trial.marks.windows(2).filter_map(|span| {
        let (from, to) = (&span[0], &span[1]);
        let pairs = pairs(from, to);
        let allocated = pairs.values().filter_map(Pair::allocated).reduce(u64::saturating_add)?;
        Some((allocated, pairs, from, to))
    });
    let spans: Vec<_> = spans.collect();
    let most = spans.iter().map(|(allocated, ..)| *allocated).max()?;
    // A warm-up does the same work for just as long, and its first requests allocate more.
    let (_, pairs, from, to) = spans.into_iter().rfind(|(allocated, ..)| *allocated >= most / 2)?;
    let mut pairs: Vec<(String, Pair<'_>)> = pairs.into_iter().filter(|(_, pair)| pair.to.threads > 0).collect();
    pairs.order_by(|(_, one), (_, other)| {
        other.allocated().cmp(&one.allocated()).then(other.to.cpu_s.total_cmp(&one.to.cpu_s))
    });
    let row = |(pool, pair): &(String, Pair<'_>)| {
        row(&pair.name(pool), &pair.to, pair.to.cpu_s - pair.from.cpu_s, pair.allocated())
    };
    let title = format!("Threads by pool, from {} to {}", from.name, to.name);
    Some(table(&title, pairs.iter().map(row).collect(), ENDED.to_owned()))
}

/// A pool's row: threads and stacks, CPU time, and allocation.
pub(super) fn row(name: &str, pool: &ThreadPoolRecord, cpu_s: f64, allocated: Option<u64>) -> Vec<String> {
    let cpu = if cpu_s >= 0.0 { format!("{cpu_s:.2}") } else { dash() };
    vec![beginning(name, NAME_MAX), grouped(pool.threads), kib(pool.stack_bytes), cpu, mib(allocated)]
}

pub(super) fn table(title: &str, rows: Vec<Vec<String>>, note: String) -> Table {
    let left = rows.len().saturating_sub(POOLS_MAX);
    let more = (left > 0).then(|| format!("and {left} more pools (--json)"));
    let head = ["pool", "threads", "stacks KiB", "CPU s", "allocated MiB"];
    Table::new(title, head, rows.into_iter().take(POOLS_MAX)).noted(more.into_iter().chain([note]))
}

/// Matches two marks' pools by name, which can change with the number of members.
fn pairs<'a>(from: &'a Mark, to: &'a Mark) -> BTreeMap<String, Pair<'a>> {
    let plain = |name: &str| name.replace('*', "0");
    let names: Vec<String> = from.pools.iter().chain(&to.pools).map(|pool| plain(&pool.name)).collect();
    let pool_of = pool_names(names.iter().map(String::as_str));
    let mut pairs: BTreeMap<String, Pair<'a>> = BTreeMap::new();
    for (mark, is_later) in [(from, false), (to, true)] {
        for pool in &mark.pools {
            let Some(name) = pool_of.get(plain(&pool.name).as_str()) else { continue };
            let pair = pairs.entry(name.clone()).or_default();
            pair.names.push(&pool.name);
            let at = if is_later { &mut pair.to } else { &mut pair.from };
            at.add(pool);
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(name: &str, pools: &[(&str, u64, f64, Option<u64>)]) -> Mark {
        let pool = |(name, threads, cpu_s, mib): &(&str, u64, f64, Option<u64>)| ThreadPoolRecord {
            name: (*name).to_owned(),
            threads: *threads,
            stack_bytes: threads << 15,
            cpu_s: *cpu_s,
            allocated_bytes: mib.map(|mib| mib << 20),
        };
        Mark { name: name.to_owned(), pools: pools.iter().map(pool).collect(), ..Mark::default() }
    }

    #[test]
    fn pools_are_matched_despite_earlier_names() {
        let (main, http) = (("main", 1, 0.5, Some(5)), ("http-8080-*", 2, 1.0, Some(9)));
        let later = ("http-8080-*", 2, 1.25, Some(7));
        let marks = vec![
            mark("start", &[("main", 1, 0.1, Some(1)), ("exec-1", 1, 0.0, Some(0)), ("init", 1, 0.0, Some(0))]),
            mark("warm", &[("exec-1", 1, 1.0, Some(100)), http, main, ("init", 1, 1.0, Some(1000))]),
            mark("loaded", &[("exec-*", 8, 9.0, Some(900)), later, main, ("VM Thread", 1, 0.25, None)]),
            mark("rested", &[("exec-*", 8, 9.0, Some(901))]),
        ];
        let table = of_trial(&Trial { marks, ..Trial::default() }).unwrap();
        assert_eq!(table.title, "Threads by pool, from warm to loaded");
        let expected = [
            ["exec-*", "8", "256", "8.00", "800.0"],
            ["main", "1", "32", "0.00", "0.0"],
            ["http-8080-*", "2", "64", "0.25", "-"],
            ["VM Thread", "1", "32", "0.25", "-"],
        ];
        assert_eq!(table.rows, expected);
        let unknown = vec![mark("warm", &[("main", 1, 0.5, None)]), mark("loaded", &[("main", 1, 0.5, None)])];
        assert!(of_trial(&Trial { marks: unknown, ..Trial::default() }).is_none());
        assert!(of_trial(&Trial::default()).is_none());
    }
}
