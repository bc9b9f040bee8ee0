//! Histories: data survives, however often they are closed, truncated, or damaged.

use super::bounds::Bounds;
use super::column::Column;
use super::history::{History, Past, TIERS, Tier};
use super::kept::{End, Kept};
use super::sample::Sample;
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// The path of a history, in the returned temporary directory.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.history");
    (folder, path)
}

fn kept() -> Kept {
    Kept { name: "shop.service".to_owned(), pid: 7, started_ticks: 11, every_ms: 10_000, ..Kept::default() }
}

/// The sample at this multiple of ten seconds, with only anonymous memory.
fn sample(number: u64, mib: u64) -> Sample {
    let mut sample = Sample::at(number * 10_000 + 37);
    sample.set(Column::RssAnon, mib << 20);
    sample
}

fn filled(path: &Path, samples: impl IntoIterator<Item = (u64, u64)>) {
    let mut history = History::open(path, &kept()).unwrap();
    for (number, mib) in samples {
        assert!(history.add(&sample(number, mib)).unwrap());
    }
}

#[test]
fn cells_have_minimum_mean_and_maximum_and_the_file_never_grows() {
    let (_folder, path) = place();
    // Forty days, so that every ring wraps; memory grows by a megabyte every ten minutes, and varies within each
    // minute.
    let days = 40 * 24 * 360;
    filled(&path, (0..days).map(|number| (number, number / 60 + number % 6)));
    let past = Past::read(&path).unwrap();
    let held = |tier| past.cells(tier).len();
    assert_eq!((held(Tier::Samples), held(Tier::Minutes), held(Tier::TenMinutes)), (360, 1440, 4320));
    for (tier, samples) in [(Tier::Samples, 1), (Tier::Minutes, 6), (Tier::TenMinutes, 60)] {
        let numbers: Vec<u64> = past.cells(tier).iter().map(|cell| cell.number).collect();
        let last = (days - 1) / samples;
        assert_eq!(numbers, (last + 1 - numbers.len() as u64..=last).collect::<Vec<_>>(), "{tier:?}");
        for cell in past.cells(tier) {
            assert_eq!(u64::from(cell.samples), samples, "{tier:?}");
        }
    }
    let ten = &past.cells(Tier::TenMinutes)[17];
    let mib = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
    assert_eq!(mib(ten.least(Column::RssAnon)), Some(ten.number as f64));
    assert_eq!(mib(ten.most(Column::RssAnon)), Some(ten.number as f64 + 5.0));
    assert_eq!(mib(ten.sample().get(Column::RssAnon)), Some(ten.number as f64 + 2.5));
    assert_eq!(ten.least(Column::HeapUsed), None, "a column without values has no minimum");
    let about = fs::metadata(&path).unwrap();
    assert!(about.len() <= 2 << 20, "{} bytes", about.len());
    let (column, peak) = past.extremes[0];
    assert_eq!((column, peak.age_ms / 600_000), (Column::RssAnon, days / 60 - 1), "the sample at the column's maximum");
    assert_eq!(past.spoilt, 0);
}

#[test]
fn a_jvm_is_not_confused_with_another_with_its_pid() {
    let (folder, path) = place();
    filled(&path, [(1, 1)]);
    let other = Kept { started_ticks: 12, ..kept() };
    assert!(History::open(&path, &other).unwrap_err().to_string().contains("shop.service"));
    fs::write(&path, b"something else").unwrap();
    assert!(Past::read(&path).is_err());
    filled(&path, [(3, 1)]);
    assert_eq!(Past::read(&path).unwrap().cells(Tier::Samples).len(), 1, "a new history starts with one sample");
    assert_eq!(fs::read(folder.path().join("a.history.aside-1")).unwrap(), b"something else", "the other file is kept");
}

#[test]
fn a_foreign_file_with_a_historys_name_is_moved_aside() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let victim = at("victim");
    fs::write(&victim, "dear").unwrap();
    let path = at("a.history");
    let later: &dyn Fn() = &|| {
        // As a later version might start it.
        filled(&path, [(1, 1), (2, 2)]);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let ends = file.metadata().unwrap().len() - 4096;
        [0, ends].into_iter().for_each(|at| file.write_all_at(b"loadline.history/2\n\0", at).unwrap());
    };
    let link: &dyn Fn() = &|| symlink(&victim, &path).unwrap();
    let nowhere: &dyn Fn() = &|| symlink("nowhere", &path).unwrap();
    let pipe: &dyn Fn() = &|| mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let below: &dyn Fn() = &|| fs::create_dir(&path).unwrap();
    let foreign: &dyn Fn() = &|| {
        fs::write(&path, "").unwrap();
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
    };
    let mut planted = vec![(later, "start"), (link, "link"), (nowhere, "link"), (pipe, "regular"), (below, "regular")];
    if rustix::process::geteuid().is_root() {
        planted.push((foreign, "65534"));
    }
    for (number, (plant, why)) in planted.into_iter().enumerate() {
        plant();
        let before = fs::symlink_metadata(&path).unwrap();
        let mut history = History::open(&path, &kept()).unwrap();
        let aside = history.aside.clone().unwrap();
        assert_eq!(aside.to, at(&format!("a.history.aside-{}", number + 1)));
        assert!(aside.why.contains(why), "{aside:?}");
        assert_eq!(fs::symlink_metadata(&aside.to).unwrap().ino(), before.ino(), "it is kept: {aside:?}");
        assert!(history.add(&sample(1, 1)).unwrap());
        drop(history);
        assert!(History::open(&path, &kept()).unwrap().aside.is_none(), "a watch continues its own file");
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "dear");
    assert!(!at("nowhere").exists());
}

