//! Conditions on the results of a load phase: `p99<50ms`, `failed<0.1%`, `rate>=99%`. As thresholds, they decide the
//! exit code; as stop conditions, they end a phase.

use loadline_base::units::{Span, milliseconds, trimmed};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A figure of a phase compared with a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// The figure.
    pub figure: Figure,
    /// The required relation to the bound.
    pub relation: Relation,
    /// The bound, in the figure's unit.
    pub bound: Bound,
}

/// The figure that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// A quantile, the maximum, or the mean of a time.
    Time(Time, Statistic),
    /// Failed requests.
    Failed,
    /// Correct responses per second.
    Rate,
}

/// The time that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Time {
    /// Response time in an open model, service time in a closed one.
    Usual,
    /// From the intended start.
    Response,
    /// From the actual start.
    Service,
}

/// A statistic of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// In thousandths: 500 is the median, 999 is p99.9.
    Quantile(u32),
    /// The longest.
    Max,
    /// The arithmetic mean.
    Mean,
}

/// How a figure must relate to its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `==`
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    More,
}

impl Relation {
    /// Whether a value has this relation to a bound.
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Less => value < bound,
            Self::AtMost => value <= bound,
            Self::Equal => value == bound,
            Self::AtLeast => value >= bound,
            Self::More => value > bound,
        }
    }
}

/// A bound with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// A time.
    Span(Span),
    /// A number of requests, or of requests per second.
    Number(f64),
    /// A share of all requests (`failed`) or of the offered rate (`rate`), 0–1.
    Share(f64),
}

/// The measurements that a condition is judged on.
pub trait Measured {
    /// The time in milliseconds; `None` if nothing was measured.
    fn time_ms(&self, time: Time, statistic: Statistic) -> Option<f64>;
    /// Failed requests, and all requests.
    fn failed_of(&self) -> (u64, u64);
    /// Correct responses per second, and the offered rate in an open model.
    fn rate_of(&self) -> (f64, Option<f64>);
}

impl Condition {
    /// Whether it holds, with the actual figure; `None` if the figure was not measured.
    pub fn judge(&self, measured: &dyn Measured) -> Option<(bool, f64)> {
        let (failed, requests) = measured.failed_of();
        let (rate, offered) = measured.rate_of();
        let (value, bound) = match (self.figure, self.bound) {
            (Figure::Time(time, statistic), Bound::Span(span)) => {
                (measured.time_ms(time, statistic)?, span.as_s() * 1e3)
            }
            (Figure::Failed, Bound::Share(share)) if requests > 0 => (failed as f64 / requests as f64, share),
            (Figure::Failed, Bound::Number(count)) => (failed as f64, count),
            (Figure::Rate, Bound::Number(per_s)) => (rate, per_s),
            (Figure::Rate, Bound::Share(share)) => (rate / offered.filter(|offered| *offered > 0.0)?, share),
            _ => return None,
        };
        Some((self.relation.holds(value, bound), value))
    }

    /// The figure in the condition's unit.
    pub fn show(&self, value: f64) -> String {
        match self.bound {
            Bound::Span(_) => format!("{} ms", milliseconds(value)),
            Bound::Share(_) => format!("{}%", trimmed(value * 100.0, 3)),
            Bound::Number(_) => trimmed(value, 3),
        }
    }
}

/// A share in percent, with as few decimals as round-trip exactly.
fn percent(share: f64) -> String {
    let written = |decimals: usize| format!("{:.decimals$}", share * 100.0);
    let same = |text: &String| text.parse::<f64>().is_ok_and(|percent| percent / 100.0 == share);
    (0..20).map(written).find(same).unwrap_or_else(|| written(20))
}

/// Longer operators first, so that `<=` is not read as `<`.
const RELATIONS: [(&str, Relation); 5] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("==", Relation::Equal),
    ("<", Relation::Less),
    (">", Relation::More),
];

impl Relation {
    /// Splits text at its first relation: the text before it, the relation, and the text after it.
    pub fn split(text: &str) -> Option<(&str, Self, &str)> {
        let found = RELATIONS.iter().filter_map(|(symbol, relation)| Some((text.find(symbol)?, *symbol, *relation)));
        let (at, symbol, relation) = found.min_by_key(|(at, symbol, _)| (*at, std::cmp::Reverse(symbol.len())))?;
        Some((text[..at].trim(), relation, text[at + symbol.len()..].trim()))
    }

    /// The operator as written.
    pub fn symbol(self) -> &'static str {
        RELATIONS.iter().find(|(_, relation)| *relation == self).map_or("", |(symbol, _)| symbol)
    }
}

/// The prefixes of a figure's name that select a time. The usual time, without a prefix, comes last.
const TIMES: [(&str, Time); 3] = [("response.", Time::Response), ("service.", Time::Service), ("", Time::Usual)];

const FORM: &str = "write it as `p99<50ms`, `max<=1s`, `failed<0.1%`, `failed==0`, `rate>=99%`, or `rate>=1000`";

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| format!("`{text}` is not a condition: {why}; {FORM}");
        let (figure_word, relation, value) = Relation::split(text).ok_or_else(|| refuse("it has no comparison"))?;
        let figure = Figure::of(figure_word).ok_or_else(|| refuse("its metric is unknown"))?;
        let bound = bound(figure, value).ok_or_else(|| refuse("its bound has the wrong unit for the metric"))?;
        Ok(Self { figure, relation, bound })
    }
}

