//! Counts the classes available to a JVM, loaded or not: in jars and the jars inside them, in directories, and in a
//! JDK's runtime image. Rules of thumb use these counts.
//!
//! The image is `lib/modules` (JDK 9 and newer, `src/java.base/share/native/libjimage/imageFile.hpp`): a header of
//! seven numbers, a table of redirections, a table of offsets, attributes, and strings. An entry's attribute is a byte
//! with its kind (5 bits) and its length minus one (3 bits), followed by a big-endian number of that length.

use super::Unavailable;
use flate2::read::DeflateDecoder;
use loadline_base::bounded;
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ReaderAt, ZipArchive};
use std::io::{Cursor, Read};
use std::path::Path;

const SOURCE: &str = "classes";
/// Larger nested jars are not counted; the others are read into memory, one at a time per level.
const INNER_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of bytes read from nested jars, to bound the time of a count.
const INNER_BYTES_SUM_MAX: u64 = 2 << 30;
/// Maximum number of bytes read from an image: header, tables, attributes, and strings, without contents.
const IMAGE_BYTES_MAX: u64 = 64 << 20;
/// Maximum nesting depth inside the outer jar. In practice, jars are not nested deeper.
const DEPTH_MAX: u32 = 3;
/// Maximum number of entries in a directory tree.
const FOLDER_ENTRIES_MAX: usize = 100_000;
/// `0xCAFEDADA`, in the machine's byte order.
const IMAGE_MAGIC: u32 = 0xCAFE_DADA;
/// The attribute with the extension's offset among the strings.
const EXTENSION: u8 = 4;

/// Classes in a jar, including nested jars. Fails if the file cannot be read or is not a jar.
pub fn in_jar(path: &Path) -> Result<u64, Unavailable> {
    let file = bounded::open(path).map_err(Unavailable::io(SOURCE))?;
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    // Reads only the jar's directory, and nested jars.
    let archive = ZipArchive::from_file(file, &mut buffer).map_err(refuse)?;
    let mut left = INNER_BYTES_SUM_MAX;
    in_archive(&archive, (&mut buffer, &mut left), 0)
}

/// Classes in a directory tree.
pub fn in_folder(path: &Path) -> u64 {
    let (mut folders, mut found, mut seen) = (vec![path.to_owned()], 0, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > FOLDER_ENTRIES_MAX {
                return found;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) if is_class(entry.file_name().as_encoded_bytes()) => found += 1,
                _ => {}
            }
        }
    }
    found
}

/// Classes in a JDK's runtime image, `lib/modules`. Fails if the image cannot be read or has an unknown format.
pub fn in_image(path: &Path) -> Result<u64, Unavailable> {
    let unknown = || Unavailable::new(SOURCE, format!("{} has an unknown format", path.display()));
    let head = read_start(path, HEADER_BYTES)?;
    let header = ImageHeader::parse(&head).ok_or_else(unknown)?;
    let image = read_start(path, header.end().filter(|end| *end <= IMAGE_BYTES_MAX).ok_or_else(unknown)?)?;
    header.classes(&image).ok_or_else(unknown)
}

fn refuse(cause: rawzip::Error) -> Unavailable {
    Unavailable::new(SOURCE, format!("not a jar: {cause}"))
}

/// Classes in a nested jar. `left` is how much may still be read.
fn in_inner(content: impl Read, left: &mut u64, depth: u32) -> Result<u64, Unavailable> {
    // Truncated content is not a jar and counts as zero classes.
    let bytes = bounded::bytes_of(content, INNER_BYTES_MAX.min(*left)).unwrap_or_default();
    *left = left.saturating_sub(bytes.len() as u64);
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::from_seekable(Cursor::new(bytes), &mut buffer).map_err(refuse)?;
    in_archive(&archive, (&mut buffer, left), depth)
}

/// Classes according to a jar's directory, read through a buffer; `left` as in [`in_inner`].
fn in_archive<R: ReaderAt>(
    archive: &ZipArchive<R>,
    (buffer, left): (&mut [u8], &mut u64),
    depth: u32,
) -> Result<u64, Unavailable> {
    let mut entries = archive.entries(buffer);
    let mut found = 0;
    while let Some(entry) = entries.next_entry().map_err(refuse)? {
        let path = entry.file_path();
        let name: &[u8] = path.as_ref();
        if is_class(name) {
            found += 1;
        } else if name.ends_with(b".jar") && depth < DEPTH_MAX {
            let Ok(inner) = archive.get_entry(entry.wayfinder()) else { continue };
            let inside = match entry.compression_method() {
                CompressionMethod::STORE => in_inner(inner.reader(), left, depth + 1),
                CompressionMethod::DEFLATE => in_inner(DeflateDecoder::new(inner.reader()), left, depth + 1),
                _ => Ok(0),
            };
            found += inside.unwrap_or(0);
        }
    }
    Ok(found)
}

