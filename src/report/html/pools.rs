//! Netty's pools over the marks of a trial: a column for each mark, a row for each arena, a cell for each chunk;
//! above them RSS and direct memory.

use super::tables::scrolling;
use crate::record::{Mark, NettyAllocator, NettyArena, NettyChunk, NettyMemory, NettyPools, Trial};
use crate::report::markup::{Markup, shortened};
use crate::report::summary::{direct_bytes, explanations, mib, shade};
use crate::report::words::name_of;
use crate::units::several;

/// Cells of one arena at one mark; the JSON document has all.
const CELLS_MAX: usize = 400;
/// Arenas that are drawn; a server has one or two for each core.
const ARENAS_MAX: usize = 64;
/// Names of classes and lists.
const NAME_CHARS: usize = 60;

/// An arena through a trial: where it is found at each mark.
type Place = (String, String, NettyMemory, u64);

/// Writes the section; nothing where no mark has pools.
pub(super) fn write(out: &mut Markup, trial: &Trial) {
    let marks: Vec<(&Mark, &NettyPools)> =
        trial.marks.iter().filter_map(|mark| Some((mark, mark.netty.as_ref()?))).collect();
    if marks.is_empty() {
        return;
    }
    out.words("h3", &[], "Netty's pools, MiB");
    let mut places: Vec<Place> = Vec::new();
    for (_, pools) in &marks {
        for (place, arena) in arenas(pools) {
            if !arena.chunks.is_empty() && !places.contains(&place) {
                places.push(place);
            }
        }
    }
    let head = |out: &mut Markup| {
        for name in std::iter::once("arena").chain(marks.iter().map(|(mark, _)| mark.name.as_str())) {
            out.words("th", &[("scope", &"col")], shortened(name, NAME_CHARS));
        }
    };
    scrolling(out, "Netty's pools", &[("class", &"pools")], head, |out| {
        totals(out, &marks);
        places.iter().take(ARENAS_MAX).for_each(|place| row(out, place, &marks));
    });
    legend(out, places.len());
    for why in explanations(trial) {
        out.words("p", &[("class", &"notes")], why);
    }
}

fn arenas(pools: &NettyPools) -> impl Iterator<Item = (Place, &NettyArena)> {
    let allocators = pools.libraries.iter().flat_map(|library| &library.allocators);
    allocators.flat_map(|allocator: &NettyAllocator| {
        let place = |arena: &NettyArena| (allocator.class.clone(), allocator.id.clone(), arena.memory, arena.index);
        allocator.arenas.iter().map(move |arena| (place(arena), arena))
    })
}

fn totals(out: &mut Markup, marks: &[(&Mark, &NettyPools)]) {
    let mut line = |name: &str, of: &dyn Fn(&Mark, &NettyPools) -> Option<u64>| {
        out.element("tr", &[], |out| {
            out.words("th", &[("scope", &"row")], name);
            marks.iter().for_each(|(mark, pools)| {
                out.words("td", &[], mib(of(mark, pools)));
            });
        })
        .line();
    };
    line("RSS", &|mark, _| Some(mark.rss_bytes));
    line("direct memory", &|_, pools| direct_bytes(pools));
}

fn row(out: &mut Markup, place: &Place, marks: &[(&Mark, &NettyPools)]) {
    let (class, _, memory, index) = place;
    let class = class.rsplit('.').next().unwrap_or_default();
    out.element("tr", &[], |out| {
        out.element("th", &[("scope", &"row")], |out| {
            out.words("div", &[], format!("{} {index}", name_of(memory)));
            out.words("div", &[("class", &"soft")], shortened(class, NAME_CHARS));
        });
        for (_, pools) in marks {
            let found = arenas(pools).find(|(at, _)| at == place);
            out.element("td", &[], |out| match found {
                Some((_, arena)) if !arena.chunks.is_empty() => cells(out, &arena.chunks),
                _ => {
                    out.text("-");
                }
            });
        }
    })
    .line();
}

