//! The published schemas, `docs/*.schema.json`, are generated from types, and a test compares them. After changing a
//! type, `LOADLINE_SCHEMAS=write cargo test -p loadline-model schemas` regenerates them.
//!
//! A description is a field's doc comment; the unit is in the field's name. A document's field is required unless it is
//! omitted when empty, or was added later (`serde(default)`), so that older documents stay valid.

use crate::record::{
    AccountDocument, AccountsDocument, AdviceDocument, ChangesDocument, ChargeDocument, Document, EntryResult,
    FleetDocument, HistoryDocument, LoadDocument, OomDocument, PlanEntry, PlanHeader, PostMortem, WatchDocument,
};
use crate::scenario::{TrialPlan, schemas_of_files};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// If set to `write`, writes the schemas instead of comparing them.
const WRITE: &str = "LOADLINE_SCHEMAS";
/// Words in the names of nonnegative numbers.
const NEVER_NEGATIVE: [&str; 16] = [
    "s", "ms", "us", "seconds", "share", "cores", "average", "p50", "p75", "p90", "p99", "p999", "p9999", "min", "max",
    "mean",
];
const RESULTS: &str = "Output of `--json`: the conditions, every trial with its marks and phases, and the conclusions from all \
    trials together. Sizes at marks are integers in bytes; times and rates have the unit in their name, and metrics \
    name their unit. A value that was not measured is null, never 0. Later versions may add fields but \
    never rename any, so readers should ignore unknown fields.";
const ACCOUNT: &str = "Output of `loadline account PID --json`: the resident memory of a JVM by owner. Sizes are \
    integers in bytes; times have the unit in their name. A value that was not measured is null, never 0. Later \
    versions may add fields but never rename any, so readers should ignore unknown fields.";
const ACCOUNTS: &str = "Output of `loadline account --all --json`: the accounts of all JVMs on a machine. Later \
    versions may add fields but never rename any, so readers should ignore unknown fields.";
const CHANGES: &str = "Output of `loadline account PID --against FILE --json`: two accounts of a JVM and the \
    changes between them. Later versions may add fields but never rename any, so readers should ignore unknown \
    fields.";
const CHARGE: &str = "Output of `loadline account --cgroup PATH --json`: the memory charged to a container, by \
    owner. Later versions may add fields but never rename any, so readers should ignore unknown fields.";
const ADVICE: &str = "Output of `loadline advise --json`: recommended sizes for running JVMs, with the calculation. \
    Sizes are integers in bytes. A value that is not known is null, never 0. Later versions may add fields but \
    never rename any, so readers should ignore unknown fields.";
const LOAD: &str = "Output of `loadline load --json`. Later versions may add fields but never rename or remove any.";
const WATCH: &str = "Output of `loadline watch --once --json`: every watched JVM, with its memory use and trend. \
    Later versions may add fields but never rename or remove any.";
const FLEET_RESULT: &str = "Output of `loadline merge --json`: every service of a plan with its load line and its \
    current limit, the nodes, and the comparison whose blocks they ran. Sizes are integers in bytes. A value that \
    is not known is null, never 0. Later versions may add fields but never rename or remove any.";
const HISTORY: &str = "Output of `loadline history --json`: selected metrics over archives, point by point, and \
    when each changed. Sizes are in bytes, and metrics name their unit. A value that was not measured is null, \
    never 0. Later versions may add fields but never rename or remove any.";
const POST_MORTEM: &str = "Output of `loadline watch --post-mortem --json`: how a JVM exited, its last memory use, \
    and what grew. Later versions may add fields but never rename or remove any.";
const OOM: &str = "Output of `loadline post-mortem --json`: the killed processes, the limits that they hit, and the \
    memory in use at the time. Later versions may add fields but never rename any, so readers should ignore unknown \
    fields.";
const PLAN: &str = "One planned trial: everything that it needs except the contents of its files, whose hash is \
    `configuration.inputs`. Paths are relative to the plan's directory. Later versions may add fields but \
    never rename or remove any.";
const FLEET_PLAN: &str = "One line of the output of `loadline plan`: the first line is the header, and each further \
    line an entry. Paths are relative to the plan's directory. Later versions may add fields but never \
    rename or remove any.";
