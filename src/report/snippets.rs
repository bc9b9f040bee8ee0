//! What to write where a container is made, so that a limit that was found is set: Docker, Kubernetes, systemd.
//! Options are foreign text. Each kind quotes them as its reader takes quotes apart.

use super::export::steers;
use crate::record::{FindRecord, ImageRecord};
use crate::scenario::shell_word;
use crate::units::MIB;

/// How a JVM is told without a word of its command line.
const VARIABLE: &str = "JAVA_TOOL_OPTIONS";
/// Heap options that a command line may set itself, which then win.
const OF_HEAP: [&str; 4] = ["-Xmx", "-XX:MaxHeapSize=", "-XX:MaxRAMPercentage=", "-XX:MaxRAM="];

/// Lines to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::report) struct Snippet {
    /// The place where the lines go.
    pub(in crate::report) name: String,
    /// The lines as they are copied.
    pub(in crate::report) lines: Vec<String>,
}

/// The JVM options to set, that of the heap among them.
pub(in crate::report) fn options(find: &FindRecord) -> Vec<String> {
    let heap = find.line.as_ref().and_then(|line| line.heap_bytes);
    let given = find.options.iter().any(|option| option.starts_with("-Xmx"));
    let heap = heap.filter(|_| !given).map(|heap| format!("-Xmx{}", crate::units::Bytes(heap).java()));
    heap.into_iter().chain(find.options.iter().cloned()).collect()
}

/// What to write for each kind of host; nothing where no limit was found. `command` and `image` are those of a trial
/// that held.
pub(in crate::report) fn snippets(find: &FindRecord, command: &[String], image: Option<&ImageRecord>) -> Vec<Snippet> {
    let Some(limit) = find.limit_bytes else { return Vec::new() };
    let mib = limit.div_ceil(MIB);
    let options = options(find);
    let snippet = |name: &str, lines: Vec<String>| Snippet { name: name.to_owned(), lines };
    // Characters that steer a terminal cannot be shown and still be copied.
    let own = image.map_or("", |image| image.tool_options.as_str());
    let foreign = options.iter().map(String::as_str).chain([own]).chain(image.map(|image| image.name.as_str()));
    if foreign.into_iter().any(|text| text.chars().any(steers)) {
        let why = "the options hold characters that cannot be shown (--json has them)";
        let what = format!("set a limit of {mib} MiB; {why}");
        return vec![snippet("to set it", vec![what])];
    }
    // The options of the image itself go along, since the variable would replace them.
    let own = Some(own.to_owned()).filter(|own| !own.is_empty() && !options.is_empty());
    let value = own.into_iter().chain(options.iter().map(|option| tool_option(option))).collect::<Vec<_>>().join(" ");
    let mut found = vec![
        snippet("to set it with Docker", docker(mib, &value, image)),
        snippet("to set it for a container of Kubernetes", kubernetes(mib, &value, image)),
    ];
    if image.is_none() {
        found.push(snippet("to set it in a unit of systemd", systemd(mib, &value)));
    }
    let in_image: &[String] = image.map_or(&[], |image| &image.heap_options);
    let winners = [winners(&options, command), winners(&options, in_image)].concat();
    if !value.is_empty() && !winners.is_empty() {
        let whose = if image.is_some() { "the image's command" } else { "the command" };
        let what = format!("Take {} out of {whose}: it wins over {VARIABLE}.", winners.join(" "));
        found.push(snippet("note", vec![what]));
    }
    found
}

/// Docker would allow as much swap again where nothing is said of it; the trials had none.
fn docker(mib: u64, value: &str, image: Option<&ImageRecord>) -> Vec<String> {
    let tool = image.map_or("docker", |image| image.tool.as_str());
    let mut line = format!("{tool} run --memory={mib}m --memory-swap={mib}m");
    if !value.is_empty() {
        line.push_str(&format!(" -e {}", shell_word(&format!("{VARIABLE}={value}"))));
    }
    line.push(' ');
    line.push_str(&image.map_or_else(|| "IMAGE".to_owned(), |image| shell_word(&image.name)));
    vec![line]
}

