//! How to compare configurations: the baseline, the metrics, and the smallest difference that matters.

use super::written::{Named, named, parsed};
use crate::units::{Bytes, Span};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The settings of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Compare {
    /// Name of the configuration that the others are compared with; if `None`, the first one.
    pub baseline: Option<String>,
    /// The metrics to judge first, such as `rss.loaded` or `p99`; if empty, the usual ones.
    pub metrics: Vec<String>,
    /// The smallest difference that matters, by metric or family (`rss`, `rate`); the first match applies.
    pub least: Vec<(String, Amount)>,
    /// The joint confidence of all intervals of the judged metrics, 0–1.
    pub confidence: f64,
    /// The number of blocks that may be repeated because the machine disturbed them.
    pub repeats: u32,
    /// The maximum number of blocks to run until every judged metric is decided; `None` runs the requested trials.
    pub until_sure: Option<u32>,
}

impl Default for Compare {
    fn default() -> Self {
        Self {
            baseline: None,
            metrics: Vec::new(),
            least: Vec::new(),
            confidence: Self::CONFIDENCE,
            repeats: 0,
            until_sure: None,
        }
    }
}

impl Compare {
    /// The conventional confidence level.
    pub const CONFIDENCE: f64 = 0.95;

    /// Applies the given settings; others keep their values.
    pub fn apply(&mut self, of: CompareSettings) {
        self.baseline = of.baseline.or(self.baseline.take());
        if !of.metrics.is_empty() {
            self.metrics = of.metrics;
        }
        // The first match wins.
        self.least.splice(0..0, of.least);
        self.confidence = of.confidence.map_or(self.confidence, |of| of.0);
        self.repeats = of.repeats.unwrap_or(self.repeats);
        self.until_sure = of.until_sure.or(self.until_sure);
    }

    /// The maximum number of blocks if `planned` are planned.
    pub fn blocks(&self, planned: u32) -> u32 {
        self.until_sure.unwrap_or(0).max(planned)
    }

    /// The block counts at which to check whether every metric is decided. They are few, because each check is another
    /// chance of error, and the intervals are widened accordingly.
    pub fn looks(&self) -> Vec<u32> {
        const LOOKS: [u32; 12] = [5, 7, 10, 14, 20, 28, 40, 56, 80, 112, 160, 320];
        let most = self.until_sure.unwrap_or(0);
        LOOKS.into_iter().filter(|look| *look < most).chain((most > 0).then_some(most)).collect()
    }
}

/// How configurations are compared, as written.
#[derive(Debug, Clone, Default, Deserialize, clap::Args, schemars::JsonSchema)]
#[schemars(rename = "CompareFile")]
#[command(next_help_heading = "Comparison")]
#[serde(deny_unknown_fields, default)]
pub struct CompareSettings {
    /// Configuration to compare the others with; if omitted, the first one.
    #[arg(skip)]
    pub baseline: Option<String>,
    /// Trials of each configuration, one in each block; the same as `trials`.
    #[arg(skip)]
    #[schemars(extend("minimum" = 1, "maximum" = 1000))]
    pub trials: Option<u32>,
    /// Metrics to judge, such as `rss.loaded` or `p99`; if omitted, the most important ones.
    #[arg(long = "metric", value_name = "METRIC", value_delimiter = ',')]
    #[arg(help = "Metrics to judge, such as `rss.loaded,p99` [default: the most important ones]")]
    pub metrics: Vec<String>,
    /// Smallest difference that matters, by metric or family: `{rss: 1MiB, rate: 2%}`.
    #[arg(long, value_name = "METRIC=AMOUNT", value_parser = least, help = LEAST)]
    #[schemars(with = "Option<Named<Amount>>")]
    #[serde(deserialize_with = "named")]
    pub least: Vec<(String, Amount)>,
    /// Joint confidence level of the judged intervals: `95%` or `0.95`.
    #[arg(long, value_name = "PERCENT", help = "Joint confidence level of the judged intervals [default: 95%]")]
    #[schemars(extend("default" = "95%"))]
    #[serde(deserialize_with = "parsed")]
    pub confidence: Option<Confidence>,
    /// Maximum number of blocks to repeat because the machine disturbed them.
    // As an option, it belongs only to verbs that run blocks: see `BlockOptions`.
    #[arg(skip)]
    #[schemars(extend("maximum" = 1000, "default" = 0))]
    pub repeats: Option<u32>,
    /// Run blocks until every judged metric is decided, at most this many.
    #[arg(skip)]
    #[schemars(extend("minimum" = 5, "maximum" = 1000))]
    pub until_sure: Option<u32>,
}

const LEAST: &str =
    "Smallest difference that matters for a metric [default: 1MiB for memory, 2% otherwise] (repeatable)";

/// How many blocks to run.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Comparison")]
pub struct BlockOptions {
    /// Run blocks until every judged metric is decided, at most N [default N: 30]
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "30")]
    pub until_sure: Option<u32>,
    /// Repeat up to N blocks that were disturbed by other load on the machine [default: 0]
    #[arg(long, value_name = "N")]
    pub repeats: Option<u32>,
}

