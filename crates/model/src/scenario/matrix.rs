//! A matrix of configurations: every combination of its axes, minus excluded ones.

use super::configuration::{AXES, Axis};
use super::schema::{self, described};
use super::short_name::short_names;
use super::written::{Entries, Named, Scalar, did_you_mean};
use super::{Configuration, ConfigurationSettings, Level};
use crate::error::{Error, Result};
use loadline_base::order::Order as _;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};
use serde_json::{Map, Value, json};
use std::fmt;
use std::path::Path;

/// The axes as written; an empty axis leaves the value to the JVM.
#[derive(Default)]
pub(super) struct Matrix {
    axes: Vec<(&'static Axis, Written)>,
    exclude: Vec<Named<Scalar>>,
    optional: bool,
}

pub(super) enum Written {
    /// Each value is its own name.
    Listed(Vec<String>),
    Named(Vec<(String, ConfigurationSettings)>),
}

/// The oldest release included in `found`: the oldest that Loadline requires on a machine.
const RELEASE_FOUND_MIN: u32 = 17;
/// The name of an empty value, which keeps the setting of the scenario or command.
const AS_GIVEN: &str = "as-given";
/// More configurations than users compare.
const CONFIGURATIONS_MAX: usize = 1000;

/// An axis's values and their names.
#[derive(Debug, Clone, PartialEq)]
struct AxisValues {
    word: &'static str,
    values: Vec<(String, ConfigurationSettings)>,
}

/// All axes, in the form that `--vary` accepts.
pub fn axes() -> String {
    AXES.map(|axis| if axis.word == "env" { "env.NAME" } else { axis.word }).join(", ")
}

impl Matrix {
    /// All combinations that are not excluded; the first axis varies slowest. Names consist of the axes that vary.
    ///
    /// All configurations start from `usual`; relative paths are resolved against `base`.
    pub(super) fn expand(self, usual: &Configuration, base: &Path, found: &[u32]) -> Result<Vec<Configuration>> {
        let mut axes = Vec::new();
        for (Axis { word, .. }, written) in self.axes {
            axes.push(match written {
                Written::Listed(texts) => axis(word, &texts, found)?,
                Written::Named(values) => AxisValues { word, values },
            });
        }
        axes.retain(|axis| !axis.values.is_empty());
        let cells = self.exclude.into_iter().map(|cell| cell_of(cell, &axes)).collect::<Result<Vec<_>>>()?;
        let usual = Configuration { optional: self.optional, ..usual.clone() };
        expand(&axes, &usual, base, &cells.into_iter().flatten().collect::<Vec<_>>())
    }
}

impl<'de> Deserialize<'de> for Matrix {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Matrix;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("struct Matrix")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Matrix, A::Error> {
                let mut matrix = Matrix::default();
                while let Some(key) = map.next_key::<String>()? {
                    match (key.as_str(), AXES.iter().find(|axis| axis.word == key)) {
                        ("exclude", _) => matrix.exclude = map.next_value()?,
                        ("optional", _) => matrix.optional = map.next_value()?,
                        (_, Some(axis)) => matrix.axes.push((axis, map.next_value_seed(axis)?)),
                        _ => {
                            let known = AXES.map(|axis| axis.word).join("`, `");
                            let what =
                                format!("unknown field `{key}`, expected one of `{known}`, `exclude`, `optional`");
                            return Err(A::Error::custom(what));
                        }
                    }
                }
                matrix.axes.order_by_key(|(axis, _)| AXES.iter().position(|one| one == *axis));
                Ok(matrix)
            }
        }
        from.deserialize_map(Keys)
    }
}

impl<'de> DeserializeSeed<'de> for &'static Axis {
    type Value = Written;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> std::result::Result<Written, D::Error> {
        if self.is_named {
            return from.deserialize_option(NamedValues(self.word)).map(Written::Named);
        }
        Ok(Written::Listed(Vec::<Scalar>::deserialize(from)?.into_iter().map(Scalar::text).collect()))
    }
}

