//! The document of a fleet: services, nodes, and possible savings.

use super::plan::Plan;
use super::service::{Around, doubts_of, record, service};
use super::standing::{Standing, is_block};
use crate::record::{
    Document, DoubtRecord, EntryResult, FLEET_SCHEMA, FleetDocument, NodeRecord, PlanEntry, ServiceRecord,
};
use crate::units::unix_s;
use loadline_base::order::Order as _;
use std::collections::BTreeMap;

/// The document of a plan's results at this time, in seconds since the Unix epoch; `comparison` is the result of its
/// blocks, if any.
pub fn document(plan: &Plan, standing: &Standing, comparison: Option<Document>, now_unix_s: i64) -> FleetDocument {
    let around = Around { plan: &plan.header, now_unix_s };
    let result = |entry: &PlanEntry| standing.counts(entry.index).map(|found| &found.result);
    let (blocks, services): (Vec<&PlanEntry>, Vec<&PlanEntry>) =
        plan.entries.iter().partition(|entry| is_block(&entry.task));
    let services: Vec<ServiceRecord> =
        services.into_iter().map(|entry| service(entry, result(entry), around)).collect();
    let mut doubts: Vec<DoubtRecord> = standing.left_out().into_iter().map(record).collect();
    for (entry, result) in blocks.into_iter().filter_map(|entry| Some((entry, result(entry)?))) {
        let own = result.doubts.iter().cloned().chain(doubts_of(entry, result, around).into_iter().map(record));
        for doubt in own {
            if !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        }
    }
    let to_win = services.iter().filter_map(|service| u64::try_from(service.wasted_bytes?).ok());
    let (nodes, node_seconds) = nodes(standing);
    FleetDocument {
        schema: FLEET_SCHEMA.to_owned(),
        plan: plan.header.clone(),
        standing: standing.record(),
        nodes,
        wasted_bytes: to_win.fold(0, u64::saturating_add),
        services,
        node_seconds,
        comparison: comparison.map(Box::new),
        doubts,
    }
}

/// The nodes as they were before their first entry, and their total working time in seconds. If a node's machine
/// changes, it counts as another node.
fn nodes(standing: &Standing) -> (Vec<NodeRecord>, f64) {
    let mut all: BTreeMap<[&str; 4], Vec<&EntryResult>> = BTreeMap::new();
    for result in standing.all() {
        let node = &result.node;
        let machine = &node.machine;
        let model = machine.cpu_model.as_deref().unwrap_or_default();
        let of = [node.name.as_str(), model, &machine.kernel, &machine.cgroup];
        all.entry(of).or_default().push(result);
    }
    let mut seconds = 0.0;
    let mut node = |mut results: Vec<&EntryResult>| {
        results.order_by_key(|result| (unix_s(&result.started), result.index));
        let began = |result: &EntryResult| unix_s(&result.started);
        let spans = results.iter().filter_map(|result| {
            let from = began(result)? as f64;
            Some((from, from + result.seconds))
        });
        let (from, to) = spans.fold((f64::MAX, f64::MIN), |(from, to), (one, other)| (from.min(one), to.max(other)));
        seconds += (to - from).max(0.0);
        let restarts = results.iter().fold(0u32, |sum, result| sum.saturating_add(result.node.restarts));
        results.first().map(|first| NodeRecord { restarts, ..first.node.clone() })
    };
    let nodes = all.into_values().filter_map(&mut node).collect();
    (nodes, seconds)
}
