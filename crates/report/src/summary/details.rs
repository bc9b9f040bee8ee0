//! An account's details on demand: threads, files, NMT tags, mappings.

use super::cells::{beginning, end, kib, sum};
use super::{flags, inside, loaders};
use crate::owner::{Owner, is_heap, label};
use crate::page::Part;
use crate::record::{AccountDocument, AccountRecord, DetailRecord, OwnerRecord, RegionRecord, RemainderRecord};
use crate::table::Table;
use crate::units::grouped;
use crate::words::dash;
use loadline_base::order::Order as _;

/// A kind of part that an account can be split by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Detail {
    /// Stacks, CPU time, and allocated bytes, by thread.
    Thread,
    /// Mapped files and libraries by file.
    File,
    /// Chunks of malloc by NMT tag.
    Tag,
    /// Mappings by address.
    Region,
    /// Metaspace and class space by the type of class loader.
    Loader,
    /// The code cache by segment.
    Code,
    /// Threads by pool.
    Pool,
    /// Flags that are not at their default.
    Flag,
}

const NMT_OFF: &str = "NMT is off: start the JVM with -XX:NativeMemoryTracking=summary to see malloc by tag.";
/// Rows of threads, files, and tags.
const ROWS_MAX: usize = 40;
/// Ranges of unexplained memory.
const REMAINDERS_MAX: usize = 10;
/// Room in characters for words next to addresses, and for names next to numbers.
const WORDS_MAX: usize = 36;
const NAME_MAX: usize = 48;

/// The table of a kind of detail, or why it is missing.
pub(super) fn details(account: &AccountRecord, document: &AccountDocument, detail: Detail) -> Part {
    let mark = &document.mark;
    let (found, title, none) = match detail {
        Detail::Thread => match account.threads.as_deref() {
            Some(listed @ [_, ..]) => return inside::threads(listed),
            _ => (threads(account), "stacks by thread", "No thread could be identified."),
        },
        Detail::File => (files(account), "files", "No file could be identified."),
        Detail::Tag => {
            let why = match &account.malloc {
                Some(malloc) if malloc.tagged => "No malloc chunk has a tag.",
                Some(_) if mark.nmt.is_some() => "NMT is on, but its headers were not found in malloc's chunks.",
                Some(_) => NMT_OFF,
                None if document.bundle.is_some() => {
                    "A bundle does not contain malloc's chunks, which carry the \
                     tags."
                }
                None => "malloc's heaps could not be read, and only their chunks have tags.",
            };
            let tagged = account.malloc.as_ref().is_some_and(|malloc| malloc.tagged);
            (if tagged { tags(account) } else { Table::default() }, "malloc by NMT tag", why)
        }
        Detail::Code => return inside::code(mark),
        Detail::Pool => return inside::pools(mark),
        Detail::Flag => return flags::table(document),
        Detail::Loader => return loaders::by_type(mark),
        Detail::Region => {
            let found = regions(account.regions.as_deref().unwrap_or_default());
            (found, "mappings by address", "The mappings are not in this document.")
        }
    };
    Part::Table(found).filled().unwrap_or_else(|| Part::under(title, [Part::Text(none.to_owned())]))
}

/// A kind's details with their owners, largest first.
fn of_kind<'a>(account: &'a AccountRecord, kind: &str) -> Vec<(&'a OwnerRecord, &'a DetailRecord)> {
    let all = account.owners.iter().flat_map(|owner| owner.detail.iter().map(move |detail| (owner, detail)));
    let mut found: Vec<_> = all.filter(|(_, detail)| detail.kind == kind).collect();
    found.largest_first(|(_, detail)| detail.rss_bytes);
    found
}

