#!/usr/bin/env bash
# Measures how fast a report reads the folders of trials (10 trials of 10 minutes at 10 Hz, a million requests), and how
# fast it writes their page and a fresh Chromium opens it.
#
#   bench/report.sh [FOLDER]      makes the archive in FOLDER, or uses the one there; default: a temporary folder
#
# Needs Rust, and Chromium for the second half. Prints the time of each of five readings and the peak RSS of the reader,
# including the generator if it made the archive; then, the median and maximum of ten fresh browser starts: time
# from the request for the page to its load event, its first paint and two frames later, and those of an empty page.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if (($#)); then
    LOADLINE_LARGE_ARCHIVE=$(realpath -m "$1")
    export LOADLINE_LARGE_ARCHIVE
fi
cargo bench --quiet --bench report
