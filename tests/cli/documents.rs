//! The documents against the program: explained messages still exist, and links are valid.

use crate::called::{entries, read, root, rust_files};
use crate::schemas::doubts;
use loadline::doubt::Doubt;
use loadline::owner::{Group, Owner};
use std::path::PathBuf;

/// Headings of the troubleshooting document that quote a message.
fn messages() -> Vec<String> {
    let text = read(root().join("docs/troubleshooting.md"));
    let found: Vec<String> = text.lines().filter_map(|line| line.strip_prefix("### ")).map(str::to_owned).collect();
    assert!(found.len() >= 40, "{}", found.len());
    found
}

/// The parts of a message outside backticks.
fn fixed(message: &str) -> Vec<&str> {
    let pieces = message.split('`').step_by(2).map(|piece| piece.trim_matches(|c: char| !c.is_alphanumeric()));
    pieces.filter(|piece| !piece.is_empty()).collect()
}

/// All of `src` without its tests, with each string on one line.
fn sources() -> String {
    rust_files(|folder| folder.ends_with("tests")).iter().map(|path| joined(&read(path))).collect()
}

/// Removes tests, and joins strings continued with `\` at a line end.
fn joined(source: &str) -> String {
    let work = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    let mut pieces = work.split("\\\n");
    let first = pieces.next().unwrap().to_owned();
    pieces.fold(first, |text, piece| text + piece.trim_start())
}

/// A sentence may be composed of two parts, such as `the subject` and its predicate.
fn said(piece: &str, sources: &str) -> bool {
    let is_part = |text: &str| text.contains(' ') && sources.contains(text);
    let splits = piece.match_indices(' ').map(|(at, _)| piece.split_at(at));
    sources.contains(piece) || splits.into_iter().any(|(one, two)| is_part(one) && is_part(two.trim_start()))
}

#[test]
fn every_documented_message_still_exists() {
    let sources = sources();
    for message in messages() {
        for piece in fixed(&message) {
            assert!(said(piece, &sources), "no source contains `{piece}`, which is part of: {message}");
        }
    }
    assert!(!said("the server did not feel well", &sources), "this check must be able to fail");
}

/// Whether text contains a message's fixed parts in order.
fn says(text: &str, message: &str) -> bool {
    let pieces = fixed(message);
    let mut rest = text;
    let mut in_order = |piece: &&str| match rest.find(*piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    };
    pieces.iter().map(|piece| piece.len()).sum::<usize>() >= "at mark".len() && pieces.iter().all(&mut in_order)
}

/// Troubleshooting entries about doubts: the message and the text below it.
fn entries_of_doubts() -> Vec<(String, String)> {
    let text = read(root().join("docs/troubleshooting.md"));
    let section = text.split("\n## Doubts\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let entry = |entry: &str| entry.split_once('\n').map(|(message, below)| (message.to_owned(), below.to_owned()));
    section.split("\n### ").skip(1).filter_map(entry).collect()
}

/// A doubt's sentence is a heading. The text below it contains all words that the next step quotes.
#[test]
fn every_kind_of_doubt_is_documented_with_its_next_step() {
    let entries = entries_of_doubts();
    for doubt in doubts() {
        let (text, next) = (doubt.text(), doubt.next());
        let below: Vec<&str> =
            entries.iter().filter(|(message, _)| says(&text, message)).map(|(_, below)| below.as_str()).collect();
        assert!(!below.is_empty(), "not explained: {text}");
        let missing: Vec<&str> = next
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|named| !below.iter().any(|below| below.contains(named)))
            .collect();
        assert!(missing.is_empty(), "the entry lacks {missing:?} from the doubt's next step: {text}");
    }
}

/// Conditional sentences of doubts that `doubts` does not produce.
const OTHER_SENTENCES: [&str; 2] = ["Netty's pools", "connections per second"];

#[test]
fn every_documented_doubt_exists() {
    let said: Vec<String> = doubts().iter().map(Doubt::text).collect();
    for (message, _) in entries_of_doubts() {
        let other = OTHER_SENTENCES.iter().any(|sentence| message.contains(sentence));
        assert!(other || said.iter().any(|text| says(text, &message)), "no doubt has this text: {message}");
    }
}

