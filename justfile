# The CI jobs, one recipe each. Plain `just` lists them.

[private]
default:
    @just --list

# Everything `.ci/run` does, from the tools to the demo.
ci:
    .ci/run

# The nightly run: the same on every JDK, without skipping anything.
ci-all:
    .ci/run --all

# Formatting, lints, the codebase's own rules, and documentation. Starts no JVM.
check:
    cargo fmt --all --check
    cargo clippy --all-targets --release -- -D warnings
    cargo test --release --test tidy
    RUSTDOCFLAGS=-Dwarnings cargo doc --no-deps

# All tests; those whose requirements are missing print `skipped, because …`.
test:
    cargo test --release

# Only the tests with real JVMs, one at a time, so that no test disturbs another's measurement.
test-jvm:
    cargo test --release --test jvm -- --test-threads=1 --nocapture

# Runs the gallery's first scenario with the release build; the archive keeps every trial.
measure:
    cargo build --release
    target/release/loadline run scenarios/tiny-http/tiny-http.loadline.yaml

# Tests a fleet on Kubernetes: the control planes of two releases, built from Go modules, with simulated nodes. CI runs
# this nightly, because the first build takes minutes and 4 GB of Go caches. Needs go, etcd (Debian: etcd-server),
# openssl, and a memory cgroup.
kubernetes:
    tests/kubernetes/build v1.34.3 target/kubernetes/v1.34.3
    tests/kubernetes/build v1.36.3 target/kubernetes/v1.36.3
    LOADLINE_KUBERNETES=required cargo test --release --test kubernetes -- --nocapture

# Fuzzes the response parser, the musl malloc walker, and the readers of HotSpot's tables for a minute each. Needs a
# nightly toolchain and cargo-fuzz.
fuzz:
    cargo +nightly fuzz run response -- -max_total_time=60 -max_len=1500
    cargo +nightly fuzz run mallocng -- -max_total_time=60 -max_len=2000
    cargo +nightly fuzz run hotspot_tables -- -max_total_time=60 -max_len=1000
    cargo +nightly fuzz run hotspot_threads -- -max_total_time=60 -max_len=1500
    cargo +nightly fuzz run hotspot_classes -- -max_total_time=60 -max_len=600
