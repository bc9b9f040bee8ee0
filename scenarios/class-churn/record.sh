#!/bin/sh
# Builds metaspace-replay and uses it to record a JVM's metaspace requests during the waves of ClassChurn:
#
#   $ ./record.sh NAME CLUSTERS LOADERS CLASSES FIELDS
#
# Creates target/release/metaspace-replay and target/NAME.trace, unless the trace is newer than the sources. Needs
# cargo, javac and java.
set -eu
cd "$(dirname "$0")"
name=$1; shift
trace=target/$name.trace
replay=target/release/metaspace-replay
mkdir -p target
command -v cargo > /dev/null || { echo "Cargo (https://rustup.rs) is needed to build metaspace-replay" >&2; exit 1; }
cargo build --release --locked --quiet --manifest-path metaspace-replay/Cargo.toml --target-dir target
javac --release 11 -d target src/ClassChurn.java src/ClassBytes.java
[ "$trace" -nt src/ClassChurn.java ] && [ "$trace" -nt src/ClassBytes.java ] && exit
# With 8-byte class pointers, all metadata is in one place, as it would be in malloc.
java -Xlog:disable '-Xlog:metaspace*=trace:stdout:level' -XX:-UseCompressedClassPointers -XX:+UseSerialGC -Xmx64m \
  -cp target ClassChurn "$@" collect < /dev/null | "$replay" record "$trace"
# If the JVM died early, the trace lacks the last phase.
"$replay" show "$trace" | grep '^end ' || { rm -f "$trace"; echo "the JVM did not run to completion" >&2; exit 1; }
