//! `metaspace-replay` records a JVM's metaspace allocations and replays them with other allocators. Loadline measures
//! this program as a native subject. See `../README.md`.

mod arena;
mod error;
mod log;
mod malloc;
mod native;
mod recorder;
mod replay;
mod trace;

use arena::{Arenas, Mapped};
use clap::{Parser, Subcommand, ValueEnum};
use error::{Error, Result};
use malloc::{Malloc, Trim};
use native::Header;
use replay::{LiveSet, Scheme};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use trace::{Event, Reader};

/// The size of the buffers for reading and writing.
const BUFFER_BYTES: usize = 64 << 10;

/// Records a JVM's metaspace requests and replays them with other allocators.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Turn a JVM's metaspace log, read from standard input, into a trace.
    ///
    /// Run the JVM (JDK 17 or newer) with `-Xlog:disable -Xlog:metaspace*=trace:stdout:level`. In its output, a line
    /// such as `loadline: phase=spike` starts a phase of the trace.
    Record {
        /// The trace to write; the file appears only once it is complete.
        trace: PathBuf,
    },
    /// Replay a trace; at the start of each phase, print a marker and wait for a line on standard input.
    Replay {
        /// The trace.
        trace: PathBuf,
        /// How to allocate blocks.
        #[arg(long, value_enum, default_value = "malloc")]
        scheme: Kind,
        /// Put a two-word header before each block, as an intrusive linked list does.
        #[arg(long)]
        header: bool,
        /// Call `malloc_trim` before each marker.
        #[arg(long)]
        trim: bool,
    },
    /// Show the contents of a trace, phase by phase.
    Show {
        /// The trace.
        trace: PathBuf,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Allocate each block with the process's malloc.
    Malloc,
    /// Allocate blocks from an arena's chunks, which are committed and uncommitted in 64 KiB granules.
    Arena,
}

#[expect(clippy::print_stderr, reason = "the only place in this program that prints errors")]
fn main() -> ExitCode {
    let Arguments { verb } = Arguments::parse();
    let done = match verb {
        Verb::Record { trace } => record(&trace),
        Verb::Replay { trace, scheme, header, trim } => replay(&trace, scheme, header, trim),
        Verb::Show { trace } => show(&trace),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    ExitCode::from(error.code)
}

fn record(trace: &Path) -> Result<()> {
    let mut name = trace.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let file = File::create(&part).map_err(|error| Error::io("write", part.display(), &error))?;
    let log = BufReader::with_capacity(BUFFER_BYTES, io::stdin().lock());
    let recorded = recorder::record(log, BufWriter::with_capacity(BUFFER_BYTES, file));
    let moved = recorded.and_then(|summary| {
        fs::rename(&part, trace).map_err(|error| Error::io("write", trace.display(), &error))?;
        Ok(summary)
    });
    let summary = match moved {
        Ok(summary) => summary,
        Err(error) => {
            // The partial file of a failed recording is useless, but leaving it behind does no harm.
            let _ = fs::remove_file(&part);
            return Err(error);
        }
    };
    print_line(&format!(
        "{} blocks, {:.1} MiB, {} arenas; phases: {}; omitted: {} early returns of blocks",
        summary.blocks,
        mib(summary.bytes),
        summary.arenas,
        if summary.phases.is_empty() { "none".to_owned() } else { summary.phases.join(", ") },
        summary.returned,
    ))
}

fn replay(trace: &Path, kind: Kind, header: bool, trim: bool) -> Result<()> {
    let mut scheme: Box<dyn Scheme> = match kind {
        Kind::Malloc => {
            let header = if header { Header::TwoWords } else { Header::Absent };
            Box::new(Malloc::new(header, if trim { Trim::AtMarks } else { Trim::Never }))
        }
        Kind::Arena if header || trim => {
            return Err(Error::request("`--header` and `--trim` require `--scheme malloc`"));
        }
        Kind::Arena => Box::new(Arenas::new(Mapped::default())),
    };
    let streams: (&mut dyn Write, &mut dyn io::BufRead) = (&mut io::stdout().lock(), &mut io::stdin().lock());
    #[expect(clippy::disallowed_methods, reason = "the only place in this program that reads the clock")]
    let began = Instant::now();
    let played = replay::replay(&mut open(trace)?, scheme.as_mut(), streams, began);
    // The kernel frees everything at exit; freeing each block here would only add work after the last mark.
    std::mem::forget(scheme);
    played.map_err(|error| error.at(format!("trace: {}", trace.display())))
}

fn show(trace: &Path) -> Result<()> {
    let mut reader = open(trace)?;
    let mut live = LiveSet::default();
    let line = |name: &str, live: &LiveSet| {
        let (blocks, arenas, live) = (live.blocks, live.arenas, mib(live.bytes));
        print_line(&format!("{name:16} {blocks:>12} blocks so far {arenas:>8} arenas {live:>10.1} MiB live"))
    };
    while let Some(event) = reader.next().map_err(|error| error.at(format!("trace: {}", trace.display())))? {
        live.take(&event)?;
        if let Event::Mark { name } = &event {
            line(name, &live)?;
        }
    }
    line("(end)", &live)
}

fn open(trace: &Path) -> Result<Reader<BufReader<File>>> {
    let file = File::open(trace).map_err(|error| {
        let error = Error { code: 2, ..Error::io("read", trace.display(), &error) };
        error.hint("record one with `metaspace-replay record`")
    })?;
    Reader::new(BufReader::with_capacity(BUFFER_BYTES, file))
        .map_err(|error| error.at(format!("trace: {}", trace.display())))
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn print_line(line: &str) -> Result<()> {
    writeln!(io::stdout(), "{line}").map_err(|error| Error::io("write", "standard output", &error))
}
