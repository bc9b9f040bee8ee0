//! How one begins: finding the server in a folder, a jar or an image. `signs` reads what a jar, a build or a Dockerfile
//! says of its server. `jar` has the command that starts a jar, and `place` looks into a folder. `sought` is for a
//! server whose address is unknown: the requests to it, and the settings that its answer decides. `draft` is the text
//! of a first scenario. This module only reads files; other modules start servers, send requests and write files.

mod draft;
mod jar;
mod place;
mod signs;
mod sought;

pub(crate) use draft::Draft;
pub(crate) use jar::{Jar, is_named_jar, program_error};
pub(crate) use place::{DetectedServer, way};
pub(crate) use sought::{Detected, JarTarget, TypedJar, describe};

/// Pages that a server is asked for.
pub(crate) fn pages() -> Vec<String> {
    signs::PAGES.iter().map(|page| (*page).to_owned()).collect()
}

/// Returns the paths of health checks for a server of which nothing is known.
pub(crate) fn health() -> Vec<String> {
    signs::health_of(None)
}
