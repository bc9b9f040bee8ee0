//! How one begins: what a jar, a build or a Dockerfile says of the server in it (`signs`), the command that starts a
//! jar (`jar`), what a folder has (`place`), what a server is asked of which nobody says where it answers and what its
//! answer settles (`sought`), and the text of a first scenario (`draft`). Files are read here; starting, asking and
//! writing are left to others.

mod draft;
mod jar;
mod place;
mod signs;
mod sought;

pub(crate) use draft::Draft;
pub(crate) use jar::{Jar, is_named_jar};
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
