//! Libraries that map their own memory, in JVMs of every collector: the memory is attributed to them, not to the
//! collector's tables, which keep their normal size.

use crate::account::{assert_closes, held};
use crate::invocation::{newest, releases};
use crate::standing::{LaunchPlan, Standing};
use loadline::record::AccountRecord;
use loadline_test_support::{long_tests_run, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

const MIB: u64 = 1 << 20;
const COLLECTORS: [&str; 5] = ["Serial", "Parallel", "G1", "Z", "Shenandoah"];
/// Additional memory of an embedded allocator: its tables and partially filled slabs.
const BESIDE: u64 = 4 * MIB;

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jvm/native")
}

/// Builds a library from a source with these compiler options, if possible.
pub(crate) fn build(folder: &Path, name: &str, words: &[&str]) -> Option<PathBuf> {
    let library = folder.join(format!("lib{name}.so"));
    let mut compiler = Command::new("gcc");
    compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library);
    match compiler.arg(sources().join(format!("{name}.c"))).args(words).output() {
        Ok(built) if built.status.success() => Some(library),
        Ok(built) => {
            let said = String::from_utf8_lossy(&built.stderr).lines().next().unwrap_or_default().to_owned();
            skip("LOADLINE_NATIVE", &format!("gcc cannot build {name} ({said})"));
            None
        }
        Err(why) => {
            skip("LOADLINE_NATIVE", &format!("gcc cannot be run ({why})"));
            None
        }
    }
}

/// A JVM that has loaded these libraries.
fn loaded(release: u32, options: &str, libraries: &[&Path]) -> Standing {
    let words: Vec<String> = libraries.iter().map(|library| library.display().to_string()).collect();
    // An allocator needs more thread-local memory than the C library reserves for late libraries.
    let plan = LaunchPlan::on(release, &format!("-Xmx128m -Xms128m {options}"));
    let plan = plan.env("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384");
    // tcmalloc's first memory comes from `brk` and is in `[heap]`, which belongs to the C library.
    let plan = plan.env("TCMALLOC_SKIP_SBRK", "1");
    let mut standing = plan.start_source(".", &sources().join("Loads.java"), &words.join(" "));
    standing.says("ready");
    standing
}

/// Resident bytes of an owner's parts with this name prefix.
fn part(account: &AccountRecord, owner: &str, name: &str) -> u64 {
    let owners = account.owners.iter().filter(|held| held.name == owner);
    let parts = owners.flat_map(|held| &held.detail).filter(|detail| detail.name.starts_with(name));
    parts.map(|detail| detail.rss_bytes).sum()
}

#[test]
fn mappings_of_a_library_are_never_taken_for_gc_tables() {
    if !long_tests_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(pool) = build(folder.path(), "pool", &[]) else { return };
    for release in releases() {
        for collector in COLLECTORS {
            let options = format!("-XX:+Use{collector}GC -XX:+UnlockExperimentalVMOptions");
            if release == 11 && collector != "Serial" && collector != "Parallel" && collector != "G1" {
                continue;
            }
            let (with, without) =
                (loaded(release, &options, &[&pool]).account(), loaded(release, &options, &[]).account());
            println!(
                "{release} {collector}: native {} gc {} against {}, unexplained {} against {}",
                held(&with, "native"),
                held(&with, "gc"),
                held(&without, "gc"),
                with.unexplained_bytes,
                without.unexplained_bytes
            );
            assert_closes(&with, 2);
            let named = [
                ("referenced by its data", 8),
                ("referenced by memory it owns", 4),
                ("referenced by one of its objects", 2),
            ];
            for (how, mib) in named {
                assert_eq!(
                    part(&with, "native", &format!("libpool.so: {how}")),
                    mib * MIB,
                    "{release} {collector} {how}"
                );
            }
            let moved = held(&with, "gc").abs_diff(held(&without, "gc"));
            assert!(moved < MIB, "{release} {collector}: the tables differ by {moved} bytes");
        }
    }
}

#[test]
fn an_embedded_jemalloc_is_divided_into_used_and_free() {
    let archive = "/usr/lib/x86_64-linux-gnu/libjemalloc_pic.a";
    let folder = tempfile::tempdir().unwrap();
    let words = ["-Wl,--exclude-libs,ALL", "-Wl,-Bsymbolic", archive, "-lm", "-lstdc++", "-lpthread"];
    let Some(library) = build(folder.path(), "embedded", &words) else { return };
    let stripped = folder.path().join("libstripped.so");
    let strip = Command::new("strip").arg("-o").args([&stripped, &library]).status();
    assert!(strip.is_ok_and(|status| status.success()));
    for release in newest() {
        for library in [&library, &stripped] {
            let account = loaded(release, "-XX:+UseSerialGC", &[library]).account();
            let small = 100_000 * 112;
            let (live, free) = (32 * MIB + small * 3 / 4, 32 * MIB + small / 4);
            let (used, kept) = (held(&account, "native"), held(&account, "native.retained"));
            println!("{used} of {live} in use, {kept} of {free} kept");
            assert!((live..live + BESIDE).contains(&used), "{used} of {live}");
            assert!((free..free + BESIDE).contains(&kept), "{kept} of {free}");
            assert_closes(&account, 2);
        }
    }
}

/// Allocators without special rules: their memory is found by pointers, and attributed to the library with the most
/// pointers to it, be it the allocator or its user.
#[test]
fn memory_of_other_allocators_is_found_by_pointers() {
    for (file, function, name) in
        [("libmimalloc.so.2", "mi_malloc", "mimalloc"), ("libtcmalloc_minimal.so.4", "tc_malloc", "tcmalloc")]
    {
        let folder = tempfile::tempdir().unwrap();
        let allocate = format!("-DALLOCATE=\"{function}\"");
        let Some(library) = build(folder.path(), "copied", &[&allocate, "-ldl"]) else { return };
        let original = Path::new("/usr/lib/x86_64-linux-gnu").join(file);
        if std::fs::copy(&original, folder.path().join("libinner.so")).is_err() {
            skip("LOADLINE_NATIVE", &format!("there is no {}", original.display()));
            continue;
        }
        for release in newest() {
            let account = loaded(release, "-XX:+UseSerialGC", &[&library]).account();
            let inner = part(&account, "native", &format!("libinner.so ({name})"));
            let user = part(&account, "native", "libcopied.so");
            println!("{name}: {inner} held by the allocator, {user} by its user");
            // tcmalloc's first block is in `[heap]`, shared with the C library's malloc, which is then not split.
            let in_heap = if name == "tcmalloc" { held(&account, "malloc.unsplit").min(MIB / 2) } else { 0 };
            let found = inner + user + in_heap;
            assert!((24 * MIB..24 * MIB + BESIDE).contains(&found), "{inner} + {user} + {in_heap}");
            assert_closes(&account, 2);
        }
    }
}
