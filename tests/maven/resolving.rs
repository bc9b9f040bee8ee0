//! Where the binary comes from (the PATH, a repository behind a mirror, or nowhere), and the JDK (a toolchain).

use crate::build::{VERSION, maven};
use crate::stand_in::{BudgetOutcome, StandIn};
use loadline_test_support::executable;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const WEIGH: &str = "dev.loadline:loadline-maven-plugin:weigh";
const VERIFY: &str = "dev.loadline:loadline-maven-plugin:verify";
const OF_JAR: &str = "-Dloadline.artifact=a.jar";

#[test]
fn a_program_on_the_path_is_used_if_its_version_matches() {
    let Some(maven) = maven() else { return };
    let stand_in = StandIn::new(&maven.empty("on the path").folder, 0, "", &[BudgetOutcome::Kept]);
    let project = maven.project("app", "resolving").with("PATH", &stand_in.path());
    project.file("a.jar", "no jar");
    let goals = [WEIGH, VERIFY, OF_JAR];
    project.build(&goals).passes().says("1 budget met");
    assert!(stand_in.called().contains(&"run".to_owned()), "{:?}", stand_in.called());

    // A program with a different version is ignored: the artifact is used, and rejects a file that is not a jar.
    stand_in.version("0.0.9");
    fs::remove_file(stand_in.folder.join("called")).unwrap();
    project.build(&goals).fails().says("exit code 3").says("a.jar");
    assert_eq!(stand_in.called(), Vec::<String>::new());
    let resolved = maven.local().join(format!("loadline/{VERSION}/loadline-{VERSION}-linux-x86_64.exe"));
    assert_ne!(fs::metadata(resolved).unwrap().permissions().mode() & 0o111, 0, "the artifact is made executable");

    // Offline, an artifact in the local repository suffices.
    let offline = [&goals[..], &["-o"]].concat();
    project.build(&offline).fails().says("exit code 3");
    let missing = [&goals[..], &["-Dloadline.version=9.9.9"]].concat();
    let built = project.build(&missing);
    built.fails().says("cannot get the binary").says("dev.loadline:loadline:exe:linux-x86_64:9.9.9");
    built.says("on the PATH is 0.0.9, but the plugin needs 9.9.9").says("-Dloadline.executable=FILE");
    let built = project.build(&[&missing[..], &["-o"]].concat());
    built.fails().says("offline").says("cannot get the binary");
}

/// Files in the project's directory were checked out, not installed, so they must not be run.
#[test]
fn an_empty_path_entry_is_not_the_project_directory() {
    let Some(maven) = maven() else { return };
    let project = maven.project("app", "empty part");
    let stand_in = StandIn::new(&project.folder, 0, "", &[BudgetOutcome::Kept]);
    let path = std::env::var("PATH").unwrap();
    let project = project.with("PATH", &format!(":{path}::"));
    project.file("a.jar", "no jar");
    project.build(&[WEIGH, VERIFY, OF_JAR]).fails().says("exit code 3");
    assert_eq!(stand_in.called(), Vec::<String>::new());
}

#[test]
fn a_program_that_never_prints_its_version_does_not_block_a_build() {
    let Some(maven) = maven() else { return };
    let stand_in = StandIn::new(&maven.empty("no version").folder, 0, "", &[BudgetOutcome::Kept]);
    // Its child also holds the output open, and outlives it.
    executable(stand_in.program(), "#!/bin/sh\nsleep 600 & echo $! >\"$0.pid\"\nwait\n");
    let project = maven.project("app", "no version in time").with("PATH", &stand_in.path());
    project.file("a.jar", "no jar");
    let began = std::time::Instant::now();
    let built = project.build(&[WEIGH, VERIFY, OF_JAR, "-Dloadline.version=9.9.9", "-o"]);
    let took = began.elapsed();
    let left = stand_in.program().with_file_name("loadline.pid");
    let left = fs::read_to_string(left).unwrap();
    let ended = std::process::Command::new("kill").arg(left.trim()).status().unwrap();
    built.fails().says("on the PATH has no known version, but the plugin needs 9.9.9");
    assert!(ended.success() && took.as_secs() < 300, "{took:?}");
}

#[test]
fn the_binary_comes_from_plugin_repositories() {
    let Some(maven) = maven() else { return };
    let project = maven.project("app", "of the project");
    project.file("a.jar", "no jar");
    // A release of the binary that is only in a repository for the project's libraries.
    let name = "dev/loadline/loadline/9.9.9/loadline-9.9.9";
    project.file(&format!("libraries/{name}-linux-x86_64.exe"), "#!/bin/sh\n");
    project.file(
        &format!("libraries/{name}.pom"),
        "<project><modelVersion>4.0.0</modelVersion><groupId>dev.loadline</groupId><artifactId>loadline</artifactId>\
         <version>9.9.9</version></project>",
    );
    let repository = format!(
        "<repositories><repository><id>libraries</id><url>file://{}</url></repository></repositories>",
        project.folder.join("libraries").display().to_string().replace(' ', "%20")
    );
    project.change("pom.xml", "<properties>", &format!("{repository}<properties>"));
    let built = project.build(&[WEIGH, VERIFY, OF_JAR, "-Dloadline.version=9.9.9"]);
    built.fails().says("cannot get the binary");
}

#[test]
fn an_explicitly_named_program_is_used_unchecked() {
    let Some(maven) = maven() else { return };
    let stand_in = StandIn::new(&maven.empty("named").folder, 0, "", &[BudgetOutcome::Kept]);
    stand_in.version("7.0.0");
    let project = maven.project("app", "named by option");
    project.file("a.jar", "no jar");
    let goals = [WEIGH, VERIFY, OF_JAR, &stand_in.option()];
    project.build(&goals).passes().says(&format!("is Loadline 7.0.0, but this plugin is for {VERSION}"));
    fs::set_permissions(stand_in.program(), fs::Permissions::from_mode(0o644)).unwrap();
    project.build(&goals).fails().says("cannot be executed");
}

