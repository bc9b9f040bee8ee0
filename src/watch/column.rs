//! The contents of a sample: one table of columns, from which the history, the verdicts and the metrics take theirs.

/// One thing that is sampled. The order is that of the history's files: new ones go to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Column {
    /// Resident anonymous memory.
    RssAnon,
    /// Resident pages of files.
    RssFile,
    /// Resident pages of shared memory, of which ZGC makes its heap.
    RssShmem,
    /// Memory in swap.
    Swap,
    /// Java heap in use, as of the last collection.
    HeapUsed,
    /// Java heap promised.
    HeapCommitted,
    /// The least Java heap in use since the last collection of the old generation.
    HeapFloor,
    /// The size that the heap may grow to.
    HeapMax,
    /// Metaspace in use, with the class space.
    MetaspaceUsed,
    /// Metaspace promised, with the class space.
    MetaspaceCommitted,
    /// Direct memory.
    Direct,
    /// Threads.
    Threads,
    /// Classes loaded.
    Classes,
    /// Charged to the cgroup.
    Charge,
    /// Anonymous and shared memory in the charge; only where the cgroup, or one above it, has a limit.
    ChargeAnon,
    /// Kernel memory in the charge.
    ChargeKernel,
    /// The smallest limit on the path, or the machine's memory.
    Limit,
    /// Collections of the old generation.
    OldCollections,
    /// Time in collections.
    GcTime,
    /// CPU time.
    CpuTime,
    /// Bytes allocated in the heap.
    Allocated,
    /// Charges that met the limit.
    AtLimit,
    /// Processes of the cgroup that were killed for want of memory.
    OomKills,
}

/// In what a column counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Kept in KiB.
    Bytes,
    /// A number that may fall.
    Count,
    /// A number that only rises.
    Total,
    /// Milliseconds that only rise; kept in hundredths of a second, which last for 497 days.
    TotalMs,
    /// MiB that only rise.
    TotalMib,
}

impl Column {
    /// All of them, in the order of the files.
    pub const ALL: [Self; COLUMNS] = [
        Self::RssAnon,
        Self::RssFile,
        Self::RssShmem,
        Self::Swap,
        Self::HeapUsed,
        Self::HeapCommitted,
        Self::HeapFloor,
        Self::HeapMax,
        Self::MetaspaceUsed,
        Self::MetaspaceCommitted,
        Self::Direct,
        Self::Threads,
        Self::Classes,
        Self::Charge,
        Self::ChargeAnon,
        Self::ChargeKernel,
        Self::Limit,
        Self::OldCollections,
        Self::GcTime,
        Self::CpuTime,
        Self::Allocated,
        Self::AtLimit,
        Self::OomKills,
    ];

    /// In what it counts.
    pub fn unit(self) -> Unit {
        match self {
            Self::Threads | Self::Classes => Unit::Count,
            Self::OldCollections | Self::AtLimit | Self::OomKills => Unit::Total,
            Self::GcTime | Self::CpuTime => Unit::TotalMs,
            Self::Allocated => Unit::TotalMib,
            _ => Unit::Bytes,
        }
    }
}

impl Column {
    /// Whether it only rises, so that its most is its last.
    pub fn only_rises(self) -> bool {
        matches!(self.unit(), Unit::Total | Unit::TotalMs | Unit::TotalMib)
    }
}

/// How many columns there are.
pub(super) const COLUMNS: usize = 23;
