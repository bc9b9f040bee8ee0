//! Strict parsers for tests, which enforce the requirements of the exports' actual consumers.

use pulldown_cmark::{Event, Options, Parser, Tag};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event as Xml};
use serde_json::Value;
use std::collections::BTreeMap;

// ---- Markdown ----

/// Tags that the exports write.
const OWN_TAGS: [&str; 6] = ["<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>"];

/// Checks a comment with [`check_markdown`], without its hidden lines and final command. The scenario's marker is the
/// first line, and the only kind of HTML comment.
pub(super) fn check_comment(text: &str) {
    assert!(text.chars().count() <= 65_000, "{}", text.chars().count());
    let mut lines = text.lines();
    let [marker, verdict] = [lines.next().unwrap(), lines.next().unwrap()];
    for (line, begin) in [(marker, "<!-- loadline:"), (verdict, "<!-- loadline-verdict: ")] {
        let inner = line.strip_prefix(begin).and_then(|rest| rest.strip_suffix(" -->")).unwrap();
        assert!(inner.chars().all(|c| c.is_ascii_alphanumeric() || "%._-~".contains(c)), "{line}");
        assert!(!inner.contains("--") && inner.len() < 200, "{line}");
    }
    let blocks = Parser::new_ext(text, Options::all()).filter(|event| matches!(event, Event::Start(Tag::CodeBlock(_))));
    assert_eq!(blocks.count(), 1, "{text}");
    let (body, command) = text.rsplit_once("\n```console\n").unwrap();
    assert!(command.starts_with("$ ") && command.ends_with("\n```\n") && command.lines().count() == 2, "{command}");
    let body = body.split_once("-->\n").and_then(|(_, rest)| rest.split_once("-->\n")).unwrap().1;
    assert!(!body.contains("<!--"), "{body}");
    check_markdown(body);
    check_calls_nobody(body);
}

/// Checks that text outside code has no mentions (`@`) or references (`#`).
fn check_calls_nobody(body: &str) {
    let (mut text, mut in_code) = (String::new(), false);
    for event in Parser::new_ext(body, Options::all()) {
        match event {
            Event::Text(piece) if !in_code => text.push_str(&piece),
            Event::InlineHtml(tag) if matches!(&*tag, "<code>" | "</code>") => in_code = &*tag == "<code>",
            Event::Text(_) => {}
            _ => text.push('\n'),
        }
    }
    let after = |mark: char| text.split(mark).skip(1).map(|rest| rest.chars().next());
    assert!(after('@').all(|next| next == Some('\u{200b}')), "{text}");
    assert!(after('#').all(|next| next == Some('\u{200b}')), "{text}");
}

/// Checks that there are no links, images, foreign HTML, headings above level three, truncated table rows, overlong
/// lines, or control characters.
pub(super) fn check_markdown(text: &str) {
    assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.len() < 40_000), "{text}");
    for event in Parser::new_ext(text, Options::all()) {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => check_html(&html),
            Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::CodeBlock(_) | Tag::Strikethrough) => {
                panic!("markup from foreign text: {event:?}")
            }
            Event::Start(Tag::Heading { level, .. }) => assert!(level as usize >= 3, "{level}"),
            Event::InlineMath(_) | Event::DisplayMath(_) | Event::FootnoteReference(_) | Event::Rule => {
                panic!("markup from foreign text: {event:?}")
            }
            _ => {}
        }
    }
    let mut columns = None;
    for line in text.lines() {
        let pipes = line.starts_with('|').then(|| line.matches('|').count());
        assert!(columns.is_none() || pipes.is_none() || columns == pipes, "different number of cells: {line}");
        columns = pipes;
    }
}

fn check_html(html: &str) {
    let mut rest = html.to_owned();
    for tag in OWN_TAGS {
        rest = rest.replace(tag, "");
    }
    assert!(!rest.contains('<'), "HTML from untrusted text: {html}");
}

