//! The same colour for the same thing everywhere, and beside each colour a dash, a shape or hatching.

use crate::owner::Owner;

/// Styles of configurations before they repeat.
pub(crate) const SERIES: usize = 8;

/// The class of an owner, and whether it is hatched: memory that holds nothing, or that nobody owns. Families share a
/// hue; an owner that is not known is grey.
pub(crate) fn owner_style(name: &str) -> (String, bool) {
    let entry = Owner::named(name).map(Owner::entry);
    let (colour, hatched) = entry.map_or(("other", false), |entry| (entry.colour, entry.hatched));
    (format!("o-{colour}"), hatched)
}

/// The class of a configuration, by its place.
pub(crate) fn series_class(place: usize) -> String {
    format!("s{}", place % SERIES)
}

/// The rules of charts with the colours of the light theme in the place of their names: for a file that stands alone,
/// and for drawers that know no variables.
pub(crate) fn literal(colours: &str, rules: &str) -> String {
    // The first block is the light theme: `--name: value;` on each line.
    let light = colours.split('}').next().unwrap_or_default();
    let declared = |line: &str| -> Option<(String, String)> {
        let (name, value) = line.trim().strip_prefix("--")?.split_once(':')?;
        Some((format!("var(--{name})"), value.trim().trim_end_matches(';').to_owned()))
    };
    let mut text = rules.to_owned();
    for (name, value) in light.lines().filter_map(declared) {
        text = text.replace(&name, &value);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_has_a_value() {
        let literal = literal(super::super::COLOURS, super::super::RULES);
        assert!(!literal.contains("var("), "{literal}");
        let names = |block: &str| -> Vec<String> {
            let lines = block.lines().filter_map(|line| line.trim().split_once(':'));
            lines.map(|(name, _)| name.to_owned()).filter(|name| name.starts_with("--")).collect()
        };
        let (light, dark) = super::super::COLOURS.split_once("@media").unwrap();
        assert_eq!(names(light), names(dark), "both themes name the same colours in the same order");
    }

    #[test]
    fn every_class_of_an_owner_has_a_rule() {
        for name in Owner::ALL.map(Owner::name).into_iter().chain(["new"]) {
            let (class, _) = owner_style(name);
            assert!(super::super::RULES.contains(&format!(".{class} ")), "{class}");
        }
        let classes: Vec<String> = Owner::ALL.iter().map(|owner| owner_style(owner.name()).0).collect();
        for rule in super::super::RULES.lines().filter_map(|line| line.strip_prefix(".o-")) {
            let class = format!("o-{}", rule.split(' ').next().unwrap());
            assert!(class == "o-other" || classes.contains(&class), "{class} is the colour of no owner");
        }
        for place in 0..SERIES {
            assert!(super::super::RULES.contains(&format!(".{} ", series_class(place))));
        }
    }
}
