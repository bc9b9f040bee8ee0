//! Tests that `metaspace-replay` converts a log to a trace, replays it with every scheme, and reports errors.

#![expect(clippy::disallowed_methods, reason = "these tests run the program")]
#![expect(clippy::unwrap_used, reason = "a test helper that cannot continue should fail the test")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const PHASES: [&str; 5] = ["empty", "spike", "valley", "again", "end"];

/// The path of a captured JVM log.
fn log() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/samples/17/metaspace_log.txt")
}

/// Runs the program with this input and with arguments from `words`, which are separated by spaces.
fn call(folder: &TempDir, words: &str, input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_metaspace-replay"))
        .args(words.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Writing can fail, because a program that rejects its arguments does not read any input.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

#[track_caller]
fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(output: &Output, code: i32, says: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    says.iter().for_each(|word| assert!(text.contains(word), "{text} lacks {word}"));
}

/// The value of a counter in a marker line.
fn counter(line: &str, name: &str) -> u64 {
    let value = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("{line} lacks {name}")).parse().unwrap()
}

/// The name and the live bytes of each phase.
fn markers(out: &str) -> Vec<(String, u64)> {
    let of = |line: &str| line.strip_prefix("loadline: phase=").map(|rest| rest.split(' ').next().unwrap().to_owned());
    out.lines().filter_map(|line| Some((of(line)?, counter(line, "live_bytes")))).collect()
}

#[test]
fn a_log_is_recorded_shown_and_played_through_every_scheme() {
    let folder = TempDir::new().unwrap();
    let recorded = stdout(&call(&folder, "record a.trace", &fs::read(log()).unwrap()));
    assert!(recorded.starts_with("38 blocks, ") && recorded.contains("empty, spike, valley, again, end"), "{recorded}");
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["a.trace"]);
    let shown = stdout(&call(&folder, "show a.trace", b""));
    assert_eq!(shown.lines().count(), 6, "{shown}");
    let mut alive = Vec::new();
    for how in ["", "--header", "--trim", "--header --trim", "--scheme arena"] {
        let out = stdout(&call(&folder, &format!("replay a.trace {how}"), b"go\ngo\ngo\ngo\ngo\n"));
        let seen = markers(&out);
        assert_eq!(seen.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), PHASES);
        assert_eq!(out.lines().filter(|line| line.starts_with("loadline: ops=")).count(), 4, "{out}");
        alive.push(seen);
    }
    assert!(alive.windows(2).all(|pair| pair[0] == pair[1]), "{alive:?}");
}

#[test]
fn a_failure_is_explained_and_leaves_no_file() {
    let folder = TempDir::new().unwrap();
    refused(
        &call(&folder, "record a.trace", b"[info][gc] nothing\n"),
        2,
        &["no metaspace allocation", "hint:", "-Xlog"],
    );
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    refused(&call(&folder, "record no/a.trace", b""), 4, &["cannot write no/a.trace.part"]);
    refused(&call(&folder, "replay a.trace", b""), 2, &["cannot read a.trace", "metaspace-replay record"]);
    fs::write(folder.path().join("text"), "some text").unwrap();
    refused(&call(&folder, "replay text", b""), 2, &["this is not a metaspace trace", "text"]);
    stdout(&call(&folder, "record a.trace", &fs::read(log()).unwrap()));
    refused(&call(&folder, "replay a.trace --scheme arena --trim", b""), 2, &["`--trim`", "malloc"]);
    refused(&call(&folder, "replay a.trace --scheme arenas", b""), 2, &["arenas", "arena"]);
    let whole = fs::read(folder.path().join("a.trace")).unwrap();
    fs::write(folder.path().join("cut"), &whole[..whole.len() / 2]).unwrap();
    refused(&call(&folder, "replay cut --header", b""), 2, &["truncated", "trace: cut"]);
}
