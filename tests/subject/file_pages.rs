//! Which cgroup is charged for file pages; and private copies of a JDK: run, held, dropped, and left by a kill.

use super::support::*;
use loadline::clock::Clock;
use loadline::kernel::charge::Charge;
use loadline::observe::cgroup::MemoryCgroup;
use loadline::observe::procfs;
use loadline::subject::jdk::{Places, discover, read_home};
use loadline::subject::work_folder::{Swept, sweep_in};
use loadline::subject::{Eviction, FoundJdk, GuardedSubject, PrivateJdk, file_pages, limit};
use loadline::units::Bytes;
use loadline_test_support::{on_path, skip};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Maximum lag of a cgroup's counters, plus the files that a shell reads.
const SMALL: Bytes = Bytes::mib(4);
/// libc, the loader, and other files that every process maps.
const OF_ALL: Bytes = Bytes::mib(10);
/// Names the directory where the helper below makes its copy.
const PLACE: &str = "LOADLINE_TEST_PLACE";

/// A directory on disk where eviction is observable and limits work.
fn place() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    if let Err(error) = limit::probe(Clock::start()) {
        skip("LOADLINE_LIMITS", &error.what);
        return None;
    }
    match file_pages::probe(folder.path()) {
        Eviction::Seen => Some(folder),
        answer => {
            skip("LOADLINE_LIMITS", &format!("pages of files in {} are {answer:?}", folder.path().display()));
            None
        }
    }
}

fn charge(running: &GuardedSubject) -> Charge {
    let cgroup = MemoryCgroup::open(running.cgroup().unwrap().0.clone()).unwrap();
    cgroup.read(&running.clock()).unwrap().value.charge
}

/// The charge of a subject that reads this file.
fn charged_for_reading(file: &Path) -> Bytes {
    let script = format!("cat '{}' > /dev/null; echo pid $$; exec sleep 60", file.display());
    let running = spawner().start(&limited(&script, Bytes::mib(128)), None).unwrap();
    told(&running, 1);
    let charged = charge(&running).file;
    running.end(LONG);
    charged
}

#[test]
fn file_pages_are_charged_to_their_first_reader() {
    let Some(folder) = place() else { return };
    let (size, clock) = (Bytes::mib(32), Clock::start());
    let file = folder.path().join("data");
    std::fs::write(&file, vec![1; size.0 as usize]).unwrap();
    let files = [file.clone()];
    // This process wrote the file, so it is charged for the pages.
    let charged = charged_for_reading(&file);
    assert!(charged < SMALL, "{charged}");
    assert_eq!(file_pages::evict(&files, clock).bytes, size.0);
    let charged = charged_for_reading(&file);
    assert!(charged.0 + SMALL.0 > size.0, "{charged}");
    // The subject is gone; the pages stay, and its successor is not charged for them.
    let charged = charged_for_reading(&file);
    assert!(charged < SMALL, "{charged}");
    file_pages::evict(&files, clock);
    assert_eq!(file_pages::read_in(&files), size.0);
    let charged = charged_for_reading(&file);
    assert!(charged < SMALL, "{charged}");
}

#[test]
fn a_file_is_held_by_processes_that_map_it() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("sleep");
    std::fs::copy(on_path("sleep").unwrap(), &copy).unwrap();
    let files = [copy.clone()];
    assert!(!file_pages::held_by_others(&files, &[]).are_there());
    // A link leads to the same file.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&copy, &link).unwrap();
    let running = start(&format!("echo pid $$; exec {} 60", link.display()));
    let pid = told(&running, 1)[0].pid;
    wait_until("it is held", LONG, || file_pages::held_by_others(&files, &[]).are_there());
    let holders = file_pages::held_by_others(&files, &[]);
    assert_eq!(holders.processes.iter().map(|process| process.pid).collect::<Vec<_>>(), [pid]);
    assert!(!file_pages::held_by_others(&files, &[pid]).are_there());
    running.end(LONG);
    assert!(!file_pages::held_by_others(&files, &[]).are_there());
}

/// A JDK with a compiler for each release.
fn jdks() -> Vec<FoundJdk> {
    let mut found = discover(&Places::usual(), Clock::start());
    found.retain(|jdk| jdk.has_javac && jdk.release >= 11);
    found.sort_by_key(|jdk| jdk.release);
    found.dedup_by_key(|jdk| jdk.release);
    if found.is_empty() {
        skip("LOADLINE_JDKS", "there is no JDK 11 or newer");
    }
    found
}

/// A JVM that runs until ended.
fn start_jvm(jdk: &FoundJdk, source: &Path) -> GuardedSubject {
    let script = format!("exec {} -XX:+UseSerialGC -Xmx64m {}", jdk.java.display(), source.display());
    let running = spawner().start(&limited(&script, Bytes::mib(512)), None).unwrap();
    told(&running, 1);
    running
}

