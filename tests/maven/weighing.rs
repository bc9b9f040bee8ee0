//! A real measurement of a server: by the binary that Maven resolves through a mirror, in a directory with a hostile
//! name.

use crate::build::maven;
use std::fs;

#[test]
fn budgets_of_a_real_server_are_met_or_exceeded() {
    let Some(maven) = maven() else { return };
    let project = maven.project("app", "it's <a> & b \u{e9}");
    let built = project.build(&["verify", "-Dloadline.budgets=rss.loaded<=1GiB"]);
    built.passes().says("1 budget met, 0 undecided").says("rss.loaded");
    // A goal bound after the measurement runs before the verdict.
    built.says_first(":weigh (default)", ":help (after)").says_first(":help (after)", ":verify (default)");
    let report = project.read("target/loadline-reports/TEST-loadline.xml");
    assert!(report.contains("rss.loaded&lt;=1GiB") || report.contains("rss.loaded&lt;=1024MiB"), "{report}");
    assert!(project.read("target/loadline/report.html").contains("</html>"));
    let result: serde_json::Value = serde_json::from_str(&project.read("target/loadline/result.json")).unwrap();
    assert_eq!(result["budgets"][0]["verdict"], "pass", "{result}");
    assert!(project.folder.join("target/loadline/archive").is_dir());

    let built = project.build(&["verify", "-Dloadline.budgets=rss.loaded<=10MiB,failed<=0.1%"]);
    built.fails().says("1 budget broken:").says("ci: rss.loaded<=10MiB: ").says("entirely above 10.0 MiB");
    built.says_first(":help (after)", ":verify (default)");
    built.says("report: ").says("report.html");

    let built = project.build(&["verify", "-Dloadline.budgets=rss.loadde<=10MiB"]);
    built.fails().says("exit code 2").says("rss.loadde");
    assert!(!project.folder.join("target/loadline/report.html").exists(), "the previous report must be removed");
    fs::remove_file(project.folder.join("app.loadline.yaml")).unwrap();
    project.build(&["verify", "-Dloadline.arguments=--,java,-jar,{artifact}"]).fails().says("no URL to load");
}
