//! The engine output of `loadline plan`, checked by its consumers: bash with fake `loadline` and `scontrol`, and the
//! Kubernetes schemas (`tests/fetch-kubernetes-validate`).

use crate::called::{Called, products, read, root};
use crate::plan::{SHOP, plan_in, shop};
use loadline_test_support::{executable, skip};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Kubernetes schema versions: the minimum for the manifest, and a recent one.
const KUBERNETES: [&str; 2] = ["1.33", "1.36"];
/// A name that breaks text unless it is quoted.
const HOSTILE: &str = "it's \"$(touch broken)\" `touch broken` #: {x}";

/// The output for an engine; the plan is at `out`.
fn printed(place: &TempDir, out: &str, engine: &str) -> String {
    let called = plan_in(place, &["fleet.yaml", "--out", out, engine, "--nodes", "2"]).expect(0);
    // The existing plan must give the same output.
    let again = plan_in(place, &[out, engine, "--nodes", "2"]);
    assert_eq!((again.code, again.stderr.as_str()), (0, ""), "{again}");
    assert_eq!(again.stdout, called.stdout);
    called.stdout
}

/// A shop with a hostile name and directory, and the path of its plan.
fn hostile() -> (TempDir, String) {
    let place = shop();
    let name = serde_json::Value::from(HOSTILE).to_string();
    fs::write(place.path().join("fleet.yaml"), SHOP.replace("name: shop", &format!("name: {name}"))).unwrap();
    fs::create_dir(place.path().join(HOSTILE)).unwrap();
    (place, format!("{HOSTILE}/{HOSTILE}.jsonl"))
}

/// An array's script with a fake `loadline` that records its arguments and exits with `code`, and a fake `scontrol`
/// that records its arguments.
struct Array {
    place: TempDir,
    script: PathBuf,
}

impl Array {
    fn new(place: TempDir, script: &str) -> Self {
        let bin = place.path().join("bin");
        executable(bin.join("loadline"), "#!/bin/sh\nprintf '%s|' \"$@\" >>\"$NOTES\"\nexit \"$CODE\"\n");
        executable(bin.join("scontrol"), "#!/bin/sh\nprintf 'scontrol %s\\n' \"$*\" >>\"$NOTES\"\n");
        let path = place.path().join("array.sbatch");
        executable(&path, script);
        Self { place, script: path }
    }

