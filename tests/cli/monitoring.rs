//! The files of `monitoring/`, checked by the tools that use them: Prometheus's promtool and systemd's analyzer. The
//! tests of metrics check that alerts and dashboard use only exported names.

use crate::called::{read, root};
use loadline_test_support::skip;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// The capabilities for reading other processes, also in docs/watch.md.
const CAPABILITIES: [&str; 2] = ["SYS_PTRACE", "DAC_READ_SEARCH"];
/// The maximum of systemd's exposure score in tenths, 0 to 100: its value when this was written.
const EXPOSURE_MOST: &str = "--threshold=25";

fn file(name: &str) -> PathBuf {
    root().join("monitoring").join(name)
}

/// A tool's output; `None` if it is not installed. The tool must succeed.
fn said(variable: &str, command: &mut Command) -> Option<String> {
    let program = command.get_program().to_owned();
    let Ok(output) = command.output() else {
        skip(variable, &format!("there is no {}", program.display()));
        return None;
    };
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "{command:?}: {text}");
    Some(text)
}

#[test]
fn alerts_pass_their_unit_tests() {
    for (what, name) in [("check", "loadline.rules.yaml"), ("test", "loadline.rules.test.yaml")] {
        let mut promtool = Command::new("promtool");
        let Some(text) = said("LOADLINE_MONITORING", promtool.args([what, "rules"]).arg(file(name))) else { return };
        assert!(text.contains("SUCCESS"), "{text}");
    }
    let tests = read(file("loadline.rules.test.yaml"));
    for line in read(file("loadline.rules.yaml")).lines() {
        let Some(alert) = line.trim().strip_prefix("- alert: ") else { continue };
        assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert} has no test");
    }
}

/// The panels of the dashboard.
fn panels() -> Vec<Value> {
    let dashboard: Value = serde_json::from_str(&read(file("dashboard.json"))).unwrap();
    assert_eq!(dashboard["uid"], "loadline-watch", "another uid would add a second dashboard on import");
    dashboard["panels"].as_array().unwrap().clone()
}

#[test]
fn the_dashboards_queries_are_valid_for_prometheus() {
    let panels = panels();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    let mut rules = "groups:\n- name: dashboard\n  rules:\n".to_owned();
    let mut places = BTreeSet::new();
    for panel in &panels {
        let targets = panel["targets"].as_array().unwrap();
        for of in targets.iter().chain([panel]) {
            assert_eq!(of["datasource"]["uid"], "${datasource}", "the data source must be a variable: {panel:#}");
        }
        assert!(places.insert([panel["gridPos"]["x"].as_u64(), panel["gridPos"]["y"].as_u64()]), "panels overlap");
        for target in targets {
            let expression = target["expr"].as_str().unwrap().replace("$jvm", ".*");
            let name = format!("panel:{}:{}", panel["id"], target["refId"].as_str().unwrap());
            rules += &format!("  - record: {name}\n    expr: {expression:?}\n");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yaml");
    std::fs::write(&path, &rules).unwrap();
    let mut promtool = Command::new("promtool");
    said("LOADLINE_MONITORING", promtool.args(["check", "rules"]).arg(&path));
}

#[test]
fn systemd_accepts_the_unit_and_rates_it_as_hardened() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("loadline-watch.service");
    let text = read(file("loadline-watch.service"));
    let here = text.replace("/usr/bin/loadline", env!("CARGO_BIN_EXE_loadline"));
    assert_ne!(text, here);
    std::fs::write(&unit, here).unwrap();
    let mut verify = Command::new("systemd-analyze");
    let Some(complaints) = said("LOADLINE_TOOLS", verify.arg("verify").arg(&unit)) else { return };
    assert!(!complaints.contains("loadline-watch.service"), "{complaints}");
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", EXPOSURE_MOST]).arg(&unit);
    said("LOADLINE_TOOLS", &mut security);
}

#[test]
fn unit_daemon_set_and_documentation_name_the_same_capabilities() {
    let unit = read(file("loadline-watch.service"));
    let expected = CAPABILITIES.map(|name| format!("CAP_{name}")).join(" ");
    for setting in ["AmbientCapabilities", "CapabilityBoundingSet"] {
        assert!(unit.contains(&format!("\n{setting}={expected}\n")), "{setting}");
    }
    let page = read(root().join("docs/watch.md"));
    assert!(page.contains(&CAPABILITIES.map(|name| format!("CAP_{name}")).join(" and ")));
    let objects: Vec<Value> =
        read(file("daemonset.yaml")).split("\n---\n").map(|object| yaml_serde::from_str(object).unwrap()).collect();
    let set = objects.iter().find(|object| object["kind"] == "DaemonSet").unwrap();
    let pod = &set["spec"]["template"]["spec"];
    assert_eq!((&pod["hostPID"], &pod["automountServiceAccountToken"]), (&true.into(), &false.into()));
    let [container] = pod["containers"].as_array().unwrap().as_slice() else { panic!("not exactly one container") };
    let context = &container["securityContext"];
    assert_eq!(context["capabilities"]["add"], Value::from(CAPABILITIES.to_vec()));
    assert_eq!(context["capabilities"]["drop"], Value::from(vec!["ALL"]));
    assert!(context["privileged"].is_null() && context["allowPrivilegeEscalation"] == false);
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(container["resources"]["requests"], container["resources"]["limits"]);
    let probe = &container["livenessProbe"]["httpGet"];
    assert_eq!((&probe["path"], &probe["port"]), (&"/healthz".into(), &container["ports"][0]["name"]));
    for setting in ["Type=notify", "WatchdogSec=120s", "LimitNOFILE=8192"] {
        assert!(unit.contains(&format!("\n{setting}\n")), "{setting}");
    }
    // Every mount has a volume, and the history's directory is mounted.
    let names = |of: &Value| -> BTreeSet<String> {
        of.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&container["volumeMounts"]), names(&pod["volumes"]));
    let words: Vec<&str> = container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let history = words[words.iter().position(|word| *word == "--history").unwrap() + 1];
    let mounts = container["volumeMounts"].as_array().unwrap();
    assert!(mounts.iter().any(|mount| mount["mountPath"] == history && mount["readOnly"].is_null()));
    let pod_labels = &set["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&set["spec"]["selector"]["matchLabels"], pod_labels);
    let policy = objects.iter().find(|object| object["kind"] == "NetworkPolicy").unwrap();
    assert_eq!(&policy["spec"]["podSelector"]["matchLabels"], pod_labels);
    let port = &container["ports"][0]["containerPort"];
    assert_eq!(&policy["spec"]["ingress"][0]["ports"][0]["port"], port);
    assert!(words.contains(&format!("0.0.0.0:{port}").as_str()), "{words:?}");
}
