//! Budgets: bounds for CI runs. `rss.loaded<=60MiB`, `p99<=20ms`, `rss.loaded<=+2%`.

use super::Relation;
use super::compare::Amount;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A metric and its bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// The metric's name as written, such as `rss.loaded` or `p99`.
    pub metric: String,
    /// The required relation between metric and bound.
    pub relation: Relation,
    /// The bound.
    pub limit: Limit,
}

/// A budget's bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// On the metric itself.
    Absolute(Amount),
    /// On its change from the baseline: `+2%`, `-1MiB`. The sign is 1 or −1.
    Change(f64, Amount),
}

const FORM: &str = "write it as `rss.loaded<=60MiB`, `p99<=20ms`, or `failed<0.1%`; relative to a baseline, as \
                    `rss.loaded<=+2%`";

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| format!("`{text}` is not a budget: {why}; {FORM}");
        let (metric, relation, bound) = Relation::split(text).ok_or_else(|| refuse("it has no comparison"))?;
        if metric.is_empty() || metric.contains(char::is_whitespace) {
            return Err(refuse("it does not name a metric"));
        }
        let limit = match bound.split_at_checked(1) {
            Some(("+", change)) => change.parse().map(|amount| Limit::Change(1.0, amount)),
            Some(("-", change)) => change.parse().map(|amount| Limit::Change(-1.0, amount)),
            _ => bound.parse().map(Limit::Absolute),
        };
        Ok(Self { metric: metric.to_owned(), relation, limit: limit.map_err(|why| refuse(&why))? })
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.metric, self.relation.symbol())?;
        match self.limit {
            Limit::Absolute(amount) => write!(f, "{amount}"),
            Limit::Change(sign, amount) => write!(f, "{}{amount}", if sign < 0.0 { '-' } else { '+' }),
        }
    }
}

impl Serialize for Budget {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

loadline_base::written_as! {
    Budget, "budget", |of| {"type": "string", "pattern": r"^[^<>=\s]+\s*(<=|>=|==|<|>).+$"};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_round_trip() {
        for text in ["rss.loaded<=60MiB", "p99<20ms", "failed<0.1%", "rate.steady>=1000", "rss.loaded<=+2%", "x==-5MiB"]
        {
            assert_eq!(text.parse::<Budget>().unwrap().to_string(), text);
        }
        assert_eq!("rss.loaded <= 60m".parse::<Budget>().unwrap().to_string(), "rss.loaded<=60MiB");
    }

    #[test]
    fn invalid_budgets_say_how_to_write_one() {
        for text in ["", "rss", "<=5", "rss loaded<=5MiB", "rss.loaded<=", "rss.loaded<=x", "rss.loaded<=+"] {
            assert!(text.parse::<Budget>().unwrap_err().contains("write it as"), "{text}");
        }
    }
}
