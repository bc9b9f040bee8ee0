//! Which code and which objects hold memory: what the recording of a profiler and a heap dump say, as plain values.
//! It starts nothing: `trial` does for a command, and a JVM that runs is recorded where it is.

mod heap;
mod live_growth;
mod native;
mod running;

pub(crate) use live_growth::{COLLECTIONS, live_growth};
pub(crate) use loadline_profile::agent::Launch as Profiler;
pub(crate) use running::{ExplainRequest, running};

use crate::error::{Error, Result};
use crate::record::{ExplanationRecord, Jvm, NO_OBJECTS};
use loadline_profile::library::Library;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// The part of an explanation that native memory is.
const NATIVE: &str = "No native memory by code";

/// The profiler at this place, or the best one found. If there is no profiler, notes the reason.
pub(crate) fn profiler(given: Option<&Path>, found: &mut ExplanationRecord) -> Option<Profiler> {
    noted(found, NATIVE, Library::find(given).and_then(Profiler::prepare))
}

/// Enters what a profiler recorded of a JVM that has ended.
pub(crate) fn enter_recorded(profiler: &Profiler, load_ended: Option<Duration>, found: &mut ExplanationRecord) {
    found.profiler = Some(profiler.library.path().display().to_string());
    let entered = profiler.recording().and_then(|file| native::enter(file, load_ended, found));
    noted(found, NATIVE, entered);
}

/// Enters what keeps the objects in a heap dump of this JVM.
pub(crate) fn enter_heap(dump: &Path, jvm: Option<&Jvm>, found: &mut ExplanationRecord) {
    let file = File::open(dump).map_err(|cause| Error::io("read", dump, &cause));
    if let Some(file) = noted(found, NO_OBJECTS, file) {
        enter_dump(&file, jvm, found);
    }
}

fn enter_dump(dump: &File, jvm: Option<&Jvm>, found: &mut ExplanationRecord) {
    let held = heap::held(dump, jvm);
    if let Some((heap, incomplete)) = noted(found, NO_OBJECTS, held) {
        found.heap = Some(heap);
        found.missing.extend(incomplete.map(|why| format!("Some objects are missing: the heap dump is {why}.")));
    }
}

/// The result; a failure is noted with its reason.
fn noted<T>(found: &mut ExplanationRecord, what: &str, result: Result<T>) -> Option<T> {
    let hint = |hint: Option<String>| hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
    result.map_err(|error| found.missing.push(format!("{what}: {}{}.", error.what, hint(error.hint)))).ok()
}