/// Excludes the descriptors of modules and packages, which are never loaded.
fn is_class(name: &[u8]) -> bool {
    let file = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    file.ends_with(b".class") && file != b"module-info.class" && file != b"package-info.class"
}

const HEADER_BYTES: u64 = 28;

/// The numbers in an image's header that give the lengths of its parts.
struct ImageHeader {
    length: u64,
    attributes: u64,
    strings: u64,
}

impl ImageHeader {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| word(bytes, 4 * at);
        (number(0)? == IMAGE_MAGIC).then_some(())?;
        // Version, flags, and the number of resources are not needed.
        Some(Self { length: number(4)?.into(), attributes: number(5)?.into(), strings: number(6)?.into() })
    }

    /// Returns the offset at which the contents begin.
    fn end(&self) -> Option<u64> {
        let tables = HEADER_BYTES + 8 * self.length;
        tables.checked_add(self.attributes)?.checked_add(self.strings)
    }

    fn classes(&self, image: &[u8]) -> Option<u64> {
        let offsets = image.get((HEADER_BYTES + 4 * self.length) as usize..)?;
        let attributes = image.get((HEADER_BYTES + 8 * self.length) as usize..)?;
        let strings = attributes.get(self.attributes as usize..)?;
        let mut found = 0;
        for entry in 0..self.length as usize {
            let at = word(offsets, 4 * entry)? as usize;
            let extension = attribute(attributes.get(at..)?, EXTENSION);
            let text = extension.and_then(|at| strings.get(at as usize..)?.split(|byte| *byte == 0).next());
            found += u64::from(text == Some(b"class"));
        }
        Some(found)
    }
}

fn attribute(bytes: &[u8], wanted: u8) -> Option<u64> {
    let mut at = 0;
    loop {
        let (kind, length) = (bytes.get(at)? >> 3, usize::from(bytes.get(at)? & 7) + 1);
        if kind == 0 {
            return None;
        }
        let value = bytes.get(at + 1..at + 1 + length)?;
        if kind == wanted {
            return Some(value.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
        }
        at += 1 + length;
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn read_start(path: &Path, length: u64) -> Result<Vec<u8>, Unavailable> {
    let mut bytes = Vec::new();
    let file = bounded::open(path).map_err(Unavailable::io(SOURCE))?;
    file.take(length).read_to_end(&mut bytes).map_err(Unavailable::io(SOURCE))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_test_support::jar;
    use proptest::prelude::*;

    fn image(extensions: &[&str]) -> Vec<u8> {
        let (mut attributes, mut strings, mut offsets) = (Vec::new(), vec![0], Vec::new());
        for extension in extensions {
            offsets.push(attributes.len() as u32);
            // Module, then extension in two bytes, then the end.
            attributes.extend([1 << 3, 0, EXTENSION << 3 | 1]);
            attributes.extend((strings.len() as u16).to_be_bytes());
            attributes.push(0);
            strings.extend(extension.as_bytes());
            strings.push(0);
        }
        let count = extensions.len() as u32;
        let head = [IMAGE_MAGIC, 1 << 16, 0, count, count, attributes.len() as u32, strings.len() as u32];
        let words = head.into_iter().chain((0..count).map(|_| 0)).chain(offsets);
        let mut bytes: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
        bytes.extend(attributes);
        bytes.extend(strings);
        bytes
    }

    fn counted(bytes: &[u8]) -> Option<u64> {
        ImageHeader::parse(bytes)?.classes(bytes)
    }

    #[test]
    fn image_resources_other_than_classes_do_not_count() {
        assert_eq!(counted(&image(&["class", "properties", "class", "", "classes"])), Some(2));
        assert_eq!(counted(&image(&[])), Some(0));
    }

    #[test]
    fn nested_jars_are_counted() {
        let inner = jar(&[("a/B.class", b"x"), ("a/B$1.class", b"x"), ("package-info.class", b"x")]);
        let outer =
            jar(&[("BOOT-INF/lib/inner.jar", &inner), ("C.class", b"x"), ("module-info.class", b""), ("x.txt", b"")]);
        let counted = |bytes: &[u8]| in_inner(bytes, &mut INNER_BYTES_SUM_MAX.clone(), 0);
        assert_eq!(counted(&outer).unwrap(), 3);
        assert!(counted(b"no jar at all").is_err());
        assert_eq!(in_inner(&*outer, &mut (outer.len() as u64), 0).unwrap(), 1, "the inner jar exceeds the budget");
        for cut in 0..outer.len() {
            // A count or an error, never a panic.
            let _ = counted(&outer[..cut]);
        }
    }

    proptest! {
        #[test]
        fn classes_of_a_damaged_image_are_counted_without_a_panic(cut in 0usize..200, at in 0usize..200, byte: u8) {
            let mut bytes = image(&["class", "properties", "class"]);
            let place = at % bytes.len();
            bytes[place] = byte;
            bytes.truncate(cut);
            let _ = counted(&bytes);
        }
    }
}
