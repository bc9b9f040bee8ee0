# Sourced, after `set -euo pipefail`, by benchmarks that start a JVM on every JDK found. Stops only the JVM that it
# started.
work=$(mktemp -d)
jvm=
cleanup() {
    [[ -n $jvm ]] && kill "$jvm" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

# Prints the `java` of every JDK found, one per line.
javas() {
    local each
    for each in "${JAVA_HOME:-}"/bin/java "$(command -v java)" /usr/lib/jvm/*/bin/java; do
        if [[ -x $each ]]; then readlink -f "$each"; fi
    done | sort -u
}

# start_jvm JAVA ARGUMENTS…: stores its pid in `jvm` and its output in `$work/out`.
start_jvm() {
    "$@" >"$work/out" 2>&1 &
    jvm=$!
}

end_jvm() {
    kill "$jvm"
    wait "$jvm" 2>/dev/null || true
    jvm=
}
