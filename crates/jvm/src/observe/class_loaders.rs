//! Replies to `VM.classloader_stats` (JDK 11–27): the class loaders, and the metaspace that each one's classes take.
//!
//! ```text
//! ClassLoader         Parent              CLD*               Classes   ChunkSz   BlockSz  Type
//! 0x00007efbcf07af08  0x00007efbcf07d1e8  0x00007efc50171d70       3      1280      1203  …ClassLoaders$AppClassLoader
//! 0x0000000000000000  0x0000000000000000  0x00007efc50138be0    1000    557056    116329  <boot class loader>
//!                                                                 13      5120      3227   + hidden classes
//! ```
//!
//! Loader and parent are the addresses of their classes, so loaders of one class cannot be distinguished. JDK 11, 21,
//! and 25 count sizes in bytes, JDK 17 in 8-byte words.

use super::text::address;
use loadline_base::units::Bytes;
use std::collections::HashSet;

/// Prefix of the JVM's own loaders, which live as long as the JVM.
const BUILT_IN: &str = "jdk.internal.loader.ClassLoaders$";
const BOOT: u64 = 0;
/// Maximum number of characters in a type name; Java's own limit is 65,535 bytes.
const NAME_CHARS_MAX: usize = 512;

/// A class loader with its classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassLoader {
    /// Address of the loader's data (`CLD*`), which does not change during the loader's life.
    pub data: u64,
    /// Address of the loader's class; 0 for the boot loader.
    class: u64,
    parent: u64,
    /// Its class name, truncated if too long; `<boot class loader>` for the boot loader.
    pub name: String,
    built_in: bool,
    /// Loaded classes, including hidden ones.
    pub classes: u64,
    /// Hidden classes among them (of lambdas, method handles, scripts).
    pub hidden_classes: u64,
    /// Metaspace and class space taken by its classes, including hidden ones; in bytes or words.
    pub size: u64,
    /// Bytes or words of `size` that are used.
    pub used: u64,
}

/// Class addresses of a loader and its parent; 0 for the boot loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoaderClasses {
    /// Its own.
    pub own: u64,
    /// Its parent's.
    pub parent: u64,
}

impl ClassLoader {
    /// A loader that has no classes yet; `name` is its class name.
    pub fn found(data: u64, LoaderClasses { own, parent }: LoaderClasses, name: &str) -> Self {
        let (name, built_in) = match own {
            BOOT => ("<boot class loader>".to_owned(), true),
            _ => (name.chars().take(NAME_CHARS_MAX).collect(), name.starts_with(BUILT_IN)),
        };
        Self { data, class: own, parent, name, built_in, classes: 0, hidden_classes: 0, size: 0, used: 0 }
    }
}

/// Parses a reply; skips unrecognized lines.
pub fn parse(text: &str) -> Vec<ClassLoader> {
    let mut loaders: Vec<ClassLoader> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().take(7).collect();
        match (words.as_slice(), loaders.last_mut()) {
            ([own, parent, data, classes, size, used, _name], _) if own.starts_with("0x") => {
                let [Some(own), Some(parent), Some(data)] = [own, parent, data].map(|text| address(text)) else {
                    continue;
                };
                let [Ok(classes), Ok(size), Ok(used)] = [classes, size, used].map(|text| text.parse()) else {
                    continue;
                };
                let found = ClassLoader::found(data, LoaderClasses { own, parent }, behind(line, 6));
                loaders.push(ClassLoader { classes, size, used, ..found });
            }
            ([classes, size, used, "+", ..], Some(last)) => {
                let number = |text: &str| text.parse().unwrap_or(0);
                last.classes = last.classes.saturating_add(number(classes));
                last.hidden_classes = last.hidden_classes.saturating_add(number(classes));
                last.size = last.size.saturating_add(number(size));
                last.used = last.used.saturating_add(number(used));
            }
            _ => {}
        }
    }
    loaders
}

/// Returns the text after this many words: a name may contain spaces, like the boot loader's.
fn behind(line: &str, words: usize) -> &str {
    let next = |rest: &str| rest.find(char::is_whitespace).unwrap_or(rest.len());
    (0..words).fold(line.trim(), |rest, _| rest[next(rest)..].trim_start())
}

