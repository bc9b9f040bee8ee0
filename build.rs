//! Compiles the Java parts with the JDK found here and packs them, so that one binary carries them.
//!
//! Leaves three jars in `OUT_DIR` and names them to the compiler (`include_bytes!(env!("LOADLINE_DEMO_JAR"))`):
//! the demo server, the test subjects and, where `java/agent` exists, the agent.

#![expect(clippy::disallowed_methods, reason = "a build script has no `subject` to start javac and jar for it")]

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// Bytecode of this release runs on every JDK that Loadline weighs.
const TARGET_RELEASE: &str = "11";
/// The oldest JDK that compiles for it.
const RELEASE_LEAST: u32 = 11;
/// From here on `jar` takes the date of its entries, so that equal sources give equal jars.
const RELEASE_WANTED: u32 = 17;

fn main() {
    for variable in ["JAVA_HOME", "PATH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    for input in ["build.rs", "java"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let java = Path::new("java");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_else(|| fail("Cargo did not set OUT_DIR")));
    let jdk = Jdk::find().unwrap_or_else(|seen| fail(&without_jdk(&seen)));

    let subjects = java.join("subjects");
    let demo = subjects.join("loadline/subjects/DemoServer.java");
    pack(&jdk, &out, "demo", &subjects, &[demo], Some(Entry::Main("loadline.subjects.DemoServer")));
    pack(&jdk, &out, "test-subjects", &subjects, &sources_in(&subjects), None);
    let agent = java.join("agent");
    if agent.is_dir() {
        pack(&jdk, &out, "agent", &agent, &sources_in(&agent), Some(Entry::Manifest(agent.join("MANIFEST.MF"))));
    }
}

/// What a jar's manifest says about where to begin.
enum Entry {
    /// This class has the `main` method.
    Main(&'static str),
    /// Lines of this file join the manifest.
    Manifest(PathBuf),
}

/// Compiles `files`, and what they use from `root`, into `OUT/NAME.jar` and names the jar to rustc.
fn pack(jdk: &Jdk, out: &Path, name: &str, root: &Path, files: &[PathBuf], entry: Option<Entry>) {
    let classes = out.join(format!("{name}-classes"));
    // Classes of sources that are gone must not survive in the jar.
    if classes.exists() {
        fs::remove_dir_all(&classes).unwrap_or_else(|cause| fail_io("remove", &classes, &cause));
    }
    fs::create_dir_all(&classes).unwrap_or_else(|cause| fail_io("create", &classes, &cause));
    let mut javac = jdk.tool("javac");
    javac.args(["--release", TARGET_RELEASE, "-g:none", "-encoding", "UTF-8", "-Xlint:all,-options"]);
    if matches!(entry, Some(Entry::Manifest(_))) {
        // Joined strings load tens of classes on their first use; the agent is a guest in its JVM.
        javac.arg("-XDstringConcat=inline");
    }
    javac.arg("-sourcepath");
    javac.arg(root).arg("-d").arg(&classes).args(files);
    run(javac);

    let archive = out.join(format!("{name}.jar"));
    let mut jar = jdk.tool("jar");
    jar.arg("--create").arg("--file").arg(&archive);
    if jdk.release >= RELEASE_WANTED {
        jar.arg("--date=2020-01-01T00:00:00Z");
    }
    match entry {
        Some(Entry::Main(class)) => jar.arg("--main-class").arg(class),
        Some(Entry::Manifest(file)) => jar.arg("--manifest").arg(file),
        None => &mut jar,
    };
    // One by one and sorted: the order in which a folder lists its files differs between file systems.
    for class in files_in(&classes, "class") {
        let inside = class.strip_prefix(&classes).unwrap_or(&class);
        jar.arg("-C").arg(&classes).arg(inside);
    }
    run(jar);
    let variable = name.to_uppercase().replace('-', "_");
    println!("cargo::rustc-env=LOADLINE_{variable}_JAR={}", archive.display());
}

fn sources_in(root: &Path) -> Vec<PathBuf> {
    let sources = files_in(root, "java");
    if sources.is_empty() {
        fail(&format!("no Java source in {}", root.display()));
    }
    sources
}

/// All files with this extension below `root`, sorted.
fn files_in(root: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|cause| fail_io("read", &folder, &cause));
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension() == Some(OsStr::new(extension)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A JDK: a folder with `bin/javac` and `bin/jar`.
struct Jdk {
    home: PathBuf,
    release: u32,
}

impl Jdk {
    /// `JAVA_HOME`, the one that `javac` on the `PATH` belongs to, then `/usr/lib/jvm`: the first that is recent
    /// enough to make reproducible jars, else the first that compiles at all, else what was seen.
    fn find() -> Result<Self, Vec<String>> {
        let mut homes: Vec<PathBuf> = env::var_os("JAVA_HOME").map(PathBuf::from).into_iter().collect();
        let path = env::var_os("PATH").unwrap_or_default();
        let compilers = env::split_paths(&path).filter_map(|folder| folder.join("javac").canonicalize().ok());
        homes.extend(compilers.filter_map(|javac| Some(javac.parent()?.parent()?.to_path_buf())));
        let mut installed: Vec<_> =
            fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        installed.sort();
        homes.extend(installed);

        let mut usable: Option<Self> = None;
        let mut seen = Vec::new();
        for home in homes {
            match release_of(&home) {
                Ok(release) if release >= RELEASE_WANTED => return Ok(Self { home, release }),
                Ok(release) if release >= RELEASE_LEAST => {
                    usable.get_or_insert(Self { home, release });
                }
                Ok(release) => seen.push(format!("{}: release {release}, too old", home.display())),
                Err(why) => seen.push(format!("{}: {why}", home.display())),
            }
        }
        usable.ok_or(seen)
    }

    fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.home.join("bin").join(name));
        // These would add options of the user's to ours, and a line to the output.
        command.env_remove("JAVA_TOOL_OPTIONS").env_remove("JDK_JAVAC_OPTIONS").env_remove("JDK_JAVA_OPTIONS");
        command
    }
}

/// The feature release of the JDK in this folder, as its compiler tells it: `javac 17.0.15` is 17, `javac 1.8.0` is 1.
fn release_of(home: &Path) -> Result<u32, String> {
    let bin = home.join("bin");
    if let Some(missing) = ["javac", "jar"].into_iter().find(|tool| !bin.join(tool).is_file()) {
        return Err(format!("no bin/{missing}"));
    }
    let output = Command::new(bin.join("javac")).arg("-version").output().map_err(|cause| cause.to_string())?;
    // JDK 8 and older answer on standard error.
    let said = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&said);
    let version = text.lines().find_map(|line| line.strip_prefix("javac "));
    let digits = version.and_then(|version| version.split(|c: char| !c.is_ascii_digit()).next());
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| format!("`javac -version` said `{}`", text.trim()))
}

