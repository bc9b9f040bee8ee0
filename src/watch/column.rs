//! The contents of a sample: one table of columns, which history, verdicts, and metrics share.

/// Generates [`Column`] from a table of columns and units.
macro_rules! columns {
    ($($(#[$doc:meta])+ $name:ident: $unit:ident,)+) => {
        /// A sampled quantity. The order is that of the history files, so new ones are appended.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Column {
            $($(#[$doc])+ $name,)+
        }

        impl Column {
            /// All columns in file order.
            pub const ALL: [Self; COLUMNS] = [$(Self::$name,)+];

            /// Its unit.
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
    /// Resident file pages.
    RssFile: Bytes,
    /// Resident shared memory, which includes ZGC's heap.
    RssShmem: Bytes,
    /// Memory in swap.
    Swap: Bytes,
    /// Java heap in use after the last collection.
    HeapUsed: Bytes,
    /// Java heap committed.
    HeapCommitted: Bytes,
    /// The minimum Java heap in use since the last old collection.
    HeapFloor: Bytes,
    /// The maximum size of the heap.
    HeapMax: Bytes,
    /// Metaspace in use, including class space.
    MetaspaceUsed: Bytes,
    /// Metaspace committed, including class space.
    MetaspaceCommitted: Bytes,
    /// Direct memory.
    Direct: Bytes,
    /// Threads.
    Threads: Count,
    /// Classes loaded.
    Classes: Count,
    /// Charge of the cgroup.
    Charge: Bytes,
    /// Anonymous and shared memory in the charge; only if the cgroup or an ancestor has a limit.
    ChargeAnon: Bytes,
    /// Kernel memory in the charge.
    ChargeKernel: Bytes,
    /// The smallest limit of its cgroup and those above it, or the machine's memory.
    Limit: Bytes,
    /// Old collections.
    OldCollections: Total,
    /// Time spent in GC.
    GcTime: TotalMs,
    /// CPU time.
    CpuTime: TotalMs,
    /// Bytes allocated in the heap.
    Allocated: TotalMib,
    /// Charges that hit the limit.
    AtLimit: Total,
    /// OOM kills in the cgroup.
    OomKills: Total,
}

pub(super) const COLUMNS: usize = 23;

/// The unit of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Stored in KiB.
    Bytes,
    /// A number that can fall.
    Count,
    /// A counter.
    Total,
    /// A counter of milliseconds, stored in hundredths of a second, which suffices for 497 days.
    TotalMs,
    /// A counter of MiB.
    TotalMib,
}

impl Column {
    /// Whether it never falls, so its maximum is its last value.
    pub fn only_rises(self) -> bool {
        matches!(self.unit(), Unit::Total | Unit::TotalMs | Unit::TotalMib)
    }
}
