//! Quotes options for the `java` launcher, which parses them from an environment variable.

/// Quotes an option for `JDK_JAVA_OPTIONS`, which the `java` launcher (JDK 9 and later, `JLI_AddArgsFromEnvVar`) splits
/// at white space. Everything within `"…"` or `'…'` is literal; there are no escapes.
fn for_java(option: &str) -> String {
    if !option.is_empty() && !option.contains(|c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\'')) {
        return option.to_owned();
    }
    // Adjacent quoted pieces are joined, so each run gets the quotes that it does not contain.
    let mut quoted = String::new();
    let mut rest = option;
    while !rest.is_empty() {
        let quote = if rest.starts_with('"') { '\'' } else { '"' };
        let end = rest.find(quote).unwrap_or(rest.len());
        quoted.push(quote);
        quoted.push_str(&rest[..end]);
        quoted.push(quote);
        rest = &rest[end..];
    }
    if quoted.is_empty() { "\"\"".to_owned() } else { quoted }
}

/// The value for such a variable or `JAVA_TOOL_OPTIONS`: the existing value, then these options, which win.
pub(super) fn with_options(before: &str, options: &[String]) -> String {
    let own = options.iter().map(|option| for_java(option));
    let before = Some(before.to_owned()).filter(|before| !before.is_empty());
    before.into_iter().chain(own).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reimplements the launcher's parser to check the round trip.
    fn java_reads(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut characters = text.chars().peekable();
        loop {
            while characters.next_if(|c| c.is_ascii_whitespace()).is_some() {}
            if characters.peek().is_none() {
                return words;
            }
            let mut word = String::new();
            while let Some(c) = characters.next_if(|c| !c.is_ascii_whitespace()) {
                match c {
                    '"' | '\'' => word.extend(characters.by_ref().take_while(|&inner| inner != c)),
                    _ => word.push(c),
                }
            }
            words.push(word);
        }
    }

    #[test]
    fn quoted_options_round_trip_through_java() {
        for option in ["-Xmx6m", "-Da=b c", "-Da=\"b\"", "-Da='b'", "-Da='b c' \"d e\"", "-Dw=C:\\x y", "\"", "'\"'"] {
            assert_eq!(java_reads(&for_java(option)), [option], "{}", for_java(option));
        }
        assert_eq!(for_java("-Xmx6m"), "-Xmx6m");
    }

    #[test]
    fn our_options_follow_existing_ones() {
        let options = ["-Xmx8m", "-Dx=y"].map(str::to_owned);
        assert_eq!(with_options("-Da=b", &options), "-Da=b -Xmx8m -Dx=y");
        assert_eq!(with_options("", &["-Da=b c".to_owned()]), "\"-Da=b c\"");
    }
}