    /// Runs an index as Slurm does; returns the output and the fake programs' arguments.
    fn run(&self, code: i32, variables: &[(&str, &str)]) -> (Called, String) {
        let notes = self.place.path().join("notes");
        let path = format!("{}:{}", self.place.path().join("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.arg(&self.script).env("PATH", path).env("NOTES", &notes).env("CODE", code.to_string());
        for name in ["SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT", "SLURMD_NODENAME", "LOADLINE_FIRST"] {
            command.env_remove(name);
        }
        command.env("SLURM_ARRAY_JOB_ID", "17").envs(variables.iter().copied());
        let called = Called::of(command.current_dir(self.place.path()).stdin(Stdio::null()).output().unwrap());
        let told = fs::read_to_string(&notes).unwrap_or_default();
        let _ = fs::remove_file(notes);
        (called, told)
    }
}

#[test]
fn bash_parses_the_script_of_any_plan() {
    let (place, out) = hostile();
    let script = printed(&place, &out, "--slurm");
    let array = Array::new(place, &script);
    let parsed = Command::new("bash").arg("-n").arg(&array.script).output().unwrap();
    assert!(parsed.status.success() && parsed.stderr.is_empty(), "{parsed:?}\n{script}");
    let (called, told) = array.run(0, &[("SLURM_ARRAY_TASK_ID", "1")]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{called}");
    let folder = array.place.path().join(HOSTILE);
    let hash = read(array.place.path().join(&out)).split("\"hash\":\"").nth(1).unwrap()[..12].to_owned();
    let (plan, results) = (folder.join(format!("{HOSTILE}.jsonl")), folder.join(format!("results-{hash}")));
    let words = format!("work|{}|--index|1|--out|{}|", plan.display(), results.display());
    assert_eq!(told, words);
    assert!(results.is_dir());
    assert!(!array.place.path().join("broken").exists() && !folder.join("broken").exists());
}

#[test]
fn an_index_is_requeued_if_another_node_may_succeed() {
    let place = shop();
    let script = printed(&place, "plan.jsonl", "--slurm");
    let array = Array::new(place, &script);
    let requeued = |code: i32, restarts: &str| {
        let (called, told) = array.run(code, &[("SLURM_ARRAY_TASK_ID", "2"), ("SLURM_RESTART_COUNT", restarts)]);
        assert_eq!(called.code, code, "the script must pass on the exit code: {called}");
        told.split_once("scontrol ").map(|(_, words)| words.trim_end().to_owned())
    };
    let again = Some("requeue 17_2".to_owned());
    for (code, restarts, expect) in [
        (0, "0", None),
        (1, "0", None),
        (2, "0", None),
        (3, "0", None),
        (130, "0", None),
        (4, "0", again.clone()),
        (4, "1", again.clone()),
        (4, "2", None),
        (70, "0", again.clone()),
        (70, "2", None),
    ] {
        assert_eq!(requeued(code, restarts), expect, "{code} after {restarts}");
    }
    // Without a restart count, there were no restarts.
    let (called, told) = array.run(4, &[("SLURM_ARRAY_TASK_ID", "0"), ("SLURMD_NODENAME", "n7")]);
    assert!(told.ends_with("scontrol requeue 17_0\n"), "{told}");
    assert_eq!(called.stderr, "entry 0 failed with exit code 4 on n7; requeuing it\n");
}

#[test]
fn an_index_of_a_later_array_is_a_later_entry() {
    let place = shop();
    let script = printed(&place, "plan.jsonl", "--slurm");
    let array = Array::new(place, &script);
    let index = |task: &str, first: &str| {
        let (called, told) = array.run(0, &[("SLURM_ARRAY_TASK_ID", task), ("LOADLINE_FIRST", first)]);
        (called, told.split('|').nth(3).map(str::to_owned))
    };
    assert_eq!(index("0", "1001").1.as_deref(), Some("1001"));
    assert_eq!(index("8", "0010").1.as_deref(), Some("18"));
    for (task, first) in [("", "0"), ("x", "0"), ("0", "x"), ("0", "a[$(touch broken)]")] {
        let (called, told) = index(task, first);
        assert_eq!((called.code, told), (2, None), "{called}");
        assert!(called.stderr.starts_with("error: "), "{called}");
    }
    assert!(!array.place.path().join("broken").exists());
    // Paths in the environment take precedence.
    let named = [("SLURM_ARRAY_TASK_ID", "0"), ("LOADLINE_PLAN", "other plan"), ("LOADLINE_RESULTS", "other results")];
    assert_eq!(array.run(0, &named).1, "work|other plan|--index|0|--out|other results|");
}

/// Whether the validator accepts a manifest, and its output; `None` without a validator.
fn validated(manifest: &Path, version: &str) -> Option<(bool, String)> {
    let kv = products().join("kv");
    if !kv.join("bin/kubernetes-validate").exists() {
        skip("LOADLINE_MANIFESTS", "there is no kubernetes-validate (tests/fetch-kubernetes-validate installs it)");
        return None;
    }
    let mut command = Command::new("python3");
    let words = ["--strict", "-k", version];
    let done = command.env("PYTHONPATH", &kv).arg(kv.join("bin/kubernetes-validate")).args(words).arg(manifest);
    let done = done.output().unwrap();
    let text = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    Some((done.status.success(), text))
}

#[test]
fn kubernetes_accepts_every_manifest() {
    let (place, out) = hostile();
    let manifest = place.path().join("job.yaml");
    let text = printed(&place, &out, "--kubernetes");
    for (number, version) in KUBERNETES.into_iter().enumerate() {
        fs::write(&manifest, &text).unwrap();
        for (file, kinds) in [
            (manifest.clone(), ["namespace/", "persistentvolumeclaim/", "job/"]),
            (root().join("monitoring/daemonset.yaml"), ["namespace/", "daemonset/", "networkpolicy/"]),
        ] {
            let Some((valid, said)) = validated(&file, version) else { return };
            assert!(valid, "{said}");
            for kind in kinds {
                assert!(said.contains(&format!("passed for resource {kind}")), "{kind}: {said}");
            }
            assert!(!said.contains("WARN"), "a warning can mean an unknown version: {said}");
        }
        // The validator must be able to reject.
        let wrong = ["completionMode: Indexed", "backoffLimitPerIndex: 2"][number];
        fs::write(&manifest, text.replace(wrong, &wrong.replacen("o", "0", 1))).unwrap();
        let Some((valid, said)) = validated(&manifest, version) else { return };
        assert!(!valid && said.contains("was unexpected"), "{said}");
    }
}

#[test]
fn the_arguments_of_a_pod_are_paths_on_its_volume() {
    let (place, out) = hostile();
    let text = printed(&place, &out, "--kubernetes");
    let job: serde_json::Value = yaml_serde::from_str(text.split("\n---\n").last().unwrap()).unwrap();
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let args: Vec<&str> = container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    // A pod expands `$(NAME)`, and reads `$$` as a dollar sign.
    assert_eq!(args[0], format!("/fleet/{HOSTILE}.jsonl").replace('$', "$$"));
    assert_eq!((args.len(), args[1], args[2].starts_with("/fleet/results-")), (3, "--out", true));
    assert_eq!(container["resources"]["requests"], container["resources"]["limits"]);
    let spec = &job["spec"];
    assert_eq!((&spec["completions"], &spec["parallelism"]), (&3.into(), &2.into()));
}
