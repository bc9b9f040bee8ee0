//! A sample fleet: one service for each verdict, one with too little memory, one with too little headroom, and one on a
//! different CPU.

use crate::documents;
use loadline_base::units::{MIB, growth};
use loadline_model::doubt::{Doubt, Merging};
use loadline_model::record::{
    DoubtRecord, FLEET_PLAN_SCHEMA, FLEET_SCHEMA, FleetDocument, LineRecord, LineVerdict, Machine, NodeRecord,
    PlanHeader, ServiceRecord, StandingRecord, to_set,
};
use loadline_model::scenario::PastLine;

/// A service: its verdict, its line, the previous line, and the production limit, in MiB.
fn service(name: &str, verdict: LineVerdict, line: Option<u64>, last: Option<u64>, declared: u64) -> ServiceRecord {
    let limit_bytes = line.map(|line| to_set(line * MIB, Some(line / 2 * MIB), 0.1).0);
    let past = |last: u64| {
        let night =
            |at: u64| PastLine { at: format!("2026-11-{at:02}T01:00:00Z"), limit_bytes: (last + at % 3 * 8) * MIB };
        (10..22).map(night).collect()
    };
    ServiceRecord {
        name: name.to_owned(),
        verdict,
        text: format!("{name} ended this way"),
        line: line.map(|line| LineRecord {
            limit_bytes: line * MIB,
            heap_bytes: Some(line / 2 * MIB),
            held: 5,
            failing_share_max: 0.45,
            ..LineRecord::default()
        }),
        limit_bytes,
        declared_bytes: (declared > 0).then_some(declared * MIB),
        wasted_bytes: limit_bytes.filter(|_| declared > 0).map(|limit| growth(limit, declared * MIB)),
        last_bytes: last.map(|last| last * MIB),
        past: last.map(past).unwrap_or_default(),
        node: if verdict == LineVerdict::Missing { String::new() } else { "n1".to_owned() },
        trials: 14,
        seconds: 600.0,
        ..ServiceRecord::default()
    }
}

/// A fleet after a night.
pub fn fleet() -> FleetDocument {
    let mut services = vec![
        service("account", LineVerdict::Proved, Some(160), Some(160), 512),
        service("basket", LineVerdict::First, Some(96), None, 0),
        service("catalog", LineVerdict::Same, Some(201), Some(200), 1024),
        service("delivery-of-parcels-by-bicycle", LineVerdict::Lower, Some(128), Some(180), 2048),
        service("export", LineVerdict::Higher, Some(300), Some(200), 256),
        service("forecast", LineVerdict::Proved, Some(400), Some(400), 420),
        service("gateway", LineVerdict::NotHeld, None, Some(90), 128),
        service("history", LineVerdict::Unknown, None, Some(90), 128),
        service("invoice", LineVerdict::Failed, None, None, 128),
        service("journal", LineVerdict::Missing, None, Some(90), 128),
        service("keys", LineVerdict::Missing, None, None, 0),
    ];
    (0..).zip(&mut services).for_each(|(index, service)| service.index = index);
    services[2].other_cpu = true;
    let other = Merging::OtherCpu { before: "AMD EPYC 7B13".to_owned(), now: "Intel Xeon 8481C".to_owned() };
    services[2].doubts.push(DoubtRecord::from(Doubt::from(other)));
    let unread = Merging::ResultUnread {
        folder: "results/index-000009".to_owned(),
        why: "has a truncated result.json".to_owned(),
    };
    let wasted = services.iter().filter_map(|of| u64::try_from(of.wasted_bytes?).ok()).sum();
    let plan = PlanHeader {
        schema: FLEET_PLAN_SCHEMA.to_owned(),
        loadline: "0.1.0".to_owned(),
        name: "shop".to_owned(),
        made: "2026-11-23T01:00:00Z".to_owned(),
        entries: services.len() as u32,
        hash: "2c26b46b68ff".repeat(5),
    };
    let machine =
        Machine { cores: 4, memory_bytes: 8 << 30, kernel: "6.1.0".into(), cgroup: "v2".into(), ..Machine::default() };
    let node = |name: &str, model: &str| NodeRecord {
        name: name.to_owned(),
        cpus: 4,
        machine: Machine { cpu_model: Some(model.to_owned()), ..machine.clone() },
        restarts: 0,
    };
    FleetDocument {
        schema: FLEET_SCHEMA.to_owned(),
        plan,
        standing: StandingRecord { answered: 8, missing: vec![9, 10], failed: vec![8], double: vec![3] },
        nodes: vec![node("n1", "AMD EPYC 7B13"), node("n2", "AMD EPYC 7B13"), node("n3", "Intel Xeon 8481C")],
        services,
        wasted_bytes: wasted,
        node_seconds: 9_000.0,
        comparison: None,
        doubts: vec![DoubtRecord::from(Doubt::from(unread))],
    }
}

/// The fleet with every text replaced by `text`.
pub fn hostile(text: &str) -> FleetDocument {
    let mut document = documents::with_every_text(&fleet(), text, &[]);
    // Names in a plan are unique.
    document.services.iter_mut().zip(0..).for_each(|(service, index)| service.name = format!("{text}{index}"));
    document
}
