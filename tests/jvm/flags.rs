//! JVM options: they reach the JVM by every route, and Loadline reports if the JVM does not apply them.

use crate::invocation::{Call, all_releases, doubts, mark_names, newest, phase, release, releases};
use loadline::doubt::Doubt;
use loadline::record::Trial;

fn in_force(trial: &Trial) -> Vec<&str> {
    trial.jvm.as_ref().unwrap().flags.as_ref().unwrap().iter().map(String::as_str).collect()
}

/// Asserts that the heap and the collector are as requested.
fn assert_followed(trial: &Trial, through: &str) {
    let jvm = trial.jvm.as_ref().unwrap();
    assert_eq!((jvm.options_through.as_str(), jvm.collector.as_deref()), (through, Some("Serial")));
    for flag in ["-XX:InitialHeapSize=16777216", "-XX:MaxHeapSize=16777216", "-XX:+UseSerialGC"] {
        assert!(in_force(trial).contains(&flag), "{flag}: {:?}", in_force(trial));
    }
    assert!(!doubts(trial, |doubt| matches!(doubt, Doubt::FlagChanged { .. } | Doubt::FlagsIgnored { .. })));
}

fn small(release: u32) -> Call {
    Call::on(release).with("--heap 16m").with("--gc serial").with("--jvm -Dsome.property=1").with("-n 50")
}

#[test]
fn options_reach_a_jvm_on_the_command_line() {
    for release in all_releases() {
        let trial = small(release).subject("DemoServer", "{port}").run().expect(0).trial();
        assert_followed(&trial, "command_line");
        let jvm = trial.jvm.unwrap();
        assert!(jvm.version.unwrap().starts_with(&release.to_string()));
        assert!(jvm.java.unwrap().ends_with("/bin/java"));
        assert_eq!(jvm.options, ["-Xms16m", "-Xmx16m", "-XX:+UseSerialGC", "-Dsome.property=1"]);
    }
}

#[test]
fn options_reach_a_jvm_at_the_placeholder() {
    for release in newest() {
        let call = small(release);
        let java = call.java("DemoServer", "{port}").replacen("java ", "java {jvm} ", 1);
        let call = call.script(&format!("{java}; true"));
        assert_followed(&call.run().expect(0).trial(), "placeholder");
    }
}

#[test]
fn options_reach_a_jvm_in_a_script_through_a_variable() {
    for release in releases() {
        let call = small(release);
        let script = format!("{}; true", call.java("DemoServer", "{port}"));
        let ran = call.script(&script).run().expect(0);
        let trial = ran.trial();
        assert_followed(&trial, "JDK_JAVA_OPTIONS");
        // `--jdk` also applies to a script.
        assert!(trial.jvm.unwrap().version.unwrap().starts_with(&release.to_string()));
        assert!(ran.subject_log().contains("Picked up JDK_JAVA_OPTIONS: "), "{}", ran.subject_log());
    }
}

#[test]
fn an_ignored_option_raises_a_doubt() {
    for release in release(25) {
        let call = Call::on(release).with("--jvm -XX:+ZGenerational").subject("DemoServer", "{port}");
        let trial = call.run().expect(0).trial();
        let ignored = |doubt: &Doubt| matches!(doubt, Doubt::FlagsIgnored { flags } if flags.len() == 1);
        assert!(doubts(&trial, ignored), "{:?}", trial.doubts);
    }
    for release in all_releases() {
        let call = Call::on(release).with("--jvm -XX:+IgnoreUnrecognizedVMOptions").with("--jvm -XX:+NoSuchFlag");
        let trial = call.subject("DemoServer", "{port}").run().expect(0).trial();
        let ignored = |doubt: &Doubt| matches!(doubt, Doubt::FlagsIgnored { flags } if flags == &["-XX:+NoSuchFlag"]);
        assert!(doubts(&trial, ignored), "{:?}", trial.doubts);
    }
}

#[test]
fn an_option_with_another_effective_value_raises_a_doubt() {
    for release in releases() {
        let call = Call::on(release).with("--heap 7m").with("--gc parallel").subject("DemoServer", "{port}");
        let trial = call.run().expect(0).trial();
        let changed = |doubt: &Doubt| {
            matches!(doubt, Doubt::FlagChanged { asked, in_force }
                if asked == "-Xmx7m" && in_force == "-XX:MaxHeapSize=8388608")
        };
        assert!(doubts(&trial, changed), "{:?}", trial.doubts);
    }
}

