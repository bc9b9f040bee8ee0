//! The command to repeat a result, without output paths, which differ for each user.

use crate::export::Format;

/// Options that only affect output.
const SHOWN: [&str; 5] = ["--json", "--github", "--quiet", "--comment-always", "--details"];

/// The command without these options. Words after `--` belong to the subject and stay.
pub(super) fn shorter(command: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut words = words(command).into_iter();
    while let Some(word) = words.next() {
        let option = word.split('=').next().unwrap_or(word);
        match () {
            () if word == "--" => {
                kept.push(word);
                kept.extend(words.by_ref());
            }
            () if SHOWN.contains(&word) => {}
            () if has_place(word) => drop(words.next()),
            () if has_place(option) => {}
            () => kept.push(word),
        }
    }
    kept.join(" ")
}

/// Whether an option takes a path.
fn has_place(option: &str) -> bool {
    let word = option.strip_prefix("--").unwrap_or_default();
    word == "out" || Format::ALL.iter().any(|format| format.word() == word)
}

/// A command's words in shell syntax, including quotes.
fn words(command: &str) -> Vec<&str> {
    let (mut found, mut start, mut quoted, mut escaped) = (Vec::new(), None, false, false);
    for (at, character) in command.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if !quoted => escaped = true,
            '\'' => quoted = !quoted,
            ' ' if !quoted => {
                found.extend(start.take().map(|start: usize| &command[start..at]));
                continue;
            }
            _ => {}
        }
        start.get_or_insert(at);
    }
    found.extend(start.map(|start| &command[start..]));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_options_are_removed_from_the_repeat_command() {
        for (typed, expect) in [
            ("loadline run a.yaml --seed 1", "loadline run a.yaml --seed 1"),
            (
                "loadline run 'a b.yaml' --out x --budget 'rss<=1 MiB' --json --html 'x y.html' --junit=b.xml --github",
                "loadline run 'a b.yaml' --budget 'rss<=1 MiB'",
            ),
            ("loadline weigh --out x -- java --json --out y", "loadline weigh -- java --json --out y"),
            ("loadline run 'it'\\''s --json' --quiet", "loadline run 'it'\\''s --json'"),
            ("loadline run a --html", "loadline run a"),
            ("'", "'"),
            ("", ""),
        ] {
            assert_eq!(shorter(typed), expect, "{typed}");
        }
    }
}
