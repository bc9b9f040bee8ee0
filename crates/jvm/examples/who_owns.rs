//! `who_owns PID`: the owners of a running JVM's resident pages, largest first, without querying or pausing it.
#![expect(clippy::print_stdout, reason = "a program that prints")]

use loadline_base::clock::Clock;
use loadline_jvm::accounting::{JvmTables, Wanted, account};
use loadline_jvm::observe::procfs::Process;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).ok_or("usage: who_owns PID")?.parse()?;
    let clock = Clock::start();
    let process = Process::open(pid)?;
    let read = JvmTables::find(&process, &clock)?.read(&process, &clock)?;
    let accounted = account(&process, read.said, Wanted { stop: false, live: false }, &clock)?;
    let mut holdings = accounted.account.holdings;
    holdings.sort_by_key(|holding| std::cmp::Reverse(holding.rss));
    for holding in holdings {
        println!("{:>9.1} MiB  {}", holding.rss as f64 / f64::from(1 << 20), holding.owner.entry().label);
    }
    println!("{:>9.1} MiB  RSS", accounted.account.rss as f64 / f64::from(1 << 20));
    Ok(())
}
