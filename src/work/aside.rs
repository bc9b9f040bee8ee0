//! The private directory in which a worker executes an entry, separate from the results:
//! `OUT/.index-NNNNNN.NODE.PID.RANDOM/`. A stopped worker leaves it for the next one to resume; directories of killed
//! workers are swept.
//!
//! Its `claim.json` names the owner, and is locked (flock(2)) while its worker lives. A missing lock shows that a
//! worker is dead only on the same kernel, because NFS locks may be local. Another host therefore takes over only a
//! directory that its worker released with the file `left`, which only one worker can rename.

use crate::archive;
use crate::bounded;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::fleet::folder_of;
use crate::locked::Locked;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const CLAIM: &str = "claim.json";
/// A claim is about 200 bytes.
const CLAIM_BYTES_MAX: u64 = 64 << 10;
/// Marks a directory whose worker was stopped, so that any worker may continue.
const LEFT: &str = "left";
/// The file's name while a worker takes over the directory.
const TAKEN: &str = "taken";
/// File names are limited to 255 bytes; an engine's node name may be longer.
const NODE_CHARS_MAX: usize = 64;

/// The owner of the work, and its conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Claim {
    pub(super) plan: String,
    pub(super) index: u32,
    /// The boot ID, shared by everything on the same kernel.
    pub(super) boot: String,
    /// The properties that must match to resume trials: the machine and what it runs.
    pub(super) on: Vec<String>,
    /// The time limit of the entry.
    pub(super) minutes: f64,
}

/// What to do with directories that dead workers of the same entry left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leftovers {
    /// Resume one if possible.
    GoOn,
    /// Remove them, because no worker can continue them.
    Remove,
    /// Keep them.
    Keep,
}

#[derive(Debug)]
pub(super) struct Aside {
    path: PathBuf,
    _lock: Option<Locked>,
    resumed: bool,
}

