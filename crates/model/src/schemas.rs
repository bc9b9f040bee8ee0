//! The published schemas: `docs/*.schema.json` hold what the types give, and a test compares them.
//! After a change of a type `LOADLINE_SCHEMAS=write cargo test -p loadline-model schemas` writes them again.
//!
//! A description is the doc comment of a field, its unit the one in the field's name. A field of a document is required
//! unless it is left out where there is nothing to say, or came later (`serde(default)`), so that older documents still
//! fit.

use crate::record::{
    AccountDocument, AccountsDocument, AdviceDocument, ChangesDocument, ChargeDocument, Document, EntryResult,
    FleetDocument, HistoryDocument, LoadDocument, OomDocument, PlanEntry, PlanHeader, PostMortem, WatchDocument,
};
use crate::scenario::{TrialPlan, schemas_of_files};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Set to `write`, it writes the schemas instead of comparing them.
const WRITE: &str = "LOADLINE_SCHEMAS";
/// Words in the name of a number that can only be 0 or more.
const NEVER_NEGATIVE: [&str; 16] = [
    "s", "ms", "us", "seconds", "share", "cores", "average", "p50", "p75", "p90", "p99", "p999", "p9999", "min", "max",
    "mean",
];
const RESULTS: &str = "What `--json` prints: the conditions, every trial with its marks and phases, and what the trials \
    say together. Sizes of marks are integers in bytes; times and rates are numbers with the unit in the name, and \
    metrics name their unit; what was not measured is null, never 0. Fields may be added in later versions and are never \
    renamed, so a reader skips what it does not know.";
const ACCOUNT: &str = "What `loadline account PID --json` prints: who holds the resident memory of a JVM. Sizes are \
    integers in bytes; times are numbers with the unit in the name; what was not measured is null, never 0. Fields may \
    be added in later versions and are never renamed, so a reader skips what it does not know.";
const ACCOUNTS: &str = "What `loadline account --all --json` prints: the accounts of all JVMs of a machine. Fields may be \
    added in later versions and are never renamed, so a reader skips what it does not know.";
const CHANGES: &str = "What `loadline account PID --against FILE --json` prints: two accounts of a JVM and what changed \
    between them. Fields may be added in later versions and are never renamed, so a reader skips what it does not know.";
const CHARGE: &str = "What `loadline account --cgroup PATH --json` prints: what a container is charged for, by owner. Fields may \
    be added in later versions and are never renamed, so a reader skips what it does not know.";
const ADVICE: &str = "What `loadline advise --json` prints: the sizes to set for JVMs that run, with the arithmetic. Sizes are \
    integers in bytes; what is not known is null, never 0. Fields may be added in later versions and are never renamed, so \
    a reader skips what it does not know.";
const LOAD: &str = "What `loadline load --json` prints. Fields may be added; none is renamed or removed.";

const WATCH: &str = "What `loadline watch --once --json` prints: every JVM that is watched, with what it holds and what \
    it does over time. Fields may be added; none is renamed or removed.";
const FLEET_RESULT: &str = "What `loadline merge --json` prints: every service of a plan with its line beside what it has, the nodes \
    that worked, and the comparison whose blocks they made. Sizes are integers in bytes; what is not known is null, never \
    0. Fields may be added; none is renamed or removed.";
const HISTORY: &str = "What `loadline history --json` prints: chosen metrics over archives, point by point, with what \
    changed when. Sizes of metrics are in bytes, and metrics name their unit; what was not measured is null, never 0. \
    Fields may be added; none is renamed or removed.";
const POST_MORTEM: &str = "What `loadline watch --post-mortem --json` prints: how a JVM ended, what it held, what grew. \
    Fields may be added; none is renamed or removed.";
const OOM: &str = "What `loadline post-mortem --json` prints: who was killed by which limit, and who held what then. Fields \
    may be added in later versions and are never renamed, so a reader skips what it does not know.";
const PLAN: &str = "One trial as `series` plans it: all that it needs but the contents of its files, of which \
    `configuration.inputs` is the hash. Relative paths start from the folder in which the plan lies. Fields may be added; \
    none is renamed or removed.";

const FLEET_PLAN: &str = "One line of a plan that `loadline plan` makes: its header in the first one, an entry in each of \
    the others. Relative paths start from the folder in which the plan lies. Fields may be added; none is renamed or \
    removed.";

const FLEET: &str = "Services whose load lines are searched night after night: the file that `loadline plan` takes.";
const FLEET_ENTRY: &str = "The answer to one entry of a plan: what `loadline work` writes to `index-N/result.json`. Sizes \
    are integers in bytes; what was not measured is null, never 0. Fields may be added; none is renamed or removed.";
const SCENARIO: &str = "What to run: the file `NAME.loadline.yaml` that `loadline run` takes.";

/// A line of a plan.
#[derive(JsonSchema, serde::Serialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes, and is never made")]
enum PlanLine {
    /// The first line.
    Header(PlanHeader),
    /// Every other line.
    Entry(Box<PlanEntry>),
}

