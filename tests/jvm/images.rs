//! A container image as the subject: measured, searched, killed, and removed, with an image made from an installed JDK.
//! Skipped without a container tool.

use crate::deaths::limits_work;
use crate::invocation::{Call, jdk, small};
use crate::test_subjects::test_subjects;
use loadline::clock::Clock;
use loadline::record::{EndCause, FindOutcome, TuneOutcome, Unknowns};
use loadline::subject::FoundTool;
use loadline_test_support::{long_tests_run, skip};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

const MIB: u64 = 1 << 20;
/// The parts of a JDK that a small server needs.
const PARTS: [&str; 4] = ["./bin/java", "./lib", "./conf", "./release"];

/// An image, removed on drop.
pub(crate) struct Image {
    pub(crate) tool: &'static str,
    name: String,
}

impl Image {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Makes an image from a directory, with this program.
    pub(crate) fn of_folder(root: &Path, program: &str) -> Option<Self> {
        let tools = FoundTool::installed(Clock::start());
        let Some(tool) = tools.iter().find(|tool| tool.probe().is_ok()) else {
            skip("LOADLINE_IMAGES", "no container tool works here");
            return None;
        };
        let archive = root.with_extension("tar").display().to_string();
        run("tar", &["--create", "--file", &archive, "--directory", &root.display().to_string(), "."]);
        let image = Self { tool: tool.tool.word(), name: format!("loadline-test-{}:folder", std::process::id()) };
        let entrypoint = format!("ENTRYPOINT {:?}", [program]);
        let imported = run(image.tool, &["import", "--change", &entrypoint, &archive, &image.name]);
        assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
        Some(image)
    }

    /// Makes an image from a JDK and the test subjects, in `/app/subjects.jar`; needs disk space for three copies.
    pub(crate) fn make() -> Option<Self> {
        let made = Self::try_make();
        made.inspect_err(|why| skip("LOADLINE_IMAGES", why)).ok()
    }

