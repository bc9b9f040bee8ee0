#!/usr/bin/env bash
# What reading HotSpot's own tables costs Loadline, on every JDK found: a JVM with so many threads and some 3,000
# classes, each reading 101 times, its median. Nothing else may run beside it. Ends only the JVMs it started.
#   bench/inside.sh [THREADS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
threads=${1:-200}
cargo build --release --example inside
work=$(mktemp -d)
jvm=
cleanup() {
    [[ -n $jvm ]] && kill "$jvm" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

printf 'machine: %s cores, Linux %s\ncommand: bench/inside.sh %s\n' "$(nproc)" "$(uname -r)" "$threads"
for java in $(for each in "${JAVA_HOME:-}"/bin/java "$(command -v java)" /usr/lib/jvm/*/bin/java; do
    [[ -x $each ]] && readlink -f "$each"
done | sort -u); do
    "$java" -version 2>&1 | head -n 1
    "$java" -Xmx256m bench/IdleThreads.java "$threads" >"$work/out" 2>&1 &
    jvm=$!
    for ((i = 0; i < 300; i++)); do
        if grep -qs ready "$work/out"; then break; fi
        sleep 0.1
    done
    sleep 2
    target/release/examples/inside "$jvm"
    kill "$jvm"
    wait "$jvm" 2>/dev/null || true
    jvm=
done
