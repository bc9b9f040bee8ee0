#!/usr/bin/env bash
# Did the cost of a trial change? Runs two binaries alternately on the same servers. For the load alone (nginx, 25
# connections), measures CPU per request and peak RSS. For a trial of the demo's JVM, measures Loadline's peak RSS, the
# memory that reading adds to the JVM, and the time per sample. Prints medians and the ratio of new to old.
# Needs a quiet machine: about a minute per round.
#   bench/trial.sh OLD NEW [ROUNDS]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
old=$(realpath "${1:?the old binary}") new=$(realpath "${2:?the new binary}") rounds=${3:-11}
requests=400000
# shellcheck source=bench/nginx.sh
source bench/nginx.sh
needs nginx java taskset python3 openssl time=/usr/bin/time
start_nginx
demo=$root/java/compiled/demo.jar

printf 'machine: %s cores, Linux %s, %s\ncommand: bench/trial.sh OLD NEW %s\n' "$(nproc)" "$(uname -r)" \
    "$(java -version 2>&1 | head -n 1)" "$rounds"
for ((round = 0; round < rounds; round++)); do
    # Alternates which binary goes first.
    if ((round % 2)); then order=(new old); else order=(old new); fi
    for which in "${order[@]}"; do
        program=${!which}
        taskset -c "$load_cpu" /usr/bin/time -f '%U %S %M' -o "$work/time" \
            "$program" load "http://127.0.0.1:$port/12" -c 25 -n "$requests" --quiet >/dev/null
        read -r user system rss_kib <"$work/time"
        "$program" weigh --quiet --json --jvm '-XX:+UseSerialGC' --heap 64m --rate 500 -d 3s --warmup 1s --trials 1 \
            --out "$work/archive-$which-$round" --url 'http://127.0.0.1:{port}/hello' -- java '{jvm}' -jar "$demo" '{port}' >"$work/trial.json"
        python3 - "$which" "$user" "$system" "$rss_kib" "$requests" "$work/trial.json" <<'PY' >>"$work/all"
import json, sys
which, user, system, rss_kib, requests, path = sys.argv[1:]
observer = json.load(open(path))["trials"][0]["observer"]
cpu_us = (float(user) + float(system)) * 1e6 / int(requests)
print(which, cpu_us, int(rss_kib) / 1024, observer["own_rss_bytes_peak"] / 2**20,
      (observer["attach_rss_bytes"] or 0) / 2**20, observer["sample_us_mean"])
PY
    done
done
python3 - "$work/all" <<'PY'
import statistics, sys
rows = [line.split() for line in open(sys.argv[1])]
names = ["load: CPU us per request", "load: peak RSS MiB", "trial: peak RSS MiB", "trial: added MiB", "trial: sample us"]
print(f'{"":26} {"old":>9} {"new":>9} {"new/old":>8}')
for column, name in enumerate(names, 1):
    old, new = (statistics.median(float(row[column]) for row in rows if row[0] == which) for which in ("old", "new"))
    print(f"{name:26} {old:9.3f} {new:9.3f} {new / old if old else float('nan'):8.3f}")
PY
