//! A matrix of configurations: every combination of its axes, less what is excluded.

use super::schema;
use super::short_name::short_names;
use super::written::{Named, Scalar, nearest, pairs};
use super::{Configuration, ConfigurationSettings, Nmt};
use crate::error::{Error, Result};
use crate::units::Bytes;
use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The axes as written; an empty axis leaves its value to the JVM.
#[derive(Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Matrix {
    /// Collectors.
    #[schemars(with = "Vec<schema::Collector>")]
    gc: Vec<Scalar>,
    /// Heap sizes.
    #[schemars(with = "Vec<Bytes>")]
    heap: Vec<Scalar>,
    /// JDKs; `found` stands for every one of release 17 or newer on this machine.
    #[schemars(with = "Vec<schema::JdkOrFound>")]
    jdk: Vec<Scalar>,
    /// Memory limits.
    #[schemars(with = "Vec<Bytes>")]
    limit: Vec<Scalar>,
    /// Levels of Native Memory Tracking.
    #[schemars(with = "Vec<Nmt>")]
    nmt: Vec<Scalar>,
    /// Sets of JVM options, by name.
    jvm: Option<Named<Vec<String>>>,
    /// Sets of environment variables, by name.
    env: Option<Named<Option<Named<Scalar>>>>,
    /// Libraries to preload, by name; `none` for none.
    preload: Option<Named<String>>,
    /// Sets of arguments, by name.
    args: Option<Named<Vec<Scalar>>>,
    /// What `{code}` stands for, by name.
    code: Option<Named<PathBuf>>,
    /// Combinations to leave out: all that match every value given.
    #[schemars(with = "Vec<schema::Combination>")]
    exclude: Vec<Named<Scalar>>,
    /// Whether configurations whose JDK or code is missing are left out, and that said.
    optional: bool,
}

/// The oldest release `found` stands for: what Loadline itself asks of a machine.
const RELEASE_FOUND_MIN: u32 = 17;
/// More configurations than anyone compares.
const CONFIGURATIONS_MAX: usize = 1000;

/// The axes, in the order in which they name a configuration.
const AXES: [&str; 10] = ["gc", "heap", "jdk", "limit", "nmt", "jvm", "env", "preload", "args", "code"];

/// An axis: its values with the names they go by.
#[derive(Debug, Clone, PartialEq)]
struct Axis {
    word: &'static str,
    values: Vec<(String, ConfigurationSettings)>,
}

impl Matrix {
    /// Every combination not excluded, the first axis slowest. A name is made of the axes that vary.
    ///
    /// `usual` is what all of them begin with; `base` is the folder relative paths start from.
    pub(super) fn expand(self, usual: &Configuration, base: &Path, found: &[u32]) -> Result<Vec<Configuration>> {
        type Settings = ConfigurationSettings;
        let texts = |scalars: Vec<Scalar>| scalars.into_iter().map(Scalar::text).collect::<Vec<_>>();
        let mut axes = Vec::new();
        for (word, scalars) in
            [("gc", self.gc), ("heap", self.heap), ("jdk", self.jdk), ("limit", self.limit), ("nmt", self.nmt)]
        {
            axes.push(axis(word, &texts(scalars), found)?);
        }
        axes.push(named_axis("jvm", self.jvm, |jvm| Settings { jvm, ..Settings::default() }));
        axes.push(named_axis("env", self.env, |env| Settings { env: pairs(env), ..Settings::default() }));
        axes.push(named_axis("preload", self.preload, |of| Settings { preload: Some(of), ..Settings::default() }));
        axes.push(named_axis("args", self.args, |args| Settings { args: texts(args), ..Settings::default() }));
        axes.push(named_axis("code", self.code, |of| Settings { code: Some(of), ..Settings::default() }));
        axes.retain(|axis| !axis.values.is_empty());
        let cells = self.exclude.into_iter().map(|cell| cell_of(cell, &axes)).collect::<Result<Vec<_>>>()?;
        let usual = Configuration { optional: self.optional, ..usual.clone() };
        expand(&axes, &usual, base, &cells.into_iter().flatten().collect::<Vec<_>>())
    }
}

fn named_axis<T>(word: &'static str, named: Option<Named<T>>, value: impl Fn(T) -> ConfigurationSettings) -> Axis {
    let values = named.map_or_else(Vec::new, |named| named.0);
    Axis { word, values: values.into_iter().map(|(name, written)| (name, value(written))).collect() }
}

