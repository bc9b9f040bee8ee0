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

    /// A theme's colours by name.
    fn colours(theme: &str) -> std::collections::HashMap<&str, &str> {
        let lines = theme.lines().filter_map(|line| line.trim().strip_prefix("--")?.split_once(": #"));
        lines.map(|(name, value)| (name, value.trim_end_matches(';'))).collect()
    }

    /// The relative luminance of `rrggbb`, after WCAG 2.2.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        let linear = |part: f64| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
        0.2126 * linear(part(0)) + 0.7152 * linear(part(2)) + 0.0722 * linear(part(4))
    }

    /// How far two colours stand apart, 1 to 21, after WCAG 2.2.
    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_and_lines_stand_out_from_what_is_behind_them_in_both_themes() {
        assert!((contrast("ffffff", "000000") - 21.0).abs() < 1e-9);
        let (light, dark) = super::super::COLOURS.split_once("@media").unwrap();
        for (name, theme) in [("light", light), ("dark", dark)] {
            let colours = colours(theme);
            // WCAG 2.2, AA: 4.5 for text, 3 for what is no text.
            let text = [
                (&["ink", "soft", "faint", "link", "better", "worse", "same", "fail"][..], "paper"),
                (&["ink", "soft", "link"], "panel"),
                (&["ink", "soft", "faint"], "band"),
            ];
            let lines =
                ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "open", "better", "worse", "link", "heap", "malloc"];
            let pairs = text.iter().flat_map(|(all, behind)| all.iter().map(move |one| (*one, *behind, 4.5)));
            for (one, behind, least) in pairs.chain(lines.iter().map(|one| (*one, "paper", 3.0))) {
                let found = contrast(colours[one], colours[behind]);
                assert!(found >= least, "{name}: {one} on {behind} is {found:.2}, and {least} is asked");
            }
        }
    }

    #[test]
    fn every_class_has_a_rule() {
        let of_owners = Owner::ALL.map(Owner::name).into_iter().chain(["new"]).map(|name| owner_style(name).0);
        let of_series = (0..SERIES).map(series_class);
        let of_settings = ["held", "failed", "hollow", "dominated", "bound", "v-worse", "o-other", "part"];
        for class in of_owners.chain(of_series).chain(of_settings.map(str::to_owned)) {
            assert!(super::super::RULES.contains(&format!(".{class} ")), "{class}");
        }
        let classes: Vec<String> = Owner::ALL.iter().map(|owner| owner_style(owner.name()).0).collect();
        for rule in super::super::RULES.lines().filter_map(|line| line.strip_prefix(".o-")) {
            let class = format!("o-{}", rule.split(' ').next().unwrap());
            assert!(class == "o-other" || classes.contains(&class), "{class} is the colour of no owner");
        }
    }
}
