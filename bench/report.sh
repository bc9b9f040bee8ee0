#!/usr/bin/env bash
# How fast the folders of trials are read for a report: 10 trials of 10 minutes at 10 Hz, a million requests.
#
#   bench/report.sh [FOLDER]      makes the archive in FOLDER, or takes the one that is there; default: a folder that goes
#
# Needs Rust only. Prints the time of each of five readings and the peak RSS of the reader, generator included where the
# archive was made anew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if (($#)); then
    LOADLINE_LARGE_ARCHIVE=$(realpath -m "$1")
    export LOADLINE_LARGE_ARCHIVE
fi
cargo test --quiet --release --test cli -- --ignored --nocapture large::the_largest_archive | grep -E '^(read|VmHWM)'