fn kubernetes(mib: u64, value: &str, image: Option<&ImageRecord>) -> Vec<String> {
    let image = image.map(|image| format!("image: {}", double_quoted(&image.name)));
    let first = ["resources:", "  requests:"].map(str::to_owned);
    let mut lines: Vec<String> = image.into_iter().chain(first).collect();
    lines.push(format!("    memory: {mib}Mi"));
    lines.push("  limits:".to_owned());
    lines.push(format!("    memory: {mib}Mi"));
    if !value.is_empty() {
        lines.push("env:".to_owned());
        lines.push(format!("  - name: {VARIABLE}"));
        // Kubernetes replaces `$(NAME)`, and takes a doubled sign for one.
        lines.push(format!("    value: {}", double_quoted(&value.replace('$', "$$"))));
    }
    lines
}

fn systemd(mib: u64, value: &str) -> Vec<String> {
    let mut lines = vec!["[Service]".to_owned(), format!("MemoryMax={mib}M"), "MemorySwapMax=0".to_owned()];
    if !value.is_empty() {
        // systemd replaces `%h` and the like, and takes a doubled sign for one.
        lines.push(format!("Environment={}", double_quoted(&format!("{VARIABLE}={value}").replace('%', "%%"))));
    }
    lines
}

/// A text in quotes as YAML and systemd both take it apart: in both a backslash escapes itself and the quote.
fn double_quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// An option as the JVM takes its variable apart: at blanks, but not inside quotes, which may begin within a word and
/// know no escape.
fn tool_option(option: &str) -> String {
    if !option.is_empty() && !option.contains(|c: char| c.is_whitespace() || c == '"' || c == '\'') {
        return option.to_owned();
    }
    let mut out = String::new();
    for (index, piece) in option.split('"').enumerate() {
        if index > 0 {
            out.push_str("'\"'");
        }
        if !piece.is_empty() || option.is_empty() {
            out.push_str(&format!("\"{piece}\""));
        }
    }
    out
}

