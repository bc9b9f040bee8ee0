#!/usr/bin/env bash
# Captures JVM output for tests/samples/<jdk>/ from the given Java homes:
#
#   $ tests/samples/capture.sh JAVA_HOME...
#
# At least one needs bin/javac and bin/jcmd; the others may be jlinked runtimes. Replaces machine paths with /opt/jdk-N
# (in hsperfdata, padded to the same length). Kills only the JVMs it started, by pid.
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
pid=
finish() { [ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$work"; }
trap finish EXIT

for home in "$@"; do
  [ -x "$home/bin/javac" ] && [ -x "$home/bin/jcmd" ] && tools=$home
done
: "${tools:?none of these Java homes has both javac and jcmd}"
"$tools/bin/javac" --release 11 -d "$work" "$here/Sample.java"

# Replaces the Java home $1 with /opt/jdk-$2 in stdin, padded with $3 to the old length.
neutral() {
  FROM=$1 TO=/opt/jdk-$2 FILL=${3-} perl -0777 -pe '
    BEGIN { ($from, $to, $fill) = @ENV{qw(FROM TO FILL)};
            $to .= "/" . $fill x (length($from) - length($to) - 1) if $fill ne ""; }
    s/\Q$from\E/$to/g; s/hsperfdata_\w+/hsperfdata_user/g unless $fill;
    s/\Q$ENV{WORK}\E/\/srv\/app/g;'
}

ask() { "$tools/bin/jcmd" "$pid" "$@" | sed 1d; }

# VM.info without machine details and long parts: only the first 40 regions and those in use.
vm_info() {
  ask VM.info | awk '
    /S Y S T E M/ { late = 1 }
    late { if (/S Y S T E M|^libc:|^C-Heap/) print; next }
    / events\):$/ { past = 1 }
    past || /^Host:/ || (/^\|/ && ++rows > 40 && /\|E[CU] |\|  0%\|/) { next }
    { print }'
}

stop() { kill "$pid"; wait "$pid" 2>/dev/null || true; pid=; }

# start HOME OPTIONS...: fails if the JVM lacks the collector.
start() {
  local home=$1; shift
  : > "$work/out"
  (cd "$work" && exec "$home/bin/java" -Xmx64m "$@" -cp . Sample) > "$work/out" 2>&1 &
  pid=$!
  for _ in $(seq 100); do
    grep -q READY "$work/out" && return
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  pid=; return 1
}

for home in "$@"; do
  home=$(readlink -f "$home")
  jdk=$("$home/bin/java" -version 2>&1 | sed -nE '1s/.*"([0-9]+).*/\1/p')
  to=$here/$jdk; mkdir -p "$to"
  export WORK=$work
  for gc in Serial Parallel G1 Z Shenandoah Epsilon; do
    start "$home" -XX:+UnlockExperimentalVMOptions "-XX:+Use${gc}GC" -XX:NativeMemoryTracking=summary || continue
    name=${gc,,}
    ask VM.native_memory baseline > /dev/null
    # Keeps only the counters in use, because the rest of the file is zero.
    perl -0777 -ne 'print substr($_, 0, unpack("l", substr($_, 8, 4)))' /tmp/hsperfdata_*/"$pid" \
      | neutral "$home" "$jdk" x > "$to/hsperfdata-$name.bin"
    ask GC.heap_info > "$to/heap_info-$name.txt"
    if [ "$gc" = Serial ]; then
      ask VM.version > "$to/vm_version.txt"
      ask VM.flags | neutral "$home" "$jdk" > "$to/vm_flags.txt"
      ask VM.native_memory summary scale=KB > "$to/nmt_summary.txt"
      ask VM.native_memory summary.diff scale=KB > "$to/nmt_diff.txt"
      cat "/proc/$pid/status" > "$to/status.txt"
      cat "/proc/$pid/stat" > "$to/stat.txt"
      cat "/proc/$pid/statm" > "$to/statm.txt"
      cat "/proc/$pid/smaps_rollup" > "$to/smaps_rollup.txt"
      # Keeps about 40 mappings: each named one once, and the first anonymous ones.
      neutral "$home" "$jdk" < "/proc/$pid/smaps" | awk '
        /^[0-9a-f]+-[0-9a-f]+ / { path = (NF > 5) ? $6 : "anonymous" NR % 7; keep = ++seen[path] <= 1 + (path ~ /libjvm/) && kept < 40; kept += keep }
        keep' > "$to/smaps.txt"
    fi
    vm_info | neutral "$home" "$jdk" > "$to/vm_info-$name.txt"
    case $gc in Serial | G1) ask VM.metaspace vslist | cut -c1-400 > "$to/vslist-$name.txt" ;; esac
    stop
  done
  # Ranges and the first call stacks.
  start "$home" -XX:+UseSerialGC -XX:NativeMemoryTracking=detail
  ask VM.native_memory detail scale=KB | neutral "$home" "$jdk" \
    | awk '/^-/ { head = 1 } !head || (/^\[/ && ++lines <= 300)' > "$to/nmt_detail.txt"
  stop
  # Sizes that the collector rounds up, and a flag that JDK 25 no longer has.
  start "$home" -XX:+UseParallelGC -Xmx7m -Xms7m -Xss300k -XX:MaxRAMPercentage=75 \
    -XX:+IgnoreUnrecognizedVMOptions -XX:+UseBiasedLocking
  ask VM.native_memory summary > "$to/nmt_off.txt"
  ask VM.flags | neutral "$home" "$jdk" > "$to/vm_flags-asked.txt"
  stop
done

# The JVM's metaspace log: three lines of each kind, markers, and the first requests of arenas that end.
"$tools/bin/javac" --release 11 -d "$work" "$here"/../../scenarios/class-churn/src/*.java
for home in "$@"; do
  jdk=$("$home/bin/java" -version 2>&1 | sed -nE '1s/.*"([0-9]+).*/\1/p')
  [ "$jdk" -ge 17 ] || continue
  "$home/bin/java" -XX:+UseSerialGC -Xmx64m -XX:-UseCompressedClassPointers -Xlog:disable \
    '-Xlog:metaspace*=trace:stdout:level' -cp "$work" ClassChurn 2 2 3 2 collect < /dev/null > "$work/log" 2>/dev/null
  awk '
    NR == FNR { if (/Arena .*dies\.$/) dying[$3]; next }
    { kind = $0; gsub(/0x[0-9a-f]+|[0-9]+/, "N", kind) }
    /^loadline: / || ++seen[kind] <= 3 { print; next }
    / Arena .*(born|dies)\.$/ && $3 in dying { asked[$3] = 0; print; next }
    / Arena .*requested [0-9]+ words\.$/ && $3 in dying && ++asked[$3] <= 5' \
    "$work/log" "$work/log" > "$here/$jdk/metaspace_log.txt"
done

# The memory cgroup of this shell, if the machine has v1. (The files in cgroup-v2 are handwritten; see README.md.)
memory=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
if [ -f "$memory/memory.usage_in_bytes" ]; then
  mkdir -p "$here/cgroup-v1"
  for file in usage_in_bytes max_usage_in_bytes limit_in_bytes failcnt oom_control stat; do
    cat "$memory/memory.$file" > "$here/cgroup-v1/memory.$file"
  done
fi
