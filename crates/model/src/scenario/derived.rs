//! Figures derived from a trial's marks: memory returned after a spike, the cost of another instance. Only checks that
//! need no knowledge of metrics and marks are here; `comparison` checks the rest.

use super::schema;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// More figures would answer no further question, and each one widens the intervals of all the others.
const FIGURES_MAX: usize = 32;

/// A figure to derive: a metric like any other, computed in each trial from its marks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Derived {
    /// Name of the metric; unique, without a dot.
    pub name: String,
    /// The input of the figure: a metric of marks (`rss`, `heap_live`) or an owner of the account (`malloc.live`).
    pub of: String,
    /// How the figure is computed from the input.
    #[serde(flatten)]
    pub way: Derivation,
}

/// How a figure is computed from the values at marks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Derivation {
    /// (spike − valley) / (spike − base): the share of a spike's growth that was returned.
    Elasticity {
        /// The mark before the spike.
        base: String,
        /// The mark at the peak of the spike.
        spike: String,
        /// The mark after the spike.
        valley: String,
        /// The share that could be returned, 0–1, if known; shown next to the figure.
        ideal: Option<f64>,
    },
    /// The slope of a least-squares line through the marks that carry a counter: bytes per counted instance.
    Slope {
        /// The counter, as named in phase markers.
        per: String,
        /// The marks to use, two or more; if empty, all that carry the counter.
        marks: Vec<String>,
    },
}

impl Derived {
    /// The marks that the figure uses.
    pub fn marks(&self) -> Vec<&str> {
        match &self.way {
            Derivation::Elasticity { base, spike, valley, .. } => vec![base, spike, valley],
            Derivation::Slope { marks, .. } => marks.iter().map(String::as_str).collect(),
        }
    }

    fn validate(&self) -> Result<()> {
        is_word("name", &self.name, ['_', '_'])?;
        is_word("of", &self.of, ['_', '.'])?;
        let marks = self.marks();
        if let Some(mark) = marks.iter().find(|mark| mark.trim().is_empty() || mark.contains(char::is_control)) {
            return Err(Error::request(format!("`{}` is not a valid mark name", mark.escape_debug())));
        }
        let mut seen = HashSet::new();
        if let Some(twice) = marks.iter().find(|mark| !seen.insert(**mark)) {
            return Err(Error::request(format!("the mark `{twice}` is listed twice")));
        }
        match &self.way {
            Derivation::Elasticity { ideal: Some(ideal), .. } if !(0.0..=1.0).contains(ideal) => {
                Err(Error::request(format!("`ideal` is {ideal}; it must be a fraction between 0 and 1")))
            }
            Derivation::Slope { marks, .. } if marks.len() == 1 => {
                Err(Error::request("a slope needs two or more marks")
                    .hint("add another one, or omit `marks` to use all marks that have the counter"))
            }
            Derivation::Slope { per, .. }
                if per.is_empty() || per.contains(|c: char| c == '=' || c.is_whitespace()) =>
            {
                Err(Error::request(format!("`{}` is not a valid counter name", per.escape_debug()))
                    .hint("a phase marker sets it with `instances=10000`"))
            }
            _ => Ok(()),
        }
    }
}

/// Checks a scenario's figures: bounds, unique names, distinct marks. Errors: `Request`, naming the figure and the
/// first invalid value.
pub(super) fn validate_figures(figures: &[Derived]) -> Result<()> {
    if figures.len() > FIGURES_MAX {
        return Err(Error::request(format!("{} figures are requested; the maximum is {FIGURES_MAX}", figures.len())));
    }
    let mut seen = HashSet::new();
    for figure in figures {
        figure.validate().map_err(|error| error.at(format!("figures: {}", figure.name.escape_debug())))?;
        if !seen.insert(figure.name.as_str()) {
            return Err(Error::request(format!("two figures are named `{}`", figure.name))
                .hint("give one of them another `name`"));
        }
    }
    Ok(())
}

/// Checks that a word has only letters, digits, and `others`, because it is part of metric, budget, and file names.
fn is_word(key: &str, word: &str, others: [char; 2]) -> Result<()> {
    let sound = |c: char| c.is_ascii_alphanumeric() || others.contains(&c);
    match word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(sound) && word.len() <= 64 {
        true => Ok(()),
        false => Err(Error::request(format!("`{}` cannot be the `{key}` of a figure", word.escape_debug()))
            .hint("start with a letter; use letters, digits, and `_`")),
    }
}

/// A figure: its kind and settings.
#[derive(Deserialize, schemars::JsonSchema)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
#[serde(deny_unknown_fields)]
pub(super) struct FigureFile {
    /// Share of a spike's growth that was returned: (spike - valley) / (spike - base).
    elasticity: Option<ElasticityFile>,
    /// Cost of one more instance: the slope of a least-squares line over marks with a counter.
    slope: Option<SlopeFile>,
}

#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct ElasticityFile {
    /// Name of the metric.
    #[schemars(extend("pattern" = "^[A-Za-z][A-Za-z0-9_]{0,63}$", "default" = "elasticity"))]
    name: Option<String>,
    /// A metric of marks, such as `rss`, or an owner of the account, such as `malloc.live`.
    #[schemars(extend("pattern" = "^[A-Za-z][A-Za-z0-9_.]{0,63}$"))]
    of: String,
    /// The mark before the spike.
    #[schemars(extend("pattern" = "\\S"))]
    base: String,
    /// The mark at the peak of the spike.
    #[schemars(extend("pattern" = "\\S"))]
    spike: String,
    /// The mark after the spike.
    #[schemars(extend("pattern" = "\\S"))]
    valley: String,
    /// The share that could be returned, if known; shown next to the figure.
    #[schemars(extend("minimum" = 0, "maximum" = 1))]
    ideal: Option<f64>,
}

