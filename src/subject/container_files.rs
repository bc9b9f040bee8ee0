//! A container's files as seen from outside it: in the layers of its root.
//!
//! Mount options of an overlayfs root (kernel `Documentation/filesystems/overlayfs.rst`), from podman 4.3 and docker
//! 20.10: `rw,lowerdir=/a/l/HF3Q:/a/l/57BY,upperdir=/a/909/diff,workdir=/a/909/w`

use crate::kernel::{mounts, text};
use std::path::{Path, PathBuf};

/// The layers of this process's root as directories outside the container, topmost first; empty if the root is not an
/// overlay, or is of an unknown kind.
pub(crate) fn layers(pid: u32) -> Vec<PathBuf> {
    let named = parse(&text::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default());
    // Resolves the short links that replace long names; files are identified by real path.
    named.into_iter().filter(|layer| layer.is_absolute()).filter_map(|layer| layer.canonicalize().ok()).collect()
}

/// The candidates outside the container for a file inside it: one per layer that has the name. Only the topmost one is
/// in use; the others do no harm.
pub(crate) fn outside(inside: &str, layers: &[PathBuf]) -> Vec<PathBuf> {
    let name = inside.trim_start_matches('/');
    layers.iter().map(|layer| layer.join(name)).filter(|file| file.is_file()).collect()
}

fn parse(mountinfo: &str) -> Vec<PathBuf> {
    let root = mounts::parse(mountinfo).rev().find(|mount| mount.point == Path::new("/"));
    let options = root.iter().filter(|root| root.kind == "overlay").flat_map(mounts::Mount::options);
    let lists = options.filter_map(|option| {
        let keys = ["lowerdir=", "lowerdir+=", "datadir+="];
        keys.iter().find_map(|key| option.strip_prefix(key)).map(split)
    });
    lists.flatten().filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

/// Splits at colons, except those escaped by a backslash.
fn split(list: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut chars = list.chars();
    while let Some(c) = chars.next() {
        match (c, found.last_mut()) {
            (':', _) => found.push(String::new()),
            ('\\', Some(last)) => last.extend(chars.next()),
            (c, Some(last)) => last.push(c),
            (_, None) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "22 21 0:5 / /dev rw - devtmpfs dev rw\n\
        73 48 0:40 / / rw,relatime master:2 - overlay overlay rw,lowerdir=/a/l/HF\\0403Q:/a/l/é:,upperdir=/a/9/diff\n\
        74 73 0:43 / /proc rw - proc proc rw";

    #[test]
    fn the_layers_of_an_overlay_are_listed() {
        let check = |options: &str, expect: &[&str]| {
            let line = format!("73 48 0:40 / / rw - overlay overlay rw,{options}");
            assert_eq!(parse(&line), expect.iter().map(PathBuf::from).collect::<Vec<_>>(), "{options}");
        };
        check("lowerdir=/a:/b,upperdir=/c", &["/a", "/b"]);
        check("upperdir=/c,lowerdir+=/a,lowerdir+=/b,datadir+=/d", &["/a", "/b", "/d"]);
        check("lowerdir=/a\\134:b:/c", &["/a:b", "/c"]);
        check("lowerdir=", &[]);
        assert_eq!(parse(LINES), ["/a/l/HF 3Q", "/a/l/é"].map(PathBuf::from));
        assert_eq!(parse("73 48 0:40 / / rw - ext4 /dev/vda rw,lowerdir=/a"), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_file_is_found_in_each_layer_that_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let layers = ["one", "two", "none"].map(|name| folder.path().join(name));
        for layer in &layers[..2] {
            loadline_test_support::write(layer.join("opt/x"), "x");
        }
        assert_eq!(outside("/opt/x", &layers), [layers[0].join("opt/x"), layers[1].join("opt/x")]);
        assert_eq!(outside("/opt", &layers), Vec::<PathBuf>::new());
        assert!(super::layers(std::process::id()).iter().all(|layer| layer.is_absolute()));
    }
}
