//! Paths and names shared by the engines' scripts and manifests, sanitized for their context.

use super::plan::Plan;
use crate::units::steers;

/// The maximum length of a name: a Kubernetes label has 63 characters, including prefixes and suffixes.
const SLUG_MAX: usize = 30;

/// The settings of the jobs that run a plan.
#[derive(Debug, Clone, Copy)]
pub struct JobSettings<'a> {
    /// Path of the plan.
    pub plan: &'a str,
    /// Path of the results directory.
    pub results: &'a str,
    /// Maximum number of concurrent nodes; `None` for the engine's choice.
    pub nodes: Option<u32>,
}

/// Lowercase letters, digits, and dashes, as in job names and labels: `loadline-my-shop`.
pub(super) fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let plain: String = name.chars().map(plain).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let short: String = words.join("-").chars().take(SLUG_MAX).collect();
    match short.trim_end_matches('-') {
        "" => "loadline".to_owned(),
        short => format!("loadline-{short}"),
    }
}

/// Text for a comment: a single line without placeholders.
pub(super) fn comment(text: &str) -> String {
    text.chars().map(|c| if steers(c) || c == '{' || c == '}' { ' ' } else { c }).collect()
}

/// The duration of the longest entry in whole minutes, from one minute to a year.
pub(super) fn minutes_max(plan: &Plan) -> u32 {
    plan.entries.iter().map(|entry| entry.minutes.ceil() as u32).max().unwrap_or(0).clamp(1, 525_600)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::{PlanEntry, Task, Why};
    use crate::scenario::parse;
    use std::path::Path;

    pub(in crate::fleet) fn plan(name: &str, entries: u32) -> Plan {
        let text = "name: x\nsubject: {command: [x], port: 80}\nload: [{steady: {closed: {requests: 1}, get: /}}]\n";
        let scenario = parse(text, Path::new(""), &[]).unwrap();
        let entry = |index: u32| PlanEntry {
            index,
            name: format!("service-{index}"),
            task: Task::Search { why: Why::First },
            minutes: 14.5,
            declared_bytes: (index == 0).then_some(3 << 30),
            last: None,
            question: "q".to_owned(),
            scenario: scenario.clone(),
        };
        let mut plan = Plan::new(name, "2026-11-22T00:00:00Z".to_owned(), (0..entries).map(entry).collect()).unwrap();
        // The hash depends on the version and the scenario's fields; the engines' text must not.
        plan.header.hash = "0123456789abcdef".repeat(4);
        plan.header.loadline = "0.1.0".to_owned();
        plan
    }

    #[test]
    fn names_are_converted_for_schedulers() {
        let check = |name: &str, expect: &str| assert_eq!(slug(name), expect, "{name}");
        check("shop", "loadline-shop");
        check("My Shop_2.0", "loadline-my-shop-2-0");
        check("--a--b--", "loadline-a-b");
        check("ü", "loadline");
        check("", "loadline");
        check(&"x".repeat(99), &format!("loadline-{}", "x".repeat(30)));
        check(&format!("{} y", "x".repeat(29)), &format!("loadline-{}", "x".repeat(29)));
        assert_eq!(comment("a\nb\r\u{0}c{D}"), "a b  c D ");
    }
}
