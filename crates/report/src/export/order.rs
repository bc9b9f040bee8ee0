//! Checks that every page, for every document and printer, has the same order: answer, memory, findings, memory over
//! time, load, conditions, doubts.

use super::markdown::printed;
use super::samples;
use crate::doubt::Doubt;
use crate::html::written;
use crate::page::{Depth, Page};
use crate::record::{
    AccountDocument, AccountsDocument, ChangesDocument, ComparisonRecord, Document, EndKind, Evidence, FleetDocument,
    Mark, PostMortem, Sample, WatchOwner,
};
use crate::screen::Glyphs;
use crate::summary::{
    Sources, page_of, page_of_history, summarize, summarize_account, summarize_accounts, summarize_changes,
    summarize_fleet, summarize_post_mortem, summarize_watch,
};
use crate::{find_sample, fleet_sample, history_sample, render, tune_sample};

/// Lowercase words, digits, and dots; HTML without its tags.
fn words_of(text: &str, is_html: bool) -> String {
    let mut words = String::new();
    let mut in_tag = false;
    for c in text.chars() {
        in_tag = is_html && (in_tag || c == '<') && c != '>';
        let is_word = !in_tag && (c.is_alphanumeric() || c == '.');
        words.push_str(&if is_word { c.to_lowercase().to_string() } else { " ".to_owned() });
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks that these words first occur in this order.
fn check_text(name: &str, text: &str, expected: &[&str]) {
    let place = |words: &&str| text.find(words).unwrap_or_else(|| panic!("{name} lacks {words}: {text}"));
    let places: Vec<usize> = expected.iter().map(place).collect();
    assert!(places.is_sorted(), "{name}: {expected:?} are at {places:?}: {text}");
}

/// `told` has the words in terminal output and Markdown, and `drawn` those in HTML.
fn check(name: &str, build: impl Fn(Depth) -> Page, told: &[&str], drawn: &[&str]) {
    let page = build(Depth { each: true, details: true, ..Depth::NONE });
    assert!(page.sections.is_sorted_by_key(|of| of.topic), "{name}: {page:?}");
    check_text(&format!("{name} on a terminal"), &words_of(&render(&page), false), told);
    check_text(&format!("{name} in Markdown"), &words_of(&printed(&page, |_| false), false), told);
    let page = build(Depth { each: true, details: true, whole: true, ..Depth::NONE });
    assert!(page.sections.is_sorted_by_key(|of| of.topic), "{name}: {page:?}");
    let text = written(&page, "0", false);
    // The links at the top contain the names of all sections.
    let body = text.split_once("</nav>").or(text.split_once("<body")).unwrap().1;
    check_text(&format!("{name} in HTML"), &words_of(body, true), drawn);
}

fn with_all(document: Document) -> Document {
    let doubts = vec![Doubt::SharedCpus.into()];
    Document { findings: samples::named("a finding").findings, doubts, ..document }
}

fn weighed() -> AccountDocument {
    let findings = samples::named("a finding").findings;
    AccountDocument { findings, doubts: vec![Doubt::SharedCpus.into()], ..samples::weighed() }
}

fn trial() -> (Document, Evidence) {
    let mut document = with_all(samples::compared());
    document.trials.truncate(1);
    (document.comparisons, document.pareto, document.budgets) = Default::default();
    let marks = ["start", "loaded"].map(|name| Mark { name: name.to_owned(), ..weighed().mark });
    document.trials[0].marks = marks.into();
    let timeline = vec![Sample { at_s: 1.0, rss_bytes: 50 << 20, ..Sample::default() }];
    (document, Evidence { timeline, ..Evidence::default() })
}

/// `compared`, plus an owner behind a difference.
fn compared() -> Document {
    let mut document = with_all(samples::compared());
    let metric = "metaspace.loaded".to_owned();
    let owner = ComparisonRecord { primary: false, metric, ..document.comparisons[0].clone() };
    document.comparisons.push(owner);
    document
}

fn check_result(name: &str, (document, evidence): &(Document, Evidence), told: &[&str], drawn: &[&str]) {
    let missing = ["a file is cut".to_owned()];
    let of = Sources { document, evidence: std::slice::from_ref(evidence), missing: &missing, archive: None };
    let [told, drawn] = [told, drawn].map(|words| [words, &["doubts", "a file is cut"]].concat());
    check(name, |depth| page_of(of, depth), &told, &drawn);
}

#[test]
fn results_are_ordered_from_answer_to_doubts() {
    let run = "loadline run tiny http";
    check_result(
        "a trial",
        &trial(),
        &["serial rss", "what stands out", "account rss mib", "load times in ms", run],
        &["serial rss", "timeline of serial", "account of serial", "what stands out", "load times in ms", run],
    );
    let words = ["better in rate.steady", "account at loaded", "what stands out", "serial trial 1"];
    let words = [&words[..], &["details g1 vs. serial", run]].concat();
    check_result("a comparison", &(compared(), Evidence::default()), &words, &words);
    let words = [
        "the load line the smallest limit that meets the target is 95.1 mib",
        "account mib and of \
        rss",
        "what stands out",
        "repeat loadline find tiny http",
    ];
    check_result("a search", &(with_all(find_sample::found()), Evidence::default()), &words, &words);
    let words = ["saves 412.3 mib of 1413.0 mib rss", "by owner mib", "what stands out", "repeat loadline tune"];
    check_result("a tuning", &(with_all(tune_sample::proved()), Evidence::default()), &words, &words);
}

#[test]
fn brief_results_have_no_tables() {
    let printed = |document: &Document, depth| render(&summarize(document, &[], depth));
    let brief = Depth { brief: true, ..Depth::NONE };
    let (document, _) = trial();
    let text = printed(&document, brief);
    assert!(text.contains("what stands out") && text.lines().count() < 12, "{text}");
    let line = printed(&document, Depth { line: true, ..Depth::NONE });
    assert!(line.starts_with("  serial: RSS") && line.lines().count() == 1, "{line}");
    let text = printed(&with_all(find_sample::found()), brief);
    assert!(
        text.contains("Set the limit to 105.0 MiB") && !text.contains("docker run") && !text.contains("trials, sizes"),
        "{text}"
    );
}

#[test]
fn fleets_and_histories_are_ordered_from_answer_to_doubts() {
    let fleet = FleetDocument { comparison: Some(Box::new(compared())), ..fleet_sample::fleet() };
    let rest = ["account at loaded", "what stands out", "plan made 2026", "doubts"];
    check(
        "a fleet",
        |depth| summarize_fleet(&fleet, Glyphs::Blocks, depth),
        &[&["3 services could save 3.0 gib", "load lines mib"], &rest[..]].concat(),
        &[&["3 services could save 3.0 gib", "by wasted"], &rest[..]].concat(),
    );
    let words = ["7.8 mib", "point weighed trials", "6 commits by measurement date", "night 7 has no completed trials"];
    check("a history", |depth| page_of_history(&history_sample::history(), depth), &words, &words);
}

#[test]
fn watched_and_ended_jvms_are_ordered_from_answer_to_doubts() {
    let mut watched = samples::watched("shop");
    (watched.hidden, watched.jvms[0].unreadable) = (1, vec!["its maps".to_owned()]);
    watched.jvms.truncate(1);
    let words = ["shop pid 7", "from jvm counters", "loadline doctor 7", "1 process could not be read"];
    check("a watch", |_| summarize_watch(&watched), &words, &words);
    let owners = vec![WatchOwner { name: "direct".to_owned(), bytes: 100 << 20 }];
    let ended = PostMortem { end: EndKind::Ended, owners, spoilt: 2, ..PostMortem::default() };
    let words = ["the jvm was not near its limit", "memory at the end", "2 records that are damaged"];
    check("a life that ended", |_| summarize_post_mortem(&ended), &words, &words);

    let words = ["rss is", "what stands out", "account mib", "conditions", "doubts"];
    check("an account", |_| summarize_account(&weighed(), &[]), &words, &words);
    let all = AccountsDocument { accounts: vec![weighed()], ..AccountsDocument::default() };
    let words = ["pss cgroup charge and limit and reclaimable memory", "pss by owner mib", "conditions", "doubts"];
    check("all accounts", |_| summarize_accounts(&all), &words, &words);
    let changes = ChangesDocument { seconds: 60, then: weighed(), now: weighed(), ..ChangesDocument::default() };
    let words = ["since the earlier account", "account rss mib", "conditions", "doubts"];
    check("two accounts", |_| summarize_changes(&changes, &[]), &words, &words);
}
