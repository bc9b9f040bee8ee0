#!/usr/bin/env python3
"""What do hostile and huge processes cost `loadline watch`, and what does an account cost them?

Sampling rounds follow each other without a pause. Each case also runs ten idle JVMs, which must still get sampled. With
`--cpu 50m`, `watch` gets 5 ms of CPU in every 100 ms, as in the DaemonSet. Needs gcc, a JDK, root (only to limit CPU),
and an idle machine.

    bench/hostile.py [--cpu 50m] [CASE…]      honest classes netty threads flags crowd maps files | pause account
"""
import json, os, re, shutil, signal, socket, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOADLINE = os.environ.get("LOADLINE", f"{HERE}/target/dist/loadline")
WORK = tempfile.mkdtemp()
SECONDS = 30
LIES = {"classes": "4000000", "netty": "1000000", "threads": "100000", "flags": "16384"}
MAPPED = {"maps": "one", "files": "%ld"}
started = []


def start(command, lie=None, library=None, **more):
    environment = {**os.environ, **({"LD_PRELOAD": library or f"{WORK}/libjvm.so"} if lie is not None else {}), "LIAR": lie or ""}
    process = subprocess.Popen(command, env=environment, **more)
    started.append(process)
    return process


def stop(processes):
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()
        if process in started:
            started.remove(process)


