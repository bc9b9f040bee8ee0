//! The values of one metric, each with its labels.

use super::super::words::name_of;
use serde::Serialize;

/// Names and values of labels, in their order.
pub(super) type Labels<'a> = [(&'a str, &'a str)];

/// One value.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) labels: Vec<(String, String)>,
    pub(super) value: f64,
}

/// All values of a metric.
#[derive(Debug, Default)]
pub(super) struct Points(pub(super) Vec<Point>);

impl Points {
    /// Adds a value with labels. A value that is missing or not a number adds no point.
    pub(super) fn at(&mut self, labels: &Labels<'_>, value: impl Into<Option<f64>>) {
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            self.0.push(Point { labels, value });
        }
    }

    /// Adds the only value.
    pub(super) fn one(&mut self, value: impl Into<Option<f64>>) {
        self.at(&[], value);
    }

    /// Adds the only value, a whole number.
    pub(super) fn whole(&mut self, value: impl Into<Option<u64>>) {
        self.one(value.into().map(|value| value as f64));
    }

    /// Adds a value for each of `all`: 1 for the current state `is`.
    pub(super) fn states<V: Copy + PartialEq + Serialize>(&mut self, labels: &Labels<'_>, all: &[V], is: V) {
        for state in all {
            self.at(&[labels, &[("verdict", &name_of(state))]].concat(), f64::from(u8::from(*state == is)));
        }
    }

    /// Adds all points that `read` adds, with this label before their own.
    pub(super) fn under(&mut self, name: &str, value: &str, read: impl FnOnce(&mut Self)) {
        let before = self.0.len();
        read(self);
        for point in &mut self.0[before..] {
            point.labels.insert(0, (name.to_owned(), value.to_owned()));
        }
    }
}
