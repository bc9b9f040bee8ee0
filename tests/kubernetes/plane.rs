//! A private control plane: etcd, kube-apiserver, and kube-controller-manager on loopback, in a temporary directory.
//! `tests/kubernetes/build` builds the program.

use crate::api::Api;
use crate::ports::free_ports;
use crate::waiting::{LONG, wait_for};
use serde_json::json;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const TOKEN: &str = "of-the-tests";
/// The controllers for Jobs, lost nodes, and service accounts; the last show that a pod without a token could have had
/// one.
const CONTROLLERS: &str = "job-controller,node-lifecycle-controller,taint-eviction-controller,\
                           pod-garbage-collector-controller,garbage-collector-controller,serviceaccount-controller,\
                           root-ca-certificate-publisher-controller,namespace-controller";
/// A node with an older lease is lost. The default is 50 s.
const LOST_AFTER: &str = "6s";

/// The number of log lines shown for each server if a test fails.
const LAST_LINES: usize = 5;

/// Running servers, stopped on drop.
pub(crate) struct Plane {
    pub(crate) api: Api,
    /// As the API server reports it: `v1.36.3`.
    pub(crate) version: String,
    servers: Servers,
}

impl Plane {
    /// Starts one with this program, and waits until it responds.
    pub(crate) fn start(program: &Path) -> Self {
        let mut servers = Servers { program: program.to_owned(), place: TempDir::new().unwrap(), running: Vec::new() };
        let [stored, peers, port] = free_ports();
        servers.accounts();
        servers.store(stored, peers);
        servers.api_server(stored, port);
        let authority = servers.file("apiserver.crt");
        // It responds shortly before all standard objects exist.
        let api = wait_for("an API server", LONG, || {
            let api = authority.exists().then(|| Api::new(port, TOKEN, &authority)).ok_or("no certificate")?;
            let there = |path| api.try_get(path).is_ok_and(|answer| answer.code == 200);
            let ready = there("/readyz") && there("/api/v1/namespaces/kube-node-lease");
            ready.then_some(api).ok_or("it is not ready")
        });
        servers.controllers(port, &authority);
        let version = api.get("/version").expect(200)["gitVersion"].as_str().unwrap().to_owned();
        Self { api, version, servers }
    }

    /// The directory for nodes' files.
    pub(crate) fn folder(&self) -> &Path {
        self.servers.place.path()
    }
}

struct Servers {
    program: PathBuf,
    place: TempDir,
    running: Vec<(&'static str, Child)>,
}

/// The storage server ends last, because the others would wait for it.
impl Drop for Servers {
    fn drop(&mut self) {
        while let Some((name, mut server)) = self.running.pop() {
            let _ = server.kill();
            let _ = server.wait();
            if std::thread::panicking() {
                let said = fs::read_to_string(self.file(&format!("{name}.log"))).unwrap_or_default();
                let lines: Vec<&str> = said.lines().collect();
                println!("the last lines of {name}:\n{}", lines[lines.len().saturating_sub(LAST_LINES)..].join("\n"));
            }
        }
    }
}

impl Servers {
    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// The client, the key for service account tokens, and the controllers' access to the API server.
    fn accounts(&self) {
        fs::write(self.file("tokens.csv"), format!("{TOKEN},tests,tests,system:masters\n")).unwrap();
        let key = self.file("accounts.key");
        let made = Command::new("openssl").args(["genrsa", "-out"]).arg(key).arg("2048").stderr(Stdio::null()).status();
        assert!(made.expect("openssl must be installed").success());
    }

    /// Starts a server that ends with these tests and logs to a file.
    fn start(&mut self, name: &'static str, program: &Path, words: &[String]) {
        let said = File::create(self.file(&format!("{name}.log"))).unwrap();
        let mut command = Command::new("setpriv");
        command.arg("--pdeathsig=KILL").arg(program).args(words).current_dir(self.place.path()).stdin(Stdio::null());
        let started = command.stdout(said.try_clone().unwrap()).stderr(said).spawn();
        self.running.push((name, started.expect(name)));
    }

    fn store(&mut self, port: u16, peers: u16) {
        let (port, peers) = (at("http", port), at("http", peers));
        let words = [
            "--data-dir=etcd".to_owned(),
            format!("--listen-client-urls={port}"),
            format!("--advertise-client-urls={port}"),
            format!("--listen-peer-urls={peers}"),
            // Stored data is useless after these tests.
            "--unsafe-no-fsync".to_owned(),
        ];
        self.start("etcd", Path::new("etcd"), &words);
    }

    fn api_server(&mut self, stored: u16, port: u16) {
        let words = [
            "apiserver".to_owned(),
            format!("--etcd-servers={}", at("http", stored)),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            "--cert-dir=.".to_owned(),
            "--token-auth-file=tokens.csv".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            // As in clusters whose own components run in pods.
            "--allow-privileged=true".to_owned(),
            "--service-account-issuer=https://loadline.test".to_owned(),
            "--service-account-key-file=accounts.key".to_owned(),
            "--service-account-signing-key-file=accounts.key".to_owned(),
            "--service-cluster-ip-range=192.0.2.0/24".to_owned(),
            // The loopback address cannot be advertised to pods.
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        self.start("apiserver", &self.program.clone(), &words);
    }

    fn controllers(&mut self, port: u16, authority: &Path) {
        let reach = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "here",
                "cluster": {"server": at("https", port), "certificate-authority": authority}}],
            "users": [{"name": "tests", "user": {"token": TOKEN}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "tests"}}],
        });
        fs::write(self.file("reach.json"), reach.to_string()).unwrap();
        let words = [
            "controllers".to_owned(),
            "--kubeconfig=reach.json".to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            format!("--root-ca-file={}", authority.display()),
            "--service-account-private-key-file=accounts.key".to_owned(),
            "--node-monitor-period=1s".to_owned(),
            format!("--node-monitor-grace-period={LOST_AFTER}"),
            format!("--controllers={CONTROLLERS}"),
        ];
        self.start("controllers", &self.program.clone(), &words);
    }
}

fn at(scheme: &str, port: u16) -> String {
    format!("{scheme}://127.0.0.1:{port}")
}
