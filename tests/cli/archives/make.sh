#!/bin/sh
# Regenerates the archives in this folder, or those named, with the release build and its Java subjects. Needs JDK 17
# and 25. Replaces machine details: JDK paths, kernel release, memory.
#
#   tests/cli/archives/make.sh [nmt|two|failed|interrupted|compared|searched]...
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../target}/release
loadline=$(realpath "${LOADLINE:-$target/loadline}")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/../../../java/compiled/demo.jar" "$work/app.jar"
"$here/../../../java/compile" test-subjects "$work/subjects.jar"
cp "$here"/*.loadline.yaml "$work"
cd "$work"

nmt() {
    "$loadline" weigh -n 2000 --heap 16m --gc serial --jdk 17 --nmt summary --rest 500ms --out nmt \
        --url 'http://127.0.0.1:{port}/hello' -- java -jar app.jar '{port}'
}

two() {
    "$loadline" run two.loadline.yaml --out two
}

failed() {
    # Dies in the measured phase, because the warm-up uses up 2000 of the 3000 responses that it can give.
    "$loadline" weigh -n 2000 --heap 16m --gc serial --jdk 17 --out failed \
        --url 'http://127.0.0.1:{port}/' -- java -cp subjects.jar loadline.subjects.DiesAfter '{port}' 3000 3 || true
}

interrupted() {
    "$loadline" run interrupted.loadline.yaml --out interrupted &
    run=$!
    # The archive's second line means that the first trial is on disk.
    until [ "$(wc -l 2>/dev/null <interrupted/archive.jsonl || echo 0)" -ge 2 ]; do sleep 0.1; done
    sleep 1.5
    kill -INT "$run"
    wait "$run" || true
}

# Without the accounts' details (threads, files, regions), which would make it ten times as large.
compared() {
    "$loadline" compare compared.loadline.yaml --out compared
    python3 - compared/archive.jsonl <<'PYTHON'
import json, sys
def bare(value):
    if isinstance(value, dict):
        return {key: [] if key in ("detail", "regions", "shares") else bare(inner) for key, inner in value.items()}
    return [bare(inner) for inner in value] if isinstance(value, list) else value
lines = [bare(json.loads(line)) for line in open(sys.argv[1])]
open(sys.argv[1], "w").write("".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines))
PYTHON
}

searched() {
    "$loadline" find --rate 50 -d 1s --warmup 300ms -c 4 --gc serial --jdk 17 --no-warm --proofs 3 --step 5% \
        --target failed==0 --jvm -XX:TieredStopAtLevel=1 --jvm -XX:MaxDirectMemorySize=64m --limit-max 512m \
        --url 'http://127.0.0.1:{port}/' --out searched \
        -- java -cp subjects.jar loadline.subjects.Appetite '{port}' live=32 direct=16 &
    run=$!
    until [ "$(wc -l 2>/dev/null <searched/archive.jsonl || echo 0)" -ge 5 ]; do sleep 0.1; done
    kill -INT "$run"
    wait "$run" || true
    "$loadline" find --resume searched
    # Only the next trial of a search needs the open files.
    python3 - searched/archive.jsonl <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
for line in lines:
    line.pop("files", None)
    for mark in line.get("marks", []):
        mark.pop("account", None)
open(sys.argv[1], "w").write("".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines))
PYTHON
}

neutral() {
    sed -E \
        -e 's#/[^" ]*/(java-17-openjdk|openjdk-17|jdk-17)[^/" ]*/#/opt/jdk-17/#g' \
        -e 's#/[^" ]*/(temurin-25|openjdk-25|jdk-25)[^/" ]*/#/opt/jdk-25/#g' \
        -e 's#"kernel":"[^"]*"#"kernel":"6.1.0-35-amd64"#' \
        -e 's#"memory_bytes":[0-9]+#"memory_bytes":8589934592#' \
        "$1"
}

for name in ${*:-nmt two failed interrupted compared searched}; do
    "$name"
    mkdir -p "$here/$name"
    neutral "$name/archive.jsonl" >"$here/$name/archive.jsonl"
done
