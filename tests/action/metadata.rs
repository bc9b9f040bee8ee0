//! Checks the form of `action.yml`, the GitLab component, and the workflows in `docs/ci.md`. Also checks that
//! everything they reference exists, and what actionlint reports.

use crate::called::{products, read, root};
use loadline_test_support::skip;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use yaml_serde::Value;

const DOCUMENT: &str = include_str!("../../docs/ci.md");
/// The name of this repository in `docs/ci.md`.
const OWN: &str = "OWNER/loadline";
/// The commit of its release.
const AT: &str = "@COMMIT # v0.1.0";
/// Variables that the template itself reads.
const OF_TEMPLATE: [&str; 2] = ["LOADLINE_SOURCE", "LOADLINE_COMMIT"];

fn yaml(text: &str) -> Value {
    yaml_serde::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn file(name: &str) -> Value {
    yaml(&read(root().join(name)))
}

fn keys(of: &Value) -> Vec<&str> {
    of.as_mapping().unwrap().keys().map(|key| key.as_str().unwrap()).collect()
}

fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or_default()
}

/// The document's YAML blocks.
fn blocks() -> Vec<&'static str> {
    let after = DOCUMENT.split("```yaml\n").skip(1);
    after.map(|text| text.split("```").next().unwrap()).collect()
}

fn workflows() -> Vec<&'static str> {
    blocks().into_iter().filter(|text| text.contains("\njobs:")).collect()
}

/// Checks the published format of an action.
fn check_action(name: &str) {
    let action = file(name);
    let known = ["name", "description", "branding", "inputs", "outputs", "runs"];
    assert!(keys(&action).iter().all(|key| known.contains(key)), "{:?}", keys(&action));
    assert!(!text(&action, "name").is_empty() && !text(&action, "description").is_empty());
    for input in keys(&action["inputs"]) {
        let of = &action["inputs"][input];
        assert!(keys(of).iter().all(|key| ["description", "required", "default"].contains(key)), "{input}");
        assert!(!text(of, "description").is_empty() && of.get("default").is_some() != of.get("required").is_some());
    }
    assert_eq!(text(&action["runs"], "using"), "composite");
    for step in action["runs"]["steps"].as_sequence().unwrap() {
        assert!(!text(step, "name").is_empty(), "{step:?}");
        match text(step, "run") {
            "" => assert!(!text(step, "uses").is_empty(), "{step:?}"),
            run => {
                assert_eq!(text(step, "shell"), "bash", "{step:?}");
                // Inputs must be passed as variables: inside a command, they would be executed.
                assert!(!run.contains("${{"), "{run}");
                let script = run.strip_prefix("\"$GITHUB_ACTION_PATH/").unwrap().split('"').next().unwrap();
                let path = root().join(name).parent().unwrap().join(script);
                let mode = fs::metadata(&path)
                    .unwrap_or_else(|_| panic!("there is no {}", path.display()))
                    .permissions()
                    .mode();
                assert!(mode & 0o111 == 0o111, "{} is not executable", path.display());
                // The script reads each variable that it is given.
                let source = sources(&path);
                for variable in step.get("env").map(keys).unwrap_or_default() {
                    assert!(source.contains(variable), "{} does not read {variable}", path.display());
                }
            }
        }
    }
}

/// A script with the scripts that it calls or sources.
fn sources(path: &Path) -> String {
    let own = read(path);
    let shared = ["place", "ask", "comment"].map(|name| read(root().join("action").join(name)));
    own.clone() + &shared.into_iter().filter(|_| own.contains("$folder/")).collect::<String>()
}

#[test]
fn the_actions_match_the_published_schema() {
    check_action("action.yml");
    check_action("action/post/action.yml");
    let action = file("action.yml");
    let expect = ["version", "scenario", "arguments", "baseline", "comment", "fail-on", "from", "github-token"];
    assert_eq!(keys(&action["inputs"]), expect);
    assert_eq!(keys(&action["outputs"]), ["verdict", "archive", "json"]);
    let source = read(root().join("action.yml"));
    expect
        .iter()
        .for_each(|input| assert!(source.contains(&format!("${{{{ inputs.{input} }}}}")), "{input} is not used"));
}