/// An axis whose values are their own names.
///
/// `word` may be any of [`AXES`], or `env.NAME`; `found` are the JDK releases on the machine.
fn axis(word: &str, texts: &[String], found: &[u32]) -> Result<Axis> {
    let unknown = || {
        let hint = nearest(word, AXES.into_iter()).map_or(AXES.join(", "), |near| format!("did you mean `{near}`?"));
        Error::request(format!("`{word}` is nothing that can vary")).hint(hint)
    };
    let variable = word.strip_prefix("env.").filter(|name| !name.is_empty());
    let known = AXES.into_iter().find(|axis| *axis == word && word != "env").or(variable.map(|_| "env"));
    let known = known.ok_or_else(unknown)?;
    let mut values = Vec::new();
    let short = short_names(known, variable, &texts.iter().map(String::as_str).collect::<Vec<_>>());
    for (text, short) in texts.iter().zip(short) {
        if known == "jdk" && text == "found" {
            for release in releases(found)? {
                values.push(value(known, None, &release.to_string(), short.clone())?);
            }
        } else {
            values.push(value(known, variable, text, short)?);
        }
    }
    values.dedup();
    Ok(Axis { word: known, values })
}

fn releases(found: &[u32]) -> Result<impl Iterator<Item = u32> + '_> {
    let new = found.iter().copied().filter(|&release| release >= RELEASE_FOUND_MIN);
    if new.clone().next().is_none() {
        return Err(Error::machine(format!("no JDK of release {RELEASE_FOUND_MIN} or newer was found"))
            .hint("install one, or see `loadline doctor`"));
    }
    Ok(new)
}

/// A value written as one word, and its name: the one that is given, where the axis has no names of its own.
fn value(axis: &str, variable: Option<&str>, text: &str, short: String) -> Result<(String, ConfigurationSettings)> {
    let written = match (axis, variable) {
        ("jvm" | "args", _) => text.split_whitespace().collect(),
        (_, Some(variable)) => json!({variable: text}),
        _ => json!(text),
    };
    // As the same key of a configuration is read.
    let settings = serde_json::from_value::<ConfigurationSettings>(json!({axis: written}));
    let settings = settings.map_err(|cause| Error::request(cause.to_string()))?;
    let name = settings.names().into_iter().next().unwrap_or(short);
    Ok((name, settings))
}

/// Every combination of the values typed (`gc=serial,g1`) on top of each configuration; as they are where nothing
/// varies.
///
/// `base` is the folder relative paths start from; `found` are the JDK releases on the machine.
///
/// # Errors
/// `Request` for what cannot vary or is no value of it; `Machine` where `found` finds nothing.
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
            }
            varied.push(one);
        }
    }
    Ok(varied)
}

/// What is left out: for some axes the value, by its place on the axis.
type Cell = Vec<(usize, usize)>;

/// Finds the values that a cell names: by their name, or as they may be written. `None` where it names a JDK that
/// `found` did not find.
fn cell_of(cell: Named<Scalar>, axes: &[Axis]) -> Result<Option<Cell>> {
    let mut places = Vec::new();
    for (word, written) in cell.0 {
        let text = written.text();
        let unknown = |what: String, valid: Vec<&str>| {
            let near = nearest(if what.is_empty() { &word } else { &text }, valid.iter().copied());
            let hint = near.map_or_else(|| valid.join(", "), |near| format!("did you mean `{near}`?"));
            let what = if what.is_empty() { format!("`{word}` is no axis of this matrix") } else { what };
            Error::request(format!("`exclude`: {what}")).hint(hint)
        };
        let at = axes.iter().position(|axis| axis.word == word);
        let at = at.ok_or_else(|| unknown(String::new(), axes.iter().map(|axis| axis.word).collect()))?;
        let axis = &axes[at];
        let same = value(axis.word, None, &text, text.clone()).ok().map(|(_, value)| value);
        let found = axis.values.iter().position(|(name, value)| *name == text || same.as_ref() == Some(value));
        let names = || axis.values.iter().map(|(name, _)| name.as_str()).collect();
        match found {
            Some(found) => places.push((at, found)),
            None if same.is_some_and(|same| same.jdk.is_some()) => return Ok(None),
            None => return Err(unknown(format!("`{word}` never is `{text}`"), names())),
        }
    }
    Ok(Some(places))
}

