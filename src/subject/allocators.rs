//! Finds alternative allocator libraries to preload.

use std::path::Path;

/// The loader's directories on glibc systems (ld.so(8)), including Debian's and Fedora's.
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
/// Names used by distributions.
const NAMES: [&str; 5] =
    ["libjemalloc.so.2", "libjemalloc.so", "libmimalloc.so.2", "libmimalloc.so.3", "libmimalloc.so"];

/// The first installed library of each allocator, by path.
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
