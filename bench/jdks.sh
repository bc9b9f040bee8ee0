# For the benchmarks that start a JVM of their own on every JDK found: sourced, after `set -euo pipefail`. Ends only the
# JVM it started.
work=$(mktemp -d)
jvm=
cleanup() {
    [[ -n $jvm ]] && kill "$jvm" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

# The `java` of every JDK found, a line each.
javas() {
    local each
    for each in "${JAVA_HOME:-}"/bin/java "$(command -v java)" /usr/lib/jvm/*/bin/java; do
        if [[ -x $each ]]; then readlink -f "$each"; fi
    done | sort -u
}

# start_jvm JAVA ARGUMENTS…: in `jvm`, with what it says in `$work/out`.
start_jvm() {
    "$@" >"$work/out" 2>&1 &
    jvm=$!
}

end_jvm() {
    kill "$jvm"
    wait "$jvm" 2>/dev/null || true
    jvm=
}
