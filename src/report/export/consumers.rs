//! What the readers of the exports demand, as strict readers of our own for the tests.

use pulldown_cmark::{Event, Options, Parser, Tag};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event as Xml};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

// ---- Markdown ----

/// The tags that the exports themselves write.
const OWN_TAGS: [&str; 6] = ["<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>"];

/// A comment: [`check_markdown`], after the hidden lines and without the command that it ends with. The scenario's own
/// marker is the first line, and no other comment of HTML is there.
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

/// What stands outside of code mentions nobody and refers to nothing.
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

/// No link, no image, no foreign HTML, no heading above the third level, no table row that is cut short.
pub(super) fn check_markdown(text: &str) {
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
        assert!(columns.is_none() || pipes.is_none() || columns == pipes, "another number of cells: {line}");
        columns = pipes;
    }
}

fn check_html(html: &str) {
    let mut rest = html.to_owned();
    for tag in OWN_TAGS {
        rest = rest.replace(tag, "");
    }
    assert!(!rest.contains('<'), "foreign HTML: {html}");
}

// ---- JUnit ----

/// An element of a report.
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

/// The report, as the schema of Jenkins' xUnit plugin (junit-10.xsd) demands, which refuses a report that breaks it.
pub(super) fn check_junit(text: &str) -> Element {
    let legal =
        |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') || c > '\u{ffff}';
    assert!(text.chars().all(legal), "a character that XML 1.0 forbids");
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
    assert!(!root.attributes.contains_key("skipped"), "no attribute of the root");
    root
}

fn check_counts(of: &Element) {
    for (attribute, name) in
        [("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")]
    {
        if attribute == "skipped" && of.name == "testsuites" {
            continue;
        }
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

/// What JMH 1.37 writes for a benchmark, and nothing else.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct JmhItem {
    pub(super) jmh_version: String,
    pub(super) benchmark: String,
    pub(super) mode: String,
    pub(super) threads: u64,
    pub(super) forks: usize,
    pub(super) jvm: String,
    pub(super) jvm_args: Vec<String>,
    pub(super) jdk_version: String,
    pub(super) vm_name: String,
    pub(super) vm_version: String,
    pub(super) warmup_iterations: u32,
    pub(super) warmup_time: String,
    pub(super) warmup_batch_size: u32,
    pub(super) measurement_iterations: u32,
    pub(super) measurement_time: String,
    pub(super) measurement_batch_size: u32,
    pub(super) params: BTreeMap<String, String>,
    pub(super) primary_metric: JmhScore,
    pub(super) secondary_metrics: BTreeMap<String, JmhScore>,
}

/// What it writes for a metric.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct JmhScore {
    pub(super) score: Value,
    pub(super) score_error: Value,
    pub(super) score_confidence: [Value; 2],
    pub(super) score_percentiles: BTreeMap<String, Value>,
    pub(super) score_unit: String,
    pub(super) raw_data: Vec<Vec<Value>>,
}

/// The items, of which a viewer can split the names and draw the numbers.
pub(super) fn check_jmh(text: &str) -> Vec<JmhItem> {
    let items: Vec<JmhItem> = serde_json::from_str(text).unwrap();
    for item in &items {
        // A class and a method at least; viewers take the name with its parameters apart at spaces and `=`.
        assert_eq!(item.benchmark.split('.').count(), 3, "{}", item.benchmark);
        assert!(item.benchmark.split('.').all(|part| !part.is_empty()));
        let splits = |text: &str| text.is_empty() || text.contains([' ', '=', '\n']);
        assert!(!splits(&item.benchmark) && item.params.values().all(|value| !splits(value)), "{item:?}");
        assert!(["thrpt", "avgt", "sample", "ss"].contains(&item.mode.as_str()));
        assert_eq!(item.jmh_version, "1.37");
        assert!(item.threads >= 1 && item.warmup_batch_size == 1 && item.measurement_batch_size == 1);
        assert!(item.warmup_iterations <= 1 && item.measurement_iterations == 1);
        let texts = [&item.jvm, &item.jdk_version, &item.vm_name, &item.warmup_time, &item.measurement_time];
        assert!(texts.iter().all(|text| text.len() < 20_000) && item.jvm_args.len() < 100);
        assert!(item.vm_version.starts_with(&item.jdk_version));
        assert_eq!(item.primary_metric.raw_data.len(), item.forks);
        check_score(&item.primary_metric);
        item.secondary_metrics.values().for_each(check_score);
    }
    items
}

