//! The charge of a memory cgroup by owner: anonymous memory by process, in-memory files by location, page cache, and
//! kernel memory. The limit applies to this charge, not to RSS. Sources: `memory.stat` (kernel `cgroup-v2.rst`,
//! `cgroup-v1/memory.rst`), `/proc/PID/smaps_rollup` (man proc_pid_smaps), `/proc/PID/fd`.
//!
//! The rows add up to the charge. Each kind ends with a row for the bytes without a known owner. The row is negative
//! if processes hold pages charged to another cgroup: the kernel charges a page to whoever touches it first.

use super::cgroup::{CgroupMemory, MemoryCgroup};
use super::memory_files::{self, OpenFiles};
use super::open_files::{self, CachedFileRecord};
use super::procfs::Process;
use crate::kernel::charge::{Charge, KernelParts};
use crate::kernel::process::Stat;
use crate::kernel::slab::{self, Slab};
use crate::kernel::text::{self, keyed, size};
use loadline_base::clock::Clock;
use loadline_base::order::Order as _;
use loadline_base::units::Bytes;
use serde::{Deserialize, Serialize};

const PROCESSES_MAX: usize = 2_000;
/// Number of processes, largest first, whose shared pages are divided among sharers; this takes 1 ms per 40 MiB.
const ROLLUPS_MAX: usize = 256;
const ROLLUP_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of files listed from the page cache.
const CACHED_FILES_MAX: usize = 20;
/// Maximum number of kernel object caches listed, largest first.
const SLABS_MAX: usize = 8;
/// Below this much kernel memory, the machine-wide caches are not read.
const KERNEL_BYTES_MIN: u64 = 8 << 20;
/// Characters of a command line that are kept.
const COMMAND_CHARS: usize = 60;

/// The row of the kernel's stacks for threads.
pub const THREAD_STACKS: &str = "thread stacks";
/// The row of socket buffers.
pub const SOCKET_BUFFERS: &str = "socket buffers";
/// The row of page cache that is not inactive.
pub const ACTIVE: &str = "active";
/// The name for Loadline and the processes that started it.
const OWN: &str = "loadline and its parents";

/// Kinds of charged memory, in row order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChargeKind {
    /// Anonymous pages: heaps, malloc, stacks.
    #[default]
    Anonymous,
    /// In-memory files (tmpfs, `/dev/shm`, memfd) and shared memory.
    MemoryFiles,
    /// Pages of on-disk files.
    PageCache,
    /// Page tables, kernel stacks, file names, socket buffers.
    Kernel,
    /// Memory that `memory.stat` does not list: pages charged in advance for each CPU (32 or 64 pages, Linux 4.0 to
    /// 6.18), and changes since its last update.
    Rest,
}

/// Memory charged to a cgroup, by owner.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChargeRow {
    /// The kind of memory.
    pub kind: ChargeKind,
    /// Command of a process, mount point of in-memory files, or part of the page cache or kernel memory.
    pub owner: String,
    /// Size; negative if processes hold pages that are charged to another cgroup.
    pub bytes: i64,
    /// Whether the kernel reclaims it before an OOM kill.
    pub reclaimable: bool,
    /// Process that holds it; absent in other rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Number of open in-memory files.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub files: u64,
    /// Number of these files that are deleted but still open.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deleted: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The owners of a charge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owners {
    /// The rows, which add up to the charge.
    pub rows: Vec<ChargeRow>,
    /// Number of processes that could not be read.
    pub unread: usize,
    /// The largest files on disk in the page cache that the processes have open or mapped; another cgroup may be
    /// charged for them.
    pub cached_files: Vec<CachedFileRecord>,
    /// The machine's largest caches of kernel objects, if the kernel does not report those of the cgroup.
    pub machine_slabs: Vec<SlabRecord>,
}

/// A kernel slab cache.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SlabRecord {
    /// Name, such as `dentry`.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// The owners of a charge that was just read.
