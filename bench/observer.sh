#!/usr/bin/env bash
# What weighing adds to a JVM: an idle server on every JDK found, read as a trial reads it, its RSS beside a while of not
# being touched. No NMT. Ends only the servers it started.
#   bench/observer.sh [REPEATS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repeats=${1:-3}
cargo build --release --example observe --bin loadline
demo=$(ls -t target/release/build/loadline-*/out/demo.jar | head -n 1)
work=$(mktemp -d)
server=
cleanup() {
    [[ -n $server ]] && kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

printf 'machine: %s cores, Linux %s\ncommand: bench/observer.sh %s\n' "$(nproc)" "$(uname -r)" "$repeats"
for java in $(for each in "${JAVA_HOME:-}"/bin/java "$(command -v java)" /usr/lib/jvm/*/bin/java; do
    [[ -x $each ]] && readlink -f "$each"
done | sort -u); do
    "$java" -version 2>&1 | head -n 1
    for ((i = 1; i <= repeats; i++)); do
        port=$((20000 + RANDOM % 10000))
        "$java" -Xms64m -Xmx64m -XX:+UseSerialGC -jar "$demo" "$port" >"$work/log" 2>&1 &
        server=$!
        sleep 5
        target/release/examples/observe "$server"
        kill "$server"
        wait "$server" 2>/dev/null || true
        server=
    done
done
