//! The words for owners: what the screen calls them, what they are, and where they stand in the picture.

/// Parts of the picture of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// The Java heap, in use or not.
    Heap,
    /// Class metadata and compiled code.
    Classes,
    /// Chunks in use.
    Live,
    /// Free chunks whose pages are resident.
    Retained,
    /// Pages of files, with the data of libraries.
    Files,
    /// Stacks, the collector's tables, and what has no owner.
    Rest,
}

/// Each part with the letter that draws it and its words, in the order of a bar.
pub(super) const GROUPS: [(Group, char, &str); 6] = [
    (Group::Heap, 'H', "Java heap"),
    (Group::Classes, 'M', "metaspace, class space, code"),
    (Group::Live, 'L', "malloc in use"),
    (Group::Retained, 'R', "malloc retained"),
    (Group::Files, 'F', "files, libraries, CDS"),
    (Group::Rest, '.', "stacks, GC tables, the rest"),
];

/// What the account calls the pages nobody owns.
pub(super) const UNEXPLAINED: &str = "unexplained";

/// The words for one owner.
struct Words {
    /// As in the result document.
    name: &'static str,
    /// On the screen.
    screen: &'static str,
    /// In plain words; at most 27 characters, which is what 80 columns leave.
    what: &'static str,
    group: Group,
}

const fn words(name: &'static str, screen: &'static str, what: &'static str, group: Group) -> Words {
    Words { name, screen, what, group }
}

/// In the order of the account.
const OWNERS: &[Words] = &[
    words("java_heap", "Java heap", "objects and free space", Group::Heap),
    words("java_heap.used", "Java heap, used", "objects, live or garbage", Group::Heap),
    words("java_heap.live", "Java heap, live", "objects a full GC keeps", Group::Heap),
    words("java_heap.garbage", "Java heap, garbage", "objects a full GC frees", Group::Heap),
    words("java_heap.free", "Java heap, free-committed", "touched once, empty now", Group::Heap),
    words("cds", "CDS archive", "classes mapped from the JDK", Group::Files),
    words("metaspace", "metaspace", "methods, constant pools", Group::Classes),
    words("class_space", "class space", "a header for each class", Group::Classes),
    words("code_cache", "code cache", "compiled code and stubs", Group::Classes),
    words("thread_stacks", "thread stacks", "of Java and JVM threads", Group::Rest),
    words("gc", "GC tables", "cards, marks, remsets", Group::Rest),
    words("libjvm", "libjvm", "the JVM itself", Group::Files),
    words("libraries", "libraries", "other code and its data", Group::Files),
    words("mapped_files", "mapped files", "jars, modules, buffers", Group::Files),
    words("malloc.live", "malloc live", "chunks in use", Group::Live),
    words("malloc.non_hotspot", "malloc non-HotSpot", "zlib, JNI, native libraries", Group::Live),
    words("malloc.mmapped", "malloc mmapped", "large chunks, mapped alone", Group::Live),
    words("malloc.retained", "malloc retained", "freed chunks, kept by glibc", Group::Retained),
    words("malloc.unsplit", "malloc unsplit", "in use or freed, not known", Group::Live),
    words(UNEXPLAINED, UNEXPLAINED, "no owner found", Group::Rest),
];

fn find(name: &str) -> Option<&'static Words> {
    OWNERS.iter().find(|owner| owner.name == name)
}

/// What the screen calls an owner; one that is not known keeps its name.
pub(in crate::report) fn screen_name(name: &str) -> &str {
    find(name).map_or(name, |owner| owner.screen)
}

/// What an owner is, in plain words; empty for one that is not known.
pub(super) fn what_it_is(name: &str) -> &'static str {
    find(name).map_or("", |owner| owner.what)
}

/// Where an owner stands in the picture.
pub(super) fn group(name: &str) -> Group {
    find(name).map_or(Group::Rest, |owner| owner.group)
}

/// Where an owner stands in the account; unknown ones before the unexplained.
pub(in crate::report) fn place(name: &str) -> usize {
    OWNERS.iter().position(|owner| owner.name == name).map_or(2 * OWNERS.len() - 3, |at| 2 * at)
}

/// Whether this is the Java heap or a part of it.
pub(super) fn is_heap(name: &str) -> bool {
    name == "java_heap" || name.starts_with("java_heap.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_fit_their_column_and_names_are_single() {
        for owner in OWNERS {
            assert!(owner.what.len() <= 27 && owner.screen.len() <= 25, "{}", owner.name);
            assert_eq!(OWNERS.iter().filter(|other| other.screen == owner.screen).count(), 1, "{}", owner.screen);
        }
    }

    #[test]
    fn unknown_owners_keep_their_name_and_stand_before_the_unexplained() {
        assert_eq!((screen_name("later"), what_it_is("later")), ("later", ""));
        assert!(place("malloc.unsplit") < place("later") && place("later") < place(UNEXPLAINED));
        assert!(is_heap("java_heap.used") && !is_heap("java_heaps"));
    }
}
