//! A page as a self-contained HTML file: a template, a style sheet, prerendered charts, and a small script if charts
//! can be zoomed. Its content security policy forbids loading or running anything else, whatever untrusted text it
//! shows.
//!
//! The template is filled without a template crate. Most of the page is tables and charts generated in loops, and
//! `Markup`, which charts need anyway, escapes by type.

mod page;
mod tables;

use super::chart::{COLOURS, RULES, definitions};
use super::markup::Markup;
use super::page::{Depth, Page};
use super::screen::Glyphs;
use super::summary::{Sources, page_of, page_of_account, page_of_history, summarize_fleet, summarize_post_mortem};
use crate::record::{AccountDocument, Document, Evidence, FleetDocument, HistoryDocument, PostMortem};
use crate::units::shortened;
use base64::Engine;

/// The page, with `{{name}}` placeholders.
const TEMPLATE: &str = include_str!("report.html");
const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
const TITLE_CHARS: usize = 160;
/// Everything that a report can show.
const WHOLE: Depth = Depth { each: true, details: true, whole: true, ..Depth::NONE };

/// The report on these trials as a self-contained HTML document. `evidence` refers to trials by index; `missing` names
/// the missing parts of an archive.
pub fn html(document: &Document, evidence: &[Evidence], missing: &[String]) -> String {
    let page = page_of(Sources { document, evidence, missing, archive: None }, WHOLE);
    written(&page, &document.conditions.loadline, true)
}

/// A running JVM's account and explanation as a self-contained HTML document without a script.
pub fn account_page(document: &AccountDocument) -> String {
    written(&page_of_account(document, &[], WHOLE), &document.loadline, false)
}

/// A post-mortem with the chart of the last few hours as a self-contained HTML document without a script.
pub fn post_mortem_page(of: &PostMortem) -> String {
    written(&summarize_post_mortem(of), &of.loadline, false)
}

/// A fleet as a self-contained HTML document without a script.
pub fn fleet_page(document: &FleetDocument) -> String {
    written(&summarize_fleet(document, Glyphs::Blocks, WHOLE), env!("CARGO_PKG_VERSION"), false)
}

/// A history as a self-contained HTML document without a script.
pub fn history_page(document: &HistoryDocument) -> String {
    written(&page_of_history(document, WHOLE), &document.loadline, false)
}

/// The page with Loadline's version in its footer, and the script if charts can be zoomed.
pub(super) fn written(page: &Page, version: &str, zooms: bool) -> String {
    let mut out = Markup::new();
    for (index, part) in TEMPLATE.split("{{").enumerate() {
        // The text before the first placeholder is plain markup.
        let (name, rest) = part.split_once("}}").filter(|_| index > 0).unwrap_or(("", part));
        match name {
            "policy" => drop(out.text(policy(zooms))),
            "title" => drop(out.text(shortened(&page.title, TITLE_CHARS))),
            "style" => drop(out.append(&style())),
            "definitions" => drop(out.append(&definitions())),
            "links" => page::links(&mut out, page),
            "sections" => page::write(&mut out, page),
            "version" => drop(out.text(version)),
            "script" if zooms => {
                out.element("script", &[], |out| {
                    out.append(&Markup::fixed(SCRIPT));
                });
            }
            _ => {}
        }
        out.append(&Markup::fixed(rest));
    }
    out.as_str().to_owned()
}

fn style() -> Markup {
    let mut out = Markup::fixed(COLOURS);
    out.append(&Markup::fixed(RULES)).append(&Markup::fixed(STYLE));
    out
}

/// Allows only the page's own style and, if charts can be zoomed, its own script, both by hash.
fn policy(zooms: bool) -> String {
    let style = hash(style().as_str());
    let script = if zooms { format!("; script-src 'sha256-{}'; img-src data:", hash(SCRIPT)) } else { String::new() };
    format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'{script}")
}