fn check_score(of: &JmhScore) {
    let number = |value: &Value| value.is_number() || ["NaN", "+INF", "-INF"].iter().any(|text| value == text);
    assert!(of.score.is_number() && number(&of.score_error) && of.score_confidence.iter().all(number));
    let keys = ["0.0", "50.0", "90.0", "95.0", "99.0", "99.9", "99.99", "99.999", "99.9999", "100.0"];
    assert!(keys.iter().all(|key| of.score_percentiles.get(*key).is_some_and(number)));
    assert_eq!(of.score_percentiles.len(), keys.len());
    assert!(!of.score_unit.is_empty() && of.raw_data.iter().flatten().all(Value::is_number));
}

// ---- Bencher ----

/// What the schema of Bencher's format (`bmf.json`) has of a measure, and nothing else.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BencherMeasure {
    pub(super) value: f64,
    pub(super) lower_value: Option<f64>,
    pub(super) upper_value: Option<f64>,
}

/// The benchmarks, whose names are as long as Bencher allows, and of whose keys none is there twice.
pub(super) fn check_bencher(text: &str) -> BTreeMap<String, BTreeMap<String, BencherMeasure>> {
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
    let benchmarks: BTreeMap<String, BTreeMap<String, BencherMeasure>> = serde_json::from_str(text).unwrap();
    let measures = || benchmarks.values().flat_map(BTreeMap::values);
    assert_eq!(text.matches("\"value\":").count(), measures().count(), "a key is there twice");
    for of in measures() {
        assert_eq!(of.lower_value.is_some(), of.upper_value.is_some());
        assert!(of.lower_value.is_none_or(|low| low <= of.value));
        assert!(of.upper_value.is_none_or(|high| high >= of.value));
    }
    benchmarks
}

fn check_schema(schema: &Value, text: &str) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let instance: Value = serde_json::from_str(text).unwrap();
    let errors: Vec<String> = validator.iter_errors(&instance).map(|error| error.to_string()).collect();
    assert_eq!(errors, [] as [&str; 0]);
}

// ---- github-action-benchmark ----

/// What github-action-benchmark reads of a number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Charted {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) value: f64,
    pub(super) range: Option<String>,
    pub(super) extra: Option<String>,
}

/// The numbers, each under a name of its own.
pub(super) fn check_benchmark_action(text: &str) -> Vec<Charted> {
    let string = serde_json::json!({"type": "string", "minLength": 1});
    let schema = serde_json::json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "name": string, "unit": string, "value": {"type": "number"}, "range": string, "extra": string,
            },
            "required": ["name", "unit", "value"],
            "additionalProperties": false,
        },
    });
    check_schema(&schema, text);
    let items: Vec<Charted> = serde_json::from_str(text).unwrap();
    let names: std::collections::BTreeSet<&str> = items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names.len(), items.len(), "a name is there twice");
    items
}

// ---- OpenMetrics ----

/// The samples with their values. Families stand together, are declared once, hold no series twice, and end with
/// `# EOF`.
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

/// `name="value",…}` with nothing behind it.
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
    use super::super::{BenchmarkActionFile, Unchanged, bencher, benchmark_action, comment, openmetrics, samples};
    use super::super::{comparisons_csv, csv, github_annotations, github_summary, gnuplot, jmh, junit, markdown};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn every_export_reads_back_whatever_the_names_are(
            text in "(?s)(\\PC|.|[|`\\\\<>&\"'*_#@$~\\[\\]()!:/=,;%{}\n\r\t -]){0,60}",
        ) {
            let document = samples::named(&text);
            check_markdown(&markdown(&document));
            check_markdown(&github_summary(&document));
            let cases = check_junit(&junit(&document));
            prop_assert_eq!(cases.children[0].cases().len(), document.budgets.len());
            prop_assert!(!check_jmh(&jmh(&document)).is_empty());
            check_comment(&comment(&document, Unchanged::Told));
            prop_assert_eq!(check_bencher(&bencher(&document)).len(), 1);
            for file in [BenchmarkActionFile::Smaller, BenchmarkActionFile::Bigger] {
                check_benchmark_action(&benchmark_action(&document, file));
            }
            prop_assert!(!check_openmetrics(&openmetrics(&document)).is_empty());
            for line in github_annotations(&document).lines() {
                prop_assert!(line.starts_with("::error title=") || line.starts_with("::warning title="));
            }
            for table in [csv(&document), comparisons_csv(&document)] {
                let rows = ::csv::ReaderBuilder::new().from_reader(table.as_bytes()).into_records().map(Result::unwrap);
                prop_assert_eq!(rows.count() + 1, table.matches("\r\n").count());
            }
            let files = gnuplot(&document, &[samples::evidence(0, &text)]);
            prop_assert!(files.iter().all(|(_, text)| !text.contains(|c: char| c.is_control() && c != '\n')));
        }
    }
}