pub fn owners(cgroup: &MemoryCgroup, memory: &CgroupMemory, clock: &Clock) -> Owners {
    let pids = cgroup.pids();
    let processes: Vec<Process> = pids.iter().take(PROCESSES_MAX).filter_map(|pid| cgroup.process(*pid).ok()).collect();
    let (anonymous, refused) = anonymous(&processes, clock);
    let unread = refused + pids.len() - processes.len();
    let open = OpenFiles::of_each(&processes);
    let slabs = slab::parse(&cgroup.cgroup().text("memory.kmem.slabinfo").unwrap_or_default());
    let asks = slabs.is_empty() && memory.charge.kernel.is_some_and(|bytes| bytes.0 >= KERNEL_BYTES_MIN);
    let machine = asks.then(|| text::read("/proc/slabinfo").ok()).flatten().unwrap_or_default();
    let record = |slab: Slab| SlabRecord { name: slab.name, bytes: slab.bytes.0 };
    Owners {
        rows: rows_of(memory.usage, &memory.charge, anonymous, memory_files(&open), &slabs),
        unread,
        cached_files: open_files::cached(&open, clock, CACHED_FILES_MAX),
        machine_slabs: slab::parse(&machine).into_iter().take(SLABS_MAX).map(record).collect(),
    }
}

/// Anonymous memory of the cgroup's processes except `than`, from each process's counters, so shared pages count once
/// per process. For a sampler.
pub fn others(cgroup: &MemoryCgroup, than: u32, clock: &Clock) -> Vec<ChargeRow> {
    let pids = cgroup.pids().into_iter().filter(|pid| *pid != than).take(PROCESSES_MAX);
    let own = own_line();
    let row = |pid: u32| {
        let process = cgroup.process(pid).ok()?;
        let bytes = process.status(clock).ok()?.value.rss_anon.signed();
        (bytes > 0).then(|| ChargeRow { owner: named(&process, &own), bytes, pid: Some(pid), ..ChargeRow::default() })
    };
    pids.filter_map(row).collect()
}

/// Merges processes with the same command into one row with their count, largest first; keeps other rows.
pub fn by_command(rows: &[ChargeRow]) -> Vec<(ChargeRow, u64)> {
    let mut sums: Vec<(ChargeRow, u64)> = Vec::new();
    for row in rows {
        let same = |(of, _): &&mut (ChargeRow, u64)| row.pid.is_some() && of.pid.is_some() && of.owner == row.owner;
        match sums.iter_mut().find(same) {
            Some((of, processes)) => {
                of.bytes += row.bytes;
                *processes += 1;
            }
            None => sums.push((row.clone(), 1)),
        }
    }
    sums.largest_first(|(row, _)| row.bytes.unsigned_abs());
    sums
}

/// The rows of a charge, from the rows of its processes and their files, and its caches of kernel objects.
pub fn rows_of(
    usage: Bytes,
    charge: &Charge,
    anonymous: Vec<ChargeRow>,
    files: Vec<ChargeRow>,
    slabs: &[Slab],
) -> Vec<ChargeRow> {
    use ChargeKind::{Anonymous, Kernel, MemoryFiles, PageCache, Rest};
    let mut rows = closed(Anonymous, charge.anon, anonymous, "no process found");
    rows.extend(closed(MemoryFiles, charge.shmem, files, "shared memory, and files not open"));
    rows.extend(closed(PageCache, charge.file, page_cache(charge), ACTIVE));
    let kernel = charge.kernel.unwrap_or_default();
    let parts = charge.kernel_parts.map_or_else(|| slab_rows(slabs), kernel_rows);
    let others = match (charge.kernel_parts, slabs) {
        (Some(_), _) => "others",
        (None, []) => "stacks, page tables, slab",
        (None, _) => "stacks, page tables, others",
    };
    rows.extend(closed(Kernel, kernel, parts, others));
    let listed = rows.iter().map(|row| row.bytes).sum();
    rows.extend(closing(Rest, usage, listed, "not listed by the kernel"));
    rows
}

/// The rows of a kind, largest first, plus one that completes the sum.
fn closed(kind: ChargeKind, sum: Bytes, mut rows: Vec<ChargeRow>, others: &str) -> Vec<ChargeRow> {
    rows.retain(|row| row.bytes != 0);
    rows.largest_first(|row| row.bytes);
    let listed = rows.iter().map(|row| row.bytes).sum();
    rows.extend(closing(kind, sum, listed, others));
    rows
}