fn least(text: &str) -> Result<(String, Amount), String> {
    match text.split_once('=') {
        Some((metric, amount)) if !metric.is_empty() => Ok((metric.to_owned(), amount.parse()?)),
        _ => Err(format!("`{text}` is not a smallest difference; write it as `rss=1MiB` or `p99=5%`")),
    }
}

/// The joint confidence of all intervals: the probability that all contain the true value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence(pub f64);

impl FromStr for Confidence {
    type Err = String;

    /// `95%` or `0.95`, between 50% and 99.99%.
    fn from_str(text: &str) -> Result<Self, String> {
        let share = match text.trim().strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
            None => text.trim().parse::<f64>(),
        };
        let sound = share.ok().filter(|share| (0.5..=0.9999).contains(share)).map(Self);
        sound.ok_or_else(|| {
            format!(
                "`{text}` is not a confidence level; write it as `95%`, between 50% and \
             99.99%"
            )
        })
    }
}

/// A share as written: `2%` or `0.02`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(f64);

impl Share {
    /// As a fraction of 1.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(Amount::Share(share) | Amount::Number(share)) => Ok(Self(share)),
            _ => Err(format!("`{text}` is not a percentage; write it as `2%`")),
        }
    }
}

/// An amount with its unit: `1MiB`, `2%`, `5ms`, `100`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// Memory.
    Size(Bytes),
    /// Time.
    Time(Span),
    /// A share, 0–1: of the baseline for a difference, otherwise of the metric's denominator.
    Share(f64),
    /// A number: a count, or a rate per second.
    Number(f64),
}

impl FromStr for Amount {
    type Err = String;

    /// A bare number is a number; sizes and times need a unit (`60MiB`, `20ms`).
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let refuse = || format!("`{text}` is not an amount; write it as `60MiB`, `20ms`, `2%`, or `1000`");
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        if let Some(percent) = text.strip_suffix('%') {
            return number(percent).map(|percent| Self::Share(percent / 100.0)).ok_or_else(refuse);
        }
        // `k` alone is a size, as everywhere; in a rate, it is a thousand.
        if let Some(rate) = text.strip_suffix("/s") {
            let (digits, factor) = rate.strip_suffix('k').map_or((rate, 1.0), |thousands| (thousands, 1e3));
            return number(digits).map(|rate| Self::Number(rate * factor)).ok_or_else(refuse);
        }
        if let Some(plain) = number(text) {
            return Ok(Self::Number(plain));
        }
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim().to_ascii_lowercase();
        if matches!(unit.as_str(), "ns" | "us" | "µs" | "ms" | "s" | "min" | "h") {
            return text.parse().map(Self::Time).map_err(|_| refuse());
        }
        text.parse().map(Self::Size).map_err(|_| refuse())
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(bytes) => match bytes.0 {
                bytes if bytes % (1 << 20) == 0 => write!(f, "{}MiB", bytes >> 20),
                // `6k` would be read as 6,000.
                bytes if bytes % 1024 == 0 => write!(f, "{}KiB", bytes >> 10),
                // Without a unit, it would be read as a number.
                bytes => write!(f, "{bytes}B"),
            },
            Self::Time(span) => write!(f, "{span}"),
            Self::Share(share) => write!(f, "{}%", plain(share * 100.0)),
            Self::Number(number) => f.write_str(&plain(*number)),
        }
    }
}

/// At most six decimals, without trailing zeros.
fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "an amount such as `1MiB`, `2%`, `5ms`, or `100`")]
        enum Written {
            Number(f64),
            Text(String),
        }
        match Written::deserialize(from)? {
            Written::Number(number) => Ok(Self::Number(number)),
            Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

loadline_base::written_as! {
    Amount, "amount", |of| {
        "description": "An amount with its unit: `1MiB`, `2%`, `5ms`; a bare number is a count or a rate per second.",
        "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": "^[0-9]"}]
    };
    Confidence, "confidence", |of| {
        "description": "`95%` or `0.95`.",
        "anyOf": [{"type": "string"}, {"type": "number", "minimum": 0.5, "maximum": 0.9999}]
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_round_trip() {
        for text in ["60MiB", "1536KiB", "500B", "20ms", "2%", "0.5%", "1000", "0", "1.5"] {
            assert_eq!(text.parse::<Amount>().unwrap().to_string(), text);
        }
        assert_eq!("60m".parse(), Ok(Amount::Size(Bytes::mib(60))));
        assert_eq!("10k/s".parse(), Ok(Amount::Number(10_000.0)));
    }

    #[test]
    fn invalid_amounts_say_how_to_write_one() {
        for text in ["", "x", "-1", "nan", "inf", "5 apples", "%", "MiB", "-2%"] {
            assert!(text.parse::<Amount>().unwrap_err().contains("write it as"), "{text}");
        }
    }
}
