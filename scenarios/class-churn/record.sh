#!/bin/sh
# Records what a JVM asks of its metaspace in the waves of ClassChurn:
#
#   $ ./record.sh NAME CLUSTERS LOADERS CLASSES FIELDS
#
# leaves target/NAME.trace. Nothing is done where that is newer than the sources.
set -eu
cd "$(dirname "$0")"
name=$1; shift
trace=target/$name.trace
mkdir -p target
javac --release 11 -d target src/ClassChurn.java src/ClassBytes.java
[ "$trace" -nt src/ClassChurn.java ] && [ "$trace" -nt src/ClassBytes.java ] && exit
# With class pointers of 8 bytes all metadata is in one place, as it would be in malloc.
java -Xlog:disable '-Xlog:metaspace*=trace:stdout:level' -XX:-UseCompressedClassPointers -XX:+UseSerialGC -Xmx64m \
  -cp target ClassChurn "$@" collect < /dev/null | metaspace-replay record "$trace"
# A JVM that died on the way leaves a trace without its last phase.
metaspace-replay show "$trace" | grep '^end ' || { rm -f "$trace"; echo "the JVM did not come to its end" >&2; exit 1; }