fn closing(kind: ChargeKind, sum: Bytes, listed: i64, owner: &str) -> Option<ChargeRow> {
    let bytes = sum.signed().saturating_sub(listed);
    let reclaimable = kind == ChargeKind::PageCache;
    (bytes != 0).then(|| ChargeRow { kind, owner: owner.to_owned(), bytes, reclaimable, ..ChargeRow::default() })
}

/// Anonymous memory by process, and the number of processes that could not be read.
fn anonymous(processes: &[Process], clock: &Clock) -> (Vec<ChargeRow>, usize) {
    let resident = |process: &Process| process.statm(clock).map_or(0, |statm| statm.value.resident.0);
    let mut all: Vec<(&Process, u64)> = processes.iter().map(|process| (process, resident(process))).collect();
    all.largest_first(|(_, resident)| *resident);
    let own = own_line();
    let row = |(place, (process, resident)): (usize, &(&Process, u64))| {
        let shared = (place < ROLLUPS_MAX).then(|| own_share(process)).flatten();
        let bytes = shared.or_else(|| Some(process.status(clock).ok()?.value.rss_anon))?;
        let pid = Some(process.pid());
        (*resident > 0).then(|| ChargeRow {
            owner: named(process, &own),
            bytes: bytes.signed(),
            pid,
            ..ChargeRow::default()
        })
    };
    let rows: Vec<ChargeRow> = all.iter().enumerate().filter_map(row).collect();
    let living = all.iter().filter(|(_, resident)| *resident > 0).count();
    let unread = living - rows.len();
    (rows, unread)
}

/// The anonymous memory of a process, with shared pages divided among the sharers. `Pss_Anon` exists since Linux 5.4.
fn own_share(process: &Process) -> Option<Bytes> {
    let rollup = process.text_below("smaps_rollup", ROLLUP_BYTES_MAX).ok()?;
    size(keyed(&rollup, "Pss_Anon").or_else(|| keyed(&rollup, "Anonymous"))?)
}

/// Loadline and the processes that started it, such as a shell. If they share a cgroup with a server, they do not
/// belong to the server. A process whose parent ended becomes a child of the init process, which may be the server.
fn own_line() -> Vec<u32> {
    let parent = |pid: &u32| Stat::of(*pid).map(|stat| stat.parent).filter(|parent| *parent > 1);
    std::iter::successors(Some(std::process::id()), parent).collect()
}

/// The name of a process in a charge: one common name for all of `own`, otherwise its command.
fn named(process: &Process, own: &[u32]) -> String {
    match own.contains(&process.pid()) && !process.is_copied() {
        true => OWN.to_owned(),
        false => command(process),
    }
}

/// The beginning of a command line without its program's directory: `tail -c 41943040`.
fn command(process: &Process) -> String {
    let words = process.cmdline_start().unwrap_or_default();
    let Some((program, arguments)) = words.split_first() else { return "?".to_owned() };
    let program = program.rsplit('/').next().unwrap_or(program);
    let line = std::iter::once(program).chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(COMMAND_CHARS).collect()
}