fn hash(content: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, content.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::TuneOutcome;
    use crate::{find_sample, fleet_sample, history_sample, tune_sample};

    #[test]
    fn every_template_placeholder_is_filled() {
        let names: Vec<&str> = TEMPLATE.split("{{").skip(1).filter_map(|part| part.split("}}").next()).collect();
        let known = ["policy", "title", "style", "definitions", "title", "links", "sections", "version", "script"];
        assert_eq!(names, known);
    }

    #[test]
    fn embedded_page_files_cannot_close_their_element() {
        for content in [COLOURS, RULES, STYLE, SCRIPT] {
            assert!(!content.contains("</") && !content.contains("<!--") && !content.contains("@import"));
            assert!(!content.contains("http") || content == SCRIPT, "only the script has a URL, the SVG namespace");
        }
        assert_eq!(SCRIPT.matches("http").count(), 1);
        assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("eval"));
        assert!(SCRIPT.lines().count() < 300);
    }

    #[test]
    fn hostile_text_is_escaped_on_every_page() {
        let evil = "</title></pre><script>alert(1)</script>\u{202e}\u{1b}[31m\"'`";
        for (page, scripts) in [
            (html(&find_sample::hostile(evil), &[], &[]), 1),
            (html(&tune_sample::hostile(evil), &[], &[]), 1),
            (fleet_page(&fleet_sample::hostile(evil)), 0),
            (history_page(&history_sample::hostile(evil)), 0),
        ] {
            assert_eq!(page.matches("<script").count(), scripts);
            assert!(!page.contains(['\u{1b}', '\u{202e}']) && page.contains("&lt;script&gt;"));
            assert_eq!(page.matches("</pre>").count(), page.matches("<pre").count());
        }
    }

    #[test]
    fn a_search_page_has_the_answer_a_chart_and_settings() {
        let document = find_sample::found();
        let text = html(&document, &[], &[]);
        let limit = document.find.as_ref().unwrap().limit_bytes.unwrap() >> 20;
        for piece in ["<section id=\"find\">", "load line", "5 of 5 starts passed", "role=\"img\"", "buildpack formula"]
        {
            assert!(text.contains(piece), "{piece}");
        }
        for piece in [format!("--memory={limit}m"), format!("memory: {limit}Mi"), format!("MemoryMax={limit}M")] {
            assert!(text.contains(&piece), "{piece}");
        }
        for (outcome, document) in find_sample::endings() {
            let text = html(&document, &[], &[]);
            assert!(text.contains("role=\"img\""), "{outcome:?}");
            let set = document.find.as_ref().is_some_and(|find| find.limit_bytes.is_some());
            assert_eq!(text.contains("docker"), set, "{outcome:?}");
        }
    }

    #[test]
    fn a_tuning_page_has_the_answer_charts_and_settings() {
        let text = html(&tune_sample::proved(), &[], &[]);
        for piece in ["<section id=\"tune\">", "412.3 MiB of 1413.0 MiB RSS", "every remedy", "search path"] {
            assert!(text.contains(piece), "{piece}");
        }
        for piece in ["MALLOC_ARENA_MAX=1", "change request", "JDK-8380060"] {
            assert!(text.contains(piece), "{piece}");
        }
        assert!(text.matches("role=\"img\"").count() >= 2);
        for (outcome, document) in tune_sample::endings() {
            let text = html(&document, &[], &[]);
            let has_answer = outcome == TuneOutcome::Proved;
            assert_eq!(text.contains("docker"), has_answer, "{outcome:?}");
            assert!(text.contains("gc.shenandoah"), "every remedy is there: {outcome:?}");
        }
    }

    #[test]
    fn a_fleet_page_has_every_service_in_every_order() {
        let page = fleet_page(&fleet_sample::fleet());
        assert_eq!(page.matches("<th scope=\"row\" class=\"brief\"><div>catalog</div></th>").count(), 5);
        assert_eq!((page.matches("type=\"radio\"").count(), page.matches(" checked=").count()), (5, 1));
        assert!(page.contains("<h1>shop: 11 services</h1>") && page.contains("3 services could save 3.0 GiB in total"));
        assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
        let page = fleet_page(&FleetDocument { services: Vec::new(), ..fleet_sample::fleet() });
        assert!(page.contains("<h1>shop, by nodes</h1>") && !page.contains("type=\"radio\""));
    }

    #[test]
    fn a_history_page_has_changes_a_chart_and_every_point() {
        let page = history_page(&history_sample::history());
        assert!(page.contains("<h1>history of tiny-http, serial</h1>"), "{page}");
        assert!(page.contains("+7.8 MiB") && page.contains("metaspace +7.5 MiB") && page.contains("<svg"));
        assert!(page.contains(">rss.loaded, MiB</text>"), "a chart shows its unit: {page}");
        assert!(page.contains("9c01d2e") && page.contains("JDK: 17.0.15 | 21.0.3"));
        assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
        // Even a page with thousands of points is small.
        let page = history_page(&history_sample::long(1_000));
        assert!(page.len() < 400_000, "{}", page.len());
    }
}