#[test]
fn the_gitlab_component_matches_the_published_schema() {
    let source = read(root().join("templates/weigh.yml"));
    let (header, body) = source.split_once("\n---\n").unwrap();
    let inputs = &yaml(header)["spec"]["inputs"];
    for input in keys(inputs) {
        let of = &inputs[input];
        assert!(
            keys(of).iter().all(|key| ["description", "type", "default", "options", "regex"].contains(key)),
            "{input}"
        );
        let options = of["options"].as_sequence();
        assert!(options.is_none_or(|options| options.contains(&of["default"])), "{input}");
        assert!(body.contains(&format!("$[[ inputs.{input} ]]")), "{input} is not used");
    }
    for used in body.split("$[[ inputs.").skip(1) {
        let name = used.split(' ').next().unwrap();
        assert!(inputs.get(name).is_some(), "there is no input {name}");
    }
    let jobs = yaml(&body.replace("$[[ ", "'").replace(" ]]", "'").replace("\"'", "\"").replace("'\"", "\""));
    let job = jobs.as_mapping().unwrap().values().next().unwrap();
    for line in job["script"].as_sequence().unwrap() {
        let line = line.as_str().unwrap();
        // Inputs must be passed as variables: inside a command, they would be executed.
        assert!(!line.contains("inputs."), "{line}");
    }
    let script = read(root().join("action/gitlab"));
    for variable in keys(&job["variables"]).into_iter().filter(|name| !OF_TEMPLATE.contains(name)) {
        assert!(script.contains(variable), "action/gitlab does not mention {variable}");
    }
    for report in ["junit", "metrics"] {
        let path = text(&job["artifacts"]["reports"], report);
        assert!(script.contains(path.rsplit('/').next().unwrap()), "{path}");
    }
}

#[test]
fn documented_workflows_use_existing_inputs() {
    let workflows = workflows();
    assert_eq!(workflows.len(), 2, "one workflow must measure, and one must post");
    assert!(workflows[0].lines().count() <= 14, "{}", workflows[0]);
    assert!(
        workflows[0].contains(&format!("uses: {OWN}{AT}")) && workflows[1].contains(&format!("{OWN}/action/post{AT}"))
    );
    for workflow in workflows {
        for job in yaml(workflow)["jobs"].as_mapping().unwrap().values() {
            for step in job["steps"].as_sequence().unwrap() {
                let Some(own) = text(step, "uses").strip_prefix(OWN) else { continue };
                let folder = own.split('@').next().unwrap().trim_start_matches('/');
                let inputs = file(&format!("{}/action.yml", if folder.is_empty() { "." } else { folder }));
                for given in step.get("with").map(keys).unwrap_or_default() {
                    assert!(inputs["inputs"].get(given).is_some(), "{own} has no input {given}");
                }
            }
        }
    }
    for block in blocks() {
        yaml(block);
    }
}

/// Files that may reference an action: workflows, actions, templates, and documents.
fn naming_actions() -> Vec<PathBuf> {
    let in_folder = |folder: &str| fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let folders = [".github/workflows", "templates", "docs"].into_iter().flat_map(in_folder);
    let files = ["action.yml", "action/post/action.yml", "README.md", "CONTRIBUTING.md"].map(|name| root().join(name));
    folders.chain(files).filter(|path| path.is_file()).collect()
}

/// Whether an action is pinned to a commit, with its version: `actions/x@… # v1.2.3`.
fn is_pinned(named: &str) -> bool {
    let Some((action, version)) = named.split_once(" # v") else { return false };
    let commit = action.split_once('@').map_or("", |(_, commit)| commit);
    let is_commit = commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let is_own = action.starts_with(OWN) && commit == "COMMIT";
    (is_commit || is_own)
        && version.split('.').count() == 3
        && version.split('.').all(|part| part.parse::<u32>().is_ok())
}

/// A tag can be moved to other code, which would receive the job's token.
#[test]
fn every_action_is_pinned_to_a_commit() {
    let mut seen = 0;
    for path in naming_actions() {
        let source = read(&path);
        for line in source.lines() {
            let line = line.trim_start().trim_start_matches("- ");
            let Some(named) = line.strip_prefix("uses: ").filter(|named| !named.starts_with("./")) else { continue };
            seen += 1;
            assert!(is_pinned(named.trim_end()), "{}: {line}", path.display());
        }
    }
    assert!(seen > 20, "{seen}");
    let hash = "0123456789abcdef".repeat(3)[..40].to_owned();
    assert!(is_pinned(&format!("a/b@{hash} # v1.2.3")));
    for wrong in [
        format!("a/b@{hash}"),
        format!("a/b@{hash} # v1"),
        "a/b@v1 # v1.2.3".to_owned(),
        format!("a/b@{hash}0 # v1.2.3"),
    ] {
        assert!(!is_pinned(&wrong), "{wrong}");
    }
}