#[test]
fn an_empty_history_file_is_initialized() {
    let (_folder, path) = place();
    fs::write(&path, "").unwrap();
    assert_eq!(History::open(&path, &kept()).unwrap().aside, None);
    assert!(Past::read(&path).is_ok());
}

#[test]
fn a_history_has_one_writer() {
    let (_folder, path) = place();
    let _writer = History::open(&path, &kept()).unwrap();
    assert!(History::open(&path, &kept()).unwrap_err().to_string().contains("another `loadline watch`"));
    assert!(Past::read(&path).is_ok(), "a reader does not disturb the writer");
}

#[test]
fn a_history_is_due_for_sync_every_ten_minutes() {
    let (_folder, path) = place();
    let mut history = History::open(&path, &kept()).unwrap();
    assert!(history.due().is_some(), "a new description must be synced");
    history.settled();
    let mut due = Vec::new();
    for number in 3..200 {
        history.add(&sample(number, number)).unwrap();
        if history.due().is_some() {
            due.push(number);
            history.settled();
        }
    }
    assert_eq!(due, [60, 120, 180]);
    history.end(End::default()).unwrap();
    assert!(history.due().is_some(), "a recorded end must be synced");
}

#[test]
fn samples_with_jitter_are_all_kept() {
    let (_folder, path) = place();
    let mut history = History::open(&path, &kept()).unwrap();
    // At the boundary of two cells.
    let age_ms = |number: u64| number * 10_000 + 20_000 + [3, 0, 2, 9][number as usize % 4] - 4;
    let slots: Vec<u64> = (0..300).map(|number| age_ms(number) / 10_000).collect();
    assert!(slots.windows(2).any(|pair| pair[0] == pair[1]), "the jitter must put two samples into the same slot");
    for number in 0..300 {
        assert!(history.add(&Sample::at(age_ms(number))).unwrap(), "{number}");
    }
    let past = history.past().unwrap();
    assert_eq!(past.cells(Tier::Samples).len(), 300);
    for (cell, slot) in past.cells(Tier::Samples).iter().zip(slots) {
        assert!((slot..=slot + 1).contains(&cell.number), "{} instead of {slot}", cell.number);
    }
}

#[test]
fn a_jvms_bounds_are_known_even_if_its_end_was_missed() {
    let (_folder, path) = place();
    let of = |heap| Bounds { memory: 1 << 30, heap: Some(heap), ..Bounds::default() };
    let mut history = History::open(&path, &Kept { bounds: of(1), ..kept() }).unwrap();
    assert_eq!(Past::read(&path).unwrap().kept.bounds, of(1));
    for heap in [2, 3, 3, 4] {
        history.bound(of(heap)).unwrap();
        assert_eq!(Past::read(&path).unwrap().kept.bounds, of(heap), "bounds are on disk before the writer ends");
    }
}

#[test]
fn a_ring_keeps_only_recent_cells_after_a_gap() {
    let (_folder, path) = place();
    filled(&path, (0..500).chain([1 << 40]).map(|number| (number, 1)));
    let past = Past::read(&path).unwrap();
    for (tier, (_, size)) in Tier::ALL.into_iter().zip(TIERS) {
        let (first, last) = (past.cells(tier).first().unwrap().number, past.cells(tier).last().unwrap().number);
        assert!(last - first < size, "{tier:?}: cells {first} to {last} span more than the ring");
    }
}

#[test]
fn the_recent_pace_is_computed_without_reading_the_file() {
    let (_folder, path) = place();
    filled(&path, (0..1000).map(|number| (number, number % 100)));
    // The file's cells and incomplete ones.
    let mut history = History::open(&path, &kept()).unwrap();
    history.add(&sample(1000, 7)).unwrap();
    let (lately, past) = (history.lately(15).unwrap(), history.past().unwrap());
    let minutes = past.cells(Tier::Minutes);
    assert_eq!(lately.cells(Tier::Minutes), &minutes[minutes.len() - 16..]);
    assert_eq!(lately.cells(Tier::Samples).last(), past.cells(Tier::Samples).last());
}

/// A file system of 4 MiB; unmounted on drop. `None`, after reporting a skip, if it cannot be mounted.
struct SmallDisk(tempfile::TempDir);

