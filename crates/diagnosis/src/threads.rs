//! Threads that do next to nothing.

use super::compilers::compile;
use super::facts::{Facts, sum};
use super::found::{found, listed};
use crate::record::{Finding, FindingRecord, IdlePool, ThreadPoolRecord};
use crate::scenario::MarkPoint;
use crate::units::{Bytes, grouped};
use loadline_base::order::Order as _;

/// Fewer threads of one name are no pool with a chosen size.
const THREADS_MIN: u64 = 20;
/// CPU time of a thread over the time it lived, above which it works.
const CPU_SHARE_MAX: f64 = 0.01;
/// Pools that are named.
const POOLS_MAX: usize = 3;

/// So many new threads of one pool are more than a pool of workers (Tomcat and Jetty end at 200).
const PILE_MIN: u64 = 300;
/// The kernel stack of a thread in bytes, besides its own stack (`THREAD_SIZE`, x86-64 and aarch64).
const KERNEL_STACK: u64 = 16 << 10;

/// Pools of so many threads of the program and more that do next to nothing.
fn idle_pools(facts: &Facts, threads_min: u64) -> Option<Vec<IdlePool>> {
    let ((mark, _), age_s) = (facts.weighed()?, facts.age_s()?);
    let is_of_program = |pool: &&ThreadPoolRecord| pool.allocated_bytes.is_some() && !compile(pool);
    let is_idle = |pool: &&ThreadPoolRecord| pool.cpu_s / (pool.threads as f64 * age_s) < CPU_SHARE_MAX;
    let known = mark.pools.iter().filter(is_of_program).filter(is_idle).filter(|pool| pool.threads >= threads_min);
    let pool = |of: &ThreadPoolRecord| {
        let ThreadPoolRecord { threads, stack_bytes, .. } = *of;
        IdlePool { name: of.name.clone(), threads, stack_bytes, cpus: of.cpu_s / age_s }
    };
    Some(known.map(pool).collect())
}

/// Threads of one name come with the load and do not end: what starts one for each request or client never ends it, or
/// a pool has no bound. Source: `Executors.newCachedThreadPool` (no bound), measured: 900 parked threads, 45 MiB.
pub(super) fn pile_up(facts: &Facts) -> Option<FindingRecord> {
    let (mark, _) = facts.weighed()?;
    let grown = mark.threads?.saturating_sub(facts.at(MarkPoint::Start)?.threads?);
    let pool = idle_pools(facts, PILE_MIN)?.into_iter().max_by_key(|pool| pool.threads)?;
    if grown < PILE_MIN || pool.threads < grown / 2 {
        return None;
    }
    let bytes = pool.stack_bytes.saturating_add(pool.threads.saturating_mul(KERNEL_STACK));
    let ([came, idle], stacks) = ([grown, pool.threads].map(grouped), Bytes(pool.stack_bytes));
    let text = format!(
        "{came} threads came with the load and did not end, {idle} of them `{}`, which do next to nothing: {stacks} of \
         stacks, and {} KiB of the kernel for each",
        pool.name,
        KERNEL_STACK >> 10
    );
    let next = "end them, or take them from one pool with a bound (`Executors.newFixedThreadPool`), and give what they \
        wait for a timeout: `jcmd PID Thread.print` shows where they wait. `-Xss` saves nothing resident";
    let found = found(Finding::ThreadsPileUp { pool, grown }, text, next);
    Some(FindingRecord { costs_bytes: bytes, gain_bytes_max: Some(bytes), ..found })
}

/// Pools of idle threads. Source: measured (50 to 150 KiB of stack and tcache a thread), winfoom #15; Tomcat's default
/// is 200 workers. Nothing of the JVM makes them fewer: `-Xss` reserves and saves nothing resident (ecchronos #1608).
pub(super) fn idle(facts: &Facts) -> Option<FindingRecord> {
    if pile_up(facts).is_some() {
        return None;
    }
    let mut pools = idle_pools(facts, THREADS_MIN)?;
    pools.largest_first(|pool| pool.stack_bytes);
    pools.truncate(POOLS_MAX);
    let stacks = sum(pools.iter().map(|pool| pool.stack_bytes));
    let told = |IdlePool { name, threads, stack_bytes, cpus }: &IdlePool| {
        let (threads, stacks) = (grouped(*threads), Bytes(*stack_bytes));
        format!("{threads} of `{name}` with {stacks} of stacks and {cpus:.2} CPUs in use")
    };
    let text = format!("threads that do next to nothing: {}", listed(&pools, told));
    let next = "give the pool fewer threads, or let it shrink, in the application's own settings";
    (!pools.is_empty()).then(|| {
        let found = found(Finding::ThreadsIdle { pools }, text, next);
        FindingRecord { costs_bytes: stacks, gain_bytes_max: Some(stacks), ..found }
    })
}
