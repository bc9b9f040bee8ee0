//! Replies to `VM.classloader_stats` (JDK 11–25): the class loaders, and the metaspace that the classes of each take.
//!
//! ```text
//! ClassLoader         Parent              CLD*               Classes   ChunkSz   BlockSz  Type
//! 0x00007efbcf07af08  0x00007efbcf07d1e8  0x00007efc50171d70       3      1280      1203  …ClassLoaders$AppClassLoader
//! 0x0000000000000000  0x0000000000000000  0x00007efc50138be0    1000    557056    116329  <boot class loader>
//!                                                                 13      5120      3227   + hidden classes
//! ```
//!
//! Loader and parent are the addresses of their classes, so that loaders of one class cannot be told from each other.
//! JDK 11, 21 and 25 count sizes in bytes, JDK 17 in words of 8.

use super::text::address;
use crate::units::Bytes;

/// Prefix of the JVM's own loaders, which live as long as the JVM.
const BUILT_IN: &str = "jdk.internal.loader.ClassLoaders$";
const BOOT: u64 = 0;

/// A class loader with its classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassLoader {
    /// Address of the loader's class; 0 for the boot loader.
    class: u64,
    /// Address of the class of its parent.
    parent: u64,
    built_in: bool,
    /// Metaspace and class space that its classes have taken, hidden ones among them; in bytes or in words.
    size: u64,
    /// Bytes or words of `size` that are used.
    used: u64,
}

/// Parses a reply; lines of another form are left out.
pub fn parse(text: &str) -> Vec<ClassLoader> {
    let mut loaders: Vec<ClassLoader> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), loaders.last_mut()) {
            ([class, parent, _data, _classes, size, used, name, ..], _) if class.starts_with("0x") => {
                let (Some(class), Some(parent)) = (address(class), address(parent)) else { continue };
                let (Ok(size), Ok(used)) = (size.parse(), used.parse()) else { continue };
                let built_in = class == BOOT || name.starts_with(BUILT_IN);
                loaders.push(ClassLoader { class, parent, built_in, size, used });
            }
            ([_classes, size, used, "+", ..], Some(last)) => {
                last.size = last.size.saturating_add(size.parse().unwrap_or(0));
                last.used = last.used.saturating_add(used.parse().unwrap_or(0));
            }
            _ => {}
        }
    }
    loaders
}

/// What the loaders hold that may be garbage: neither the JVM's own nor the parents of others. `committed` is all of
/// metaspace and class space, which tells bytes from words: no more than that can be used. (Chunks are committed late.)
pub fn may_be_garbage(loaders: &[ClassLoader], committed: Bytes) -> Bytes {
    let sum = |sizes: &mut dyn Iterator<Item = u64>| sizes.fold(0, u64::saturating_add);
    let used = sum(&mut loaders.iter().map(|loader| loader.used));
    let word = if used.saturating_mul(8) <= committed.0 { 8 } else { 1 };
    let is_parent = |class: u64| loaders.iter().any(|other| other.parent == class && other.class != class);
    let leaves = loaders.iter().filter(|loader| !loader.built_in && !is_parent(loader.class));
    Bytes(sum(&mut leaves.map(|loader| loader.size)).saturating_mul(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line each of JDK 17, of which the last has hidden classes.
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
    fn loaders_have_their_hidden_classes() {
        let sizes: Vec<u64> = parse(REPLY).iter().map(|loader| loader.size).collect();
        assert_eq!(sizes, [1280, 9_000_000, 100_000, 105_000, 562_176]);
        assert_eq!(parse(""), []);
    }

    #[test]
    fn only_who_is_nobodys_parent_may_be_garbage() {
        let used = 1203 + 8_111_111 + 2 * 81_111 + 3000 + 116_329 + 3227;
        assert_eq!(may_be_garbage(&parse(REPLY), Bytes(8 * used - 1)), Bytes(205_000));
        assert_eq!(may_be_garbage(&parse(REPLY), Bytes(8 * used)), Bytes(8 * 205_000), "words");
    }

    #[test]
    fn replies_cut_anywhere_are_no_harm() {
        for end in 0..=REPLY.len() {
            let loaders = parse(&REPLY[..end]);
            assert!(loaders.len() <= 5 && may_be_garbage(&loaders, Bytes(1 << 24)) <= Bytes(8 * 9_205_000));
        }
    }
}