// ---- JUnit ----

#[derive(Debug, Default)]
pub(super) struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
    pub(super) children: Vec<Element>,
    text: String,
}

impl Element {
    pub(super) fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or_else(|| panic!("<{}> has no {name}", self.name), String::as_str)
    }

    pub(super) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    pub(super) fn cases(&self) -> Vec<&Element> {
        self.children.iter().filter(|child| child.name == "testcase").collect()
    }

    fn count(&self, name: &str) -> usize {
        self.children.iter().map(|child| usize::from(child.name == name) + child.count(name)).sum()
    }
}

/// Parses a report according to the schema of Jenkins' xUnit plugin (junit-10.xsd), which rejects any other report.
pub(super) fn check_junit(text: &str) -> Element {
    let legal =
        |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') || c > '\u{ffff}';
    assert!(text.chars().all(legal), "contains a character that XML 1.0 forbids");
    let root = element_tree(text);
    assert_eq!(root.name, "testsuites");
    for suite in &root.children {
        assert_eq!(suite.name, "testsuite");
        check_counts(suite);
        for case in suite.cases() {
            let classes = ["loadline.tune", "loadline.find", "loadline.budget", "loadline.trial"];
            assert!(classes.contains(&case.attribute("classname")));
            assert!(!case.attribute("name").is_empty());
            let allowed = ["failure", "error", "skipped", "system-out"];
            assert!(case.children.iter().all(|child| allowed.contains(&child.name.as_str())), "{case:?}");
            let verdicts = case.children.iter().filter(|child| child.name != "system-out");
            assert!(verdicts.clone().count() <= 1, "{case:?}");
            verdicts.for_each(|verdict| assert!(verdict.attributes.contains_key("message")));
        }
    }
    check_counts(&root);
    assert!(!root.attributes.contains_key("skipped"), "the root must not have this attribute");
    root
}

fn check_counts(of: &Element) {
    let all = [("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")];
    // The root has no `skipped`.
    for (attribute, name) in all.into_iter().take(if of.name == "testsuites" { 3 } else { 4 }) {
        assert_eq!(of.attribute(attribute), of.count(name).to_string(), "{attribute} of {}", of.attribute("name"));
    }
}

fn element_tree(text: &str) -> Element {
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Element> = vec![Element::default()];
    loop {
        match reader.read_event().unwrap() {
            Xml::Start(start) => open.push(element(&start)),
            Xml::Empty(start) => {
                let empty = element(&start);
                open.last_mut().unwrap().children.push(empty);
            }
            Xml::End(_) => {
                let done = open.pop().unwrap();
                open.last_mut().unwrap().children.push(done);
            }
            Xml::Text(text) => open.last_mut().unwrap().text.push_str(&text),
            Xml::Decl(_) => assert!(open.len() == 1 && open[0].children.is_empty()),
            Xml::GeneralRef(reference) => {
                let known = ["lt", "gt", "amp", "apos", "quot"];
                assert!(known.contains(&reference.as_ref()), "{reference:?}");
            }
            Xml::Eof => break,
            other => panic!("not in a report: {other:?}"),
        }
    }
    assert_eq!(open.len(), 1, "an element is not closed");
    assert_eq!(open[0].children.len(), 1);
    open.remove(0).children.remove(0)
}

fn element(start: &BytesStart<'_>) -> Element {
    let attributes = start.attributes().map(|attribute| {
        let attribute = attribute.unwrap();
        let value = quick_xml::escape::unescape(&attribute.value).unwrap().into_owned();
        (attribute.key.as_ref().to_owned(), value)
    });
    let attributes = attributes.collect();
    Element { name: start.name().as_ref().to_owned(), attributes, ..Element::default() }
}

// ---- JMH ----