/// The purpose of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// For readers of a document.
    Printed,
    /// For writers of a file, and their editors.
    Written,
}

/// The schema of a document that is printed.
fn printed<T: JsonSchema>(title: &str, description: &str) -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    schema["title"] = json!(title);
    schema["description"] = json!(description);
    if schema["$defs"].get("DoubtRecord").is_some() {
        doubts_by_kind(&mut schema["$defs"]);
    }
    readable(&mut schema, Use::Printed);
    schema
}

/// The schema of a file that is written by hand.
fn written(schema: schemars::Schema, title: &str, description: &str) -> Value {
    let mut schema = schema.to_value();
    schema["title"] = json!(title);
    schema["description"] = json!(description);
    readable(&mut schema, Use::Written);
    schema
}

/// Doubts say their kind. A reader may meet one that it does not know, so each kind says only what belongs to it.
fn doubts_by_kind(definitions: &mut Value) {
    let mut kinds = Vec::new();
    collect_kinds(&definitions["DoubtRecord"], definitions, &mut kinds);
    let case = |mut kind: Map<String, Value>| {
        let word = kind["properties"]["kind"]["const"].clone();
        for key in ["type", "additionalProperties"] {
            kind.remove(key);
        }
        if let Some(properties) = kind.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove("kind");
        }
        if let Some(required) = kind.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name != "kind");
        }
        json!({"if": {"properties": {"kind": {"const": word}}}, "then": kind})
    };
    let record = &definitions["DoubtRecord"];
    let mut properties = record["properties"].clone();
    properties["kind"] = json!({"type": "string", "description": "Which reason."});
    let cases: Vec<Value> = kinds.into_iter().map(case).collect();
    let doubt = json!({
        "description": "A reason to distrust a number. Its kind says which further fields it has; a reader that does not \
            know the kind has `text` and `next`.",
        "type": "object",
        "properties": properties,
        "required": ["kind", "text", "next"],
        "allOf": cases,
    });
    definitions["DoubtRecord"] = doubt;
    if let Some(definitions) = definitions.as_object_mut() {
        let groups = ["Doubt", "Comparing", "Merging", "Place"];
        definitions.retain(|name, _| !groups.contains(&name.as_str()));
    }
}

/// The alternatives of a schema that have a `kind`, through references and nested alternatives.
fn collect_kinds(schema: &Value, definitions: &Value, found: &mut Vec<Map<String, Value>>) {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return collect_kinds(&definitions[name], definitions, found);
    }
    if let (true, Some(kind)) = (schema["properties"]["kind"]["const"].is_string(), schema.as_object()) {
        return found.push(kind.clone());
    }
    for key in ["oneOf", "anyOf"] {
        schema[key].as_array().into_iter().flatten().for_each(|one| collect_kinds(one, definitions, found));
    }
}

/// Makes a generated schema one for readers of JSON: no Rust in descriptions, units told, what came later not required,
/// null only where it is printed.
fn readable(schema: &mut Value, of: Use) {
    let fields = match schema {
        Value::Array(all) => return all.iter_mut().for_each(|one| readable(one, of)),
        Value::Object(fields) => fields,
        _ => return,
    };
    match of {
        Use::Printed => require(fields),
        Use::Written => properties_of(fields).for_each(|(_, property)| without_null(property)),
    }
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = plain(text);
    }
    // The width of a number is Rust's.
    if fields.get("format").is_some_and(|format| format != "date-time") {
        fields.remove("format");
    }
    if of == Use::Printed || fields.get("default").is_some_and(|usual| usual.is_null() || *usual == json!([])) {
        fields.remove("default");
    }
    for (key, value) in fields.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    readable(property, of);
                    if of == Use::Printed {
                        measure(name, property);
                    }
                }
            }
            ("$defs", Value::Object(definitions)) => definitions.values_mut().for_each(|one| readable(one, of)),
            ("const" | "enum" | "default" | "examples", _) => {}
            (_, value) => readable(value, of),
        }
    }
}

fn properties_of(fields: &mut Map<String, Value>) -> impl Iterator<Item = (&String, &mut Value)> {
    fields.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
}

/// Removes fields with a default of their own from `required`; a type all of whose fields have one is merely read
/// leniently. A field that may be left out is never printed as null.
fn require(fields: &mut Map<String, Value>) {
    let printed = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    properties_of(fields).filter(|(name, _)| !printed.contains(&json!(name))).for_each(|(_, one)| without_null(one));
    let has_default = |property: &Value| property.get("default").is_some();
    let properties = fields.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) else { return };
    let default = |name: &Value| name.as_str().and_then(|name| properties.get(name)).is_some_and(has_default);
    if !required.iter().all(default) {
        required.retain(|name| !default(name));
    }
}

