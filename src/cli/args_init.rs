//! Arguments for a first scenario: the verb `init`.

use clap::Parser;
use std::path::PathBuf;

/// `loadline init`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Init {
    /// A folder of a project, a jar, or a Dockerfile
    #[arg(value_name = "WHERE", default_value = ".")]
    pub(super) place: PathBuf,
    /// Write it for this container image instead
    #[arg(long, value_name = "IMAGE", conflicts_with = "place")]
    pub(super) image: Option<String>,
    /// The file to write [default: NAME.loadline.yaml in the folder of the project]
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Write over a file that is there already
    #[arg(long)]
    pub(super) force: bool,
    /// Do not start the server to see where it answers; port and paths are then guesses
    #[arg(long)]
    pub(super) no_start: bool,
    /// No talk on stderr
    #[arg(long, short)]
    pub(super) quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  loadline init
  loadline init services/shop --out load/shop.loadline.yaml
  loadline init target/app.jar --no-start
  loadline init --image app:1.2";
