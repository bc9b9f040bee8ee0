//! How configurations are compared: against which, by which metrics, and what difference matters.

use crate::units::{Bytes, Span};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// What a comparison is asked to tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Compare {
    /// Name of the configuration that the others are compared with; the first one where it names none.
    pub baseline: Option<String>,
    /// The metrics to judge first, as `rss.loaded` or `p99`; the usual ones where it names none.
    pub metrics: Vec<String>,
    /// The least difference that matters, by metric or family (`rss`, `rate`); the first that fits counts.
    pub least: Vec<(String, Amount)>,
    /// Of all intervals of the judged metrics together, 0–1.
    pub confidence: f64,
    /// What becomes of blocks that the machine disturbed: how many may be repeated.
    pub repeats: u32,
    /// The most blocks to run until every judged metric is decided; `None` runs the trials asked for.
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
    /// What the field has agreed on.
    pub const CONFIDENCE: f64 = 0.95;

    /// The most blocks that run, where so many are planned.
    pub fn blocks(&self, planned: u32) -> u32 {
        self.until_sure.unwrap_or(0).max(planned)
    }

    /// The numbers of blocks at which it is asked whether all is decided. Few, since each look is another chance to
    /// be misled, and the intervals are widened for all of them.
    pub fn looks(&self) -> Vec<u32> {
        const LOOKS: [u32; 12] = [5, 7, 10, 14, 20, 28, 40, 56, 80, 112, 160, 320];
        let most = self.until_sure.unwrap_or(0);
        LOOKS.into_iter().filter(|look| *look < most).chain((most > 0).then_some(most)).collect()
    }
}

/// An amount of a metric with its unit: `1MiB`, `2%`, `5ms`, `100`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// Of memory.
    Size(Bytes),
    /// Of time.
    Time(Span),
    /// A share, 0–1: of the baseline where a difference is meant, else of what the metric is a share of.
    Share(f64),
    /// A plain number: a count, or a rate per second.
    Number(f64),
}

impl FromStr for Amount {
    type Err = String;

    /// A bare number is a number; sizes and times need their unit (`60MiB`, `20ms`).
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let refuse = || format!("`{text}` is no amount; write it as `60MiB`, `20ms`, `2%` or `1000`");
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        if let Some(percent) = text.strip_suffix('%') {
            return number(percent).map(|percent| Self::Share(percent / 100.0)).ok_or_else(refuse);
        }
        // `k` alone is a size, as everywhere; of a rate it is a thousand.
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
                // `6k` would be taken for 6,000.
                bytes if bytes % 1024 == 0 => write!(f, "{}KiB", bytes >> 10),
                // Without a unit it would read back as a number.
                bytes => write!(f, "{bytes}B"),
            },
            Self::Time(span) => write!(f, "{span}"),
            Self::Share(share) => write!(f, "{}%", plain(share * 100.0)),
            Self::Number(number) => f.write_str(&plain(*number)),
        }
    }
}

/// At most six decimals, none that say nothing.
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
        #[serde(untagged, expecting = "an amount such as `1MiB`, `2%`, `5ms` or `100`")]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_back_as_they_print() {
        for text in ["60MiB", "1536KiB", "500B", "20ms", "2%", "0.5%", "1000", "0", "1.5"] {
            assert_eq!(text.parse::<Amount>().unwrap().to_string(), text);
        }
        assert_eq!("60m".parse(), Ok(Amount::Size(Bytes::mib(60))));
        assert_eq!("10k/s".parse(), Ok(Amount::Number(10_000.0)));
    }

    #[test]
    fn what_is_no_amount_says_how_to_write_one() {
        for text in ["", "x", "-1", "nan", "inf", "5 apples", "%", "MiB", "-2%"] {
            assert!(text.parse::<Amount>().unwrap_err().contains("write it as"), "{text}");
        }
    }
}
