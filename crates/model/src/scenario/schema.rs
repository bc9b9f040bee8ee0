//! Schema rules for scenario and fleet files beyond what types express: alternative spellings of a value, and dependent
//! keys. They are part of `docs/scenario.schema.json` and `docs/fleet.schema.json`, for editors.

use super::{Gc, MarkPoint};
use loadline_base::written_as;
use schemars::Schema;
use serde_json::{Value, json};

/// Request methods as keys.
pub(super) const METHODS: [&str; 7] = ["get", "head", "put", "post", "patch", "delete", "options"];
/// Load models as keys.
const MODELS: [&str; 6] = ["closed", "constant", "poisson", "ramp", "staircase", "schedule"];

// ---- Values that are written in several ways ----

/// A collector by its word, or by another common name.
pub(super) struct Collector;
/// A JDK.
pub(super) struct Jdk;
/// A JDK, or all that are found.
pub(super) struct JdkOrFound;
/// CPUs.
pub(super) struct Cpus;
/// The relative step of a search.
pub(super) struct Step;
/// The headroom added to the line.
pub(super) struct Headroom;
/// A standard mark.
pub(super) struct MarkWord;
/// The name of any mark.
pub(super) struct MarkName;
/// Whether a phase ends in a mark.
pub(super) struct MarkOfPhase;

written_as! {
    Collector, "gc", |of| {
        "description": "A collector.",
        "anyOf": [
            {"enum": Gc::ALL.map(Gc::word)},
            {"type": "string", "pattern": "^([Ss]erial|[Gg]1|[Pp]arallel|[Zz]|[Ss]henandoah|[Ee]psilon)(GC|gc)?$"}
        ]
    };
    Jdk, "jdk", |of| {
        "description": "A JDK, by release, such as 17, or by the directory that contains `bin/java`.",
        "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^([0-9]+|.*/.*)$"}]
    };
    JdkOrFound, "jdk_or_found", |of| {"anyOf": [{"const": "found"}, (of.subschema_for::<Jdk>())]};
    Cpus, "cpus", |of| {
        "description": "A list such as `0-2,5`; `all` for no pinning; `apart` for separate CPUs for subject and load \
             if there are at least two.",
        "default": "apart",
        "anyOf": [
            {"enum": ["apart", "all"]},
            {"type": "integer", "minimum": 0, "maximum": 4095},
            {"type": "string", "pattern": "^ *[0-9]+ *(- *[0-9]+ *)?(, *[0-9]+ *(- *[0-9]+ *)?)*$"}
        ]
    };
    Step, "step", |of| {
        "description": "A share from 0.1% to 50%: `2%` or `0.02`.",
        "anyOf": [
            {"type": "number", "minimum": 0.001, "maximum": 0.5},
            {"type": "string", "pattern": r"^ *[0-9]+\.?[0-9]* *%? *$"}
        ]
    };
    Headroom, "headroom", |of| {
        "description": "A share up to ten times the line: `10%` or `0.1`.",
        "anyOf": [
            {"type": "number", "minimum": 0, "maximum": 10},
            {"type": "string", "pattern": r"^ *[0-9]+\.?[0-9]* *%? *$"}
        ]
    };
    MarkWord, "mark", |of| {"enum": MarkPoint::ALL.map(MarkPoint::word)};
    MarkName, "mark_name", |of| {"type": "string", "pattern": r"\S"};
    MarkOfPhase, "mark_of_phase", |of| {"enum": [true, false, "collected"]};
}

/// The schema with this description.
pub(super) fn described(text: &str, mut schema: Schema) -> Schema {
    schema.insert("description".to_owned(), json!(text));
    schema
}

// ---- Keys that belong together ----

/// Names that become file names.
pub(super) fn file_names() -> Value {
    json!({"pattern": r"^[^/\n]+$"})
}

/// All of these keys are present.
pub(super) fn both(keys: &[&str]) -> Value {
    json!({"required": keys})
}

/// For each key, a schema that requires it: exactly one in `oneOf`, at least one in `anyOf`.
pub(super) fn each(keys: &[&str]) -> Value {
    keys.iter().map(|key| json!({"required": [key]})).collect()
}

/// Two or more of these keys are present.
pub(super) fn two_of(keys: &[&str]) -> Value {
    let pairs =
        keys.iter().enumerate().flat_map(|(at, one)| keys[at + 1..].iter().map(move |other| both(&[one, other])));
    json!({"anyOf": pairs.collect::<Value>()})
}

/// A key that has no effect without the other.
pub(super) fn needs(key: &str, other: &str) -> Value {
    json!({key: [other]})
}

/// An image has its own command; anything else needs one.
pub(super) fn started() -> Value {
    json!([both(&["image"]), {"required": ["command"], "properties": {"command": {"minItems": 1}}}])
}

/// A limit to confirm and a search for the highest rate, which are mutually exclusive.
pub(super) fn rate_and_proof() -> Value {
    json!({"required": ["prove", "max_rate"], "properties": {"max_rate": {"const": true}}})
}

/// A body with a method that does not allow one.
pub(super) fn bodiless() -> Value {
    json!({"anyOf": [both(&["get", "body"]), both(&["head", "body"])]})
}

/// The kinds of phases: a key with the keys that fit it, or a load model with one request or several.
pub(super) fn kinds_of_phases() -> Value {
    let alone = |key: &str, fitting: &[&str]| {
        let names = [&[key][..], fitting].concat();
        json!({"required": [key], "propertyNames": {"enum": names}})
    };
    let mut own = alone("phases", &["within", "pattern", "collect", "settle"]);
    own["dependentRequired"] = needs("settle", "collect");
    let mut same = alone("same", &["mark", "until", "within"]);
    same["dependentRequired"] = needs("within", "until");
    let foreign = ["same", "idle", "driver", "within", "phases", "pattern", "collect", "settle"];
    let asked = [&METHODS[..], &["requests"][..]].concat();
    json!([
        same,
        alone("idle", &["mark"]),
        alone("driver", &["within", "mark"]),
        own,
        {"allOf": [
            {"oneOf": each(&MODELS)},
            {"not": {"anyOf": each(&foreign)}},
            {"not": bodiless()},
            {"oneOf": each(&asked)},
            {"not": {"anyOf": [both(&["requests", "body"]), both(&["requests", "expect_continue"])]}}
        ]}
    ])
}
