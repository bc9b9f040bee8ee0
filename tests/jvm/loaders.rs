//! Class loaders from mark to mark: a server that leaks one per request must be detected exactly.

use crate::invocation::{Call, every_release, mark, newest};
use crate::standing::LaunchPlan;
use loadline::record::{Finding, FindingRecord, LoaderType, Mark};

const LEAKY: &str = "loadline.subjects.ClassFiles";
const REQUESTS: u64 = 200;

fn of<'a>(mark: &'a Mark, name: &str) -> &'a LoaderType {
    mark.loaders.as_ref().unwrap().types.iter().find(|of| of.name == name).unwrap()
}

/// Whether the finding is about accumulating classes.
fn grows(finding: &Finding) -> bool {
    matches!(finding, Finding::LoadersKeepComing { .. } | Finding::MetaspaceKeepsGrowing { .. })
}

#[test]
fn one_loader_per_request_is_counted_and_found() {
    for release in every_release() {
        let ran = Call::on(release).subject("LeaksLoaders", "{port}").run().expect(0);
        let (document, trial) = (ran.document(), ran.trial());
        // The warm-up has the same load.
        for point in ["warm", "loaded"] {
            let change = of(mark(&trial, point), LEAKY).change.unwrap();
            assert_eq!((change.added.loaders, change.added.classes, change.ended.loaders), (REQUESTS, REQUESTS, 0));
            // The class has a method of 1.8 KB; its loader's chunk holds little else.
            let each = change.added.taken_bytes / REQUESTS;
            assert!((1_800..40_000).contains(&each), "JDK {release}, {point}: {each} bytes per loader");
        }
        let [start, loaded] = ["start", "loaded"].map(|point| mark(&trial, point).classes.unwrap().loaded);
        assert!(loaded >= start + 2 * REQUESTS, "JDK {release}: {start}, {loaded}");
        let growing: Vec<&Finding> = document.findings.iter().map(|of| &of.finding).filter(|of| grows(of)).collect();
        let [Finding::LoadersKeepComing { loader, spans, live_after_gc }] = growing.as_slice() else {
            panic!("{growing:?}")
        };
        // The readiness check adds one request.
        let (live, asked) = (live_after_gc.unwrap().loaders, 2 * REQUESTS + 1);
        assert_eq!((loader.as_str(), spans.len()), (LEAKY, 2));
        assert!((2 * REQUESTS..=asked).contains(&live), "JDK {release}: {live}");
    }
}

#[test]
fn a_server_without_new_loaders_has_no_loader_finding() {
    for release in newest() {
        let call = Call::on(release).with("--url http://127.0.0.1:{port}/calm");
        let ran = call.subject("LeaksLoaders", "{port}").run().expect(0);
        let growing: Vec<FindingRecord> =
            ran.document().findings.into_iter().filter(|found| grows(&found.finding)).collect();
        assert_eq!(growing, []);
    }
}

#[test]
fn an_account_lists_the_classes_of_a_loader() {
    for release in every_release() {
        let (subject, _) = LaunchPlan::on(release, "-Xmx96m -XX:+UseSerialGC").worked("ManyClasses");
        let document = subject.document("");
        let loader = of(&document.mark, LEAKY);
        assert_eq!((loader.now.loaders, loader.now.classes, loader.change), (1, 8_001, None), "JDK {release}");
        let metaspace: u64 = document
            .mark
            .account
            .iter()
            .flat_map(|account| &account.owners)
            .filter(|owner| ["metaspace", "class_space"].contains(&owner.name.as_str()))
            .map(|owner| owner.rss_bytes)
            .sum();
        let used = document.mark.loaders.as_ref().unwrap().total.used_bytes;
        // The JVM counts in words or bytes, depending on the release. The used part is resident, and little else is.
        assert!(used <= metaspace && used * 10 >= metaspace * 9, "JDK {release}: {used} of {metaspace}");
    }
}