/// The loaders with sizes in bytes. `committed` is all of metaspace and class space. No more than that can be in use,
/// which distinguishes bytes from words. (Chunks are committed late.)
pub fn in_bytes(mut loaders: Vec<ClassLoader>, committed: Bytes) -> Vec<ClassLoader> {
    let used = loaders.iter().fold(0u64, |sum, loader| sum.saturating_add(loader.used));
    let unit = if used.saturating_mul(8) <= committed.0 { 8 } else { 1 };
    for loader in &mut loaders {
        loader.size = loader.size.saturating_mul(unit);
        loader.used = loader.used.saturating_mul(unit);
    }
    loaders
}

/// Returns the metaspace of loaders that may be garbage, in the unit of their sizes: those that are neither the JVM's
/// own nor parents of others.
pub fn leaves(loaders: &[ClassLoader]) -> u64 {
    let parents: HashSet<u64> =
        loaders.iter().filter(|loader| loader.parent != loader.class).map(|loader| loader.parent).collect();
    let leaves = loaders.iter().filter(|loader| !loader.built_in && !parents.contains(&loader.class));
    leaves.fold(0u64, |sum, loader| sum.saturating_add(loader.size))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reply in the format of JDK 17; two of the loaders have hidden classes.
    const REPLY: &str = "4711:
ClassLoader         Parent              CLD*               Classes   ChunkSz   BlockSz  Type
0x00007efbcf07af08  0x00007efbcf07d1e8  0x00007efc50171d70       3      1280      1203  jdk.internal.loader.ClassLoaders$AppClassLoader
0x00007efbcf1000a0  0x00007efbcf07af08  0x00007efc50170000     900   9000000   8111111  java.net.URLClassLoader
0x00007efbcf2000b0  0x00007efbcf1000a0  0x00007efc50170001      20    100000     81111  web.Loader
0x00007efbcf2000b0  0x00007efbcf1000a0  0x00007efc50170002      20    100000     81111  web.Loader
                                                                 4      5000      3000   + hidden classes
0x0000000000000000  0x0000000000000000  0x00007efc50138be0    1000    557056    116329  <boot class loader>
                                                                13      5120      3227   + hidden classes
Total = 6                                                     1040    577920    133915
ChunkSz: Total size of all allocated metaspace chunks
";

    #[test]
    fn hidden_classes_belong_to_their_loaders() {
        let loaders = parse(REPLY);
        let sizes: Vec<u64> = loaders.iter().map(|loader| loader.size).collect();
        assert_eq!(sizes, [1280, 9_000_000, 100_000, 105_000, 562_176]);
        let last = &loaders[4];
        assert_eq!((last.name.as_str(), last.data), ("<boot class loader>", 0x7efc_5013_8be0));
        assert_eq!((last.classes, last.hidden_classes, last.used), (1013, 13, 119_556));
        assert_eq!(parse(""), []);
    }

    #[test]
    fn only_loaders_without_children_may_be_garbage() {
        let used = 1203 + 8_111_111 + 2 * 81_111 + 3000 + 116_329 + 3227;
        assert_eq!(leaves(&in_bytes(parse(REPLY), Bytes(8 * used - 1))), 205_000);
        assert_eq!(leaves(&in_bytes(parse(REPLY), Bytes(8 * used))), 8 * 205_000, "larger values are in words");
    }

    #[test]
    fn names_are_as_in_the_reply_up_to_the_maximum() {
        let row = |name: &str| format!("0x10 0x20 0x30 1 2 3  {name}\n");
        let name = |text: &str| parse(&row(text))[0].name.clone();
        assert_eq!(name("a.<b>x</b>`\u{1b}[31m"), "a.<b>x</b>`\u{1b}[31m");
        assert_eq!(name("1 of  2"), "1 of  2");
        assert_eq!(name(&"x".repeat(70_000)).len(), NAME_CHARS_MAX);
        assert_eq!(parse("0x10 0x20 0x30 1 2 99999999999999999999 a.B\n"), []);
    }

    #[test]
    fn ten_thousand_loader_types_are_read_quickly() {
        let rows = |n: u64| format!("{n:#x} {:#x} {n:#x} 1 20 10 web.Loader{n}\n", n + 1);
        let text: String = (1..=10_000).map(|n| rows(2 * n)).collect();
        let loaders = parse(&text);
        assert_eq!(loaders.len(), 10_000);
        assert_eq!(leaves(&in_bytes(loaders, Bytes(100_000))), 200_000);
    }

    #[test]
    fn a_truncated_loader_reply_gives_only_known_loaders() {
        for end in 0..=REPLY.len() {
            let loaders = parse(&REPLY[..end]);
            assert!(loaders.len() <= 5 && leaves(&in_bytes(loaders, Bytes(1 << 24))) <= 8 * 9_205_000);
        }
    }
}
