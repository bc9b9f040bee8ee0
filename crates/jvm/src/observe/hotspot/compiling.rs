//! The compilations in progress in the JIT compilers: `CompilerThread` → `ciEnv` → `CompileTask` → `Method` (JDK
//! 11–27). All of it is native memory, which does not move. If a task ends during reading, the result may be the next
//! task's name, but never garbage.

use super::super::Unavailable;
use super::super::memory::{Memory, words};
use super::Tables;
use super::classes::Classes;
use super::threads::Threads;
use crate::purpose::Purpose;

/// More compiler threads than a JVM starts on any machine.
const COMPILERS_MAX: usize = 256;
/// Thread-local variables of a JVM's libraries take about 1 KiB; this many bytes below and above are read.
const THREAD_BYTES: usize = 8 << 10;
const PIECE_BYTES: usize = 512;

/// The compiler threads of this JVM, and the offsets for reading their compilations.
#[derive(Debug, Clone)]
pub struct Compilers {
    threads: Threads,
    classes: Classes,
    env: u64,
    task: u64,
    method: u64,
    level: u64,
    const_method: u64,
    constants: u64,
    name_index: u64,
    pool_holder: u64,
    os_thread: u64,
    pthread: u64,
    /// The first word of each compiler thread: its vtable pointer.
    kind: Option<u64>,
    found: Vec<u64>,
}

/// A compilation in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The address of its `CompileTask`, which stays the same during the compilation.
    pub at: u64,
    /// The method being compiled.
    pub method: u64,
    /// The tier (1 to 3: C1, 4: C2).
    pub level: u32,
}

impl Compilers {
    /// Looks up where this JVM stores the compilations in progress.
    pub fn of(tables: &Tables) -> Result<Self, Unavailable> {
        let offset = |field: &str| tables.offset(&[field]);
        Ok(Self {
            threads: Threads::of(tables, None)?,
            classes: Classes::of(tables)?,
            env: offset("CompilerThread::_env")?,
            task: offset("ciEnv::_task")?,
            method: offset("CompileTask::_method")?,
            level: offset("CompileTask::_comp_level")?,
            const_method: offset("Method::_constMethod")?,
            constants: offset("ConstMethod::_constants")?,
            name_index: offset("ConstMethod::_name_index")?,
            pool_holder: offset("ConstantPool::_pool_holder")?,
            os_thread: tables.offset(&["Thread::_osthread", "JavaThread::_osthread"])?,
            pthread: offset("OSThread::_pthread_id")?,
            kind: None,
            found: Vec::new(),
        })
    }

    /// Finds the compiler threads, which HotSpot starts and ends depending on load. `name` returns the kernel's name of
    /// a thread, by its id in the JVM's own pid namespace; it is called until one is found.
    pub fn look(&mut self, memory: &dyn Memory, name: impl Fn(u32) -> Option<String>) {
        let Some(threads) = self.threads.addresses(memory) else { return };
        if self.kind.is_none() {
            let is_one = |thread: &&u64| {
                let name = self.threads.tid(memory, **thread).and_then(&name);
                name.is_some_and(|name| Purpose::of(&name) == Purpose::Jit)
            };
            self.kind = threads.iter().find(is_one).and_then(|thread| memory.u64(*thread));
        }
        let Some(kind) = self.kind else { return };
        let mut kinds = vec![0; 8 * threads.len()];
        // A thread may end in the meantime; in that case, the last result is kept until the next search.
        if memory.read_each(&threads, &mut kinds) {
            let compilers = threads.into_iter().zip(words(&kinds)).filter(|(_, of)| *of == kind);
            self.found = compilers.map(|(thread, _)| thread).take(COMPILERS_MAX).collect();
        }
    }

    /// The compilations in progress.
    pub fn tasks(&self, memory: &dyn Memory) -> Vec<Task> {
        let word = |at: u64, offset: u64| memory.u64(at.checked_add(offset)?).filter(|word| *word != 0);
        let task = |thread: &u64| {
            let at = word(word(*thread, self.env)?, self.task)?;
            Some(Task { at, method: word(at, self.method)?, level: memory.u32(at.checked_add(self.level)?)? })
        };
        self.found.iter().filter_map(task).collect()
    }

    /// The words around the result of `pthread_self` for each compiler thread, 0 where unreadable. The thread-local
    /// variables of initially loaded libraries are below it on x86-64 and above it on aarch64. One of them is the
    /// address of the thread's arena ([`arenas_of_threads`]).
    ///
    /// [`arenas_of_threads`]: crate::observe::glibc::arenas_of_threads
    pub fn thread_words(&self, memory: &dyn Memory) -> Vec<Vec<u64>> {
        self.found.iter().filter_map(|thread| self.words_of(memory, *thread)).collect()
    }

    fn words_of(&self, memory: &dyn Memory, thread: u64) -> Option<Vec<u64>> {
        let os_thread = memory.u64(thread.checked_add(self.os_thread)?).filter(|at| *at != 0)?;
        let start = memory.u64(os_thread.checked_add(self.pthread)?)?.checked_sub(THREAD_BYTES as u64)?;
        let mut bytes = vec![0; 2 * THREAD_BYTES];
        for (n, piece) in bytes.chunks_exact_mut(PIECE_BYTES).enumerate() {
            let at = start.checked_add((n * PIECE_BYTES) as u64);
            if !at.is_some_and(|at| memory.read(at, piece)) {
                piece.fill(0);
            }
        }
        Some(words(&bytes).collect())
    }

    /// A method as in compiler options: `com.example.Scores::of`.
    pub fn name(&self, memory: &dyn Memory, method: u64) -> Option<String> {
        let word = |at: u64, offset: u64| memory.u64(at.checked_add(offset)?).filter(|word| *word != 0);
        let fixed = word(method, self.const_method)?;
        let index = memory.u16(fixed.checked_add(self.name_index)?)?;
        let constants = word(fixed, self.constants)?;
        let name = self.classes.constant(memory, constants, index.into())?.read(memory)?;
        let class = self.classes.spelled(memory, word(constants, self.pool_holder)?)?;
        Some(format!("{class}::{name}"))
    }
}
