//! `loadline advise` without a running JVM: synthetic advice on the screen, as settings for each host, and against its
//! schema; the advice for an archive; typos.

use crate::accounts::made_up;
use crate::called::{folder, loadline};
use crate::schema::Schema;
use loadline::record::{
    ADVICE_SCHEMA, AdviceDocument, AdviceRecord, PlaceRecord, UnreadCause, UnreadRecord, VpaRecord,
};
use loadline::report::{self, PatchHost, patch, render, summarize_advice};
use loadline::series::search::{HeapSeen, PartSeen, Seen, advise};
use std::fs;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A week of a server in a pod.
fn week() -> AdviceRecord {
    let part = |owner: &str, mib: u64, growth: Option<u64>| PartSeen {
        owner: owner.to_owned(),
        bytes: mib * MIB,
        growth: growth.map(|mib| mib * MIB),
    };
    let seen = Seen {
        heap: HeapSeen {
            left: Some(40 * MIB),
            old_collections: 41,
            allocated_per_s: Some(60.0 * MIB as f64),
            committed: Some(200 * MIB),
            max: Some(256 * MIB),
        },
        parts: vec![
            part("libjvm", 14, None),
            part("metaspace", 30, Some(2)),
            part("code_cache", 18, None),
            part("malloc.live", 20, None),
            part("rest", 3, None),
        ],
        kernel: 4 * MIB,
        kept_cache: MIB,
        others: 6 * MIB,
        peak: 320 * MIB,
        heap_at_peak: 150 * MIB,
        direct: 100 * MIB,
        watched_s: 7.0 * 86_400.0,
        lives: 3,
        peaks: 1,
        limit_now: Some(512 * MIB),
        ..Seen::default()
    };
    let command = ["java", "-Xmx256m", "-jar", "app.jar"].map(str::to_owned);
    let name = |text: &str| Some(text.to_owned());
    let place =
        PlaceRecord { namespace: name("prod"), pod: name("shop-6f4d8b9c7d-x2vbq"), container: name("app"), unit: None };
    AdviceRecord {
        name: "prod/shop-6f4d8b9c7d-x2vbq/app".to_owned(),
        pid: Some(4711),
        place,
        ..advise(&seen, &command)
    }
}

fn vpa() -> VpaRecord {
    VpaRecord {
        name: "shop".to_owned(),
        workload: "shop".to_owned(),
        container: "app".to_owned(),
        target_bytes: 500 * MIB,
        lower_bytes: Some(250 * MIB),
        upper_bytes: Some(1024 * MIB),
    }
}

/// Advice for a JVM that has just started.
fn fresh() -> AdviceRecord {
    let mut account = made_up();
    account.mark.heap.old_collections = Some(0);
    AdviceRecord {
        name: "app.jar".to_owned(),
        pid: Some(815),
        ..advise(&Seen::of_account(&account), &account.subject_command)
    }
}

fn leaks() -> AdviceRecord {
    let name = "bank.service".to_owned();
    let heap = HeapSeen { left: Some(MIB), ..HeapSeen::default() };
    AdviceRecord { name, ..advise(&Seen { grows: true, heap, ..Seen::default() }, &[]) }
}

fn document(advice: Vec<AdviceRecord>) -> AdviceDocument {
    AdviceDocument {
        schema: ADVICE_SCHEMA.to_owned(),
        loadline: env!("CARGO_PKG_VERSION").to_owned(),
        taken: "2026-11-21T04:36:21Z".to_owned(),
        command: "loadline advise 4711".to_owned(),
        machine: made_up().machine,
        advice,
        unread: Vec::new(),
    }
}

#[test]
fn advice_from_a_week_is_shown_with_an_autoscalers() {
    let advice = AdviceRecord { vpa: Some(vpa()), ..week() };
    insta::assert_snapshot!(render(&summarize_advice(&document(vec![advice]))));
}

#[test]
fn advice_from_a_single_reading_has_low_confidence() {
    insta::assert_snapshot!(render(&summarize_advice(&document(vec![fresh()]))));
}

#[test]
fn several_jvms_have_a_row_each() {
    let why = "the process with pid 99 belongs to another user".to_owned();
    let unread = vec![UnreadRecord { pid: 99, name: "java".to_owned(), cause: UnreadCause::Refused, why }];
    let of = document(vec![AdviceRecord { vpa: Some(vpa()), ..week() }, fresh(), leaks()]);
    let text = render(&summarize_advice(&AdviceDocument { unread, ..of }));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
    let none = render(&summarize_advice(&document(vec![leaks()])));
    assert!(none.contains("No advice: its memory grows without bound"), "{none}");
}

