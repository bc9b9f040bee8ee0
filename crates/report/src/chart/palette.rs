//! Consistent colors, each with a dash, shape, or hatching.

use crate::owner::Owner;

/// Number of configuration styles before they repeat.
pub(crate) const SERIES: usize = 8;

/// An owner's class, and whether it is hatched, which marks memory without content or owner. Families share a hue;
/// unknown owners are gray.
pub(crate) fn owner_style(name: &str) -> (String, bool) {
    let entry = Owner::named(name).map(Owner::entry);
    let (colour, hatched) = entry.map_or(("other", false), |entry| (entry.colour, entry.hatched));
    (format!("o-{colour}"), hatched)
}

pub(crate) fn series_class(place: usize) -> String {
    format!("s{}", place % SERIES)
}

/// Chart rules with color values instead of variables, for separate files and renderers without variables. The light
/// theme comes first; renderers without media queries ignore the dark one.
pub(crate) fn literal(colours: &str, rules: &str) -> String {
    let (light, dark) = colours.split_once("@media").unwrap_or((colours, ""));
    let coloured: String = rules.split_inclusive('}').filter(|rule| rule.contains("var(")).collect();
    let dark = valued(dark, &coloured);
    format!("{}@media (prefers-color-scheme: dark) {{{dark}\n}}\n", valued(light, rules))
}

/// Rules with the values of a theme, which has `--name: value;` on each line.
fn valued(theme: &str, rules: &str) -> String {
    let declared = |line: &str| -> Option<(String, String)> {
        let (name, value) = line.trim().strip_prefix("--")?.split_once(':')?;
        Some((format!("var(--{name})"), value.trim().trim_end_matches(';').to_owned()))
    };
    theme.lines().filter_map(declared).fold(rules.to_owned(), |text, (name, value)| text.replace(&name, &value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_color_variable_has_a_value() {
        let literal = literal(super::super::COLOURS, super::super::RULES);
        assert!(!literal.contains("var("), "{literal}");
        let names = |block: &str| -> Vec<String> {
            let lines = block.lines().filter_map(|line| line.trim().split_once(':'));
            lines.map(|(name, _)| name.to_owned()).filter(|name| name.starts_with("--")).collect()
        };
        let (light, dark) = super::super::COLOURS.split_once("@media").unwrap();
        assert_eq!(names(light), names(dark), "both themes name the same colors in the same order");
    }

    fn colours(theme: &str) -> std::collections::HashMap<&str, &str> {
        let lines = theme.lines().filter_map(|line| line.trim().strip_prefix("--")?.split_once(": #"));
        lines.map(|(name, value)| (name, value.trim_end_matches(';'))).collect()
    }

    /// The relative luminance of `rrggbb` (WCAG 2.2).
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        let linear = |part: f64| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
        0.2126 * linear(part(0)) + 0.7152 * linear(part(2)) + 0.0722 * linear(part(4))
    }

    /// The contrast of two colors, 1 to 21 (WCAG 2.2).
    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_and_lines_have_enough_contrast_in_both_themes() {
        assert!((contrast("ffffff", "000000") - 21.0).abs() < 1e-9);
        let (light, dark) = super::super::COLOURS.split_once("@media").unwrap();
        for (name, theme) in [("light", light), ("dark", dark)] {
            let colours = colours(theme);
            // WCAG 2.2, AA: 4.5 for text, 3 for graphics.
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
                assert!(found >= least, "{name}: {one} on {behind} is {found:.2}, but must be at least {least}");
            }
        }
    }

    #[test]
    fn every_css_class_has_a_rule() {
        let of_owners = Owner::ALL.map(Owner::name).into_iter().chain(["new"]).map(|name| owner_style(name).0);
        let of_series = (0..SERIES).map(series_class);
        let of_settings = ["held", "failed", "hollow", "dominated", "bound", "v-worse", "o-other", "part"];
        for class in of_owners.chain(of_series).chain(of_settings.map(str::to_owned)) {
            assert!(super::super::RULES.contains(&format!(".{class} ")), "{class}");
        }
        let classes: Vec<String> = Owner::ALL.iter().map(|owner| owner_style(owner.name()).0).collect();
        for rule in super::super::RULES.lines().filter_map(|line| line.strip_prefix(".o-")) {
            let class = format!("o-{}", rule.split(' ').next().unwrap());
            assert!(class == "o-other" || classes.contains(&class), "no owner has the color {class}");
        }
    }
}
