//! `loadline init`: what it writes without starting anything, and what it rejects.

use crate::called::{loadline_in, read};
use loadline::scenario::{Scenario, parse};
use std::path::Path;

/// A project with these files.
fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| loadline_test_support::write(folder.path().join(name), text));
    folder
}

/// The written file, and its parsed scenario.
fn written(folder: &Path, arguments: &[&str]) -> (String, Scenario) {
    let called = loadline_in(folder, &[&["init", "--no-start"], arguments].concat()).expect(0);
    let file = folder.join(called.stdout.trim_end());
    let text = read(&file);
    let scenario = parse(&text, file.parent().unwrap(), &[17]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (text, scenario)
}

const QUARKUS: &str = "<project><artifactId>shop</artifactId><version>1</version><build><plugins><plugin>\
    <artifactId>quarkus-maven-plugin</artifactId></plugin></plugins></build><dependencies><dependency>\
    <artifactId>quarkus-smallrye-health</artifactId></dependency></dependencies></project>";

#[test]
fn an_unbuilt_projects_scenario_has_a_build_command() {
    let folder = project(&[("pom.xml", QUARKUS), ("mvnw", "")]);
    let (text, scenario) = written(folder.path(), &[]);
    insta::assert_snapshot!(text);
    let subject = scenario.subject;
    assert_eq!(subject.build.as_deref(), Some("./mvnw -q -DskipTests package"));
    assert_eq!(
        subject.command[1..],
        ["{jvm}", "-Dquarkus.http.port={port}", "-jar", "target/quarkus-app/quarkus-run.jar"]
    );
    let schema = read(folder.path().join(".loadline/scenario.schema.json"));
    assert!(serde_json::from_str::<serde_json::Value>(&schema).unwrap()["properties"]["subject"].is_object());
}

#[test]
fn gradle_and_dockerfile_projects_are_recognized() {
    let build = "plugins { id(\"org.springframework.boot\") version \"3.4.1\" }\nversion = \"1\"\n";
    let files = [("build.gradle.kts", build), ("settings.gradle.kts", "rootProject.name = \"shop\"\n")];
    let (_, scenario) = written(project(&files).path(), &[]);
    assert_eq!(scenario.subject.build.as_deref(), Some("gradle -q bootJar"));
    assert!(scenario.subject.command.contains(&"build/libs/shop-1.jar".to_owned()), "{:?}", scenario.subject);

    let docker = [("Shop/Dockerfile", "FROM x\nEXPOSE 9000\nENTRYPOINT java -jar x.jar\n")];
    let (text, scenario) = written(project(&docker).path(), &["Shop"]);
    assert_eq!((scenario.subject.image.unwrap().name.as_str(), scenario.subject.port), ("shop", Some(9000)));
    assert!(scenario.subject.build.unwrap().ends_with(" build -t shop ."), "{text}");
    assert!(text.contains("does not pass SIGTERM"), "{text}");
}

#[test]
fn a_missing_image_gives_a_scenario_with_guesses() {
    let folder = project(&[]);
    let (text, scenario) = written(folder.path(), &["--image", "reg:5000/team/shop:1.2"]);
    assert_eq!((scenario.name.as_str(), scenario.subject.port), ("shop", Some(8080)));
    assert!(text.contains("# A guess:"), "{text}");
}

#[test]
fn a_scenario_elsewhere_has_the_right_paths_and_overwrites_nothing() {
    let folder = project(&[("a/pom.xml", QUARKUS)]);
    let (_, scenario) = written(folder.path(), &["a", "--out", "load/x.loadline.yaml"]);
    let dir = scenario.subject.dir.unwrap();
    assert!(dir.canonicalize().unwrap().ends_with("a"), "{}", dir.display());
    assert!(folder.path().join("load/.loadline/scenario.schema.json").is_file());

    let again = ["init", "a", "--no-start", "--out", "load/x.loadline.yaml"];
    loadline_in(folder.path(), &again).refused(&["load/x.loadline.yaml already exists"]);
    assert_eq!(loadline_in(folder.path(), &[&again[..], &["--force"]].concat()).code, 0);
}

#[test]
fn hostile_project_names_are_quoted() {
    for name in ["a b", "it's \"q\"", "x: [y]\n#z", "{port}", "-rf", "..", "true", "é\u{85}ü", "$(id)`"] {
        let escaped = name.replace('&', "&amp;").replace('<', "&lt;");
        let pom = format!("<project><artifactId>{escaped}</artifactId><version>1</version></project>");
        let folder = project(&[("pom.xml", &pom)]);
        let called = loadline_in(folder.path(), &["init", "--no-start"]);
        assert!([0, 2].contains(&called.code) && !called.stderr.contains("panicked"), "{name:?}: {called}");
        if called.code == 0 {
            let file = folder.path().join(called.stdout.trim_end());
            assert_eq!(file.canonicalize().unwrap().parent().unwrap(), folder.path().canonicalize().unwrap());
            parse(&read(&file), folder.path(), &[17]).unwrap();
        }
    }
}

#[test]
fn unusable_projects_are_rejected_with_a_hint() {
    let check = |files: &[(&str, &str)], arguments: &[&str], expect: &[&str]| {
        loadline_in(project(files).path(), &[&["init"], arguments].concat()).refused(expect);
    };
    check(&[], &[], &["found nothing in . that starts a server", "hint: specify a jar"]);
    check(&[], &["x"], &["`x` does not exist"]);
    let root =
        "<project><artifactId>a</artifactId><modules><module>api</module><module>web</module></modules></project>";
    check(&[("pom.xml", root)], &[], &["is a project of 2 modules: api, web", "loadline init ./api"]);
    check(&[("pom.xml", "<project>\n<a></b>")], &[], &["line 2: it is not XML", "./pom.xml"]);
    check(&[("pom.xml", "<project><artifactId>a</artifactId></project>")], &[], &["cannot tell which jar"]);
    check(&[("Dockerfile", "RUN x\n")], &[], &["it has no `FROM`", "./Dockerfile"]);
    check(&[("target/a.jar", "PK")], &["target/a.jar"], &["target/a.jar is not a jar"]);
    check(&[("build.gradle", ""), ("settings.gradle", "include 'api', 'web'\n")], &[], &["2 modules: api, web"]);
}

#[test]
fn an_invalid_jar_is_rejected_before_anything_starts() {
    let folder = project(&[("run.sh", "#!/bin/sh\n")]);
    for verb in ["weigh", "find", "tune", "compare"] {
        loadline_in(folder.path(), &[verb, "app.jar"]).refused(&["cannot read the jar app.jar: No such file"]);
    }
    loadline_in(folder.path(), &["weigh", "run.sh"]).refused(&["hint: specify a command after `--`"]);
}
