//! A Spring Boot project gets a budget against its last build, and breaks it by 8 MiB that somebody planted.

use crate::build::maven;

#[test]
fn eight_mebibytes_planted_in_a_spring_boot_jar_break_its_budget() {
    let Some(maven) = maven() else { return };
    let project = maven.project("boot", "boot");
    let load = "-Dloadline.arguments=--url,http://127.0.0.1:{port}/hello,--heap,64m,--gc,serial,-n,500,-c,2,--rest,0,\
                --,java,-jar,{artifact},--server.port={port}";
    let before = project.build(&["verify", load, "-Dloadline.budgets=heap_live.collected<=60MiB"]);
    before.passes().says("1 budget kept, 0 undecided");
    std::fs::rename(project.folder.join("target/loadline/archive"), project.folder.join("before")).unwrap();

    project.change("src/main/java/app/Shop.java", "new byte[0]", "new byte[8 << 20]");
    let after = project.build(&["verify", load, "-Dloadline.baseline=before"]);
    after.fails().says("1 budget broken:").says("heap_live.collected<=+4MiB: from ");
}