/// The exact keys that JMH 1.37 writes for a benchmark.
const JMH_ITEM: &str = "benchmark forks jdkVersion jmhVersion jvm jvmArgs measurementBatchSize measurementIterations \
    measurementTime mode params primaryMetric secondaryMetrics threads vmName vmVersion warmupBatchSize \
    warmupIterations warmupTime";
/// The keys that it writes for a metric.
const JMH_SCORE: &str = "rawData score scoreConfidence scoreError scorePercentiles scoreUnit";

fn keys(of: &Value) -> String {
    let keys: std::collections::BTreeSet<&str> = of.as_object().unwrap().keys().map(String::as_str).collect();
    keys.into_iter().collect::<Vec<_>>().join(" ")
}

/// Parses the items. A viewer must be able to split their names and plot their numbers.
pub(super) fn check_jmh(text: &str) -> Vec<Value> {
    let items: Vec<Value> = serde_json::from_str(text).unwrap();
    for item in &items {
        assert_eq!(keys(item), JMH_ITEM);
        let text = |key: &str| item[key].as_str().unwrap();
        let number = |key: &str| item[key].as_u64().unwrap();
        // At least a class and a method. Viewers split the name with its parameters at spaces and `=`.
        let parts: Vec<&str> = text("benchmark").split('.').collect();
        assert!(parts.len() == 3 && parts.iter().all(|part| !part.is_empty()), "{parts:?}");
        let splits = |text: &str| text.is_empty() || text.contains([' ', '=', '\n']);
        let params = item["params"].as_object().unwrap();
        assert!(!splits(text("benchmark")) && params.values().all(|value| !splits(value.as_str().unwrap())), "{item}");
        assert!(["thrpt", "avgt", "sample", "ss"].contains(&text("mode")) && text("jmhVersion") == "1.37");
        assert!(number("threads") >= 1 && number("warmupBatchSize") == 1 && number("measurementBatchSize") == 1);
        assert!(number("warmupIterations") <= 1 && number("measurementIterations") == 1);
        let texts = ["jvm", "jdkVersion", "vmName", "warmupTime", "measurementTime"];
        assert!(texts.into_iter().all(|key| text(key).len() < 20_000));
        assert!(item["jvmArgs"].as_array().unwrap().iter().all(Value::is_string));
        assert!(text("vmVersion").starts_with(text("jdkVersion")));
        let primary = &item["primaryMetric"];
        assert_eq!(primary["rawData"].as_array().unwrap().len() as u64, number("forks"));
        check_score(primary);
        item["secondaryMetrics"].as_object().unwrap().values().for_each(check_score);
    }
    items
}

fn check_score(of: &Value) {
    assert_eq!(keys(of), JMH_SCORE);
    let number = |value: &Value| value.is_number() || ["NaN", "+INF", "-INF"].iter().any(|text| value == text);
    let confidence = of["scoreConfidence"].as_array().unwrap();
    assert!(of["score"].is_number() && number(&of["scoreError"]));
    assert!(confidence.len() == 2 && confidence.iter().all(number));
    let percentiles = of["scorePercentiles"].as_object().unwrap();
    let names = ["0.0", "50.0", "90.0", "95.0", "99.0", "99.9", "99.99", "99.999", "99.9999", "100.0"];
    assert!(percentiles.len() == names.len() && names.iter().all(|name| percentiles.get(*name).is_some_and(number)));
    assert!(of["scoreUnit"].as_str().is_some_and(|unit| !unit.is_empty()));
    let raw = of["rawData"].as_array().unwrap();
    assert!(raw.iter().all(|of| matches!(of.as_array().map(Vec::as_slice), Some([Value::Number(_)]))));
}

// ---- Bencher ----

