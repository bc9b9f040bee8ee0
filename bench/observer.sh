#!/usr/bin/env bash
# Measures what weighing adds to a JVM: on every JDK found, reads an idle server the way a trial does, and compares its
# RSS with that of a period without readings. NMT is off. Stops only the servers it started.
#   bench/observer.sh [REPEATS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repeats=${1:-3}
cargo build --profile dist --example observe --bin loadline
demo=java/compiled/demo.jar
# shellcheck source=bench/jdks.sh
source bench/jdks.sh

printf 'machine: %s cores, Linux %s\ncommand: bench/observer.sh %s\n' "$(nproc)" "$(uname -r)" "$repeats"
for java in $(javas); do
    "$java" -version 2>&1 | head -n 1
    for ((i = 1; i <= repeats; i++)); do
        port=$((20000 + RANDOM % 10000))
        start_jvm "$java" -Xms64m -Xmx64m -XX:+UseSerialGC -jar "$demo" "$port"
        sleep 5
        target/dist/examples/observe added "$jvm"
        end_jvm
    done
done
