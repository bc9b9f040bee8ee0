//! The scripts of `action/`, in sequence and individually.

use super::api::Api;
use super::runner::{Runner, packed};
use crate::called::{read, root};
use loadline_test_support::executable;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const MARKER: &str = "<!-- loadline:shop -->";
const BOT: &str = "github-actions[bot]";

fn said(verdict: &str) -> String {
    format!("{MARKER}\n<!-- loadline-verdict: {verdict} -->\nSomething.\n")
}

/// A runner with a comment for this verdict.
fn commenting(verdict: &str) -> Option<(Api, Runner)> {
    let (api, mut runner) = Runner::with_change("shop")?;
    runner.write("comment.md", &said(verdict));
    let file = runner.path("comment.md").display().to_string();
    runner.set("LOADLINE_COMMENT_FILE", &file);
    Some((api, runner))
}

#[test]
fn a_change_is_measured_summarized_and_commented_on() {
    let Some((api, mut runner)) = Runner::with_change("shop") else { return };
    runner.set("LOADLINE_ARGUMENTS", r#"--trials 3 --budget 'rss.loaded<=1MiB'  --budget "failed<=0.1%""#);
    runner.set("GITHUB_RUN_ID", "42");
    runner.weighed_and_commented();
    let asked = runner.read("asked");
    assert!(asked.contains("--trials\n3\n--budget\nrss.loaded<=1MiB\n--budget\nfailed<=0.1%\n--out\n"), "{asked}");
    assert_eq!((runner.output("status"), runner.output("verdict")), ("1".to_owned(), "broken".to_owned()));
    let document: serde_json::Value =
        serde_json::from_str(&runner.read(&format!("work/{}", runner.output("json")))).unwrap();
    assert_eq!(document["budgets"].as_array().unwrap().len(), 2);
    let archive = runner.path("work").join(runner.output("archive"));
    assert!(archive.join("archive.jsonl").is_file() && archive.ends_with("this"), "{}", archive.display());
    runner.set("LOADLINE_STATUS", &runner.output("status"));
    runner.done("action/summarise", &[]);
    let summary = runner.read("summary");
    assert!(summary.starts_with(MARKER) && summary.contains("\n\n### shop, weighed by loadline "), "{summary}");
    let state = api.state();
    assert_eq!(state.written(), ["POST /repos/o/r/issues/7/comments"]);
    let text = &state.comments[0].1;
    // The budget first, then the change, then its owners.
    let begin =
        format!("{MARKER}\n<!-- loadline-verdict: broken -->\nbudget rss.loaded&#60;=1MiB was exceeded by this/app: ");
    assert!(text.starts_with(&begin), "{text}");
    let places = [
        " this/app vs. main/app: worse in rss.loaded",
        " this/app vs. main/app: rss.loaded +25.",
        "\n#### Memory\n",
        "| owner | main/app | this/app |",
    ]
    .map(|said| text.find(said).unwrap_or_else(|| panic!("{said}: {text}")));
    assert!(places.is_sorted(), "{places:?}: {text}");
    assert!(text.ends_with("(https://github.com/o/r/actions/runs/42)\n"), "{text}");
    assert!(state.asked.iter().all(|(_, token)| token == "authorization: Bearer ghs_secret"));
}

#[test]
fn a_comment_is_edited_unless_the_verdict_worsened() {
    for (old, new, expect) in [
        ("better", "better", "PATCH /repos/o/r/issues/comments/3"),
        ("worse", "worse", "PATCH /repos/o/r/issues/comments/3"),
        ("worse", "unchanged", "PATCH /repos/o/r/issues/comments/3"),
        ("broken", "worse", "PATCH /repos/o/r/issues/comments/3"),
        ("unchanged", "better", "PATCH /repos/o/r/issues/comments/3"),
        ("unchanged", "worse", "POST /repos/o/r/issues/7/comments"),
        ("worse", "broken", "POST /repos/o/r/issues/7/comments"),
        ("broken", "failed", "POST /repos/o/r/issues/7/comments"),
    ] {
        let Some((api, runner)) = commenting(new) else { return };
        let other = said(old).replace("shop", "shop2");
        // Another scenario's comment, another user's, and a marker on another line.
        api.state().comments = [
            (BOT, other),
            ("somebody", said("broken")),
            (BOT, said(old)),
            (BOT, format!("Quoted:\n{}", said("failed"))),
        ]
        .map(|(login, text)| (login.to_owned(), text))
        .into();
        runner.done("action/comment", &[]);
        assert_eq!(api.state().written(), [expect], "{old}, {new}");
        let state = api.state();
        let at = if expect.starts_with("PATCH") { 2 } else { 4 };
        assert_eq!(state.comments[at].1, said(new), "{old}, {new}");
        assert_eq!(state.comments[1].1, said("broken"));
    }
}

#[test]
fn the_comment_is_found_on_later_pages_by_its_author() {
    let Some((api, runner)) = commenting("better") else { return };
    api.state().login = Some("weigher".to_owned());
    let mut comments = vec![("somebody".to_owned(), "Hello".to_owned()); 230];
    comments[220] = ("weigher".to_owned(), said("worse"));
    comments[10] = (BOT.to_owned(), said("worse"));
    api.state().comments = comments;
    runner.done("action/comment", &[]);
    assert_eq!(api.state().written(), ["PATCH /repos/o/r/issues/comments/221"]);
    // An app's token that cannot query its user.
    api.state().login = None;
    api.state().comments[222] = ("weigher[bot]".to_owned(), said("worse"));
    runner.done("action/comment", &[]);
    assert_eq!(api.state().written()[1..], ["PATCH /repos/o/r/issues/comments/223"]);
}

#[test]
fn unchanged_results_are_not_commented_on_unless_requested() {
    let Some((api, mut runner)) = commenting("unchanged") else { return };
    let ran = runner.done("action/comment", &[]);
    assert_eq!(ran.stderr, "nothing changed, so no comment\n");
    assert_eq!(api.state().written(), [] as [&str; 0]);
    runner.set("LOADLINE_COMMENT", "never");
    runner.done("action/comment", &[]);
    runner.set("LOADLINE_COMMENT", "always");
    runner.done("action/comment", &[]);
    assert_eq!(api.state().written(), ["POST /repos/o/r/issues/7/comments"]);
    // Without `--comment-always`, `--comment` writes an empty file if nothing changed.
    runner.write("comment.md", "");
    runner.done("action/comment", &[]);
    runner.set("LOADLINE_COMMENT", "sometimes");
    assert_eq!(runner.run("action/comment", &[]).code, 2);
    assert_eq!(api.state().written().len(), 1);
    assert_eq!(runner.read("summary"), "");
}

#[test]
fn a_missing_write_permission_is_reported_in_one_line() {
    let Some((api, runner)) = commenting("worse") else { return };
    api.state().is_read_only = true;
    runner.done("action/comment", &[]);
    let summary = runner.read("summary");
    let line = summary.trim();
    assert!(
        line.starts_with("Loadline could not comment (HTTP 403: Resource not accessibleerrorby b): this"),
        "{line}"
    );
    assert!(line.contains("fork") && line.contains("docs/ci.md") && line.lines().count() == 1, "{line}");
}

#[test]
fn a_job_passes_without_a_network_token_or_pull_request() {
    let Some((api, mut runner)) = commenting("worse") else { return };
    // A port without a listener.
    runner.set("GITHUB_API_URL", "http://127.0.0.1:1");
    runner.done("action/comment", &[]);
    runner.summary_says("Loadline could not comment (no response: curl: ");
    runner.set("GITHUB_API_URL", &api.url());
    runner.write("summary", "");
    runner.unset("LOADLINE_TOKEN");
    runner.done("action/comment", &[]);
    assert_eq!(runner.read("summary"), "\nLoadline did not comment: it has no token.\n");
    runner.write("event", r#"{"pull_request": {"number": "7/../../x"}}"#);
    assert_eq!(runner.done("action/comment", &[]).stderr, "not a pull request, so no comment\n");
    runner.unset("GITHUB_EVENT_PATH");
    runner.done("action/comment", &[]);
    assert_eq!(api.state().asked.len(), 0);
}

#[test]
fn hostile_names_are_escaped_from_scenario_to_comment() {
    const NAME: &str = "x --> @team #1 $(touch pwned) `touch pwned`\n::error::x' \"";
    let Some((api, mut runner)) = Runner::with_change(NAME) else { return };
    runner.set("LOADLINE_SCENARIO", "a b/$(touch pwned)/-->'.loadline.yaml");
    runner.set("GITHUB_BASE_REF", "feature/$(touch pwned)");
    runner.done("action/baseline", &["name"]);
    let path = runner.output("path");
    assert!(path.ends_with("/baseline/feature---touch-pwned-"), "{path}");
    assert!(path.chars().all(|c| c.is_ascii_alphanumeric() || "./_-".contains(c)), "{path}");
    for _ in 0..2 {
        runner.weighed_and_commented();
    }
    let state = api.state();
    assert_eq!(state.written(), ["POST /repos/o/r/issues/7/comments", "PATCH /repos/o/r/issues/comments/1"]);
    let text = &state.comments[0].1;
    let marker = text.lines().next().unwrap();
    assert!(marker.starts_with("<!-- loadline:x%20-%2D%3E%20%40team") && marker.ends_with(" -->"), "{marker}");
    assert!(!text.contains("@team") && !text.contains("\n::error"), "{text}");
    assert!(!runner.path("work/pwned").exists());
}

#[test]
fn arguments_are_split_but_not_executed() {
    let Some((api, mut runner)) = Runner::with_change("shop") else { return };
    runner.set("LOADLINE_ARGUMENTS", "--trials '3");
    let ran = runner.run("action/run", &[]).expect(2);
    assert!(ran.stderr.contains("unclosed quote in `arguments`: --trials '3"), "{}", ran.stderr);
    runner.set("ENDS_WITH", "2");
    runner.set("LOADLINE_ARGUMENTS", "$(touch pwned) ; touch pwned * \"a  b\"");
    runner.done("action/run", &[]);
    let asked = runner.read("asked");
    assert!(asked.contains("\n$(touch\npwned)\n;\ntouch\npwned\n*\na  b\n--out\n"), "{asked}");
    assert!(!runner.path("work/pwned").exists());
    // Without a result, the job fails without a comment.
    assert_eq!((runner.output("status"), runner.output("verdict")), ("2".to_owned(), "none".to_owned()));
    runner.set("LOADLINE_COMMENT_FILE", &runner.output("comment"));
    runner.done("action/comment", &[]);
    runner.set("LOADLINE_STATUS", "2");
    runner.done("action/summarise", &[]);
    runner.summary_says("ended with exit code 2");
    assert_eq!(api.state().asked.len(), 0);
}

#[test]
fn the_job_fails_only_for_the_requested_verdicts() {
    let Some(mut runner) = Runner::new() else { return };
    for (status, verdict, on, code) in [
        ("0", "unchanged", "broken", 0),
        ("0", "worse", "broken", 0),
        ("0", "worse", "worse", 1),
        ("0", "better", "worse", 0),
        ("1", "broken", "broken", 1),
        ("1", "broken", "worse", 1),
        ("1", "broken", "never", 0),
        ("3", "failed", "never", 3),
        ("4", "none", "broken", 4),
        ("0", "unchanged", "sometimes", 2),
    ] {
        runner.set("LOADLINE_STATUS", status);
        runner.set("LOADLINE_VERDICT", verdict);
        runner.set("LOADLINE_FAIL_ON", on);
        let ran = runner.run("action/judge", &[]);
        assert_eq!(ran.code, code, "{status} {verdict} {on}: {}", ran.stderr);
    }
}

#[test]
fn a_missing_baseline_is_reported_but_not_an_error() {
    let Some((api, mut runner)) = Runner::with_change("shop") else { return };
    let ran = runner.done("action/baseline", &["take"]);
    assert_eq!(ran.stderr, "No baseline of `main` yet: the next push to it creates one.\n");
    assert_eq!(runner.output("found"), "");
    runner.set("LOADLINE_AGAINST", "");
    runner.weighed_and_commented();
    // A budget on a change is omitted in the first run only.
    runner.set(
        "LOADLINE_ARGUMENTS",
        "--budget rss.loaded<=+2% --trials 3 --budget=p99<=-1ms --budget 'rss.loaded<=1GiB'",
    );
    let ran = runner.done("action/run", &[]);
    assert!(ran.stderr.contains("`rss.loaded---2-` needs a baseline"), "{}", ran.stderr);
    let asked = runner.read("asked");
    assert!(asked.contains("--trials\n3\n--budget\nrss.loaded<=1GiB\n--out") && !asked.contains("p99"), "{asked}");
    runner.unset("LOADLINE_ARGUMENTS");
    // One configuration without a baseline.
    assert_eq!(runner.output("verdict"), "unchanged");
    assert_eq!(api.state().written(), [] as [&str; 0]);
    // The next change finds the baseline kept by a push to the main branch.
    runner.done("action/baseline", &["keep"]);
    runner.done("action/baseline", &["take"]);
    assert!(runner.output("found").ends_with("/baseline/main"), "{}", runner.output("found"));
    runner.set("LOADLINE_BASELINE", "none");
    runner.done("action/baseline", &["take"]);
    assert_eq!(runner.output("found"), "");
    runner.set("LOADLINE_BASELINE", "somewhere");
    assert_eq!(runner.run("action/baseline", &["take"]).code, 2);
}

#[test]
fn the_baseline_artifact_is_from_this_branch_and_repository() {
    let Some((api, mut runner)) = Runner::with_change("shop") else { return };
    runner.set("LOADLINE_BASELINE", "artifact");
    runner.done("action/baseline", &["take"]);
    runner.summary_says("No baseline of `main`: HTTP 404: Not Found.");
    let of = |id: u64, branch: &str, from: u64, created: &str| {
        let run = json!({"head_branch": branch, "head_repository_id": from, "repository_id": 1});
        json!({"id": id, "expired": id == 5, "created_at": created, "workflow_run": run})
    };
    let all = [
        of(1, "main", 1, "2026-11-20T00:00:00Z"),
        of(2, "main", 1, "2026-11-21T00:00:00Z"),
        of(3, "main", 2, "2026-11-22T00:00:00Z"),
        of(4, "other", 1, "2026-11-22T00:00:00Z"),
        of(5, "main", 1, "2026-11-23T00:00:00Z"),
    ];
    api.state().lists.insert("/repos/o/r/actions/artifacts".to_owned(), json!({"artifacts": all}));
    api.state().packed.insert(2, packed(&runner.path("main")));
    runner.done("action/baseline", &["take"]);
    let found = runner.output("found");
    assert!(found.ends_with("/baseline/main"), "{found}");
    let archive = runner.read(&format!("work/{found}/archive.jsonl"));
    assert_eq!(archive, runner.read("main/archive.jsonl"));
    // The token goes only to the API host.
    let state = api.state();
    let elsewhere: Vec<_> = state.asked.iter().filter(|(request, _)| request.contains("/packed/")).collect();
    assert_eq!(elsewhere, [&("GET /packed/2".to_owned(), String::new())]);
    drop(state);
    api.state().packed.insert(2, b"no zip".to_vec());
    runner.write("summary", "");
    std::fs::remove_dir_all(runner.path("work").join(&found)).unwrap();
    runner.done("action/baseline", &["take"]);
    runner.summary_says("cannot be unpacked");
    assert_eq!(runner.output("found"), "");
}

/// The event of a finished run in a fork.
fn posting(number: &str, text: &str) -> Option<(Api, Runner)> {
    let (api, runner) = Runner::with_change("shop")?;
    let head = "a".repeat(40);
    runner.write("event", &json!({"workflow_run": {"id": 9, "head_sha": head}}).to_string());
    runner.write("artifact/comment.md", text);
    runner.write("artifact/pull", number);
    let mut state = api.state();
    state.heads.insert(7, head);
    state.heads.insert(8, "b".repeat(40));
    let from_main = |id: u64, repository: u64| {
        let run = json!({"head_branch": "main", "head_repository_id": repository, "repository_id": 1});
        let created = format!("2026-11-2{id}T00:00:00Z");
        json!({"id": id, "name": "loadline-shop", "expired": false, "created_at": created, "workflow_run": run})
    };
    // Two runs on the branch, and one on a fork's branch with the same name, left reports.
    let of_branch = json!({"artifacts": [from_main(1, 1), from_main(2, 1), from_main(6, 2)]});
    state.lists.insert("/repos/o/r/actions/artifacts".to_owned(), of_branch);
    runner.write("report/comment.md", &said("unchanged"));
    state.packed.insert(2, packed(&runner.path("report")));
    let artifacts = json!([
        {"id": 3, "name": "loadline-shop", "size_in_bytes": 10},
        {"id": 4, "name": "loadline-comment-shop", "size_in_bytes": 10},
        {"id": 5, "name": "loadline-comment-bomb", "size_in_bytes": 99_000_000},
    ]);
    state.lists.insert("/repos/o/r/actions/runs/9/artifacts".to_owned(), json!({"artifacts": artifacts}));
    state.packed.insert(4, packed(&runner.path("artifact")));
    drop(state);
    Some((api, runner))
}

#[test]
fn a_forks_comment_is_posted_to_its_own_pull_request() {
    let text = "@team, look\n&#64;org &#00064;org &#x40;org &commat;org <td>&#64org</td> `a&b` &#42; a && b\n";
    let Some((api, runner)) = posting("7\n", &format!("{}{text}", said("worse"))) else { return };
    runner.done("action/post/post", &[]);
    let state = api.state();
    assert_eq!(state.written(), ["POST /repos/o/r/issues/7/comments"], "{}", runner.read("summary"));
    let text = &state.comments[0].1;
    assert!(text.contains("@\u{200b}team") && text.ends_with("/o/r/actions/runs/9)\n"), "{text}");
    let org = "&#64;\u{200b}org &#64;\u{200b}org &amp;#x40;org &amp;commat;org <td>&amp;#64org</td>";
    assert!(text.contains(&format!("{org} `a&amp;b` &#42; a && b\n")), "{text}");
    assert!(!state.asked.iter().any(|(request, _)| request.contains("/packed/5") || request.contains("/packed/3")));
}

#[test]
fn a_forks_forged_comment_is_not_posted() {
    for (number, text, expect) in [
        ("8", said("worse"), "was not for the current head of pull request 8"),
        ("9", said("worse"), "names no pull request"),
        ("../7", said("worse"), "names no pull request"),
        ("7", "Click here\n".to_owned(), "has no run of the scenario"),
        ("7", "<!-- loadline:x --><img src=x>\n".to_owned(), "has no run of the scenario"),
        ("7", said("worse").replace("shop", "shop2"), "`main` has no run of the scenario"),
        ("7", said("worse") + &"x".repeat(66_000), "too long"),
    ] {
        let Some((api, runner)) = posting(number, &text) else { return };
        runner.done("action/post/post", &[]);
        runner.summary_says(expect);
        assert_eq!(api.state().written(), [] as [&str; 0]);
    }
    let Some((_, runner)) = Runner::with_change("shop") else { return };
    runner.done("action/post/post", &[]);
    runner.summary_says("not a `workflow_run` event");
}

#[test]
fn a_fork_posts_one_comment_per_scenario_and_five_per_run() {
    let Some((api, runner)) = posting("7\n", &said("worse")) else { return };
    let listed =
        |id: u64, place: &str| json!({"id": id, "name": format!("loadline-comment-{place}"), "size_in_bytes": 10});
    let twice = json!({"artifacts": [listed(4, "shop"), listed(4, "shop")]});
    api.state().lists.insert("/repos/o/r/actions/runs/9/artifacts".to_owned(), twice);
    runner.done("action/post/post", &[]);
    assert_eq!(api.state().written().len(), 1);
    runner.summary_says("two comments for one scenario");
    // Eight scenarios that also exist on the branch.
    let mut state = api.state();
    state.comments.clear();
    let run = json!({"head_branch": "main", "head_repository_id": 1, "repository_id": 1});
    let of_main = |id: u64| {
        let name = format!("loadline-s{id}");
        json!({"id": id, "name": name, "expired": false, "created_at": "2026-11-20T00:00:00Z", "workflow_run": run})
    };
    let ids = 10..18;
    for id in ids.clone() {
        runner.write("one/comment.md", &said("worse").replace("shop", &format!("s{id}")));
        runner.write("one/pull", "7");
        let bytes = packed(&runner.path("one"));
        state.packed.insert(id, bytes.clone());
        state.packed.insert(id + 90, bytes);
    }
    let lists: [serde_json::Value; 2] =
        [ids.clone().map(of_main).collect(), ids.map(|id| listed(id + 90, &format!("s{id}"))).collect()];
    let [of_main, of_run] = lists.map(|list| json!({"artifacts": list}));
    state.lists.insert("/repos/o/r/actions/artifacts".to_owned(), of_main);
    state.lists.insert("/repos/o/r/actions/runs/9/artifacts".to_owned(), of_run);
    drop(state);
    runner.done("action/post/post", &[]);
    assert_eq!(api.state().comments.len(), 5);
    runner.summary_says("no more than 5 comments");
}

/// A copy of the scripts with a fake installer.
fn with_installer(runner: &Runner, installer: &str) {
    for file in ["action/install", "Cargo.toml"] {
        executable(runner.path("root").join(file), &read(root().join(file)));
    }
    executable(runner.path("root/packaging/install"), installer);
}

#[test]
fn the_program_is_installed_for_later_steps() {
    let Some(mut runner) = Runner::new() else { return };
    // The installer records its arguments, and creates a program that prints its version.
    with_installer(
        &runner,
        "#!/usr/bin/env bash\nprintf '%s ' \"$@\" >\"$ASKED\"\nprintf '#!/bin/sh\\necho loadline made up\\n' >\"${@: -1}/loadline\"\n\
         chmod +x \"${@: -1}/loadline\"\n",
    );
    let script = runner.path("root/action/install");
    for (given, version) in [("", env!("CARGO_PKG_VERSION")), ("v1.2.3", "1.2.3"), ("1.2.3-rc.1", "1.2.3-rc.1")] {
        runner.set("LOADLINE_VERSION", given);
        let ran = runner.run_at(&script, &[]);
        assert_eq!((ran.code, ran.stdout.lines().next()), (0, Some("loadline made up")), "{ran:?}");
        let to = runner.read("path").lines().last().unwrap().to_owned();
        let begins = runner.path("temp").join(format!("loadline-{version}."));
        assert!(to.starts_with(begins.to_str().unwrap()), "{to}");
        assert_eq!(runner.read("asked"), format!("--version {version} --to {to} "));
        assert_eq!(std::fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o700);
    }
    runner.set("LOADLINE_REPOSITORY", "o/loadline");
    assert_eq!(runner.run_at(&script, &[]).code, 0);
    let asked = runner.read("asked");
    assert!(asked.contains("--from https://github.com/o/loadline/releases/download/v1.2.3-rc.1 --to"), "{asked}");
    runner.set("LOADLINE_FROM", "https://mirror.example/a b");
    assert_eq!(runner.run_at(&script, &[]).code, 0);
    assert!(runner.read("asked").contains("--from https://mirror.example/a b --to"), "{}", runner.read("asked"));
    for wrong in ["latest", "1.2", "../../x", "1.2.3;id"] {
        runner.set("LOADLINE_VERSION", wrong);
        let ran = runner.run_at(&script, &[]);
        assert_eq!(ran.code, 2, "{wrong}: {ran:?}");
        assert!(ran.stderr.contains(&format!("`{wrong}` is not a version")), "{}", ran.stderr);
    }
    runner.set("LOADLINE_VERSION", "installed");
    let ran = runner.run_at(&script, &[]);
    assert!(ran.code == 0 && ran.stdout.starts_with(&format!("loadline {}", env!("CARGO_PKG_VERSION"))), "{ran:?}");
    with_installer(&runner, "#!/bin/sh\necho 'error: the checksum is another' >&2\nexit 4\n");
    runner.set("LOADLINE_VERSION", "");
    assert_eq!(runner.run_at(&script, &[]).code, 4);
}

/// The path depends only on the version, so another user may have created it in a world-writable temporary directory.
#[test]
fn a_planted_temporary_directory_is_not_put_on_the_path() {
    let Some(mut runner) = Runner::new() else { return };
    with_installer(
        &runner,
        "#!/usr/bin/env bash\nprintf '#!/bin/sh\\necho loadline made up\\n' >\"${@: -1}/loadline\"\nchmod +x \"${@: -1}/loadline\"\n",
    );
    runner.unset("RUNNER_TEMP");
    let folder = runner.path("everybodys");
    runner.set("TMPDIR", folder.to_str().unwrap());
    executable(folder.join("loadline-1.2.3/jq"), "#!/bin/sh\ntouch planted\n");
    runner.set("LOADLINE_VERSION", "1.2.3");
    runner.run_at(&runner.path("root/action/install"), &[]).expect(0);
    let path = runner.read("path");
    let to = Path::new(path.trim_end());
    assert!(to.starts_with(&folder) && to != folder.join("loadline-1.2.3"), "{path}");
    let names: Vec<_> = std::fs::read_dir(to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["loadline"]);
}

/// Checksums come from the same server as the file, so the connection must be secure.
#[test]
fn a_release_is_not_fetched_over_plain_http() {
    let Some(runner) = Runner::new() else { return };
    let to = runner.path("bin2");
    let ran = runner
        .run("packaging/install", &["--from", "http://127.0.0.1:1/release", "--to", to.to_str().unwrap()])
        .expect(1);
    assert!(ran.stderr.starts_with("error: refusing to download from http://127.0.0.1:1/release"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: use `https://`") && !to.exists(), "{}", ran.stderr);
}

/// Cache keys are matched by prefix.
#[test]
fn a_branch_restores_only_its_own_baseline() {
    let Some(mut runner) = Runner::new() else { return };
    let mut named = |branch: &str| {
        runner.set("GITHUB_BASE_REF", branch);
        runner.done("action/baseline", &["name"]);
        (runner.output("prefix"), runner.output("key"))
    };
    let all = ["main", "main-x", "main-", "a/b", "a-b", "a"].map(&mut named);
    for (prefix, own) in &all {
        assert!(own.starts_with(prefix.as_str()) && own.is_ascii() && !own.contains([',', ' ']), "{own}");
        let others = all.iter().filter(|(_, key)| key != own);
        others.for_each(|(_, key)| assert!(!key.starts_with(prefix.as_str()), "{prefix} {key}"));
    }
}

/// A runner in the form of a GitLab job.
fn of_gitlab() -> Option<(Api, Runner)> {
    let (api, mut runner) = Runner::with_change("shop")?;
    for name in
        ["GITHUB_BASE_REF", "GITHUB_API_URL", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "LOADLINE_AGAINST"]
    {
        runner.unset(name);
    }
    for (name, value) in [
        ("LOADLINE_VERSION", "installed"),
        ("LOADLINE_BASELINE", "artifact"),
        ("LOADLINE_FAIL_ON", "worse"),
        ("CI_PROJECT_ID", "1"),
        ("CI_DEFAULT_BRANCH", "main"),
        ("CI_JOB_NAME", "weigh"),
        ("CI_JOB_TOKEN", "job_secret"),
        ("CI_MERGE_REQUEST_IID", "7"),
        ("CI_JOB_URL", "https://gitlab.example/o/r/-/jobs/5"),
    ] {
        runner.set(name, value);
    }
    api.state().login = Some("project_1_bot".to_owned());
    Some((api, runner))
}

/// The measured server runs code from the merge request, so it must not see the job's tokens.
#[test]
fn the_code_under_test_sees_no_gitlab_token() {
    let Some((_, mut runner)) = of_gitlab() else { return };
    let seen = runner.path("seen").display().to_string();
    let secrets = [
        ("CI_REPOSITORY_URL", "https://gitlab-ci-token:url_secret@gitlab.example/o/r.git"),
        ("CI_REGISTRY_PASSWORD", "registry_secret"),
        ("CI_JOB_JWT_V2", "jwt_secret"),
        ("SEEN", &seen),
    ];
    secrets.iter().for_each(|(name, value)| runner.set(name, value));
    assert_eq!(runner.run("action/gitlab", &[]).code, 0);
    let seen = runner.read("seen");
    assert!(seen.contains("LOADLINE_SCENARIO=") && !seen.contains("secret"), "{seen}");
}

#[test]
fn a_gitlab_baseline_is_found_for_any_job_and_branch_name() {
    let Some((api, mut runner)) = of_gitlab() else { return };
    runner.set("CI_JOB_NAME", "weigh: [a, b]");
    runner.set("CI_DEFAULT_BRANCH", "release/1?x");
    runner.set("GITLAB_CI", "true");
    runner.done("action/baseline", &["take"]);
    let state = api.state();
    let expect = "GET /projects/1/jobs/artifacts/release%2F1%3Fx/download?job=weigh%3A%20%5Ba%2C%20b%5D";
    assert_eq!(state.asked.iter().map(|(request, _)| request.as_str()).collect::<Vec<_>>(), [expect]);
}

#[test]
fn a_gitlab_merge_request_gets_the_same_comment() {
    let Some((api, mut runner)) = of_gitlab() else { return };
    // Without a baseline, there is nothing to report.
    runner.done("action/gitlab", &[]);
    assert_eq!(api.state().written(), [] as [&str; 0]);
    // Stores the archive under the same directory as the job on the default branch does.
    let this = std::fs::read_dir(runner.path("work/.loadline")).unwrap().map(Result::unwrap);
    let own = this.map(|entry| entry.file_name().into_string().unwrap()).find(|name| name.starts_with("app-")).unwrap();
    runner.write(&format!("left/.loadline/{own}/this/archive.jsonl"), &runner.read("main/archive.jsonl"));
    api.state().packed.insert(1, packed(&runner.path("left")));
    let ran = runner.run("action/gitlab", &[]).expect(1);
    assert!(ran.stderr.ends_with("error: a metric is worse than the baseline\n"), "{}", ran.stderr);
    assert!(
        !runner.read("work/.loadline/junit.xml").is_empty() && !runner.read("work/.loadline/metrics.txt").is_empty()
    );
    runner.run("action/gitlab", &[]);
    let state = api.state();
    assert_eq!(
        state.written(),
        ["POST /projects/1/merge_requests/7/notes", "PUT /projects/1/merge_requests/7/notes/1"]
    );
    let text = &state.comments[0].1;
    assert!(text.contains("this/app vs. main/app: rss.loaded +25."), "{text}");
    assert!(text.ends_with("(https://gitlab.example/o/r/-/jobs/5)\n"), "{text}");
    for (request, token) in &state.asked {
        let expect = if request.contains("/jobs/") { "job-token: job_secret" } else { "private-token: ghs_secret" };
        assert_eq!(token, expect, "{request}");
    }
    drop(state);
    // Without a token, there is no comment, but still a verdict.
    runner.unset("LOADLINE_TOKEN");
    assert_eq!(runner.run("action/gitlab", &[]).code, 1);
}
