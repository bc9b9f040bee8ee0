//! Prints the ten largest sites of a recording: `cargo run --example sites -- RECORDING.jfr`.

#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use loadline_base::error::{Error, Result};
use loadline_profile::recording::Recording;
use std::fs::File;

const SITES: usize = 10;
const FRAMES: usize = 6;

fn main() -> Result<()> {
    let path =
        std::env::args_os().nth(1).ok_or_else(|| Error::request("specify a recording: `sites RECORDING.jfr`"))?;
    let file = File::open(&path).map_err(|cause| Error::io("open", &path, &cause))?;
    let recording = Recording::read(file)?;
    for note in &recording.notes {
        println!("note: {note}");
    }
    let total = recording.total;
    println!(
        "{:>13} {:>13} {:>8}  bytes at the end, at the peak, allocations",
        total.bytes_end, total.bytes_at_peak, total.allocations
    );
    for site in recording.sites.iter().take(SITES) {
        let uses = site.uses;
        println!(
            "{:>13} {:>13} {:>8}  {}: {}",
            uses.bytes_end, uses.bytes_at_peak, uses.allocations, site.place, site.owner
        );
        for frame in recording.below(site).into_iter().take(FRAMES) {
            println!("{:38}{frame}", "");
        }
    }
    for own in recording.live.iter().take(SITES) {
        println!(
            "{:>13.0} {:>13} {:>8}  {}: {}",
            own.samples.bytes_estimated, "", own.samples.objects, own.place, own.class
        );
    }
    Ok(())
}