#[expect(clippy::disallowed_methods, reason = "runs only mount(8) and umount(8)")]
fn called(program: &str, arguments: &[&str], folder: &Path) -> std::io::Result<std::process::Output> {
    std::process::Command::new(program).args(arguments).arg(folder).output()
}

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = called("mount", &["-t", "tmpfs", "-o", "size=4m", "none"], folder.path());
        if mounted.as_ref().is_ok_and(|mounted| mounted.status.success()) {
            return Some(Self(folder));
        }
        loadline_test_support::skip("LOADLINE_MACHINE", &format!("no file system can be mounted here: {mounted:?}"));
        None
    }

    /// Fills every page.
    fn fill(&self) {
        let mut filler = fs::File::create(self.0.path().join("filler")).unwrap();
        let cause = std::io::copy(&mut std::io::repeat(1), &mut filler).unwrap_err();
        assert_eq!(cause.kind(), std::io::ErrorKind::StorageFull);
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Removing the parent directory would detect a leftover mount.
        let _ = called("umount", &[], self.0.path());
    }
}

#[test]
fn a_temporarily_full_disk_loses_a_limited_number_of_samples() {
    let Some(disk) = SmallDisk::mount() else { return };
    let path = disk.0.path().join("a.history");
    let mut history = History::open(&path, &kept()).unwrap();
    let mut failed = 0;
    for number in 0..300 {
        match number {
            20 => disk.fill(),
            240 => fs::remove_file(disk.0.path().join("filler")).unwrap(),
            _ => {}
        }
        failed += u64::from(history.add(&sample(number, number)).is_err());
    }
    assert!(failed > 100, "{failed} writes failed");
    let lost = history.lost();
    assert!((1..=failed - 59).contains(&lost), "{lost} samples lost of {failed} that could not be written at once");
    let past = history.past().unwrap();
    assert_eq!(past, Past::read(&path).unwrap(), "the file contains everything that the writer knows");
    assert_eq!(past.cells(Tier::Samples).len() as u64, 300 - lost);
    for (tier, samples, cells) in [(Tier::Minutes, 6, 50), (Tier::TenMinutes, 60, 5)] {
        assert_eq!(past.cells(tier).len(), cells, "{tier:?}");
        assert!(past.cells(tier).iter().all(|cell| cell.samples == samples), "{tier:?}: {past:?}");
    }
    assert_eq!(past.extremes[0].1.get(Column::RssAnon), Some(299 << 20));
    disk.fill();
    history.end(End { age_ms: 5, killed: None, charge: None }).unwrap();
    assert_eq!(Past::read(&path).unwrap().kept.end.map(|end| end.age_ms), Some(5), "the end has reserved space");
}

#[test]
fn a_second_sample_for_the_same_time_is_ignored() {
    let (_folder, path) = place();
    let mut history = History::open(&path, &kept()).unwrap();
    assert!(history.add(&sample(5, 1)).unwrap());
    assert!(!history.add(&sample(5, 2)).unwrap());
    assert!(!history.add(&sample(4, 2)).unwrap());
    assert!(history.add(&sample(400, 2)).unwrap(), "a sample after a gap of more than an hour is accepted");
    assert_eq!(history.past().unwrap().cells(Tier::Samples).len(), 1, "samples older than an hour are dropped");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The cells are the same, whichever process writes them, and however often it is killed between samples.
    #[test]
    fn a_killed_writer_keeps_all_samples(
        gaps in prop::collection::vec((1_u64..20, 0_u64..3000), 1..400),
        kills in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let [whole, killed] = ["whole.history", "killed.history"].map(|name| folder.path().join(name));
        let mut number = 0;
        let samples: Vec<(u64, u64)> = gaps.iter().map(|(gap, mib)| { number += gap; (number, *mib) }).collect();
        filled(&whole, samples.iter().copied());
        let mut cuts: Vec<usize> = kills.iter().map(|kill| kill.index(samples.len())).collect();
        cuts.extend([0, samples.len()]);
        cuts.sort_unstable();
        for pair in cuts.windows(2) {
            filled(&killed, samples[pair[0]..pair[1]].iter().copied());
        }
        let [one, other] = [&whole, &killed].map(|path| Past::read(path).unwrap());
        prop_assert_eq!(one, other);
    }

    /// A truncated or damaged file yields its intact part and never a panic.
    #[test]
    fn the_intact_part_of_a_damaged_history_is_read(
        cut in 0_u64..2_000_000,
        spoilt in prop::collection::vec((4096_u64..1_900_000, any::<u8>()), 0..40),
    ) {
        let (_folder, path) = place();
        filled(&path, (0..700).map(|number| (number, number)));
        let sound = Past::read(&path).unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        for (at, byte) in &spoilt {
            file.write_all_at(&[*byte], *at).unwrap();
        }
        file.set_len(cut.max(4096)).unwrap();
        let past = Past::read(&path).unwrap();
        for cell in past.cells(Tier::Samples) {
            prop_assert!(sound.cells(Tier::Samples).contains(cell));
        }
        prop_assert!(past.spoilt <= spoilt.len() + 1);
        let mut history = History::open(&path, &kept()).unwrap();
        prop_assert!(history.add(&sample(1_000_000, 1)).unwrap());
    }
}
