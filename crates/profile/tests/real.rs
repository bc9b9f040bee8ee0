//! The real profiler in real JVMs must find planted memory at its line. If either is missing, tests are skipped;
//! each skipped test prints a message. `LOADLINE_PROFILER=required` makes that an error.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail if they cannot continue, and print figures")]

use loadline_base::clock::Clock;
use loadline_jvm::observe::attach::Attach;
use loadline_jvm::observe::procfs::Process;
use loadline_profile::agent::{Launch, Session};
use loadline_profile::library::Library;
use loadline_profile::owner::{DirectBy, Owner};
use loadline_profile::recording::{Note, Recording, Site};
use loadline_test_support::skip;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const MIB: u64 = 1 << 20;
const BUFFERS: u64 = 32;
const DEFLATERS: u64 = 20;
/// zlib's own state for a `Deflater`: 268,096 bytes with zlib 1.2.13.
const DEFLATER_BYTES: u64 = 262_000;
const WITHIN: Duration = Duration::from_secs(60);

/// Every `java` on this machine: on PATH, and where distributions install JDKs.
fn javas() -> Vec<PathBuf> {
    let on_path = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let mut folders = on_path.unwrap_or_default();
    let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    folders.extend(installed.map(|home| home.path().join("bin")));
    let mut found: Vec<_> = folders.iter().filter_map(|folder| folder.join("java").canonicalize().ok()).collect();
    found.sort();
    found.dedup();
    if found.is_empty() {
        skip("LOADLINE_JDKS", "there is no `java`");
    }
    found
}

fn library() -> Option<Library> {
    match Library::find(None) {
        Ok(library) => Some(library),
        Err(error) => {
            skip("LOADLINE_PROFILER", &error.what);
            None
        }
    }
}

struct Jvm {
    child: Child,
    folder: tempfile::TempDir,
    clock: Clock,
}

impl Jvm {
    /// Starts `Plants` with these JVM options. The program waits this long before and after planting.
    fn start(java: &Path, options: &[&str], wait_ms: u32) -> Self {
        Self::start_by(&["env"], java, options, wait_ms)
    }

    /// Starts `Plants` with a command that becomes the JVM.
    #[expect(clippy::disallowed_methods, reason = "only `subject` starts processes, and this crate must not know it")]
    fn start_by(words: &[&str], java: &Path, options: &[&str], wait_ms: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/Plants.java");
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        // Other users must be able to read it, too.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::copy(source, folder.path().join("Plants.java")).unwrap();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(java);
        command.args(["-Xmx128m", "-XX:MaxDirectMemorySize=256m"]).args(options).arg("Plants.java");
        command.args([BUFFERS.to_string(), DEFLATERS.to_string(), wait_ms.to_string()]);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).current_dir(folder.path());
        Self { child: command.spawn().unwrap(), folder, clock: Clock::start() }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn wait_for(&self, line: &str) {
        let end = self.clock.now() + WITHIN;
        while !self.log().contains(line) {
            assert!(self.clock.now() < end, "no {line}: {}", self.log());
            self.clock.sleep(Duration::from_millis(5));
        }
    }

    fn wait(&mut self) {
        let end = self.clock.now() + WITHIN;
        while self.child.try_wait().unwrap().is_none() {
            assert!(self.clock.now() < end, "the JVM did not exit: {}", self.log());
            self.clock.sleep(Duration::from_millis(5));
        }
    }

    fn process(&self) -> Process {
        Process::open(self.child.id()).unwrap()
    }

    fn rss(&self) -> u64 {
        self.process().statm(&self.clock).unwrap().value.resident.0
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn site<'r>(recording: &'r Recording, line: &str, owner: &Owner) -> &'r Site {
    let found = recording.sites.iter().find(|site| site.place.to_string() == line && site.owner == *owner);
    found.unwrap_or_else(|| {
        let sites: Vec<_> = recording.sites.iter().map(|site| format!("{}: {}", site.place, site.owner)).collect();
        panic!("no site {line} of {owner}; notes {:?}, sites {sites:#?}", recording.notes)
    })
}

/// The directory that a session creates in a JVM's `/tmp`.
fn folder_of(pid: u32) -> PathBuf {
    let root = Path::new("/proc").join(pid.to_string()).join("root");
    root.join(format!("tmp/.loadline-profiler-{pid}"))
}