/// The chunks of an arena at a mark, with their sums in words.
fn cells(out: &mut Markup, chunks: &[NettyChunk]) {
    let sum = |what: fn(&NettyChunk) -> u64| chunks.iter().map(what).fold(0, u64::saturating_add);
    let mib = |bytes: u64| mib(Some(bytes));
    let (bytes, used, kept) = (sum(|chunk| chunk.bytes), sum(NettyChunk::used_bytes), sum(|chunk| chunk.kept_bytes));
    let by_caches = if kept > 0 { format!(", {} by caches", mib(kept)) } else { String::new() };
    let words = format!("{}, {} of {} used{by_caches}", several(chunks.len() as u64, "chunk"), mib(used), mib(bytes));
    out.element("div", &[("class", &"chunks"), ("role", &"img"), ("aria-label", &words)], |out| {
        for chunk in chunks.iter().take(CELLS_MAX) {
            let kept = NettyChunk { free_bytes: Some(chunk.bytes.saturating_sub(chunk.kept_bytes)), ..chunk.clone() };
            let class = format!("u{} k{}", shade(chunk), shade(&kept));
            let list = name_of(chunk.list);
            let title = format!("{list}: {} of {} used", mib(chunk.used_bytes()), mib(chunk.bytes));
            out.element("i", &[("class", &class), ("title", &title)], |_| {});
        }
    });
    let more = chunks.len().saturating_sub(CELLS_MAX);
    let words = if more > 0 { format!("{words}; {more} cells are left out") } else { words };
    out.words("div", &[("class", &"soft")], words);
}

fn legend(out: &mut Markup, arenas: usize) {
    out.element("p", &[("class", &"notes")], |out| {
        out.text("A cell is a chunk, filled as far as it is used: ");
        out.element("span", &[("class", &"chunks")], |out| {
            out.element("i", &[("class", &"u6 k0")], |_| {});
        });
        out.text(" handed out or in part of a page, ");
        out.element("span", &[("class", &"chunks")], |out| {
            out.element("i", &[("class", &"u6 k6")], |_| {});
        });
        out.text(" kept in use by freed buffers in thread caches.");
        if arenas > ARENAS_MAX {
            out.text(format!(" {} more arenas stand in the JSON document.", arenas - ARENAS_MAX));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::NettyLibrary;

    fn page(chunks: Vec<NettyChunk>) -> String {
        let arena = NettyArena { chunks, ..NettyArena::default() };
        let allocator = NettyAllocator {
            class: "a.<i><b>\"><script>".to_owned(),
            arenas: vec![arena],
            ..NettyAllocator::default()
        };
        let library = NettyLibrary { allocators: vec![allocator], ..NettyLibrary::default() };
        let netty = Some(NettyPools { libraries: vec![library], ..NettyPools::default() });
        let mut trial = Trial::new("c", 0, 0);
        trial.marks = vec![Mark { name: "loaded".to_owned(), netty, ..Mark::default() }];
        let mut out = Markup::new();
        write(&mut out, &trial);
        out.as_str().to_owned()
    }

    #[test]
    fn every_chunk_has_a_cell_filled_as_far_as_it_is_used() {
        let chunk = |free: u64, kept_bytes| NettyChunk {
            bytes: 16 << 20,
            free_bytes: Some(free << 20),
            kept_bytes,
            ..NettyChunk::default()
        };
        let text = page(vec![chunk(16, 0), chunk(8, 8 << 20), chunk(0, 0)]);
        for class in ["u0 k0", "u5 k5", "u9 k0"] {
            assert_eq!(text.matches(&format!("class=\"{class}\"")).count(), 1, "{text}");
        }
        assert!(text.contains("3 chunks, 24.0 of 48.0 used, 8.0 by caches"), "{text}");
        assert!(!text.contains("<script>") && !text.contains("<b>") && text.contains("&lt;i&gt;"), "{text}");
    }

    #[test]
    fn many_chunks_are_bounded_and_none_leave_nothing() {
        let text = page(vec![NettyChunk { bytes: 1, ..NettyChunk::default() }; 1000]);
        assert!(text.contains("600 cells are left out"));
        let mut out = Markup::new();
        write(&mut out, &Trial::new("c", 0, 0));
        assert_eq!(out, Markup::new());
    }
}
