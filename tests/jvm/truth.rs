//! A subject's declared truth: `// truth: name=integer …` in its source.

use std::path::Path;

/// A declared value.
pub(crate) fn truth(subject: &str, name: &str) -> u64 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("java/subjects/loadline/subjects");
    let source = std::fs::read_to_string(folder.join(format!("{subject}.java"))).unwrap();
    let truths = source.lines().filter_map(|line| line.strip_prefix("// truth:")).flat_map(str::split_whitespace);
    let value = truths.filter_map(|truth| truth.split_once('=')).find(|(key, _)| *key == name);
    value.unwrap_or_else(|| panic!("{subject} declares no {name}")).1.parse().unwrap()
}
