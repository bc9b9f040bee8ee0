//! Java heap objects by class right after a full collection, and those of a fresh JVM when it was ready.

use serde::{Deserialize, Serialize};

/// The live objects of a JVM.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObjectsRecord {
    /// All live objects.
    pub total: ObjectSum,
    /// Live objects before: in another JVM of this configuration as soon as it was ready, or in the earlier account of
    /// a comparison; `null` without either.
    pub at_start: Option<ObjectSum>,
    /// Sums over several classes.
    pub kinds: Vec<ObjectKind>,
    /// Classes, largest growth first; without `at_start`, largest first.
    pub classes: Vec<ObjectClass>,
    /// Number of classes omitted from the list.
    pub classes_left_out: u64,
}

/// Objects and their shallow size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObjectSum {
    /// Number of objects.
    pub instances: u64,
    /// Shallow size of these objects.
    pub bytes: u64,
}

/// The objects of one class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObjectClass {
    /// Class name in the JVM's spelling: `[B` is `byte[]`. Classes of the same name from several loaders count as one.
    pub name: String,
    /// The objects now.
    pub now: ObjectSum,
    /// The objects before (see [`ObjectsRecord::at_start`]); also `null` for a class not listed then.
    pub at_start: Option<ObjectSum>,
}

/// Objects of several classes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ObjectKind {
    /// The kind of classes.
    pub kind: ObjectKindName,
    /// The objects now.
    pub now: ObjectSum,
    /// The objects before; see [`ObjectsRecord::at_start`].
    #[serde(default)]
    pub at_start: Option<ObjectSum>,
}

/// Kinds of objects that often fill heaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ObjectKindName {
    /// `java.lang.String`, without the arrays behind them.
    Strings,
    /// `byte[]`: characters of strings, buffers.
    ByteArrays,
    /// `Integer`, `Long`, and the other six wrapper classes.
    Boxed,
    /// Hash maps without a table, which never had an entry. A lower bound: other empty collections cannot be
    /// recognized.
    EmptyMaps,
}

/// A heap dump.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HeapDumpRecord {
    /// Path, as seen by the JVM.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// How long writing it paused the JVM.
    pub seconds: f64,
}

impl ObjectsRecord {
    /// Compares with an earlier count of the same JVM: sorts by growth, followed by classes whose earlier count is
    /// unknown because that list was truncated.
    pub fn compare_with(&mut self, earlier: &Self) {
        let all_then = earlier.classes_left_out == 0;
        let before = |name: &str| {
            let class = earlier.classes.iter().find(|class| class.name == name);
            class.map(|class| class.now).or(all_then.then(ObjectSum::default))
        };
        self.at_start = Some(earlier.total);
        for kind in &mut self.kinds {
            kind.at_start = earlier.kinds.iter().find(|other| other.kind == kind.kind).map(|other| other.now);
        }
        for class in &mut self.classes {
            class.at_start = before(&class.name);
        }
        if self.classes_left_out == 0 {
            let gone = earlier.classes.iter().filter(|old| !self.classes.iter().any(|class| class.name == old.name));
            let gone =
                gone.map(|old| ObjectClass { at_start: Some(old.now), now: ObjectSum::default(), ..old.clone() });
            let gone: Vec<ObjectClass> = gone.collect();
            self.classes.extend(gone);
        }
        self.classes.sort_by_key(|class| {
            let growth = class.at_start.map(|start| i128::from(class.now.bytes) - i128::from(start.bytes));
            std::cmp::Reverse((growth, class.now.bytes))
        });
    }
}

impl ObjectSum {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            instances: self.instances.saturating_add(other.instances),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(classes: &[(&str, u64)], classes_left_out: u64) -> ObjectsRecord {
        let class = |(name, bytes): &(&str, u64)| ObjectClass {
            name: (*name).to_owned(),
            now: ObjectSum { instances: bytes / 16, bytes: *bytes },
            at_start: None,
        };
        ObjectsRecord { classes: classes.iter().map(class).collect(), classes_left_out, ..ObjectsRecord::default() }
    }

    #[test]
    fn the_largest_growth_comes_first_and_unknown_growth_last() {
        let grown = |left_out: u64| {
            let mut now = counted(&[("[B", 900), ("New", 640), ("Shrunk", 160)], 0);
            now.compare_with(&counted(&[("[B", 800), ("Shrunk", 320), ("Gone", 16)], left_out));
            let bytes = |class: ObjectClass| (class.name, class.at_start.map(|start| start.bytes));
            now.classes.into_iter().map(bytes).collect::<Vec<_>>()
        };
        let of = |name: &str, bytes: Option<u64>| (name.to_owned(), bytes);
        let known = [of("[B", Some(800)), of("Gone", Some(16)), of("Shrunk", Some(320))];
        assert_eq!(grown(0), [&[of("New", Some(0))], &known[..]].concat());
        assert_eq!(grown(7), [&known[..], &[of("New", None)]].concat());
    }
}
