//! Finds the server in a directory, jar, or image. `signs` extracts facts from a jar, a build, or a Dockerfile. `jar`
//! builds the command for a jar; `place` searches a directory. `sought` plans the requests to a server whose address is
//! unknown, and applies its first response. `draft` writes a first scenario. This module only reads files; other
//! modules start servers, send requests, and write files.

mod draft;
mod jar;
mod place;
mod signs;
mod sought;

pub(crate) use draft::Draft;
pub(crate) use jar::{Jar, is_named_jar, program_error};
pub(crate) use place::{DetectedServer, way};
pub(crate) use sought::{Detected, JarTarget, TypedJar, describe};

pub(crate) fn pages() -> Vec<String> {
    signs::PAGES.iter().map(|page| (*page).to_owned()).collect()
}

/// Paths of health checks for an unknown server.
pub(crate) fn health() -> Vec<String> {
    signs::health_of(None)
}
