//! Names of thread pools: threads whose names differ only in numbers.

use std::collections::BTreeMap;

/// Replaces numbers that differ within a pool.
const ANY: &str = "*";

/// The pool of each name: `http-8080-*` for `http-8080-1` and `http-8080-22`. A pool's only thread keeps its name.
pub fn pool_names<'n>(names: impl IntoIterator<Item = &'n str>) -> BTreeMap<&'n str, String> {
    let mut pools: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
    for name in names {
        let words = pieces(name).map(|piece| if is_number(piece) { ANY } else { piece });
        pools.entry(words.collect()).or_default().push(name);
    }
    let named = |members: Vec<&'n str>| {
        let pool = common(&members);
        members.into_iter().map(move |name| (name, pool.clone()))
    };
    pools.into_values().flat_map(named).collect()
}

/// Splits a name into numbers and the text between them.
fn pieces(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let digit = rest.chars().next()?.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digit).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        Some(piece)
    })
}

fn is_number(piece: &str) -> bool {
    piece.starts_with(|c: char| c.is_ascii_digit())
}

/// The common form of names that differ only in numbers.
fn common(names: &[&str]) -> String {
    let Some((first, others)) = names.split_first() else { return String::new() };
    let mut found: Vec<&str> = pieces(first).collect();
    for name in others {
        for (known, piece) in found.iter_mut().zip(pieces(name)) {
            if *known != piece {
                *known = ANY;
            }
        }
    }
    found.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_common_to_all_names_are_kept() {
        let of = |names: &[&str]| pool_names(names.iter().copied()).into_values().collect::<BTreeSet<String>>();
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
        assert_eq!(of(&["http-8080-1", "http-8080-22", "http-8080-3"]), set(&["http-8080-*"]));
        assert_eq!(of(&["http-8080-1", "http-8443-1"]), set(&["http-*-1"]));
        let mixed = ["pool-1-thread-1", "pool-2-thread-9", "7", "07", "a", "a1", "", "é٣"];
        assert_eq!(of(&mixed), set(&["*", "a", "a1", "pool-*-thread-*", "", "é٣"]));
        // A literal asterisk is not a number.
        assert_eq!(of(&["a*", "a1"]), set(&["a*", "a1"]));
    }

    proptest! {
        #[test]
        fn one_pool_has_one_pattern(names in prop::collection::btree_set("(pool-)?[0-9]{0,2}[ab]?[0-9]{0,2}", 0..30)) {
            let form = |name: &str| {
                pieces(name).map(|piece| if is_number(piece) { ANY } else { piece }).collect::<String>()
            };
            let pools = pool_names(names.iter().map(String::as_str));
            prop_assert_eq!(pools.len(), names.len());
            for (one, pool) in &pools {
                for (other, others) in &pools {
                    prop_assert_eq!(form(one) == form(other), pool == others, "{} and {}", one, other);
                }
            }
            let alone = |name: &str| names.iter().filter(|other| form(other) == form(name)).count() == 1;
            prop_assert!(pools.iter().all(|(name, pool)| !alone(name) || name == pool));
        }
    }
}