impl Figure {
    /// Parses a figure's name: `p99`, `response.p99.9`, `service.max`, `failed`, `rate`.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "failed" => return Some(Self::Failed),
            "rate" => return Some(Self::Rate),
            _ => {}
        }
        let (time, statistic) = TIMES.iter().find_map(|(begins, time)| Some((*time, word.strip_prefix(begins)?)))?;
        let statistic = match statistic {
            "max" => Statistic::Max,
            "mean" => Statistic::Mean,
            "p999" => Statistic::Quantile(999),
            quantile => {
                let thousandths = quantile.strip_prefix('p')?.parse::<f64>().ok()? * 10.0;
                let whole = thousandths.round();
                let sound = (thousandths - whole).abs() < 1e-6 && (1.0..1000.0).contains(&whole);
                Statistic::Quantile(sound.then_some(whole as u32)?)
            }
        };
        Some(Self::Time(time, statistic))
    }
}

fn bound(figure: Figure, text: &str) -> Option<Bound> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    match figure {
        // A bare number would be seconds, but users do not mean seconds by `p99<50`.
        Figure::Time(..) if text.ends_with(|c: char| c.is_ascii_alphabetic()) => text.parse().ok().map(Bound::Span),
        Figure::Time(..) => None,
        Figure::Failed | Figure::Rate => match text.strip_suffix('%') {
            Some(percent) => number(percent).map(|percent| Bound::Share(percent / 100.0)),
            None => number(text.strip_suffix("/s").unwrap_or(text)).map(Bound::Number),
        },
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.figure {
            Figure::Failed => f.write_str("failed")?,
            Figure::Rate => f.write_str("rate")?,
            Figure::Time(time, statistic) => {
                f.write_str(TIMES.iter().find(|(_, of)| *of == time).map_or("", |(begins, _)| begins))?;
                match statistic {
                    Statistic::Max => f.write_str("max")?,
                    Statistic::Mean => f.write_str("mean")?,
                    Statistic::Quantile(thousandths) => write!(f, "p{}", f64::from(thousandths) / 10.0)?,
                }
            }
        }
        let symbol = self.relation.symbol();
        match self.bound {
            Bound::Span(span) => write!(f, "{symbol}{span}"),
            Bound::Number(number) => write!(f, "{symbol}{number}"),
            Bound::Share(share) => write!(f, "{symbol}{}%", percent(share)),
        }
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

loadline_base::written_as! {
    Condition, "condition", |of| {
        "description": "A metric compared with a bound: `p99<50ms`, `response.p99.9<=1s`, `service.max<2s`, \
            `failed<0.1%`, `failed==0`, `rate>=99%` (of the offered rate), `rate>=1000`.",
        "type": "string",
        "pattern": concat!(
            r"^ *((response\.|service\.)?(p[0-9.]+|max|mean) *(<|<=|==|>=|>) *[0-9.]+ *(us|ms|s|m|min|h)",
            r"|(failed|rate) *(<|<=|==|>=|>) *[0-9.]+(%|/s)?) *$"
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Measured for Fixed {
        fn time_ms(&self, time: Time, _: Statistic) -> Option<f64> {
            (time != Time::Response).then_some(42.0)
        }
        fn failed_of(&self) -> (u64, u64) {
            (1, 1000)
        }
        fn rate_of(&self) -> (f64, Option<f64>) {
            (990.0, Some(1000.0))
        }
    }

    #[test]
    fn conditions_round_trip() {
        for text in ["p99<50ms", "response.p99.9<=1s", "service.max<2s", "failed<0.1%", "failed==0", "rate>=99%"] {
            assert_eq!(text.parse::<Condition>().unwrap().to_string(), text);
        }
        assert_eq!("p999 < 5s".parse::<Condition>().unwrap().to_string(), "p99.9<5s");
        assert_eq!("rate>=1000/s".parse::<Condition>().unwrap().to_string(), "rate>=1000");
    }

    #[test]
    fn invalid_conditions_say_how_to_write_one() {
        for text in ["", "p99", "p99<50", "p99<x", "p100<1s", "p0<1s", "speed>1", "failed<-1", "rate>=nan", "p99<1%"] {
            let why = text.parse::<Condition>().unwrap_err();
            assert!(why.contains("write it as"), "{text}: {why}");
        }
    }

    #[test]
    fn conditions_are_judged_in_their_unit() {
        let judge = |text: &str| text.parse::<Condition>().unwrap().judge(&Fixed);
        assert_eq!(judge("p99<50ms"), Some((true, 42.0)));
        assert_eq!(judge("p99<42ms"), Some((false, 42.0)));
        assert_eq!(judge("p99<=42ms"), Some((true, 42.0)));
        assert_eq!(judge("response.p99<50ms"), None);
        assert_eq!(judge("failed<0.1%"), Some((false, 0.001)));
        assert_eq!(judge("failed<2"), Some((true, 1.0)));
        assert_eq!(judge("rate>=99%"), Some((true, 0.99)));
        assert_eq!(judge("rate>=1000"), Some((false, 990.0)));
    }
}
