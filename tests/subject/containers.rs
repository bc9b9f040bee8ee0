//! Containers of several Loadlines that share a daemon. A script replaces `docker`, and each Loadline can be in its own
//! pid namespace.

use loadline_test_support::{executable, skip};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A daemon whose containers are files named by ID, with name and label; `run` fails with `Conflict` if a name is in
/// use, like Docker. It logs calls in `told`.
const DOCKER: &str = r#"#!/usr/bin/env bash
set -euo pipefail
cd "$DAEMON"
printf '%s\n' "$*" >>told
case "$1 ${2:-}" in
    'image inspect') echo '[{"Id": "sha256:01", "Config": {"Entrypoint": ["java"]}}]' ;;
    'run --name')
        name=$3 label=$5
        [[ $4 == --label && $label == loadline=* ]] || label=
        if [[ ${CONFLICT:-} ]]; then
            # Another job was a moment faster, whose label is its own.
            printf '%s %s\n' "$name" loadline=of-another-job >another
        fi
        if { cut -d ' ' -f 1 containers/* another 2>/dev/null || true; } | grep -qxF -- "$name"; then
            echo "docker: Error response from daemon: Conflict. The container name \"/$name\" is already in use" >&2
            exit 125
        fi
        printf '%s %s\n' "$name" "$label" >"containers/$(basename "$(mktemp -u XXXXXXXX)")"
        touch "made/$name"
        # The others are to be there meanwhile.
        [[ -z ${TOGETHER:-} ]] || { for ((i = 0; i < 600; i++)); do (($(ls made | wc -l) < TOGETHER)) || break; sleep 0.05; done; }
        exit 1
        ;;
    'ps '*)
        filter='' format=''
        while (($#)); do
            case $1 in --filter) filter=${2#label=} ;; --format) format=$2 ;; esac
            shift
        done
        for file in containers/* another; do
            [[ -f $file ]] || continue
            read -r name label <"$file"
            [[ $filter != *=* || $label == "$filter" ]] || continue
            case $format in '{{.Names}}') echo "$name" ;; '{{.ID}} {{.Names}}') echo "${file##*/} $name" ;; esac
        done
        ;;
    'rm --force')
        for id in "${@:4}"; do
            for file in containers/* another; do
                [[ -f $file ]] || continue
                read -r name _ <"$file"
                [[ $id != "${file##*/}" && $id != "$name" ]] || { printf '%s\n' "$name" >>removed; rm "$file"; }
            done
        done
        ;;
    'inspect '*) echo 'Error: No such object' >&2 && exit 1 ;;
esac
"#;

/// The fake daemon.
struct Daemon {
    place: TempDir,
}

impl Daemon {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for folder in ["containers", "made"] {
            fs::create_dir(place.path().join(folder)).unwrap();
        }
        let daemon = Self { place };
        executable(daemon.path("bin/docker"), DOCKER);
        daemon
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn has(&self, id: &str, name: &str) {
        fs::write(self.path("containers").join(id), format!("{name} loadline={name}\n")).unwrap();
    }

    /// The lines of one of its files; empty if it is missing.
    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Measures an image whose container ends immediately.
    fn weigh(&self, wrapper: &[&str], variables: &[(&str, &str)]) -> Command {
        let words = [wrapper, &[env!("CARGO_BIN_EXE_loadline")]].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["weigh", "--image", "app:1", "--trials", "1", "-d", "1s", "-c", "1"]);
        command
            .args(["--url", "http://127.0.0.1:{port}/", "--out"])
            .arg(tempfile::tempdir_in(self.place.path()).unwrap().keep().join("a"));
        // Hides other tools, and this machine's daemon.
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        command.env("PATH", path).env("DAEMON", self.place.path()).envs(variables.iter().copied());
        command.current_dir(self.place.path());
        command
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Boot ID and pid namespace, as in names from this process.
fn place() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().replace('-', "");
    format!("{}-{}", &boot[..16], fs::metadata("/proc/self/ns/pid").unwrap().ino())
}

/// The prefix to run a program as the first process of a new pid namespace; `None`, after reporting a skip, if not
/// permitted.
fn apart() -> Option<&'static [&'static str]> {
    const UNSHARE: &[&str] = &["unshare", "--pid", "--fork", "--mount-proc"];
    let tried = Command::new(UNSHARE[0]).args(&UNSHARE[1..]).arg("true").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        skip("LOADLINE_LIMITS", "no pid namespace can be made");
        return None;
    }
    Some(UNSHARE)
}

#[test]
fn only_abandoned_containers_of_this_boot_and_namespace_are_removed() {
    let daemon = Daemon::new();
    let own = place();
    let (boot, namespace) = own.split_once('-').unwrap();
    // More than any Linux pid.
    let of = |place: &str| format!("loadline-999999999-{place}-0123456789abcdef");
    daemon.has("own", &of(&own));
    daemon.has("namespace", &of(&format!("{boot}-17")));
    daemon.has("boot", &of(&format!("ffffffffffffffff-{namespace}")));
    daemon.has("lives", &of(&own).replace("999999999", &std::process::id().to_string()));
    daemon.has("old", "loadline-999999999-0");
    let done = daemon.weigh(&[], &[]).output().unwrap();
    assert!(said(&done).contains("removed 1 container left by a killed Loadline process"), "{}", said(&done));
    let removed = daemon.lines("removed");
    assert_eq!(removed[0], of(&own));
    // The other one is this run's container, whose name has the same boot ID and namespace.
    assert_eq!(removed.len(), 2, "{removed:?}");
    assert!(removed[1].contains(&own), "{removed:?}");
    let left = ["namespace", "boot", "lives", "old"].map(|id| daemon.path("containers").join(id));
    assert!(left.iter().all(|file| file.exists()), "{removed:?}");
}

#[test]
fn a_name_conflict_does_not_harm_another_job() {
    let daemon = Daemon::new();
    let done = daemon.weigh(&[], &[("CONFLICT", "1")]).output().unwrap();
    assert_ne!(done.status.code(), Some(0));
    assert!(said(&done).contains("Conflict"), "{}", said(&done));
    assert!(daemon.path("another").exists());
    assert_eq!(daemon.lines("removed"), Vec::<String>::new());
    let told = daemon.lines("told");
    assert!(!told.iter().any(|words| words.starts_with("rm ")), "{told:?}");
}

#[test]
fn two_jobs_with_the_same_pid_remove_only_their_own_containers() {
    let Some(apart) = apart() else { return };
    let daemon = Daemon::new();
    let jobs = [(); 2].map(|()| {
        let mut job = daemon.weigh(apart, &[("TOGETHER", "2")]);
        job.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    });
    let ended = jobs.map(|job| job.wait_with_output().unwrap());
    let said = ended.each_ref().map(said);
    assert!(!said.iter().any(|said| said.contains("Conflict") || said.contains("removed 1 container")), "{said:?}");
    let mut removed = daemon.lines("removed");
    removed.sort();
    let all = removed.clone();
    removed.dedup();
    assert_eq!((removed.len(), all.len()), (2, 2), "{all:?} {said:?}");
    // Both Loadlines were the first process in their namespace.
    assert!(removed.iter().all(|name| name.starts_with("loadline-1-")), "{removed:?}");
    assert_eq!(names_in(&daemon.path("containers")), Vec::<String>::new());
}

fn names_in(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
