//! No test is skipped in silence. A test that skips says why on the terminal at once, and no harness keeps that back.
//! The last lines of `cargo test` say it once more: `tests/what_was_skipped.rs` writes them from the records kept here.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The variable that names the file of the records, if it is not next to the tests. It is for runners that start the
/// last target by themselves.
const RECORDS: &str = "LOADLINE_SKIPPED";
/// The variable that chooses the long tests that run.
const LONG: &str = "LOADLINE_LONG";
/// The variable that says how much is made up.
const SIMULATIONS: &str = "LOADLINE_SIMULATIONS";
/// Files of records begin with it; the rest of their names tells one run from another.
pub const RECORDS_BEGIN: &str = "skipped-";

/// Says that this test, or a part of it, is skipped for want of something. Fails the test if `variable` requires it.
#[track_caller]
pub fn skip(variable: &str, why: &str) {
    let required = std::env::var(variable).unwrap_or_default();
    assert!(required.is_empty(), "{variable}={required}, but {why}");
    record(variable, why);
}

/// Says the same without checking whether the test may be skipped.
pub fn record(variable: &str, why: &str) {
    let thread = std::thread::current();
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("{variable}\t{why}\t{}\n", thread.name().unwrap_or("a test"));
    let file = std::fs::OpenOptions::new().create(true).append(true).open(records());
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("a record of what was skipped");
    // `println!` would be kept back with the output of a test that passes.
    let _ = writeln!(std::io::stderr(), "skipped, because {why}: {}", thread.name().unwrap_or("a test"));
}

/// Whether this test, which takes half a minute or more, runs. `LOADLINE_LONG` has the beginnings of the names of
/// such tests that run, separated by commas, or `all`, as each night. A test that does not run is recorded as skipped.
pub fn long_tests_run() -> bool {
    let asked = std::env::var(LONG).unwrap_or_default();
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default();
    let runs = asked == "all" || asked.split(',').any(|begin| !begin.is_empty() && name.starts_with(begin));
    if !runs {
        record(&format!("{LONG}=all"), "it takes half a minute or more, and runs each night");
    }
    runs
}

/// Whether as much is made up and damaged as each night (`LOADLINE_SIMULATIONS=all`).
pub fn all_simulations_run() -> bool {
    std::env::var(SIMULATIONS).is_ok_and(|asked| asked == "all")
}

/// The places at which to cut a text of this length: every byte if [`all_simulations_run`]; otherwise every byte of
/// the first and the last KiB, and each 31st between them.
pub fn cuts(len: usize) -> impl Iterator<Item = usize> {
    const WHOLE: usize = 1 << 10;
    let all = all_simulations_run();
    (0..=len).filter(move |cut| all || *cut <= WHOLE || len - cut <= WHOLE || cut % 31 == 0)
}

/// Writes a file of a test, with the folders that it lies in.
#[track_caller]
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    let path = path.as_ref();
    std::fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder");
    std::fs::write(path, bytes).expect("a file");
}

/// Writes a program of a test, with the folders that it lies in.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "lets a process of its own write")]
pub fn executable(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    write(path, "");
    // Written by a process of its own: a file that a test has open for writing is open in what other tests start, too,
    // and cannot be executed meanwhile.
    let mut writer = Command::new("bash");
    let writer = writer.args(["-c", r#"printf '%s' "$1" >"$0" && chmod +x "$0""#]).arg(path).arg(text).status();
    assert!(writer.is_ok_and(|status| status.success()), "{}", path.display());
}

/// A process that runs alongside a test; killed when dropped.
#[derive(Debug)]
pub struct KilledOnDrop(pub Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and need not.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All that a server answers to a request without a body, whose head is given without its empty line.
#[track_caller]
pub fn answer(address: impl ToSocketAddrs, head: &str) -> String {
    let mut peer = TcpStream::connect(address).expect("it listens");
    peer.write_all(format!("{head}\r\n\r\n").as_bytes()).expect("it takes a request");
    let mut text = String::new();
    peer.read_to_string(&mut text).expect("it answers");
    text
}

/// A program on the `PATH`, or where administrators' programs are, to which the path of a user need not lead.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Whether this program is on the `PATH`; skips, or fails where `variable` requires it, if not.
#[track_caller]
pub fn has(variable: &str, program: &str) -> bool {
    let has = on_path(program).is_some();
    if !has {
        skip(variable, &format!("there is no {program}"));
    }
    has
}

/// The bytes of a jar with these entries.
pub fn jar(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
    for (name, content) in entries {
        let (mut entry, config) = archive.new_file(name).start().expect("an entry");
        let mut writer = config.wrap(&mut entry);
        writer.write_all(content).expect("its content");
        let (_, descriptor) = writer.finish().expect("its content");
        entry.finish(descriptor).expect("its end");
    }
    archive.finish().expect("the directory");
    bytes
}

/// The records of this run: of all that one `cargo test` starts.
pub fn records() -> PathBuf {
    if let Some(file) = std::env::var_os(RECORDS) {
        return PathBuf::from(file);
    }
    let runner = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    folder().join(format!("{RECORDS_BEGIN}{runner}-{}", started_ticks(runner).unwrap_or_default()))
}

/// Returns the folder of the test's own program, which also holds those of all other targets.
pub fn folder() -> PathBuf {
    let program = std::env::current_exe().expect("a test knows its program");
    program.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Field 22 of `/proc/PID/stat`: a later process of the same pid has another.
pub fn started_ticks(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(19)?.parse().ok()
}
