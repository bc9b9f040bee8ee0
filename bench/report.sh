#!/usr/bin/env bash
# How fast the folders of trials are read for a report: 10 trials of 10 minutes at 10 Hz, a million requests; and how
# fast the page of as many is written, and opened by a fresh Chromium.
#
#   bench/report.sh [FOLDER]      makes the archive in FOLDER, or takes the one that is there; default: a folder that goes
#
# Needs Rust, and Chromium for the second half. Prints the time of each of five readings and the peak RSS of the reader,
# generator included where the archive was made again; then, of ten fresh starts of the browser, median and largest time
# from the request for the page to its load event, its first paint and two frames later, beside those of an empty page.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if (($#)); then
    LOADLINE_LARGE_ARCHIVE=$(realpath -m "$1")
    export LOADLINE_LARGE_ARCHIVE
fi
cargo bench --quiet --bench report