def ready(command):
    process = start(command, "", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n", command
    return process


def build():
    gcc = ["gcc", "-O1", "-Wall", "-Werror"]
    subprocess.run([*gcc, "-shared", "-fPIC", "-o", f"{WORK}/libjvm.so", f"{HERE}/tests/jvm/native/jvm.c"], check=True)
    subprocess.run([*gcc, "-pthread", "-o", f"{WORK}/hostile", f"{HERE}/bench/hostile.c"], check=True)
    subjects = [f"{HERE}/java/subjects/loadline/subjects/{name}.java" for name in ("Leaks", "ClassFiles")]
    subprocess.run(["javac", "-nowarn", "-d", f"{WORK}/classes", *subjects], check=True)


def honest(number):
    command = "java -Xmx16m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp".split()
    command += [f"{WORK}/classes", "loadline.subjects.Leaks", "idle", "rate=0"]
    jvms = [start(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(number)]
    time.sleep(5)
    return jvms


def mapped(number, name):
    """A process with `number` file mappings, whose paths have about 450 bytes."""
    folder = f"{WORK}/" + "/".join(["x" * 100] * 4)
    os.makedirs(folder, exist_ok=True)
    return ready([f"{WORK}/hostile", "maps", str(number), f"{folder}/{name}"])


def hostile(case):
    if case in LIES:
        return [start(["sleep", "600"], f"{case}:{LIES[case]}")]
    if case == "crowd":
        return [start(["sleep", "600"], "") for _ in range(2000)]
    if case in MAPPED:
        return [mapped(65000, MAPPED[case])]
    return []


def asked(path, what):
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(60)
    peer.connect(path)
    peer.sendall(f"GET {what} HTTP/1.1\r\n\r\n".encode())
    text = b""
    while piece := peer.recv(1 << 20):
        text += piece
    peer.close()
    return text.decode()


def status(pid, key):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(rf"^{key}:\s+(\d+)", file.read(), re.M)[1])


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def limited(milli):
    """A shell that limits its own CPU and then execs its arguments."""
    if not milli:
        return []
    v1 = "/sys/fs/cgroup/cpu"
    folder = f"{v1 if os.path.isdir(v1) else '/sys/fs/cgroup'}/loadline-bench-{os.getpid()}"
    os.makedirs(folder, exist_ok=True)
    quota = milli * 100
    for name, text in (("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", str(quota)), ("cpu.max", f"{quota} 100000")):
        if os.path.exists(f"{folder}/{name}"):
            with open(f"{folder}/{name}", "w") as file:
                file.write(text)
    return ["sh", "-c", f'echo $$ > {folder}/cgroup.procs; exec "$@"', "sh"]


def turns(case, milli):
    own = hostile(case)
    time.sleep(3)
    path, poll_s = f"{WORK}/{case}.sock", 0.1 if milli else 0.01
    seen, began = [], time.monotonic()
    command = [LOADLINE, "watch", "--all", "--every", "10ms", "--account", "never", "--quiet", "--listen", f"unix:{path}"]
    watch = start([*limited(milli), *command, "--history", f"{WORK}/{case}-histories"])
    while time.monotonic() - began < SECONDS * (2 if milli else 1) or not seen:
        time.sleep(poll_s)
        try:
            count = int(re.search(r", of (\d+)", asked(path, "/healthz"))[1])
        except (FileNotFoundError, ConnectionRefusedError):
            continue
        if count > (seen[-1][0] if seen else 0):
            seen.append((count, time.monotonic() - began))
    used = cpu_s(watch.pid)
    text = asked(path, "/metrics")
    number = lambda name: int(float((re.search(rf"^loadline_watch_{name} (\S+)", text, re.M) or [0, 0])[1]))
    sampled = len(re.findall(r'^loadline_jvm_age_seconds\{jvm="loadline', text, re.M))
    peak, told = status(watch.pid, "VmHWM") / 1024, time.monotonic()
    watch.send_signal(signal.SIGTERM)
    code = watch.wait()
    ended, later = time.monotonic() - told, [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(seen, seen[1:])]
    rest = (seen[-1][1] - seen[0][1]) / max(1, seen[-1][0] - seen[0][0])
    cells = [case, f"{seen[0][1]:.2f}", f"{rest:.3f}", f"{max(later, default=0):.2f}", f"{1e3 * used / seen[-1][0]:.1f}"]
    cells += [f"{peak:.1f}", f"{sampled}", f"{number('set_aside_processes')}", f"{number('left_out_jvms')}"]
    print("| " + " | ".join([*cells, f"{ended:.1f} ({code})"]) + " |", flush=True)
    stop([*own, watch])


def pause():
    for number in (100, 1000, 10000):
        process = ready([f"{WORK}/hostile", "threads", str(number)])

        def gap():
            process.stdin.write("\n")
            process.stdin.flush()
            return float(process.stdout.readline())

        rows = []
        for _ in range(5):
            time.sleep(1)
            gap()
            time.sleep(1)
            without = gap()
            ran = subprocess.run([LOADLINE, "account", str(process.pid), "--json"], capture_output=True, text=True)
            told = json.loads(ran.stdout) if ran.returncode == 0 else {}
            found = re.search(r'"pause_ms": ?([\d.]+)', ran.stdout)
            rows.append((found[1] if found else "-", f"{gap():.1f}", f"{without:.1f}", ran.stderr.strip()[:200]))
        for row in rows:
            print(f"| {number} | " + " | ".join(row) + " |", flush=True)
        stop([process])


def account():
    """With the limit that `watch` sets, and without."""
    for case, name in MAPPED.items():
        process = mapped(65000, name)
        pid, into = str(process.pid), f"{WORK}/account.json"
        for how, words in (
            ("by `watch`, held", ["__weigh", pid, "held", into]),
            ("by `watch`, asked", ["__weigh", pid, "asked", into]),
            ("`loadline account`", ["account", pid]),
        ):
            began = time.monotonic()
            child = subprocess.Popen([LOADLINE, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            said = child.stderr.read()
            _, ended, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(ended)
            took, peak = time.monotonic() - began, usage.ru_maxrss / 1024
            print(f"| {case}, {how} | {child.returncode} | {took:.2f} | {peak:.1f} | {said.strip()[-160:]} |", flush=True)
        stop([process])


def main():
    words, milli = sys.argv[1:], 0
    if words[:1] == ["--cpu"]:
        milli, words = int(words[1].removesuffix("m")), words[2:]
    build()
    version = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr.split("\n")[0]
    print(f"machine: {os.cpu_count()} cores, Linux {os.uname().release}, {version}; load before {os.getloadavg()}")
    print(f"command: bench/hostile.py {' '.join(sys.argv[1:])}\n")
    cases = words or ["honest", *LIES, "crowd", *MAPPED, "pause", "account"]
    jvms = honest(10) if any(case not in ("pause", "account") for case in cases) else []
    for case in cases:
        {"pause": pause, "account": account}.get(case, lambda: turns(case, milli))()
    stop(jvms)


try:
    main()
finally:
    stop(list(started))
    shutil.rmtree(WORK)
