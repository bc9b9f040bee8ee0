//! A real Prometheus scrapes `loadline watch --listen` on a real JVM; promtool and curl check the same output, and
//! systemd passes its socket. The tests wait for scrapes and count them; nothing depends on timing.

use crate::invocation::{Call, Started, newest};
use crate::waiting::{LONG, wait_for, wait_until};
use crate::watch::Leaking;
use loadline::clock::Clock;
use loadline::watch::{HttpRequest, HttpResponse, HttpServer, web_config};
use loadline_test_support::{KilledOnDrop, answer, has};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/monitoring/loadline.rules.yaml");
/// Metric families that only a growing JVM has.
const OF_GROWTH: [&str; 2] = ["loadline_memory_growth_bytes_per_second", "loadline_memory_limit_eta_seconds"];
/// The number of scrapes to wait for.
const SCRAPES: f64 = 4.0;

/// Whether all of these programs exist; reports a skip, or fails if `variable` requires them.
fn have(variable: &str, programs: &[&str]) -> bool {
    programs.iter().all(|program| has(variable, program))
}

/// Certificates of a server at 127.0.0.1 and of two clients, one of them signed by another authority.
struct Certificates(tempfile::TempDir);

impl Certificates {
    fn make() -> Self {
        let made = Self(tempfile::tempdir().unwrap());
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        let leaf = "basicConstraints=CA:FALSE\nsubjectAltName=DNS:localhost,IP:127.0.0.1\n";
        std::fs::write(made.file("extensions"), leaf).unwrap();
        for (authority, leaves) in [("ca", &["server", "client"][..]), ("other", &["stranger"])] {
            made.openssl(&format!(
                "req -x509 {key} -days 2 -subj /CN={authority} -keyout {authority}.key -out {authority}.pem"
            ));
            for leaf in leaves {
                made.openssl(&format!("req {key} -subj /CN={leaf} -keyout {leaf}.key -out {leaf}.csr"));
                made.openssl(&format!(
                    "x509 -req -days 2 -in {leaf}.csr -CA {authority}.pem -CAkey {authority}.key -set_serial 1 \
                     -extfile extensions -out {leaf}.pem"
                ));
            }
        }
        let config = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n  client_ca_file: ca.pem\n  \
                      client_auth_type: RequireAndVerifyClientCert\n";
        std::fs::write(made.file("web.yaml"), config).unwrap();
        made
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn openssl(&self, words: &str) {
        let said = Command::new("openssl").args(words.split_whitespace()).current_dir(self.0.path()).output().unwrap();
        assert!(said.status.success(), "openssl {words}: {}", String::from_utf8_lossy(&said.stderr));
    }

    /// curl with these arguments, in the certificates' directory.
    fn curl(&self, words: &str) -> Output {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--max-time", "60"]).args(words.split_whitespace()).current_dir(self.0.path());
        curl.output().unwrap()
    }
}

/// A Prometheus with its own directory; killed on drop.
struct Prometheus {
    _process: KilledOnDrop,
    address: String,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    /// Scrapes this target over TLS twice a second, and evaluates the alerts.
    fn start(target: &str, certificates: &Certificates) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| certificates.file(name).display().to_string();
        let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(file);
        let config = format!(
            "global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}}\n\
             rule_files: ['{RULES}']\n\
             scrape_configs:\n  - job_name: loadline\n    scheme: https\n    \
             tls_config: {{ca_file: {ca}, cert_file: {cert}, key_file: {key}}}\n    \
             static_configs: [{{targets: ['{target}']}}]\n"
        );
        std::fs::write(folder.path().join("prometheus.yml"), config).unwrap();
        let log = folder.path().join("log");
        let mut command = Command::new("prometheus");
        command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:0"]);
        command.current_dir(folder.path()).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        let process = KilledOnDrop(command.spawn().unwrap());
        let address = wait_for("Prometheus listens", LONG, || {
            let text = std::fs::read_to_string(&log).unwrap();
            let line = text.lines().find(|line| line.contains("\"Listening on\""));
            line.and_then(|line| line.split("address=").nth(1)).map(|at| at.trim().to_owned()).ok_or(text)
        });
        Self { _process: process, address, _folder: folder }
    }

