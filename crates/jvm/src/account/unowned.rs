//! Finds the stretches of a process that may belong to a library: everything that has no certain owner.

use super::claims::Claims;
use super::close::{malloc_claims, named};
use super::evidence::{ProcessReadings, Said};
use super::plan::AccountPlan;
use super::tables::ended_stacks;
use crate::kernel::mapping::Mapping;
use std::collections::BTreeSet;

/// A stretch that may be a library's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unowned {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// The kernel's name for its mapping, unless malloc or the JVM set it.
    pub name: Option<String>,
    /// Whether it is as long as a thread's stack. Libraries keep the thread's handle, which points to the stack's end.
    pub like_stack: bool,
}

/// The stretches of resident mappings that no certain owner claims, in address order.
pub fn unowned(said: &Said, seen: &ProcessReadings) -> Vec<Unowned> {
    let maps: Vec<Mapping> = seen.smaps.maps().cloned().collect();
    let named = named(said, &maps, &seen.stacks, &seen.malloc_ranges());
    let claims = Claims::settle(named.into_iter().chain(malloc_claims(seen)).collect());
    let plan = AccountPlan::new(&seen.smaps, &claims);
    let stacks: BTreeSet<u64> =
        ended_stacks(&maps, &claims, seen.smaps.page(), !said.unanswered).iter().map(|claim| claim.start).collect();
    let free = plan.mappings.iter().flat_map(|planned| {
        let mapping = &maps[planned.index];
        let anonymous = mapping.inode == 0 && mapping.perms.starts_with('r');
        let anonymous = anonymous && (mapping.path.is_empty() || mapping.path.starts_with("[anon"));
        let segments = planned.segments.iter().filter(move |segment| anonymous && segment.claim.is_none());
        segments.map(move |segment| (mapping, segment.start, segment.end))
    });
    let stretch = |(mapping, start, end): (&Mapping, u64, u64)| Unowned {
        start,
        end,
        name: kernel_name(&mapping.path),
        like_stack: stacks.contains(&start),
    };
    free.map(stretch).collect()
}

/// The name of a mapping (`PR_SET_VMA_ANON_NAME`), unless the C library set it: `[anon: glibc: malloc]`.
fn kernel_name(path: &str) -> Option<String> {
    let name = path.strip_prefix("[anon:")?.trim_end_matches(']').trim();
    (!name.is_empty() && !name.starts_with("glibc")).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::elf::Image;
    use crate::observe::smaps::Smaps;
    use crate::observe::stacks::ThreadStack;

    #[test]
    fn names_set_by_the_c_library_belong_to_malloc() {
        let names = ["[anon: glibc: malloc arena]", "[anon:]", "", "[heap]", "[anon:cache of foo]"].map(kernel_name);
        assert_eq!(names, [None, None, None, None, Some("cache of foo".to_owned())]);
    }

    /// A stretch may be a library's only if it is anonymous, readable, and unclaimed.
    #[test]
    fn owned_stretches_are_excluded() {
        let smaps = "10000-20000 rw-p 0 00:00 0\nRss: 64 kB\n20000-30000 rw-p 0 00:00 7 /tmp/libx.so\nRss: 4 kB\n\
                     30000-40000 rw-p 0 00:00 0\nRss: 4 kB\n50000-60000 rw-p 0 00:00 0 [anon:pool]\nRss: 8 kB\n\
                     70000-80000 rw-p 0 00:00 0\nRss: 8 kB\n90000-a0000 rw-p 0 00:00 0\nRss: 0 kB\n";
        let image = Image { start: 0x20000, end: 0x40000, path: "/tmp/libx.so".into() };
        let stacks = vec![ThreadStack { tid: 1, pointer: Some(0x7fff0) }];
        let seen = ProcessReadings { smaps: Smaps::parse(smaps), stacks, ..ProcessReadings::default() };
        let found = unowned(&Said { images: vec![image], ..Said::default() }, &seen);
        let found: Vec<_> = found.iter().map(|of| (of.start, of.end, of.name.as_deref())).collect();
        assert_eq!(found, [(0x10000, 0x20000, None), (0x50000, 0x60000, Some("pool"))]);
    }
}