/// In-memory files that the processes have open, by location.
fn memory_files(open: &[OpenFiles<'_>]) -> Vec<ChargeRow> {
    let found = memory_files::of_all(open);
    let row = |of: memory_files::MemoryFilesRecord| ChargeRow {
        kind: ChargeKind::MemoryFiles,
        owner: of.place,
        bytes: Bytes(of.bytes).signed(),
        files: of.files,
        deleted: of.deleted,
        ..ChargeRow::default()
    };
    found.into_iter().map(row).collect()
}

/// The inactive page cache.
fn page_cache(charge: &Charge) -> Vec<ChargeRow> {
    let inactive = charge.file_inactive.min(charge.file);
    vec![ChargeRow {
        kind: ChargeKind::PageCache,
        owner: "inactive".to_owned(),
        bytes: inactive.signed(),
        reclaimable: true,
        ..ChargeRow::default()
    }]
}

/// Caches of kernel objects, in separate rows if cgroup v1 reports them.
fn slab_rows(slabs: &[Slab]) -> Vec<ChargeRow> {
    let row = |slab: &Slab| ChargeRow {
        kind: ChargeKind::Kernel,
        owner: format!("{} (slab)", slab.name),
        bytes: slab.bytes.signed(),
        reclaimable: slab.is_reclaimable(),
        ..ChargeRow::default()
    };
    slabs.iter().take(SLABS_MAX).map(row).collect()
}

fn kernel_rows(parts: KernelParts) -> Vec<ChargeRow> {
    let named = [
        ("file names and inodes", parts.slab_reclaimable, true),
        ("other objects (slab)", parts.slab_unreclaimable, false),
        ("page tables", parts.page_tables, false),
        (THREAD_STACKS, parts.stacks, false),
        (SOCKET_BUFFERS, parts.sockets, false),
        ("per-CPU data", parts.per_cpu, false),
        ("large allocations (vmalloc)", parts.vmalloc, false),
    ];
    let row = |(owner, bytes, reclaimable): (&str, Bytes, bool)| ChargeRow {
        kind: ChargeKind::Kernel,
        owner: owner.to_owned(),
        bytes: bytes.signed(),
        reclaimable,
        ..ChargeRow::default()
    };
    named.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cgroup::CgroupVersion;

    fn process(owner: &str, mib: i64) -> ChargeRow {
        ChargeRow { owner: owner.to_owned(), bytes: mib << 20, pid: Some(7), ..ChargeRow::default() }
    }

    #[test]
    fn rows_always_add_up_to_the_charge() {
        let text = "anon 209715200\nfile 104857600\nshmem 20971520\ninactive_file 62914560\nkernel 8388608\n\
            kernel_stack 1048576\npagetables 2097152\nslab_reclaimable 3145728\nsock 524288\n";
        let charge = Charge::parse(text, CgroupVersion::V2).unwrap();
        for (held, usage_mib) in [(150, 310), (260, 300), (0, 2)] {
            let usage = Bytes::mib(usage_mib);
            let rows = rows_of(usage, &charge, vec![process("java", held), process("tail", 3)], Vec::new(), &[]);
            assert_eq!(rows.iter().map(|row| row.bytes).sum::<i64>(), usage.signed(), "{held} {usage_mib}");
            let unowned = rows.iter().find(|row| row.owner.starts_with("no process")).map(|row| row.bytes >> 20);
            assert_eq!(unowned, Some(200 - held - 3));
            let kept: i64 = rows.iter().filter(|row| row.reclaimable).map(|row| row.bytes >> 20).sum();
            assert_eq!(kept, 80 + 3, "page cache and dentries are reclaimable");
        }
    }

    #[test]
    fn kernel_memory_without_parts_has_one_row() {
        let charge = Charge { kernel: Some(Bytes::mib(3)), ..Charge::default() };
        let of = |slabs: &[Slab]| {
            let rows = rows_of(Bytes::mib(3), &charge, Vec::new(), Vec::new(), slabs);
            rows.into_iter().map(|row| (row.owner, row.bytes >> 20, row.reclaimable)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[]), [("stacks, page tables, slab".to_owned(), 3, false)]);
        let slabs = [Slab { name: "dentry".to_owned(), bytes: Bytes::mib(2) }];
        let expected = [("dentry (slab)".to_owned(), 2, true), ("stacks, page tables, others".to_owned(), 1, false)];
        assert_eq!(of(&slabs), expected);
    }

    #[test]
    fn a_real_cgroup_adds_up() {
        let own = Process::open(std::process::id()).unwrap();
        let Ok(cgroup) = MemoryCgroup::of(&own) else { return };
        let clock = Clock::start();
        let Ok(memory) = cgroup.read(&clock) else { return };
        let rows = owners(&cgroup, &memory.value, &clock).rows;
        assert_eq!(rows.iter().map(|row| row.bytes).sum::<i64>(), memory.value.usage.signed(), "{rows:?}");
        let own = rows.iter().find(|row| row.pid == Some(std::process::id()));
        assert_eq!(own.map(|row| row.owner.as_str()), Some(OWN), "{rows:?}");
    }
}