/// Takes null from what a property may be.
fn without_null(property: &mut Value) {
    let Some(fields) = property.as_object_mut() else { return };
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|one| one != "null");
        if let [one] = types.as_slice() {
            fields["type"] = one.clone();
        }
    }
    if let Some(Value::Array(ways)) = fields.get_mut("anyOf") {
        ways.retain(|way| *way != json!({"type": "null"}));
        if let [Value::Object(way)] = ways.as_slice() {
            let way = way.clone();
            fields.remove("anyOf");
            way.into_iter().for_each(|(key, value)| _ = fields.entry(key).or_insert(value));
        }
    }
}

/// A doc comment as a reader of JSON needs it: one line, no links to Rust, the word that JSON has for `None`.
fn plain(comment: &str) -> String {
    comment.replace('\n', " ").replace("[`", "`").replace("`]", "`").replace("`None`", "null").replace("`null`", "null")
}

/// Adds to a number's description the unit that its name carries, and a minimum of 0 where it is never negative.
fn measure(name: &str, property: &mut Value) {
    let is = |kind: &str| {
        property["type"] == kind || property["type"].as_array().is_some_and(|all| all.contains(&json!(kind)))
    };
    let (number, integer) = (is("number"), is("integer"));
    if !number && !integer {
        return;
    }
    let words: Vec<&str> = name.split('_').collect();
    if number && property.get("minimum").is_none() && words.iter().any(|word| NEVER_NEGATIVE.contains(word)) {
        property["minimum"] = json!(0);
    }
    let units = [("bytes", "bytes", "bytes"), ("ms", "ms", "ms"), ("us", "µs", "µs"), ("s", "s", "econds")];
    let unit = units.into_iter().find(|(word, ..)| words.contains(word) && !name.ends_with("_per_s"));
    let text = property["description"].as_str().unwrap_or_default();
    if let Some((_, unit, _)) = unit.filter(|(.., told)| !text.contains(told)) {
        let clause = ["; ", ". ", ": "].into_iter().filter_map(|end| text.find(end)).min();
        let end = clause.unwrap_or(text.trim_end_matches('.').len());
        property["description"] = json!(format!("{}, {unit}{}", &text[..end], &text[end..]));
    }
}

#[test]
fn the_published_schemas_are_those_of_the_types() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let [scenario, fleet] = schemas_of_files();
    let schemas = [
        ("results", printed::<Document>("Result document of Loadline", RESULTS)),
        ("account", printed::<AccountDocument>("Account of a running JVM", ACCOUNT)),
        ("accounts", printed::<AccountsDocument>("Accounts of all JVMs of a machine", ACCOUNTS)),
        ("account-changes", printed::<ChangesDocument>("What changed between two accounts", CHANGES)),
        ("advice", printed::<AdviceDocument>("Advice on the sizes of JVMs", ADVICE)),
        ("oom", printed::<OomDocument>("Kills for lack of memory", OOM)),
        ("charge", printed::<ChargeDocument>("Charge of a container", CHARGE)),
        ("load", printed::<LoadDocument>("Load of Loadline", LOAD)),
        ("fleet-result", printed::<FleetDocument>("Table of a fleet", FLEET_RESULT)),
        ("history", printed::<HistoryDocument>("History of Loadline", HISTORY)),
        ("post-mortem", printed::<PostMortem>("Post-mortem of Loadline", POST_MORTEM)),
        ("watch", printed::<WatchDocument>("Watched by Loadline", WATCH)),
        ("fleet-entry", printed::<EntryResult>("Answer to an entry of a plan", FLEET_ENTRY)),
        ("plan", printed::<TrialPlan>("Plan of a trial", PLAN)),
        ("fleet-plan", printed::<PlanLine>("Plan of a fleet", FLEET_PLAN)),
        ("fleet", written(fleet, "Fleet of Loadline", FLEET)),
        ("scenario", written(scenario, "Scenario of Loadline", SCENARIO)),
    ];
    for (name, schema) in schemas {
        let path = folder.join(format!("{name}.schema.json"));
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        if std::env::var(WRITE).is_ok_and(|asked| asked == "write") {
            std::fs::write(&path, &text).unwrap();
        }
        let same = std::fs::read_to_string(&path).unwrap() == text;
        assert!(
            same,
            "docs/{name}.schema.json is not what the types give: {WRITE}=write cargo test -p loadline-model schemas"
        );
    }
}

#[test]
fn a_number_tells_its_unit_in_its_first_clause() {
    let told = |name: &str, description: &str| {
        let mut property = json!({"type": ["number", "null"], "description": description});
        measure(name, &mut property);
        property["description"].as_str().unwrap().to_owned()
    };
    assert_eq!(told("peak_bytes", "The largest; null on v1."), "The largest, bytes; null on v1.");
    assert_eq!(told("took_ms", "How long it took."), "How long it took, ms.");
    assert_eq!(told("at_s", "Seconds since then."), "Seconds since then.");
    assert_eq!(told("rate_per_s", "Of the phase."), "Of the phase.");
}
