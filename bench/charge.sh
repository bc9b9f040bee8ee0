#!/usr/bin/env bash
# Measures how long `loadline account --cgroup` takes for a container with PROCESSES processes and FILES open files.
# Runs the whole command 21 times, and `loadline --version` just as often, to show the startup time alone. Needs a quiet
# machine, and root to create a memory cgroup. Stops only processes it started.
#   bench/charge.sh [PROCESSES] [FILES]
# LOADLINE names another binary.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=bench/nginx.sh
source "$root/bench/nginx.sh"
processes=${1:-200} files=${2:-1000}
build_loadline

base=/sys/fs/cgroup
[[ -d $base/memory ]] && base=$base/memory
cgroup=$base/loadline-bench-$$
mkdir "$cgroup"
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rmdir "$cgroup"; rm -rf "$work"' EXIT

each=$(((files + processes - 1) / processes))
for ((i = 0; i < processes; i++)); do
    opened=''
    for ((j = 0; j < each && i * each + j < files; j++)); do
        : >"$work/file-$i-$j"
        opened+=" $((10 + j))<$work/file-$i-$j"
    done
    bash -c "echo \$\$ >$cgroup/cgroup.procs && exec $opened && exec sleep 600" &
    pids+=($!)
done
sleep 2

printf 'machine: %s cores, Linux %s\ncommand: bench/charge.sh %s %s\n' "$(nproc)" "$(uname -r)" "$processes" "$files"
python3 - "$loadline" "$cgroup" <<'PYTHON'
import statistics, subprocess, sys, time
loadline, cgroup = sys.argv[1:]
def took(*words):
    began = time.perf_counter()
    subprocess.run([loadline, *words], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000
rounds = [(took("--version"), took("account", "--cgroup", cgroup)) for _ in range(21)]
for name, times in zip(("loadline --version", "loadline account --cgroup"), zip(*rounds)):
    print("%-26s median %5.1f ms, minimum %5.1f ms" % (name, statistics.median(times), min(times)))
PYTHON