/// Parses the benchmarks according to Bencher's schema (`bmf.json`), with names of valid length and without duplicate
/// keys.
pub(super) fn check_bencher(text: &str) -> BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>> {
    let number = serde_json::json!({"type": "number"});
    let measure = serde_json::json!({
        "type": "object",
        "properties": {"value": number, "lower_value": number, "upper_value": number},
        "required": ["value"],
        "additionalProperties": false,
    });
    let slug = serde_json::json!({"pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "maxLength": 64});
    let measures = serde_json::json!({"type": "object", "propertyNames": slug, "additionalProperties": measure});
    let name = serde_json::json!({"minLength": 1, "maxLength": 1024});
    let schema = serde_json::json!({"type": "object", "propertyNames": name, "additionalProperties": measures});
    check_schema(&schema, text);
    let benchmarks: BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>> = serde_json::from_str(text).unwrap();
    let measures = || benchmarks.values().flat_map(BTreeMap::values);
    assert_eq!(text.matches("\"value\":").count(), measures().count(), "a key occurs twice");
    for of in measures() {
        let [low, high] = ["lower_value", "upper_value"].map(|end| of.get(end));
        assert_eq!(low.is_some(), high.is_some());
        assert!(low.is_none_or(|low| *low <= of["value"]) && high.is_none_or(|high| *high >= of["value"]));
    }
    benchmarks
}

fn check_schema(schema: &Value, text: &str) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let instance: Value = serde_json::from_str(text).unwrap();
    let errors: Vec<String> = validator.iter_errors(&instance).map(|error| error.to_string()).collect();
    assert_eq!(errors, [] as [&str; 0]);
}

// ---- GitHub ----

/// Checks that all commands are known to GitHub, and that no text in them ends a command or begins another.
pub(super) fn check_annotations(text: &str) {
    for line in text.lines() {
        let (head, message) = line.strip_prefix("::").unwrap().split_once("::").unwrap();
        let kind = head.split_once(" title=").unwrap().0;
        assert!(["error", "warning", "notice"].contains(&kind), "{line}");
        assert!(!message.contains(char::is_control), "{line:?}");
        let escapes = message.split('%').skip(1).map(|rest| rest.get(..2));
        assert!(escapes.into_iter().all(|escape| ["25", "0D", "0A"].map(Some).contains(&escape)), "{line}");
    }
}

// ---- CSV ----

/// Parses the rows, each as long as the header. No cell contains control characters or looks like a spreadsheet
/// formula.
pub(super) fn check_csv(text: &str) -> Vec<Vec<String>> {
    let reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let rows: Vec<Vec<String>> =
        reader.into_records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
    assert_eq!((text.matches("\r\n").count(), text.matches('\n').count()), (rows.len(), rows.len()));
    for cell in rows.iter().flatten() {
        assert!(!cell.contains(char::is_control), "{cell:?}");
        assert!(!cell.starts_with(['=', '+', '-', '@']) || cell.parse::<f64>().is_ok(), "{cell}");
    }
    rows
}

// ---- OpenMetrics ----

/// Parses the samples. Each family is contiguous, declared once, and without duplicate series. The text ends with `#
/// EOF`.
pub(super) fn check_openmetrics(text: &str) -> Vec<(String, f64)> {
    let body = text.strip_suffix("# EOF\n").unwrap();
    assert!(!body.contains("# EOF\n") && !body.contains('\r'));
    let (mut family, mut families, mut samples) = (String::new(), Vec::new(), Vec::<(String, f64)>::new());
    let mut counts = false;
    for line in body.split_terminator('\n') {
        if let Some(comment) = line.strip_prefix("# ") {
            let (kind, rest) = comment.split_once(' ').unwrap();
            let (name, rest) = rest.split_once(' ').unwrap();
            match kind {
                "TYPE" => {
                    assert!(["gauge", "counter"].contains(&rest), "{rest}");
                    counts = rest == "counter";
                    assert!(!families.contains(&name.to_owned()), "{name} is declared twice");
                    family = name.to_owned();
                    families.push(family.clone());
                }
                "UNIT" => assert!(name.ends_with(&format!("_{rest}")), "{name} in {rest}"),
                "HELP" => assert!(!rest.is_empty() && !rest.contains('\\')),
                _ => panic!("{line}"),
            }
            assert_eq!(name, family);
            continue;
        }
        let (series, value) = (line.rfind(' ').map(|at| (&line[..at], &line[at + 1..]))).unwrap();
        let total = if counts { "_total" } else { "" };
        let labels = series.strip_prefix(&format!("{family}{total}")).unwrap();
        assert!(labels.is_empty() || labels.starts_with('{'), "{line}");
        labels.strip_prefix('{').into_iter().for_each(check_labels);
        assert!(samples.iter().all(|(other, _)| other != series), "{series} twice");
        samples.push((series.to_owned(), value.parse().unwrap()));
    }
    samples
}

/// Checks `name="value",…}` at the end of the text.
fn check_labels(text: &str) {
    let mut rest = text;
    loop {
        let (name, after) = rest.split_once("=\"").unwrap();
        assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name}");
        let mut escaped = false;
        let end = after.find(|c: char| {
            let ends = c == '"' && !escaped;
            assert!(!escaped || ['\\', '"', 'n'].contains(&c), "\\{c}");
            escaped = c == '\\' && !escaped;
            ends
        });
        rest = &after[end.unwrap() + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return assert_eq!(rest, "}"),
        }
    }
}

