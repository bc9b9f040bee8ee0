//! Two archives of a server, before and after a change: the halves of a recorded comparison whose second configuration
//! has 12 MiB more in mapped chunks. Its six trials do not show that RSS grew, so this adds 16 MiB of malloc.

use serde_json::Value;
use std::path::Path;

/// Bytes added under load to the half with the change.
const ADDED: u64 = 16 << 20;

/// Writes the trials of a configuration in `tests/cli/archives/compared`, renamed to `app`, with this scenario name.
pub(crate) fn half(of: &str, scenario: &str, to: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("tests/cli/archives/compared/archive.jsonl")).unwrap();
    let mut out = String::new();
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if let Some(conditions) = line.get_mut("conditions") {
            conditions["scenario"] = scenario.into();
            conditions["command"] = "loadline run app.loadline.yaml --trials 5".into();
            let asked = &mut line["scenario"];
            asked["name"] = scenario.into();
            asked["configurations"].as_array_mut().unwrap().retain(|known| known["name"] == of);
            asked["configurations"][0]["name"] = "app".into();
            asked["compare"]["baseline"] = Value::Null;
        } else if line.get("configuration").is_some_and(|name| name == of) {
            line["configuration"] = "app".into();
            if of == "stout" {
                let marks = line["marks"].as_array_mut().unwrap();
                marks.iter_mut().filter(|mark| mark["name"] == "loaded").for_each(add);
            }
        } else if line.get("configuration").is_some() {
            continue;
        }
        out.push_str(&format!("{line}\n"));
    }
    loadline_test_support::write(to.join("archive.jsonl"), out);
}

/// Adds the bytes to RSS and to the owner, so that the account still adds up.
fn add(mark: &mut Value) {
    let to = |of: &mut Value| *of = (of.as_u64().unwrap() + ADDED).into();
    to(&mut mark["rss_bytes"]);
    let owners = mark["account"]["owners"].as_array_mut().unwrap();
    let owner = owners.iter_mut().find(|owner| owner["name"] == "malloc.live").unwrap();
    to(&mut owner["rss_bytes"]);
}