#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct SlopeFile {
    /// Name of the metric; if omitted, `OF_per_PER`.
    #[schemars(extend("pattern" = "^[A-Za-z][A-Za-z0-9_]{0,63}$"))]
    name: Option<String>,
    /// A metric of marks in bytes, such as `heap_live`, or an owner of the account.
    #[schemars(extend("pattern" = "^[A-Za-z][A-Za-z0-9_.]{0,63}$"))]
    of: String,
    /// The counter, as named in phase markers: `instances=10000`.
    #[schemars(extend("pattern" = "^[^=\\s]+$"))]
    per: String,
    /// Marks to use; if omitted, all with the counter.
    #[schemars(with = "Option<Vec<schema::MarkName>>", extend("minItems" = 2, "uniqueItems" = true))]
    marks: Option<Vec<String>>,
}

impl FigureFile {
    pub(super) fn resolve(self) -> Result<Derived> {
        match (self.elasticity, self.slope) {
            (Some(file), None) => {
                let ElasticityFile { name, of, base, spike, valley, ideal } = file;
                let name = name.unwrap_or_else(|| "elasticity".to_owned());
                Ok(Derived { name, of, way: Derivation::Elasticity { base, spike, valley, ideal } })
            }
            (None, Some(file)) => {
                let SlopeFile { name, of, per, marks } = file;
                if marks.as_ref().is_some_and(Vec::is_empty) {
                    return Err(Error::request("the `marks` of a slope are empty")
                        .at("figures")
                        .hint("leave it out to use all marks that have the counter"));
                }
                let name = name.unwrap_or_else(|| format!("{}_per_{per}", of.replace('.', "_")));
                Ok(Derived { name, of, way: Derivation::Slope { per, marks: marks.unwrap_or_default() } })
            }
            _ => Err(Error::request("a figure is either an `elasticity` or a `slope`")
                .at("figures")
                .hint("write one as `- slope: {of: heap_live, per: instances}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, scenario_of};

    fn with(figures: &str) -> Result<Scenario> {
        scenario_of("command: [java, -jar, a.jar]", &format!("figures:\n{figures}"))
    }

    const ELASTIC: &str = "- elasticity: {of: rss, base: empty, spike: spike, valley: valley, ideal: 0.8}";
    const SLOPE: &str = "- slope: {name: bytes_per_instance, of: heap_live, per: instances}";

    #[test]
    fn figures_are_parsed_and_round_trip_through_an_archive() {
        let marks = "- slope: {of: malloc.live, per: n, marks: [small, large]}";
        let scenario = with(&[ELASTIC, SLOPE, marks].join("\n")).unwrap();
        let names: Vec<&str> = scenario.figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names, ["elasticity", "bytes_per_instance", "malloc_live_per_n"]);
        assert_eq!(scenario.figures[0].marks(), ["empty", "spike", "valley"]);
        assert_eq!(scenario.figures[1].marks(), [""; 0]);
        assert_eq!(scenario.figures[2].marks(), ["small", "large"]);
        let kept = serde_json::to_string(&scenario).unwrap();
        assert_eq!(serde_json::from_str::<Scenario>(&kept).unwrap(), scenario);
    }

    #[test]
    fn invalid_figures_are_explained() {
        let check = |figures: &str, expect: &str| {
            let error = with(figures).unwrap_err().to_string();
            assert!(error.contains(expect), "{figures}: {error}");
        };
        check(&[ELASTIC, ELASTIC].join("\n"), "two figures are named `elasticity`");
        check(&ELASTIC.replace("0.8", "1.2"), "`ideal` is 1.2; it must be a fraction between 0 and 1");
        check(&ELASTIC.replace("0.8", ".nan"), "between 0 and 1");
        check(&ELASTIC.replace("valley: valley", "valley: spike"), "the mark `spike` is listed twice");
        check(&ELASTIC.replace("base: empty, ", ""), "missing field `base`");
        check(&ELASTIC.replace("base", "bass"), "did you mean `base`?");
        check(&ELASTIC.replace("elasticity", "elastisity"), "did you mean `elasticity`?");
        check(&SLOPE.replace("per: instances", "per: 'a b'"), "is not a valid counter name");
        check(&SLOPE.replace("per: instances", "per: ''"), "is not a valid counter name");
        check(&SLOPE.replace("instances}", "instances, marks: [one]}"), "two or more marks");
        check(&SLOPE.replace("instances}", "instances, marks: []}"), "the `marks` of a slope are empty");
        check(&SLOPE.replace("instances}", "instances, marks: [a, a]}"), "the mark `a` is listed twice");
        check(&SLOPE.replace("instances}", "instances, marks: [a, '']}"), "is not a valid mark name");
        check(&SLOPE.replace("bytes_per_instance", "bytes.per"), "cannot be the `name`");
        check(&SLOPE.replace("bytes_per_instance", "'<b>'"), "cannot be the `name`");
        check(&SLOPE.replace("heap_live", "'rss<=5'"), "cannot be the `of`");
        check("- {}", "either an `elasticity` or a `slope`");
        check(&format!("{ELASTIC}\n  slope: {{of: rss, per: n}}"), "either an `elasticity` or a `slope`");
        let many: Vec<String> = (0..33).map(|n| format!("- slope: {{name: a{n}, of: rss, per: n}}")).collect();
        check(&many.join("\n"), "33 figures");
    }
}