/// Checks that at least 95% of the planted memory is attributed to its line.
#[track_caller]
fn check_plants(recording: &Recording, what: &str) {
    let direct = Owner::Direct(DirectBy::ByteBuffer);
    let buffers = site(recording, "Plants.buffer(Plants.java:22)", &direct).uses;
    let zlib = site(recording, "Plants.deflater(Plants.java:26)", &Owner::Zlib).uses;
    let freed = site(recording, "Plants.freed(Plants.java:16)", &direct).uses;
    println!(
        "{what}: buffers {} of {}, zlib {} of {}, freed {} at the peak and {} at the end, {} allocations in all",
        buffers.bytes_end,
        BUFFERS * MIB,
        zlib.bytes_end,
        DEFLATERS * DEFLATER_BYTES,
        freed.bytes_peak,
        freed.bytes_end,
        recording.total.allocations,
    );
    assert!(buffers.bytes_end * 100 >= BUFFERS * MIB * 95, "{buffers:?}");
    assert!(buffers.bytes_end <= (BUFFERS + 1) * MIB, "{buffers:?}");
    assert!(zlib.bytes_end * 100 >= DEFLATERS * DEFLATER_BYTES * 95, "{zlib:?}");
    assert_eq!((freed.bytes_end, freed.bytes_freed), (0, 64 * MIB), "{freed:?}");
    let threads = site(recording, "Plants.sleeper(Plants.java:64)", &Owner::Threads);
    let loaders = site(recording, "Plants$Own.define(Plants.java:69)", &Owner::ClassLoading);
    assert_eq!((recording.made_at(threads), recording.made_at(loaders)), (DEFLATERS, DEFLATERS), "{what}");
    assert_eq!(freed.bytes_at_peak, 64 * MIB, "the total peaked while the large buffer existed");
    assert!(recording.total.bytes_at_peak >= 64 * MIB);
}

#[test]
fn a_jvm_that_starts_with_the_profiler_leaves_the_planted_bytes_at_their_lines() {
    for java in javas() {
        let Some(library) = library() else { return };
        let launch = Launch::prepare(library).unwrap();
        assert!(!launch.argument.contains(' '));
        let mut jvm = Jvm::start(&java, &[&launch.argument], 200);
        jvm.wait();
        assert!(!jvm.log().contains("Profiling"), "the profiler must not print to the JVM's log: {}", jvm.log());
        let recording = Recording::read(launch.recording().unwrap()).unwrap();
        assert_eq!(recording.notes, [], "{}", java.display());
        check_plants(&recording, &format!("{} from its start", java.display()));
    }
}

#[test]
fn a_running_jvm_is_recorded_and_continues() {
    let Some(library) = library() else { return };
    for java in javas() {
        let jvm = Jvm::start(&java, &[], 8000);
        jvm.wait_for("READY");
        let before = jvm.rss();
        let start = |process| Session::start(process, &library, WITHIN, &jvm.clock);
        let session = start(jvm.process()).unwrap();
        let why = start(jvm.process()).unwrap_err().what;
        assert!(why.contains("another Loadline"), "{why}");
        jvm.wait_for("PLANTED");
        jvm.clock.sleep(Duration::from_secs(1));
        let recorded = session.stop().unwrap();
        assert_eq!(recorded.doubt, None);
        let recording = Recording::read(recorded.file).unwrap();
        assert!(recording.notes.is_empty(), "{:?}", recording.notes);
        check_plants(&recording, &format!("{} while it ran", java.display()));
        let pid = jvm.child.id();
        assert!(!folder_of(pid).exists(), "its directory must be removed");
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let open: Vec<_> = open.filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
        assert!(!open.iter().any(|path| path.to_string_lossy().contains("loadline-profiler")), "{open:?}");
        // The increase includes the planted bytes, and memory of the profiler and the JVM.
        println!("{}: RSS {} KiB before, {} KiB after", java.display(), before >> 10, jvm.rss() >> 10);
        assert!(Attach::connect(&jvm.process(), &jvm.clock).unwrap().value.jcmd("VM.version").is_ok());
        assert!(!jvm.log().contains("Profiling") && !jvm.log().contains("dynamically"), "{}", jvm.log());
        // A second session reuses the loaded copy.
        let again = start(jvm.process()).unwrap();
        assert!(again.stop().is_ok());
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let copies = maps.lines().filter(|line| line.contains("libasyncProfiler") && line.contains("r-xp")).count();
        assert_eq!(copies, 1, "{maps}");
    }
}

