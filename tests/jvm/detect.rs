//! First steps: a jar is measured by its path alone, and `init` writes a scenario that runs.

use crate::invocation::{Call, jdk, newest};
use crate::test_subjects::test_subjects;
use loadline::scenario::{Ready, Subject};
use loadline_test_support::long_tests_run;
use std::path::Path;
use std::process::Command;

/// An executable jar of a test subject, with these manifest lines.
fn jar(release: u32, path: &Path, class: &str, manifest: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::copy(test_subjects(), path).unwrap();
    let lines = path.with_extension("manifest");
    std::fs::write(&lines, format!("Main-Class: loadline.subjects.{class}\n{manifest}")).unwrap();
    let tool = jdk(release).unwrap().home.join("bin/jar");
    let done = Command::new(tool).arg("ufm").args([path, &lines]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::remove_file(lines).unwrap();
}

const SPRING: &str = "Spring-Boot-Version: 3.4.1\n";

/// A call to a verb with a jar in the call's directory.
fn of_jar(verb: &str, release: u32, class: &str, manifest: &str) -> Call {
    let call = Call::verb(verb);
    jar(release, &call.folder().join("target/the app.jar"), class, manifest);
    call.with_argument(Path::new("target/the app.jar")).with("-n 200").with("--rest 200ms").archiving()
}

#[test]
fn a_framework_jar_needs_only_its_path() {
    for release in newest() {
        let ran = of_jar("weigh", release, "Framed", SPRING).with("--json").of_jdk(release).run().expect(0);
        let ran = ran.says(&[
            "starting target/the app.jar once to find its port and path (Spring Boot 3.4.1)\n",
            "loaded: GET /hello (first of /, /hello to return 200; `--url` chooses another); ready when \
             GET /actuator/health succeeds\n",
        ]);
        let (document, archive) = (ran.document(), ran.archived());
        let Subject { command, ready, port, .. } = archive.scenario.subject;
        assert_eq!(command, ["java", "-jar", "target/the app.jar", "--server.port={port}"]);
        assert_eq!((ready, port), (Ready::Http("/actuator/health".to_owned()), None));
        let repeats = "loadline weigh --url 'http://127.0.0.1:{port}/hello' --ready http:/actuator/health \
                       'target/the app.jar' ";
        assert!(document.conditions.command.starts_with(repeats), "{}", document.conditions.command);
        assert!(document.conditions.load.iter().any(|phase| phase.contains("GET /hello")), "{:?}", document.conditions);
    }
}

#[test]
fn a_port_property_precedes_the_jar_and_a_url_avoids_detection() {
    for release in newest() {
        let call = of_jar("weigh", release, "Framed", "X-Test: 1\nClass-Path: lib/boot/io.quarkus.x.jar\n");
        let ran = call.with("--url http://127.0.0.1:{port}/hello").of_jdk(release).run().expect(0);
        assert!(!ran.stderr.contains("to find its port and path"), "{}", ran.stderr);
        let subject = ran.archived().scenario.subject;
        assert_eq!(subject.command[..3], ["java", "-Dquarkus.http.port={port}", "-jar"]);
    }
}

#[test]
fn the_port_of_a_jar_without_a_framework_is_detected() {
    for release in newest() {
        let port = loadline::subject::free_port("127.0.0.1").unwrap().to_string();
        let call = of_jar("weigh", release, "Framed", "").of_jdk(release).command(&[&port]);
        let ran = call.run().expect(0);
        let ran = ran.says(&["(no known framework)", &format!("loaded: GET /hello on port {port} (first of")]);
        assert_eq!(ran.archived().scenario.subject.port, port.parse().ok());

        // A jar without a port property listens elsewhere than requested.
        let call = of_jar("weigh", release, "DemoServer", "Class-Path: io.quarkus.x.jar\n").of_jdk(release);
        call.command(&[&port]).run().expect(0).says(&[&format!("loaded: GET /hello on port {port} (")]);
    }
}

#[test]
fn a_server_without_a_usual_path_is_reported_with_its_responses() {
    for release in newest() {
        let call = of_jar("weigh", release, "AnswersStatus", "").of_jdk(release).command(&["{port}", "404"]);
        let ran = call.run().expect(3).says(&[
            "error: none of the usual paths returned 200",
            "http://127.0.0.1:",
            "404 on /health, /healthz, /actuator/health, /, /hello, ",
            "command: ",
            "java -jar 'target/the app.jar' ",
            "hint: specify one that works: `--url 'http://127.0.0.1:{port}/PATH'`",
        ]);
        assert!(!ran.archive.exists());

        let call = of_jar("weigh", release, "DemoServer", "").of_jdk(release);
        call.run().expect(3).says(&["the server exited after", "ArrayIndexOutOfBoundsException"]);
    }
}

#[test]
fn find_and_compare_accept_a_jar() {
    if !long_tests_run() {
        return;
    }
    for release in newest() {
        let call = of_jar("compare --vary gc=serial,g1 --trials 1", release, "Framed", SPRING).of_jdk(release);
        let ran = call.run().expect(0).says(&["loaded: GET /hello (first of "]);
        assert_eq!(ran.archived().trials.len(), 2);

        let call = of_jar("find --rate 50 --prove 400m --proofs 1", release, "Framed", SPRING).of_jdk(release);
        let ran = call.without("-n").with("--duration 1s").without("--rest").run();
        let ran = ran.says(&["loaded: GET /hello (first of "]);
        assert!(ran.archived().scenario.subject.command.contains(&"--server.port={port}".to_owned()));
    }
}

#[test]
fn scenarios_written_by_init_run() {
    for release in newest() {
        let call = Call::verb("init");
        jar(release, &call.folder().join("target/the app.jar"), "Framed", SPRING);
        let pom = "<project><artifactId>the shop: \"1\"</artifactId><version>1</version></project>";
        std::fs::write(call.folder().join("pom.xml"), pom).unwrap();
        let ran = call
            .run()
            .expect(0)
            .says(&["starting the server once", "next: loadline run the_shop___1_.loadline.yaml\n"]);
        assert_eq!(ran.stdout, "the_shop___1_.loadline.yaml\n");
        let folder = ran.archive.parent().unwrap();
        assert!(folder.join(".loadline/scenario.schema.json").is_file());
        let text = std::fs::read_to_string(folder.join("the_shop___1_.loadline.yaml")).unwrap();
        assert!(text.contains("get: /hello") && text.contains("http: /actuator/health"), "{text}");

        let call = Call::verb("run -n 200 --rest 200ms").with_argument(&folder.join("the_shop___1_.loadline.yaml"));
        let done = call.with("--json").archiving().run().expect(0);
        assert_eq!(done.document().trials.len(), 1);
    }
}
