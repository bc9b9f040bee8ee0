//! Memory allocated at a known line is explained by that line.

use crate::invocation::{Call, newest};
use crate::standing::{LaunchPlan, account_of};
use crate::truth::truth;
use loadline::record::{CallPurpose, ExplanationRecord, FrameCode, SiteRecord, Trial};
use loadline_profile::library::Library;

/// The prefix of the subject's methods, which are compiled without line numbers.
const PLANTS: &str = "loadline.subjects.Plants.";

/// Explains a subject with this planted cause, by its second start; `None` without a profiler.
fn explained(release: u32, options: &str, cause: &str) -> Option<ExplanationRecord> {
    let call = Call::explaining(release).with("-n 200").with("--rest 1").with("--warmup 50").with_jvm(options);
    let mut document = call.subject("Plants", &format!("{{port}} {cause}")).run().expect(0).document();
    let trial: Trial = document.trials.remove(0);
    let found = trial.explanation.expect("the call requested an explanation");
    if found.profiler.is_none() {
        loadline_test_support::skip("LOADLINE_PROFILER", &found.missing.join("; "));
        return None;
    }
    println!("JDK {release}, {cause}: {found:#?}");
    Some(found)
}

/// Checks that at least 95% of the planted memory, and not much more, is at the method's lines.
#[track_caller]
fn is_at(found: &ExplanationRecord, method: &str, bytes: impl Fn(&SiteRecord) -> u64, planted: u64) {
    let at: u64 = found.sites.iter().filter(|site| site.site.starts_with(method)).map(bytes).sum();
    assert!(at * 100 >= planted * 95 && at <= planted + planted / 10, "{at} of {planted} bytes at {method}");
}

#[test]
fn direct_memory_is_attributed_to_the_line_that_allocated_it() {
    for release in newest() {
        let Some(found) = explained(release, "-Xmx96m -XX:+UseSerialGC", "channels") else { return };
        is_at(
            &found,
            PLANTS,
            |site| if site.kind.starts_with("direct memory") { site.kept_bytes } else { 0 },
            truth("Plants", "channel_bytes"),
        );
        assert_eq!(found.missing, Vec::<String>::new());
        let flame = found.flames.iter().find(|flame| flame.kind.starts_with("direct memory")).expect("at least 1 MiB");
        let told: u64 = flame.stacks.iter().map(|stack| stack.bytes).sum();
        assert_eq!(told + flame.left_out_bytes, flame.bytes);
        let mut own = flame.frames.iter().filter(|frame| frame.code == FrameCode::Application);
        assert!(own.any(|frame| frame.name.starts_with(PLANTS)), "{flame:#?}");
    }
}

#[test]
fn native_memory_of_garbage_is_freed_by_a_collection() {
    for release in newest() {
        let options = "-Xmx160m -Xmn128m -XX:+UseSerialGC";
        let Some(found) = explained(release, options, "garbage") else { return };
        let planted = truth("Plants", "deflaters") * (262 << 10);
        is_at(&found, PLANTS, |site| site.loaded_bytes, planted);
        let kept: u64 =
            found.sites.iter().filter(|site| site.site.starts_with(PLANTS)).map(|site| site.kept_bytes).sum();
        assert!(kept < planted / 10, "{kept} of {planted}");
    }
}

#[test]
fn objects_are_attributed_to_the_field_that_holds_them() {
    for release in newest() {
        let Some(found) = explained(release, "-Xmx160m -XX:+UseSerialGC", "statics") else { return };
        let heap = found.heap.expect("the heap was dumped");
        assert_eq!(heap.holders[0].name, "loadline.subjects.Plants.sessions");
        assert!(heap.covered_bytes * 10 >= heap.live_bytes * 9, "{} of {}", heap.covered_bytes, heap.live_bytes);
    }
}

#[test]
fn children_and_files_are_attributed_to_lines_of_code() {
    for release in newest() {
        for (cause, purpose, planted) in [
            ("children", CallPurpose::StartsProcess, truth("Plants", "children")),
            ("files", CallPurpose::OpensFile, truth("Plants", "files")),
        ] {
            let Some(found) = explained(release, "-Xmx64m -XX:+UseSerialGC", cause) else { return };
            let first = found.calls.iter().find(|call| call.purpose == purpose).expect("calls were traced");
            assert!(first.site.starts_with(PLANTS) && first.calls >= planted, "{first:?}");
        }
    }
}

#[test]
fn a_running_jvm_is_explained_with_flame_graphs() {
    if let Err(why) = Library::find(None) {
        return loadline_test_support::skip("LOADLINE_PROFILER", &why.what);
    }
    for release in newest() {
        let mut subject = LaunchPlan::on(release, "-XX:+UseSerialGC -Xmx128m").start("DirectBuffers", "");
        subject.says("BEFORE");
        let call = Call::verb(&format!("explain {} --for 2s --json --html why.html", subject.pid())).beside();
        let page = call.folder().join("why.html");
        let mut recording = call.start();
        recording.until_said("recording pid");
        subject.go_on();
        subject.says("AFTER");
        let ran = recording.wait().expect(0);
        subject.runs_on();
        let found = account_of(&ran).explanation.expect("the call requested an explanation");
        let bytes = |site: &SiteRecord| if site.kind.starts_with("direct memory") { site.loaded_bytes } else { 0 };
        is_at(&found, "loadline.subjects.DirectBuffers.", bytes, truth("DirectBuffers", "direct_bytes"));
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains("in use at the end, by stack") && page.contains("DirectBuffers.written"), "{page}");
    }
}
