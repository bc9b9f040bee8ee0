//! Reports skipped tests. A test that skips prints the reason immediately to the terminal, bypassing the test harness.
//! The last lines of `cargo test` repeat the reasons: `tests/what_was_skipped.rs` prints the records kept by this
//! crate.

use std::io::{BufRead, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Names the file of records if it is not next to the tests, for runners that start the last target separately.
const RECORDS: &str = "LOADLINE_SKIPPED";
/// Selects the long tests to run.
const LONG: &str = "LOADLINE_LONG";
/// Selects the number of simulations.
const SIMULATIONS: &str = "LOADLINE_SIMULATIONS";
/// Prefix of record files; the rest of the name identifies the run.
pub const RECORDS_BEGIN: &str = "skipped-";

/// Reports that this test, or a part of it, is skipped. Fails the test if `variable` requires it.
#[track_caller]
pub fn skip(variable: &str, why: &str) {
    let required = std::env::var(variable).unwrap_or_default();
    assert!(required.is_empty(), "{variable}={required}, but {why}");
    record(variable, why);
}

/// Reports a skip without checking whether it is allowed.
pub fn record(variable: &str, why: &str) {
    let thread = std::thread::current();
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("{variable}\t{why}\t{}\n", thread.name().unwrap_or("a test"));
    let file = std::fs::OpenOptions::new().create(true).append(true).open(records());
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("a record of what was skipped");
    // The harness would capture `println!` in a passing test.
    let _ = writeln!(std::io::stderr(), "skipped, because {why}: {}", thread.name().unwrap_or("a test"));
}

/// Whether this test, which takes half a minute or more, runs. `LOADLINE_LONG` contains comma-separated prefixes of
/// long tests, or `all`, as in nightly runs. Records a skip if the test does not run.
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

/// Whether to run all simulations and corruptions, as in nightly runs (`LOADLINE_SIMULATIONS=all`).
pub fn all_simulations_run() -> bool {
    std::env::var(SIMULATIONS).is_ok_and(|asked| asked == "all")
}

/// The offsets at which to truncate text of this length: every byte if [`all_simulations_run`]. Otherwise, every byte
/// of the first and last KiB, and every 31st byte between them.
pub fn cuts(len: usize) -> impl Iterator<Item = usize> {
    const WHOLE: usize = 1 << 10;
    let all = all_simulations_run();
    (0..=len).filter(move |cut| all || *cut <= WHOLE || len - cut <= WHOLE || cut % 31 == 0)
}

/// Writes a test file, creating its directories.
#[track_caller]
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    let path = path.as_ref();
    std::fs::create_dir_all(path.parent().expect("a file has a parent directory")).expect("a folder");
    std::fs::write(path, bytes).expect("a file");
}

/// Writes a test program, creating its directories.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "lets a separate process write")]
pub fn executable(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    write(path, "");
    // Uses a separate process: processes of other tests would inherit a file open for writing in this process, and then
    // the file could not be executed.
    let mut writer = Command::new("bash");
    let writer = writer.args(["-c", r#"printf '%s' "$1" >"$0" && chmod +x "$0""#]).arg(path).arg(text).status();
    assert!(writer.is_ok_and(|status| status.success()), "{}", path.display());
}

/// A process that runs alongside a test; killed on drop.
#[derive(Debug)]
pub struct KilledOnDrop(pub Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // Fails if the process has already ended, which is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server's complete response to a request without a body; `head` lacks the final empty line.
#[track_caller]
pub fn answer(address: impl ToSocketAddrs, head: &str) -> String {
    let mut peer = TcpStream::connect(address).expect("it listens");
    peer.write_all(format!("{head}\r\n\r\n").as_bytes()).expect("it accepts a request");
    let mut text = String::new();
    peer.read_to_string(&mut text).expect("it responds");
    text
}

/// A request as read by a test server.
#[derive(Debug, Clone, Default)]
pub struct ReceivedRequest {
    /// The request line and headers with line ends, without the empty line.
    pub head: String,
    /// The body, of the length stated in the head.
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// Reads a complete request; `None` if the connection ends first.
    pub fn read(from: &mut impl BufRead) -> Option<Self> {
        let mut request = Self::read_head(from)?;
        request.read_body(from)?;
        Some(request)
    }

    /// Reads a request up to its body.
    pub fn read_head(from: &mut impl BufRead) -> Option<Self> {
        let mut head = String::new();
        loop {
            let begun = head.len();
            if from.read_line(&mut head).ok()? == 0 {
                return None;
            }
            if head[begun..].trim_end().is_empty() {
                head.truncate(begun);
                return Some(Self { head, body: Vec::new() });
            }
        }
    }

    /// Reads the body.
    pub fn read_body(&mut self, from: &mut impl BufRead) -> Option<()> {
        let length = self.header("content-length").and_then(|length| length.parse().ok());
        self.body = vec![0; length.unwrap_or(0)];
        from.read_exact(&mut self.body).ok()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields.into_iter().find_map(|(key, value)| key.eq_ignore_ascii_case(name).then(|| value.trim()))
    }
}

/// A program on the `PATH`, or in the administrators' directories, which a user's `PATH` need not contain.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Whether this program exists; if not, skips, or fails if `variable` requires it.
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

/// The records of this `cargo test` invocation.
pub fn records() -> PathBuf {
    if let Some(file) = std::env::var_os(RECORDS) {
        return PathBuf::from(file);
    }
    let runner = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    folder().join(format!("{RECORDS_BEGIN}{runner}-{}", started_ticks(runner).unwrap_or_default()))
}

/// The directory that contains the test's program and all other targets.
pub fn folder() -> PathBuf {
    let program = std::env::current_exe().expect("a test knows its program");
    program.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Field 22 of `/proc/PID/stat`, which distinguishes processes with the same pid.
pub fn started_ticks(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(19)?.parse().ok()
}