impl Aside {
    /// A directory for this work: an abandoned one, else an empty one.
    pub(super) fn begin(out: &Path, claim: &Claim, node: &str, others: Leftovers, clock: Clock) -> Result<Self> {
        fs::create_dir_all(out).map_err(|cause| Error::io("create", out, &cause))?;
        let path = fresh(out, claim.index, node, clock)?;
        let began = |path: PathBuf, resumed| match claim.write(&path) {
            Ok(lock) => Ok(Self { path, _lock: lock, resumed }),
            Err(cause) => {
                let error = Error::io("write", &path, &cause);
                match resumed {
                    // It contains measurements, so the next worker may try again.
                    true => drop(fs::rename(path.join(TAKEN), path.join(LEFT))),
                    false => drop(fs::remove_dir_all(&path)),
                }
                Err(error)
            }
        };
        let left = if others == Leftovers::Keep { Vec::new() } else { of_index(out, claim.index, &path) };
        let taken = left.into_iter().find_map(|old| take(&old, claim, others).map(|taken| (old, taken)));
        let Some((old, _taken)) = taken else {
            return began(path, false);
        };
        // The empty directory reserved the name; rename can replace an empty directory.
        match fs::rename(&old, &path) {
            Ok(()) => {
                let aside = began(path, true)?;
                let _ = fs::remove_file(aside.path.join(TAKEN));
                Ok(aside)
            }
            Err(_) => began(path, false),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether another worker began it.
    pub(super) fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// A unique name for this worker: `NODE.PID.RANDOM`.
    pub(super) fn worker(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        name.trim_start_matches('.').split_once('.').map_or_else(|| name.clone().into_owned(), |(_, of)| of.to_owned())
    }

    /// Releases it for another worker; removes it if nothing was begun.
    pub(super) fn leave(self) {
        let holds_more = fs::read_dir(&self.path).is_ok_and(|entries| entries.count() > 1);
        match holds_more {
            // Without the file, a worker on this host can still continue.
            true => drop(fs::write(self.path.join(LEFT), "")),
            false => self.remove(),
        }
    }

    pub(super) fn holds_trials(&self) -> bool {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).any(|folder| archive::holds_trials(&folder))
    }

    /// Removes it. Files that cannot be removed do not justify another error.
    pub(super) fn remove(self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the bookkeeping files after the directory has become part of the results.
pub(super) fn settled(path: &Path) {
    let _ = fs::remove_file(path.join(CLAIM));
}

impl Claim {
    fn read(aside: &Path) -> Option<Self> {
        serde_json::from_slice(&bounded::bytes(&aside.join(CLAIM), CLAIM_BYTES_MAX).ok()?).ok()
    }

    /// Writes the claim atomically and locks it if the file system supports locks. Without locks, nobody can take a
    /// dead worker's lock either.
    fn write(&self, aside: &Path) -> std::io::Result<Option<Locked>> {
        let new = aside.join(format!("{CLAIM}.new"));
        let mut file = File::create(&new)?;
        let lock = Locked::new(file.try_clone()?).ok();
        file.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(&new, aside.join(CLAIM))?;
        Ok(lock)
    }

    /// Whether another worker's trials may be continued.
    fn fits(&self, other: &Self) -> bool {
        (&self.plan, self.index, &self.on) == (&other.plan, other.index, &other.on)
    }
}

/// A new directory for this user only. Creation fails for an existing name, so names are unique.
fn fresh(out: &Path, index: u32, node: &str, clock: Clock) -> Result<PathBuf> {
    let word = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let node: String = node.chars().take(NODE_CHARS_MAX).map(word).collect();
    let pid = std::process::id();
    let mut random = clock.since_epoch(clock.now_ns()).as_nanos() as u64;
    loop {
        let path = out.join(format!(".{}.{node}.{pid}.{random:x}", folder_of(index)));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => random = random.wrapping_add(1),
            Err(cause) => return Err(Error::io("create", &path, &cause)),
        }
    }
}

/// The private directories of all entries, with their indexes.
fn all(out: &Path) -> Vec<(PathBuf, u32)> {
    let entries = fs::read_dir(out).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let index = name.to_str()?.strip_prefix(".index-")?.split('.').next()?.parse().ok()?;
        entry.file_type().is_ok_and(|kind| kind.is_dir()).then(|| (entry.path(), index))
    };
    let mut found: Vec<_> = entries.filter_map(of).collect();
    found.sort();
    found
}

fn of_index(out: &Path, index: u32, but: &Path) -> Vec<PathBuf> {
    all(out).into_iter().filter(|(path, of)| *of == index && path != but).map(|(path, _)| path).collect()
}

/// The lock on a claim, if its worker was on this machine and is dead.
fn lock_of_dead(aside: &Path, claim: &Claim, boot: &str) -> Option<Locked> {
    if claim.boot != boot {
        return None;
    }
    Locked::new(OpenOptions::new().read(true).write(true).open(aside.join(CLAIM)).ok()?).ok()
}

/// A directory that this worker now owns.
struct ClaimedFolder {
    /// Keeps other workers on this machine away until the new claim is written.
    _lock: Option<Locked>,
}

/// Takes over a directory of the same entry, or removes a dead and useless one.
fn take(old: &Path, claim: &Claim, others: Leftovers) -> Option<ClaimedFolder> {
    let of = Claim::read(old)?;
    let here = of.boot == claim.boot;
    let lock = lock_of_dead(old, &of, &claim.boot);
    if here && lock.is_none() {
        return None;
    }
    let was_left = fs::rename(old.join(LEFT), old.join(TAKEN)).is_ok();
    // Another host's worker may have been faster: then the directory is already being taken over, or has a different
    // claim.
    let is_ours = was_left || (here && !old.join(TAKEN).exists() && Claim::read(old).as_ref() == Some(&of));
    let is_of_use = others == Leftovers::GoOn && of.fits(claim);
    if is_ours && !is_of_use && of.plan == claim.plan {
        let _ = fs::remove_dir_all(old);
    }
    (is_ours && is_of_use).then_some(ClaimedFolder { _lock: lock })
}

/// Removes directories of workers on this machine that were killed longer ago than their entries take, so nobody will
/// resume them. Returns the number removed.
pub(super) fn sweep(out: &Path, boot: &str, minutes_max: f64, clock: Clock) -> usize {
    let age_min = |path: &Path| {
        let since_epoch = fs::metadata(path).ok()?.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some((clock.unix_s() - since_epoch.as_secs_f64()) / 60.0)
    };
    let is_old = |path: &Path, minutes: f64| age_min(path).is_some_and(|age| age > minutes);
    let removed = all(out).into_iter().filter(|(path, _)| {
        let _lock = match Claim::read(path) {
            Some(claim) if is_old(&path.join(CLAIM), claim.minutes) => match lock_of_dead(path, &claim, boot) {
                Some(lock) => Some(lock),
                None => return false,
            },
            // Interrupted before it was claimed, so its worker is unknown.
            None if is_old(path, minutes_max) => None,
            _ => return false,
        };
        fs::remove_dir_all(path).is_ok()
    });
    removed.count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const BOOT: &str = "this boot";

    fn claim(index: u32) -> Claim {
        let on = vec!["a CPU".to_owned()];
        Claim { plan: "p".to_owned(), index, boot: BOOT.to_owned(), on, minutes: 5.0 }
    }

    fn begin(out: &TempDir, claim: &Claim) -> Aside {
        Aside::begin(out.path(), claim, "a/node", Leftovers::GoOn, Clock::start()).unwrap()
    }

    /// Creates what this module considers an archive.
    fn work(aside: &Aside) {
        fs::create_dir(aside.path().join("search")).unwrap();
    }

    fn worked(aside: &Aside) -> bool {
        aside.path().join("search").is_dir()
    }

    fn folders(out: &TempDir) -> usize {
        all(out.path()).len()
    }

    #[test]
    fn two_concurrent_workers_have_separate_directories() {
        let out = tempfile::tempdir().unwrap();
        let (one, two) = (begin(&out, &claim(7)), begin(&out, &claim(7)));
        assert!(one.path() != two.path() && !one.is_resumed() && !two.is_resumed());
        let name = one.path().file_name().unwrap().to_str().unwrap();
        assert_eq!(name, format!(".index-000007.{}", one.worker()));
        assert!(one.worker().starts_with(&format!("a_node.{}.", std::process::id())), "{}", one.worker());
        one.remove();
        assert_eq!(folders(&out), 1);
    }

    #[test]
    fn abandoned_work_is_resumed_once_under_the_same_conditions() {
        let out = tempfile::tempdir().unwrap();
        let left = |out: &TempDir| {
            let aside = begin(out, &claim(7));
            work(&aside);
            aside.leave();
        };
        left(&out);
        // On another host, the lock shows nothing, but the directory was abandoned.
        let elsewhere = Claim { boot: "another".to_owned(), ..claim(7) };
        let (one, two) = (begin(&out, &elsewhere), begin(&out, &elsewhere));
        assert!(one.is_resumed() && worked(&one) && !two.is_resumed() && !worked(&two));
        assert!(!one.path().join(LEFT).exists() && !one.path().join(TAKEN).exists());
        one.remove();
        two.remove();
        let other_cpu = Claim { on: vec!["another CPU".to_owned()], ..claim(7) };
        let other_plan = Claim { plan: "q".to_owned(), ..claim(7) };
        for (of, others, stays) in [
            (other_cpu, Leftovers::GoOn, 0),
            (claim(7), Leftovers::Remove, 0),
            (claim(7), Leftovers::Keep, 1),
            // Only workers of the same plan may remove a directory.
            (other_plan, Leftovers::Remove, 1),
        ] {
            let out = tempfile::tempdir().unwrap();
            left(&out);
            let aside = Aside::begin(out.path(), &of, "n", others, Clock::start()).unwrap();
            assert!(!aside.is_resumed() && !worked(&aside));
            aside.remove();
            assert_eq!(folders(&out), stays, "{of:?} {others:?}");
        }
        // If nothing was begun, nothing is left.
        let out = tempfile::tempdir().unwrap();
        begin(&out, &claim(7)).leave();
        assert_eq!(folders(&out), 0);
    }

    #[test]
    fn abandoned_work_is_kept_if_it_cannot_be_claimed() {
        let out = tempfile::tempdir().unwrap();
        let aside = begin(&out, &claim(7));
        work(&aside);
        // Blocks the next claim, like a full disk.
        fs::create_dir(aside.path().join(format!("{CLAIM}.new"))).unwrap();
        aside.leave();
        Aside::begin(out.path(), &claim(7), "n", Leftovers::GoOn, Clock::start()).unwrap_err();
        let [(path, 7)] = &all(out.path())[..] else { panic!("{:?}", all(out.path())) };
        assert!(path.join("search").is_dir() && path.join(LEFT).exists());
        fs::remove_dir(path.join(format!("{CLAIM}.new"))).unwrap();
        let again = begin(&out, &claim(7));
        assert!(again.is_resumed() && worked(&again));
    }

    #[test]
    fn a_dead_worker_is_recognized_by_its_lock_on_its_own_machine() {
        let out = tempfile::tempdir().unwrap();
        let alive = begin(&out, &claim(7));
        work(&alive);
        assert!(!begin(&out, &claim(7)).is_resumed(), "the work of a live worker is not resumed");
        let path = alive.path().to_owned();
        drop(alive);
        let elsewhere = Claim { boot: "another".to_owned(), ..claim(7) };
        let aside = begin(&out, &elsewhere);
        assert!(!aside.is_resumed() && path.is_dir(), "a worker on another host cannot be known to be dead");
        let again = begin(&out, &claim(7));
        assert!(again.is_resumed() && worked(&again) && !path.exists());
    }

    #[test]
    fn only_old_work_of_dead_workers_on_this_machine_is_removed() {
        let out = tempfile::tempdir().unwrap();
        let sweep = |boot: &str| super::sweep(out.path(), boot, 5.0, Clock::start());
        let age = |path: &Path| {
            let then = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
            File::open(path).unwrap().set_modified(then).unwrap();
        };
        let alive = begin(&out, &claim(1));
        age(&alive.path().join(CLAIM));
        let young = begin(&out, &claim(2)).path().to_owned();
        let dead = begin(&out, &claim(3)).path().to_owned();
        age(&dead.join(CLAIM));
        assert_eq!(sweep("another"), 0);
        assert_eq!(sweep(BOOT), 1);
        assert!(alive.path().is_dir() && young.is_dir() && !dead.exists());
        // Incomplete: no claim, or a damaged one.
        let half = out.path().join(".index-000004.n.1.ff");
        fs::create_dir(&half).unwrap();
        fs::write(half.join(CLAIM), "{").unwrap();
        assert_eq!(sweep(BOOT), 0);
        age(&half);
        fs::write(out.path().join(".index-x"), "").unwrap();
        assert_eq!(sweep(BOOT), 1);
        assert!(!half.exists());
    }
}