const FLEET: &str = "Services whose load lines are searched for every night: the file that `loadline plan` reads.";
const FLEET_ENTRY: &str = "Result of one entry of a plan, which `loadline work` writes to `index-N/result.json`. \
    Sizes are integers in bytes. A value that was not measured is null, never 0. Later versions may add fields but \
    never rename or remove any.";
const SCENARIO: &str = "A scenario: the file `NAME.loadline.yaml` that `loadline run` reads.";

/// A line of a plan.
#[derive(JsonSchema, serde::Serialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes a schema, and is never constructed")]
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

/// The schema of a printed document.
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

/// The schema of a user-written file.
fn written(schema: schemars::Schema, title: &str, description: &str) -> Value {
    let mut schema = schema.to_value();
    schema["title"] = json!(title);
    schema["description"] = json!(description);
    readable(&mut schema, Use::Written);
    schema
}

/// Splits doubts by kind. Readers may encounter unknown kinds, so each kind constrains only itself.
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
    properties["kind"] = json!({"type": "string", "description": "The kind of doubt."});
    let cases: Vec<Value> = kinds.into_iter().map(case).collect();
    let doubt = json!({
        "description": "A reason to distrust a number. Further fields depend on `kind`; readers that do not know the \
            kind can use `text` and `next`.",
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

/// Adapts a generated schema for JSON readers: no Rust in descriptions, explicit units, later fields optional, null
/// only where it is printed.
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
    // A number's format is its Rust type.
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

/// Removes fields with their own default from `required`, unless all fields have one, which only means lenient parsing.
/// An optional field is never printed as null.
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

/// Removes null from a property's types.
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

/// A doc comment adapted to JSON: one line, no links to Rust, `null` instead of `None`.
fn plain(comment: &str) -> String {
    comment.replace('\n', " ").replace("[`", "`").replace("`]", "`").replace("`None`", "null").replace("`null`", "null")
}

/// Adds the unit in a number's name to its description, and a minimum of 0 if it is never negative.
fn measure(name: &str, property: &mut Value) {
    let is = |kind: &str| {
        property["type"] == kind || property["type"].as_array().is_some_and(|all| all.contains(&json!(kind)))
    };
    if is("number") && property.get("minimum").is_none() && name.split('_').any(|word| NEVER_NEGATIVE.contains(&word)) {
        property["minimum"] = json!(0);
    }
}

#[test]
fn the_published_schemas_match_the_types() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let [scenario, fleet] = schemas_of_files();
    let schemas = [
        ("results", printed::<Document>("Loadline result", RESULTS)),
        ("account", printed::<AccountDocument>("Account of a running JVM", ACCOUNT)),
        ("accounts", printed::<AccountsDocument>("Accounts of all JVMs on a machine", ACCOUNTS)),
        ("account-changes", printed::<ChangesDocument>("Changes between two accounts", CHANGES)),
        ("advice", printed::<AdviceDocument>("Advice on the sizes of JVMs", ADVICE)),
        ("oom", printed::<OomDocument>("OOM kills", OOM)),
        ("charge", printed::<ChargeDocument>("Memory charged to a container", CHARGE)),
        ("load", printed::<LoadDocument>("Loadline load test", LOAD)),
        ("fleet-result", printed::<FleetDocument>("Table of a fleet", FLEET_RESULT)),
        ("history", printed::<HistoryDocument>("Loadline history", HISTORY)),
        ("post-mortem", printed::<PostMortem>("Loadline post-mortem", POST_MORTEM)),
        ("watch", printed::<WatchDocument>("JVMs watched by Loadline", WATCH)),
        ("fleet-entry", printed::<EntryResult>("Result of an entry of a plan", FLEET_ENTRY)),
        ("plan", printed::<TrialPlan>("Plan of a trial", PLAN)),
        ("fleet-plan", printed::<PlanLine>("Plan of a fleet", FLEET_PLAN)),
        ("fleet", written(fleet, "Loadline fleet", FLEET)),
        ("scenario", written(scenario, "Loadline scenario", SCENARIO)),
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
            "docs/{name}.schema.json does not match the types: run {WRITE}=write cargo test -p loadline-model schemas"
        );
    }
}
