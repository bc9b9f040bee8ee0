//! `holders FILE`: the ten largest holders of a heap dump, with what they consist of.
#![expect(clippy::print_stdout, reason = "a program that prints")]

use loadline_base::units::Bytes;
use loadline_heap_dump::{Settings, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: holders FILE")?;
    let settings = Settings {
        memory_bytes_max: 4 << 30,
        holders_max: std::env::args().nth(2).map_or(40, |n| n.parse().unwrap_or(40)),
        ..Settings::default()
    };
    let summary = read(&std::fs::File::open(path)?, &settings)?;
    let amount = |amount: loadline_heap_dump::Amount| format!("{} in {} objects", Bytes(amount.bytes), amount.objects);
    println!("live: {}; unreachable: {}", amount(summary.live), amount(summary.unreachable));
    if let Some(why) = &summary.incomplete {
        println!("the dump is {why}");
    }
    for holder in summary.holders.iter().take(settings.holders_max) {
        println!("{:>12}  {holder}", Bytes(holder.retained.bytes).to_string());
        for part in holder.consists_of.iter().take(3) {
            println!("{:>12}    {} of {}", Bytes(part.amount.bytes).to_string(), part.amount.objects, part.class);
        }
    }
    for part in summary.unreachable_classes.iter().take(30) {
        println!(
            "{:>12}  unreachable: {} of {}",
            Bytes(part.amount.bytes).to_string(),
            part.amount.objects,
            part.class
        );
    }
    println!("all {} holders explain {:.1} % of what is live", summary.holders.len(), summary.covered() * 100.0);
    Ok(())
}
