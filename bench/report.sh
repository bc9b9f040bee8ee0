#!/usr/bin/env bash
# Measures how long it takes a report to read trial folders (10 trials of 10 minutes at 10 Hz, a million requests) and
# to write their page. Also measures how long a fresh Chromium takes to open that page.
#
#   bench/report.sh [FOLDER]      uses the archive in FOLDER, or makes one there; default: a temporary folder
#
# Needs Rust, and Chromium for the second half. Prints the time of each of five readings, and the reader's peak RSS,
# including the generator if it made the archive. Then prints the median and maximum over ten fresh browser starts: the
# time from requesting the page to its load event, to its first paint, and to two frames later. An empty page is
# measured for comparison.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if (($#)); then
    LOADLINE_LARGE_ARCHIVE=$(realpath -m "$1")
    export LOADLINE_LARGE_ARCHIVE
fi
cargo bench --quiet --bench report