/// The first rows, and a note about the others' memory.
fn listing(
    title: &str,
    head: &[&str],
    found: &[(&OwnerRecord, &DetailRecord)],
    row: impl Fn(&OwnerRecord, &DetailRecord) -> Vec<String>,
) -> Table {
    let (shown, left) = found.split_at(found.len().min(ROWS_MAX));
    let rest = sum(left.iter().map(|(_, detail)| detail.rss_bytes));
    let note = format!("and {} more, {} KiB in total (--json)", left.len(), kib(rest));
    let rows = shown.iter().map(|(owner, detail)| row(owner, detail));
    Table::new(title, head.iter().copied(), rows).noted((!left.is_empty()).then_some(note))
}

/// Stacks by name, for documents without a list of threads.
fn threads(account: &AccountRecord) -> Table {
    let row = |_: &OwnerRecord, detail: &DetailRecord| {
        vec![beginning(&detail.name, NAME_MAX), grouped(detail.count), kib(detail.rss_bytes)]
    };
    listing("stacks by thread, resident KiB", &["thread", "count", "RSS"], &of_kind(account, "thread"), row)
}

fn files(account: &AccountRecord) -> Table {
    let row = |owner: &OwnerRecord, detail: &DetailRecord| {
        vec![end(&detail.name, NAME_MAX), kib(detail.rss_bytes), label(&owner.name).to_owned()]
    };
    let table = listing("files, resident KiB", &["file", "RSS", "owner"], &of_kind(account, "file"), row);
    Table { words: 1, ..table }
}

fn tags(account: &AccountRecord) -> Table {
    let row = |_: &OwnerRecord, detail: &DetailRecord| {
        let allocated = detail.allocated_bytes.map_or_else(dash, kib);
        vec![beginning(&detail.name, NAME_MAX), grouped(detail.count), allocated, kib(detail.rss_bytes)]
    };
    let head = ["tag", "chunks", "allocated", "resident"];
    listing("malloc by NMT tag, KiB", &head, &of_kind(account, "tag"), row)
}

/// All regions, because users who want addresses look for a specific one.
fn regions(regions: &[RegionRecord]) -> Table {
    let row = |region: &RegionRecord| {
        let name = |name: &'_ str| label(if is_heap(name) { Owner::JavaHeap.name() } else { name }).to_owned();
        let mut owners: Vec<String> = region.owners.iter().map(|share| name(&share.name)).collect();
        owners.dedup();
        let file = region.path.rsplit('/').next().filter(|file| !file.is_empty());
        let file = file.map_or(String::new(), |file| format!(" ({file})"));
        let what = beginning(&format!("{}{file}", owners.join(" + ")), WORDS_MAX);
        vec![range(&region.start, &region.end), region.perms.clone(), kib(region.rss_bytes), what]
    };
    let head = ["address", "perms", "RSS", "owners"];
    Table::new("mappings by address, resident KiB", head, regions.iter().map(row)).worded(1, 1)
}

/// The unexplained pages by address, if any.
pub(super) fn remainders(account: &AccountRecord) -> Option<Table> {
    let (shown, left) = account.unexplained.split_at(account.unexplained.len().min(REMAINDERS_MAX));
    let row = |found: &RemainderRecord| {
        let neighbours = format!("{} and {}", label(&found.before), label(&found.behind));
        let neighbours = beginning(&neighbours, WORDS_MAX);
        vec![range(&found.start, &found.end), found.perms.clone(), kib(found.rss_bytes), neighbours]
    };
    let rest = sum(left.iter().map(|found| found.rss_bytes));
    let note = format!("and {} more, {} KiB in total (--json)", left.len(), kib(rest));
    let head = ["address", "perms", "RSS", "between"];
    let table = Table::new("unexplained by address, resident KiB", head, shown.iter().map(row)).worded(1, 1);
    table.noted((!left.is_empty()).then_some(note)).filled()
}

/// An address range in the format of `/proc/PID/maps`.
fn range(start: &str, end: &str) -> String {
    let plain = |address: &str| address.trim_start_matches("0x").to_owned();
    format!("{}-{}", plain(start), plain(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_least_informative_end() {
        assert_eq!(beginning("abcdefgh", 6), "abc...");
        assert_eq!(end("/usr/lib/a.so", 8), ".../a.so");
    }
}
