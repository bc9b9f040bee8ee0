//! The report as one file that is complete in itself: a readable template, a style sheet, a small script, charts drawn
//! beforehand. A policy inside forbids it to load or to run anything else, whatever foreign text it shows.
//!
//! The template is filled by names, without a crate for templates: nearly all of the page is tables and charts made in
//! loops, and `Markup`, which the charts need anyway, escapes by type.

mod find;
mod fleet;
mod history;
mod page;
mod pools;
mod sections;
mod tables;
mod tune;
mod verdicts;

pub use fleet::fleet_page;
pub use history::history_page;
pub use page::post_mortem_page;

use super::chart::{COLOURS, RULES, configurations, definitions};
use super::markup::{Markup, shortened};
use crate::record::{Document, Evidence};
use crate::units::several;
use base64::Engine;

/// The page with a `{{name}}` where something goes in.
const TEMPLATE: &str = include_str!("report.html");
const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// Names at the head of the page.
const NAME_CHARS: usize = 120;
/// Configurations named at the head of the page.
const NAMES_MAX: usize = 6;

/// The report of these trials as an HTML document that refers to nothing outside itself. `evidence` belongs to trials
/// by their index; `missing` says what an archive lacks.
pub fn html(document: &Document, evidence: &[Evidence], missing: &[String]) -> String {
    let sections = sections::Sections { document, evidence, missing };
    let mut out = Markup::new();
    for (index, part) in TEMPLATE.split("{{").enumerate() {
        // Before the first name stands markup alone.
        let (name, rest) = part.split_once("}}").filter(|_| index > 0).unwrap_or(("", part));
        slot(&mut out, name, &sections);
        out.append(&Markup::fixed(rest));
    }
    out.as_str().to_owned()
}

/// What goes in the place of a name of the template; nothing for one that is not known.
fn slot(out: &mut Markup, name: &str, sections: &sections::Sections<'_>) {
    let conditions = &sections.document.conditions;
    match name {
        "policy" => drop(out.text(policy())),
        "title" => drop(out.text(format!("{} - loadline", shortened(&conditions.scenario, NAME_CHARS)))),
        "style" => drop(out.append(&style())),
        "definitions" => drop(out.append(&definitions())),
        "heading" => heading(out, sections.document),
        "verdict" => verdicts::write(out, sections.document),
        "tune" => tune::write(out, sections.document),
        "find" => find::write(out, sections.document),
        "conditions" => sections.conditions(out),
        "comparison" => sections.comparison(out),
        "pareto" => sections.pareto(out),
        "figures" => sections.figures(out),
        "budgets" => sections.budgets(out),
        "doubts" => sections.doubts(out),
        "spectra" => sections.spectra(out),
        "trials" => sections.trials(out),
        "details" => sections.details(out),
        "version" => drop(out.text(&conditions.loadline)),
        "script" => drop(out.append(&Markup::fixed(SCRIPT))),
        _ => {}
    }
}

fn style() -> Markup {
    let mut out = Markup::fixed(COLOURS);
    out.append(&Markup::fixed(RULES)).append(&Markup::fixed(STYLE));
    out
}

/// Our own style and our own script, known by their hashes, and nothing else from anywhere.
fn policy() -> String {
    format!("{}; script-src 'sha256-{}'; img-src data:", policy_of_style(), hash(SCRIPT))
}

/// The same without a script.
fn policy_of_style() -> String {
    let style = hash(style().as_str());
    format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'")
}

fn hash(content: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, content.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(digest)
}

fn heading(out: &mut Markup, document: &Document) {
    let conditions = &document.conditions;
    let names = configurations(document);
    let mut shown: Vec<String> = names.iter().take(NAMES_MAX).map(|name| shortened(name, 40)).collect();
    if names.len() > NAMES_MAX {
        shown.push(format!("{} more", names.len() - NAMES_MAX));
    }
    let trials = several(document.trials.len() as u64, "trial");
    let day = conditions.started.split('T').next().unwrap_or_default();
    out.words("p", &[("class", &"kicker")], format!("Weighed by loadline {}, {day}", conditions.loadline));
    out.words("h1", &[], shortened(&conditions.scenario, NAME_CHARS));
    let what = if shown.is_empty() { trials } else { format!("{trials} of {}", shown.join(", ")) };
    out.words("p", &[("class", &"soft")], what).line();
    let links = [
        ("#tune", "Tuning", document.tune.is_some()),
        ("#find", "Load line", document.find.is_some()),
        ("#conditions", "Conditions", true),
        ("#comparison", "Comparison", !document.comparisons.is_empty()),
        ("#pareto", "Weight against speed", !document.pareto.is_empty()),
        ("#figures", "Figures", document.trials.iter().any(|trial| !trial.figures.is_empty())),
        ("#budgets", "Budgets", !document.budgets.is_empty()),
        ("#findings", "Findings", !document.findings.is_empty()),
        ("#doubts", "Doubts", sections::has_doubts(document)),
        ("#trials", "Trials", true),
        ("#details", "All metrics", document.comparisons.len() > 1),
    ];
    out.element("nav", &[("aria-label", &"Sections")], |out| {
        for (href, words, _) in links.iter().filter(|(.., there)| *there) {
            out.words("a", &[("href", href)], words).text(" ");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_template_is_filled_once() {
        let names: Vec<&str> = TEMPLATE.split("{{").skip(1).filter_map(|part| part.split("}}").next()).collect();
        let known = [
            "policy",
            "title",
            "style",
            "definitions",
            "heading",
            "verdict",
            "tune",
            "find",
            "conditions",
            "comparison",
            "pareto",
            "figures",
            "budgets",
            "doubts",
            "spectra",
            "trials",
            "details",
            "version",
            "script",
        ];
        assert_eq!(names, known);
    }

    #[test]
    fn the_files_of_the_page_cannot_end_their_element() {
        for content in [COLOURS, RULES, STYLE, SCRIPT] {
            assert!(!content.contains("</") && !content.contains("<!--") && !content.contains("@import"));
            assert!(!content.contains("http") || content == SCRIPT, "only the namespace of SVG");
        }
        assert_eq!(SCRIPT.matches("http").count(), 1);
        assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("eval"));
        assert!(SCRIPT.lines().count() < 300);
    }
}