    /// The response of its API; null if it is not ready.
    fn api(&self, path: &str) -> Value {
        let answer = answer(&self.address, &format!("GET /api/v1/{path} HTTP/1.0"));
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_default()
    }

    /// The single value of an expression, if any.
    fn value(&self, expression: &str) -> Option<f64> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02x}")).collect();
        self.api(&format!("query?query={encoded}"))["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }
}

/// The metrics address that a watch prints.
pub(crate) fn address(watch: &mut Started) -> String {
    watch.until_said("metrics at ");
    wait_for("the complete line is written", LONG, || {
        let said = watch.said();
        let line = said.split_once("metrics at ").unwrap().1;
        line.split_once('\n').map(|(address, _)| address.trim().to_owned()).ok_or(said)
    })
}

fn promtool(words: &[&str], stdin: &[u8]) -> Output {
    let mut promtool = Command::new("promtool");
    let mut child =
        promtool.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    child.wait_with_output().unwrap()
}

/// Family names in Prometheus text, in the form of sample names.
fn families(text: &str) -> BTreeSet<String> {
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn prometheus_scrapes_over_tls_with_a_client_certificate() {
    if !have("LOADLINE_MONITORING", &["prometheus", "promtool", "curl", "openssl"]) {
        return;
    }
    let Some(release) = newest().pop() else { return };
    let (certificates, leaking) = (Certificates::make(), Leaking::start(release, &[("idle", "rate=0", "-Xmx32m")]));
    let call = Call::verb(&format!("watch {} --every 100ms --history histories", leaking.pids())).beside();
    let web_config = certificates.file("web.yaml").display().to_string();
    let mut watch = call.with("--listen 127.0.0.1:0").with(&format!("--web-config {web_config}")).start();
    let target = address(&mut watch);
    refusals(&certificates, &target);
    let shown = "--cacert ca.pem --cert client.pem --key client.key";
    let said = wait_for("old collections are counted", LONG, || {
        let said = certificates.curl(&format!("{shown} https://{target}/metrics"));
        assert!(said.status.success(), "{said:?}");
        let text = String::from_utf8(said.stdout).unwrap();
        if text.contains("loadline_jvm_heap_floor_bytes{") { Ok(text) } else { Err(text) }
    });
    let checked = promtool(&["check", "metrics"], said.as_bytes());
    assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}\n{said}");
    let families = families(&said);
    assert!(families.len() >= 20 && OF_GROWTH.iter().all(|family| !families.contains(*family)), "{families:?}");

    let prometheus = Prometheus::start(&target, &certificates);
    wait_for("enough scrapes succeeded", LONG, || {
        let scrapes = prometheus.value("sum_over_time(up[10m])");
        scrapes.filter(|scrapes| *scrapes >= SCRAPES).ok_or((scrapes, prometheus.api("targets")))
    });
    let names = prometheus.api("label/__name__/values");
    let names: BTreeSet<&str> = names["data"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let missing: Vec<&String> = families.iter().filter(|family| !names.contains(family.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?} never appeared: {names:?}");
    assert_eq!(prometheus.value("count(loadline_jvm_info{jvm=\"loadline.subjects.Leaks\"})"), Some(1.0));
    assert_eq!(
        prometheus.value("count({__name__=~\"loadline_.*\"}) == bool scalar(scrape_samples_scraped)"),
        Some(1.0)
    );
    wait_until("our alerts were evaluated without an error", LONG, || {
        let rules = prometheus.api("rules");
        let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap();
        !rules.is_empty() && rules.iter().all(|rule| rule["health"] == "ok")
    });
}

#[test]
fn a_renewed_certificate_is_used_and_responses_may_be_large() {
    if !have("LOADLINE_MONITORING", &["curl", "openssl"]) {
        return;
    }
    let certificates = Certificates::make();
    let tls = web_config(&certificates.file("web.yaml")).unwrap();
    // The body is larger than what TLS buffers and what a socket accepts.
    let body = "0123456789abcde\n".repeat(1 << 18);
    let answer = {
        let body = body.clone();
        move |_: &HttpRequest| Some(HttpResponse { status: "200 OK", content_type: "text/plain", body: body.clone() })
    };
    let server = HttpServer::start(&"127.0.0.1:0".parse().unwrap(), tls, Clock::start(), answer).unwrap();
    let ask = |authority: &str| {
        let words = format!("--cacert {authority}.pem --cert client.pem --key client.key https://{}/", server.at);
        certificates.curl(&words)
    };
    let said = ask("ca");
    assert!(said.status.success() && said.stdout == body.as_bytes(), "{} bytes, {:?}", said.stdout.len(), said.stderr);
    // A partial renewal, such as a certificate without its key, has no effect.
    let renew = |from: &str, to: &str| std::fs::rename(certificates.file(from), certificates.file(to)).unwrap();
    renew("stranger.pem", "server.pem");
    assert!(ask("ca").status.success());
    renew("stranger.key", "server.key");
    assert!(ask("other").status.success() && !ask("ca").status.success(), "the new certificate has another authority");
}

/// Checks that clients without a valid certificate are rejected. A client that trusts another authority disconnects.
fn refusals(certificates: &Certificates, target: &str) {
    for (words, told) in [
        ("--cacert ca.pem", "certificate required"),
        ("--cacert ca.pem --cert stranger.pem --key stranger.key", "unknown ca"),
        ("--cacert ca.pem --tls-max 1.2", "alert"),
        ("--cacert other.pem --cert client.pem --key client.key", "certificate"),
    ] {
        let said = certificates.curl(&format!("{words} https://{target}/metrics"));
        let stderr = String::from_utf8_lossy(&said.stderr);
        assert!(!said.status.success() && said.stdout.is_empty() && stderr.contains(told), "{words}: {said:?}");
    }
    let plain = certificates.curl(&format!("http://{target}/metrics"));
    assert!(!plain.status.success() && plain.stdout.is_empty(), "{plain:?}");
}

#[test]
fn a_socket_from_systemd_is_used() {
    if !have("LOADLINE_TOOLS", &["systemd-socket-activate", "curl"]) {
        return;
    }
    let Some(release) = newest().pop() else { return };
    let leaking = Leaking::start(release, &[("idle", "rate=0", "-Xmx32m")]);
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("loadline.sock");
    let watch = [env!("CARGO_BIN_EXE_loadline"), "watch", &leaking.pids(), "--every", "1s", "--account", "never"]
        .map(str::to_owned);
    let start = |options: &[&str]| {
        let mut command = Command::new("systemd-socket-activate");
        command.args(options).arg("-l").arg(&socket).args(&watch).args(["--listen", "systemd", "--history"]);
        command.arg(folder.path().join("histories")).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let activated = KilledOnDrop(start(&[]));
    wait_until("systemd listens", LONG, || socket.exists());
    // This request starts Loadline, whose first response has a sample.
    let said = scrape(&socket);
    assert!(said.contains("loadline_memory_rss_bytes{jvm=\"loadline.subjects.Leaks\",kind=\"anon\"}"), "{said}");
    drop(activated);
    assert!(socket.exists(), "the server must not remove systemd's socket");
    std::fs::remove_file(&socket).unwrap();
    // With `Accept=yes`, systemd passes a connection instead of a listening socket.
    let mut accepting = KilledOnDrop(start(&["--accept"]));
    wait_until("systemd listens", LONG, || socket.exists());
    let _ = scrape(&socket);
    let stderr = accepting.0.stderr.take().unwrap();
    let told = std::io::BufRead::lines(std::io::BufReader::new(stderr)).map_while(Result::ok);
    // The message is wrapped over several lines.
    let told: Vec<String> = told.take_while(|line| !line.starts_with("Child ")).collect();
    let told = told.join(" ");
    assert!(told.contains("does not listen") && told.contains("Accept=no"), "{told}");
}

/// The text that curl receives through a socket; empty without a response.
fn scrape(socket: &Path) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--max-time", "60", "http://loadline/metrics", "--unix-socket"]).arg(socket);
    String::from_utf8(curl.output().unwrap().stdout).unwrap()
}
