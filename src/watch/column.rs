//! The contents of a sample: one table of columns, from which the history, the verdicts and the metrics take theirs.

/// Makes [`Column`] of a table of columns and their units.
macro_rules! columns {
    ($($(#[$doc:meta])+ $name:ident: $unit:ident,)+) => {
        /// One thing that is sampled. The order is that of the history's files: new ones go to the end.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Column {
            $($(#[$doc])+ $name,)+
        }

        impl Column {
            /// All of them, in the order of the files.
            pub const ALL: [Self; COLUMNS] = [$(Self::$name,)+];

            /// In what it counts.
            pub fn unit(self) -> Unit {
                match self {
                    $(Self::$name => Unit::$unit,)+
                }
            }
        }
    };
}

columns! {
    /// Resident anonymous memory.
    RssAnon: Bytes,
    /// Resident pages of files.
    RssFile: Bytes,
    /// Resident pages of shared memory, of which ZGC makes its heap.
    RssShmem: Bytes,
    /// Memory in swap.
    Swap: Bytes,
    /// Java heap in use, as of the last collection.
    HeapUsed: Bytes,
    /// Java heap promised.
    HeapCommitted: Bytes,
    /// The least Java heap in use since the last collection of the old generation.
    HeapFloor: Bytes,
    /// The size that the heap may grow to.
    HeapMax: Bytes,
    /// Metaspace in use, with the class space.
    MetaspaceUsed: Bytes,
    /// Metaspace promised, with the class space.
    MetaspaceCommitted: Bytes,
    /// Direct memory.
    Direct: Bytes,
    /// Threads.
    Threads: Count,
    /// Classes loaded.
    Classes: Count,
    /// Charged to the cgroup.
    Charge: Bytes,
    /// Anonymous and shared memory in the charge; only where the cgroup, or one above it, has a limit.
    ChargeAnon: Bytes,
    /// Kernel memory in the charge.
    ChargeKernel: Bytes,
    /// The smallest limit on the path, or the machine's memory.
    Limit: Bytes,
    /// Collections of the old generation.
    OldCollections: Total,
    /// Time in collections.
    GcTime: TotalMs,
    /// CPU time.
    CpuTime: TotalMs,
    /// Bytes allocated in the heap.
    Allocated: TotalMib,
    /// Charges that met the limit.
    AtLimit: Total,
    /// Processes of the cgroup that were killed for want of memory.
    OomKills: Total,
}

/// How many columns there are.
pub(super) const COLUMNS: usize = 23;

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
    /// Whether it only rises, so that its most is its last.
    pub fn only_rises(self) -> bool {
        matches!(self.unit(), Unit::Total | Unit::TotalMs | Unit::TotalMib)
    }
}