/// Every combination of values on top of a configuration.
fn expand(axes: &[Axis], usual: &Configuration, base: &Path, excluded: &[Cell]) -> Result<Vec<Configuration>> {
    let count = axes.iter().map(|axis| axis.values.len()).fold(1usize, usize::saturating_mul);
    if count > CONFIGURATIONS_MAX {
        return Err(Error::request(format!("the matrix has {count} configurations; at most {CONFIGURATIONS_MAX}"))
            .hint("drop an axis, or values of one"));
    }
    let mut configurations = Vec::with_capacity(count);
    for index in 0..count {
        let places = places(axes, index);
        if excluded.iter().any(|cell| cell.iter().all(|(axis, value)| places[*axis] == *value)) {
            continue;
        }
        let mut configuration = usual.clone();
        let mut parts = Vec::new();
        for (axis, place) in axes.iter().zip(&places) {
            let (name, value) = &axis.values[*place];
            configuration.apply(value.clone(), base);
            // Only an axis with a choice shows in the names.
            parts.extend((axis.values.len() > 1).then_some(name.as_str()));
        }
        configuration.name = if parts.is_empty() { "default".to_owned() } else { parts.join("-") };
        configurations.push(configuration);
    }
    Ok(configurations)
}

/// The value on each axis of the combination with this index, the first axis slowest.
fn places(axes: &[Axis], index: usize) -> Vec<usize> {
    let mut rest = index;
    let mut places = vec![0; axes.len()];
    for (place, axis) in places.iter_mut().zip(axes).rev() {
        *place = rest % axis.values.len();
        rest /= axis.values.len();
    }
    places
}

#[cfg(test)]
mod tests {
    use super::{Configuration, vary};
    use crate::error::Result;
    use crate::scenario::{Scenario, parse};
    use std::path::Path;

    fn parsed(matrix: &str) -> Result<Scenario> {
        let text = format!(
            "name: x\nsubject: {{command: [java, -jar, '{{code}}', '{{port}}'], port: 80}}\nmatrix: {matrix}\n\
             load: [{{steady: {{closed: {{connections: 1, requests: 1}}, get: /}}}}]\n"
        );
        let text = if matrix.contains("code") { text } else { text.replace(", '{code}'", "") };
        parse(&text, Path::new("/base"), &[11, 17, 25])
    }

    fn names(matrix: &str) -> Vec<String> {
        parsed(matrix).unwrap().configurations.into_iter().map(|configuration| configuration.name).collect()
    }

    #[test]
    fn every_axis_varies_what_it_names() {
        let scenario = parsed(
            "{jvm: {plain: [], c1: ['-XX:TieredStopAtLevel=1']}, env: {usual: {}, one: {MALLOC_ARENA_MAX: 1}}, \
              preload: {glibc: none, je: lib/libjemalloc.so.2}, args: {few: [1], many: [9]}, code: {old: a.jar, new: b.jar}}",
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
        // `found` did not find it, so there is nothing to leave out.
        assert_eq!(names("{gc: [serial, g1], jdk: [found], exclude: [{jdk: 21}]}").len(), 4);
        assert_eq!(names("{gc: [serial], heap: [6m]}"), ["default"]);
    }

    #[test]
    fn a_slip_in_a_matrix_names_the_nearest() {
        let check = |matrix: &str, what: &str, hint: &str| {
            let error = parsed(matrix).map(|_| ()).unwrap_err();
            assert!(error.what.contains(what), "{error}");
            assert!(error.hint.as_deref().is_some_and(|said| said.contains(hint)), "{error}");
        };
        check("{gc: [serial], exclude: [{heap: 6m}]}", "`heap` is no axis", "gc");
        check("{env: {one: {A: 1}, two: {}}, exclude: [{env: oen}]}", "`env` never is `oen`", "did you mean `one`?");
        check("{code: {a: a.jar}, args: {x: [1]}, exclude: [{arg: x}]}", "`arg` is no axis", "did you mean `args`?");
        let many = (1..40).map(|n| format!("{n}m")).collect::<Vec<_>>().join(", ");
        check(&format!("{{heap: [{many}], limit: [{many}]}}"), "1521 configurations", "drop an axis");
        assert_eq!(names("{heap: [6m, 6144k]}"), ["default"]);
    }

    #[test]
    fn what_is_varied_by_typing_has_short_names() {
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
