//! Malicious files and processes: their names do not affect a terminal, and endless input is not read.

use crate::called::{ARCHIVES, Called, folder, loadline, loadline_in};
use loadline_test_support::KilledOnDrop;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

/// Much longer than any of these calls takes, and much shorter than a call that hangs.
const SECONDS_MAX: u64 = 20;

/// A sleeping process with a name of at most 15 bytes.
fn named(folder: &Path, name: &str) -> KilledOnDrop {
    let program = folder.join(name);
    std::fs::copy("/bin/sleep", &program).unwrap();
    KilledOnDrop(Command::new(program).arg("60").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
}

#[test]
fn process_names_cannot_control_the_terminal() {
    let place = TempDir::new().unwrap();
    let named = named(place.path(), "\u{1b}[31m\u{7}\u{202e}x\ny");
    let pid = named.0.id().to_string();
    for call in [vec!["account", &pid], vec!["doctor", &pid], vec!["watch", "--pid", &pid, "--for", "1s"]] {
        let called = loadline_in(place.path(), &call);
        let text = called.stdout.clone() + &called.stderr;
        let steers = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!text.contains(steers), "{call:?}: {}", text.escape_debug());
        assert!(called.code != 0 && called.stderr.starts_with("error: "), "{call:?}: {called}");
    }
}

/// A call that soon fails with a request error.
fn refused(folder: &Path, arguments: &[&str], why: &str) -> Called {
    let began = Instant::now();
    let called = loadline_in(folder, arguments);
    assert!(began.elapsed().as_secs() < SECONDS_MAX, "{arguments:?} took {:?}", began.elapsed());
    assert_eq!(called.code, 2, "{arguments:?}: {called}");
    assert!(called.stderr.contains(why), "{arguments:?}: {called}");
    called
}

#[test]
fn an_archive_that_is_a_pipe_or_endless_is_rejected() {
    let place = TempDir::new().unwrap();
    let at = |name: &str| place.path().join(name);
    for name in ["pipe", "zero"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    mknodat(CWD, at("pipe/archive.jsonl"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("zero/archive.jsonl")).unwrap();
    for name in ["pipe", "zero"] {
        refused(place.path(), &["report", name], "it is not a regular file");
    }
    refused(place.path(), &["report", "/dev/zero"], "it is not a regular file");
    refused(place.path(), &["account", "--against", "/dev/zero", "1"], "it is not a regular file");
    assert_eq!(loadline(&["report", &format!("archives/{}", ARCHIVES[0])]).code, 0, "{}", folder().display());
}

#[test]
fn user_files_have_a_maximum_size() {
    let place = TempDir::new().unwrap();
    let nested = format!("name: x\nsubject: {}", "[".repeat(200_000));
    std::fs::write(place.path().join("deep.loadline.yaml"), nested).unwrap();
    for verb in ["run", "plan"] {
        refused(place.path(), &[verb, "deep.loadline.yaml"], "line 2: `[` and `{` are nested more than 40000 deep");
    }
    refused(
        place.path(),
        &["load", "--plan", "deep.loadline.yaml", "http://127.0.0.1:9/"],
        "line 2: `[` and `{` are nested more than 40000",
    );
    std::os::unix::fs::symlink("/dev/zero", place.path().join("zero.loadline.yaml")).unwrap();
    refused(place.path(), &["run", "zero.loadline.yaml"], "it is larger than 16 MiB");
}