    fn try_make() -> Result<Self, String> {
        let release = small().pop().ok_or("there is no JDK to make an image from")?;
        let home = jdk(release).ok_or("the JDK disappeared")?.home;
        let tools = FoundTool::installed(Clock::start());
        let tool = tools.iter().find(|tool| tool.probe().is_ok()).ok_or("no container tool works here")?.tool.word();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        for name in ["etc", "tmp", "proc", "sys", "dev"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        // Without a user name, a JVM has no counters.
        std::fs::write(root.join("etc/passwd"), "root:x:0:0::/:/bin/sh\nsubject:x:1000:1000::/:/bin/sh\n").unwrap();
        let archive = folder.path().join("root.tar");
        let tar = |arguments: &[&str]| {
            // Dangling links in a JDK are not needed.
            run("tar", &[&["--append", "--dereference", "--file", &archive.display().to_string()], arguments].concat())
        };
        tar(&["--directory", &root.display().to_string(), "."]);
        let place = ["--transform", "s,^[.],opt/jdk,", "--exclude", "src.zip", "--directory"];
        tar(&[&place[..], &[&home.display().to_string()], &PARTS].concat());
        tar(&["--transform", "s,.*,app/subjects.jar,", "--absolute-names", test_subjects()]);
        let libraries = libraries(&home);
        let libraries: Vec<&str> = libraries.iter().map(|library| library.trim_start_matches('/')).collect();
        tar(&[&["--directory", "/"], &libraries[..]].concat());
        static MADE: AtomicU32 = AtomicU32::new(1);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let image = Self { tool, name: format!("loadline-test-{}:{number}", std::process::id()) };
        let words = ["/opt/jdk/bin/java", "-XX:TieredStopAtLevel=1", "-cp", "/app/subjects.jar"];
        let entrypoint = format!("ENTRYPOINT {words:?}");
        let imported = run(tool, &["import", "--change", &entrypoint, &archive.display().to_string(), &image.name]);
        let tried = run(tool, &["run", "--rm", "--network=host", "--memory=64m", &image.name, "-version"]);
        match [imported, tried].iter().find(|output| !output.status.success()) {
            Some(failed) => Err(format!("{tool} cannot run an image: {}", String::from_utf8_lossy(&failed.stderr))),
            None => Ok(image),
        }
    }

    /// A call on the image with little load.
    fn call(&self, verb: &str, subject: &str) -> Call {
        let call = Call::verb(verb).with(&format!("--image {}", self.name)).with("--rate 50").with("--warmup 300ms");
        let call = call.with("--url http://127.0.0.1:{port}/").archiving().with("--gc serial");
        call.command(&subject.split(' ').collect::<Vec<_>>())
    }

    /// Containers left by the Loadline process with this pid.
    fn containers(&self, pid: u32) -> Vec<String> {
        let listed = run(self.tool, &["ps", "--all", "--format", "{{.Names}}"]);
        let names = String::from_utf8_lossy(&listed.stdout).into_owned();
        names.lines().filter(|name| name.starts_with(&format!("loadline-{pid}-"))).map(str::to_owned).collect()
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        run(self.tool, &["rmi", "--force", &self.name]);
    }
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

/// The system libraries that a JDK needs, including its loader: `libc.so.6 => /lib/libc.so.6 (0x7f)`.
fn libraries(home: &Path) -> BTreeSet<String> {
    let folders = [home.join("lib"), home.join("lib/server")];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten()).map(|file| file.path());
    let shared = files.filter(|file| file.extension().is_some_and(|end| end == "so"));
    // Libraries for graphics and sound have dependencies that servers do not need.
    let needed = ["libjvm.so", "libjava.so", "libjli.so", "libnet.so", "libnio.so", "libzip.so", "libjimage.so"];
    let needed = shared.filter(|file| needed.iter().any(|name| file.ends_with(name))).chain([home.join("bin/java")]);
    let said =
        needed.map(|file| String::from_utf8_lossy(&run("ldd", &[&file.display().to_string()]).stdout).into_owned());
    let words: Vec<String> =
        said.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    words.into_iter().filter(|word| word.starts_with('/') && !word.starts_with(&home.display().to_string())).collect()
}

#[test]
fn a_container_is_searched_measured_killed_and_removed() {
    if !limits_work() {
        return;
    }
    let Some(image) = Image::make() else { return };

    let call = image
        .call("find --json -d 1s -c 4 --no-warm --proofs 1 --heap 24m", "loadline.subjects.Appetite {port} live=8");
    let call = call.with("--limit-max 256m").with("--prove 128m").with("--target failed==0").with("--cpu-limit 500m");
    let ran = call.alone().run().expect(0);
    let document = ran.document();
    let find = document.find.clone().unwrap();
    assert_eq!((find.outcome, find.unknowns), (FindOutcome::AtLowerBound, Unknowns::Limit), "{}", find.text);
    assert_eq!((find.line.unwrap().limit_bytes, document.trials.len()), (128 * MIB, 2));
    for trial in &document.trials {
        let known = trial.image.as_ref().unwrap();
        assert_eq!((known.name.as_str(), known.tool.as_str()), (image.name.as_str(), image.tool));
        let cgroup = trial.cgroup.unwrap();
        assert_eq!((Some(cgroup.limit_bytes), cgroup.oom_kills), (trial.limit_bytes, 0));
        assert!((24 * MIB..128 * MIB).contains(&cgroup.peak_bytes.unwrap()), "{cgroup:?}");
        // The tool set the quota, and the kernel's throttling counters are read.
        assert_eq!(trial.cpu_limit_millicpus, Some(500));
        assert!(trial.phases.iter().all(|phase| phase.subject.throttling.is_some()), "{:?}", trial.phases);
    }
    // Loadline finds the files of an overlay and drops their pages, or reports that it cannot find them.
    let is_known = !document.trials[0].files.is_empty();
    let foreign = document.trials[1].cgroup.unwrap().foreign_file_bytes.unwrap();
    assert!(!is_known || foreign < 4 * MIB, "{foreign}");
    assert_ne!(is_known, ran.stderr.contains("could not be found (its storage is not overlay)"), "{}", ran.stderr);
    assert_eq!(image.containers(ran.pid), Vec::<String>::new());
    let again = Call::verb("report").with_argument(&ran.archive).run().expect(0);
    assert!(again.stdout.contains(&format!("image: \"{}\"", image.name)), "{}", again.stdout);

    let call =
        image.call("weigh -d 1s --rest 200ms --json", "loadline.subjects.Appetite {port} live=150").with("--heap 200m");
    let ran = call.with("--limit 60m").run().expect(3).says(&["at the limit of 60.0 MiB"]);
    assert_eq!(ran.trial().end.unwrap().cause, EndCause::OomKill);
    assert_eq!(image.containers(ran.pid), Vec::<String>::new());

    for signal in ["KILL", "INT"] {
        let mut started = image.call("weigh -d 60s", "loadline.subjects.Appetite {port} live=8").start();
        started.until_said("  steady: ");
        let pid = started.pid();
        assert_eq!(image.containers(pid).len(), 1);
        started.signal(signal);
        let ran = started.wait();
        ran.leaves_none("its containers are", || image.containers(pid));
    }

    // The image starts, but does not run a server.
    let ran = image.call("weigh", "-version").run().expect(3).says(&[
        "before it was ready",
        "Runtime Environment",
        "start a JVM that keeps running",
    ]);
    assert_eq!(image.containers(ran.pid), Vec::<String>::new());
}

/// A tuned variable reaches the program in the container. Other remedies are excluded, because their ranking depends on
/// the machine.
#[test]
fn an_image_is_tuned() {
    if !long_tests_run() || !limits_work() {
        return;
    }
    let Some(image) = Image::make() else { return };
    let tune = image.call("tune --json -d 500ms --rest 100ms -c 2", "loadline.subjects.Curable {port} arenas=64");
    let tune = tune.with("--heap 24m").with("--target failed==0").with("--price 100%");
    let others = "heap direct nio netty gc compiler headers cds malloc.trim malloc.arenas+trim malloc.thresholds \
                  malloc.thresholds+trim";
    let ran = tune.skipping(others).of_many_trials().run().expect(0);
    let tuned = ran.document().tune.unwrap();
    assert_eq!(tuned.outcome, TuneOutcome::Proved, "{}", tuned.text);
    assert_eq!(tuned.answer, ["MALLOC_ARENA_MAX=1"], "{}", tuned.text);
    println!("an image: {} in {} trials", tuned.text, tuned.trials);
    assert_eq!(image.containers(ran.pid), Vec::<String>::new());
}

#[test]
fn a_missing_image_is_not_fetched() {
    let works = FoundTool::installed(Clock::start()).iter().any(|tool| tool.probe().is_ok());
    let said = if works { "the image `nowhere/nothing:0` is not on this machine" } else { "no container tool" };
    let call = Call::verb("weigh --image nowhere/nothing:0 --url http://127.0.0.1:1/");
    call.archiving().beside().run().expect(4).says(&[said]);
}
