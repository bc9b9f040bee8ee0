//! A project's tests as run by an IDE: with the runner of Eclipse and VS Code's Java tests, which reports to its IDE
//! through a socket.

use crate::build::{Maven, Project, VERSION, ended};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The IDE's own jars, fetched by `tests/maven/fetch`.
const RUNNER: [&str; 2] = [
    "org/eclipse/jdt/org.eclipse.jdt.junit.runtime/3.8.100/org.eclipse.jdt.junit.runtime-3.8.100.jar",
    "org/eclipse/jdt/org.eclipse.jdt.junit5.runtime/1.2.0/org.eclipse.jdt.junit5.runtime-1.2.0.jar",
];
/// The runner's time limit in seconds. The runner does not wait for its processes.
const BOUND: &str = "60";

/// The messages to the IDE, line by line, while it runs the tests of a class compiled by Maven. `%TSTTREE` declares a
/// test, `%TESTS` starts it, `%FAILED` and `%ERROR` have a trace, `%TESTE` ends it (`MessageIds` of Eclipse's JDT).
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
        // Ends the wait if the runner never connected; otherwise, the port has no listener anymore.
        drop(TcpStream::connect(("127.0.0.1", port)));
        runner
    });
    let mut told = String::new();
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_to_string(&mut told).unwrap();
    let ran = runner.join().unwrap();
    assert!(ran.passed && !told.is_empty(), "the IDE's runner failed after these messages:\n{told}\n{}", ran.log);
    told
}

fn class_path(maven: &Maven, project: &Project<'_>, junit: &str) -> String {
    let local = maven.local().join("../..");
    // Before JUnit 6, the platform had its own version numbers.
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

/// The jars below a directory; empty if it does not exist.
fn all(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => all(&path),
            false => Some(path).into_iter().filter(|path| path.extension().is_some_and(|end| end == "jar")).collect(),
        })
        .collect()
}