/// Its file pages in memory, and those charged to its cgroup.
fn pages_of(running: &GuardedSubject) -> (Bytes, Bytes) {
    let pid = told(running, 1)[0].pid;
    let status = procfs::Process::open(pid).unwrap().status(&running.clock()).unwrap().value;
    (status.rss_file, charge(running).file_mapped)
}

#[test]
fn a_private_jdk_copy_is_charged_to_its_jvm_and_removed_afterwards() {
    let Some(folder) = place() else { return };
    let source = folder.path().join("Sleeps.java");
    let text = "System.out.println(\"pid \" + ProcessHandle.current().pid()); Thread.sleep(60_000);";
    let text = format!("class Sleeps {{ public static void main(String[] a) throws Exception {{ {text} }} }}");
    std::fs::write(&source, text).unwrap();
    let clock = Clock::start();
    for jdk in jdks() {
        let place = folder.path().join(jdk.release.to_string());
        std::fs::create_dir(&place).unwrap();
        let before = clock.now();
        let private = PrivateJdk::copy(&jdk, std::slice::from_ref(&place), clock, &|| false).unwrap();
        let copied = clock.now() - before;
        let found = read_home(private.home(), clock).unwrap();
        assert_eq!(&found, &private.jdk);
        shares_class_data(&jdk, &private.jdk);
        let files = file_pages::of_jdk(private.home());
        assert!(files.iter().all(|file| private.files.contains(file)), "{files:?}");
        let before = clock.now();
        assert_eq!(file_pages::evict(&files, clock).refused, []);
        println!("JDK {}: copied in {copied:?}, dropped in {:?}", jdk.release, clock.now() - before);
        let first = start_jvm(&private.jdk, &source);
        let (resident, charged) = pages_of(&first);
        println!("JDK {}: cold {resident}, charged {charged}", jdk.release);
        assert!(resident > Bytes::mib(20) && charged.0 + OF_ALL.0 > resident.0, "{resident} {charged}");
        // Pages mapped by the first JVM stay in memory, charged to it, which is the reason for private copies.
        assert_eq!(file_pages::evict(&files, clock).refused, []);
        let second = start_jvm(&private.jdk, &source);
        let (resident, charged) = pages_of(&second);
        println!("JDK {}: next to another JVM {resident}, charged {charged}", jdk.release);
        assert!(charged.0 < resident.0 / 2, "{resident} {charged}");
        first.end(LONG);
        second.end(LONG);
        drop(private);
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
    }
}

/// With `-Xshare:on`, a JVM does not start if its class data does not match; a copy must match like the original.
fn shares_class_data(original: &FoundJdk, copy: &FoundJdk) {
    let starts = |jdk: &FoundJdk| {
        let mut command = Command::new(&jdk.java);
        let done = command.args(["-Xshare:on", "-XshowSettings:properties", "-version"]).output().unwrap();
        (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let ((shared, _), (shares, said)) = (starts(original), starts(copy));
    assert_eq!(shares, shared, "{said}");
    let home = copy.home.display().to_string();
    assert!(!shares || said.lines().any(|line| line.trim() == format!("java.home = {home}")), "{said}");
}

/// A minimal JDK that is fast to copy.
fn tiny_jdk(folder: &Path) -> FoundJdk {
    let home = folder.join("jdk");
    loadline_test_support::write(home.join("bin/java"), "");
    std::fs::write(home.join("release"), "JAVA_VERSION=\"99\"\n").unwrap();
    read_home(&home, Clock::start()).unwrap()
}

#[test]
#[ignore = "a helper of the next test, which starts it and kills it"]
fn makes_a_private_copy_and_is_killed() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let jdk = tiny_jdk(&place);
    let _private = PrivateJdk::copy(&jdk, &[place.join("copies")], Clock::start(), &|| false).unwrap();
    std::fs::write(place.join("done"), "").unwrap();
    std::thread::sleep(LONG);
}

#[test]
fn a_killed_loadlines_jdk_copy_is_removed_at_the_next_start() {
    let Some(folder) = place() else { return };
    let copies = folder.path().join("copies");
    std::fs::create_dir(&copies).unwrap();
    let mut helper = Command::new(std::env::current_exe().unwrap());
    helper.args(["--exact", "file_pages::makes_a_private_copy_and_is_killed", "--ignored"]);
    let mut helper = helper.env(PLACE, folder.path()).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the copy is made", LONG, || folder.path().join("done").exists());
    assert_eq!(sweep_in(&copies), Swept::default(), "a copy in use is not removed");
    helper.kill().unwrap();
    helper.wait().unwrap();
    assert_eq!(std::fs::read_dir(&copies).unwrap().count(), 1);
    assert_eq!(sweep_in(&copies), Swept { removed: 1, left: Vec::new() });
    assert_eq!(std::fs::read_dir(&copies).unwrap().count(), 0);
}
