//! Arguments for a load alone: the verb `load`.

use crate::scenario::{Condition, LoadOptions};
use crate::units::parse_count;
use clap::Parser;
use std::path::PathBuf;

/// `loadline load`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Load {
    /// The URL under load: `http://HOST[:PORT][/PATH]`, or `https://`
    #[arg(value_name = "URL")]
    pub(super) url: String,
    #[command(flatten)]
    pub(super) load: LoadOptions,
    #[command(flatten)]
    pub(super) alone: AloneOptions,
    #[command(flatten)]
    pub(super) files: FileOptions,
}

const EXAMPLES: &str = "\
Examples:
  loadline load http://127.0.0.1:8080/hello
  loadline load http://127.0.0.1:8080/hello --rate 500 -d 30s --require 'p99<50ms' --strict
  loadline load http://127.0.0.1:8080/ --plan spike.yaml --hlog spike.hlog --csv spike.csv";

/// Options of `load` alone.
#[derive(Debug, Parser)]
#[command(next_help_heading = "Load alone")]
pub(super) struct AloneOptions {
    /// Phases from the `load:` of a file, such as a scenario; options and a path in the URL change them
    #[arg(long, value_name = "FILE")]
    pub(super) plan: Option<PathBuf>,
    /// Threads of the load engine [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) threads: Option<u32>,
    /// Connect to this address instead of the URL's, which is still sent as `Host`
    #[arg(long, value_name = "HOST:PORT", value_parser = endpoint, conflicts_with = "unix_socket")]
    pub(super) connect_to: Option<(String, u16)>,
    /// A threshold: `p99<50ms`, `failed<0.1%`, `rate>=99%`; may be repeated; exit code 1 if one fails
    #[arg(long, value_name = "CONDITION")]
    pub(super) require: Vec<Condition>,
    /// Exit code 1 where the offered rate is missed by more than 1 % or the generator may be the limit
    #[arg(long)]
    pub(super) strict: bool,
}

/// The output of `load`.
#[derive(Debug, Parser)]
#[command(next_help_heading = "Output")]
pub(super) struct FileOptions {
    /// Print a document instead of the summary
    #[arg(long)]
    pub(super) json: bool,
    /// No progress on stderr
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Histograms of every second, as an HdrHistogram log
    #[arg(long, value_name = "FILE")]
    pub(super) hlog: Option<PathBuf>,
    /// A row for each second
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// A row for each request, or for a fair sample of them
    #[arg(long, value_name = "FILE")]
    pub(super) rows: Option<PathBuf>,
    /// At most so many rows of each phase [default: 100k]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(super) rows_max: Option<u64>,
}

/// `host:80`, `[::1]:80`.
fn endpoint(text: &str) -> Result<(String, u16), String> {
    let refuse = || format!("`{text}` is no address; write it as `127.0.0.1:8080`");
    let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match port.parse() {
        Ok(port) if port > 0 && !host.is_empty() => Ok((host.to_owned(), port)),
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_a_port() {
        assert_eq!(endpoint("[::1]:80"), Ok(("::1".to_owned(), 80)));
        assert!(endpoint("host").is_err() && endpoint("host:0").is_err() && endpoint(":80").is_err());
    }
}