// ---- Any text at all ----

#[cfg(test)]
mod laws {
    use super::super::*;
    use super::*;
    use crate::record::Document;
    use crate::{find_sample, fleet_sample, history_sample, tune_sample};
    use proptest::prelude::*;

    /// Parses every export of a result.
    fn check(document: &Document) {
        check_markdown(&markdown(document));
        check_markdown(&github_summary(document));
        check_comment(&comment(document, Unchanged::Told));
        let root = check_junit(&junit(document));
        let cases: usize = root.children.iter().map(|suite| suite.cases().len()).sum();
        let answers = usize::from(document.find.is_some()) + usize::from(document.tune.is_some());
        assert_eq!(cases, answers + document.budgets.len() + document.trials.len());
        let measured = |name: &&str| document.metrics.iter().any(|of| of.configuration == *name);
        let measured = document.configurations().into_iter().filter(measured).count();
        assert_eq!(check_jmh(&jmh(document)).len(), measured);
        assert_eq!(check_bencher(&bencher(document)).len(), measured);
        assert!(!check_openmetrics(&openmetrics(document)).is_empty());
        check_annotations(&github_annotations(document));
        assert!(check_csv(&csv(document)).len() > document.trials.len());
        assert_eq!(check_csv(&comparisons_csv(document)).len(), 1 + document.comparisons.len());
    }

    #[test]
    fn every_export_stays_well_formed_with_hostile_text() {
        check(&samples::hostile());
        for text in samples::hostile_texts() {
            check(&samples::named(&text));
            check(&find_sample::hostile(&text));
            check(&tune_sample::hostile(&text));
            let (fleet, history) = (fleet_sample::hostile(&text), history_sample::hostile(&text));
            assert_eq!(check_csv(&fleet_csv(&fleet)).len(), 12);
            assert_eq!(check_csv(&history_csv(&history)).len(), 7);
            check_openmetrics(&fleet_openmetrics(&fleet));
            check_markdown(&fleet_markdown(&fleet));
            check_markdown(&history_markdown(&history));
            let watched = samples::watched(&text);
            check_openmetrics(&super::super::scrape(&watched, &[], Exposition::OpenMetrics));
            let sent: Value = serde_json::from_str(&otlp(&watched, &[], 1)).unwrap();
            assert_eq!(sent["resourceMetrics"].as_array().unwrap().len(), 2);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn every_export_stays_well_formed_with_any_names(
            text in "(?s)(\\PC|.|[|`\\\\<>&\"'*_#@$~\\[\\]()!:/=,;%{}\n\r\t -]){0,60}",
        ) {
            check(&samples::named(&text));
        }
    }
}
