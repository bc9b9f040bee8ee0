//! The verdicts of the two goals for every way that Loadline can end. A single build has many modules, each with a
//! stand-in.

use crate::build::{Built, Maven, Project, VERSION, maven};
use crate::stand_in::{BudgetOutcome, StandIn};
use loadline_test_support::long_tests_run;

/// A module: name, exit code, stderr, budgets, and the plugin's configuration.
type Module = (&'static str, i32, &'static str, &'static [BudgetOutcome], &'static str);

const MODULES: &[Module] = &[
    ("kept", 0, "", &[BudgetOutcome::Kept, BudgetOutcome::Kept], ""),
    ("undecided", 0, "", &[BudgetOutcome::Kept, BudgetOutcome::Undecided], ""),
    (
        "broken",
        1,
        "",
        &[BudgetOutcome::Kept, BudgetOutcome::Broken, BudgetOutcome::Undecided],
        "<baseline>before</baseline>",
    ),
    ("strict", 1, "", &[BudgetOutcome::Undecided], "<undecided>fail</undecided>"),
    ("request", 2, "error: `rss.loadde` is no metric\n\nhint: did you mean `rss.loaded`?", &[], ""),
    ("subject", 3, "trial 1 of 5\nerror: the server died: exit code 1\n  its last lines:\n    | Bang", &[], ""),
    ("machine", 4, "error: no cgroup can be made", &[], ""),
    ("bug", 70, "error: a bug in Loadline", &[], ""),
    ("aimless", 0, "", &[], ""),
    ("skipped", 4, "error: never said", &[], "<skip>true</skip>"),
    ("absent", 0, "", &[BudgetOutcome::Kept], "<executable>nowhere/loadline</executable>"),
];

/// A reactor with packaging `pom`, so that nothing is built except what is measured.
fn reactor<'a>(maven: &'a Maven, name: &str) -> Project<'a> {
    let project = maven.empty(name);
    let head = "<project><modelVersion>4.0.0</modelVersion>";
    let modules: String = MODULES.iter().map(|module| format!("<module>{}</module>", module.0)).collect();
    let plugin = "<groupId>dev.loadline</groupId><artifactId>loadline-maven-plugin</artifactId>";
    let goals = "<executions><execution><goals><goal>weigh</goal><goal>verify</goal></goals></execution></executions>";
    project.file(
        "pom.xml",
        &format!(
            "{head}<groupId>org.example</groupId><artifactId>all</artifactId><version>1</version>\
             <packaging>pom</packaging><modules>{modules}</modules><build><plugins><plugin>{plugin}\
             <version>{VERSION}</version>{goals}</plugin></plugins></build></project>"
        ),
    );
    for (module, exit, words, budgets, configuration) in MODULES {
        let stand_in = StandIn::new(&project.folder.join(module).join("stand-in"), *exit, words, budgets);
        let own = match configuration.contains("<executable>") {
            true => String::new(),
            false => format!("<executable>{}</executable>", stand_in.program().display()),
        };
        project.file(&format!("{module}/app.jar"), "no jar").file(
            &format!("{module}/pom.xml"),
            &format!(
                "{head}<parent><groupId>org.example</groupId><artifactId>all</artifactId><version>1</version></parent>\
                 <artifactId>{module}</artifactId><packaging>pom</packaging><build><plugins><plugin>{plugin}\
                 <configuration>{own}{configuration}<artifact>app.jar</artifact>\
                 <budgets><budget>rss.loaded&lt;=60MiB</budget></budgets></configuration>\
                 </plugin></plugins></build></project>"
            ),
        );
    }
    project
}

/// Checks the verdict on each module, in Maven's terms.
fn check(built: &Built) {
    built.fails();
    let interval = "ci 1: rss.loaded<=60MiB: from 70.2 MiB to 81.4 MiB in 5 trials: all of it misses 60.0 MiB";
    built.says("2 budgets met, 0 undecided");
    built.says("[WARNING] undecided: ci 1: rss.loaded<=60MiB: from 59.2 MiB to 80.2 MiB in 5 trials");
    built.says("1 budget met, 1 undecided");
    built.says(&format!("1 budget broken:\n[ERROR]   {interval}")).says("metaspace +8.0 MiB");
    built.says("1 budget undecided, which counts as broken:");
    built.says("[WARNING] there are no budgets, so the build cannot fail");
    built.says("(loadline: exit code 2):\n[ERROR] error: `rss.loadde` is no metric").says("did you mean `rss.loaded`?");
    built.says("(loadline: exit code 3):\n[ERROR] error: the server died: exit code 1").says("| Bang");
    built.says("(loadline: exit code 4):\n[ERROR] error: no cgroup can be made");
    built.says("(loadline: exit code 70):\n[ERROR] error: a bug in Loadline");
    built.says("skipped: loadline.skip is set").says_nothing_of("never said");
    built.says("nowhere/loadline does not exist").says("skipped: this module builds no server");
    for module in ["kept", "undecided", "aimless", "skipped", "all"] {
        assert!(summary(built, module).contains("SUCCESS"), "{module}:\n{}", built.log);
    }
    for module in ["broken", "strict", "request", "subject", "machine", "bug", "absent"] {
        assert!(summary(built, module).contains("FAILURE"), "{module}:\n{}", built.log);
    }
    // An exceeded budget is a project failure; a failed measurement is a build error.
    let kinds = built.log.matches("MojoFailureException").count() > 0 && built.log.contains("MojoExecutionException");
    assert!(kinds, "{}", built.log);
}

