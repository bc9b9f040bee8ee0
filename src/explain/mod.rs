//! Finds the code and objects that hold memory, from a profiler's recording and a heap dump, as plain values. Starts no
//! subject: `trial` does that for a command, and a running JVM is recorded in place.

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

/// The part of an explanation about native memory.
const NATIVE: &str = "Native memory is not broken down by code";
/// The part of an explanation that needs a profiler.
const LINES: &str = "The result will show objects but no lines of code";

/// The profiler at this path, or the best one found. Records the reason if there is none.
pub(crate) fn profiler(given: Option<&Path>, found: &mut ExplanationRecord) -> Option<Profiler> {
    noted(found, NATIVE, Library::find(given).and_then(Profiler::prepare))
}

/// Before the first start, describes what the result will lack without a profiler.
pub(crate) fn warn_without_profiler(given: Option<&Path>) -> Option<String> {
    let mut found = ExplanationRecord::default();
    noted(&mut found, LINES, Library::find(given));
    found.missing.pop()
}

pub(crate) fn enter_recorded(profiler: &Profiler, load_ended: Option<Duration>, found: &mut ExplanationRecord) {
    found.profiler = Some(profiler.library.path().display().to_string());
    let entered = profiler.recording().and_then(|file| native::enter(file, load_ended, found));
    noted(found, NATIVE, entered);
}

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

/// Returns a result; records a failure with its reason.
fn noted<T>(found: &mut ExplanationRecord, what: &str, result: Result<T>) -> Option<T> {
    let hint = |hint: Option<String>| hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
    result.map_err(|error| found.missing.push(format!("{what}: {}{}.", error.what, hint(error.hint)))).ok()
}