#[test]
fn a_scenario_is_found_in_the_usual_places() {
    let Some(maven) = maven() else { return };
    let stand_in = StandIn::new(&maven.empty("found").folder, 0, "", &[BudgetOutcome::Kept]);
    let project = maven.project("app", "scenarios");
    project.file("a.jar", "no jar").file("other.loadline.yaml", "{}").file("app-quick.loadline.yaml", "{}");
    let goals = [WEIGH, VERIFY, OF_JAR, &stand_in.option()];
    project.build(&goals).passes();
    let (scenario, jar) = (project.folder.join("app.loadline.yaml"), project.folder.join("a.jar"));
    let words = stand_in.called().join(" ");
    let expect = format!("--artifact {} {}", jar.display(), scenario.display());
    assert!(words.starts_with("run ") && words.ends_with(&expect), "{words}");
    assert!(!words.contains("--trials"), "the number of trials is taken from the scenario: {words}");

    fs::rename(scenario, project.folder.join("third.loadline.yaml")).unwrap();
    project.build(&goals).fails().says("there are 2 scenarios, and none is named app.loadline.yaml");
    // Without the word `{artifact}`, no artifact is passed.
    project.build(&[&goals[..], &["-Dloadline.scenario=other.loadline.yaml"]].concat()).passes();
    assert!(!stand_in.called().join(" ").contains("--artifact"), "{:?}", stand_in.called());
    // A user-defined command, and arguments for the jar.
    for name in ["other", "third"] {
        fs::remove_file(project.folder.join(format!("{name}.loadline.yaml"))).unwrap();
    }
    let own = "-Dloadline.arguments=--url,http://127.0.0.1:{port}/,--,java,-jar,{artifact},{port}";
    project.build(&[&goals[..], &["-Dloadline.trials=7", own]].concat()).passes();
    let words = stand_in.called().join(" ");
    let expect =
        format!("--artifact {} --url http://127.0.0.1:{{port}}/ -- java -jar {{artifact}} {{port}}", jar.display());
    assert!(words.contains("--trials 7") && words.ends_with(&expect), "{words}");
    project.build(&[&goals[..], &["-Dloadline.arguments=--heap,64m,--,--profile=ci"]].concat()).passes();
    let words = stand_in.called().join(" ");
    assert!(words.ends_with(&format!("--heap 64m {} -- --profile=ci", jar.display())), "{words}");
}

#[test]
fn the_jdk_of_the_toolchain_is_used() {
    let Some(maven) = maven() else { return };
    let stand_in = StandIn::new(&maven.empty("toolchains stand-in").folder, 0, "", &[BudgetOutcome::Kept]);
    let project = maven.project("app", "toolchains");
    let home = project.folder.join("a jdk");
    let toolchain = format!(
        "<toolchains><toolchain><type>jdk</type><provides><version>21</version></provides><configuration>\
         <jdkHome>{}</jdkHome></configuration></toolchain></toolchains>",
        home.display()
    );
    project.file("a jdk/bin/java", "").file("a.jar", "no jar").file("toolchains.xml", &toolchain);
    let wanted = |version: &str| {
        let text = format!("<configuration><jdkToolchain><version>{version}</version></jdkToolchain></configuration>");
        project.change("pom.xml", "<executions>", &format!("{text}<executions>"));
        project.build(&[WEIGH, VERIFY, "-t", "toolchains.xml", OF_JAR, &stand_in.option()])
    };
    wanted("21").passes();
    assert_eq!(stand_in.place().1, home.display().to_string());
    project.change("pom.xml", "<version>21</version>", "<version>99</version>");
    project
        .build(&[WEIGH, VERIFY, "-t", "toolchains.xml", OF_JAR, &stand_in.option()])
        .fails()
        .says("no toolchain matches jdkToolchain {version=99}");
}

#[test]
fn a_multi_module_build_measures_only_the_server() {
    let Some(maven) = maven() else { return };
    let stand_in = StandIn::new(&maven.empty("modules stand-in").folder, 0, "", &[BudgetOutcome::Kept]);
    let project = maven.empty("modules");
    let of_app = |name: &str| {
        let app = maven.project("app", &format!("modules/{name}"));
        app.change("pom.xml", &format!("<finalName>modules/{name}</finalName>"), "");
        app.change("pom.xml", "<artifactId>app</artifactId>", &format!("<artifactId>{name}</artifactId>"));
        app.read("pom.xml")
    };
    let (library, _) = (of_app("library"), of_app("server"));
    let skipped = library.replace("<properties>", "<properties><loadline.skip>true</loadline.skip>");
    project.file("library/pom.xml", &skipped).file(
        "pom.xml",
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>all</artifactId>\
         <version>1</version><packaging>pom</packaging>\
         <modules><module>library</module><module>server</module></modules></project>",
    );
    fs::rename(project.folder.join("server/app.loadline.yaml"), project.folder.join("server/x.loadline.yaml")).unwrap();
    let built = project.build(&["verify", &stand_in.option()]);
    built.passes().says("skipped: loadline.skip is set").says("1 budget met");
    let words = stand_in.called().join(" ");
    let jar = project.folder.join("server/target/server-1.jar");
    assert!(words.contains(&format!("--artifact {}", jar.display())), "{words}");
    assert_eq!(stand_in.place().0, project.folder.join("server").display().to_string());
    assert!(maven.repository().join("dev/loadline/loadline-maven-plugin").exists());
}