#[test]
fn each_host_has_its_patch() {
    let unit = AdviceRecord {
        place: PlaceRecord { unit: Some("shop.service".to_owned()), ..PlaceRecord::default() },
        ..week()
    };
    let own = Some("-Dprice=$5 \"-Da=b c\"");
    let texts = [
        patch(PatchHost::Kubernetes, &week(), own),
        patch(PatchHost::Compose, &week(), own),
        patch(PatchHost::Systemd, &unit, own),
        patch(PatchHost::Kubernetes, &fresh(), None),
        patch(PatchHost::Systemd, &leaks(), None),
        patch(PatchHost::Compose, &week(), Some("-Da=\u{1b}[2J")),
    ];
    insta::assert_snapshot!(texts.join("---\n"));
    let kind = |pod: &str| {
        let place = PlaceRecord { pod: Some(pod.to_owned()), ..PlaceRecord::default() };
        let text = patch(PatchHost::Kubernetes, &AdviceRecord { place, ..week() }, None);
        let line = |head: &str| text.lines().find_map(|line| line.trim().strip_prefix(head)).unwrap().to_owned();
        format!("{} {}", line("kind: "), line("name: "))
    };
    let kinds = ["db-0", "agent-x2vbq", "shop", "a-b"].map(kind);
    assert_eq!(kinds, ["StatefulSet \"db\"", "DaemonSet \"agent\"", "Deployment \"shop\"", "Deployment \"a-b\""]);
}

#[test]
fn patches_for_kubernetes_and_compose_are_yaml() {
    let values = [PatchHost::Kubernetes, PatchHost::Compose].map(|host| {
        let text = patch(host, &week(), Some("-Dprice=$5"));
        yaml_serde::from_str::<serde_json::Value>(&text).unwrap()
    });
    let container = &values[0]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((&container["name"], &values[0]["metadata"]["name"]), (&"app".into(), &"shop".into()));
    assert_eq!(container["resources"]["limits"], container["resources"]["requests"]);
    assert_eq!(container["env"][0]["value"], "-Dprice=$$5 -Xmx100m -XX:MaxDirectMemorySize=129m");
    let service = &values[1]["services"]["SERVICE"];
    assert_eq!(service["environment"]["JAVA_TOOL_OPTIONS"], "-Dprice=$$5 -Xmx100m -XX:MaxDirectMemorySize=129m");
    assert_eq!(service["mem_limit"], service["memswap_limit"]);
}

#[test]
fn an_advice_document_matches_the_schema() {
    let unread = vec![UnreadRecord::default()];
    let of = AdviceDocument { unread, ..document(vec![AdviceRecord { vpa: Some(vpa()), ..week() }, fresh(), leaks()]) };
    let printed = serde_json::from_str(&report::document(&of)).unwrap();
    Schema::published("advice.schema.json").describes(&printed, "as it is printed");
}

#[test]
fn an_archive_gives_advice_for_each_configuration() {
    let archive = folder().join("archives/account");
    let called = loadline(&["advise", &archive.display().to_string(), "--json"]).expect(0);
    Schema::published("advice.schema.json").describes(&called.json(), "of an archive");
    let document: AdviceDocument = serde_json::from_str(&called.stdout).unwrap();
    for advice in &document.advice {
        let limit = advice.limit_bytes.unwrap();
        assert_eq!(advice.rows.iter().map(|row| row.bytes).sum::<u64>(), limit, "{advice:#?}");
        assert!(advice.pid.is_none() && !advice.proved && advice.prove.contains(" --prove "), "{advice:#?}");
    }
}

#[test]
fn invalid_advise_command_lines_have_these_messages() {
    let place = TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (empty, pod) = (file("empty.history", ""), file("pod.yaml", "kind: Pod\n"));
    let none = file("vpa.yaml", "kind: VerticalPodAutoscaler\nmetadata: {name: shop}\n");
    let own = std::process::id().to_string();
    // This program's name contains a hash.
    let name = fs::read_to_string("/proc/self/comm").unwrap();
    let calls: [&[&str]; 9] = [
        &["advise"],
        &["advise", "x"],
        &["advise", "0"],
        &["advise", "1", &empty],
        &["advise", &own],
        &["advise", "--history", &empty],
        &["advise", "--history", "no-such.history"],
        &["advise", "1", "--against", &pod],
        &["advise", "1", "--against", &none],
    ];
    let told: Vec<String> = calls
        .iter()
        .map(|words| {
            let called = loadline(words);
            assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{words:?}: {called}");
            called
                .stderr
                .replace(&place.path().display().to_string(), "FOLDER")
                .replace(&own, "OWN")
                .replace(name.trim(), "NAME")
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}
