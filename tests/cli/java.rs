//! The embedded Java code is stored compiled in `java/compiled`, so that builds need no JDK. These tests check that it
//! matches its sources. Only `java/compile` writes it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const RECORD: &str = "compiled/sources.sha256";
const JARS: [&str; 2] = ["agent", "demo"];
const RENEW: &str = "run `java/compile`, and check how the binary then behaves";

fn java() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("java")
}

/// `java/compile` with these arguments.
fn compile(arguments: &[&Path]) -> Output {
    Command::new(java().join("compile")).args(arguments).output().expect("java/compile starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// The compiler's release, and each file with its hash.
fn record() -> (String, Vec<(String, String)>) {
    let record = fs::read_to_string(java().join(RECORD)).expect("the record of what was compiled");
    let (head, lines) = record.split_once('\n').expect("a header line");
    let release = head.split_once("javac ").and_then(|(_, rest)| rest.split_once('.')).expect("a release of javac");
    let files = lines.lines().map(|line| line.split_once("  ").expect("a hash and a file"));
    (release.0.to_owned(), files.map(|(hash, file)| (file.to_owned(), hash.to_owned())).collect())
}

#[test]
fn embedded_jars_were_compiled_from_these_sources() {
    let mut recorded = BTreeSet::new();
    for (file, hash) in record().1 {
        let held = fs::read(java().join(&file)).unwrap_or_else(|cause| panic!("java/{file}: {cause}; {RENEW}"));
        let held = ring::digest::digest(&ring::digest::SHA256, &held);
        let held = held.as_ref().iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        assert_eq!(held, hash, "java/{file} does not match java/{RECORD}; {RENEW}");
        recorded.insert(file);
    }
    let agent = fs::read_dir(java().join("agent/loadline/agent")).expect("sources of the agent");
    let agent = agent.map(|entry| format!("agent/loadline/agent/{}", entry.expect("a source").file_name().display()));
    let needed = agent.chain(["compile".to_owned(), "agent/MANIFEST.MF".to_owned()]);
    let needed: Vec<_> = needed.chain(JARS.map(|jar| format!("compiled/{jar}.jar"))).collect();
    let missing: Vec<_> = needed.into_iter().filter(|file| !recorded.contains(file)).collect();
    assert!(missing.is_empty(), "java/{RECORD} does not list {missing:?}; {RENEW}");
}

#[test]
fn compiling_reproduces_the_embedded_jars_exactly() {
    let (made_by, _) = record();
    let asked = compile(&[Path::new("release")]);
    let found = text(&asked.stdout);
    if found != made_by {
        let found = if asked.status.success() { format!("javac {found}") } else { "no compiler".to_owned() };
        return loadline_test_support::skip(
            "LOADLINE_JDKS",
            &format!("javac {made_by} built java/compiled, but this machine has {found}"),
        );
    }
    let folder = tempfile::tempdir().expect("a folder for jars");
    for name in JARS {
        let jar = folder.path().join(format!("{name}.jar"));
        let made = compile(&[Path::new(name), &jar]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        let embedded = fs::read(java().join(format!("compiled/{name}.jar"))).expect("an embedded jar");
        assert!(fs::read(&jar).expect("a jar") == embedded, "java/compiled/{name}.jar is outdated; {RENEW}");
    }
}

#[test]
fn an_unknown_jar_name_is_rejected() {
    let asked = compile(&[Path::new("agnet"), Path::new("a.jar")]);
    assert!(!asked.status.success());
    assert_eq!(
        text(&asked.stderr),
        "error: `agnet` is not a jar that this script builds: `agent`, `demo`, `test-subjects`"
    );
}
