//! `holders FILE`: the ten largest holders in a heap dump, and what they consist of.
#![expect(clippy::print_stdout, reason = "a program that prints")]

use loadline_base::units::{Bytes, grouped};
use loadline_heap_dump::{Amount, Settings, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: holders FILE")?;
    let settings = Settings { memory_bytes_max: 8 << 30, ..Settings::default() };
    let summary = read(&std::fs::File::open(path)?, &settings).map_err(|error| error.what)?;
    let text = |amount: Amount| format!("{} in {} objects", Bytes(amount.bytes), grouped(amount.objects));
    println!("live: {}; unreachable: {}", text(summary.live), text(summary.unreachable));
    if let Some(why) = &summary.incomplete {
        println!("the dump is {why}");
    }
    for holder in summary.holders.iter().take(10) {
        println!("{:>12}  {holder}", Bytes(holder.retained.bytes));
        for part in holder.consists_of.iter().take(3) {
            println!("{:>12}    {} of {}", Bytes(part.amount.bytes), grouped(part.amount.objects), part.class);
        }
    }
    let (named, all) = (summary.covered_by_name() * 100.0, summary.covered() * 100.0);
    println!("{} holders explain {all:.1}% of the live bytes, {named:.1}% by name", summary.holders.len());
    Ok(())
}
