//! A recording of async-profiler as sites: the lines of code that allocated native memory.

use crate::error::Result;
use crate::record::{ExplanationRecord, SiteRecord};
use loadline_profile::owner::Owner;
use loadline_profile::recording::{Recording, Site};
use std::fs::File;
use std::time::Duration;

/// Sites that are kept in a record.
const SITES_MAX: usize = 100;
/// Frames that are kept of a site.
const FRAMES_MAX: usize = 60;

/// Enters what the file recorded into an explanation; `load_ended` is the moment whose bytes are told, since the Unix
/// epoch, the end of the recording where there was none.
///
/// # Errors
/// Where the file is no recording, or cannot be read.
pub(super) fn enter(file: File, load_ended: Option<Duration>, found: &mut ExplanationRecord) -> Result<()> {
    let recording = Recording::read_at(file, load_ended)?;
    let mut sites: Vec<SiteRecord> = recording.sites.iter().map(|site| record(&recording, site)).collect();
    sites.retain(|site| site.peak_bytes > 0);
    sites.sort_by_key(|site| std::cmp::Reverse(site.loaded_bytes.max(site.peak_bytes)));
    sites.truncate(SITES_MAX);
    found.sites = sites;
    found.missing.extend(recording.notes.iter().map(|note| format!("Native memory by code: {note}.")));
    Ok(())
}

fn record(recording: &Recording, site: &Site) -> SiteRecord {
    let name = site.place.to_string();
    let below = recording.below(site).into_iter().map(|frame| frame.brief());
    // The site itself stands in full; the frames below it without their packages.
    let below = below.skip_while(|frame| name.ends_with(frame.as_str()));
    SiteRecord {
        owner: owner(&site.owner).to_owned(),
        kind: site.owner.to_string(),
        frames: std::iter::once(name.clone()).chain(below).take(FRAMES_MAX).collect(),
        site: name,
        loaded_bytes: site.uses.bytes_then,
        kept_bytes: site.uses.bytes_end.min(site.uses.bytes_then),
        peak_bytes: site.uses.bytes_peak,
        allocations: site.uses.allocations,
    }
}

/// The row of an account that has this memory.
fn owner(of: &Owner) -> &'static str {
    match of {
        Owner::Direct(_) => "malloc.direct",
        _ => "malloc.live",
    }
}