/// Parses the values of this axis by name.
struct NamedValues(&'static str);

impl<'de> Visitor<'de> for NamedValues {
    type Value = Vec<(String, ConfigurationSettings)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map with names as keys")
    }

    fn visit_unit<E>(self) -> std::result::Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_none<E>(self) -> std::result::Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> std::result::Result<Self::Value, D::Error> {
        from.deserialize_map(Entries(Setting(self.0)))
    }
}

/// Parses a setting's value like the same configuration key.
#[derive(Clone, Copy)]
struct Setting(&'static str);

impl<'de> DeserializeSeed<'de> for Setting {
    type Value = ConfigurationSettings;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> std::result::Result<Self::Value, D::Error> {
        ConfigurationSettings::deserialize(MapAccessDeserializer::new(OneKey { word: Some(self.0), value: Some(from) }))
    }
}

struct OneKey<D> {
    word: Option<&'static str>,
    value: Option<D>,
}

impl<'de, D: Deserializer<'de>> MapAccess<'de> for OneKey<D> {
    type Error = D::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, key: K) -> std::result::Result<Option<K::Value>, D::Error> {
        self.word.take().map(|word| key.deserialize(word.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, value: V) -> std::result::Result<V::Value, D::Error> {
        let written = self.value.take().ok_or_else(|| D::Error::custom("a key without a value"))?;
        value.deserialize(written)
    }
}

struct Combination;

loadline_base::written_as! {
    Matrix, "Matrix", |of| {
        "description": "The axes as written; an empty axis leaves its value to the JVM.",
        "type": "object",
        "additionalProperties": false,
        "properties": (properties_of_matrix(of))
    };
    Combination, "combination", |of| {
        "description": "Values that are excluded in combination.",
        "type": "object",
        "additionalProperties": false,
        "properties": (properties(of, |of, axis, setting| {
            (axis.value, if axis.is_named { of.subschema_for::<Scalar>() } else { not_null(setting) })
        }))
    };
}

fn properties_of_matrix(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut properties = properties(generator, |of, axis, setting| {
        let schema = match axis.word {
            _ if axis.is_named => json!({"type": "object", "additionalProperties": not_null(setting)}),
            "jdk" => json!({"type": "array", "items": of.subschema_for::<schema::JdkOrFound>()}),
            _ => json!({"type": "array", "items": not_null(setting)}),
        };
        (axis.values, schema.try_into().unwrap_or_default())
    });
    let exclude = json!({"type": "array", "items": generator.subschema_for::<Combination>()});
    let optional = json!({"type": "boolean", "default": false});
    let others = [
        ("exclude", "Combinations to skip: those that match every value given.", exclude),
        ("optional", "Whether to skip configurations whose JDK or code is missing, and report that.", optional),
    ];
    for (key, text, schema) in others {
        properties.insert(key.to_owned(), described(text, schema.try_into().unwrap_or_default()).to_value());
    }
    properties
}

fn properties(
    generator: &mut SchemaGenerator,
    of_axis: impl Fn(&mut SchemaGenerator, &Axis, &Schema) -> (&'static str, Schema),
) -> Map<String, Value> {
    let settings = ConfigurationSettings::json_schema(generator);
    let mut properties = Map::new();
    for axis in &AXES {
        let setting = settings.pointer(&format!("/properties/{}", axis.word)).cloned().unwrap_or_default();
        let mut setting = Schema::try_from(setting).unwrap_or_default();
        setting.remove("description");
        setting.remove("default");
        let (text, schema) = of_axis(generator, axis, &setting);
        properties.insert(axis.word.to_owned(), described(text, schema).to_value());
    }
    properties
}

/// A setting's schema without the null of an omitted one. An empty map is allowed, so it keeps null.
fn not_null(setting: &Schema) -> Schema {
    if let Some(given) = setting.pointer("/anyOf/0").cloned().and_then(|given| given.try_into().ok()) {
        return given;
    }
    let mut schema = setting.clone();
    if schema.get("type") == Some(&json!(["string", "null"])) {
        schema.insert("type".to_owned(), json!("string"));
    }
    schema
}

/// Creates an axis whose values are their own names.
///
/// `word` is any of [`AXES`], or `env.NAME`; `found` lists the machine's JDK releases.
fn axis(word: &str, texts: &[String], found: &[u32]) -> Result<AxisValues> {
    let words = AXES.map(|axis| axis.word);
    let variable = word.strip_prefix("env.").filter(|name| !name.is_empty());
    let known = words.into_iter().find(|axis| *axis == word && word != "env").or(variable.map(|_| "env"));
    let known = known.ok_or_else(|| unknown(format!("`{word}` cannot be varied"), word, &words))?;
    let mut values = Vec::new();
    let short = short_names(known, variable, &texts.iter().map(String::as_str).collect::<Vec<_>>());
    for (text, short) in texts.iter().zip(short) {
        if text.is_empty() {
            values.push((AS_GIVEN.to_owned(), ConfigurationSettings::default()));
        } else if known == "jdk" && text == "found" {
            for release in releases(found)? {
                values.push(value(known, None, &release.to_string(), short.clone())?);
            }
        } else {
            values.push(value(known, variable, text, short)?);
        }
    }
    values.dedup();
    Ok(AxisValues { word: known, values })
}

fn releases(found: &[u32]) -> Result<impl Iterator<Item = u32> + '_> {
    let new = found.iter().copied().filter(|&release| release >= RELEASE_FOUND_MIN);
    if new.clone().next().is_none() {
        return Err(Error::machine(format!("no JDK of release {RELEASE_FOUND_MIN} or newer was found"))
            .hint("install one, or see `loadline doctor`"));
    }
    Ok(new)
}

/// A value written as one word, and its name: `short` unless the setting has its own short name.
fn value(axis: &str, variable: Option<&str>, text: &str, short: String) -> Result<(String, ConfigurationSettings)> {
    let written = match (axis, variable) {
        ("jvm" | "args", _) => text.split_whitespace().collect(),
        (_, Some(variable)) => json!({variable: text}),
        _ => json!(text),
    };
    // Parsed like the same configuration key.
    let settings = serde_json::from_value::<ConfigurationSettings>(json!({axis: written}));
    let settings = settings.map_err(|cause| Error::request(cause.to_string()))?;
    let name = settings.names().into_iter().next().unwrap_or(short);
    Ok((name, settings))
}

/// Every combination of the given values (`gc=serial,g1`), applied to each configuration. Without axes, the
/// configurations stay unchanged.
///
/// Relative paths are resolved against `base`; `found` lists the machine's JDK releases. Errors: `Request` for an axis
/// that cannot vary or an invalid value; `Machine` if `found` is empty.
pub fn vary(
    typed: &[(String, Vec<String>)],
    configurations: &[Configuration],
    base: &Path,
    found: &[u32],
) -> Result<Vec<Configuration>> {
    if typed.is_empty() {
        return Ok(configurations.to_vec());
    }
    let axes = typed.iter().map(|(word, texts)| axis(word, texts, found)).collect::<Result<Vec<_>>>()?;
    let mut varied = Vec::new();
    for configuration in configurations {
        for mut one in expand(&axes, configuration, base, &[])? {
            if configurations.len() > 1 {
                one.name = format!("{}-{}", configuration.name, one.name);
                let given = Level { axis: "configuration".to_owned(), name: configuration.name.clone() };
                one.levels.insert(0, given);
            }
            varied.push(one);
        }
    }
    Ok(varied)
}

/// An excluded combination: indexes of axes and of values on them.
type Cell = Vec<(usize, usize)>;

/// Finds a cell's values by name, or by any valid spelling. `None` if it names a JDK that `found` lacks.
fn cell_of(cell: Named<Scalar>, axes: &[AxisValues]) -> Result<Option<Cell>> {
    let mut places = Vec::new();
    for (word, written) in cell.0 {
        let text = written.text();
        let Some(at) = axes.iter().position(|axis| axis.word == word) else {
            let words: Vec<&str> = axes.iter().map(|axis| axis.word).collect();
            return Err(unknown(format!("`exclude`: `{word}` is not an axis of this matrix"), &word, &words));
        };
        let axis = &axes[at];
        let same = value(axis.word, None, &text, text.clone()).ok().map(|(_, value)| value);
        let found = axis.values.iter().position(|(name, value)| *name == text || same.as_ref() == Some(value));
        match found {
            Some(found) => places.push((at, found)),
            None if same.is_some_and(|same| same.jdk.is_some()) => return Ok(None),
            None => {
                let names: Vec<&str> = axis.values.iter().map(|(name, _)| name.as_str()).collect();
                return Err(unknown(format!("`exclude`: `{word}` is never `{text}`"), &text, &names));
            }
        }
    }
    Ok(Some(places))
}

/// An error about a word, suggesting the closest valid one, or else all.
fn unknown(what: String, word: &str, valid: &[&str]) -> Error {
    let hint = did_you_mean(word, valid.iter().copied()).unwrap_or_else(|| valid.join(", "));
    Error::request(what).hint(hint)
}

/// Every combination of values, applied to a configuration.
fn expand(axes: &[AxisValues], usual: &Configuration, base: &Path, excluded: &[Cell]) -> Result<Vec<Configuration>> {
    let count = axes.iter().map(|axis| axis.values.len()).fold(1usize, usize::saturating_mul);
    if count > CONFIGURATIONS_MAX {
        return Err(Error::request(format!(
            "the matrix has {count} configurations; the maximum is \
             {CONFIGURATIONS_MAX}"
        ))
        .hint("remove an axis, or some of its values"));
    }
    // Indexes of values per axis, first axis slowest.
    let mut combinations: Vec<Vec<usize>> = vec![Vec::new()];
    for axis in axes {
        let with_each = |before: Vec<usize>| {
            (0..axis.values.len()).map(move |value| before.iter().copied().chain([value]).collect())
        };
        combinations = combinations.into_iter().flat_map(with_each).collect();
    }
    let mut configurations = Vec::with_capacity(count);
    for places in combinations {
        if excluded.iter().any(|cell| cell.iter().all(|(axis, value)| places[*axis] == *value)) {
            continue;
        }
        let mut configuration = usual.clone();
        configuration.levels = Vec::new();
        for (axis, place) in axes.iter().zip(&places) {
            let (name, value) = &axis.values[*place];
            configuration.apply(value.clone(), base);
            // An axis with a single value varies nothing.
            let level = || Level { axis: axis.word.to_owned(), name: name.clone() };
            configuration.levels.extend((axis.values.len() > 1).then(level));
        }
        let parts: Vec<&str> = configuration.levels.iter().map(|level| level.name.as_str()).collect();
        configuration.name = if parts.is_empty() { "default".to_owned() } else { parts.join("-") };
        configurations.push(configuration);
    }
    Ok(configurations)
}

#[cfg(test)]
mod tests {
    use super::{Configuration, vary};
    use crate::error::Result;
    use crate::scenario::{Scenario, scenario_of};
    use std::path::Path;

    fn parsed(matrix: &str) -> Result<Scenario> {
        let code = if matrix.contains("code") { ", '{code}'" } else { "" };
        scenario_of(&format!("command: [java, -jar{code}, '{{port}}'], port: 80"), &format!("matrix: {matrix}"))
    }

    fn names(matrix: &str) -> Vec<String> {
        parsed(matrix).unwrap().configurations.into_iter().map(|configuration| configuration.name).collect()
    }

    #[test]
    fn every_axis_varies_its_setting() {
        let scenario = parsed(
            "{jvm: {plain: [], c1: ['-XX:TieredStopAtLevel=1']}, env: {usual: {}, one: {MALLOC_ARENA_MAX: 1}}, \
              preload: {glibc: none, je: lib/libjemalloc.so.2}, args: {few: [1], many: [9]}, code: {old: a.jar, \
             new: b.jar}}",
        )
        .unwrap();
        assert_eq!(scenario.configurations.len(), 32);
        let last = scenario.configurations.last().unwrap();
        assert_eq!(last.name, "c1-one-je-many-new");
        assert_eq!(last.jvm, ["-XX:TieredStopAtLevel=1"]);
        assert_eq!(last.env, [("MALLOC_ARENA_MAX".to_owned(), "1".to_owned())]);
        assert_eq!(last.preload.as_deref(), Some("/base/lib/libjemalloc.so.2"));
        assert_eq!(
            (last.args.as_slice(), last.code.as_deref()),
            (&["9".to_owned()][..], Some(Path::new("/base/b.jar")))
        );
        let first = &scenario.configurations[0];
        assert_eq!((first.name.as_str(), first.preload.as_deref()), ("plain-usual-glibc-few-old", None));
    }

    #[test]
    fn excluded_cells_match_by_name_or_value() {
        let all = "gc: [serial, g1], heap: [6m, 12m], jdk: [17, 25]";
        assert_eq!(names(&format!("{{{all}}}")).len(), 8);
        assert_eq!(
            names(&format!("{{{all}, exclude: [{{gc: G1GC, heap: 12MiB}}, {{jdk: jdk25, gc: serial}}]}}")).len(),
            4
        );
        // `found` lacks it, so there is nothing to exclude.
        assert_eq!(names("{gc: [serial, g1], jdk: [found], exclude: [{jdk: 21}]}").len(), 4);
        assert_eq!(names("{gc: [serial], heap: [6m]}"), ["default"]);
        assert_eq!(names("{jvm: , gc: []}"), ["default"], "an empty axis varies nothing");
    }

    #[test]
    fn an_invalid_value_in_a_named_set_is_reported_with_its_line() {
        let error = parsed("\n  jvm:\n    plain: []\n    c1: 5").map(|_| ()).unwrap_err();
        assert!(error.what.starts_with("line 6: matrix.jvm.c1") && error.what.contains("a list such as"), "{error}");
    }

    #[test]
    fn a_typo_in_a_matrix_suggests_the_nearest_key() {
        let check = |matrix: &str, what: &str, hint: &str| {
            let error = parsed(matrix).map(|_| ()).unwrap_err();
            assert!(error.what.contains(what), "{error}");
            assert!(error.hint.as_deref().is_some_and(|said| said.contains(hint)), "{error}");
        };
        check("{gc: [serial], exclude: [{heap: 6m}]}", "`heap` is not an axis", "gc");
        check("{gc: [serial], jvn: {}}", "line 3: unknown key `jvn`", "did you mean `jvm`?");
        check("{env: {one: {A: 1}, two: {}}, exclude: [{env: oen}]}", "`env` is never `oen`", "did you mean `one`?");
        check(
            "{code: {a: a.jar}, args: {x: [1]}, exclude: [{arg: x}]}",
            "`arg` is not an axis",
            "did you mean `args`?",
        );
        let many = (1..40).map(|n| format!("{n}m")).collect::<Vec<_>>().join(", ");
        check(&format!("{{heap: [{many}], limit: [{many}]}}"), "1521 configurations", "remove an axis");
        assert_eq!(names("{heap: [6m, 6144k]}"), ["default"]);
    }

    #[test]
    fn an_empty_value_leaves_a_setting_unchanged() {
        let given = Configuration { jvm: vec!["-Xss1m".to_owned()], ..Configuration::default() };
        let typed = [("jvm".to_owned(), ["", "-javaagent:/opt/agent.jar"].map(str::to_owned).to_vec())];
        let varied = vary(&typed, &[given], Path::new(""), &[]).unwrap();
        let varied = varied.iter().map(|of| (of.name.as_str(), of.jvm.len())).collect::<Vec<_>>();
        assert_eq!(varied, [("as-given", 1), ("agent.jar", 2)]);
    }

    #[test]
    fn configurations_varied_on_the_command_line_have_short_names() {
        let axis = |word: &str, values: [&str; 2]| (word.to_owned(), values.map(str::to_owned).to_vec());
        let axes =
            [axis("env.MALLOC_ARENA_MAX", ["2", "16"]), axis("jvm", ["-XX:TrimNativeHeapInterval=2000", "-Xss512k"])];
        let varied = vary(&axes, &[Configuration::default()], Path::new(""), &[17]).unwrap();
        let names: Vec<&str> = varied.iter().map(|one| one.name.as_str()).collect();
        let expect = ["ARENA_MAX=2-TrimNativeHeapInterval", "ARENA_MAX=2-Xss512k"];
        assert_eq!(names[..2], expect);
        assert_eq!(varied[2].env, [("MALLOC_ARENA_MAX".to_owned(), "16".to_owned())]);
        assert_eq!(varied[2].jvm, ["-XX:TrimNativeHeapInterval=2000"]);
    }
}
