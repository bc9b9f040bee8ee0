#!/usr/bin/env bash
# Measures what it costs Loadline to read HotSpot's tables, on every JDK found: the median of 101 readings of a JVM with
# THREADS threads and about 3,000 classes. Needs a quiet machine. Stops only the JVMs it started.
#   bench/inside.sh [THREADS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
threads=${1:-200}
cargo build --profile dist --example observe
# shellcheck source=bench/jdks.sh
source bench/jdks.sh

printf 'machine: %s cores, Linux %s\ncommand: bench/inside.sh %s\n' "$(nproc)" "$(uname -r)" "$threads"
for java in $(javas); do
    "$java" -version 2>&1 | head -n 1
    start_jvm "$java" -Xmx256m bench/IdleThreads.java "$threads"
    for ((i = 0; i < 300; i++)); do
        if grep -qs ready "$work/out"; then break; fi
        sleep 0.1
    done
    sleep 2
    target/dist/examples/observe tables "$jvm"
    end_jvm
done
