//! The tests of a project as an IDE runs them: by the runner that Eclipse and the Java tests of VS Code start, which
//! tells its IDE through a socket what happens.

use crate::build::{Maven, Project, VERSION, ended};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The jars that an IDE has of its own; `tests/maven/fetch` brings them.
const RUNNER: [&str; 2] = [
    "org/eclipse/jdt/org.eclipse.jdt.junit.runtime/3.8.100/org.eclipse.jdt.junit.runtime-3.8.100.jar",
    "org/eclipse/jdt/org.eclipse.jdt.junit5.runtime/1.2.0/org.eclipse.jdt.junit5.runtime-1.2.0.jar",
];
/// The bound on the runner, in seconds. The runner waits for no process: what it starts ends by itself.
const BOUND: &str = "60";

/// Returns the messages to the IDE while it runs the tests of a class that Maven has compiled, a line each. `%TSTTREE`
/// stands for a test, `%TESTS` where it begins, `%FAILED` and `%ERROR` with a trace, `%TESTE` at its end (`MessageIds`
/// of Eclipse's JDT).
pub(crate) fn told(maven: &Maven, project: &Project<'_>, class: &str, junit: &str, program: &Path) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", BOUND, "java"]).arg("-cp").arg(class_path(maven, project, junit));
    command.arg(format!("-Dloadline.executable={}", program.display()));
    command.arg("org.eclipse.jdt.internal.junit.runner.RemoteTestRunner");
    command.args(["-version", "3", "-port", &port.to_string(), "-classNames", class]);
    command.args(["-testLoaderClass", "org.eclipse.jdt.internal.junit5.runner.JUnit5TestLoader"]);
    command.args(["-loaderpluginname", "org.eclipse.jdt.junit5.runtime"]);
    command.current_dir(&project.folder);
    let runner = std::thread::spawn(move || {
        let runner = ended(&mut command);
        // If the runner never connected, this ends the wait for it. If it did, the port has no listener any more.
        drop(TcpStream::connect(("127.0.0.1", port)));
        runner
    });
    let mut told = String::new();
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_to_string(&mut told).unwrap();
    let ran = runner.join().unwrap();
    assert!(ran.passed && !told.is_empty(), "the runner of the IDE fails, having told:\n{told}\n{}", ran.log);
    told
}

fn class_path(maven: &Maven, project: &Project<'_>, junit: &str) -> String {
    let local = maven.local().join("../..");
    // Until 6 the platform had numbers of its own.
    let platform = junit.replace("5.13.", "1.13.");
    let mut jars = vec![project.folder.join("target/test-classes")];
    jars.extend(RUNNER.map(|jar| local.join(jar)));
    jars.push(local.join(format!("dev/loadline/loadline-junit/{VERSION}/loadline-junit-{VERSION}.jar")));
    for folder in ["org/junit", "org/opentest4j", "org/apiguardian", "org/jspecify"] {
        let is_of = |jar: &PathBuf| {
            let name = jar.file_stem().unwrap_or_default().to_string_lossy();
            folder != "org/junit" || [junit, &platform].iter().any(|version| name.ends_with(&format!("-{version}")))
        };
        jars.extend(all(&local.join(folder)).into_iter().filter(is_of));
    }
    let words: Vec<String> = jars.iter().map(|jar| jar.display().to_string()).collect();
    words.join(":")
}

/// The jars below a folder; none where it is not there.
fn all(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => all(&path),
            false => Some(path).into_iter().filter(|path| path.extension().is_some_and(|end| end == "jar")).collect(),
        })
        .collect()
}
