//! A pod's container on a fake node: a host process with the container's command and environment. Its volumes are host
//! directories, which replace the mount paths in its arguments. It has no image and no limit.

use loadline::clock::Clock;
use loadline::units::utc;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::{File, create_dir_all};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// Host variables that a container gets as if from its image.
const OF_IMAGE: [&str; 3] = ["HOME", "JAVA_HOME", "LANG"];
/// The kubelet's exit code for a command that cannot be started.
const NOT_STARTED: i32 = 128;

/// The environment of a node's containers.
pub(crate) struct Host {
    /// The node.
    pub(crate) node: String,
    /// Directory of all volumes and logs; claims in it are shared by all nodes.
    folder: PathBuf,
    /// The path on which commands are found.
    path: OsString,
}

impl Host {
    /// A host where the built program comes first on the path.
    pub(crate) fn new(node: &str, folder: &Path) -> Self {
        let own = Path::new(env!("CARGO_BIN_EXE_loadline")).parent().unwrap().to_owned();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&path))).unwrap();
        Self { node: node.to_owned(), folder: folder.to_owned(), path }
    }

    /// The directory of a claim, wherever it is mounted.
    pub(crate) fn claim(folder: &Path, namespace: &str, name: &str) -> PathBuf {
        let claim = folder.join("claims").join(namespace).join(name);
        create_dir_all(&claim).unwrap();
        claim
    }

    fn volume(&self, volume: &Value, pod: &Value) -> PathBuf {
        let meta = &pod["metadata"];
        if let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() {
            return Self::claim(&self.folder, text(&meta["namespace"]), claim);
        }
        let own = match volume["hostPath"]["path"].as_str() {
            Some(path) => self.folder.join("nodes").join(&self.node).join(path.trim_start_matches('/')),
            None => self.folder.join("pods").join(text(&meta["uid"])).join(text(&volume["name"])),
        };
        create_dir_all(&own).unwrap();
        own
    }

    /// A container's mount points with their host directories.
    fn mounts(&self, container: &Value, pod: &Value) -> Vec<(String, PathBuf)> {
        let named = |name: &Value| each(&pod["spec"]["volumes"]).find(|volume| volume["name"] == *name);
        let mount = |mount: &Value| {
            let volume = named(&mount["name"]).unwrap_or_else(|| panic!("no volume for {mount}"));
            (text(&mount["mountPath"]).to_owned(), self.volume(volume, pod))
        };
        each(&container["volumeMounts"]).map(mount).collect()
    }
}

/// A started container.
pub(crate) struct Container {
    name: String,
    image: Value,
    started: String,
    child: Option<Child>,
    end: Option<Value>,
}

impl Container {
    pub(crate) fn start(container: &Value, pod: &Value, host: &Host) -> Self {
        let mounts = host.mounts(container, pod);
        let environment = environment(container, pod, host);
        let words = each(&container["command"]).chain(each(&container["args"]));
        let mut words = words.map(|word| on_host(&expanded(text(word), &environment), &mounts));
        let program = words.next().expect("the container needs a command, because it has no image");
        let log = host.folder.join(format!("{}.log", text(&pod["metadata"]["name"])));
        let log = File::options().create(true).append(true).open(log).unwrap();
        let of_image = OF_IMAGE.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        // The program is found on the given `PATH`.
        let child = Command::new(program)
            .args(words)
            .current_dir(&host.folder)
            .env_clear()
            .envs(of_image)
            .env("PATH", &host.path)
            .envs(environment.into_iter().map(|(name, value)| (name, on_host(&value, &mounts))))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0)
            .spawn();
        let name = text(&container["name"]).to_owned();
        let mut started =
            Self { name, image: container["image"].clone(), started: now(), child: child.ok(), end: None };
        if started.child.is_none() {
            started.end = Some(started.ended(NOT_STARTED));
        }
        started
    }

    /// The exit code, if it has ended.
    pub(crate) fn code(&self) -> Option<i64> {
        self.end.as_ref()?["exitCode"].as_i64()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.end.is_none()
    }

    /// Updates the state. Leftover processes end with the first one.
    pub(crate) fn look(&mut self) {
        let status = self.child.as_mut().filter(|_| self.end.is_none()).and_then(|child| child.try_wait().unwrap());
        if let Some(status) = status {
            self.kill();
            self.end = Some(self.ended(code(status)));
        }
    }

    /// Asks the first process to end.
    pub(crate) fn ask_to_end(&self) {
        if let Some(pid) = self.pid().filter(|_| self.is_running()) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Kills everything left.
    pub(crate) fn kill(&self) {
        if let Some(pid) = self.pid() {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    /// In the API server's format.
    pub(crate) fn status(&self) -> Value {
        let state = match &self.end {
            Some(end) => json!({"terminated": end}),
            None => json!({"running": {"startedAt": self.started}}),
        };
        json!({
            "name": self.name, "image": self.image, "imageID": "", "restartCount": 0, "ready": self.is_running(),
            "started": self.is_running(), "state": state,
        })
    }

    fn ended(&self, code: i32) -> Value {
        let reason = if code == 0 { "Completed" } else { "Error" };
        json!({"exitCode": code, "reason": reason, "startedAt": self.started, "finishedAt": now()})
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.as_ref()?.id()).ok()?)
    }
}