/// A module's line in Maven's summary.
fn summary<'a>(built: &'a Built, module: &str) -> &'a str {
    let line = built.log.lines().find(|line| line.starts_with(&format!("[INFO] {module} .")));
    line.unwrap_or_else(|| panic!("no line for {module}:\n{}", built.log))
}

#[test]
fn every_exit_code_of_loadline_gives_the_right_build_result() {
    let Some(maven) = maven() else { return };
    let project = reactor(maven, "verdicts");
    check(&project.build(&["verify", "--fail-at-end"]));
    let called = |module: &str| StandIn { folder: project.folder.join(module).join("stand-in") }.called();
    let words = called("kept").join(" ");
    let target = project.folder.join("kept/target");
    let expect = format!(
        "weigh --budget rss.loaded<=60MiB --trials 5 --rest 12s --out {0}/loadline/archive \
         --html {0}/loadline/report.html --junit {0}/loadline-reports/TEST-loadline.xml {1}",
        target.display(),
        project.folder.join("kept/app.jar").display()
    );
    assert_eq!(words, expect);
    assert!(called("broken").join(" ").contains("--baseline before"), "{:?}", called("broken"));
    assert!(called("broken").join(" ").contains("--comment "), "{:?}", called("broken"));
    assert!(called("strict").join(" ").contains("--undecided fail"), "{:?}", called("strict"));
    assert_eq!(called("skipped"), Vec::<String>::new());
    assert_eq!(project.read("kept/target/loadline/result.json").trim(), "{\"made\": \"up\"}");
    let (folder, home) = StandIn { folder: project.folder.join("kept/stand-in") }.place();
    assert_eq!(folder, project.folder.join("kept").display().to_string());
    assert!(std::path::Path::new(&home).join("bin/java").exists(), "JAVA_HOME is not Maven's JDK: {home}");
}

#[test]
fn newer_maven_releases_give_the_same_results() {
    if !long_tests_run() {
        return;
    }
    let Some(maven) = maven() else { return };
    let releases = maven.releases();
    assert_eq!(releases.len(), 2, "{releases:?}");
    for release in releases {
        let built = reactor(maven, "verdicts of others").by(&release).build(&["verify", "--fail-at-end"]);
        check(&built);
        built.says_nothing_of("is unknown for plugin");
    }
}

#[test]
fn every_option_that_skips_tests_skips_loadline() {
    if !long_tests_run() {
        return;
    }
    let Some(maven) = maven() else { return };
    let stand_in = StandIn::new(&maven.empty("skips stand-in").folder, 1, "", &[BudgetOutcome::Broken]);
    let project = maven.project("app", "skips");
    let (weigh, verify) = ["weigh", "verify"].map(|goal| format!("dev.loadline:loadline-maven-plugin:{goal}")).into();
    project.build(&["package", "-Dloadline.skip"]).passes();
    project.build(&[&stand_in.option(), &weigh, &verify]).fails().says("1 budget broken");
    for option in ["loadline.skip", "skipITs", "skipTests", "maven.test.skip"] {
        let built = project.build(&[&stand_in.option(), &weigh, &verify, &format!("-D{option}")]);
        built.passes().says(&format!("skipped: {option} is set"));
    }
    // A skipped measurement leaves nothing that looks like a verdict.
    project.build(&[&verify]).passes().says("nothing was weighed: maven.test.skip is set");
    std::fs::remove_dir_all(project.folder.join("target/loadline")).unwrap();
    project.build(&[&verify]).fails().says("there is nothing to verify").says("run both goals");
}

#[test]
fn unsupported_platforms_are_skipped_with_a_note() {
    let Some(maven) = maven() else { return };
    let project = maven.project("app", "elsewhere");
    let (weigh, verify) = ["weigh", "verify"].map(|goal| format!("dev.loadline:loadline-maven-plugin:{goal}")).into();
    for (option, name) in [("-Dos.name=Mac OS X", "Mac OS X on "), ("-Dos.arch=riscv64", "Linux on riscv64")] {
        let built = project.build(&[&weigh, &verify, option]);
        built.passes().says("Loadline runs only on Linux (x86_64, aarch64), but this is ").says(name);
        built.says("[WARNING]").says("budgets are not checked here");
        let built = project.build(&[&weigh, &verify, option, "-Dloadline.failIfUnsupported"]);
        built.fails().says("remove failIfUnsupported");
    }
}
