//! Threads that are mostly idle.

use super::compilers::compile;
use super::facts::{Facts, sum};
use super::found::{found, listed};
use crate::record::{Finding, FindingRecord, IdlePool, Mark, ThreadPoolRecord};
use crate::scenario::MarkPoint;
use crate::units::{Bytes, grouped, roughly};
use loadline_base::order::Order as _;

/// Fewer threads with the same name are not a deliberately sized pool.
const THREADS_MIN: u64 = 20;
/// A thread with a higher share of CPU time is working.
const CPU_SHARE_MAX: f64 = 0.01;
/// The CPU time in seconds of a thread that may have worked recently, if only the time since the JVM's start is known.
/// The threads of a pool of 25 that served 2.8 million requests used several seconds each.
const CPU_S_MAX: f64 = 0.1;
const POOLS_MAX: usize = 3;

/// More new threads of one pool than a worker pool has (Tomcat and Jetty have a maximum of 200).
const PILE_MIN: u64 = 300;
/// A thread's kernel stack in bytes, in addition to its own stack (`THREAD_SIZE`, x86-64 and aarch64).
const KERNEL_STACK: u64 = 16 << 10;

/// The time span to judge: from the mark before the load to the one after it, or since the JVM's start.
struct Span<'a> {
    from: Option<&'a Mark>,
    seconds: f64,
}

impl<'a> Span<'a> {
    fn of(facts: &Facts<'a>) -> Option<Self> {
        let (to, _) = facts.weighed()?;
        let is_before = |mark: &&Mark| mark.at_s < to.at_s && !mark.pools.is_empty();
        let from = facts.marks.iter().rfind(is_before).filter(|_| facts.loads().next().is_some());
        Some(Self { from, seconds: from.map_or(facts.age_s()?, |from| to.at_s - from.at_s) })
    }

    fn cpu_s(&self, pool: &ThreadPoolRecord) -> f64 {
        let before = self.from.iter().flat_map(|mark| &mark.pools).find(|before| before.name == pool.name);
        before.map_or(pool.cpu_s, |before| (pool.cpu_s - before.cpu_s).max(0.0))
    }

    fn is_idle(&self, pool: &ThreadPoolRecord) -> bool {
        let each_s = self.cpu_s(pool) / pool.threads as f64;
        each_s / self.seconds < CPU_SHARE_MAX && (self.from.is_some() || each_s < CPU_S_MAX)
    }

    fn text(&self) -> String {
        let since = if self.from.is_some() { "of load" } else { "since the JVM started" };
        format!("in the {} {since}", roughly(self.seconds))
    }
}

/// Mostly idle pools with at least this many program threads, and the time span.
fn idle_pools(facts: &Facts, threads_min: u64) -> Option<(Vec<IdlePool>, String)> {
    let ((mark, _), span) = (facts.weighed()?, Span::of(facts)?);
    let is_of_program = |pool: &&ThreadPoolRecord| pool.allocated_bytes.is_some() && !compile(pool);
    let known = mark.pools.iter().filter(is_of_program).filter(|pool| span.is_idle(pool));
    let pool = |of: &ThreadPoolRecord| {
        let ThreadPoolRecord { threads, stack_bytes, .. } = *of;
        IdlePool { name: of.name.clone(), threads, stack_bytes, cpus: span.cpu_s(of) / span.seconds }
    };
    Some((known.filter(|pool| pool.threads >= threads_min).map(pool).collect(), span.text()))
}

/// Threads with the same name start under load and do not exit: each request or client starts one and never stops it,
/// or a pool is unbounded. Source: `Executors.newCachedThreadPool` (unbounded); measured: 900 parked threads, 45 MiB.
pub(super) fn pile_up(facts: &Facts) -> Option<FindingRecord> {
    let (mark, _) = facts.weighed()?;
    let grown = mark.threads?.saturating_sub(facts.at(MarkPoint::Start)?.threads?);
    let (pools, span) = idle_pools(facts, PILE_MIN)?;
    let pool = pools.into_iter().max_by_key(|pool| pool.threads)?;
    if grown < PILE_MIN || pool.threads < grown / 2 {
        return None;
    }
    let bytes = pool.stack_bytes.saturating_add(pool.threads.saturating_mul(KERNEL_STACK));
    let ([came, idle], stacks) = ([grown, pool.threads].map(grouped), Bytes(pool.stack_bytes));
    let text = format!(
        "the load started {came} threads that did not exit. {idle} of them, `{}`, used {:.2} CPUs {span} and hold \
         {stacks} of stacks, plus {} KiB of kernel memory each",
        pool.name,
        pool.cpus,
        KERNEL_STACK >> 10
    );
    let next = format!(
        "stop them, or use a bounded pool (`Executors.newFixedThreadPool`), and set a timeout on whatever they wait \
         for: {} shows where they wait. A lower `-Xss` does not reduce resident memory",
        facts.jcmd("Thread.print")
    );
    let found = found(Finding::ThreadsPileUp { pool, grown }, text, next);
    Some(FindingRecord { costs_bytes: bytes, gain_bytes_max: Some(bytes), ..found })
}

/// Pools of idle threads. Source: measured (50 to 150 KiB of stack and tcache per thread), winfoom #15; Tomcat's
/// default is 200 workers. No JVM option reduces their number: `-Xss` only reserves memory and saves nothing resident
/// (ecchronos #1608).
pub(super) fn idle(facts: &Facts) -> Option<FindingRecord> {
    if pile_up(facts).is_some() {
        return None;
    }
    let (mut pools, span) = idle_pools(facts, THREADS_MIN)?;
    pools.largest_first(|pool| pool.stack_bytes);
    pools.truncate(POOLS_MAX);
    let stacks = sum(pools.iter().map(|pool| pool.stack_bytes));
    let told = |IdlePool { name, threads, stack_bytes, cpus }: &IdlePool| {
        let (threads, stacks) = (grouped(*threads), Bytes(*stack_bytes));
        format!("{threads} of `{name}` with {stacks} of stacks used {cpus:.2} CPUs")
    };
    let text = format!("threads that were almost idle {span}: {}", listed(&pools, told));
    let next = "give the pool fewer threads, or let it shrink, in the application's own settings";
    (!pools.is_empty()).then(|| {
        let found = found(Finding::ThreadsIdle { pools }, text, next);
        FindingRecord { costs_bytes: stacks, gain_bytes_max: Some(stacks), ..found }
    })
}
