#!/usr/bin/env bash
# The pictures of the README and its sample: one search on the Vert.x template, drawn by Loadline. Maven builds the
# server, which takes a minute at the first time; the search takes some 4. LOADLINE names another binary to use.
#   bench/pictures.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -n "${LOADLINE:-}" ] || cargo build --release
loadline=${LOADLINE:-$PWD/target/release/loadline}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Paths of this machine stay here.
"$loadline" find scenarios/vertx/vertx-find.loadline.yaml --out "$work/archive" |
    sed -E "s#$work/archive#loadline-archive/vertx-find#; s#\(/[^)]*/java\)#(java)#" | tee docs/pictures/load-line.txt
"$loadline" report "$work/archive" --plot "$work/pictures" >/dev/null
cp "$work/pictures/load-line.svg" docs/pictures/load-line.svg
cp "$work/pictures/account-trial-1.svg" docs/pictures/memory.svg
