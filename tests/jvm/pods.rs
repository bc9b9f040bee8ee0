//! Loadline in a container next to the subject's, sharing only processes, as in a pod with `shareProcessNamespace`.
//! Tests what Loadline can measure from there, and as which user. Skipped without a container tool.

use crate::deaths::limits_work;
use crate::images::{Image, run};
use crate::waiting::{LONG, wait_for};
use loadline::record::AccountDocument;
use std::collections::BTreeSet;
use std::path::Path;

const LIMIT: u64 = 200 << 20;
/// Drops root's capabilities and all ways to regain them.
const NO_RIGHTS: [&str; 4] = ["--cap-drop", "all", "--security-opt", "no-new-privileges"];

/// A subject in a container, removed on drop.
struct Subject {
    image: Image,
    name: String,
}

impl Subject {
    fn start(image: Image) -> Self {
        let name = format!("loadline-test-pod-{}", std::process::id());
        let limit = format!("{LIMIT}");
        let words = ["--detach", "--name", &name, "--network", "none", "--user", "1000:1000", "--memory", &limit];
        let subject = ["-Xmx64m", "-XX:+UseSerialGC", "loadline.subjects.Appetite", "8080", "live=16"];
        let words = [&["run"][..], &words, &NO_RIGHTS, &[image.name()], &subject].concat();
        let started = run(image.tool, &words);
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        Self { image, name }
    }

    /// `loadline account 1` in a container next to the subject's: exit code, stdout, stderr.
    fn account(&self, rights: &[&str]) -> (i32, String, String) {
        let loadline = env!("CARGO_BIN_EXE_loadline");
        let pid = format!("container:{}", self.name);
        let words = ["run", "--rm", "--network", "none", "--read-only", "--pid", &pid, "--entrypoint", "/bin/loadline"];
        // Loadline's shared libraries, which a JDK's image may lack.
        let shared = String::from_utf8_lossy(&run("ldd", &[loadline]).stdout).into_owned();
        let shared: BTreeSet<&str> = shared.split_whitespace().filter(|word| Path::new(word).is_absolute()).collect();
        let mut mounts = vec!["--volume".to_owned(), format!("{loadline}:/bin/loadline:ro")];
        mounts.extend(shared.into_iter().flat_map(|file| ["--volume".to_owned(), format!("{file}:{file}:ro")]));
        let mounts: Vec<&str> = mounts.iter().map(String::as_str).collect();
        let asked = [self.image.name(), "account", "1", "--json"];
        let done = run(self.image.tool, &[&words[..], &mounts, rights, &asked].concat());
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (done.status.code().unwrap_or(-1), text(done.stdout), text(done.stderr))
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        run(self.image.tool, &["rm", "--force", "--time", "0", &self.name]);
    }
}

#[test]
fn a_sidecar_measures_what_it_has_permission_to_read() {
    if !limits_work() {
        return;
    }
    let Some(image) = Image::make() else { return };
    let subject = Subject::start(image);
    let same_user = [&["--user", "1000:1000"][..], &NO_RIGHTS].concat();
    let all_read = ["--user", "0", "--cap-drop", "all", "--cap-add", "SYS_PTRACE", "--cap-add", "DAC_READ_SEARCH"];
    for rights in [&same_user[..], &all_read] {
        let document = wait_for("an account of a subject that is ready", LONG, || {
            let (code, stdout, stderr) = subject.account(rights);
            let document: Option<AccountDocument> = serde_json::from_str(&stdout).ok();
            let is_ready =
                |document: &AccountDocument| document.mark.heap.used_bytes.is_some_and(|used| used > 16 << 20);
            document.filter(is_ready).ok_or((code, stdout, stderr))
        });
        // This is the subject's own cgroup, which is mounted only in its container.
        let charge = document.mark.charge.unwrap_or_else(|| panic!("{rights:?}: {:?}", document.doubts));
        assert_eq!((charge.limit_bytes, charge.processes, charge.cgroup.as_str()), (Some(LIMIT), 1, "/"), "{rights:?}");
        assert!(charge.anon_bytes >= 16 << 20 && charge.usage_bytes < LIMIT, "{charge:?}");
        let account = document.mark.account.unwrap();
        assert!(account.unexplained_bytes < 2 << 20, "{rights:?}: {:?}", account.unexplained);
    }
    // Another user may not read it, and being root is not enough: a capability over the subject is required.
    let other_user = [&["--user", "2000:2000"][..], &NO_RIGHTS].concat();
    for rights in [&other_user[..], &["--user", "0"]] {
        let (code, stdout, stderr) = subject.account(rights);
        assert_eq!((code, stdout.as_str()), (4, ""), "{rights:?}: {stderr}");
        assert!(stderr.contains("the process with pid 1 belongs to another user"), "{stderr}");
    }
}