/// A GitLab job runs the scripts of the pinned commit, even if the tag has moved.
#[test]
fn the_component_fetches_scripts_of_one_commit_over_https() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).display().to_string();
    let sh = |script: &str, variables: &[(&str, &str)]| {
        let mut command = Command::new("bash");
        command.args(["-euc", script]).current_dir(place.path()).envs(variables.iter().copied());
        command.env("HOME", place.path()).env("GIT_CONFIG_NOSYSTEM", "1");
        command.output().unwrap()
    };
    let made = sh(
        "git init -q origin && cd origin && git config user.email a@b && git config user.name a
         echo right >x && git add x && git commit -qm 1 && git tag v1.2.3 && git rev-parse HEAD
         echo wrong >x && git commit -qam 2 && git tag -f v1.2.3 >/dev/null",
        &[],
    );
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let commit = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let source = read(root().join("templates/weigh.yml"));
    let (_, script) = source.split_once("    - |\n").unwrap();
    let (script, _) = script.split_once("    - '").unwrap();
    let key = format!("url.file://{}/.insteadOf", at(""));
    let run = |source: &str, commit: &str| {
        let variables = [
            ("CI_PROJECT_DIR", at("project")),
            ("LOADLINE_SOURCE", source.to_owned()),
            ("LOADLINE_COMMIT", commit.to_owned()),
            ("GIT_CONFIG_COUNT", "1".to_owned()),
            ("GIT_CONFIG_KEY_0", key.clone()),
            ("GIT_CONFIG_VALUE_0", "https://git.example/".to_owned()),
        ];
        let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        sh(script, &variables)
    };
    let done = run("https://git.example/origin", &commit);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(fs::read_to_string(at("project/.loadline/source/x")).unwrap(), "right\n");
    let refused = run("http://git.example/origin", &commit);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("does not begin with https://"));
}

fn actionlint() -> Option<PathBuf> {
    let program = products().join("packaging-tools/bin/actionlint");
    if !program.is_file() {
        skip("LOADLINE_ACTION", "actionlint is missing; `packaging/fetch` downloads it");
        return None;
    }
    Some(program)
}

/// The workflow with actions named by major version tag, the only form for which actionlint knows the inputs.
fn by_tag(workflow: &str) -> String {
    let named = |line: &str| {
        let (action, version) = line.split_once(" # v")?;
        let (action, _) = action.split_once("uses: ").and_then(|_| action.split_once('@'))?;
        Some(format!("{action}@v{}", version.split('.').next()?))
    };
    workflow.lines().map(|line| named(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

/// The output of actionlint for a workflow in a repository with these actions.
fn linted(program: &Path, workflow: &str) -> String {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for folder in [".git", ".github/workflows", "action/post"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for name in ["action.yml", "action/post/action.yml"] {
        fs::copy(root().join(name), at(name)).unwrap();
    }
    fs::write(at(".github/workflows/w.yml"), by_tag(workflow)).unwrap();
    // Only actionlint's own checks, independent of other tools on this machine.
    let done = Command::new(program)
        .args(["-no-color", "-shellcheck=", "-pyflakes=", ".github/workflows/w.yml"])
        .current_dir(place.path())
        .output()
        .unwrap();
    String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
}

/// A workflow of the document with local action paths, so that actionlint reads the inputs of the actions.
fn here(workflow: &str) -> String {
    workflow.replace(&format!("{OWN}/action/post{AT}"), "./action/post").replace(&format!("{OWN}{AT}"), "./")
}

/// An action's steps as a job of a reusable workflow with the same inputs, because actionlint does not check the steps
/// of an action.
fn as_workflow(action: &str) -> String {
    let source = read(root().join(action));
    let of = file(action);
    let inputs: String =
        keys(&of["inputs"]).iter().map(|input| format!("      {input}:\n        type: string\n")).collect();
    let (_, steps) = source.split_once("\n  steps:\n").unwrap();
    format!(
        "on:\n  workflow_call:\n    inputs:\n{inputs}jobs:\n  all:\n    runs-on: ubuntu-24.04\n    steps:\n{}",
        steps.lines().map(|line| format!("  {line}\n")).collect::<String>()
    )
}

#[test]
fn actionlint_reports_no_errors() {
    let Some(program) = actionlint() else { return };
    let mut all: Vec<String> = workflows().into_iter().map(here).collect();
    all.extend(["action.yml", "action/post/action.yml"].map(as_workflow));
    all.push(read(root().join(".github/workflows/nightly.yml")));
    for workflow in all {
        let said = linted(&program, &workflow);
        assert!(said.is_empty(), "{said}\n{workflow}");
    }
}

#[test]
fn actionlint_reports_planted_errors() {
    let Some(program) = actionlint() else { return };
    let first = here(workflows()[0]);
    let action = as_workflow("action.yml");
    for (workflow, right, wrong, expect) in [
        (&first, "scenario:", "scenaro:", "scenaro"),
        (&first, "runs-on:", "run-on:", "run-on"),
        (&action, "steps.place.outputs.prefix", "steps.plaice.outputs.prefix", "plaice"),
        (&action, "inputs.fail-on", "inputs.fail-of", "fail-of"),
        (&action, "restore-keys:", "restore-key:", "restore-key"),
    ] {
        assert!(workflow.contains(right), "{right}");
        let said = linted(&program, &workflow.replacen(right, wrong, 1));
        assert!(said.contains(expect), "{wrong}: {said}");
    }
}
