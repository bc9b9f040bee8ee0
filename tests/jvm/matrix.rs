//! Accounts of JVM releases on other distributions' C libraries, fetched by `tests/jvm/fetch-matrix`. Each change tests
//! one collector per cell; nightly runs (`LOADLINE_MATRIX=all`) test all of them, and this machine's JDKs, too.

use crate::account::{assert_closes, assert_whole, held};
use crate::invocation::{jdk, newest};
use crate::standing::LaunchPlan;
use crate::truth::truth;
use loadline_test_support::skip;
use std::path::{Path, PathBuf};

const VARIABLE: &str = "LOADLINE_MATRIX";
const COLLECTORS: [&str; 5] = ["G1", "Z", "Shenandoah", "Parallel", "Serial"];
const MIB: f64 = (1 << 20) as f64;

/// A JVM on a C library.
struct MatrixCell {
    release: u32,
    c_library: String,
    java: PathBuf,
}

fn fetched() -> Vec<MatrixCell> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("matrix");
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let cell = |home: PathBuf| {
        let (release, _) = home.file_name()?.to_str()?.split_once('-')?;
        let c_library = std::fs::read_to_string(home.join("c-library")).ok()?;
        Some(MatrixCell {
            release: release.parse().ok()?,
            c_library: c_library.trim().to_owned(),
            java: home.join("bin/java"),
        })
    };
    let mut cells: Vec<MatrixCell> = entries.filter_map(cell).collect();
    cells.sort_by(|a, b| (a.release, &a.c_library).cmp(&(b.release, &b.c_library)));
    cells
}

fn of_this_machine() -> impl Iterator<Item = MatrixCell> {
    let found = [11, 17, 21, 25].into_iter().filter_map(|release| Some((release, jdk(release)?)));
    found.map(|(release, jdk)| MatrixCell { release, c_library: "of this machine".to_owned(), java: jdk.java })
}

#[test]
fn accounts_add_up_on_other_jdks_and_c_libraries() {
    let (mut cells, all) = (fetched(), std::env::var(VARIABLE).is_ok_and(|which| which == "all"));
    if cells.is_empty() {
        return skip(VARIABLE, "`tests/jvm/fetch-matrix` has fetched nothing");
    }
    if all {
        cells.extend(of_this_machine());
    }
    println!("| JDK | C library | collector | RSS MiB | unexplained % | direct MiB |");
    for (n, cell) in cells.iter().enumerate() {
        let collectors = if all { COLLECTORS.as_slice() } else { &COLLECTORS[n % COLLECTORS.len()..][..1] };
        collectors.iter().for_each(|collector| weigh(cell, collector));
    }
}

/// Accounts for a server with known memory: it is found to the byte, and almost nothing is unexplained.
fn weigh(cell: &MatrixCell, collector: &str) {
    let java = cell.java.display().to_string();
    let options = format!("-Xmx128m -XX:+UnlockExperimentalVMOptions -XX:+Use{collector}GC");
    // The tools are from this release, but the JVM is the cell's own.
    let tools = newest().pop().unwrap();
    let mut subject = LaunchPlan::on(tools, &options).java(&java).start("DirectBuffers", "");
    let _ = subject.says("BEFORE");
    let before = subject.account();
    subject.go_on();
    let _ = subject.says("AFTER");
    let document = subject.document("");
    // JDK 11 does not report allocation per thread, and nongenerational ZGC maps its heap three times.
    if cell.release > 11 && collector != "Z" {
        assert_whole(&document);
    }
    let account = document.mark.account.unwrap();
    let share = 100.0 * account.unexplained_bytes as f64 / account.total_bytes as f64;
    let direct = held(&account, "malloc.direct");
    println!(
        "| {} | {} | {collector} | {:.1} | {share:.3} | {:.1} |",
        cell.release,
        cell.c_library,
        account.total_bytes as f64 / MIB,
        direct as f64 / MIB
    );
    assert_closes(&account, 1);
    assert_eq!(direct - held(&before, "malloc.direct"), truth("DirectBuffers", "direct_bytes"));
    assert_eq!(held(&account, "malloc.unsplit"), 0, "{:?}", account.owners);
}