#[test]
fn every_collector_is_measured_at_every_mark() {
    for release in releases() {
        for (gc, name) in [("serial", "Serial"), ("g1", "G1"), ("parallel", "Parallel"), ("z", "Z")] {
            let call = Call::on(release).with(&format!("--gc {gc}")).with("--heap 64m").with("-n 100");
            let trial = call.subject("DemoServer", "{port}").run().expect(0).trial();
            assert_eq!(trial.jvm.as_ref().unwrap().collector.as_deref(), Some(name));
            assert_eq!(mark_names(&trial), ["start", "warm", "loaded", "rested", "collected"]);
            let live = trial.mark("collected").unwrap().heap.live_bytes;
            assert!(live.is_some_and(|live| live > 500_000 && live < 32 << 20), "JDK {release}, {gc}: {live:?}");
        }
    }
}

#[test]
fn epsilon_trials_have_no_live_set() {
    for release in releases() {
        let call = Call::on(release).with("--gc epsilon").with("--heap 64m").with("-n 50");
        let trial = call.subject("DemoServer", "{port}").run().expect(0).trial();
        assert_eq!(trial.jvm.as_ref().unwrap().collector.as_deref(), Some("Epsilon"));
        assert!(trial.marks.iter().all(|mark| mark.heap.live_bytes.is_none()), "{:?}", trial.marks);
        assert!(doubts(&trial, |doubt| matches!(doubt, Doubt::ReadFailed { mark, .. } if mark == "collected")));
    }
}

fn without_attach(call: Call) -> Call {
    call.with("--jvm -XX:+DisableAttachMechanism")
}

fn without_counters(call: Call) -> Call {
    call.with("--jvm -XX:-UsePerfData")
}

fn assert_outside_figures(trial: &Trial) {
    assert_eq!(phase(trial, "steady").ok, 200);
    let weighed = trial.marks.iter().all(|mark| mark.rss_bytes > 20 << 20 && mark.threads.is_some_and(|n| n > 5));
    assert!(weighed && trial.marks.len() >= 4, "{:?}", trial.marks);
}

#[test]
fn a_jvm_without_attach_is_measured_and_its_log_stays_clean() {
    for release in all_releases() {
        let ran = without_attach(Call::on(release)).subject("DemoServer", "{port}").run().expect(0);
        let trial = ran.trial();
        assert_outside_figures(&trial);
        assert!(doubts(&trial, |doubt| matches!(doubt, Doubt::AttachMissing { .. })), "{:?}", trial.doubts);
        // SIGQUIT, which starts attaching, would print a thread dump.
        assert_eq!(ran.subject_log(), "");
        assert!(trial.mark("start").unwrap().heap.committed_bytes.is_some(), "the JVM's counters supply it");
        assert!(trial.marks.iter().all(|mark| mark.heap.live_bytes.is_none()));
    }
}

#[test]
fn a_jvm_without_counters_is_measured() {
    for release in releases() {
        let ran = without_counters(Call::on(release)).subject("DemoServer", "{port}").run().expect(0);
        let trial = ran.trial();
        assert_outside_figures(&trial);
        assert!(doubts(&trial, |doubt| matches!(doubt, Doubt::CountersMissing { .. })), "{:?}", trial.doubts);
        assert!(trial.mark("collected").unwrap().heap.live_bytes.is_some());
        assert_eq!(phase(&trial, "steady").subject.gc_count, None);
    }
}

#[test]
fn a_jvm_without_attach_and_counters_is_measured() {
    for release in newest() {
        let call = without_counters(without_attach(Call::on(release)));
        let ran = call.subject("DemoServer", "{port}").run().expect(0);
        let trial = ran.trial();
        assert_outside_figures(&trial);
        assert!(doubts(&trial, |doubt| matches!(doubt, Doubt::AttachMissing { .. })), "{:?}", trial.doubts);
        assert!(doubts(&trial, |doubt| matches!(doubt, Doubt::CountersMissing { .. })), "{:?}", trial.doubts);
        assert!(trial.marks.iter().all(|mark| mark.heap.used_bytes > Some(1 << 20)), "{:?}", trial.marks);
        assert_eq!(ran.subject_log(), "");
    }
}

#[test]
fn a_second_jvm_is_reported() {
    for release in newest() {
        let call = Call::on(release).with("-n 50");
        let (serves, idles) = (call.java("DemoServer", "{port}"), call.java("NeverReady", ""));
        let script = format!("{idles} > idle & {serves} & trap 'kill %1 %2' TERM; wait; wait");
        let trial = call.script(&script).run().expect(0).trial();
        let pid = trial.jvm.as_ref().unwrap().pid;
        let told = |doubt: &Doubt| {
            matches!(doubt, Doubt::SeveralJvms { pid: weighed, others }
                if *weighed == pid && others.len() == 1 && others[0] != pid)
        };
        assert!(doubts(&trial, told), "{:?}", trial.doubts);
    }
}