/// Heap options of the command line that are none of those to set.
fn winners<'a>(options: &[String], command: &'a [String]) -> Vec<&'a str> {
    let of_heap = |word: &&String| OF_HEAP.iter().any(|head| word.starts_with(head));
    let own = command.iter().filter(of_heap).filter(|word| !options.contains(word));
    own.map(String::as_str).filter(|word| !word.chars().any(steers)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::find_sample;
    use super::*;
    use proptest::prelude::*;

    fn of(options: &[&str]) -> Vec<Snippet> {
        let mut find = find_sample::found().find.unwrap();
        find.options = options.iter().map(|option| (*option).to_owned()).collect();
        snippets(&find, &[], None)
    }

    /// The options as HotSpot takes the variable apart (`Arguments::parse_options_buffer`).
    fn as_a_jvm_reads(value: &str) -> Vec<String> {
        let (mut found, mut rest) = (Vec::new(), value.trim_start_matches(|c: char| c.is_ascii_whitespace()));
        while !rest.is_empty() {
            let (mut option, mut chars) = (String::new(), rest.char_indices());
            let mut end = rest.len();
            let mut quote = None;
            for (at, c) in chars.by_ref() {
                match quote {
                    None if c.is_ascii_whitespace() => {
                        end = at;
                        break;
                    }
                    None if c == '"' || c == '\'' => quote = Some(c),
                    Some(open) if c == open => quote = None,
                    _ => option.push(c),
                }
            }
            assert_eq!(quote, None, "a quote stays open in {value}");
            found.push(option);
            rest = rest[end..].trim_start_matches(|c: char| c.is_ascii_whitespace());
        }
        found
    }

    /// The value of the variable as each reader hands it on: `sh`, YAML and Kubernetes, systemd.
    fn as_readers_hand_on(snippets: &[Snippet]) -> [String; 3] {
        let docker = &snippets[0].lines[0];
        let word = docker.split_once(" -e ").unwrap().1.strip_suffix(" IMAGE").unwrap();
        let plain = word
            .strip_prefix('\'')
            .map_or(word.to_owned(), |quoted| quoted.strip_suffix('\'').unwrap().replace(r"'\''", "'"));
        let yaml: yaml_serde::Value = yaml_serde::from_str(&snippets[1].lines.join("\n")).unwrap();
        let in_yaml = yaml["env"][0]["value"].as_str().unwrap().replace("$$", "$");
        let unit = snippets[2].lines.last().unwrap().strip_prefix("Environment=\"").unwrap();
        let unit = unit.strip_suffix('"').unwrap().replace("%%", "%");
        let (mut in_unit, mut escaped) = (String::new(), false);
        for c in unit.chars() {
            match c {
                '\\' if !escaped => escaped = true,
                c => {
                    assert!(c != '"' || escaped, "the quotes end early: {unit}");
                    in_unit.push(c);
                    escaped = false;
                }
            }
        }
        let bare = |text: &str| text.strip_prefix("JAVA_TOOL_OPTIONS=").unwrap().to_owned();
        [bare(&plain), in_yaml, bare(&in_unit)]
    }

    #[test]
    fn a_limit_and_its_options_for_each_kind_of_host() {
        let text: Vec<String> = of(&["-Xmx8m", "-Xss512k"])
            .into_iter()
            .flat_map(|snippet| [vec![snippet.name], snippet.lines].concat())
            .collect();
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn an_image_is_named_and_keeps_its_own_options() {
        let find = FindRecord { options: vec!["-Xmx8m".to_owned()], ..find_sample::found().find.unwrap() };
        let image = ImageRecord {
            name: "team/app:1".to_owned(),
            id: "01".to_owned(),
            tool: "podman".to_owned(),
            tool_options: "-Da=b".to_owned(),
            heap_options: vec!["-Xmx64m".to_owned()],
        };
        let found = snippets(&find, &[], Some(&image));
        let text: Vec<&str> = found.iter().flat_map(|snippet| snippet.lines.iter().map(String::as_str)).collect();
        assert!(text[0].starts_with("podman run --memory="), "{text:?}");
        assert!(text[0].ends_with(" -e 'JAVA_TOOL_OPTIONS=-Da=b -Xmx8m' team/app:1"), "{text:?}");
        assert_eq!(text[1..3], ["image: \"team/app:1\"", "resources:"]);
        assert!(!text.contains(&"[Service]"), "{text:?}");
        assert_eq!(text.last(), Some(&"Take -Xmx64m out of the image's command: it wins over JAVA_TOOL_OPTIONS."));
        let bare = FindRecord { options: Vec::new(), line: None, ..find };
        assert!(!snippets(&bare, &[], Some(&image))[0].lines[0].contains("-e "), "what it sets itself stays");
    }

    #[test]
    fn the_heap_found_is_among_the_options() {
        let find = find_sample::found().find.unwrap();
        let heap = find.line.as_ref().unwrap().heap_bytes.unwrap();
        let bare = FindRecord { options: vec!["-Xss512k".to_owned()], ..find.clone() };
        assert_eq!(options(&bare), [format!("-Xmx{}m", heap >> 20), "-Xss512k".to_owned()]);
        assert_eq!(options(&find), find.options);
    }

    #[test]
    fn without_a_limit_there_is_nothing_to_set() {
        for (outcome, document) in find_sample::endings() {
            let find = document.find.unwrap();
            assert_eq!(snippets(&find, &[], None).is_empty(), find.limit_bytes.is_none(), "{outcome:?}");
        }
    }

    #[test]
    fn what_a_command_sets_itself_is_told() {
        let find = find_sample::found().find.unwrap();
        let command = ["java", "-Xmx512m", "-jar", "a.jar"].map(str::to_owned);
        let note = snippets(&find, &command, None).pop().unwrap();
        assert!(note.lines[0].starts_with("Take -Xmx512m out of the command"), "{note:?}");
        let same = [vec!["java".to_owned()], find.options.clone()].concat();
        assert_eq!(snippets(&find, &same, None).len(), 3);
    }

    #[test]
    fn what_steers_a_terminal_is_not_shown() {
        for option in ["-Da=\u{1b}[31m", "-Da=x\ny", "-Da=\u{202e}x"] {
            let found = of(&[option]);
            assert_eq!(found.len(), 1);
            assert!(!found[0].lines[0].contains(steers), "{found:?}");
        }
    }

    proptest! {
        #[test]
        fn every_reader_gets_the_options_that_were_set(options in prop::collection::vec("(-D[a-z]{1,3}=)?[ -~]{0,12}", 1..4)) {
            let options: Vec<String> = options.into_iter().chain(["-Xmx8m".to_owned()]).collect();
            let words: Vec<&str> = options.iter().map(String::as_str).collect();
            for value in as_readers_hand_on(&of(&words)) {
                prop_assert_eq!(as_a_jvm_reads(&value), options.clone());
            }
        }
    }
}
