//! Writes a plan of 300 services and all results with their archives to the directory in LOADLINE_FLEET.
//! `bench/fleet.sh` runs it, and measures the program's processing.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on should stop")]

#[path = "../tests/series/fleets.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the rest")]
mod fleets;
#[path = "../tests/series/made_up.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod made_up;

use fleets::{MADE, NODES, SEARCH_S, SERVICES};
use loadline::record::EntryOutcome;
use loadline::result;
use loadline::series::search::Search;
use loadline::series::{self, Archived};
use loadline::units::unix_s;
use made_up::{LIMIT_MAX, MadeUpTrials, Silence, conditions};
use std::path::PathBuf;

fn main() {
    let place = std::env::var_os("LOADLINE_FLEET").map(PathBuf::from).unwrap();
    let plan = fleets::plan(SERVICES);
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("plan.jsonl"), plan.text().unwrap()).unwrap();
    for entry in &plan.entries {
        let folder = place.join(format!("results/index-{:06}", entry.index));
        std::fs::create_dir_all(&folder).unwrap();
        let (archive, scenario) = (folder.join("search"), &entry.scenario);
        let mut store = Archived::create(&archive, &conditions(scenario), scenario, Silence).unwrap();
        let search = Search::new(scenario, LIMIT_MAX).unwrap();
        let mut made_up =
            MadeUpTrials { seed: u64::from(entry.index), ..MadeUpTrials::of(fleets::server(entry.index)) };
        series::run(&search, &mut made_up, &mut store, &mut Vec::new()).unwrap();
        store.close(false).0.unwrap();
        let trials = result::read(&archive).unwrap().trials;
        let began = unix_s(MADE).unwrap() as f64 + f64::from(entry.index / NODES) * SEARCH_S;
        let mut of = fleets::result(&plan, entry.index, EntryOutcome::Answered, began, entry.index % NODES, &trials);
        of.archives.push("search".to_owned());
        std::fs::write(folder.join("result.json"), serde_json::to_vec_pretty(&of).unwrap()).unwrap();
    }
}
