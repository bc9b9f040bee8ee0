//! `loadline post-mortem`: which process was OOM-killed, from the kernel's log and other traces.

use super::exit::Code;
use super::session::Call;
use crate::bounded;
use crate::diagnosis::{self, traces};
use crate::error::{Error, Result, plain};
use crate::record::{OOM_SCHEMA, OomDocument, OomRecord, TraceRecord};
use crate::report::{self, Progress, summarize_oom};
use crate::units::several;
use crate::watch::kernel_kills::{OomReport, own_log, reports};
use clap::Parser;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, stdin};
use std::path::{Path, PathBuf};

/// `loadline post-mortem`
///
/// Reads the kernel's OOM report: which limit was reached, which process was killed, and memory use by process and
/// kind. It shows whether a JVM setting bounds the larger part. It works without an earlier watch, but a watch shows
/// more (`loadline watch --post-mortem`). Other files show whether the heap was full and how the container ended. Exit
/// code 1: no kill or crash was found.
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Verb {
    /// Kernel log (`dmesg`, `journalctl -k`), `memory.events`, `hs_err_pid*.log`, a log from `-Xlog:gc`, or output of
    /// `docker inspect` or `kubectl get pod -o json`; `-` reads stdin [default: the kernel log of this machine]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Read the kernel log from this file
    #[arg(long, value_name = "FILE")]
    kernel_log: Option<PathBuf>,
    /// Show only kills caused by the limit of this cgroup or a descendant
    #[arg(long, value_name = "PATH")]
    cgroup: Option<String>,
    /// Print JSON instead of the summary
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  loadline post-mortem
  journalctl -k -b | loadline post-mortem -
  loadline post-mortem dmesg.txt --cgroup /kubepods.slice
  kubectl get pod shop -o json | loadline post-mortem - gc.log hs_err_pid1.log";

/// Only the end of a longer log is read.
const LOG_BYTES_MAX: u64 = 256 << 20;

pub(super) fn run(verb: Verb, Call { typed, .. }: Call) -> Result<Code> {
    let mut evidence = Evidence::default();
    let files = verb.kernel_log.iter().chain(&verb.files);
    files.map(PathBuf::as_path).try_for_each(|file| evidence.add(file))?;
    if evidence.logs.is_empty() && evidence.traces.is_empty() {
        let text = own_log().map_err(|why| {
            Error::machine(format!("the kernel log cannot be read: {why}"))
                .hint("run as root, or specify a log file: `dmesg -T > dmesg.txt`, `loadline post-mortem dmesg.txt`")
        })?;
        evidence.logs.push(("/dev/kmsg".to_owned(), text));
    }
    let meant = verb.cgroup.as_deref().map(|path| path.trim_end_matches('/'));
    let is_meant = |of: &Option<String>| {
        meant.is_none_or(|meant| {
            of.as_ref()
                .and_then(|path| path.strip_prefix(meant))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let found: Vec<OomReport> = evidence.logs.iter().flat_map(|(_, text)| reports(text)).collect();
    let (kills, others): (Vec<OomRecord>, Vec<OomRecord>) =
        found.iter().map(diagnosis::of_oom).partition(|kill| is_meant(&kill.cgroup));
    // Nodes name the cgroups of the same pod in different ways.
    if let (true, Some(other)) = (kills.is_empty(), others.first()) {
        let place = other.cgroup.as_deref().unwrap_or("a cgroup that the log does not name");
        let count = several(others.len() as u64, "OOM kill");
        Progress::new(false).warn(&format!("--cgroup excludes {count}, the latest in {place}"));
    }
    let names: Vec<String> = evidence.logs.iter().map(|(name, _)| name.clone()).collect();
    let document = OomDocument {
        schema: OOM_SCHEMA.to_owned(),
        loadline: env!("CARGO_PKG_VERSION").to_owned(),
        command: typed.to_string(),
        log: names.join(", "),
        kills,
        traces: evidence.traces,
    };
    report::print(&match verb.json {
        true => report::document(&document),
        false => report::render(&summarize_oom(&document)),
    })?;
    Ok(Code::of(!document.kills.is_empty() || !document.traces.is_empty()))
}

/// The files by kind.
#[derive(Debug, Default)]
struct Evidence {
    /// Kernel logs: names and text.
    logs: Vec<(String, String)>,
    /// Evidence from other files.
    traces: Vec<TraceRecord>,
}

impl Evidence {
    fn add(&mut self, file: &Path) -> Result<()> {
        let (name, text) = match file {
            file if file == Path::new("-") => ("stdin".to_owned(), end_of(stdin().lock(), "stdin")?),
            file => (file.display().to_string(), read(file)?),
        };
        match traces::read(&text) {
            None => self.logs.push((name, text)),
            Some(found) if found.is_empty() => {
                return Err(Error::request("no container in this status has exited")
                    .at(name)
                    .hint("specify the status of the pod or container that was restarted or killed"));
            }
            Some(found) => self.traces.extend(found.into_iter().map(|trace| TraceRecord { file: name.clone(), trace })),
        }
        Ok(())
    }
}

/// The end of a log file.
fn read(path: &Path) -> Result<String> {
    let refuse = |cause: std::io::Error| {
        Error::request(format!("the log cannot be read: {}", plain(&cause)))
            .at(path.display().to_string())
            .hint("specify a file written by `dmesg -T` or `journalctl -k`, or `-` for stdin")
    };
    let mut file: File = bounded::open(path).map_err(refuse)?;
    let length = file.metadata().map_err(refuse)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_MAX))).map_err(refuse)?;
    end_of(file, &path.display().to_string())
}

fn end_of(from: impl Read, name: &str) -> Result<String> {
    let mut bytes = Vec::new();
    from.take(LOG_BYTES_MAX).read_to_end(&mut bytes).map_err(|cause| {
        Error::request(format!("the log cannot be read: {}", plain(&cause))).at(name).hint("specify a text file")
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