/// A container that is still running ends with the tests.
impl Drop for Container {
    fn drop(&mut self) {
        if self.is_running() {
            self.kill();
            if let Some(child) = &mut self.child {
                let _ = child.wait();
            }
        }
    }
}

/// The exit code for a signal, as in shells and Kubernetes.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Names and values, in order.
fn environment(container: &Value, pod: &Value, host: &Host) -> Vec<(String, String)> {
    let mut known = vec![("HOSTNAME".to_owned(), text(&pod["metadata"]["name"]).to_owned())];
    for variable in each(&container["env"]) {
        let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
            Some(path) => field(path, pod, host),
            None => expanded(variable["value"].as_str().unwrap_or_default(), &known),
        };
        known.push((text(&variable["name"]).to_owned(), value));
    }
    known
}

/// A field of the downward API: `spec.nodeName`, `metadata.annotations['NAME']`.
fn field(path: &str, pod: &Value, host: &Host) -> String {
    if path == "spec.nodeName" {
        return host.node.clone();
    }
    let inside = path.strip_prefix("metadata.").unwrap_or_else(|| panic!("no field {path}"));
    let found = match inside.split_once("['") {
        Some((map, key)) => &pod["metadata"][map][key.trim_end_matches("']")],
        None => &pod["metadata"][inside],
    };
    found.as_str().unwrap_or_default().to_owned()
}

/// Expands `$(NAME)`, and `$$` to a dollar. An unknown variable stays unchanged.
fn expanded(word: &str, known: &[(String, String)]) -> String {
    let mut text = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('$') {
        text += before;
        let variable = after.strip_prefix('(').and_then(|after| after.split_once(')'));
        let value = variable.and_then(|(name, _)| known.iter().rev().find(|(known, _)| known == name));
        rest = match (after.strip_prefix('$'), variable, value) {
            (Some(after), ..) => {
                text.push('$');
                after
            }
            (None, Some((_, after)), Some((_, value))) => {
                text += value;
                after
            }
            _ => {
                text.push('$');
                after
            }
        };
    }
    text + rest
}

/// Maps a path on a volume to the host.
fn on_host(word: &str, mounts: &[(String, PathBuf)]) -> String {
    let inside = |(mount, folder): &(String, PathBuf)| {
        let rest = word.strip_prefix(mount.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", folder.display()))
    };
    mounts.iter().find_map(inside).unwrap_or_else(|| word.to_owned())
}

/// Elements of a list, empty if it is missing.
pub(crate) fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}"))
}

/// The current time in the API server's format.
pub(crate) fn now() -> String {
    utc(Clock::start().origin_unix_s())
}

#[test]
fn container_arguments_are_translated_to_the_host() {
    let known = [("A".to_owned(), "1".to_owned()), ("A".to_owned(), "2".to_owned())];
    for (word, expect) in [("$(A)", "2"), ("x$$(A)$(B)$", "x$(A)$(B)$"), ("$(A", "$(A"), ("$A $$$(A)", "$A $2")] {
        assert_eq!(expanded(word, &known), expect, "{word}");
    }
    let mounts = [("/fleet".to_owned(), PathBuf::from("/here"))];
    for (word, expect) in [("/fleet", "/here"), ("/fleet/a", "/here/a"), ("/fleets/a", "/fleets/a"), ("a", "a")] {
        assert_eq!(on_host(word, &mounts), expect, "{word}");
    }
}
