//! Libraries of other allocators that the loader would find, to be preloaded.

use std::path::Path;

/// Folders of the loader on glibc systems (ld.so(8)), Debian's and Fedora's among them.
const FOLDERS: [&str; 8] = [
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
];
/// Names by which distributions install them.
const NAMES: [&str; 5] =
    ["libjemalloc.so.2", "libjemalloc.so", "libmimalloc.so.2", "libmimalloc.so.3", "libmimalloc.so"];

/// The first of each allocator that is there, as the loader finds it by its path.
pub(crate) fn installed() -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in NAMES {
        let family = name.split('.').next().unwrap_or(name);
        let known = found.iter().any(|path| path.contains(family));
        let paths = FOLDERS.iter().map(|folder| format!("{folder}/{name}"));
        found.extend(paths.filter(|path| !known && Path::new(path).is_file()).take(1));
    }
    found
}