#[test]
fn a_killed_jvm_leaves_a_partial_recording_and_a_doubt() {
    let Some(library) = library() else { return };
    let Some(java) = javas().pop() else { return };
    let mut jvm = Jvm::start(&java, &[], 3000);
    jvm.wait_for("READY");
    let clock = jvm.clock;
    let session = Session::start(jvm.process(), &library, WITHIN, &clock).unwrap();
    jvm.wait_for("PLANTED");
    jvm.child.kill().unwrap();
    jvm.child.wait().unwrap();
    let recorded = session.stop().unwrap();
    assert_eq!(recorded.doubt.as_deref(), Some("the JVM exited during the recording"));
    let recording = Recording::read(recorded.file).unwrap();
    assert!(recording.notes.contains(&Note::Cut), "{:?}", recording.notes);
}

#[test]
fn a_jvm_that_refuses_the_profiler_gives_an_error() {
    let Some(library) = library() else { return };
    for java in javas() {
        let refused = |options: &[&str]| {
            let jvm = Jvm::start(&java, options, 3000);
            jvm.wait_for("READY");
            let tried = Session::start(jvm.process(), &library, WITHIN, &jvm.clock);
            let result = tried.map(Session::stop);
            assert!(!folder_of(jvm.child.id()).exists());
            result
        };
        let error = refused(&["-XX:+DisableAttachMechanism"]).unwrap_err();
        assert!(error.what.contains("DisableAttachMechanism"), "{error}");
        match refused(&["-XX:+IgnoreUnrecognizedVMOptions", "-XX:-EnableDynamicAgentLoading"]) {
            // JDK 17 does not have this option.
            Ok(stopped) => assert!(stopped.is_ok()),
            Err(error) => {
                assert!(error.what.contains("Dynamic agent loading is not enabled"), "{error}");
                assert!(error.hint.unwrap().contains("-XX:+EnableDynamicAgentLoading"));
            }
        }
    }
}

#[test]
fn another_recording_is_not_disturbed() {
    let (Some(library), Some(other)) = (library(), library()) else { return };
    let Some(java) = javas().pop() else { return };
    let launch = Launch::prepare(other).unwrap();
    let mut jvm = Jvm::start(&java, &[&launch.argument], 1500);
    jvm.wait_for("READY");
    let error = Session::start(jvm.process(), &library, WITHIN, &jvm.clock).unwrap_err();
    assert_eq!(error.what, "another profiler is already recording in this JVM");
    jvm.wait();
    check_plants(&Recording::read(launch.recording().unwrap()).unwrap(), "with a second profiler");
}

/// A JVM of another user, and one with its own `/tmp` as in a container: each sees the library in its `/tmp`.
#[test]
fn another_users_jvm_or_one_with_its_own_tmp_is_recorded() {
    let Some(library) = library() else { return };
    let Some(java) = javas().pop() else { return };
    let other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let own_tmp = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /tmp && cd \"$0\" && exec \"$@\""];
    for by in [&other[..], &own_tmp[..]] {
        if !works(by) {
            skip("LOADLINE_MACHINE", &format!("`{}` is not allowed", by[0]));
            continue;
        }
        // The JVM may not see a directory in this process's `/tmp`, but it sees one in the target directory.
        let beside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::set_permissions(beside.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let words: Vec<&str> =
            by.iter().copied().chain((by[0] == "unshare").then(|| beside.path().to_str().unwrap())).collect();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/Plants.java");
        std::fs::copy(source, beside.path().join("Plants.java")).unwrap();
        let jvm = Jvm::start_by(&words, &java, &[], 3000);
        jvm.wait_for("READY");
        let session = Session::start(jvm.process(), &library, WITHIN, &jvm.clock).unwrap();
        jvm.wait_for("PLANTED");
        let recorded = session.stop().unwrap();
        check_plants(&Recording::read(recorded.file).unwrap(), by[0]);
        assert!(!folder_of(jvm.child.id()).exists());
    }
}

/// Whether a command can run another one.
#[expect(clippy::disallowed_methods, reason = "only `subject` starts processes, and this crate must not know it")]
fn works(by: &[&str]) -> bool {
    let mut command = Command::new(by[0]);
    let folder = (by[0] == "unshare").then_some("/");
    command.args(&by[1..]).args(folder).arg("true").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
