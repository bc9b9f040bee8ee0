//! A metric's values with labels.

use super::super::words::name_of;
use serde::Serialize;

/// Label names and values, in order.
pub(super) type Labels<'a> = [(&'a str, &'a str)];

#[derive(Debug)]
pub(super) struct Point {
    pub(super) labels: Vec<(String, String)>,
    pub(super) value: f64,
}

#[derive(Debug, Default)]
pub(super) struct Points(pub(super) Vec<Point>);

impl Points {
    /// Adds a labeled value. Missing and non-finite values are ignored.
    pub(super) fn at(&mut self, labels: &Labels<'_>, value: impl Into<Option<f64>>) {
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            self.0.push(Point { labels, value });
        }
    }

    /// Adds an unlabeled value.
    pub(super) fn one(&mut self, value: impl Into<Option<f64>>) {
        self.at(&[], value);
    }

    /// Adds an unlabeled integer.
    pub(super) fn whole(&mut self, value: impl Into<Option<u64>>) {
        self.one(value.into().map(|value| value as f64));
    }

    /// Adds a value for each of `all`: 1 for the current state `is`, else 0.
    pub(super) fn states<V: Copy + PartialEq + Serialize>(&mut self, labels: &Labels<'_>, all: &[V], is: V) {
        for state in all {
            self.at(&[labels, &[("verdict", &name_of(state))]].concat(), f64::from(u8::from(*state == is)));
        }
    }

    /// Adds the points from `read`, prefixed with this label.
    pub(super) fn under(&mut self, name: &str, value: &str, read: impl FnOnce(&mut Self)) {
        let before = self.0.len();
        read(self);
        for point in &mut self.0[before..] {
            point.labels.insert(0, (name.to_owned(), value.to_owned()));
        }
    }
}