#[test]
fn every_troubleshooting_entry_ends_with_a_command() {
    let text = read(root().join("docs/troubleshooting.md"));
    for entry in text.split("\n### ").skip(1) {
        let entry = entry.split("\n## ").next().unwrap().trim_end();
        let (causes, command) = entry.split_once("```console\n$ ").unwrap_or_else(|| panic!("no command: {entry}"));
        assert!(causes.contains("\n- "), "no cause: {entry}");
        assert!(command.ends_with("\n```") && command.lines().count() == 2, "it must end with one command: {entry}");
    }
}

/// Every published document: in the root, in `docs`, and README files.
fn documents() -> Vec<PathBuf> {
    let is_document = |path: &PathBuf| path.extension().is_some_and(|end| end == "md");
    let mut found: Vec<PathBuf> = entries(&root()).into_iter().filter(is_document).collect();
    let of_docs = ["docs", "docs/how-to"].into_iter().flat_map(|folder| entries(&root().join(folder)));
    found.extend(of_docs.filter(is_document));
    let folders = ["bench", "scenarios", "tests/samples", "tests/cli/archives"].map(|name| root().join(name));
    let folders = folders.into_iter().chain(entries(&root().join("scenarios")));
    found.extend(folders.map(|folder| folder.join("README.md")).filter(|file| file.exists()));
    found
}

/// Prose has one sentence per line, so that changes are visible per line.
#[test]
fn documents_have_one_sentence_per_line_and_valid_links() {
    let files = documents();
    assert!(files.len() >= 20, "{files:?}");
    for path in files {
        let name = path.display();
        let mut in_code = false;
        for line in read(&path).lines() {
            in_code ^= line.starts_with("```");
            if in_code || line.starts_with(['|', '#']) {
                continue;
            }
            // A list item may give its reason on the same line.
            let item = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
            let is_item = item.starts_with("- ") || item.starts_with(". ");
            let sentences = line.match_indices(". ").filter(|_| !is_item).filter(|(at, _)| {
                let next = line[at + 2..].chars().next();
                next.is_some_and(char::is_uppercase) && !line[..*at].ends_with(|c: char| c.is_ascii_digit())
            });
            assert_eq!(sentences.count(), 0, "{name}: two sentences: {line}");
            for target in line.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
                let file = target.split('#').next().unwrap();
                let exists = target.contains("://") || path.parent().unwrap().join(file).exists();
                assert!(exists, "{name}: `{target}` does not exist");
            }
        }
    }
}

/// The document's table of owners matches the code, and each section names the options that affect its owner.
#[test]
fn the_documented_owners_match_the_code() {
    let text = read(root().join("docs/memory.md"));
    let section = text.split("\n## The owners\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let shown: Vec<&str> = section.lines().filter(|line| line.starts_with('|')).take(Owner::ALL.len() + 2).collect();
    let letter = |wanted: Group| Group::ALL.iter().find(|(group, ..)| *group == wanted).unwrap().1;
    let row = |owner: Owner| {
        let of = owner.entry();
        let moved_by: Vec<String> = of.moved_by.iter().map(|option| format!("`{option}`")).collect();
        let moved_by = if moved_by.is_empty() { "-".to_owned() } else { moved_by.join(", ") };
        format!("| {} | `{}` | `{}` | {} | {moved_by} |", of.label, of.name, letter(of.group), of.what)
    };
    let head = ["| owner | in JSON | chart letter | what it is | affected by |", "|---|---|---|---|---|"];
    let rows: Vec<String> = head.into_iter().map(str::to_owned).chain(Owner::ALL.map(row)).collect();
    assert_eq!(shown, rows, "docs/memory.md should have:\n{}\n", rows.join("\n"));
    let parts: Vec<&str> = section.split("\n### ").skip(1).collect();
    for of in Owner::ALL.map(Owner::entry) {
        let family = of.name.split('.').next().unwrap();
        let about = |name: &str| parts.iter().find(|part| part.lines().next().unwrap().contains(&format!("`{name}")));
        let part = about(of.name).or_else(|| about(family)).unwrap_or_else(|| panic!("no section on {}", of.name));
        for option in of.moved_by {
            assert!(part.contains(option), "the section on {} does not mention {option}", of.name);
        }
    }
}
