//! A Spring Boot project adds a budget with the document's ten lines, meets it, and exceeds it after 8 MiB are planted.

use crate::build::{VERSION, maven, root};
use loadline_test_support::long_tests_run;

/// Options that keep the test short, after the document's heap.
const LOAD: &str = "--heap,64m,--gc,serial,-n,300,-c,2,--rest,0";

/// The document's first code block.
fn ten_lines(document: &str) -> &str {
    let code = document.split("```xml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    code.trim_end()
}

fn document() -> String {
    std::fs::read_to_string(root().join("docs/maven.md")).unwrap()
}

#[test]
fn the_documented_ten_lines_have_the_current_version() {
    let document = document();
    assert!(ten_lines(&document).lines().count() <= 10, "{}", ten_lines(&document));
    let versions = document.split("<version>").skip(1).map(|rest| rest.split('<').next().unwrap());
    let artifacts = document.split("dev.loadline:loadline:").skip(1).map(|rest| rest.split(':').next().unwrap());
    let all: Vec<&str> = versions.chain(artifacts).filter(|version| *version != "VERSION").collect();
    assert!(all.len() >= 3 && all.iter().all(|version| *version == VERSION), "{all:?}, but this version is {VERSION}");
}

#[test]
fn eight_mebibytes_added_to_a_spring_boot_jar_break_its_budget() {
    if !long_tests_run() {
        return;
    }
    let Some(maven) = maven() else { return };
    let project = maven.project("boot", "boot");
    // An owner that is exact to the byte, so that noise does not matter.
    let lines = ten_lines(&document()).replace("rss_in_use.rested&lt;=140MiB", "malloc.direct.loaded&lt;=4MiB");
    let lines = lines.replace("--heap,64m", LOAD);
    assert!(lines.contains("malloc.direct") && lines.contains(LOAD), "{lines}");
    project.change("pom.xml", "PLUGIN", &lines);
    project.build(&["verify", "-Dloadline.trials=3"]).passes().says("1 budget met, 0 undecided");
    std::fs::rename(project.folder.join("target/loadline/archive"), project.folder.join("before")).unwrap();

    project.change("src/main/java/app/Shop.java", "allocateDirect(0)", "allocateDirect(8 << 20)");
    let after = project.build(&["verify", "-Dloadline.trials=3", "-Dloadline.baseline=before"]);
    after.fails().says("1 budget broken:").says("malloc.direct.loaded<=4MiB: ");
    // The comment names the owner, and is part of the failure, too.
    let comment = project.read("target/loadline/comment.md");
    let sentence = comment.lines().nth(2).unwrap_or_default();
    assert!(sentence.starts_with("budget malloc.direct.loaded&#60;=4MiB was exceeded by "), "{comment}");
    after.says(sentence);
}