fn without_jdk(seen: &[String]) -> String {
    let mut text = format!(
        "no JDK found to compile the Java parts: need `javac` and `jar` of release {RELEASE_LEAST} or newer\n  \
         looked at JAVA_HOME, at the folders of PATH and in /usr/lib/jvm"
    );
    for line in seen {
        text.push_str("\n  ");
        text.push_str(line);
    }
    text.push_str("\n\nhint: install a JDK, release 17 or newer (Debian: `apt-get install openjdk-17-jdk-headless`),");
    text.push_str("\n      or set JAVA_HOME to the folder of one");
    text
}

/// Runs to the end; on failure shows all it said.
fn run(mut command: Command) {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().unwrap_or_else(|cause| fail(&format!("cannot start {program}: {cause}")));
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        fail(&format!("{program} ended with {}\n\n{}", output.status, String::from_utf8_lossy(&said)));
    }
}

fn fail_io(verb: &str, path: &Path, cause: &std::io::Error) -> ! {
    fail(&format!("cannot {verb} {}: {cause}", path.display()))
}

/// Ends the build. Not a panic: its backtrace would bury the message.
#[expect(clippy::print_stderr, reason = "Cargo shows a failed build script's standard error")]
fn fail(what: &str) -> ! {
    eprintln!("\nerror: {what}\n");
    exit(1)
}
